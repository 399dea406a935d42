"""Fixtures of all tests: the program, bags, and a check that no temporary file remains."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import miplc
from miplc import Bags, _program


def pytest_sessionstart() -> None:
    try:
        _program.path()
    except miplc.TrainingError as err:
        pytest.exit(f"{err}\nbuild it with: go build -o miplc ./cmd/miplc && export MIPLC=$PWD/miplc", 1)


def pytest_report_header() -> str:
    return f"program: {_program.path()}"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use an own folder for temporary files, which must be empty after each test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert [p.name for p in folder.glob("miplc-*")] == []


@pytest.fixture
def program() -> Callable[..., dict[str, Any]]:
    """Run a command of the program and return its JSON object."""

    def run(*args: object) -> dict[str, Any]:
        command = [_program.path(), *map(str, args), "--json"]
        found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True).stdout)
        return found

    return run


@pytest.fixture(scope="session")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Bags:
    """Bags of three classes with one false label in each candidate set."""
    path = tmp_path_factory.mktemp("bags") / "bags.npz"
    args = ["data", "synth", "prototypes", "--bags", "60", "--features", "4", "--classes", "cat,dog,horse"]
    subprocess.run([_program.path(), *args, "--noise", "0.2", "-o", str(path)], check=True, capture_output=True)
    return Bags.read(path)


@pytest.fixture(scope="session")
def truth(bags: Bags) -> list[str]:
    """The true labels of the bags."""
    assert bags.labels is not None
    return [str(bags.classes[i]) for i in bags.labels]


@pytest.fixture(scope="session")
def candidates(bags: Bags) -> list[set[str]]:
    """The candidate sets of the bags."""
    assert bags.candidates is not None
    return [set(bags.classes[row].tolist()) for row in bags.candidates]
