"""Tests of train and of models: the numbers of the command, callbacks, interruption and wrong input."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import miplc
from miplc import Bags, DataError, Model, Run, SpecError, TrainingError

FAST = {"train.epochs": 3}


def test_numbers_of_the_command(
    bags: Bags, truth: list[str], tmp_path: Path, program: Callable[..., dict[str, Any]]
) -> None:
    bags.write(tmp_path / "bags.npz")
    args = ["--set", f"data.set={tmp_path / 'bags.npz'}", "--set", "train.epochs=3", "--set", "train.seed=7"]
    said = program("train", "demipl-mlp", *args, "-o", tmp_path / "command")
    run = miplc.train("demipl-mlp", bags, settings=FAST, seed=7, progress=False)
    assert run.accuracy == said["accuracy"] and run.measures == said["measures"]
    assert run.summary["loss"] == said["loss"] and run.summary["data"]["sha256"] == said["data"]["sha256"]
    command = miplc.load(tmp_path / "command")
    assert np.array_equal(run.model.predict_proba(bags), command.predict_proba(bags))
    test = [i - 1 for i in run.split["test"]]
    predicted = run.model.predict_proba(bags[test]).argmax(axis=1)
    right = [run.model.classes[p] == truth[i] for p, i in zip(predicted, test)]
    assert np.mean(right) == pytest.approx(run.accuracy)


def test_run(bags: Bags, tmp_path: Path) -> None:
    run = miplc.train("demipl-mlp", bags, settings=FAST, output=tmp_path / "run", progress=False)
    assert run.folder == tmp_path / "run" and run.model.path == tmp_path / "run" / "model.onnx"
    assert len(run.epochs) == 3 and list(run.history["epoch"]) == [1, 2, 3]
    assert run.history["test_accuracy"].iloc[-1] == run.accuracy and "test_auroc" in run.history
    assert {"loss", "attention"} <= set(run.plots) and "</svg>" in run.plots["loss"]
    assert "extends" not in run.spec and "<svg" in run._repr_html_() and "test accuracy" in repr(run)
    again = Run.read(tmp_path / "run")
    assert again.summary == run.summary and again.model.bytes == run.model.bytes
    with pytest.raises(TrainingError, match="contains a finished run"):
        miplc.train("demipl-mlp", bags, settings=FAST, output=tmp_path / "run", progress=False)
    assert miplc.train("demipl-mlp", bags, settings=FAST, output=tmp_path / "run", overwrite=True).model.bytes


def test_forms_of_specs(bags: Bags, tmp_path: Path) -> None:
    text = "name: mine\nextends: demipl-mlp\ntrain: {epochs: 3}\n"
    (tmp_path / "mine.yaml").write_text(text)
    bags.write(tmp_path / "bags.npz")
    models = [
        miplc.train(spec, data, progress=False).model.predict_proba(bags)
        for spec, data in (
            (text, bags),
            (tmp_path / "mine.yaml", str(tmp_path / "bags.npz")),
            ({"extends": "demipl-mlp", "train": {"epochs": np.int64(3)}}, bags),
        )
    ]
    assert np.array_equal(models[0], models[1]) and np.array_equal(models[0], models[2])


def test_groups_stay_together(bags: Bags) -> None:
    grouped = bags.with_groups([i // 4 for i in range(60)], "patient")
    run = miplc.train("demipl-mlp", grouped, settings={"train.epochs": 1, "data.split.train": 0.5}, progress=False)
    parts = {i: part for part in ("train", "test") for i in run.split[part]}
    assert all(len({parts[4 * g + i] for i in range(1, 5)}) == 1 for g in range(15))


def test_model_is_that_of_onnxruntime(bags: Bags, tmp_path: Path) -> None:
    for signature in ("bag", "batch"):
        settings = {**FAST, "export.signature": signature}
        model = miplc.train("demipl-mlp", bags, settings=settings, progress=False).model
        assert model.path is None and model.classes == ["cat", "dog", "horse"] and model.shape == (4,)
        session = onnxruntime.InferenceSession(model.save(tmp_path / f"{signature}.onnx"))
        probabilities, attention = model.predict_proba(bags), model.attention(bags)
        for i, bag in enumerate(bags):
            feed = {"instances": bag} | ({"bag_of": np.zeros(len(bag), np.int64)} if signature == "batch" else {})
            direct = session.run(["probabilities", "attention"], feed)
            assert np.allclose(probabilities[i], direct[0][0], atol=1e-6)
            assert np.allclose(attention[i], direct[1].reshape(-1), atol=1e-6)
        one = model.predict(bags[:2])[1]
        assert np.array_equal(one.probabilities, probabilities[1]) and one.class_attention is None
        assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(bags), probabilities)


def test_callbacks(bags: Bags) -> None:
    seen: list[Mapping[str, Any]] = []
    run = miplc.train("demipl-mlp", bags, settings=FAST, callbacks=[seen.append], progress=False)
    assert [dict(e) for e in seen] == run.epochs

    def stop(epoch: Mapping[str, Any]) -> None:
        if epoch["epoch"] == 2:
            raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        miplc.train("demipl-mlp", bags, settings={"train.epochs": 100000}, callbacks=[stop], progress=False)


def test_interrupt_and_resume(bags: Bags, tmp_path: Path) -> None:
    settings, output = {"train.epochs": 40}, tmp_path / "run"

    def interrupt(epoch: Mapping[str, Any]) -> None:
        if epoch["epoch"] == 5:
            os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for programs in the background
    with pytest.raises(KeyboardInterrupt):
        miplc.train(
            "demipl-mlp", bags, settings=settings, output=output, callbacks=[interrupt], progress=False, resume=True
        )
    assert not (output / "model.onnx").exists()
    seen: list[int] = []
    resumed = miplc.train(
        "demipl-mlp",
        bags,
        settings=settings,
        output=output,
        callbacks=[lambda e: seen.append(e["epoch"])],
        progress=False,
        resume=True,
    )
    whole = miplc.train("demipl-mlp", bags, settings=settings, progress=False)
    assert 1 < seen[0] <= 40 and np.array_equal(resumed.model.predict_proba(bags), whole.model.predict_proba(bags))
    assert resumed.summary["loss"] == whole.summary["loss"]
    with pytest.raises(SpecError, match="needs output"):
        miplc.train("demipl-mlp", bags, resume=True)


def test_progress(bags: Bags, capfd: pytest.CaptureFixture[str]) -> None:
    miplc.train("demipl-mlp", bags, settings=FAST)
    assert "3/3" in capfd.readouterr().err
    miplc.train("demipl-mlp", bags, settings=FAST, progress=False)
    assert capfd.readouterr().err == ""


def test_warnings(bags: Bags, program: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="class cat has only 20 bags, so that some of the 50 folds"):
        miplc.train("demipl-mlp", bags, settings={**FAST, "data.split.folds": 50}, progress=False)
    far = [bag.astype(float) + 1.7e9 for bag in bags]
    with pytest.warns(UserWarning, match="feature 1 has values from 169.* subtract a constant such as 1.7e"):
        Bags(far)


@pytest.mark.parametrize(
    ("kind", "spec", "settings", "text", "attributes"),
    [
        (SpecError, "demipl-mpl", {}, "no shipped spec of that name", {"suggestion": "demipl-mlp", "file": None}),
        (SpecError, {"train": {"epochs": object()}}, {}, "the spec has a value of the type object", {}),
        (SpecError, 3, {}, "the spec is of the type int", {}),
        (SpecError, "demipl-mlp", {"train.epocs": 3}, "", {"file": "setting train.epocs=3", "suggestion": "epochs"}),
        (SpecError, "demipl-mlp", {"train.epochs": -1}, "train.epochs", {"file": "setting train.epochs=-1"}),
        (SpecError, "demipl-mlp", {"train.epochs": object()}, "has a value of the type object", {}),
        (SpecError, "name: a\nextends: demipl-mlp\ntrain: {epocs: 3}\n", {}, 'unknown key "epocs"',
         {"file": "spec", "line": 3, "column": 9, "suggestion": "epochs"}),
        (SpecError, "demipl-mlp", {"data.split.folds": 100}, "folds", {"file": "setting data.split.folds=100"}),
        (TrainingError, "demipl-mlp", {"train.lr": 1e30, "train.epochs": 5}, "training stopped", {}),
        (DataError, "demipl-mlp", {"data.split.index": "none.csv"}, "none.csv", {}),
    ],
)  # fmt: skip
def test_wrong_specs(
    kind: type[Exception], spec: Any, settings: Any, text: str, attributes: Any, bags: Bags, tmp_path: Path
) -> None:
    with pytest.raises(kind) as caught:
        miplc.train(spec, bags, settings=settings, output=tmp_path / "run", progress=False)
    assert type(caught.value) is kind and text in str(caught.value)
    assert {name: getattr(caught.value, name) for name in attributes} == attributes
    assert "temporary" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert not (tmp_path / "run").exists()


def test_wrong_files(tmp_path: Path) -> None:
    (tmp_path / "bags.csv").write_text("bag,label,candidates,f1\na,cat,cat dog,1\nb,dog,dog,x\n")
    with pytest.raises(DataError) as caught:
        miplc.train("demipl-mlp", tmp_path / "bags.csv", progress=False)
    err = caught.value
    assert (err.file, err.line, err.column, err.bag) == (str(tmp_path / "bags.csv"), 3, 11, 2)
    with pytest.raises(DataError, match="there is no file"):
        miplc.train("demipl-mlp", tmp_path / "none.csv", progress=False)
    with pytest.raises(DataError, match="give labels or candidates"):
        miplc.train("demipl-mlp", Bags([np.ones((1, 2))]), progress=False)
    for wrong in (tmp_path, tmp_path / "bags.csv", b"", b"x" * 100):
        with pytest.raises(DataError):
            Model(wrong)
    with pytest.raises(DataError, match="there is no finished run"):
        Run.read(tmp_path)


def test_missing_program_and_library(bags: Bags, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXRUNTIME_SHARED_LIBRARY_PATH", "/nonexistent.so")
    with pytest.raises(TrainingError, match="onnxruntime"):
        miplc.train("demipl-mlp", bags, settings=FAST, progress=False)
    monkeypatch.setenv("MIPLC", "/nonexistent")
    with pytest.raises(TrainingError, match="the program miplc was not found: MIPLC names /nonexistent"):
        miplc.train("demipl-mlp", bags, progress=False)


FULL = """
import resource, sys, numpy, miplc
bags = miplc.Bags.read(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    miplc.train("demipl-mlp", bags, settings={"train.epochs": 3}, output=sys.argv[3], progress=False)
except miplc.TrainingError as err:
    print(err.file, err)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no limit of file sizes")
@pytest.mark.parametrize("limit", [2_000, 20_000], ids=["of the bags", "of the run"])
def test_full_disk(bags: Bags, limit: int, tmp_path: Path, temporary: Path) -> None:
    bags.write(tmp_path / "bags.npz")
    args = [sys.executable, "-c", FULL, str(tmp_path / "bags.npz"), str(limit), str(tmp_path / "run")]
    said = subprocess.run(args, capture_output=True, text=True)
    assert "File too large" in said.stdout or "file too large" in said.stdout, said
    assert list(temporary.iterdir()) == [] and not (tmp_path / "run").exists()
