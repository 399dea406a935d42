"""Finds the program miplc and the environment that it is started in."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from .errors import TrainingError

VARIABLE = "MIPLC"
_NAME = "miplc.exe" if sys.platform == "win32" else "miplc"


def path() -> str:
    """Return the path of the program: that of ``MIPLC``, of this package, or of the search path."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.path.isfile(named):
            raise TrainingError(f"the program miplc was not found: {VARIABLE} names {named}")
        return named
    packaged = Path(__file__).with_name("bin") / _NAME
    found = str(packaged) if packaged.is_file() else shutil.which(_NAME)
    if found is None:
        raise TrainingError(
            "the program miplc was not found: install the wheel of miplc for this system, "
            f"or set {VARIABLE} to the path of the program"
        )
    return found


def environment() -> dict[str, str]:
    """Return the environment of the program."""
    return dict(os.environ)
