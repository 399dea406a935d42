"""Training of many settings in one call of the program, which is faster than one call for each."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _frames, _process
from ._labels import is_set
from .bags import Bags
from .errors import DataError, SpecError
from .estimators import MIPLClassifier, MIPLMultiLabelClassifier, setting_keys
from .training import Call, Run, Spec, has_run, prepared, run_program

if TYPE_CHECKING:
    import pandas

_E = TypeVar("_E", MIPLClassifier, MIPLMultiLabelClassifier)
_MOST = 1000  # runs of one call of the program
_SCORING = 'pass splits to fit_many, set data__split__validation, or choose by measure="loss"'
# The measures of the program by name: whether lower values are better, and whether they need true labels.
_MEASURES: dict[str, dict[str, bool]] = json.loads(Path(__file__).with_name("_measures.json").read_text("utf-8"))


@dataclass
class Fits(Generic[_E]):
    """The results of :func:`fit_many` with s settings and f splits.

    Attributes
    ----------
    params : list of s dict
        The settings.
    estimators : list of s lists of f estimators
        The fitted estimators, None if a training failed. Without splits, f is 1.
    scores : array ``[s, f]``
        The measure, NaN if there is nothing to measure it by, and if a training failed.
    measure : str
        The measure of the scores.
    """

    params: list[dict[str, Any]]
    estimators: list[list[_E | None]]
    scores: NDArray[np.float64]
    measure: str = "accuracy"

    @property
    def best_index(self) -> int:
        """Number of the setting with the best mean score, from 0."""
        means = self.scores.mean(axis=1)
        if np.isnan(means).all():
            raise SpecError(f"no setting has the measure {self.measure} to choose by", _SCORING)
        return int(np.nanargmin(means) if _MEASURES[self.measure]["lower"] else np.nanargmax(means))

    @property
    def best_params(self) -> dict[str, Any]:
        """The setting with the best mean score."""
        return self.params[self.best_index]

    @cached_property
    def frame(self) -> pandas.DataFrame:
        """Frame with one row for each setting: its values, and ``mean`` and ``std`` of the scores."""
        rows = [
            {**params, "mean": scores.mean(), "std": scores.std()} for params, scores in zip(self.params, self.scores)
        ]
        return _frames.frame(rows)


def search(
    spec: Spec,
    X: Sequence[ArrayLike],
    y: Any = None,
    *,
    space: Mapping[str, Any] | None = None,
    trials: int = 64,
    budget: float | None = None,
    measure: str | None = None,
    holdout: float | None = None,
    folds: int | None = None,
    halving: int | None = None,
    min_epochs: int | None = None,
    seed: int | None = None,
    candidates: Any = None,
    groups: Sequence[Any] | None = None,
    **settings: Any,
) -> MIPLClassifier:
    """Return the classifier with the best of some random settings, fitted on all bags, as ``miplc train --search``.

    Bad trials stop early. A share of the bags is held out to choose, or each of ``folds`` in turn. ``run_.search`` has the
    frame of the trials, their curves and figures; show ``run_`` in a notebook.

    Parameters
    ----------
    spec : str, path or dict
        As in :func:`train`.
    X, y, candidates, groups
        As in ``fit`` of :class:`MIPLClassifier`.
    space : dict, optional
        Settings with lists of values or ranges, such as ``{"train__lr": {"log": [0.001, 0.1]}}``. Default: those of the
        spec.
    trials : int
        Number of trials, the first of which is the spec as it is.
    budget : float, optional
        Seconds after which no trial continues.
    measure : str, optional
        Measure of the held-out bags. Default: that of the spec, usually the accuracy. ``loss`` and
        ``inside_candidates`` need no true labels.
    holdout : float, optional
        Share of the bags that is held out to choose. Default: that of the spec, usually 0.2.
    folds : int, optional
        Choose by the mean over so many folds of the bags, as ``GridSearchCV(cv=folds)``. Each setting is then trained
        once for each fold.
    halving, min_epochs : int, optional
        One of ``halving`` trials continues after each rung, and the first rung has at least ``min_epochs`` epochs.
        Default: those of the spec, usually 3 and 1. ``halving=1`` trains all epochs of all trials.
    seed : int, optional
        Seed of the settings that are drawn. Default: that of the spec, usually 1.
    **settings
        Parameters of :class:`MIPLClassifier`, such as ``train__epochs=50`` or ``output="folder"``.

    Examples
    --------
    >>> best = search("demipl-mlp", bags, candidates=sets, y=truth, budget=300)           # doctest: +SKIP
    >>> best.run_.search.trials                                                           # doctest: +SKIP
    """
    how = {
        "trials": trials,
        "space": space,
        "budget": budget,
        "measure": measure,
        "holdout": holdout,
        "folds": folds,
        "halving": halving,
        "min_epochs": min_epochs,
        "seed": seed,
    }
    return MIPLClassifier(spec, search=how, **settings).fit(X, y, groups, candidates=candidates)


def fit_many(
    estimator: _E,
    X: Sequence[ArrayLike],
    y: Any = None,
    *,
    params: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]],
    splits: Iterable[tuple[ArrayLike, ArrayLike]] | None = None,
    groups: Sequence[Any] | None = None,
    candidates: Any = None,
    measure: str = "accuracy",
    resume: bool = False,
) -> Fits[_E]:
    """Fit an estimator with many settings, and on many splits, in one call of the program.

    On a GPU, runs that differ only in the seed, the split, learning rates, numbers of the optimizer, dropout rates and
    weights of losses train together, which is faster than alone. The results are those of single fits on bags in the
    same order.

    A training that fails is a warning, unless all fail. Scores without bags to measure them by are NaN, which is a
    warning, too.

    Parameters
    ----------
    estimator : MIPLClassifier or MIPLMultiLabelClassifier
        It is not changed. Its callbacks are called with the means over the trainings.
    X, y, groups, candidates
        As in ``fit``.
    params : dict of lists, or iterable of dict
        All combinations of a grid, or the settings: names of settings such as ``train__lr``, or ``random_state``.
    splits : iterable of pairs of int arrays, optional
        Training and test bags, as ``KFold(5).split(X)`` of scikit-learn yields them; others are left out. Default:
        train on all bags.
    measure : str
        Measure of the scores, by which the best setting is chosen: that of the test bags; without splits, of the
        validation bags (``data__split__validation``). ``accuracy``, ``auroc`` and others need true labels,
        ``inside_candidates`` (the share of predictions that are candidates) does not, nor does ``loss``: that of
        the validation bags, else of the training.
    resume : bool
        Continue the interrupted call in ``output`` of the estimator, if there is one.
    """
    call: Call
    if measure not in _MEASURES:
        raise SpecError(f"measure is {measure!r}, which is no measure", f"choose one of {', '.join(_MEASURES)}")
    combinations = _combinations(params)
    bags = estimator._bags(X, y, groups, candidates)
    divisions = None if splits is None else _divisions(splits, bags, measure)
    count = len(divisions) if divisions else 1
    if len(combinations) * count > _MOST:
        raise SpecError(f"{len(combinations)} settings on {count} splits are more than {_MOST} trainings of one call")
    settings = estimator._program_settings()
    if divisions is not None:
        del settings["data.split.train"]
    with prepared(estimator.spec, bags, settings) as call:
        folder = call.folder / "runs" if estimator.output is None else _process.located(estimator.output, "output")
        args = [*call.args, "-o", str(folder)]
        args += _process.options(**estimator._engine(), force=estimator.overwrite and not resume)
        if divisions is not None:
            args += _split_options(divisions, bags, call)
        for one in combinations:
            chosen = [_process.setting(key, v) for key, v in setting_keys(one).items() if v is not None]
            args += ["--setting", ",".join(chosen)]
        if resume and has_run(folder):
            args.append("--resume")
        for text in run_program(args, call, estimator.callbacks, estimator.progress)["failed"]:
            _process.warn(f"a training failed: {text}")
        fits = _read(estimator, bags, combinations, count, folder, divisions is not None, measure)
    if np.isnan(fits.scores).all():
        part, remedy = ("validation", _SCORING) if divisions is None else ("test", "choose another measure")
        _process.warn(f"all scores are NaN, because no {part} bags have the measure {measure}: {remedy}")
    return fits


def _combinations(params: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the settings of a grid or a list."""
    if isinstance(params, Mapping):
        names = sorted(params)  # the order of ParameterGrid of scikit-learn
        for name in names:
            if not is_set(params[name]):
                raise SpecError(f"params[{name!r}] is {params[name]!r}; a list of values is needed")
        values = itertools.product(*(params[name] for name in names))
        found = [dict(zip(names, one)) for one in values]
    else:
        found = [dict(one) for one in params]
    if not found or not all(found):
        raise SpecError("params has no settings")
    for name in {name for one in found for name in one}:
        if name != "random_state" and "__" not in name:
            raise SpecError(
                f"fit_many cannot vary {name}: the settings of one call are those of a spec, such as "
                "train__lr, and random_state"
            )
    return found


def _divisions(
    splits: Iterable[Any], bags: Bags, measure: str
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the numbers of the training and test bags of each split, from 0, and check that they can be measured."""
    if not isinstance(splits, Iterable):
        pairs = f"{type(splits).__name__}(...).split(X)"
        raise SpecError(f"splits is {splits!r}; pairs of training and test bags are needed: {pairs}")
    divisions = []
    for number, pair in enumerate(splits):
        at = f"splits[{number}]"
        try:
            train, test = (np.arange(len(bags))[np.asarray(part) if len(part) else slice(0)] for part in pair)
        except (IndexError, TypeError, ValueError) as err:
            text = f"{at} is not a pair of training and test bags, from 0 to {len(bags) - 1}: {err}"
            raise DataError(text) from None
        if len(train) == 0 or len(test) == 0:
            raise DataError(f"{at} has no {'test' if len(train) else 'training'} bags")
        for i in np.flatnonzero(np.bincount(np.concatenate([train, test])) > 1)[:1]:
            raise DataError(f"{at} has the index {i} twice; a bag is in one part, once")
        known = bags.multi or bags.labels is not None and (bags.labels[test] >= 0).any()
        if not known and _MEASURES[measure]["needs_labels"]:
            raise DataError(
                f"no test bag of {at} has a true label to measure {measure} by",
                'pass y beside candidates, or choose by measure="inside_candidates" or measure="loss"',
            )
        divisions.append((train, test))
    if not divisions:
        raise SpecError("splits has no split")
    return divisions


def _split_options(divisions: Sequence[tuple[NDArray[Any], ...]], bags: Bags, call: Call) -> list[str]:
    """Write the file of splits and return the options that name it."""
    names = range(1, len(bags) + 1) if bags.names is None else bags.names.tolist()
    lines = ["split,bag,part"]
    for number, (train, test) in enumerate(divisions, 1):
        parts = np.full(len(bags), "unused", dtype=object)
        parts[train], parts[test] = "train", "test"
        for name, part in zip(names, parts):
            text = str(name).replace('"', '""')
            lines.append(f'{number},"{text}",{part}')
    path = call.folder / "splits.csv"
    with _process.writing(path):
        path.write_text("\n".join(lines) + "\n", "utf-8")
    numbers = [str(n) for n in range(1, len(divisions) + 1)]
    return ["--set", _process.setting("data.split.index", str(path)), "--split-numbers", ",".join(numbers)]


def _read(
    estimator: _E, bags: Bags, combinations: list[dict[str, Any]], count: int, folder: Path, divided: bool, measure: str
) -> Fits[_E]:
    """Read the runs."""
    fits: list[list[_E | None]] = []
    scores = np.full((len(combinations), count), np.nan)
    for s, params in enumerate(combinations):
        row: list[_E | None] = []
        for f in range(count):
            name = f"split-{f + 1}-setting-{s + 1}" if divided else f"setting-{s + 1}"
            if not (folder / name / "summary.json").exists():
                row.append(None)
                continue
            run = Run.read(folder / name, keep=estimator.output is not None)
            fitted = type(estimator)(**estimator.get_params(deep=False)).set_params(**params)
            fitted._take(run, bags)
            row.append(fitted)
            found = run.measures.get("validation" if measure == "loss" or not divided else "test", {})
            scores[s, f] = found.get(measure, run.summary["loss"] if measure == "loss" else np.nan)
        fits.append(row)
    return Fits(combinations, fits, scores, measure)
