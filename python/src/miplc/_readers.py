"""Reads bags from frames of pandas and polars, and from files, which the program reads."""

from __future__ import annotations

import datetime
import decimal
import difflib
import inspect
import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _frames, _process, _words
from ._rules import RULES, suspect
from .bags import Bags, class_name, is_missing, quoted
from .errors import DataError, MiplcError

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
    features: Sequence[Any] | None = None
    ignore: Sequence[Any] = ()


class _Frame:
    """A frame whose columns have names that are text, and are found by them as in a CSV file."""

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "iloc") and not hasattr(frame, "to_series") or getattr(frame, "ndim", 2) != 2:
            text = f"the frame is of the type {type(frame).__name__}; a frame of pandas or polars is needed"
            raise DataError(text, "call collect() of a lazy frame" if hasattr(frame, "collect") else "for arrays: Bags(...)")
        self.frame = frame
        self.names = [_column_name(name) for name in frame.columns]
        if len(frame) == 0:
            raise DataError("the frame has no rows")

    def find(self, name: Any) -> int | None:
        """Return the column with a name, if necessary in another case."""
        text = _column_name(name)
        for names, wanted in ((self.names, text), ([one.casefold() for one in self.names], text.casefold())):
            if wanted in names and text:
                return names.index(wanted)
        return None

    def need(self, name: Any) -> int:
        """Return the column with a name that a caller passed."""
        at = self.find(name)
        if at is None:
            text = _column_name(name)
            index = text in map(str, getattr(getattr(self.frame, "index", None), "names", ()))
            near = difflib.get_close_matches(text, self.names, 1)
            problem: dict[str, Any] = {"text": f"the frame has no column {quoted(text)}"}
            problem["notes"] = ["it is the index: frame.reset_index() makes a column of it"] * index
            raise DataError([problem | ({"suggestion": near[0]} if near and not index else {})])
        return at

    def column(self, at: int) -> Any:
        """Return a column."""
        return self.frame.iloc[:, at] if hasattr(self.frame, "iloc") else self.frame.to_series(at)

    def values(self, at: int) -> list[Any]:
        """Return a column as Python objects: text without spaces around it, and None for missing values."""
        values = [v.item() if isinstance(v, np.generic) else v for v in self.column(at).to_list()]
        values = [v.strip() if isinstance(v, str) else v for v in values]
        return [None if is_missing(v) or isinstance(v, str) and v == "" else v for v in values]


def _column_name(name: Any) -> str:
    """Return the name of a column as a CSV file has it."""
    if isinstance(name, tuple):
        text = f"the columns of the frame have several levels, such as {name}"
        raise DataError(text, 'join them: frame.columns = ["_".join(map(str, name)) for name in frame.columns]')
    return "" if is_missing(name) else str(name).strip()


def from_frame(kind: type[_B], frame: Any, columns: Columns, *, multi: bool, classes: Any, noisy: bool) -> _B:
    """Make bags of a frame with one row for each instance."""
    table = _Frame(frame)
    roles = {"bag": table.need(columns.bag)}
    for role in ("label", "candidates", "instance_label", "group"):
        name = getattr(columns, role)
        at = table.need(name) if name is not None else table.find(role) if role != "group" else None
        if at is not None:
            if at in roles.values():
                raise DataError(f"the column {quoted(table.names[at])} is used for two purposes: {role} is one of them")
            roles[role] = at
    coords = _coordinates(table, columns, roles)
    features = _features(table, columns, {*roles.values(), *coords})
    starts, bag_names = _starts(table.values(roles["bag"]))
    of_bags = {
        role: _of_bags(table.values(at), starts, bag_names, role)
        for role, at in roles.items()
        if role in ("label", "candidates", "group") and not (multi and role == "candidates")
    }
    if columns.group is not None and None in of_bags["group"]:
        bag = of_bags["group"].index(None)
        text = f"bag {bag + 1} ({quoted(bag_names[bag])}) has no group: the column {columns.group} is empty"
        raise DataError(text)
    instance_labels = table.values(roles["instance_label"]) if "instance_label" in roles else None
    labels = _labels(of_bags, instance_labels, multi, classes)
    numbered = bag_names == [str(i + 1) for i in range(len(bag_names))]
    return kind(
        _numbers(table, features, starts, "feature"),
        np.array([*starts, len(frame)]),
        **labels,
        classes=classes,
        noisy=noisy,
        names=None if numbered else bag_names,
        groups=of_bags.get("group"),
        group_name="group" if columns.group is None else str(columns.group),
        coords=_numbers(table, coords, starts, "coordinate") if coords else None,
        feature_names=[table.names[at] for at in features],
    )


def _listed_names(names: Any) -> list[str]:
    """Return names of columns, of which a caller may pass a single one."""
    return [_column_name(name) for name in ([names] if isinstance(names, str) else names)]


def _coordinates(table: _Frame, columns: Columns, roles: Mapping[str, int]) -> list[int]:
    """Return the columns of x and y, none if the frame has none."""
    if columns.coords is not None:
        found = [table.need(name) for name in columns.coords]
        if len(found) != 2 or found[0] == found[1]:
            raise DataError("coords needs the names of two columns, x and y")
        return found
    others = {*_listed_names(columns.features or ()), *_listed_names(columns.ignore)}
    at = [table.names.index(name) for name in ("x", "y") if name in table.names and name not in others]
    return at if len(at) == 2 and not {*at} & {*roles.values()} else []


def _features(table: _Frame, columns: Columns, used: set[int]) -> list[int]:
    """Return the columns of the features. Those that are named like identifiers must be declared."""
    ignored = {table.need(name) for name in _listed_names(columns.ignore)}
    if columns.features is not None:
        found = [table.need(name) for name in _listed_names(columns.features)]
    else:
        found = [at for at in range(len(table.names)) if at not in used | ignored]
        unclear = [table.names[at] for at in found if suspect(table.names[at])]
        if unclear:
            declare = "declare numeric columns as features with features=[...], which lists all features"
            raise _undeclared(unclear, "named like an identifier or a coordinate, not like a feature", declare)
        kinds = [(at, _not_numbers(table.column(at))) for at in found]
        for what, why in (("text", "its values are text, and features are numbers"), ("dates", "its values are dates")):
            wrong = [table.names[at] for at, kind in kinds if kind == what]
            if wrong:
                raise _undeclared(wrong, why)
    if not found:
        raise DataError("the frame has no column with a feature")
    names = [table.names[at] for at in found]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two columns are named {quoted(name)}", "rename one of them, or leave both out with ignore")
    return found


def _undeclared(names: Sequence[str], why: str, *notes: str) -> DataError:
    """Return the error that the caller has to say whether columns are features."""
    if "" in names:
        return DataError("a column has no name, as a column of row numbers", "leave it out: frame.drop(columns=...)")
    listed = ", ".join(quoted(name) for name in names[:10])
    groups = [name for name in names if name.lower() in RULES["group_columns"]][:1]
    advice = [f"to keep the bags of a {name} in one part of the split: group={quoted(name)}" for name in groups]
    text = f"{'column' if len(names) == 1 else 'columns'} {listed}: {why}"
    return DataError(text, *advice, f"leave columns out with ignore=[{listed}]", *notes)


def _not_numbers(column: Any) -> str:
    """Return what a column has in its first row in place of a number: text, dates, or nothing."""
    first = column[:1].to_list()[0]
    dated = isinstance(first, _DATES) or hasattr(first, "to_timestamp")  # a period of pandas
    if getattr(column.dtype, "kind", "") in tuple("Mm") or dated and not is_missing(first):
        return "dates"
    return "text" if isinstance(first, str) else ""


_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def _starts(column: list[Any]) -> tuple[list[int], list[str]]:
    """Return the first row of each bag and the names of the bags."""
    starts: list[int] = []
    first: dict[str, int] = {}
    last = None
    for row, value in enumerate(column):
        if value is None:
            raise DataError(f"row {row + 1}: the column bag is empty", line=row + 1)
        name = str(value)
        if name == last:
            continue
        if name in first:
            bag = list(first).index(name) + 1
            raise DataError(
                f"row {row + 1}: bag {bag} ({quoted(name)}) occurs again after other bags; "
                f"the rows of a bag must be adjacent (the first is row {first[name] + 1})",
                'if these rows are one bag, sort the rows by bag: frame.sort_values("bag", kind="stable") in pandas',
                "if they are different bags, give each of them a name of its own",
                line=row + 1,
            )
        first[name], last = row, name
        starts.append(row)
    return starts, list(first)


def _of_bags(column: list[Any], starts: list[int], names: list[str], what: str) -> list[Any]:
    """Return the value of the first row of each bag; the others must be equal or empty."""
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(column)
        for row in range(start + 1, end):
            value = column[row]
            if value is not None and not _same(value, column[start]):
                here, there = quoted(class_name(value)), quoted(class_name(column[start]))
                text = f"bag {i + 1} ({quoted(names[i])}) has the {what} {here} here and {there} in row {start + 1}"
                raise DataError(f"row {row + 1}: {text}", line=row + 1)
    return [column[start] for start in starts]


def _same(a: Any, b: Any) -> bool:
    return list(a) == list(b) if isinstance(a, (list, np.ndarray)) and b is not None else bool(a == b)


def _labels(of_bags: Mapping[str, list[Any]], instances: list[Any] | None, multi: bool, classes: Any) -> dict[str, Any]:
    """Return the labels of the columns, for the constructor of Bags."""
    labels, candidates = of_bags.get("label", []), of_bags.get("candidates")
    given = set() if classes is None else set(classes)
    if any(isinstance(value, str) for value in candidates or ()):  # then a label 1 is the class "1"
        labels, instances = _texts(labels), None if instances is None else _texts(instances)

    def plain(label: Any) -> Any:
        """Return a class: 1.0 is how pandas writes the class 1 if other fields of the column are empty."""
        if not isinstance(label, str) or label in given:
            return label
        if classes is None and any(mark in label for mark in RULES["separators"]):
            advice = "separate candidates with spaces, e.g. cat dog, or write them as a list"
            raise DataError(f"{quoted(label)} does not look like the name of a class", advice, _LISTED)
        return label[:-2] if re.fullmatch(r"[+-]?[0-9]+\.0", label) else label

    def split(value: Any) -> Any:
        return [plain(one) for one in value.split()] if isinstance(value, str) else () if value is None else value

    found: dict[str, Any] = {}
    if multi:
        found["labels"] = [split(value) for value in labels]
    elif any(label is not None for label in labels):
        found["labels"] = [plain(label) for label in labels]
    if candidates is not None:
        found["candidates"] = [split(value) for value in candidates]
    if instances is not None:
        found["instance_labels"] = [plain(label) for label in instances]
    return found


_LISTED = "if it is the name of a class, list all classes: classes=[...]"


def _texts(labels: list[Any]) -> list[Any]:
    """Return the names of labels, None if they are missing."""
    return [None if label is None else class_name(label) for label in labels]


def _numbers(table: _Frame, at: Sequence[int], starts: list[int], what: str) -> NDArray[np.float64]:
    """Return columns of numbers as an array."""
    return np.stack([_floats(table.column(c), table.names[c], f, starts, what) for f, c in enumerate(at)], axis=1)


def _floats(column: Any, name: str, number: int, starts: list[int], what: str) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where they are missing."""
    if getattr(column.dtype, "kind", "") in tuple("biuf"):  # of pandas
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.asarray(column.to_numpy())
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    floats = np.empty(len(values))
    for row, value in enumerate(column.to_list()):
        if is_missing(value):
            floats[row] = np.nan
        elif isinstance(value, (numbers.Real, decimal.Decimal)):
            floats[row] = float(value)
        else:
            bag = int(np.searchsorted(starts, row, side="right"))
            shown = quoted(value) if isinstance(value, str) else str(value)
            thing = f"feature {number + 1}" if what == "feature" else f"the coordinate in the column {quoted(name)}"
            raise DataError(
                f"row {row + 1}: bag {bag}: {thing} is {shown}, not a number",
                f"if the column {quoted(name)} is not a feature, leave it out with ignore=[{quoted(name)}]",
                line=row + 1,
            )
    return floats


def read(kind: type[_B], path: Path, arguments: Mapping[str, Any]) -> _B:
    """Read bags from a file: the program reads it and writes what it read as arrays."""
    known = {*inspect.signature(kind.from_frame).parameters} - {"frame"} | {"max_bytes"}
    for name in sorted({*arguments} - known):
        raise TypeError(f"Bags.read has no argument {name!r}")
    given = dict(arguments)
    if path.suffix.lower() == ".parquet":
        given.pop("max_bytes", None)
        return _read_parquet(kind, path, given)
    limit = _process.options(max_bytes=given.pop("max_bytes", None))
    for name in ("features", "ignore", "coords", "classes"):
        if given.get(name) is not None:
            given[name] = _listed_names(given[name])
    text = _process.yaml({name: value for name, value in given.items() if value is not None}, "Bags.read")
    with _process.temporary_folder() as folder:
        args = ["data", "import", str(path), str(folder / "bags.npz"), "--python", text]
        result = _process.call(*args, *limit, hide=folder)
        with _process.writing(folder), np.load(folder / "bags.npz") as arrays:
            bags = _from_arrays(kind, {key: arrays[key] for key in arrays}, result["labels"])
    for warning in result["warnings"] or ():
        _process.warn(_words.in_python(warning, folder, {}))
    return bags


def _read_parquet(kind: type[_B], path: Path, arguments: Mapping[str, Any]) -> _B:
    """Read a file of the format Parquet, which the program does not read, with pandas."""
    _frames.require_pandas()
    import pandas

    try:
        frame = pandas.read_parquet(path)
    except ImportError:
        raise
    except Exception as err:  # pyarrow has many exceptions
        text = "there is no such file" if isinstance(err, FileNotFoundError) else f"the file cannot be read: {err}"
        raise DataError(text, file=str(path)) from err
    try:
        return kind.from_frame(frame, **arguments)
    except DataError as err:
        raise DataError([{**problem, "file": str(path)} for problem in err.problems]) from None


def _from_arrays(kind: type[_B], arrays: Mapping[str, Any], labels: str) -> _B:
    """Make bags of the arrays that the program wrote. labels is the kind of the labels."""
    matrix = arrays.get("labels" if labels == "multi" else "candidates")
    classes = arrays.get("class_names")
    if classes is None and matrix is not None:
        classes = np.arange(matrix.shape[1])

    def named(key: str) -> Any:
        if key not in arrays or classes is None:
            return None
        return [None if c < 0 else classes[c] for c in arrays[key].tolist()]

    bags = kind(
        arrays["instances"],
        arrays["offsets"],
        labels=matrix if labels == "multi" else named("labels"),
        candidates=matrix if labels in ("candidates", "noisy") else None,
        classes=classes,
        noisy=labels == "noisy",
        names=arrays.get("bag_names"),
        groups=arrays.get("groups"),
        group_name=str(arrays["group_name"][0]) if "group_name" in arrays else "group",
        coords=arrays.get("coords"),
        instance_labels=named("instance_labels"),
        feature_names=arrays.get("feature_names"),
    )
    bags.generator = str(arrays["generator"][0]) if "generator" in arrays else None
    return bags
