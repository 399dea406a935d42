"""The public names of the package remain from version to version, with their parameters.

MIPLC_UPDATE=1 adds new ones to the promises of the newest version.
"""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import miplc

FOLDER = Path(__file__).parents[2] / "internal" / "compatibility"


def public() -> list[str]:
    """Return a line for each function, class, method, attribute and parameter with its default."""
    lines = []

    def add(name: str, thing: object) -> None:
        lines.append(name)
        if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Warning)):
            for parameter in inspect.signature(thing).parameters.values():
                default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
                if parameter.name not in ("self", "cls"):
                    lines.append(f"{name}({parameter.kind.description} {parameter.name}{default})")

    for name in miplc.__all__:
        thing = getattr(miplc, name)
        add(name, thing)
        if inspect.isclass(thing):
            for cls in thing.__mro__:
                if cls.__module__.startswith("miplc"):
                    members = vars(cls) | {field: None for field in vars(cls).get("__annotations__", {})}
                    for member, value in members.items():
                        if not member.startswith("_"):
                            value = getattr(value, "__func__", value)  # of a class method
                            add(f"{name}.{member}", value if inspect.isfunction(value) else None)
    return sorted(set(lines))


def test_promises() -> None:
    files = sorted(FOLDER.glob("[0-9]*.[0-9]*"), key=lambda folder: [int(n) for n in folder.name.split(".")])
    promised = [line for folder in files for line in lines_of(folder / "python.txt")]
    now = public()
    assert [line for line in promised if line not in now] == [], "a version promises this (docs/compatibility.md)"
    new = [line for line in now if line not in promised]
    if new and os.environ.get("MIPLC_UPDATE"):
        with (files[-1] / "python.txt").open("a", encoding="utf-8") as out:
            out.write("\n".join(new) + "\n")
        new = []
    assert new == [], "if users shall rely on these, run with MIPLC_UPDATE=1 and add a line to CHANGELOG.md"


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file, none if it does not exist."""
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
