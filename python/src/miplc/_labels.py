"""Labels of bags as Python objects: their classes, sets and missing values."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._rules import missing_mark
from .errors import DataError

_NUMBER = re.compile(r"[+-]?([0-9]+([.,][0-9]*)?|[.,][0-9]+)(e[+-]?[0-9]+)?")
MARK = "as programs write a missing value"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def count(n: int, noun: str) -> str:
    """Return a number with its noun: 1 bag, 2 classes."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{'es' if noun.endswith('s') else 's'}"


def is_missing(value: Any) -> bool:
    """Report whether a label is unknown: None, NaN, masked, or the missing value of pandas."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def class_name(label: Any) -> str:
    """Return the name of a class in the program: 1 and 1.0 are the class 1."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label)


def listed(values: Any) -> list[Any]:
    """Return labels as Python objects."""
    if hasattr(values, "__array__"):  # such as a column of pandas or polars
        values = np.asanyarray(values)  # the list of a masked array has None where it is masked
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, (np.ndarray, Iterable)):
        raise DataError(f"{values!r} is of the type {type(values).__name__}; a list with a value for each is needed")
    values = np.atleast_1d(values).tolist() if isinstance(values, np.ndarray) else list(values)
    return [v.item() if isinstance(v, np.generic) else v for v in values]


def is_sets(values: Any) -> bool:
    """Report whether there is a set of labels, or a row of a matrix, for each bag."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return True
    return any(is_set(one) for one in listed(values))


def is_set(value: Any) -> bool:
    """Report whether a value is a set of labels, not a single one."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def members(value: Any) -> list[Any]:
    """Return the known labels of a set, or a single label, as a list."""
    return [label for label in (listed(value) if is_set(value) else [value]) if not is_missing(label)]


def sorted_classes(labels: Any, candidates: Any, classes: Sequence[Any] | None) -> NDArray[Any]:
    """Return the sorted classes."""
    found: set[Any] = set()
    width = bags = 0
    for values in (labels, candidates):
        if isinstance(values, np.ndarray) and values.ndim == 2:
            width = values.shape[1]
        elif values is not None:
            for i, one in enumerate(listed(values)):
                try:
                    new = {*members(one)} - found
                except (TypeError, DataError):
                    raise DataError(f"bag {i + 1}: {one!r} is not a label or a set of labels") from None
                for mark in [label for label in new if isinstance(label, str) and missing_mark(label)]:
                    if classes is None:
                        advice = "write None for an unknown label", "if it is the name of a class: classes=[...]"
                        raise DataError(f"bag {i + 1}: the label is {quoted(mark)}, {MARK}", *advice)
                found |= new
                bags = i + 1
    if classes is None:
        given = _sorted(found | {*range(width)}, bags)
    else:
        given = listed(classes)
        if any(is_missing(label) or is_set(label) for label in given):
            raise DataError("classes has a value that is missing or no label")
        for label in sorted(found - set(given), key=str):
            raise DataError(f"the label {quoted(class_name(label))} is not in classes")
        if width and width != len(given):
            raise DataError(f"{count(len(given), 'class')} for a matrix with {count(width, 'column')}")
    large = any(abs(label) >= 2**63 for label in given if isinstance(label, int))  # as a float64 it loses digits
    return np.array(given, object if large else None) if given else np.array([], dtype=np.str_)


def _sorted(found: Iterable[Any], bags: int) -> list[Any]:
    """Sort labels as the program does: by number if all are whole numbers, else as text. 01 comes before 1."""
    labels = list(found)
    texts = [isinstance(label, str) for label in labels]
    if any(texts) and not all(texts):
        one, two = labels[texts.index(True)], labels[texts.index(False)]
        raise DataError(f"the labels are text and numbers, such as {quoted(one)} and {two!r}")
    if all(texts):
        fractions = [label for label in sorted(labels) if re.fullmatch(r"[+-]?[0-9]*[.,][0-9]+(e[+-]?[0-9]+)?", label)]
        if fractions and len(labels) >= 3 and 2 * len(labels) > bags and all(map(_NUMBER.fullmatch, labels)):
            raise _continuous(len(labels), fractions[0])
        whole = all(re.fullmatch("[+-]?[0-9]{1,19}", label) and abs(int(label)) < 2**63 for label in labels)
        return sorted(sorted(labels), key=int if whole else None)
    for label in labels:
        if not isinstance(label, numbers.Real) or math.isinf(label):
            raise DataError(f"a label is of the type {type(label).__name__}: {label!r}")
        if label != math.floor(label):
            raise _continuous(len(labels), label)
    return sorted(labels)


def _continuous(labels: int, label: Any) -> DataError:
    """Return the error that the labels are measured numbers."""
    text = f"there are {count(labels, 'different label')} that are numbers such as {label}"
    advice = "divide the numbers into classes, such as low and high", "if they are the names of classes: classes=[...]"
    return DataError(f"{text}: miplc predicts classes, not numbers", *advice)
