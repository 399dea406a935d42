"""Tests of the conventions of scikit-learn, by scikit-learn: scorers, checks of estimators, names, routing, folds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, check_estimator

from miplc import Bags, DataError, MIPLClassifier, MIPLMultiLabelClassifier, Model, PerInstance

FAST: dict[str, Any] = {"train__epochs": 3, "random_state": 1}


class Reference(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of scikit-learn with given probabilities."""

    def __init__(self, classes: Any, probabilities: Any, multi: bool) -> None:
        self.classes, self.probabilities, self.multi = classes, probabilities, multi
        self.classes_ = np.unique(classes)

    def fit(self, X: Any, y: Any) -> Reference:
        return self

    def predict_proba(self, X: Any) -> Any:
        return self.probabilities

    def predict(self, X: Any) -> Any:
        at = self.probabilities > 0.5 if self.multi else self.probabilities.argmax(axis=1)
        return at.astype(int) if self.multi else self.classes_[at]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.multi
        return tags


def outcome(score: Callable[[], float]) -> Any:
    """Return a score, or the type of the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return score()
        except Exception as err:
            return type(err)


@pytest.mark.parametrize(
    "names", [["9", "10"], [0, 1], ["2", "10", "1"], [-1.0, 3.0, 2.0], [False, True], None], ids=str
)
def test_scorers(bags: Bags, names: list[Any] | None) -> None:
    """Every scorer gives the value that a classifier of scikit-learn with the same probabilities has."""
    assert bags.labels is not None and bags.candidates is not None
    y = bags.candidates.astype(int) if names is None else np.array(names)[bags.labels % len(names)]
    fitted = (MIPLClassifier if names else MIPLMultiLabelClassifier)(**FAST).fit(list(bags), y)
    columns = {name: column for name, column in zip(fitted.model_.classes, fitted.model_.predict_proba(bags).T)}
    classes = fitted.classes_.tolist()
    texts = [str(int(name)) if isinstance(name, float) else str(name) for name in classes]
    if names is not None:
        assert classes == np.unique(y).tolist()
    reference = Reference(classes, np.stack([columns[text] for text in texts], axis=1), names is None)
    found = {s: outcome(lambda s=s: get_scorer(s)(fitted, bags, y)) for s in get_scorer_names()}
    expected = {s: outcome(lambda s=s: get_scorer(s)(reference, bags, y)) for s in get_scorer_names()}
    assert found == pytest.approx(expected, nan_ok=True)
    assert sum(isinstance(value, float) for value in found.values()) >= 12
    assert fitted.score(bags, y) == found["accuracy"]


def test_search_by_auroc(bags: Bags) -> None:
    """The order of "9" and "10" is that of scikit-learn, so a search finds the trained setting."""
    assert bags.labels is not None
    y = np.array(["9", "10", "10"])[bags.labels]
    search = GridSearchCV(MIPLClassifier(random_state=1), {"train__epochs": [1, 30]}, scoring="roc_auc", cv=2)
    assert search.fit(list(bags), y).best_params_ == {"train__epochs": 30} and search.best_score_ > 0.9


@pytest.mark.parametrize("order", [["b", "a"], ["10", "9", "b"]])
def test_classes_of_bags_in_another_order(bags: Bags, order: list[str]) -> None:
    assert bags.labels is not None
    k = len(order)
    y = [order[i % k] for i in bags.labels]
    ordered = Bags(bags, labels=y, classes=order)
    fitted = MIPLClassifier(train__epochs=20, train__lr=0.05).fit(ordered)
    assert fitted.model_.classes == order and fitted.classes_.tolist() == sorted(order)
    assert fitted.score(ordered) == fitted.score(bags, y) == np.mean(fitted.predict(bags) == np.array(y)) > 0.6
    sets = [{label} for label in y]
    assert fitted.score(ordered.with_labels(candidates=sets, classes=order)) == fitted.score(bags, sets)
    several = Bags(bags, labels=sets, classes=order)
    multi = MIPLMultiLabelClassifier(train__epochs=20, train__lr=0.05).fit(several)
    assert multi.classes_.tolist() == sorted(order) and multi.score(several) == multi.score(bags, sets) > 0
    assert multi.score(bags, pd.DataFrame(several.labels, columns=order)) == multi.score(several)


class Rows:
    """The rows of a matrix or a frame are bags of one instance, so that scikit-learn can check the estimators."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags

    def fit(self, X: Any, y: Any = None, *args: Any, **options: Any) -> Any:
        return super().fit(bags_of_rows(X), y, *args, **options)  # type: ignore[misc]


class RowClassifier(Rows, MIPLClassifier):
    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(bags_of_rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return super().score(bags_of_rows(X), y, sample_weight)


class RowMultiLabelClassifier(Rows, MIPLMultiLabelClassifier):
    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(bags_of_rows(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        return super().score(bags_of_rows(X), y, sample_weight)


class RowTransformer(Rows, PerInstance):
    def __init__(self, transformer: Any = StandardScaler()) -> None:  # noqa: B008
        super().__init__(transformer)

    def transform(self, X: Any) -> Any:
        return super().transform(bags_of_rows(X)).instances

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X, y).transform(X)


def bags_of_rows(X: Any) -> Any:
    if hasattr(X, "columns"):
        return Bags([X.iloc[[i]] for i in range(len(X))])
    X = X if hasattr(X, "toarray") or isinstance(X, Bags) else np.asarray(X)
    return X[:, None, :] if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] else X


WORDS = "the words are those of the program: "
EXPECTED = {
    "check_complex_data": WORDS + "feature 1 of instance 1 is 1j, not a number",
    "check_dtype_object": "a value that is not a number is a DataError, a ValueError, not a TypeError",
    "check_estimators_empty_data_messages": WORDS + "the bags are one matrix",
    "check_estimators_nan_inf": WORDS + "+Inf",
    "check_n_features_in_after_fitting": WORDS + "its instances have the shape [1], those of the model [4]",
    "check_fit2d_predict1d": WORDS + "[instances, features] is needed",
    "check_no_attributes_set_in_init": "settings are arguments without a list of names",
    "check_do_not_raise_errors_in_init_or_set_params": "a misspelt setting such as epochs=3 is a TypeError",
    "check_classifiers_regression_target": WORDS + "miplc predicts classes, not numbers",
    "check_supervised_y_2d": "a column is read as labels without a warning",
    "check_fit2d_1sample": WORDS + "the number of classes is 1; at least 2 are needed",
    "check_parameters_default_constructible": "transformer has no default",
    "check_transformer_preserve_dtypes": "bags are float32",
}


@pytest.mark.parametrize(
    ("estimator", "passed"),
    [(RowClassifier("quickstart", train__epochs=1), 38), (RowTransformer(), 20)],
    ids=["classifier", "transformer"],
)
def test_check_estimator(estimator: Any, passed: int) -> None:
    checks = check_estimator(estimator, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None)
    assert {check["check_name"]: check["exception"] for check in checks if check["status"] == "failed"} == {}
    assert sum(check["status"] == "passed" for check in checks) >= passed


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_classifiers_multilabel_representation_invariance,
        estimator_checks.check_classifiers_multilabel_output_format_predict,
        estimator_checks.check_classifiers_multilabel_output_format_predict_proba,
    ],
)
def test_checks_of_several_labels(check: Callable[..., None]) -> None:
    check("", RowMultiLabelClassifier("quickstart", train__epochs=1))


def frame(order: list[str], seed: int = 0) -> pd.DataFrame:
    """Return bags whose first feature shows the class."""
    random = np.random.default_rng(seed)
    rows = [[f"b{i}", ("cat", "dog")[i % 2], 3 * (i % 2) + random.normal(), *random.normal(size=2)] for i in range(40)]
    return pd.DataFrame(rows, columns=["bag", "label", "f1", "f2", "f3"])[["bag", "label", *order]]


PIPELINES = [
    MIPLClassifier(train__epochs=15, train__lr=0.1),
    make_pipeline(PerInstance(StandardScaler()), MIPLClassifier(train__epochs=15, train__lr=0.1)),
    make_pipeline(PerInstance(PCA(2)), MIPLClassifier(train__epochs=15, train__lr=0.1)),
]


@pytest.mark.parametrize("estimator", PIPELINES, ids=["classifier", "scaler", "pca"])
def test_features_are_found_by_name(estimator: Any) -> None:
    names = ["f1", "f2", "f3"]
    fitted = clone(estimator).fit(Bags.from_frame(frame(names)))
    same, other = Bags.from_frame(frame(names, 1)), Bags.from_frame(frame(names[::-1], 1))
    assert fitted.score(other) == fitted.score(same) > 0.8
    first = fitted[0] if hasattr(fitted, "steps") else fitted
    assert first.feature_names_in_.tolist() == names
    table = frame(names[::-1], 1)
    bags = [table.loc[[i], names[::-1]] for i in range(40)]
    assert np.array_equal(fitted.predict_proba(bags), fitted.predict_proba(same))
    assert np.array_equal(fitted.predict_proba([pl.from_pandas(bag) for bag in bags]), fitted.predict_proba(same))
    assert fitted.predict(list(same)).tolist() == fitted.predict(same).tolist()  # without names: by place
    renamed = Bags.from_frame(frame(names, 1).rename(columns={"f2": "g"}))
    with pytest.raises(DataError, match='the bags have no feature "f2"\nthe model has no feature "g"'):
        fitted.predict(renamed)
    if first is fitted:
        assert np.array_equal(
            [p.probabilities for p in Model(fitted.model_.bytes).predict(other)], fitted.predict_proba(same)
        )
    assert not hasattr(clone(estimator).fit(list(same), frame(names, 1)["label"]), "feature_names_in_")


def test_column_names_as_scikit_learn_checks_them() -> None:
    with pytest.raises(AssertionError, match="predict did not raise"):  # it finds columns in another order
        check_dataframe_column_names_consistency("", RowClassifier("quickstart", train__epochs=1))
    with pytest.raises(DataError, match='bag 2: it has no column "a", as bag 1 has'):
        Bags([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})])


def test_candidates_are_never_dropped(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    """True labels beside candidates only measure, whatever brings them, and in every call."""
    both = Bags(bags, labels=truth, candidates=candidates)
    only = Bags(bags, candidates=candidates)
    model = MIPLClassifier(**FAST)
    expected = clone(model).fit(list(bags), candidates).predict_proba(bags)
    texts = [" ".join(sorted(one)) for one in candidates]
    scaled = make_pipeline(PerInstance(StandardScaler(with_mean=False, with_std=False)), model)
    for fitted in (
        clone(model).fit(only, truth),
        clone(model).fit(only, np.array(truth)[:, None]),
        clone(model).fit(both, truth),
        clone(model).fit(only.with_labels(truth)),
        clone(model).fit(list(bags), truth, candidates=texts),
        clone(scaled).fit(only, truth),
        clone(scaled).fit(both),
    ):
        assert np.array_equal(fitted.predict_proba(bags), expected)
    sets = cross_val_score(model, list(bags), truth, cv=2, params={"candidates": candidates})
    for X, params in ((only, None), (bags, {"candidates": candidates}), (both, None)):
        assert np.array_equal(cross_val_score(model, X, truth, cv=2, params=params, error_score="raise"), sets)
    train, test = train_test_split(both, random_state=0)
    assert isinstance(train, Bags) and train.kind == test.kind == "candidates" and len(test) == 15


@pytest.mark.parametrize("named", [True, False], ids=["text", "numbers"])
def test_encoded_labels(bags: Bags, truth: list[str], candidates: list[set[str]], named: bool) -> None:
    """cross_val_predict, stacking and voting encode the true labels, and not the candidates."""
    code = {"cat": "cat", "dog": "dog", "horse": "horse"} if named else {"cat": 3, "dog": 5, "horse": 8}
    y, sets = [code[t] for t in truth], [{code[c] for c in one} for one in candidates]
    model, X = MIPLClassifier(**FAST), list(bags)
    found = cross_val_predict(model, X, y, cv=2, params={"candidates": sets}, method="predict_proba")
    both = Bags(bags, labels=y, candidates=sets)
    assert np.array_equal(found, cross_val_predict(model, both, y, cv=2, method="predict_proba"))
    labels = cross_val_predict(model, both, y, cv=2)
    assert np.unique(y)[found.argmax(axis=1)].tolist() == labels.tolist()
    stack = StackingClassifier([("a", model), ("b", MIPLClassifier("proden-mean", **FAST))], cv=2).fit(both, y)
    assert set(stack.predict(both)) <= set(y)
    voting = VotingClassifier([("a", model)]).fit(both, y)
    assert voting.predict(both).tolist() == model.fit(both).predict(both).tolist()
    rare = [{*one, "zebra" if named else 9} for one in sets]
    with pytest.raises(DataError, match="the true labels are numbers, such as 0, and the candidates are"):
        MIPLClassifier(**FAST).fit(X, [sorted(code).index(t) for t in truth], candidates=rare)


def test_metadata_routing(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    model, X = MIPLClassifier(**FAST), list(bags)
    expected = cross_val_score(model, X, truth, cv=2, params={"candidates": candidates})
    with pytest.raises(RuntimeError, match="metadata routing is off"):
        model.set_fit_request(candidates=True)
    with sklearn.config_context(enable_metadata_routing=True):
        for asked in (model, clone(model).set_fit_request(candidates=True, groups=False)):
            scores = cross_val_score(asked, X, truth, cv=2, params={"candidates": candidates}, error_score="raise")
            assert np.array_equal(scores, expected)
        scaled = make_pipeline(PerInstance(StandardScaler(with_mean=False, with_std=False)), asked)
        search = GridSearchCV(scaled, {"miplclassifier__train__lr": [0.01]}, cv=2, error_score="raise")
        assert search.fit(X, truth, candidates=candidates).cv_results_["mean_test_score"][0] == expected.mean()
        voting = VotingClassifier([("m", asked)], voting="soft").fit(X, truth, candidates=candidates)
        assert np.array_equal(voting.predict_proba(X), clone(model).fit(X, candidates).predict_proba(X))
        with pytest.raises(ValueError, match="sample_weight"):
            cross_val_score(asked, X, truth, cv=2, params={"sample_weight": np.ones(60)}, error_score="raise")
        with pytest.raises(TypeError, match="fit has no argument 'weights' to pass on; it has candidates, groups"):
            asked.set_fit_request(weights=True)
        asked.set_score_request(sample_weight=True)
        assert len(cross_val_score(asked, X, truth, cv=2, params={"sample_weight": np.ones(60)})) == 2


def test_score_refuses_labels_that_are_no_classes(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    text = MIPLClassifier(**FAST).fit(bags, truth)
    number = MIPLClassifier(**FAST).fit(list(bags), [len(label) for label in truth])
    multi = MIPLMultiLabelClassifier(**FAST).fit(bags, candidates)
    upper = [{label.upper() for label in one} for one in candidates]
    wrong: list[tuple[Any, Any, str]] = [
        (text, [0] * 60, "the label 0 is no class of the model"),
        (text, [label.upper() for label in truth], "the label 'CAT' is no class of the model; its classes are 'cat'"),
        (text, ["cow"] * 60, "no label is a class of the model"),
        (text, upper, "the label 'CAT' is no class"),
        (text, np.ones((60, 2), bool), "a matrix with 2 columns for 3 classes"),
        (number, truth, "the label 'cat' is no class"),
        (multi, [[1, 0]] * 60, "a matrix with 2 columns for 3 classes"),
        (multi, upper, "the label 'CAT' is no class"),
        (multi, np.ones((60, 4), int), "a matrix with 4 columns for 3 classes"),
    ]
    for fitted, y, message in wrong:
        with pytest.raises(DataError, match=message):
            fitted.score(bags, y)
    with pytest.warns(UserWarning, match="the model does not know 1 label of these bags, such as 'cow'"):
        assert text.score(bags, ["cow", *truth[1:]]) <= text.score(bags, truth)
    with pytest.warns(UserWarning, match="such as 'cow'"):
        assert multi.score(bags, [{"cow"} | one for one in candidates]) == 0


def test_folds_and_selections_without_a_class(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    few = [i for i, label in enumerate(truth) if label != "cow"][:10] + [i for i in range(10, 60) if truth[i] != "cat"]
    cats = np.array([i for i in range(60) if "cat" not in candidates[i]])
    for chosen in (bags[cats], Bags(bags, labels=truth)[[i for i in range(60) if truth[i] != "cat"]]):
        assert MIPLClassifier(**FAST).fit(chosen).classes_.tolist() == ["dog", "horse"]
    matrix = np.array([[label in one for label in ("cat", "dog", "horse")] for one in candidates], int)
    for X, y in ((Bags(bags, labels=candidates)[cats], None), (bags[cats], matrix[cats])):
        several = MIPLMultiLabelClassifier(**FAST).fit(X, y)
        assert len(several.classes_) == 3 and not several.predict_proba(bags)[:, 0].any()
        assert several.score(bags, matrix if y is not None else candidates) < several.score(X, y)
    model = MIPLMultiLabelClassifier(**FAST)
    scores = cross_val_score(model, bags, matrix, cv=[(cats, np.arange(60))], scoring="roc_auc", error_score="raise")
    assert 0 < scores[0] < 1
    numbered = MIPLClassifier(**FAST).fit(list(bags[cats]), matrix[cats])
    with pytest.warns(UserWarning, match="the model does not know 1 label of these bags, such as 0"):
        assert numbered.classes_.tolist() == [1, 2] and 0 <= numbered.score(bags, matrix) <= 1
    both = Bags(bags, labels=truth, candidates=candidates)[cats]
    assert MIPLClassifier(**FAST).fit(both, np.array(truth)[cats]).classes_.tolist() == ["dog", "horse"]
    rest = [i for i in few if truth[i] != "cat"]
    folds = [(rest, [i for i in range(60) if truth[i] == "cat"][:5] + rest[:5])]
    with pytest.warns(UserWarning, match="such as 'cat'"):
        score = cross_val_score(MIPLClassifier(**FAST), Bags(bags, labels=truth), truth, cv=folds, error_score="raise")
    assert 0 <= score[0] <= 0.5


def test_forms_of_bags_and_labels(bags: Bags, truth: list[str], candidates: list[set[str]], tmp_path: Path) -> None:
    bags.write(tmp_path / "bags.npz")
    fitted = MIPLClassifier(**FAST).fit(tmp_path / "bags.npz")
    assert np.array_equal(fitted.predict(str(tmp_path / "bags.npz")), fitted.predict(bags))
    assert fitted.score(tmp_path / "bags.npz") == fitted.score(bags, truth)
    assert np.array_equal(fitted.predict([csr_matrix(bag) for bag in bags]), fitted.predict(bags))
    dummies = pd.get_dummies(pd.Series(truth))
    assert MIPLMultiLabelClassifier(**FAST).fit(bags, dummies).classes_.tolist() == ["cat", "dog", "horse"]
    sparse = Bags(bags, candidates=csr_matrix(dummies.to_numpy()), classes=["cat", "dog", "horse"])
    assert sparse.candidates is not None and np.array_equal(sparse.candidates, dummies.to_numpy())
    assert Bags(bags, labels=[2**63, 5] * 30).classes.tolist() == [5, 2**63]
    every = Bags(bags, candidates=[{0, 1}] * 60).with_labels([0, 1] * 30)
    assert every.kind == "candidates" and every.classes.tolist() == [0, 1]
    assert Bags(bags, candidates=(set(one) for one in candidates)).kind == "candidates"
    assert Bags(bags, labels=["in situ", "in", "of the duct", "lobe"] * 15).kind == "known"
    wrong: list[tuple[Any, str]] = [
        ([" ".join(sorted(one)) for one in candidates], "the label .* looks like a set of labels"),
        (dummies.astype(int).to_numpy().tolist(), "the labels are lists of 0 and 1"),
        (dummies.to_numpy().tolist(), "the labels are lists of 0 and 1"),
    ]
    for y, message in wrong:
        with pytest.raises(DataError, match=message):
            MIPLClassifier(**FAST).fit(bags, y)
    with pytest.raises(DataError, match="slides.csv: there is no such file"):
        fitted.predict("slides.csv")
