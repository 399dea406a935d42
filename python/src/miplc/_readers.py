"""Bags from files and from frames of pandas and polars. The program reads both."""

from __future__ import annotations

import csv
import itertools
import json
import numbers
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _frames, _process, _words
from ._labels import class_name, is_missing, is_set, members
from .errors import DataError

_ROLES = ("bag", "label", "candidates", "instance_label", "group")
_WORDS = {
    "no rows after the header": "the frame has no rows",
    "the header": "the frame",
    "its values are text,": "its values are text or dates,",
    "table.sort_values": "frame.sort_values",
}


def from_frame(frame: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of Bags, and generator, for a frame, which the program reads as a CSV file.

    The header of the file names all columns. The rows lack columns of numbers: these are taken from the frame.
    """
    columns = _columns(frame)
    given = {**_arguments(arguments), "frame": True}
    named = [v if isinstance(v, list) else [str(v)] for key, v in given.items() if key != "ignore"]
    read = {_folded(name) for name in ("", *_ROLES, "x", "y", *itertools.chain(*named))}
    texts: dict[int, list[Any]] = {}
    numeric: dict[str, NDArray[np.float64]] = {}
    for at, (name, column) in enumerate(columns):
        if (found := _numbers(column)) is not None:
            numeric[name] = found
        unread = "features" in given or name in given.get("ignore", ())
        if _folded(name) in read or found is None and not unread:
            texts[at] = column.to_list()
    with _process.temporary_folder() as folder:
        path = folder / "frame.csv"
        with _process.writing(path), path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            order = sorted(range(len(columns)), key=lambda at: at not in texts)
            csv.writer(file, quoting=csv.QUOTE_ALL).writerow(columns[at][0] for at in order)
            csv.writer(file).writerows(zip(*(map(_field, values) for values in texts.values())))
        try:
            arrays, labels = _import(path, given, words={f"{path}:": "the frame:", **_WORDS})
        except DataError as err:
            raise DataError([_in_frame(problem, frame) for problem in err.problems]) from None
    if "class_names" in arrays:
        roles = ["label", "instance_label", *["candidates"] * (labels != "multi")]
        of_labels = {_folded(given.get(role, role)) for role in roles}
        values = [texts[at] for at in texts if _folded(columns[at][0]) in of_labels]
        arrays["class_names"] = _classes(arrays["class_names"], [*values, arguments.get("classes") or ()])
    own = {name: j for j, name in enumerate(arrays["feature_names"].tolist())}
    names = given.get("features") or [name for name, _ in columns if name in own]
    parts = [numeric[name] if name in numeric else arrays["instances"][:, own[name]] for name in names]
    return {**_made(arrays, labels), "instances": np.stack(parts, axis=1), "feature_names": names, "generator": None}


def _columns(frame: Any) -> list[tuple[str, Any]]:
    """Return the columns of a frame with their names."""
    if not hasattr(frame, "iloc") and not hasattr(frame, "to_series") or getattr(frame, "ndim", 2) != 2:
        text = f"the frame is of the type {type(frame).__name__}; a frame of pandas or polars is needed"
        raise DataError(text, "call frame.collect()" if hasattr(frame, "collect") else "for arrays: Bags")
    column = frame.to_series if hasattr(frame, "to_series") else lambda at: frame.iloc[:, at]
    return [(_name(name), column(at)) for at, name in enumerate(frame.columns)]


def _name(name: Any) -> str:
    """Return the name of a column as a CSV file has it."""
    if isinstance(name, tuple):
        text = f"the columns of the frame have several levels, such as {name}"
        raise DataError(text, 'join them: frame.columns = ["_".join(map(str, name)) for name in frame.columns]')
    return "" if is_missing(name) else str(name).strip()


def _folded(name: str) -> str:
    """Return what names have in common that the program does not tell apart."""
    return unicodedata.normalize("NFC", name).casefold()


def _numbers(column: Any) -> NDArray[np.float64] | None:
    """Return a column of numbers, NaN where they are missing. None: it is not such a column."""
    pandas = getattr(column.dtype, "kind", "") in tuple("biuf")
    values = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan) if pandas else column.to_numpy())
    return values.astype(np.float64, copy=False) if values.dtype.kind in "biuf" else None


def _field(value: Any) -> str:
    """Return a value as a field of a CSV file, labels as a JSON list."""
    if isinstance(value, str):
        return value
    if is_set(value):
        return json.dumps(sorted(map(class_name, members(value))), ensure_ascii=False)
    return "" if is_missing(value) else class_name(value)


def _in_frame(problem: Mapping[str, Any], frame: Any) -> dict[str, Any]:
    """Return a mistake in the file of a frame with the row of the frame, counted from 1."""
    text, line = problem["text"], problem.get("line") or 1
    index = getattr(getattr(frame, "index", None), "names", ())
    if any(text.endswith(f'has no column "{name}"') for name in index):
        problem = {**problem, "notes": ["it is the index: frame.reset_index() makes a column of it"]}
    text = re.sub(r"\bline (\d+)", lambda found: f"row {int(found[1]) - 1}", text)
    text = f"row {line - 1}: {text}" if line > 1 else text
    return {**problem, "text": text, "file": None, "line": line - 1 or None, "column": None}


def _classes(names: NDArray[np.str_], labels: Sequence[Any]) -> NDArray[Any]:
    """Return the classes with these names as the numbers that all labels of a frame are, or as texts."""
    found: dict[str, Any] = {}
    for label in itertools.chain.from_iterable(map(members, itertools.chain(*labels))):
        if isinstance(label, str) and label.strip():
            return names
        if not isinstance(label, (str, numbers.Real)):
            raise DataError(f"a label is of the type {type(label).__name__}: {label!r}")
        found[class_name(label)] = label
    return np.array([found[name] for name in names.tolist()])


def read(path: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of Bags, and generator, for a file. arguments are those of Bags.read."""
    given = dict(arguments)
    limit = _process.options(max_bytes=given.pop("max_bytes", None))
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, given)
    return _made(*_import(path, _arguments(given), limit))


def _arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of from_frame as the program takes them."""
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in ("multi", "noisy"):
            given[name] = bool(value)
        elif value is not None and (name != "ignore" or len(value)):
            values = [value] if isinstance(value, (str, numbers.Number)) else value
            texts = [class_name(one) if name == "classes" else _name(one) for one in values]
            given[name] = texts[0] if name in _ROLES else texts
    return given


def _import(
    path: Path, given: Mapping[str, Any], options: Sequence[str] = (), words: Mapping[str, str] = MappingProxyType({})
) -> tuple[dict[str, Any], str]:
    """Return the arrays of a file that the program reads, and the kind of its labels."""
    with _process.temporary_folder() as folder:
        args = ["data", "import", str(path), str(folder / "bags.npz"), "--python", _process.yaml(given, "Bags.read")]
        result = _process.call(*args, *options, hide=folder, names=words)
        with _process.writing(folder), np.load(folder / "bags.npz") as arrays:
            found = {key: arrays[key] for key in arrays}
    for warning in result["warnings"] or ():
        _process.warn(_words.in_python(warning, folder, words))
    return found, result["labels"]


def _read_parquet(path: Path, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file of the format Parquet, which the program does not read, with pandas."""
    pandas = _frames.import_pandas()
    try:
        frame = pandas.read_parquet(path)
    except ImportError:
        raise
    except Exception as err:  # pyarrow has many exceptions
        text = "there is no such file" if isinstance(err, FileNotFoundError) else f"the file cannot be read: {err}"
        raise DataError(text, file=str(path)) from err
    try:
        return from_frame(frame, arguments)
    except DataError as err:
        raise DataError([{**problem, "file": str(path), "line": None} for problem in err.problems]) from None


def _made(arrays: Mapping[str, Any], labels: str) -> dict[str, Any]:
    """Return the arguments of Bags, and generator, of arrays that the program wrote. labels is the kind of the labels."""
    matrix = arrays.get("labels" if labels == "multi" else "candidates")
    classes = arrays.get("class_names")
    if classes is None and matrix is not None:
        classes = np.arange(matrix.shape[1])

    def named(key: str) -> Any:
        if key not in arrays or classes is None:
            return None
        return [None if c < 0 else classes[c] for c in arrays[key].tolist()]

    return {
        "instances": arrays["instances"],
        "offsets": arrays["offsets"],
        "labels": matrix if labels == "multi" else named("labels"),
        "candidates": matrix if labels in ("candidates", "noisy") else None,
        "classes": classes,
        "noisy": labels == "noisy",
        "names": arrays.get("bag_names"),
        "groups": arrays.get("groups"),
        "group_name": str(arrays["group_name"][0]) if "group_name" in arrays else "group",
        "coords": arrays.get("coords"),
        "instance_labels": named("instance_labels"),
        "feature_names": arrays.get("feature_names"),
        "generator": str(arrays["generator"][0]) if "generator" in arrays else None,
    }
