"""Tests of messages, warnings and folders: the words of Python, for what the user wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, cross_val_score

import miplc
from miplc import Bags, FindingWarning, MIPLClassifier, fit_many

IMAGES = [np.zeros((2, 1, 8, 8))] * 6
LEARNERS = [{"name": "a", "spec": "demipl-mlp"}, {"name": "b", "spec": "demipl-mpl"}]
SINGLE = [{"name": "a", "spec": "demipl-mlp"}]
CASES: list[tuple[Callable[[Bags], Any], str, str | None]] = [
    (lambda b: MIPLClassifier().fit(IMAGES, [0, 1] * 3), "data conflicts with an inherited setting: block dense", None),
    (
        lambda b: miplc.train({"extends": "demipl-mlp", "train": {"epochs": 3, "lrr": 2}}, b),
        'spec["train"]["lrr"]: unknown key "lrr" in train\n        did you mean "lr"?',
        'spec["train"]["lrr"]',
    ),
    (
        lambda b: miplc.train({"extends": "demipl-mlp", "train": {"lr: x": 2}}, b),
        'spec["train"]["lr: x"]: unknown key',
        'spec["train"]["lr: x"]',
    ),
    (
        lambda b: miplc.train({"extends": "demipl-mlp", "model": {"blocks": ["relu", {"dens": 4}]}}, b),
        'spec["model"]["blocks"][1]["dens"]: unknown block "dens"',
        'spec["model"]["blocks"][1]["dens"]',
    ),
    (lambda b: miplc.train("extends: demipl\ntrain: {epocs: 3}", b), 'spec:2:9: unknown key "epocs" in train', "spec"),
    (
        lambda b: miplc.experiment({"learners": LEARNERS}, data={"mine": b}),
        'definition["learners"][1]["spec"]: learner "b": there is no file demipl-mpl',
        'definition["learners"][1]["spec"]',
    ),
    (
        lambda b: miplc.experiment({"learners": SINGLE}, data={"mine": b[:2]}),
        "data['mine']: mine: data['mine']: class \"horse\" has no",
        "data['mine']",
    ),
    (lambda b: MIPLClassifier(train__lr=-3).fit(b), "setting train.lr=-3: train.lr must be", "setting train.lr=-3"),
    (lambda b: miplc.train("demipl-mlp", "none.csv"), "there is no file none.csv", None),
    (lambda b: MIPLClassifier(engine="xla").fit(b), "engine xla: no GPU", None),
    (lambda b: MIPLClassifier(engine="xlaa").fit(b), 'engine cannot be "xlaa"', None),
    (lambda b: miplc.train("demipl-mlp", b.with_groups(["p"] * 60)), "a training share of 0.7 of the bags", None),
    (lambda b: miplc.experiment("smoke", jbos=2), "miplc experiment: unknown argument: jbos", None),
    (lambda b: MIPLClassifier(train__lr=1e30).fit(b), "training stopped: .* of the bags;", None),
    (
        lambda b: fit_many(
            MIPLClassifier(), b, params={"train__lr": [0.1]}, splits=KFold(2).split(b), groups=["p"] * 60
        ),
        'group "p" is in two parts',
        None,
    ),
]
FOREIGN = re.compile(r"--(?!help)[a-z]|bags-of-python|\.yaml|splits\.csv|/tmp")


@pytest.mark.parametrize(("call", "text", "file"), CASES)
def test_messages(call: Callable[[Bags], Any], text: str, file: str | None, bags: Bags) -> None:
    with pytest.raises(miplc.MiplcError) as caught:
        call(bags)
    said = str(caught.value)
    assert re.match(text if ".*" in text else re.escape(text), said) and caught.value.file == file
    assert FOREIGN.search(said) is None, said


def test_a_second_fit_into_a_folder(bags: Bags, truth: list[str], tmp_path: Path) -> None:
    classifier = MIPLClassifier(train__epochs=1, output=tmp_path / "run").fit(bags)
    with pytest.raises(miplc.TrainingError, match="contains a finished run: .*, or overwrite it with overwrite=True"):
        classifier.fit(bags)
    classifier.set_params(overwrite=True, train__epochs=2)
    assert len(classifier.fit(bags).history_) == 2
    assert len(cross_val_score(classifier, list(bags), truth, cv=2, error_score="raise")) == 2
    again = MIPLClassifier(train__epochs=1, output=tmp_path / "runs", overwrite=True)
    for _ in range(2):
        assert fit_many(again, bags, params={"train__lr": [0.1, 0.2]}).estimators[0][0] is not None


def test_findings_are_warnings(bags: Bags) -> None:
    settings = {"train.epochs": 1, "data.split.train": 0.9}
    with pytest.warns(FindingWarning, match="too few to tell") as caught:
        run = miplc.train("demipl-mlp", bags, settings=settings, progress=False)
    assert [str(w.message) for w in caught] == run.findings and {w.filename for w in caught} == {__file__}
    with pytest.warns(FindingWarning) as caught:
        fitted = MIPLClassifier(train__epochs=1, train__lr=1e-9).fit(bags)
    assert [str(w.message) for w in caught] == fitted.findings_ != [] and {w.filename for w in caught} == {__file__}
    assert issubclass(FindingWarning, UserWarning)


def test_classes_that_look_alike(tmp_path: Path) -> None:
    labels = ["Tumor", "tumor", "normal"] * 4
    frame = pd.DataFrame({"bag": range(12), "label": labels, "f": np.arange(12.0)})
    frame.to_csv(tmp_path / "bags.csv", index=False)
    text = ': the classes "Tumor" and "tumor" differ only in case'
    with pytest.warns(UserWarning, match="^the frame" + text) as caught:
        bags = Bags.from_frame(frame)
    assert [w.filename for w in caught] == [__file__]
    with pytest.warns(UserWarning, match="bags.csv" + text):
        Bags.read(tmp_path / "bags.csv")
    for first in ("T", "t\u200b", " t"):
        names = [label.replace("T", first) for label in labels]
        arrays = [bag + i for i, bag in enumerate(bags)]
        with pytest.warns(UserWarning, match="^the bags: the classes .* differ only in"):
            MIPLClassifier(train__epochs=1).fit(arrays, names)
    with pytest.warns(UserWarning, match="^the bags" + text):
        fit_many(MIPLClassifier(train__epochs=1), bags, params={"train__lr": [0.1]}, splits=KFold(2).split(bags))
    learners = [{"name": "a", "spec": "demipl-mlp", "set": {"train.epochs": 1}}]
    with pytest.warns(UserWarning, match="data.'mine'.: the classes"):
        miplc.experiment({"learners": learners, "splits": {"count": 2}}, data={"mine": bags}, progress=False)


def test_a_selection_without_a_class(bags: Bags) -> None:
    assert bags.candidates is not None
    with pytest.warns(UserWarning, match="no bag has the label cat: the model does not predict it"):
        run = miplc.train("demipl-mlp", bags[~bags.candidates[:, 0]], settings={"train.epochs": 1}, progress=False)
    assert run.model.classes == ["dog", "horse"]
