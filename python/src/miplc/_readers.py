"""Reads bags from frames of pandas and polars, and from files, which the program reads."""

from __future__ import annotations

import datetime
import decimal
import difflib
import inspect
import numbers
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _frames, _process, _words
from ._rules import RULES, suspect
from .bags import Bags, class_name, is_missing, quoted
from .errors import DataError

_B = TypeVar("_B", bound=Bags)
_ROLES = ("bag", "label", "candidates", "instance_label", "group")


class _Frame:
    """A frame whose columns are found by their names as those of a CSV file."""

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "iloc") and not hasattr(frame, "to_series") or getattr(frame, "ndim", 2) != 2:
            text = f"the frame is of the type {type(frame).__name__}; a frame of pandas or polars is needed"
            raise DataError(text, "call frame.collect()" if hasattr(frame, "collect") else "for arrays: Bags")
        self.frame, self.names = frame, [_name(name) for name in frame.columns]
        if len(frame) == 0:
            raise DataError("the frame has no rows")

    def find(self, name: Any) -> int | None:
        """Return the column with a name, if necessary in another case."""
        for names, wanted in ((self.names, _name(name)), ([n.casefold() for n in self.names], _name(name).casefold())):
            if wanted in names:
                return names.index(wanted)
        return None

    def need(self, names: Any) -> list[int]:
        """Return the columns with the names, or the one name, that a caller passed."""
        found = []
        for name in map(_name, [names] if isinstance(names, (str, numbers.Number)) else names):
            at = self.find(name)
            if at is None:
                problem: dict[str, Any] = {"text": f"the frame has no column {quoted(name)}"}
                if name in map(str, getattr(getattr(self.frame, "index", None), "names", ())):
                    problem["notes"] = ["it is the index: frame.reset_index() makes a column of it"]
                elif near := difflib.get_close_matches(name, self.names, 1):
                    problem["suggestion"] = near[0]
                raise DataError([problem])
            found.append(at)
        return found

    def column(self, at: int) -> Any:
        """Return a column."""
        return self.frame.iloc[:, at] if hasattr(self.frame, "iloc") else self.frame.to_series(at)

    def values(self, at: int) -> list[Any]:
        """Return a column as Python objects: text without spaces around it, and None for missing values."""
        values = [v.item() if isinstance(v, np.generic) else v for v in self.column(at).to_list()]
        values = [v.strip() if isinstance(v, str) else v for v in values]
        return [None if is_missing(v) or isinstance(v, str) and v == "" else v for v in values]


def _name(name: Any) -> str:
    """Return the name of a column as a CSV file has it."""
    if isinstance(name, tuple):
        text = f"the columns of the frame have several levels, such as {name}"
        raise DataError(text, 'join them: frame.columns = ["_".join(map(str, name)) for name in frame.columns]')
    return "" if is_missing(name) else str(name).strip()


def from_frame(kind: type[_B], frame: Any, *, multi: bool, classes: Any, noisy: bool, **columns: Any) -> _B:
    """Make bags of a frame with one row for each instance. columns are the other arguments of Bags.from_frame."""
    table = _Frame(frame)
    roles: dict[str, int] = {}
    for role in _ROLES:
        name = "bag" if role == "bag" and columns[role] is None else columns[role]
        at = table.need(name)[0] if name is not None else table.find(role) if role != "group" else None
        if at is not None and at in roles.values():
            raise DataError(f"the column {quoted(table.names[at])} is used twice, the second time as {role}")
        roles |= {} if at is None else {role: at}
    coords = _coordinates(table, columns, roles)
    features = _features(table, columns, {*roles.values(), *coords})
    starts, names = _starts(table.values(roles["bag"]))
    of_bags = {
        role: _of_bags(table.values(at), starts, names, role)
        for role, at in roles.items()
        if role in ("label", "candidates", "group") and not (multi and role == "candidates")
    }
    if None in of_bags.get("group", ()):
        bag = of_bags["group"].index(None)
        group = table.names[roles["group"]]
        raise DataError(f"bag {bag + 1} ({quoted(names[bag])}) has no group: the column {group} is empty")
    instance_labels = table.values(roles["instance_label"]) if "instance_label" in roles else None
    return kind(
        np.stack([_floats(table, at, starts) for at in features], axis=1),
        np.array([*starts, len(frame)]),
        **_labels(of_bags, instance_labels, multi, classes),
        classes=classes,
        noisy=noisy,
        names=None if names == [str(i + 1) for i in range(len(names))] else names,
        groups=of_bags.get("group"),
        group_name="group" if columns["group"] is None else str(columns["group"]),
        coords=np.stack([_floats(table, at, starts) for at in coords], axis=1) if coords else None,
        feature_names=[table.names[at] for at in features],
    )


def _coordinates(table: _Frame, columns: Mapping[str, Any], roles: Mapping[str, int]) -> list[int]:
    """Return the columns of x and y, none if the frame has none."""
    if columns["coords"] is not None:
        found = table.need(columns["coords"])
        if len(found) != 2 or found[0] == found[1]:
            raise DataError("coords needs the names of two columns, x and y")
        return found
    others = {*roles.values(), *table.need(columns["features"] or ()), *table.need(columns["ignore"])}
    found = [table.names.index(name) for name in ("x", "y") if name in table.names]
    return found if len(found) == 2 and not others & {*found} else []


def _features(table: _Frame, columns: Mapping[str, Any], used: set[int]) -> list[int]:
    """Return the columns of the features. Those that are named like identifiers must be declared."""
    if columns["features"] is not None:
        found = table.need(columns["features"])
    else:
        ignored = table.need(columns["ignore"])
        found = [at for at in range(len(table.names)) if at not in used and at not in ignored]
        first = {at: table.column(at)[:1].to_list()[0] for at in found}
        names = table.names
        for why, wrong in (
            ("named like an identifier or a coordinate, not like a feature", [c for c in found if suspect(names[c])]),
            ("its values are text, and features are numbers", [c for c in found if isinstance(first[c], str)]),
            ("its values are dates", [c for c in found if _is_dates(table.column(c), first[c])]),
        ):
            if wrong:
                raise _undeclared([names[c] for c in wrong], why)
    names = [table.names[at] for at in found]
    if not found:
        raise DataError("the frame has no column with a feature")
    for name in {name for name in names if names.count(name) > 1}:
        raise DataError(f"two columns are named {quoted(name)}", "rename one of them, or leave both out with ignore")
    return found


def _undeclared(names: Sequence[str], why: str) -> DataError:
    """Return the error that the caller has to say whether columns are features."""
    if "" in names:
        return DataError("a column has no name, as a column of row numbers", "leave it out: frame.drop(columns=...)")
    listed = ", ".join(quoted(name) for name in names[:10])
    groups = [name for name in names if name.lower() in RULES["group_columns"]][:1]
    advice = [f"to keep the bags of a {name} in one part of the split: group={quoted(name)}" for name in groups]
    advice += [f"leave columns out with ignore=[{listed}]", "or list all columns of features: features=[...]"]
    return DataError(f"{'column' if len(names) == 1 else 'columns'} {listed}: {why}", *advice)


def _is_dates(column: Any, first: Any) -> bool:
    """Report whether a column, of which first is the first value, has dates, times, periods or durations."""
    dated = isinstance(first, (datetime.date, datetime.time, datetime.timedelta)) or hasattr(first, "to_timestamp")
    return getattr(column.dtype, "kind", "") in tuple("Mm") or dated and not is_missing(first)


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
    for i, (start, end) in enumerate(zip(starts, [*starts[1:], len(column)])):
        for row in range(start + 1, end):
            value, there = column[row], column[start]
            listed = isinstance(value, (list, np.ndarray)) and isinstance(there, (list, np.ndarray))
            if value is not None and not (list(value) == list(there) if listed else value == there):
                differ = f"{quoted(class_name(value))} here and {quoted(class_name(there))} in row {start + 1}"
                text = f"row {row + 1}: bag {i + 1} ({quoted(names[i])}) has the {what} {differ}"
                raise DataError(text, line=row + 1)
    return [column[start] for start in starts]


def _labels(of_bags: Mapping[str, list[Any]], instances: list[Any] | None, multi: bool, classes: Any) -> dict[str, Any]:
    """Return the labels of the columns, for the constructor of Bags."""
    labels, candidates = of_bags.get("label", []), of_bags.get("candidates")
    as_text = any(isinstance(value, str) for value in candidates or ())  # then a label 1 is the class "1"
    given = set() if classes is None else set(classes)

    def plain(label: Any) -> Any:
        """Return a class: 1.0 is how pandas writes the class 1 if other fields of the column are empty."""
        label = class_name(label) if as_text and label is not None else label
        if not isinstance(label, str) or label in given:
            return label
        if classes is None and any(mark in label for mark in RULES["separators"]):
            advice = "separate candidates with spaces, e.g. cat dog, or write them as a list"
            text = f"{quoted(label)} does not look like the name of a class"
            raise DataError(text, advice, "if it is the name of a class, list all classes: classes=[...]")
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


def _floats(table: _Frame, at: int, starts: list[int]) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where they are missing."""
    column, name = table.column(at), quoted(table.names[at])
    if getattr(column.dtype, "kind", "") in tuple("biuf"):  # of pandas
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.asarray(column.to_numpy())
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    for row, value in enumerate(listed := column.to_list()):
        if is_missing(value):
            listed[row] = np.nan
        elif not isinstance(value, (numbers.Real, decimal.Decimal)):
            bag = int(np.searchsorted(starts, row, side="right"))
            shown = quoted(value) if isinstance(value, str) else str(value)
            text = f"row {row + 1}: bag {bag}: the column {name} has {shown}, which is not a number"
            raise DataError(text, f"if it is not a feature, leave it out with ignore=[{name}]", line=row + 1)
    return np.array(listed, dtype=np.float64)


def read(kind: type[_B], path: Path, arguments: Mapping[str, Any]) -> _B:
    """Read bags from a file: the program reads it and writes what it read as arrays."""
    known = {*inspect.signature(kind.from_frame).parameters} - {"frame"} | {"max_bytes"}
    for name in sorted({*arguments} - known):
        raise TypeError(f"Bags.read has no argument {name!r}")
    given = {name: v for name, v in arguments.items() if v is not None and (name != "ignore" or len(v))}
    limit = _process.options(max_bytes=given.pop("max_bytes", None))
    if path.suffix.lower() == ".parquet":
        return _read_parquet(kind, path, given)
    for name, value in given.items():
        single = isinstance(value, (str, numbers.Number))
        listed = [_name(one) for one in ([value] if single else value)]
        given[name] = bool(value) if name in ("multi", "noisy") else listed[0] if name in _ROLES else listed
    with _process.temporary_folder() as folder:
        args = ["data", "import", str(path), str(folder / "bags.npz"), "--python", _process.yaml(given, "Bags.read")]
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
