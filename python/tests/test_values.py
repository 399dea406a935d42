"""Tests of the values that callers pass: texts stay texts, paths may begin with ~, and only documented errors occur."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import miplc
from miplc import Bags, DataError, MiplcError, SpecError

ONE = {"train.epochs": 1}
NAMES = ["x.csv #2.csv", "[x] bags.csv", "{a}.csv", "*b.csv", "&b.csv", "@x.csv", "a: b.csv", " lead.csv", "'q'.csv"]
NAMES += ["- x.csv", "-x.csv", "%41.csv", "null.csv", "caf\u00e9 \U0001f600.csv", 'a"b.csv', "a\\b.csv", "a,b.csv"]


def table(classes: str) -> str:
    rows = [f"b{i},{classes[i % len(classes)]},{' '.join(classes)},{i % 3},{i * 7 % 5}" for i in range(12)]
    return "\n".join(["bag,label,candidates,f,g", *rows]) + "\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_a_path_is_the_file_of_this_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text(table("uvw"))
    for name in NAMES:
        Path(name).write_text("bag,label,candidates,f\n")
        with pytest.raises(DataError, match="no rows after the header"):  # of this file, not of x.csv
            miplc.train("demipl", name, settings=ONE, progress=False)
        Path(name).write_text(table("uvwz"))
    for name in NAMES[:2]:
        assert miplc.train("demipl", name, settings=ONE, progress=False).model.classes == list("uvwz"), name
    assert Bags.read("-x.csv").class_names == list("uvwz")
    Path("-spec.yaml").write_text("extends: demipl\nname: dash\n")
    assert miplc.train("-spec.yaml", "x.csv", settings=ONE, progress=False).summary["name"] == "dash"


@pytest.mark.parametrize("name", ["2024", "null", "a: b", "a #b", "1e3", "2024-01-01", "yes", "'q'", "*", "[x]"])
def test_names_of_groups(name: str) -> None:
    bags = Bags([np.ones((2, 3)) * i for i in range(20)], labels=list("ab") * 10)
    with pytest.raises(SpecError, match="a training share of 0.7 of the bags"):  # one group cannot be divided
        miplc.train("demipl", bags.with_groups(["p"] * 20, name), settings=ONE, progress=False)


@pytest.mark.parametrize("name", ["2024", "a #b"])
def test_groups_stay_together(name: str) -> None:
    bags = Bags([np.ones((2, 3)) * i for i in range(20)], labels=list("ab") * 10)
    grouped = bags.with_groups([f"p{i // 2}" for i in range(20)], name)
    run = miplc.train("demipl", grouped, settings=ONE, progress=False)
    assert all((i in run.split["train"]) == (i + 1 in run.split["train"]) for i in range(1, 20, 2))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
@pytest.mark.parametrize("name", ["a #b", "a: b", "[x]", "@x, y"])
def test_names_of_temporary_folders(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bags: Bags) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
    estimator = miplc.MIPLClassifier("demipl", train__epochs=1)
    splits = [(range(30), range(30, 60))]
    assert not np.isnan(miplc.fit_many(estimator, bags, params={"train__lr": [0.1, 0.2]}, splits=splits).scores).any()


def test_texts_of_settings(bags: Bags) -> None:
    for text in ("a, b [1", "x # y", "{a: 1}", "null", "\u2028 \U0001f600"):
        with pytest.raises(SpecError) as caught:
            miplc.train("demipl", bags, settings={"train.optimizer": text}, progress=False)
        assert text.split("\u2028")[0].strip() in str(caught.value)
    many = {"train__lr": [0.1], "train__optimizer": ["a, train.epochs=x"]}
    with pytest.raises(SpecError, match="a, train.epochs=x"):
        miplc.fit_many(miplc.MIPLClassifier("demipl"), bags, params=many)
    assert miplc.synth(bags=20, features=2, classes=["a,b", 'c "d"']).class_names == ["a,b", 'c "d"']


def test_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bags: Bags) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    bags.write("~/bags.npz")
    run = miplc.train("demipl", "~/bags.npz", settings=ONE, output="~/run", progress=False)
    assert run.folder == tmp_path / "run" and len(Bags.read("~/bags.npz")) == 60
    assert miplc.load("~/run").save("~/model.onnx") == tmp_path / "model.onnx"
    assert miplc.Run.read("~/run").summary == run.summary
    miplc.MIPLClassifier("demipl", train__epochs=1, output="~/fit").fit(bags)
    assert (tmp_path / "fit" / "summary.json").exists() and os.listdir() == []





@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "~nobody-has-this-name/x", "none"])
@pytest.mark.parametrize(
    "use",
    [
        miplc.load,
        miplc.Run.read,
        lambda name: Bags.read(name + ".npz"),
        lambda name: miplc.train("quickstart", name + ".npz", settings=ONE, progress=False),
        lambda name: miplc.train(name, progress=False),
        lambda name: miplc.train("quickstart", output=f"{name}/x" if name == "none" else name, settings={"a": 1}),
        lambda name: miplc.train("quickstart", output=name, resume=True, settings={"a": 1}),
        lambda name: miplc.experiment(name, progress=False),
        miplc.report,
        lambda name: Bags([np.ones((1, 2))]).write(f"{name}/{name}.npz"),
    ],
)
def test_paths_that_do_not_exist(use: Callable[[str], Any], name: str) -> None:
    with pytest.raises(MiplcError):
        use(name)


def test_paths_of_another_type() -> None:
    for use in (miplc.load, Bags.read, miplc.Run.read, miplc.report):
        with pytest.raises(MiplcError, match="is of the type int"):
            use(5)  # type: ignore[operator]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locale")
def test_locale_without_unicode(tmp_path: Path) -> None:
    code = """
import miplc
for settings in ({"train.\\u00e9poch": 1}, {"train.optimizer": "\\u00e9"}):
    try:
        miplc.train("quickstart", settings=settings, progress=False)
    except miplc.SpecError as err:
        print(ascii(str(err)))
try:
    miplc.load("\\u00e9")
except miplc.DataError as err:
    print("DataError")
"""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert said.stderr == "" and said.stdout.count("\\xe9") >= 2 and "DataError" in said.stdout


def test_only_data_errors_of_damaged_files(tmp_path: Path, bags: Bags) -> None:
    bags.write(tmp_path / "bags.npz")
    whole = (tmp_path / "bags.npz").read_bytes()
    random = np.random.default_rng(0)
    damaged = [b"", b"PK\x03\x04 no archive", whole[: len(whole) // 2], b"\x93NUMPY"]
    for _ in range(20):
        changed = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            changed[at] ^= int(random.integers(1, 256))
        damaged.append(bytes(changed))
    for number, contents in enumerate(damaged):
        for ending in (".npz", ".h5", ".csv", ".csv.gz", ".mat", ".npy", ".safetensors", ".parquet"):
            path = tmp_path / f"damaged-{number}{ending}"
            if number > 3 and ending != ".npz":
                continue
            path.write_bytes(contents)
            try:
                Bags.read(path)
            except DataError as err:
                assert err.file is not None


def test_folders_of_killed_interpreters(tmp_path: Path, temporary: Path) -> None:
    start = "import miplc, sys; from miplc import _process\nwith _process.temporary_folder() as folder:\n"
    other = [sys.executable, "-c", start + "    print(folder, flush=True); sys.stdin.read()"]
    with subprocess.Popen(other, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        with subprocess.Popen(other, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
            assert killed.stdout is not None and running.stdout is not None
            folders = [Path(process.stdout.readline().strip()) for process in (killed, running) if process.stdout]
            assert [folder.parent for folder in folders] == [temporary, temporary]
            killed.kill()
            killed.wait()
            assert folders[0].is_dir()
            subprocess.run([sys.executable, "-c", start + "    pass"], check=True)
            assert not folders[0].exists() and folders[1].is_dir()
            running.communicate("")
    assert list(temporary.iterdir()) == []


def test_version(program: Callable[..., dict[str, Any]]) -> None:
    assert miplc.__version__.split("+")[0] == program("version")["miplc"].split("+")[0]
    with pytest.raises(AttributeError, match="no attribute 'version'"):
        miplc.version  # noqa: B018


def test_report_in_a_few_lines(bags: Bags) -> None:
    learners = [{"name": "a", "spec": "demipl", "set": {"train.epochs": 1}}]
    definition = {"name": "e", "learners": learners, "splits": {"count": 2}}
    report = miplc.experiment(definition, data={"d": bags}, progress=False)
    assert repr(report).startswith("<Report: 2 results, ") and len(repr(report)) < 1000
    assert "<h4>" in report._repr_html_()
