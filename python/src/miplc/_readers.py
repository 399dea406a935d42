"""Reads bags from frames of pandas and polars and from files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .bags import Bags, class_name, is_missing, quoted
from .errors import DataError

_B = TypeVar("_B", bound=Bags)


@dataclass
class Columns:
    """Names of the columns of a frame."""

    bag: str
    label: str | None = None
    candidates: str | None = None
    group: str | None = None
    coords: tuple[str, str] | None = None
    instance_label: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()


def from_frame(kind: type[_B], frame: Any, columns: Columns, *, multi: bool, classes: Any, noisy: bool) -> _B:
    """Make bags of a frame with one row for each instance."""
    names = [str(name) for name in frame.columns]
    optional = {
        "label": columns.label or ("label" if "label" in names else None),
        "candidates": columns.candidates or ("candidates" if "candidates" in names else None),
        "group": columns.group,
        "instance_label": columns.instance_label,
    }
    if multi and columns.candidates is None:
        optional["candidates"] = None
    coords = columns.coords or (("x", "y") if {"x", "y"} <= set(names) else None)
    used = [columns.bag, *(name for name in optional.values() if name), *(coords or ())]
    for name in [*used, *(columns.features or ()), *columns.ignore]:
        if name not in names:
            raise DataError(f"the frame has no column {quoted_label(name)}")
    if len(frame) == 0:
        raise DataError("the frame has no rows")
    skipped = {*used, *columns.ignore, "candidates"}
    features = list(columns.features or (name for name in names if name not in skipped))
    starts, bag_names = _starts(_column(frame, columns.bag))
    of_bags = {
        what: _of_bags(_column(frame, name), starts, bag_names, name)
        for what, name in optional.items()
        if name and what != "instance_label"
    }
    instance_labels = None if columns.instance_label is None else _column(frame, columns.instance_label)
    if "candidates" in of_bags:
        if any(isinstance(value, str) for value in of_bags["candidates"]):  # then a label 1 is the class "1"
            of_bags["label"] = _named(of_bags.get("label", []))
            instance_labels = None if instance_labels is None else _named(instance_labels)
        of_bags["candidates"] = [_split(value) for value in of_bags["candidates"]]
    if multi:
        of_bags["label"] = [_split(value) for value in of_bags.get("label", [])]
    elif all(_missing(value) for value in of_bags.get("label", [])):
        of_bags.pop("label", None)
    return kind(
        _features(frame, features, starts),
        np.array([*starts, len(frame)]),
        labels=of_bags.get("label"),
        candidates=of_bags.get("candidates"),
        classes=classes,
        noisy=noisy,
        names=bag_names,
        groups=of_bags.get("group"),
        group_name=columns.group or "group",
        coords=None if coords is None else _numbers(frame, list(coords), starts),
        instance_labels=instance_labels,
        feature_names=features,
    )


def _column(frame: Any, name: str) -> list[Any]:
    """Return a column as Python objects."""
    column = frame[name]
    values: list[Any] = column.to_list() if hasattr(column, "to_list") else list(column)
    return values


def _missing(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, str) and value == "")


def quoted_label(label: Any) -> str:
    """Return the name of a label for messages."""
    return quoted(class_name(label))


def _starts(column: list[Any]) -> tuple[list[int], list[Any]]:
    """Return the first row of each bag and the names of the bags."""
    starts: list[int] = []
    first: dict[Any, int] = {}
    for row, name in enumerate(column):
        if row and name == column[row - 1]:
            continue
        if _missing(name):
            raise DataError(f"row {row + 1}: the column bag is empty", line=row + 1)
        if name in first:
            bag = list(first).index(name) + 1
            raise DataError(
                f"row {row + 1}: bag {bag} ({quoted_label(name)}) occurs again after other bags; "
                f"the rows of a bag must be adjacent (the first is row {first[name] + 1})",
                'if these rows are one bag, sort the rows by bag: frame.sort_values("bag", kind="stable") ' "in pandas",
                "if they are different bags, give each of them a name of its own",
                line=row + 1,
            )
        first[name] = row
        starts.append(row)
    return starts, list(first)


def _of_bags(column: list[Any], starts: list[int], names: list[Any], what: str) -> list[Any]:
    """Return the value of the first row of each bag; the others must be equal or empty."""
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(column)
        for row in range(start + 1, end):
            value = column[row]
            if not _missing(value) and not _same(value, column[start]):
                here, there = quoted_label(value), quoted_label(column[start])
                bag = f"bag {i + 1} ({quoted_label(names[i])})"
                text = f"{bag} has the {what} {here} here and {there} in row {start + 1}"
                raise DataError(f"row {row + 1}: {text}", line=row + 1)
    values = [column[start] for start in starts]
    return [None if _missing(value) else value for value in values]


def _same(a: Any, b: Any) -> bool:
    return list(a) == list(b) if isinstance(a, (list, np.ndarray)) else bool(a == b)


def _named(labels: list[Any]) -> list[Any]:
    """Return the names of labels, None if they are missing."""
    return [None if _missing(label) else class_name(label) for label in labels]


def _split(value: Any) -> list[Any]:
    """Return the labels of a field: a list, or text with spaces between them."""
    if value is None:
        return []
    return value.split() if isinstance(value, str) else list(np.atleast_1d(np.asarray(value)).tolist())


def _features(frame: Any, names: list[str], starts: list[int]) -> NDArray[np.float64]:
    if not names:
        raise DataError("the frame has no column with a feature")
    return _numbers(frame, names, starts)


def _numbers(frame: Any, names: list[str], starts: list[int]) -> NDArray[np.float64]:
    """Return columns of numbers as an array."""
    columns = []
    for f, name in enumerate(names):
        column = frame[name]
        if str(column.dtype).lower() in ("object", "str", "string", "category", "categorical"):
            values = _column(frame, name)
            wrong = next((r for r, v in enumerate(values) if isinstance(v, str)), None)
            if wrong is not None:
                bag = int(np.searchsorted(starts, wrong, side="right"))
                value, name = quoted_label(values[wrong]), quoted_label(name)
                raise DataError(
                    f"row {wrong + 1}: bag {bag}: feature {f + 1} is {value}, not a number",
                    f"features are numbers; if the column {name} is not a feature, leave it out with "
                    f"ignore=[{name}]",
                    line=wrong + 1,
                )
        try:
            columns.append(np.asarray(column, dtype=np.float64))
        except (TypeError, ValueError):
            raise DataError(f"column {quoted_label(name)}: its values are not numbers") from None
    return np.stack(columns, axis=1)


def read(kind: type[_B], path: Path, columns: Mapping[str, Any]) -> _B:
    """Read bags from a file."""
    ending = path.suffix.lower()
    if not os.path.exists(path):
        raise DataError("there is no such file", file=str(path))
    try:
        if ending == ".npz":
            with np.load(path) as arrays:
                return _from_arrays(kind, {key: arrays[key] for key in arrays}, **columns)
        if ending in (".h5", ".hdf5"):
            return _read_hdf5(kind, path, columns)
        if ending in (".parquet", ".csv"):
            import pandas

            if ending == ".parquet":
                return kind.from_frame(pandas.read_parquet(path), **columns)
            texts = {columns.get(c) or c: str for c in ("bag", "label", "candidates", "group", "instance_label")}
            return kind.from_frame(pandas.read_csv(path, dtype=texts), **columns)
    except DataError as err:
        raise DataError([{**problem, "file": str(path)} for problem in err.problems]) from None
    except (OSError, ValueError) as err:
        raise DataError(f"the file cannot be read: {err}", file=str(path)) from err
    text = "files with this extension are not supported; supported are .npz, .h5, .parquet, .csv"
    raise DataError(text, file=str(path))


def _from_arrays(kind: type[_B], arrays: Mapping[str, Any], noisy: bool = False) -> _B:
    """Make bags of the arrays of an .npz file."""
    for key in ("instances", "offsets"):
        if key not in arrays:
            raise DataError(f"no array {quoted_label(key)}; the file has {', '.join(sorted(arrays))}")
    labels, candidates = arrays.get("labels"), arrays.get("candidates")
    classes = arrays.get("class_names")
    if classes is None and candidates is not None:
        classes = np.arange(candidates.shape[1])
    elif classes is None and labels is not None:
        classes = np.arange(labels.shape[1] if labels.ndim == 2 else labels.max() + 1)

    def named(numbers: Any) -> Any:
        if numbers is None or classes is None or numbers.ndim == 2:
            return numbers
        for i, c in enumerate(numbers.tolist()):
            if not -1 <= c < len(classes):
                count = f"classes count from 0 to {len(classes) - 1}, -1 means unknown"
                raise DataError(f"bag {i + 1}: the true label {c} is out of range; {count}")
        return [None if c < 0 else classes[c] for c in numbers.tolist()]

    return kind(
        arrays["instances"],
        arrays["offsets"],
        labels=named(labels),
        candidates=candidates,
        classes=classes,
        noisy=noisy,
        names=arrays.get("bag_names"),
        groups=arrays.get("groups"),
        group_name=str(arrays["group_name"][0]) if "group_name" in arrays else "group",
        coords=arrays.get("coords"),
        instance_labels=named(arrays.get("instance_labels")),
        feature_names=arrays.get("feature_names"),
    )


def _read_hdf5(kind: type[_B], path: Path, columns: Mapping[str, Any]) -> _B:
    """Read a file with the arrays of an .npz file, or with one group for each bag."""
    import h5py

    with h5py.File(path) as file:
        if "instances" in file:
            arrays = {}
            for key, value in file.items():
                text = value.dtype.kind in "OS"
                arrays[key] = np.array(value.asstr()[:] if text else value[:])
            return _from_arrays(kind, arrays, **columns)
        names = [name for name in file if hasattr(file[name], "keys") and "features" in file[name]]
        if not names:
            raise DataError(
                f"the file has neither an array instances nor groups with features; " f"it has {', '.join(file)}"
            )
        coords = [file[name]["coords"][:] for name in names if "coords" in file[name]]
        if len(coords) not in (0, len(names)):
            raise DataError(f"{len(coords)} of {len(names)} bags have coords")
        bags = [file[name]["features"][:] for name in names]
    return kind(bags, names=names, coords=coords or None, **columns)
