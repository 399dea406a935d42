"""Tests of fit_many: the same numbers as single fits, in one call of the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, ParameterGrid

from miplc import Bags, MIPLClassifier, MIPLMultiLabelClassifier, SpecError, TrainingError, fit_many

GRID: dict[str, list[Any]] = {"train__lr": [0.01, 0.05], "loss__attention": [0.001, 0.1]}


def test_settings(bags: Bags) -> None:
    classifier = MIPLClassifier(train__epochs=3, random_state=2)
    fits = fit_many(classifier, bags, params=GRID)
    assert fits.params == list(ParameterGrid(GRID)) and np.isnan(fits.scores).all()
    for params, (fitted,) in zip(fits.params, fits.estimators):
        assert fitted is not None
        alone = MIPLClassifier(train__epochs=3, random_state=2, **params).fit(bags)
        assert fitted.get_params() == alone.get_params()
        assert np.array_equal(fitted.predict_proba(bags), alone.predict_proba(bags))
    assert "train__lr" not in classifier.get_params()
    with pytest.raises(SpecError, match="there are no test bags"):
        _ = fits.best_params


def test_splits(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    splits = list(KFold(3, shuffle=True, random_state=0).split(bags))
    settings: list[dict[str, Any]] = [
        {"random_state": 1, "train__lr": 0.05},
        {"random_state": 2, "train__lr": None, "loss__attention": 0.01, "train__momentum": 0.5},
    ]
    fits = fit_many(
        MIPLClassifier(train__epochs=10), list(bags), truth, candidates=candidates, params=settings, splits=splits
    )
    assert fits.scores.shape == (2, 3)
    for row, scores in zip(fits.estimators, fits.scores):
        for fitted, score, (train, test) in zip(row, scores, splits):
            assert fitted is not None
            alone = MIPLClassifier(**fitted.get_params()).fit(bags[train])
            assert fitted.score(bags[test], np.array(truth)[test]) == pytest.approx(score)
            assert np.array_equal(fitted.predict_proba(bags), alone.predict_proba(bags))
    assert list(fits.frame["mean"]) == fits.scores.mean(axis=1).tolist()
    assert fits.best_params == settings[int(fits.scores.mean(axis=1).argmax())]


def test_names_groups_and_several_labels(bags: Bags, candidates: list[set[str]], tmp_path: Path) -> None:
    named = Bags(bags, labels=candidates, names=[f'bag "{i}", {60 - i}' for i in range(60)])
    parts = [(np.arange(60) % 2 == 0, np.arange(60) % 2 == 1)]
    classifier = MIPLMultiLabelClassifier(train__epochs=2, output=tmp_path / "runs")
    fits = fit_many(
        classifier, named, params={"train__lr": [0.1, 0.2]}, splits=parts, groups=[i % 2 for i in range(60)]
    )
    fitted = fits.estimators[1][0]
    assert fits.scores.shape == (2, 1) and fitted is not None and fitted.model_.path is not None
    assert {p.name for p in (tmp_path / "runs").glob("split*")} == {"split-1-setting-1", "split-1-setting-2"}


def test_wrong_input(bags: Bags) -> None:
    classifier = MIPLClassifier(train__epochs=1)
    wrong: list[tuple[Any, str]] = [
        ({"spec": ["acmil"]}, "fit_many cannot vary spec"),
        ([], "params has no settings"),
        ({"train__lr": []}, "params has no settings"),
        ({"random_state": range(1001)}, "1001 settings on 1 splits are more than 1000"),
        ({"train__epocs": [1, 2]}, "unknown key"),
        ([{"train__lr": 0.1}, {"train__lr": 0.1}], "have the same settings"),
    ]
    for params, text in wrong:
        with pytest.raises(SpecError, match=text):
            fit_many(classifier, bags, params=params)
    with pytest.warns(UserWarning, match="a training failed: setting-2: training stopped"):
        fits = fit_many(classifier, bags, params={"train__lr": [0.1, 1e30]})
    assert fits.estimators[0][0] is not None and fits.estimators[1] == [None]
    with pytest.raises(TrainingError, match="training stopped"):
        fit_many(classifier, bags, params={"train__lr": [1e30]})
