"""Searches for settings with the program, and their trials."""

from __future__ import annotations

import csv
import html
import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _frames, _process
from .errors import DataError, SpecError

if TYPE_CHECKING:
    import pandas

_KEYS = {"trials", "budget", "space", "measure", "holdout", "folds", "halving", "min_epochs", "seed"}


@dataclass
class Search:
    """The trials of a search for settings, on held-out training bags.

    Attributes
    ----------
    summary : dict
        The results of all trials, with their curves: ``search/search.json``.
    best_params : dict
        The chosen settings with the keys of specs, such as ``train.lr``; empty if the spec as it is was best.
    plots : dict of str
        ``curves`` of the trials, and the measure over the ``settings``, as SVG text.
    rows : list of dict
        The rows of the table of the trials: ``search/trials.csv``.
    """

    summary: dict[str, Any]
    best_params: dict[str, Any]
    plots: dict[str, str]
    rows: list[dict[str, Any]]

    @classmethod
    def read(cls, run: Path) -> Search:
        """Read the search in the folder of a run."""
        at = run / "search"
        try:
            summary = json.loads((at / "search.json").read_text("utf-8"))
            with open(at / "trials.csv", encoding="utf-8", newline="") as file:
                rows = [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]
            plots = {p.stem: p.read_text("utf-8") for p in sorted(at.glob("*.svg"))}
        except (OSError, ValueError) as err:
            raise DataError(f"there is no finished search: {err}", file=str(at)) from err
        chosen = rows[summary["chosen"] - 1]
        return cls(summary, {n: v for n, v in chosen.items() if "." in n and v is not None}, plots, rows)

    @cached_property
    def trials(self) -> pandas.DataFrame:
        """Frame with one row for each trial: its settings, ``epochs``, measure, ``seconds``, ..."""
        return _frames.frame(self.rows).set_index("trial")

    @cached_property
    def curves(self) -> pandas.DataFrame:
        """Frame of the measure by epoch, with one column for each trial."""
        columns = {
            number: {point["epoch"]: point["value"] for point in one.get("curve", ())}
            for number, one in enumerate(self.summary["trials"], 1)
        }
        found: pandas.DataFrame = _frames.import_pandas().DataFrame(columns)
        return found.sort_index().rename_axis("epoch")

    def __repr__(self) -> str:
        return f"<Search: {len(self.rows)} trials, best {self.best_params}>"

    def _repr_html_(self) -> str:
        """Show the figures in a notebook."""
        chosen = ", ".join(f"{name}={value}" for name, value in self.best_params.items()) or "the spec as it is"
        return f"<p>{len(self.rows)} trials, best: {html.escape(chosen)}</p>" + "".join(self.plots.values())


def _value(text: str) -> Any:
    """Return the value of a cell, None if it is empty."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def search_arguments(search: Any) -> list[str]:
    """Return the arguments of a training with a search: True, a number of trials, or a dict."""
    if search is None or search is False:
        return []
    given = {} if search is True else search if isinstance(search, Mapping) else {"trials": search}
    if unknown := sorted(set(given) - _KEYS):
        raise SpecError(f"search has no key {unknown[0]!r}; it has {', '.join(sorted(_KEYS))}")
    budget = given.get("budget")
    if budget is not None and not (isinstance(budget, numbers.Real) and 0 < float(budget) < math.inf):
        raise SpecError(f"budget is {budget!r}; a number of seconds above 0 is needed")
    args = ["--search", *_process.options(budget=None if budget is None else f"{budget:.9f}s")]
    for key in ("trials", "measure", "holdout", "folds", "halving", "min_epochs", "seed"):
        if given.get(key) is not None:
            args += ["--set", _process.setting(f"search.{key}", given[key])]
    if (space := given.get("space")) is not None:
        if not isinstance(space, Mapping) or not space:
            raise SpecError(f"space is {space!r}; a dict is needed, such as {{'train__lr': {{'log': [0.001, 0.1]}}}}")
        args += ["--set", "search.grid="]  # in place of that of the spec
        for name, values in space.items():
            if not isinstance(name, str):
                raise SpecError(f"space has the key {name!r}; a name of a setting is needed, such as 'train__lr'")
            if not isinstance(values, (Mapping, Sequence)) or isinstance(values, str):
                text = f"space[{name!r}] is {values!r}; a list of values or a range is needed"
                raise SpecError(text, 'write a list, or {"log": [0.001, 0.1]}, {"uniform": [0, 1]} or {"int": [1, 9]}')
            args += ["--set", _process.setting("search.grid." + name.replace("__", "."), values)]
    return args
