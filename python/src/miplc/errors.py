"""Exceptions that carry the messages of the program miplc, with the place of each mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_BAG = re.compile(r"\bbag (\d+)\b")


class MiplcError(Exception):
    """Base class of the errors of miplc.

    Attributes
    ----------
    file : str or None
        File of the first mistake, the setting such as ``setting train.epochs=x``, or the place in a dict such as
        ``spec["train"]["epochs"]``.
    line, column : int or None
        Its place in the file, counted from 1.
    bag : int or None
        Number of the first wrong bag, counted from 1 as in the message: its instances are ``X[bag - 1]``.
    suggestion : str or None
        What was probably meant.
    notes : tuple of str
        What to do.
    problems : tuple of dict
        All mistakes, in the order of the message. Each has the key ``text`` and, if known, ``file``, ``line``,
        ``column``, ``suggestion`` and ``notes``.
    """

    def __init__(
        self, problems: Sequence[Mapping[str, Any]] | str, *notes: str, file: str | None = None, line: int | None = None
    ) -> None:
        if isinstance(problems, str):  # the text of a single mistake
            problems = [{"text": problems, "notes": list(notes), "file": file, "line": line}]
        super().__init__(problems)
        self.problems: tuple[Mapping[str, Any], ...] = tuple(problems)
        first = self.problems[0]
        self.file: str | None = first.get("file")
        self.line: int | None = first.get("line")
        self.column: int | None = first.get("column")
        self.suggestion: str | None = first.get("suggestion")
        self.notes: tuple[str, ...] = tuple(first.get("notes") or ())
        bags = [found for problem in self.problems if (found := _BAG.search(problem["text"]))]
        self.bag: int | None = int(bags[0].group(1)) if bags else None

    def __str__(self) -> str:
        return "\n".join(_describe(problem) for problem in self.problems)


def _describe(problem: Mapping[str, Any]) -> str:
    """Return a mistake as the program prints it, without the line of the file."""
    place = ":".join(str(problem[k]) for k in ("file", "line", "column") if problem.get("file") and problem.get(k))
    lines = [f"{place}: {problem['text']}" if place else str(problem["text"])]
    if problem.get("suggestion"):
        lines.append(f'did you mean "{problem["suggestion"]}"?')
    return "\n        ".join(lines + list(problem.get("notes") or ()))


class SpecError(MiplcError, ValueError):
    """A spec, a setting or the file of an experiment is wrong."""


class DataError(MiplcError, ValueError):
    """Bags, labels or a data file are wrong."""


class TrainingError(MiplcError, RuntimeError):
    """The program could not do its work, e.g. the loss became NaN, or a disk is full."""


class FindingWarning(UserWarning):
    """Something to know about the results of a training: see the page Findings of the documentation."""
