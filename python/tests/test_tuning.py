"""Tests of searches for settings: the trials, the chosen settings, and searches inside of cross-validation."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, cross_val_score

import miplc
from miplc import Bags, DataError, MIPLClassifier, SpecError, tuning

SPACE = {"train__lr": {"log": [0.001, 0.1]}, "train.momentum": {"uniform": [0, 0.9]}, "train__batch": [1, 2]}


def test_arguments() -> None:
    """miplc.search has an argument for each key of a search."""
    assert tuning._KEYS <= set(inspect.signature(miplc.search).parameters)


def test_search(bags: Bags) -> None:
    best = miplc.search("quickstart", bags, space=SPACE, trials=9, train__epochs=9)
    assert best.predict_proba(bags).shape == (len(bags), len(best.classes_))
    found = best.run_.search
    assert found is not None and found.summary["measure"] == "accuracy"
    assert len(found.trials) == 9 and found.trials["chosen"].sum() == 1
    assert {"train.lr", "train.momentum", "train.batch", "epochs", "accuracy", "seconds"} <= {*found.trials.columns}
    chosen = found.trials[found.trials["chosen"]].iloc[0]
    for key, value in found.best_params.items():
        assert chosen[key] == value
        assert f"{key.split('.')[1]}: {value}" in best.run_.spec
    assert (found.curves.loc[9].notna().sum(), found.curves.shape[1]) == (1, 9)
    assert found.curves.loc[9].max() == pytest.approx(chosen["accuracy"])
    for text in (found._repr_html_(), best.run_._repr_html_()):
        assert "trials of the search" in text and "<svg" in text
    again = miplc.search("quickstart", bags, space=SPACE, trials=9, train__epochs=9)
    assert np.array_equal(again.predict_proba(bags), best.predict_proba(bags))


def test_folds(bags: Bags) -> None:
    best = miplc.search("quickstart", bags, space=SPACE, trials=3, folds=4, train__epochs=9)
    found = best.run_.search
    assert found is not None and found.summary["folds"] == 4 and found.summary["held_out_bags"] == len(bags)
    folds = found.trials[[f"fold_{i}" for i in (1, 2, 3, 4)]]
    assert np.allclose(folds.mean(axis=1), found.trials["accuracy"])
    classifier = MIPLClassifier("quickstart", search={"trials": 3, "folds": 2}, train__epochs=3).fit(bags)
    assert classifier.run_.search is not None and classifier.run_.search.summary["folds"] == 2


def test_nested(bags: Bags) -> None:
    classifier = MIPLClassifier("quickstart", search={"trials": 3, "measure": "loss", "halving": 1}, train__epochs=3)
    assert classifier.get_params()["search"]["trials"] == 3
    groups = np.arange(len(bags)) % 2
    scores = cross_val_score(classifier, bags, bags.labels, groups=groups, cv=GroupKFold(2), error_score="raise")
    assert scores.shape == (2,) and not np.isnan(scores).any()
    assert miplc.train("quickstart", bags, search=2, settings={"train.epochs": 2}, progress=False).search is not None
    assert miplc.train("quickstart", bags, settings={"train.epochs": 2}, progress=False).search is None


def test_resume(bags: Bags, tmp_path: Any) -> None:
    how = {"trials": 4, "budget": 1e-9}
    with pytest.raises(miplc.TrainingError, match="no trial reached"):
        miplc.train("quickstart", bags, search=how, output=tmp_path / "run", progress=False)
    run = miplc.train(
        "quickstart", bags, search={"trials": 4}, output=tmp_path / "run", progress=False, resume=True
    )
    assert run.search is not None and len(run.search.trials) == 4


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ({"trails": 3}, "search has no key 'trails'"),
        ({"space": {}}, "a dict is needed"),
        ({"space": {"train__lr": 0.1}}, "a list of values or a range is needed"),
        ({"space": {"train__lr": {"log": [0, 1]}}}, "a logarithmic range needs numbers above 0"),
        ({"space": {"train__rate": [0.1]}}, "rate"),
        ({"measure": "hamming_loss"}, "not defined"),
        ({"trials": 0}, "trials"),
        ({"budget": "5m"}, "budget is '5m'; a number of seconds above 0 is needed"),
        ({"budget": -1}, "budget is -1; a number of seconds"),
        ({"budget": float("nan")}, "budget is nan; a number of seconds"),
        ({"space": {1: [2]}}, "space has the key 1; a name of a setting"),
        ({"space": {"train__lr": {}}}, "train.lr needs one range"),
        ({"folds": 1}, "search.folds must be between 2 and 1000, not 1"),
        ({"folds": 900}, "training bags: [0-9]+ bags cannot be divided into 900 folds"),
        ({"folds": 3, "holdout": 0.2}, "search.holdout has no effect with folds"),
        ({"folds": 40, "measure": "auroc"}, "held-out bags? of fold [0-9]+ of 40"),
    ],
)
def test_errors(bags: Bags, search: Any, text: str) -> None:
    with pytest.raises((SpecError, DataError), match=text):
        MIPLClassifier("quickstart", search=search, train__epochs=2).fit(bags)
