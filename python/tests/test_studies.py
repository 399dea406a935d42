"""Tests of experiments, reports and generated datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import miplc
from miplc import Bags, DataError, SpecError, TrainingError

DEFINITION: dict[str, Any] = {
    "learners": [
        {"name": "DEMIPL", "spec": "demipl-mlp", "group": "bags", "set": {"train.epochs": 20, "train.lr": 0.05}},
        {"name": "PRODEN", "spec": "proden-mean", "group": "means", "set": {"train.epochs": 2}},
    ],
    "splits": {"count": 3},
}


def test_experiment(bags: Bags, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = miplc.experiment(DEFINITION, data={"mine": bags}, output=tmp_path / "study", jobs=2)
    assert "6/6" in capfd.readouterr().err
    assert len(first.results) == 6 and set(first.results["learner"]) == {"DEMIPL", "PRODEN"}
    table = first.tables["Classification accuracy"]
    rows = {row["Learner"]: row for row in table.to_dict("records")}
    mean = first.results.groupby("learner")["accuracy"].mean()
    assert rows["DEMIPL"]["group"] == "bags" and rows["DEMIPL"]["mine"].startswith(f"{mean['DEMIPL']:.3f}±")
    assert rows["PRODEN"]["group"] == "means" and rows["PRODEN"]["mine"].endswith("•")
    assert "<html" in first.html and "| DEMIPL |" in first.markdown and "<table" in first._repr_html_()
    again = miplc.experiment(DEFINITION, data={"mine": bags}, output=tmp_path / "study", progress=False)
    assert again.results.equals(first.results)  # no cell ran again
    other = miplc.report(tmp_path / "study", measure=["macro_f1", "auroc"], test="paired")
    assert {"Macro F1", "AUROC"} <= set(other.tables)


def test_groups_stay_together(bags: Bags) -> None:
    grouped = bags.with_groups([i % 2 for i in range(60)], "patient")
    definition = {"learners": DEFINITION["learners"][1:], "splits": {"count": 2, "train": 0.5}}
    found = miplc.experiment(definition, data={"mine": grouped}, progress=False)
    assert list(found.results["test_bags"]) == [30, 30]


def test_wrong_experiments(bags: Bags, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="demipl-mpl") as caught:
        miplc.experiment({"learners": [{"name": "a", "spec": "demipl-mpl"}]}, data={"mine": bags})
    assert caught.value.file == 'definition["learners"][0]["spec"]' and caught.value.suggestion == "demipl-mlp"
    with pytest.raises(SpecError, match="data needs a definition that is a dict"):
        miplc.experiment("smoke", data={"mine": bags})
    (tmp_path / "bad.csv").write_text("bag,label,candidates,f1\na,x,x y,1\nb,x,x y,q\n")
    definition = {**DEFINITION, "data": [{"name": "bad", "file": str(tmp_path / "bad.csv")}]}
    with pytest.raises(DataError, match="bad.csv:3:9: bag 2: feature 1 is .q., not a number") as wrong:
        miplc.experiment(definition, output=tmp_path / "out")
    assert wrong.value.bag == 2 and not (tmp_path / "out").exists()
    with pytest.raises(TrainingError):
        miplc.report(tmp_path)
    with pytest.raises(SpecError, match="unknown argument: jbos"):
        miplc.experiment(DEFINITION, data={"mine": bags}, jbos=2)


def test_synth() -> None:
    bags = miplc.synth("prototypes", bags=12, features=3, classes=["cat", "dog"], r=0, seed=4, min_size=2, max_size=3)
    assert len(bags) == 12 and bags.instances.shape[1] == 3 and bags.class_names == ["cat", "dog"]
    with pytest.raises(SpecError, match='did you mean "prototypes"'):
        miplc.synth("prototype")
