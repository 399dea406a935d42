"""Runs the notebooks, and the Python code of the README and of docs/python.md as it is printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "python" / "notebooks").glob("*.py"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(code: str, folder: Path) -> str:
    """Run Python code in a process of its own and return its output."""
    environment = os.environ | {"MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "error::UserWarning:__main__", "-c", code]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path) -> None:
    """A notebook is a script, in the percent format of Jupytext."""
    for module in ("matplotlib", "pandas", "sklearn"):
        pytest.importorskip(module)
    if path.stem == "go-service" and shutil.which("go") is None:
        pytest.skip("needs Go")
    run(path.read_text("utf-8"), path.parent)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_page(page: str, tmp_path: Path) -> None:
    """The blocks of a page are one program. A text block below a Python block shows its output.

    Numbers may differ, since they depend on the processor.
    """
    pytest.importorskip("pandas")
    code, expected, last = "", "", ""
    for language, text in BLOCK.findall((REPOSITORY / page).read_text("utf-8")):
        if language == "python":
            code += text
        elif last == "python":
            expected += text
        last = language
    assert code and expected
    assert without_numbers(run(code, tmp_path)) == without_numbers(expected)


def without_numbers(text: str) -> list[str]:
    return re.sub(r"[0-9][0-9.e+-]*", "#", text).split()
