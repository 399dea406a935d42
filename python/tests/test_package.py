"""Tests of the package: the time of its import, and its optional dependencies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ONLY_REQUIRED = """
import sys
for name in ("pandas", "polars", "tqdm", "matplotlib", "sklearn", "h5py"):
    sys.modules[name] = None
import miplc
bags = miplc.synth("prototypes", bags=30, features=3)
run = miplc.train("demipl-mlp", bags, settings={"train.epochs": 1})
classifier = miplc.MIPLClassifier(train__epochs=1).fit(bags)
print(classifier, run.accuracy, classifier.score(bags), len(classifier.attention(bags)))
try:
    run.history
except ImportError as err:
    print(err)
try:
    miplc.MIPLClassifier().predict(bags)
except AttributeError as err:
    print(err)
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_only_numpy_and_onnxruntime_are_required() -> None:
    said = run(ONLY_REQUIRED)
    assert "MIPLClassifier(train__epochs=1)" in said and "frames need pandas" in said and "call fit first" in said


def test_import() -> None:
    optional = "pandas polars tqdm matplotlib sklearn h5py onnxruntime asyncio"
    assert run(f"import sys, miplc; print([m for m in '{optional}'.split() if m in sys.modules])").strip() == "[]"


EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    said = subprocess.run([sys.executable, path, "2", "3"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "best" in said.stdout
