"""The search for the program miplc."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

from .errors import TrainingError

VARIABLE = "MIPLC"
_NAME = "miplc.exe" if sys.platform == "win32" else "miplc"


def path() -> str:
    """Return the path of the program: that of ``MIPLC``, of the wheel, or of the search path."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.path.isfile(named):
            raise TrainingError(f"the program miplc was not found: {VARIABLE} names {named}")
        return named
    found = _installed() or shutil.which(_NAME)
    if found is None:
        raise TrainingError(
            "the program miplc was not found: install the wheel of miplc for this system, "
            f"or set {VARIABLE} to the path of the program"
        )
    return found


@functools.cache
def _installed() -> str | None:
    """Return the program that was installed with this package, wherever the installer put it."""
    from importlib import metadata

    try:
        files = metadata.files("miplc") or []
    except metadata.PackageNotFoundError:  # a checkout on PYTHONPATH
        files = []
    # pip install --target puts it there, and lists a wrong path.
    programs = [Path(__file__).parents[1] / "bin" / _NAME]
    programs += [Path(str(file.locate())) for file in files if file.name == _NAME]
    return next((os.path.realpath(program) for program in programs if program.is_file()), None)
