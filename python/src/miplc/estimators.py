"""Estimators for bags with the conventions of scikit-learn, which need not be installed."""

from __future__ import annotations

import inspect
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bags import Bags, class_name, count, is_missing, is_sets, listed
from .errors import DataError, SpecError
from .model import Model
from .training import Callback, Run, Spec, train

if TYPE_CHECKING:
    from typing import Self

    import pandas

__all__ = ["MIPLClassifier", "MIPLMultiLabelClassifier", "PerInstance"]


class _Parameters:
    """The parameters of an estimator, for ``clone``, ``Pipeline`` and searches of scikit-learn."""

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
            elif name in _own(type(self)):
                setattr(self, name, value)
            else:
                self._set_setting(name, value)
        return self

    def _settings(self) -> dict[str, Any]:
        return {}

    def _set_setting(self, name: str, value: Any) -> None:
        known = ", ".join(sorted(self.get_params()))
        raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {known}")

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

    _multi = False
    _estimator_type = "classifier"

    def __init__(
        self,
        spec: Spec = "demipl-mlp",
        *,
        random_state: int | np.random.RandomState | None = None,
        output: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
        progress: bool = False,
        engine: str | None = None,
        device: str | None = None,
        threads: int | None = None,
        **settings: Any,
    ) -> None:
        self.spec = spec
        self.random_state = random_state
        self.output = output
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

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if "__" in name and name[0] != "_"}

    def _set_setting(self, name: str, value: Any) -> None:
        if "__" not in name:
            super()._set_setting(name, value)
        setattr(self, name, value)

    def _program_settings(self) -> dict[str, Any]:
        """Return the settings with the keys of specs."""
        found = {"data.split.train": 1} | setting_keys(self._settings())
        if self.random_state is not None:
            found["train.seed"] = seed_of(self.random_state)
        return found

    def fit(
        self,
        X: Sequence[ArrayLike],
        y: Any = None,
        groups: Sequence[Any] | None = None,
        *,
        candidates: Any = None,
        resume: bool = False,
    ) -> Self:
        """Train on all bags.

        Parameters
        ----------
        X : Bags, or sequence of m arrays ``[n_i, d]``
            The bags.
        y : sequence of m labels or of m sets of labels, or bool array ``[m, k]``, optional
            See the class. Default: the labels of Bags.
        groups : sequence of m str or int, optional
            Groups, such as patients, which a split into validation bags does not divide.
        candidates : sequence of m sets of labels, or bool array ``[m, k]``, optional
            Candidate sets. ``y`` then has the true labels, which only measure accuracy.
        resume : bool
            Continue the interrupted training in ``output``, if there is one.

        Returns
        -------
        self
        """
        bags = self._bags(X, y, groups, candidates)
        run = train(
            self.spec,
            bags,
            output=self.output,
            settings=self._program_settings(),
            callbacks=self.callbacks,
            progress=self.progress,
            resume=resume,
            engine=self.engine,
            device=self.device,
            threads=self.threads,
        )
        self._take(run, bags)
        return self

    def _bags(self, X: Any, y: Any, groups: Any, candidates: Any) -> Bags:
        """Return the training bags with their labels."""
        if y is None and candidates is None:
            if not isinstance(X, Bags) or X.kind == "none":
                raise DataError("requires y to be passed, but the target y is None: give y or candidates")
            bags = X
        else:
            bags = X if isinstance(X, Bags) else Bags(X)
            labels = _sets(y) if self._multi else _column(y)
            if not self._multi and candidates is None and is_sets(labels):
                labels, candidates = None, labels
            noisy = getattr(self, "data__labels", None) == "noisy"
            bags = bags.with_labels(labels, candidates=candidates, noisy=noisy)
        if bags.kind == "multi" and not self._multi or bags.kind != "multi" and self._multi:
            other = "MIPLClassifier" if self._multi else "MIPLMultiLabelClassifier"
            raise DataError(f"the bags have {bags.kind} labels: use {other}")
        return bags if groups is None else bags.with_groups(groups)

    def _take(self, run: Run, bags: Bags) -> None:
        """Set the attributes of a fitted estimator."""
        self.run_ = run
        self.model_: Model = run.model
        self.classes_: NDArray[Any] = bags.classes
        self.n_features_in_: int = int(np.prod(bags.instances.shape[1:]))

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
        """Return the probability of each class.

        Parameters
        ----------
        X : Bags, or sequence of m arrays ``[n_i, d]``

        Returns
        -------
        array ``[m, k]``, in the order of ``classes_``
        """
        self._check_fitted()
        return self.model_.predict_proba(X)

    def _indicators(self, y: Any) -> NDArray[np.int64]:
        """Return sets of labels as a matrix [m, k] of 0 and 1."""
        sets = _sets(y)
        if isinstance(sets, np.ndarray):
            return np.asarray(sets, np.int64)
        rows = [[label in one for label in self.classes_.tolist()] for one in sets]
        return np.array(rows, np.int64)

    def attention(self, X: Sequence[ArrayLike]) -> list[NDArray[np.float32]]:
        """Return the attention scores of the instances of each bag.

        Parameters
        ----------
        X : Bags, or sequence of m arrays ``[n_i, d]``

        Returns
        -------
        list of m arrays ``[n_i]``
        """
        self._check_fitted()
        return self.model_.attention(X)


class MIPLClassifier(_MIPLEstimator):
    """Classifier of bags, one label for each, which learns from candidate sets or certain labels.

    Parameters
    ----------
    spec : str, path or dict
        A shipped spec by its name (see :func:`specs`), a YAML file, YAML text or a dict.
    random_state : int or numpy.random.RandomState, optional
        Seed of the training. The same seed gives the same bits on the same machine. Default: the seed
        of the spec.
    output : path, optional
        Folder of the run, to resume it. Default: a temporary one.
    callbacks : sequence of callable
        Called after each epoch with its metrics. An exception stops the training and is raised.
    progress : bool
        Show a progress bar, if tqdm is installed.
    engine, device : str, optional
        As the options of ``miplc train``.
    threads : int, optional
        Threads of onnxruntime.
    **settings
        Settings of the spec, with two underscores for each point: ``train__epochs=50``,
        ``train__lr=0.01``, ``data__split__validation=0.2``. None: the value of the spec.
        ``data__labels="noisy"`` accepts true labels outside of the candidate sets.

    Attributes
    ----------
    classes_ : array ``[k]``
        The labels, sorted.
    model_ : Model
        The exported model; its attribute ``bytes`` is the ONNX file.
    run_ : Run
        The training: summary, metrics, plots.
    history_ : pandas.DataFrame
        One row for each epoch.
    n_features_in_ : int
        Number of features of an instance.

    Notes
    -----
    y of :meth:`fit` contains, for each bag, one certain label or a set of candidates; or it is a bool
    array ``[m, k]`` of candidates. In ``cross_val_score`` and searches, write candidate sets as Python
    sets, or pass ``params={"candidates": sets}`` and the true labels as y, by which bags are scored.

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

        Parameters
        ----------
        X : Bags, or sequence of m arrays ``[n_i, d]``
        y : sequence of m labels or of m sets of labels, or bool array ``[m, k]``, optional
            True labels; bags with an unknown one (None, NaN) do not count. Or candidate sets; bags of which every
            class is a candidate do not count. Default: the labels of Bags.
        sample_weight : array ``[m]``, optional
            Weights of the bags.
        """
        true = _column(y)
        if y is None and isinstance(X, Bags):
            true = X.candidates if X.labels is None else [None if i < 0 else X.classes[i] for i in X.labels]
        if true is None:
            raise DataError("score needs labels y")
        _check_lengths(X, len(true), "true label")
        at = self.predict_proba(X).argmax(axis=1)
        if is_sets(true):
            inside = self._indicators(true) == 1
            right, known = inside[np.arange(len(at)), at], ~inside.all(axis=1)
        else:
            true = listed(true)
            known = np.array([not is_missing(label) for label in true])
            right = np.array([a == b for a, b in zip(self.classes_[at].tolist(), true)])
        if not known.any():
            raise DataError("no bag has a known true label, and no candidate set leaves out a class")
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(np.average(right[known], weights=weights))


class MIPLMultiLabelClassifier(_MIPLEstimator):
    """Classifier of bags that have any number of labels.

    Parameters and attributes are those of :class:`MIPLClassifier`. y of :meth:`fit` contains a set of
    labels for each bag, maybe an empty one, or is a bool array ``[m, k]``.
    """

    _multi = True

    def predict(self, X: Sequence[ArrayLike]) -> NDArray[np.int64]:
        """Return 1 for each predicted label of each of m bags ``[n_i, d]``: array ``[m, k]``."""
        probable = self.predict_proba(X) > (self.model_.threshold or 0.5)
        return np.asarray(probable, np.int64)

    def score(self, X: Sequence[ArrayLike], y: Any = None, sample_weight: Any = None) -> float:
        """Return the subset accuracy: the share of bags of which all labels are right.

        Parameters
        ----------
        X : Bags, or sequence of m arrays ``[n_i, d]``
        y : sequence of m sets of labels, or bool array ``[m, k]``, optional
            Default: the labels of Bags.
        sample_weight : array ``[m]``, optional
            Weights of the bags.
        """
        if y is None and isinstance(X, Bags) and X.multi:
            y = X.labels
        if y is None:
            raise DataError("score needs the true labels y")
        _check_lengths(X, len(y), "label set")
        right = (self.predict(X) == self._indicators(y)).all(axis=1)
        return float(np.average(right, weights=sample_weight))


def _check_lengths(X: Sequence[ArrayLike], n: int, noun: str) -> None:
    if len(X) != n:
        raise DataError(f"{count(n, noun)} for {count(len(X), 'bag')}")


def _column(y: Any) -> Any:
    """Return labels without the second axis of a single column."""
    y = np.asarray(y) if hasattr(y, "__array__") else y
    return y[:, 0] if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1 else y


def _sets(y: Any) -> Any:
    """Return labels of a multi-label classifier as a matrix or a list of sets."""
    y = y.toarray() if hasattr(y, "toarray") else y  # a sparse matrix
    y = np.asarray(y) if hasattr(y, "__array__") else y
    if y is None or isinstance(y, np.ndarray) and y.ndim == 2:
        return y
    for i, one in enumerate(y):
        if isinstance(one, (str, bytes)) or not isinstance(one, Iterable):
            raise DataError(f"bag {i + 1} has the label {class_name(one)}; a set of labels is needed")
    return [set(one) for one in y]


def setting_keys(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the keys of specs: ``train__lr`` is ``train.lr``."""
    return {name.replace("__", "."): value for name, value in settings.items()}


def seed_of(random_state: Any) -> int:
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

        bags = Bags(X)
        self.transformer_ = clone(self.transformer).fit(bags.instances)
        self.n_features_in_: int = bags.instances.shape[1]
        return self

    def transform(self, X: Sequence[ArrayLike]) -> list[NDArray[np.float32]]:
        """Return the transformed bags: m arrays ``[n_i, d']``."""
        bags = Bags(X)
        values = np.asarray(self.transformer_.transform(bags.instances), np.float32)
        return np.split(values, bags.offsets[1:-1])

    def fit_transform(self, X: Sequence[ArrayLike], y: Any = None) -> list[NDArray[np.float32]]:
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
