"""Starts the program: ``python -m miplc train quickstart`` is ``miplc train quickstart``."""

import os
import subprocess
import sys

from . import _program
from .errors import TrainingError


def main() -> int:
    """Replace this process with the program, and on Windows, which cannot, wait for it."""
    try:
        command = [_program.path(), *sys.argv[1:]]
    except TrainingError as err:
        print(f"error: {err}", file=sys.stderr)
        return 1
    if sys.platform == "win32":
        return subprocess.call(command)
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
