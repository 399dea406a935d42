"""Trains many settings in one call of the program, which is faster than one call for each."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _frames, _process
from .bags import Bags
from .errors import SpecError
from .estimators import MIPLClassifier, MIPLMultiLabelClassifier, seed_of, setting_keys
from .training import Call, Run, has_run, prepared, run_program

if TYPE_CHECKING:
    import pandas

__all__ = ["Fits", "fit_many"]

_E = TypeVar("_E", MIPLClassifier, MIPLMultiLabelClassifier)
_MOST = 1000  # runs of one call of the program


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
        Accuracy on the test bags, NaN without test bags and if a training failed.
    """

    params: list[dict[str, Any]]
    estimators: list[list[_E | None]]
    scores: NDArray[np.float64]

    @property
    def best_index(self) -> int:
        """Number of the setting with the highest mean accuracy, from 0."""
        means = self.scores.mean(axis=1)
        if np.isnan(means).all():
            raise SpecError("there are no test bags to choose by: pass splits to fit_many")
        return int(np.nanargmax(means))

    @property
    def best_params(self) -> dict[str, Any]:
        """The setting with the highest mean accuracy."""
        return self.params[self.best_index]

    @cached_property
    def frame(self) -> pandas.DataFrame:
        """Frame with one row for each setting: its values, and ``mean`` and ``std`` of the accuracy."""
        rows = [
            {**params, "mean": scores.mean(), "std": scores.std()} for params, scores in zip(self.params, self.scores)
        ]
        return _frames.frame(rows)


def fit_many(
    estimator: _E,
    X: Sequence[ArrayLike],
    y: Any = None,
    *,
    params: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]],
    splits: Iterable[tuple[ArrayLike, ArrayLike]] | None = None,
    groups: Sequence[Any] | None = None,
    candidates: Any = None,
    resume: bool = False,
) -> Fits[_E]:
    """Fit an estimator with many settings, and on many splits, in one call of the program.

    Runs that differ only in the seed, the split, learning rates and weights of losses train together, which is faster
    than alone. The results are those of single fits on bags in the same order.

    A training that fails is a warning, unless all fail.

    Parameters
    ----------
    estimator : MIPLClassifier or MIPLMultiLabelClassifier
        It is not changed. Its callbacks are called with the means over the trainings.
    X, y, groups, candidates
        As in ``fit``.
    params : dict of lists, or iterable of dict
        All combinations of a grid, or the settings: names of settings such as ``train__lr``, or
        ``random_state``.
    splits : iterable of pairs of int arrays, optional
        Training and test bags, as ``KFold(5).split(X)`` of scikit-learn yields them. Default: train
        on all bags.
    resume : bool
        Continue the interrupted call in ``output`` of the estimator, if there is one.

    Returns
    -------
    Fits
    """
    call: Call
    combinations = _combinations(params)
    bags = estimator._bags(X, y, groups, candidates)
    divisions = None if splits is None else [tuple(map(np.asarray, pair)) for pair in splits]
    count = len(divisions) if divisions else 1
    if len(combinations) * count > _MOST:
        raise SpecError(
            f"{len(combinations)} settings on {count} splits are more than {_MOST} trainings, the " "limit of one call"
        )
    base = estimator._program_settings()
    if divisions is not None:
        del base["data.split.train"]
    with prepared(estimator.spec, bags, base) as call:
        folder = call.folder / "runs" if estimator.output is None else _process.located(estimator.output, "output")
        args = [*call.args, "-o", str(folder)]
        args += _process.options(engine=estimator.engine, device=estimator.device, threads=estimator.threads)
        if divisions is not None:
            args += _split_options(divisions, bags, call)
        for one in combinations:
            args += ["--setting", _setting(one)]
        if resume and has_run(folder):
            args.append("--resume")
        for text in run_program(args, call, estimator.callbacks, estimator.progress)["failed"]:
            warnings.warn(f"a training failed: {text}", stacklevel=2)
        fits = _read(estimator, bags, combinations, count, folder, divisions is not None)
    return fits


def _combinations(params: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the settings of a grid or a list."""
    if isinstance(params, Mapping):
        names = sorted(params)  # the order of ParameterGrid of scikit-learn
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


def _setting(one: Mapping[str, Any]) -> str:
    """Return an argument of the option --setting."""
    chosen = setting_keys({name: v for name, v in one.items() if name != "random_state"})
    if "random_state" in one:
        chosen["train.seed"] = seed_of(one["random_state"])
    return ",".join(_process.setting(k, v) for k, v in chosen.items() if v is not None)


def _split_options(divisions: Sequence[tuple[NDArray[Any], ...]], bags: Bags, call: Call) -> list[str]:
    """Write the file of splits and return the options that name it."""
    names = range(1, len(bags) + 1) if bags.names is None else bags.names.tolist()
    lines = ["split,bag,part"]
    for number, division in enumerate(divisions, 1):
        for part, chosen in zip(("train", "test"), division):
            for i in np.arange(len(bags))[chosen].tolist():
                text = str(names[i]).replace('"', '""')
                lines.append(f'{number},"{text}",{part}')
    path = call.folder / "splits.csv"
    with _process.writing(path):
        path.write_text("\n".join(lines) + "\n", "utf-8")
    numbers = [str(n) for n in range(1, len(divisions) + 1)]
    return ["--set", _process.setting("data.split.index", str(path)), "--split-numbers", ",".join(numbers)]


def _read(
    estimator: _E, bags: Bags, combinations: list[dict[str, Any]], count: int, folder: Path, divided: bool
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
            if run.accuracy is not None:
                scores[s, f] = run.accuracy
        fits.append(row)
    return Fits(combinations, fits, scores)
