"""Tests of fit_many: the same numbers as single fits, in one call of the program."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ParameterGrid, ShuffleSplit, TimeSeriesSplit

from miplc import (
    Bags,
    DataError,
    FindingWarning,
    MIPLClassifier,
    MIPLMultiLabelClassifier,
    SpecError,
    TrainingError,
    fit_many,
)

GRID: dict[str, list[Any]] = {"train__lr": [0.01, 0.05], "loss__attention": [0.001, 0.1]}


def test_settings(bags: Bags) -> None:
    classifier = MIPLClassifier(train__epochs=3, random_state=2)
    with pytest.warns(UserWarning, match="all scores are NaN, because no validation bags .* pass splits to fit_many"):
        fits = fit_many(classifier, bags, params=GRID)
    assert fits.params == list(ParameterGrid(GRID)) and np.isnan(fits.scores).all()
    for params, (fitted,) in zip(fits.params, fits.estimators):
        assert fitted is not None
        alone = MIPLClassifier(train__epochs=3, random_state=2, **params).fit(bags)
        assert fitted.get_params() == alone.get_params()
        assert np.array_equal(fitted.predict_proba(bags), alone.predict_proba(bags))
    assert "train__lr" not in classifier.get_params()
    with pytest.raises(SpecError, match="no setting has the measure accuracy to choose by"):
        _ = fits.best_params
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", FindingWarning)
        by_loss = fit_many(classifier, bags, params=GRID, measure="loss")
    losses = [fitted.run_.summary["loss"] for (fitted,) in by_loss.estimators if fitted is not None]
    assert by_loss.scores[:, 0].tolist() == losses and by_loss.best_index == np.argmin(losses)


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


@pytest.mark.parametrize(
    "splitter",
    [ShuffleSplit(2, train_size=0.5, test_size=0.2, random_state=0), TimeSeriesSplit(2), KFold(2)],
    ids=lambda splitter: type(splitter).__name__,
)
def test_bags_in_no_part_and_validation_bags(bags: Bags, truth: list[str], splitter: Any) -> None:
    """A split may leave bags out, and validation bags are those that a single fit has."""
    order = np.random.default_rng(0).permutation(60)
    mixed, y = bags[order], np.array(truth)[order]
    classifier = MIPLClassifier(train__epochs=3, data__split__validation=0.3, train__best="loss")
    splits = list(splitter.split(y))
    fits = fit_many(classifier, mixed, y, params={"train__lr": [0.05]}, splits=splits)
    search = GridSearchCV(classifier, {"train__lr": [0.05]}, cv=[(np.sort(train), test) for train, test in splits])
    search.fit(mixed, y)
    for f, (train, test) in enumerate(splits):
        fitted = fits.estimators[0][f]
        alone = MIPLClassifier(**fits.estimators[0][f].get_params()).fit(mixed[np.sort(train)], y[np.sort(train)])
        assert fitted is not None and np.array_equal(fitted.predict_proba(bags), alone.predict_proba(bags))
        assert len(fitted.run_.split["train"]) + len(fitted.run_.split["validation"]) == len(train)
        assert search.cv_results_[f"split{f}_test_score"][0] == pytest.approx(fits.scores[0, f])


def test_measures_without_true_labels(bags: Bags, candidates: list[set[str]]) -> None:
    only, params = Bags(bags, candidates=candidates), {"train__lr": [1e-6, 0.05], "data__split__validation": [0.3]}
    splits = list(KFold(2, shuffle=True, random_state=0).split(candidates))
    trained: list[Any] = []
    with pytest.raises(DataError, match=r'splits\[0\] has a true label .*\n.*measure="inside_candidates"'):
        fit_many(MIPLClassifier(callbacks=[trained.append]), only, params=params, splits=splits)
    assert trained == []
    for given in (None, splits):
        model = MIPLClassifier(train__epochs=30)
        fits = fit_many(model, only, params=params, splits=given, measure="inside_candidates")
        assert fits.best_params["train__lr"] == 0.05 and (fits.scores > 0.3).all()
    inside = [f.score(only[test], only[test].candidates) for f, (_, test) in zip(fits.estimators[1], splits) if f]
    assert fits.scores[1].tolist() == pytest.approx(inside)


def test_measures_of_groups_and_wrong_measures(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    """Lower is better for the log loss of groups, too, and a measure that does not exist is refused at once."""
    params, groups = {"train__lr": [1e-6, 0.05]}, [f"patient {i // 2}" for i in range(60)]
    splits = list(GroupKFold(2).split(truth, groups=groups))
    classifier = MIPLClassifier(train__epochs=10)
    for measure in ("group_log_loss", "group_accuracy"):
        fits = fit_many(
            classifier, bags, truth, candidates=candidates, params=params, groups=groups, splits=splits, measure=measure
        )
        assert fits.best_params == {"train__lr": 0.05}, measure
    with pytest.raises(SpecError, match="measure is 'acuracy', which is no measure\n.*balanced_accuracy"):
        fit_many(classifier, bags, truth, params=params, measure="acuracy")


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
    wrong.append(({"train__lr": 0.1}, r"params\['train__lr'\] is 0.1; a list of values is needed"))
    for params, text in wrong:
        with pytest.raises(SpecError, match=text):
            fit_many(classifier, bags, params=params)
    splits: list[tuple[Any, str]] = [
        ([([0, 1], [99])], r"splits\[0\] is not a pair of training and test bags, from 0 to 59: index 99"),
        ([([0, 1], [2, 3]), ([0.5], [1])], r"splits\[1\] is not a pair"),
        ([([0], [1], [2])], r"splits\[0\] is not a pair"),
        ([([0, 1], [1])], r"splits\[0\] has the index 1 twice"),
        ([([0, 1], [])], r"splits\[0\] has no test bags"),
        ([], "splits has no split"),
        (KFold(2), r"splits is KFold.*; pairs of training and test bags are needed: KFold\(...\).split\(X\)"),
    ]
    for given, text in splits:
        with pytest.raises((DataError, SpecError), match=text):
            fit_many(classifier, bags, params={"train__lr": [0.1]}, splits=given)
    with pytest.warns(UserWarning, match="a training failed: setting-2: training stopped"):
        fits = fit_many(classifier, bags, params={"train__lr": [0.1, 1e30]})
    assert fits.estimators[0][0] is not None and fits.estimators[1] == [None]
    with pytest.raises(TrainingError, match="training stopped"):
        fit_many(classifier, bags, params={"train__lr": [1e30]})
