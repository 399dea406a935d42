"""Estimators for bags with the conventions of scikit-learn, which need not be installed."""

from __future__ import annotations

import copy
import inspect
import numbers
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._process import warn
from ._labels import class_name, count, is_missing, is_set, is_sets, listed
from .bags import Bags, as_bags, check_length, is_rows
from .errors import DataError, SpecError
from .model import Model
from .training import Callback, Run, Spec, train

if TYPE_CHECKING:
    import pandas


class _Parameters:
    """The parameters of an estimator, for ``clone``, ``Pipeline`` and searches of scikit-learn."""

    _has_settings = False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep``, also those of estimators among them."""
        found = {name: getattr(self, name) for name in _own(type(self))} | self._settings()
        if deep:
            for name, value in list(found.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    nested = value.get_params().items()
                    found.update((f"{name}__{key}", inner) for key, inner in nested)
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters and return the estimator."""
        known = self.get_params(deep=False)
        for name, value in params.items():
            first, _, rest = name.partition("__")
            if rest and name not in known and hasattr(known.get(first), "set_params"):
                known[first].set_params(**{rest: value})
            elif name in _own(type(self)) or self._has_settings and "__" in name:
                setattr(self, name, value)
            else:
                names = ", ".join(sorted(self.get_params()))
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {names}")
        return self

    def _settings(self) -> dict[str, Any]:
        """Return the settings of a spec, which are attributes, too."""
        return {name: value for name, value in vars(self).items() if "__" in name and name[0] != "_"}

    def __repr__(self) -> str:
        default = {n: p.default for n, p in inspect.signature(type(self)).parameters.items()}
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if name not in default or value is not default[name] and value != default[name]
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _own(kind: type) -> list[str]:
    """Return the names of the parameters in the signature of a class."""
    return [
        name for name, p in inspect.signature(kind).parameters.items() if p.kind is not inspect.Parameter.VAR_KEYWORD
    ]


class _MIPLEstimator(_Parameters):
    """The common part of both classifiers."""

    _has_settings = True
    _multi = False
    _estimator_type = "classifier"
    _metadata_request: Any

    def __init__(
        self,
        spec: Spec = "demipl-mlp",
        *,
        random_state: int | np.random.RandomState | None = None,
        search: bool | int | Mapping[str, Any] | None = None,
        output: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        callbacks: Sequence[Callback] = (),
        progress: bool = False,
        engine: str | None = None,
        device: str | None = None,
        threads: int | None = None,
        **settings: Any,
    ) -> None:
        self.spec = spec
        self.random_state = random_state
        self.search = search
        self.output = output
        self.overwrite = overwrite
        self.callbacks = callbacks
        self.progress = progress
        self.engine = engine
        self.device = device
        self.threads = threads
        for name, value in settings.items():
            if "__" not in name:
                text = "settings of the spec have two underscores, such as train__epochs"
                raise TypeError(f"{type(self).__name__} has no argument {name!r}; {text}")
            setattr(self, name, value)

    def _engine(self) -> dict[str, Any]:
        """Return the parameters that choose where the program computes."""
        return {"engine": self.engine, "device": self.device, "threads": self.threads}

    def _program_settings(self) -> dict[str, Any]:
        """Return the settings with the keys of specs."""
        seed = {} if self.random_state is None else {"random_state": self.random_state}
        return {"data.split.train": 1} | setting_keys(self._settings() | seed)

    def fit(
        self,
        X: Sequence[ArrayLike],
        y: Any = None,
        groups: Sequence[Any] | None = None,
        *,
        candidates: Any = None,
        resume: bool = False,
    ) -> Self:
        """Train on all bags and return the estimator.

        Parameters
        ----------
        X : Bags, or sequence of m arrays ``[n_i, d]``, or path
            The bags.
        y : sequence of m labels or of m sets of labels, or bool array ``[m, k]``, optional
            Default: the labels of Bags. :class:`MIPLClassifier` takes a label of a bag as certain, and a set or row as
            its candidates; but if there are candidates already, labels only measure accuracy.
            :class:`MIPLMultiLabelClassifier` takes a set, maybe an empty one, or a row as all labels of a bag.
        groups, candidates
            As in :class:`Bags`. A split into validation bags does not divide the groups.
        resume : bool
            Continue the interrupted training in ``output``, if there is one.
        """
        bags = self._bags(X, y, groups, candidates)
        run = train(
            self.spec,
            bags,
            output=self.output,
            settings=self._program_settings(),
            search=self.search,
            callbacks=self.callbacks,
            progress=self.progress,
            resume=resume,
            overwrite=self.overwrite,
            **self._engine(),
        )
        self._take(run, bags)
        return self

    def _bags(self, X: Any, y: Any, groups: Any, candidates: Any) -> Bags:
        """Return the training bags with their labels."""
        bags = as_bags(X)
        if self._multi and y is not None:
            bags = bags.with_labels(_sets(y, self._multi), candidates=candidates)
        elif y is None and candidates is None:
            if bags.kind == "none":
                raise DataError("requires y to be passed, but the target y is None: give y or candidates")
        else:
            noisy = bags.noisy or getattr(self, "data__labels", None) == "noisy"
            if candidates is None and is_sets(_column(y)):
                y, candidates = None, y
            if candidates is not None:
                bags = bags.with_labels(candidates=candidates, noisy=noisy)
            if y is not None:
                bags = _encoded(bags, y).with_labels(y, noisy=noisy)
        if bags.kind == "multi" and not self._multi or bags.kind != "multi" and self._multi:
            other = "MIPLClassifier" if self._multi else "MIPLMultiLabelClassifier"
            raise DataError(f"the bags have {bags.kind} labels: use {other}")
        return bags if groups is None else bags.with_groups(groups)

    def _take(self, run: Run, bags: Bags) -> None:
        """Set the attributes of a fitted estimator."""
        self.run_ = run
        self.model_: Model = run.model
        place = {name: column for column, name in enumerate(run.model.classes)}
        known = np.array([self._multi or name in place for name in bags.class_names])
        self.classes_: NDArray[Any] = np.unique(bags.classes[known])
        self._columns = [place.get(class_name(label), -1) for label in self.classes_.tolist()]
        self.n_features_in_: int = int(np.prod(bags.instances.shape[1:]))
        _set_names(self, bags)

    def get_metadata_routing(self) -> Any:
        """Return the arguments that meta-estimators of scikit-learn pass on: ``candidates`` and ``groups`` of fit."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if "_metadata_request" in vars(self):
            return copy.deepcopy(self._metadata_request)
        found = MetadataRequest(owner=type(self).__name__)
        found.fit.add_request(param="candidates", alias=True)
        found.fit.add_request(param="groups", alias=True)
        found.score.add_request(param="sample_weight", alias=None)
        return found

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Set whether meta-estimators of scikit-learn pass ``candidates`` and ``groups`` to fit."""
        return self._set_request("fit", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Set whether meta-estimators of scikit-learn pass ``sample_weight`` to score."""
        return self._set_request("score", requests)

    def _set_request(self, method: str, requests: Mapping[str, bool | str | None]) -> Self:
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError("metadata routing is off: call sklearn.set_config(enable_metadata_routing=True)")
        self._metadata_request = self.get_metadata_routing()
        known = getattr(self._metadata_request, method)
        for name, alias in requests.items():
            if name not in known.requests:
                raise TypeError(f"{method} has no argument {name!r} to pass on; it has {', '.join(known.requests)}")
            known.add_request(param=name, alias=alias)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True, multi_output=self._multi),
            classifier_tags=ClassifierTags(multi_label=self._multi),
            input_tags=InputTags(two_d_array=False, three_d_array=True),
        )

    @property
    def history_(self) -> pandas.DataFrame:
        """Frame with one row for each epoch: ``loss``, ``train_accuracy``, ..."""
        self._check_fitted()
        return self.run_.history

    @property
    def findings_(self) -> list[str]:
        """What the program noticed about the results, each with advice. ``fit`` warns of them."""
        self._check_fitted()
        return self.run_.findings

    def _check_fitted(self) -> None:
        if self.__sklearn_is_fitted__():
            return
        text = f"this {type(self).__name__} is not fitted: call fit first"
        try:
            from sklearn.exceptions import NotFittedError
        except ImportError:
            raise AttributeError(text) from None
        raise NotFittedError(text)

    def predict_proba(self, X: Sequence[ArrayLike]) -> NDArray[np.float32]:
        """Return probabilities for m bags ``[n_i, d]``: array ``[m, k]`` in the order of ``classes_``."""
        self._check_fitted()
        # A label that no bag of the training has is never predicted.
        return np.pad(self.model_.predict_proba(X), ((0, 0), (0, 1)))[:, self._columns]

    def _indicators(self, y: Any, classes: Any = None) -> NDArray[np.bool_]:
        """Return sets of labels as a matrix [m, k + 1]: the last column marks labels that are no classes.

        The columns of a matrix are the given classes; by default, those of a frame or of the estimator.
        """
        if hasattr(y, "columns"):
            y, classes = np.asarray(y), list(y.columns)
        sets = _sets(y, self._multi)
        if isinstance(sets, np.ndarray):
            names = self.classes_.tolist() if classes is None else list(classes)
            if classes is None and self.classes_.dtype.kind in "iu" and sets.shape[1] > max(names):
                names = list(range(sets.shape[1]))  # the columns of another matrix are numbered, too
            if sets.shape[1] != len(names):
                raise DataError(f"a matrix with {count(sets.shape[1], 'column')} for {count(len(names), 'class')}")
            sets = [{name for name, entry in zip(names, row) if entry} for row in sets.tolist()]
        known = self.classes_.tolist()
        self._check_classes([label for one in sets for label in one])
        return np.array([[*(label in one for label in known), bool(one - {*known})] for one in sets], bool)

    def _check_classes(self, labels: list[Any]) -> None:
        """Raise a DataError for labels that are no classes by mistake, and warn about others."""
        known = self.classes_.tolist()
        foreign = sorted({label for label in labels if not is_missing(label)} - set(known), key=str)
        for label in foreign:
            alike = [one for one in known if class_name(one).casefold() == class_name(label).strip().casefold()]
            if alike or isinstance(label, str) != isinstance(known[0], str):
                text = f"the label {label!r} is no class of the model"
                raise DataError(f"{text}; its classes are {', '.join(map(repr, known[:10]))}")
        if foreign and not {*labels} & {*known}:
            raise DataError(f"no label is a class of the model: they are {foreign[0]!r}, ..., not {known[0]!r}, ...")
        if foreign:
            text = f"the model does not know {count(len(foreign), 'label')} of these bags, such as {foreign[0]!r}"
            warn(f"{text}: these bags count as wrong")

    def attention(self, X: Sequence[ArrayLike]) -> list[NDArray[np.float32]]:
        """Return the attention scores of the instances of m bags ``[n_i, d]``: list of m arrays ``[n_i]``."""
        self._check_fitted()
        return self.model_.attention(X)


class MIPLClassifier(_MIPLEstimator):
    """Classifier of bags, one label for each, which learns from candidate sets or certain labels.

    Parameters
    ----------
    spec : str, path or dict
        As in :func:`train`.
    random_state : int or numpy.random.RandomState, optional
        Seed of the training, as in :func:`train`. Default: that of the spec.
    search : bool, int or dict, optional
        Choose settings on held-out training bags in each ``fit``, as in :func:`train`. So a search nests in
        ``cross_val_score``. ``run_.search`` has the trials.
    output, overwrite, callbacks, progress, engine, device, threads
        As in :func:`train`. Cross-validation fits several estimators, so it needs ``overwrite``, or no ``output``.
    **settings
        Settings of the spec, with two underscores for each point: ``train__epochs=50``. None: the value of the spec.
        ``data__labels="noisy"`` accepts true labels outside of the candidate sets.

    Attributes
    ----------
    classes_ : array ``[k]``
        The labels, sorted.
    model_ : Model
        The exported model.
    run_ : Run
        The training: summary, metrics, plots.
    n_features_in_ : int
        Number of features of an instance.
    feature_names_in_ : array ``[d]`` of object
        Names of the features, if the bags have some. Other bags may have them in any order.

    Notes
    -----
    In ``cross_val_score`` and searches, write candidate sets as Python sets, or pass ``params={"candidates": sets}``
    and the true labels as y, by which bags are scored.

    Examples
    --------
    >>> classifier = MIPLClassifier("demipl-mlp", train__epochs=20, random_state=1)
    >>> classifier.fit(bags, candidates).predict(bags)           # doctest: +SKIP
    """

    def predict(self, X: Sequence[ArrayLike]) -> NDArray[Any]:
        """Return the most probable label of each of m bags ``[n_i, d]``: array ``[m]``."""
        at = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[at])

    def score(self, X: Sequence[ArrayLike], y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy; for candidate sets, the share of predictions that are candidates.

        y contains true labels, or candidate sets; default: those of Bags. Bags with an unknown label (None, NaN), and
        those of which every class is a candidate, do not count. ``sample_weight`` is an array ``[m]``.
        """
        self._check_fitted()
        bags, true, classes = as_bags(X), _column(y), None
        if y is None and bags.labels is not None and not bags.multi:
            true = [None if i < 0 else bags.classes.tolist()[i] for i in bags.labels]
        elif y is None:
            true, classes = bags.candidates, bags.classes.tolist()
        if true is None:
            raise DataError("score needs labels y")
        check_length(len(true), "true label", len(bags))
        predicted = self.predict(bags).tolist()
        if is_sets(true):
            inside = self._indicators(y if y is not None else true, classes)
            place = {label: c for c, label in enumerate(self.classes_.tolist())}
            right, known = inside[np.arange(len(bags)), [place[p] for p in predicted]], ~inside[:, :-1].all(axis=1)
        else:
            true = listed(true)
            self._check_classes(true)
            known = np.array([not is_missing(label) for label in true])
            right = np.array([a == b for a, b in zip(predicted, true)])
        if not known.any():
            raise DataError("no bag has a known true label, and no candidate set leaves out a class")
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(right[known], weights=weights))


class MIPLMultiLabelClassifier(_MIPLEstimator):
    """Classifier of bags that have any number of labels.

    Parameters and attributes are those of :class:`MIPLClassifier`.
    """

    _multi = True

    def predict(self, X: Sequence[ArrayLike]) -> NDArray[np.int64]:
        """Return 1 for each predicted label of each of m bags ``[n_i, d]``: array ``[m, k]``."""
        probable = self.predict_proba(X) > (self.model_.threshold or 0.5)
        return np.asarray(probable, np.int64)

    def score(self, X: Sequence[ArrayLike], y: Any = None, sample_weight: Any = None) -> float:
        """Return the subset accuracy: the share of bags of which all labels are right. y is as in :meth:`fit`."""
        self._check_fitted()
        bags = as_bags(X)
        classes = bags.classes.tolist() if y is None and bags.multi else None
        y = bags.labels if classes else y
        if y is None:
            raise DataError("score needs the true labels y")
        check_length(len(y), "label set", len(bags))
        true = self._indicators(y, classes)
        right = (self.predict(bags) == true[:, :-1]).all(axis=1) & ~true[:, -1]
        return float(np.average(right, weights=sample_weight))


def _dense(y: Any) -> Any:
    """Return labels as an array, if they are a sparse matrix or something similar to an array."""
    y = y.toarray() if hasattr(y, "toarray") else y
    return np.asarray(y) if hasattr(y, "__array__") else y


def _column(y: Any) -> Any:
    """Return labels without the second axis of a single column."""
    y = _dense(y)
    return y[:, 0] if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1 else y


def _sets(y: Any, multi: bool) -> Any:
    """Return sets of labels as a matrix, a frame or a list of sets. If multi, lists of 0 and 1 are a matrix."""
    if hasattr(y, "columns"):
        return y
    y = _dense(y)
    if y is None or isinstance(y, np.ndarray) and y.ndim == 2:
        return y
    if is_rows(y) and multi:
        return np.array(list(y))
    for i, one in enumerate(y):
        if not is_set(one):
            raise DataError(f"bag {i + 1} has the label {class_name(one)}; a set of labels is needed")
    return [set(one) for one in y]


def _encoded(bags: Bags, y: Any) -> Bags:
    """Return bags with numbers as classes, if y contains the numbers that scikit-learn gives to sorted labels.

    cross_val_predict, stacking and voting encode y, but not the candidates.
    """
    codes = {label for label in listed(_column(y)) if not is_missing(label)}
    whole = all(isinstance(code, numbers.Real) and float(code).is_integer() for code in codes)
    if bags.candidates is None or codes <= {*bags.classes.tolist()} or not whole:
        return bags
    names, order = np.unique(bags.classes, return_index=True)
    if len(codes) != len(names) or bags.noisy:
        raise DataError(
            f"the true labels are numbers, such as {min(codes)}, and the candidates are {bags.class_names[0]}, ...",
            "cross_val_predict, stacking and voting number the true labels: pass Bags with labels and candidates, and "
            "no y, or candidates that are these numbers",
        )
    return bags.with_labels(candidates=bags.candidates[:, order], classes=sorted(codes))


def _set_names(estimator: Any, bags: Bags) -> None:
    """Set the names of the features of a fitted estimator, if the bags have some."""
    vars(estimator).pop("feature_names_in_", None)
    if bags.feature_names is not None:
        estimator.feature_names_in_ = np.array(bags.feature_names, dtype=object)


def setting_keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the keys of specs: ``train__lr`` is ``train.lr``, and ``random_state`` is the seed."""
    found = {name.replace("__", "."): value for name, value in settings.items()}
    if "random_state" in found:
        found["train.seed"] = _seed(found.pop("random_state"))
    return found


def _seed(random_state: Any) -> int:
    """Return the seed of a random state."""
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**30))
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    raise SpecError(f"random_state is {random_state!r}; a whole number or a RandomState is needed")


class PerInstance(_Parameters):
    """Apply a transformer of scikit-learn, such as StandardScaler, to the instances of bags.

    Parameters
    ----------
    transformer : estimator
        It is fitted on the instances of all bags, ``[N, d]``.

    Examples
    --------
    >>> make_pipeline(PerInstance(StandardScaler()), MIPLClassifier())        # doctest: +SKIP
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def fit(self, X: Sequence[ArrayLike], y: Any = None) -> Self:
        """Fit the transformer on m bags ``[n_i, d]``."""
        from sklearn.base import clone

        bags = as_bags(X)
        self.transformer_ = clone(self.transformer).fit(bags.instances)
        self.n_features_in_: int = bags.instances.shape[1]
        _set_names(self, bags)
        return self

    def transform(self, X: Sequence[ArrayLike]) -> Bags:
        """Return the transformed bags ``[n_i, d']``, with the labels and groups of Bags."""
        names = list(getattr(self, "feature_names_in_", ()))
        bags = as_bags(X)._in_order(names or None)
        values = np.asarray(self.transformer_.transform(bags.instances), np.float32)
        if names and hasattr(self.transformer_, "get_feature_names_out"):
            names = list(self.transformer_.get_feature_names_out(names))
        return bags._with_features(values, names if len(names) == values.shape[1] else None)

    def fit_transform(self, X: Sequence[ArrayLike], y: Any = None) -> Bags:
        """Fit the transformer and transform the bags."""
        return self.fit(X, y).transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return "transformer_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(two_d_array=False, three_d_array=True),
        )
