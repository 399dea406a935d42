"""The messages of the program in the words of Python: arguments for flags, and the keys of dicts as places."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FLAGS = (
    (r"; miplc doctor lists what is installed", "; `python -m miplc doctor` lists what is installed"),
    (r"with --data-dir or (?=MIPLC_DATA)", "with "),
    (r"--pjrt-plugin", "MIPLC_PJRT_PLUGIN"),
    (r"unknown flag: --", "unknown argument: "),
    (r"--force", "overwrite=True"),
    (r"--resume", "resume=True"),
    (r"--set ", "the setting "),
    (r"--(engine|device) (auto|cpu|cuda|gorgonia|native|xla)\b", r'\1="\2"'),
    (r"--(ignore|feature)-columns(?: [^ ]+)?, or (?=data\.)", "the setting "),
    (r"see (?=miplc [\w ]+ --help)", "see python -m "),
    (r"(?<!miplc )data inspect", "`python -m miplc data inspect`"),
)
_FLAG = re.compile(r"""(?<![\w"'-])--(?!help\b)([a-z][a-z-]+)""")
_PLACE = re.compile(r"(?<![\w/\\.-])(spec|experiment)\.yaml(?::(\d+))?(?::(\d+))?")
_ARGUMENTS = {"spec": "spec", "experiment": "definition"}  # by the file that the package writes for it


def in_python(value: Any, folder: Path | None, names: Mapping[str, str]) -> Any:
    """Return a part of a message in the words of Python.

    folder has the files that the package wrote for a command; names are the words for others of its files.
    """
    if isinstance(value, list):
        return [in_python(one, folder, names) for one in value]
    if not isinstance(value, str) or folder is None:
        return value
    value = value.replace(f"{folder}{os.sep}", "")
    for old, new in names.items():
        value = value.replace(old, new) if new else value
    for pattern, new in _FLAGS:
        value = re.sub(pattern, new, value)
    value = _PLACE.sub(lambda found: _place(folder, *found.groups()), value)
    return _FLAG.sub(lambda found: found[1].replace("-", "_"), value)


def problem_in_python(problem: Mapping[str, Any], folder: Path | None, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a mistake in the words of Python. A place that the user did not write is left out."""
    found = {key: in_python(value, folder, names) for key, value in problem.items() if key != "file"}
    file = str(problem.get("file") or "").removeprefix(f"{folder}{os.sep}")
    if file in names or file.startswith("--set ") and file.removeprefix("--set ") in names:
        return found | {"file": names.get(file) or None, "line": None, "column": None}
    if _PLACE.fullmatch(file) and folder is not None and (folder / file).exists():
        place = _place(folder, Path(file).stem, str(problem.get("line") or 1), None)
        place = next((new for old, new in names.items() if place.startswith(old)), place)
        if _is_dict(folder / file):
            return found | {"file": place, "line": None, "column": None}
        return found | {"file": _ARGUMENTS[Path(file).stem]}
    if file.startswith("--set "):
        file = "setting " + file.removeprefix("--set ")
    return found | ({"file": file} if file else {})


def _is_dict(path: Path) -> bool:
    return path.read_text("utf-8").startswith("{")


def _place(folder: Path, stem: str, line: str | None, column: str | None) -> str:
    """Return the place of a line of a file that the package wrote: keys of a dict, or the line of a text."""
    path, name = folder / f"{stem}.yaml", _ARGUMENTS[stem]
    if not path.exists():
        return ":".join(part for part in (f"{stem}.yaml", line, column) if part)
    if line is None or not _is_dict(path):
        return ":".join(part for part in (name, line, column) if part)
    keys: list[Any] = []
    for row in path.read_text("utf-8").splitlines()[: int(line)]:  # one entry in each, indented by its depth
        depth, text = len(row) - len(row.lstrip(" ")), row.strip()
        if depth == 0 or text[0] in "]}":
            keys = keys[:depth]
            continue
        key = re.match(r'("(?:[^"\\]|\\.)*"): ', text)
        last = keys[depth - 1] if len(keys) >= depth else -1
        keys[depth - 1 :] = [json.loads(key[1]) if key else last + 1]
    return name + "".join(f"[{json.dumps(key, ensure_ascii=False)}]" for key in keys)
