"""Tests of the estimators: the conventions of scikit-learn, and bags that do not fit."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import miplc
from miplc import Bags, DataError, MIPLClassifier, MIPLMultiLabelClassifier, PerInstance, SpecError

FAST: dict[str, Any] = {"train__epochs": 3, "random_state": 1}


def test_classifier(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    classifier = MIPLClassifier(**{**FAST, "train__epochs": 30, "train__lr": 0.05})
    assert classifier.fit(list(bags), candidates) is classifier
    assert classifier.classes_.tolist() == ["cat", "dog", "horse"] and classifier.n_features_in_ == 4
    assert len(classifier.history_) == 30 and classifier.history_["test_accuracy"].isna().all()
    probabilities = classifier.predict_proba(bags)
    assert probabilities.shape == (60, 3) and np.allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert classifier.predict(bags).tolist() == classifier.classes_[probabilities.argmax(axis=1)].tolist()
    assert [len(a) for a in classifier.attention(bags)] == bags.sizes.tolist()
    assert classifier.score(bags, truth) == np.mean(classifier.predict(bags) == truth) == classifier.score(bags) > 0.9
    assert "train_accuracy" not in classifier.run_.summary  # candidates only: no true label is known
    assert classifier.score(bags, [*truth[:-1], None]) == pytest.approx(
        np.mean(classifier.predict(bags)[:-1] == truth[:-1])
    )
    inside = [p in c for p, c in zip(classifier.predict(bags), candidates)]
    assert classifier.score(bags, candidates) == np.mean(inside)
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_proba(bags), probabilities) and again.model_.bytes == classifier.model_.bytes


def test_forms_of_labels(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    assert bags.candidates is not None
    one = MIPLClassifier(**FAST).fit(bags).predict_proba(bags)
    for X, y, sets in (
        (list(bags), candidates, None),
        (bags, None, candidates),
        (list(bags), pd.Series(truth), candidates),
    ):
        assert np.array_equal(MIPLClassifier(**FAST).fit(X, y, candidates=sets).predict_proba(bags), one)
    numbered = MIPLClassifier(**FAST).fit(bags, bags.candidates)
    assert numbered.classes_.tolist() == [0, 1, 2] and np.array_equal(numbered.predict_proba(bags), one)
    certain = MIPLClassifier(**FAST).fit(list(bags), np.array(truth)[:, None])
    assert certain.run_.summary["data"]["classes"] == ["cat", "dog", "horse"]
    assert not np.array_equal(certain.predict_proba(bags), one)


def test_groups(bags: Bags) -> None:
    groups = [i // 4 for i in range(60)]
    fitted = MIPLClassifier(**FAST, data__split__validation=0.3).fit(bags, groups=groups)
    parts = {i: part for part in ("train", "validation") for i in fitted.run_.split[part]}
    assert len(parts) == 60 and all(len({parts[4 * g + i] for i in range(1, 5)}) == 1 for g in range(15))
    assert fitted.run_.summary["validation_accuracy"] is not None


def test_random_state(bags: Bags) -> None:
    def fitted(state: Any) -> Any:
        return MIPLClassifier(train__epochs=2, random_state=state).fit(bags).predict_proba(bags)

    assert np.array_equal(fitted(3), fitted(3)) and not np.array_equal(fitted(3), fitted(4))
    state = np.random.RandomState(0)
    assert not np.array_equal(fitted(state), fitted(state))
    with pytest.raises(SpecError, match="random_state"):
        fitted("x")


def test_parameters() -> None:
    classifier = MIPLClassifier("acmil", train__lr=0.1, model__sizes={"m": 64}, random_state=3)
    assert repr(classifier) == "MIPLClassifier(spec='acmil', random_state=3, train__lr=0.1, model__sizes={'m': 64})"
    params = classifier.get_params()
    assert params["train__lr"] == 0.1 and params["spec"] == "acmil" and params["output"] is None
    assert clone(classifier).get_params() == params
    assert classifier.set_params(train__lr=0.2, random_state=4).train__lr == 0.2  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="has no argument 'epochs'; settings .* train__epochs"):
        MIPLClassifier(epochs=3)
    with pytest.raises(ValueError, match="has no parameter 'epochs'"):
        classifier.set_params(epochs=3)
    scaler = PerInstance(StandardScaler())
    assert scaler.set_params(transformer__with_mean=False).transformer.with_mean is False


def test_scikit_learn(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    X, classifier = list(bags), MIPLClassifier(**FAST)
    scores = cross_val_score(classifier, X, truth, cv=2, params={"candidates": candidates}, error_score="raise")
    assert np.array_equal(
        scores, cross_val_score(classifier, bags, truth, cv=2, params={"candidates": candidates}, n_jobs=2)
    )
    assert len(cross_val_score(classifier, X, candidates, cv=2, error_score="raise")) == 2
    groups = np.arange(60) // 2
    assert len(cross_val_score(classifier, X, truth, groups=groups, cv=GroupKFold(2), error_score="raise")) == 2
    assert cross_val_predict(classifier, X, truth, cv=2, method="predict_proba").shape == (60, 3)
    pipeline = make_pipeline(PerInstance(StandardScaler()), classifier)
    grid = {"miplclassifier__train__lr": [0.0001, 0.05], "perinstance__transformer__with_mean": [True]}
    search = GridSearchCV(pipeline, grid, cv=2, scoring="roc_auc_ovr", error_score="raise").fit(X, truth)
    assert search.best_params_["miplclassifier__train__lr"] == 0.05 and search.predict(X).shape == (60,)


def test_several_labels(bags: Bags, candidates: list[set[str]]) -> None:
    classifier = MIPLMultiLabelClassifier(**FAST).fit(bags, candidates)
    assert bags.candidates is not None and classifier.classes_.tolist() == ["cat", "dog", "horse"]
    predicted = classifier.predict(bags)
    assert predicted.shape == (60, 3) and set(np.unique(predicted)) <= {0, 1}
    assert classifier.score(bags, candidates) == (predicted == bags.candidates).all(axis=1).mean()
    matrix = MIPLMultiLabelClassifier(**FAST).fit(list(bags), bags.candidates.astype(int))
    assert np.array_equal(matrix.predict_proba(bags), classifier.predict_proba(bags))
    assert len(cross_val_score(classifier, list(bags), bags.candidates.astype(int), cv=2, error_score="raise")) == 2
    with pytest.raises(DataError, match="bag 1 has the label cat; a set of labels is needed"):
        classifier.fit(bags, ["cat"] * 60)
    with pytest.raises(DataError, match="use MIPLClassifier"):
        classifier.fit(bags)


def test_interrupt_and_resume(bags: Bags, tmp_path: Path) -> None:
    def interrupt(epoch: Mapping[str, Any]) -> None:
        if epoch["epoch"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    classifier = MIPLClassifier(train__epochs=30, output=tmp_path / "run", callbacks=[interrupt])
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for programs in the background
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(bags)
    with pytest.raises(NotFittedError):
        classifier.predict(bags)
    resumed = classifier.set_params(callbacks=()).fit(bags, resume=True)
    whole = MIPLClassifier(train__epochs=30).fit(bags)
    assert np.array_equal(resumed.predict_proba(bags), whole.predict_proba(bags))
    assert resumed.model_.path == tmp_path / "run" / "model.onnx"


def test_wrong_input(bags: Bags, truth: list[str], candidates: list[set[str]]) -> None:
    classifier = MIPLClassifier(**FAST)
    with pytest.raises(NotFittedError, match="call fit first"):
        classifier.predict_proba(bags)
    for X, y, text in (
        (bags, truth[:-1], "59 true labels for 60 bags"),
        (bags, candidates[:-1], "59 candidate sets for 60 bags"),
        (list(bags), None, "give y or candidates"),
        (bags, [{"cat"}] * 60, "the number of classes is 1"),
        (list(bags), [0.5 + i for i in range(60)], "miplc predicts classes, not numbers"),
    ):
        with pytest.raises(DataError, match=text):
            classifier.fit(X, y)
    with pytest.raises(DataError, match="the true label .* is not among the candidates") as caught:
        classifier.fit(bags, truth, candidates=[{"cat", "dog"}] * 60)
    assert caught.value.bag == truth.index("horse") + 1
    noisy = [{"cat", "dog"} if i else {"horse", "dog"} for i in range(60)]
    assert MIPLClassifier(**FAST, data__labels="noisy").fit(list(bags), truth, candidates=noisy).classes_.shape == (3,)
    classifier.fit(bags)
    with pytest.raises(DataError, match="bag 1: its instances have the shape .3., those of the model .4."):
        classifier.predict([np.ones((2, 3))])
    with pytest.raises(DataError, match="feature 1 of instance 1 is NaN"):
        classifier.predict([np.full((2, 4), np.nan)])
    with pytest.raises(DataError, match="2 true labels for 60 bags"):
        classifier.score(bags, ["cat", "dog"])
    with pytest.raises(SpecError, match="unknown key"):
        MIPLClassifier(train__epocs=3).fit(bags)


def test_specs_are_known(bags: Bags) -> None:
    assert {"demipl-mlp", "acmil"} <= set(miplc.specs()["name"])
