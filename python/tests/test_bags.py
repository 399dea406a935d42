"""Tests of bags: where they come from, and the words about mistakes, which are those of the program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from miplc import Bags, DataError, _readers

TWO = [np.arange(6.0).reshape(3, 2), np.ones((1, 2))]


def test_forms_of_arrays() -> None:
    for bags in (
        Bags(TWO),
        Bags([bag.tolist() for bag in TWO]),
        Bags(np.concatenate(TWO), np.array([0, 3, 4])),
        Bags(np.array([*TWO, None], dtype=object)[:2]),
        Bags(Bags(TWO)),
        Bags([pd.DataFrame(bag) for bag in TWO]),
    ):
        assert len(bags) == 2 and bags.sizes.tolist() == [3, 1] and bags.kind == "none"
        assert bags.instances.dtype == np.float32 and np.array_equal(bags[0], TWO[0])
    assert Bags(np.zeros((5, 3, 2)))[4].shape == (3, 2)
    assert Bags(np.zeros((2, 3, 1, 28, 28)))[1].shape == (3, 1, 28, 28)


@pytest.mark.parametrize(
    ("given", "classes", "names"),
    [
        ([2, 10], [2, 10], ["2", "10"]),
        ([1.0, 0.0], [0.0, 1.0], ["0", "1"]),
        (["10", "2"], ["2", "10"], ["2", "10"]),
        (["b", "a"], ["a", "b"], ["a", "b"]),
        ([True, False], [False, True], ["False", "True"]),
        (np.array([-1, 1]), [-1, 1], ["-1", "1"]),
        (pd.Series(["b", "a"]), ["a", "b"], ["a", "b"]),
    ],
)
def test_certain_labels(given: Any, classes: list[Any], names: list[str]) -> None:
    bags = Bags(TWO, labels=given)
    assert bags.kind == "known" and bags.classes.tolist() == classes and bags.class_names == names
    assert bags.labels is not None and bags.classes[bags.labels].tolist() == list(given)


def test_candidates() -> None:
    expected = [[True, True], [False, True]]
    for given in ([{"cat", "dog"}, {"dog"}], [["dog", "cat"], "dog"], [("cat", "dog"), np.array(["dog"])]):
        bags = Bags(TWO, candidates=given)
        assert bags.kind == "candidates" and bags.candidates is not None
        assert bags.candidates.tolist() == expected and bags.classes.tolist() == ["cat", "dog"]
    matrix = np.array(expected)
    assert Bags(TWO, candidates=matrix).classes.tolist() == [0, 1]
    named = Bags(TWO, candidates=matrix, classes=["cat", "dog"], labels=["dog", None])
    assert named.labels is not None and named.labels.tolist() == [1, -1]
    noisy = Bags(TWO, candidates=matrix, classes=["cat", "dog"], labels=["dog", "cat"], noisy=True)
    assert noisy.kind == "noisy"


def test_several_labels() -> None:
    for given in ([{"car", "tree"}, set()], np.array([[1, 1], [0, 0]])):
        bags = Bags(TWO, labels=given)
        assert bags.kind == "multi" and bags.labels is not None
        assert bags.labels.tolist() == [[True, True], [False, False]]


def test_parts(bags: Bags) -> None:
    part = bags[[3, 1]]
    assert isinstance(part, Bags) and len(part) == 2 and np.array_equal(part[0], bags[3])
    assert bags.labels is not None and part.labels is not None
    assert part.labels.tolist() == bags.labels[[3, 1]].tolist()
    assert len(bags[:5]) == 5 and len(bags[np.arange(60) < 7]) == 7 and np.array_equal(bags[-1], bags[59])
    with pytest.raises(IndexError):
        bags[60]


FRAME: Any = pd.DataFrame(
    {
        "bag": ["b", "b", "a"],
        "label": ["cat", None, None],
        "candidates": ["cat dog", "", "dog"],
        "patient": ["p", "p", "q"],
        "f1": [0.5, 0.25, 1],
        "f2": [1, -3, 0],
        "x": [0, 1, 2],
        "y": [0, 0, 5],
    }
)


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_frames(frame: Any, tmp_path: Path) -> None:
    bags = Bags.from_frame(frame, group="patient")
    assert bags.names is not None and bags.names.tolist() == ["b", "a"] and bags.feature_names == ["f1", "f2"]
    assert bags.groups is not None and bags.groups.tolist() == ["p", "q"] and bags.group_name == "patient"
    assert bags.coords is not None and bags.coords[2].tolist() == [2, 5]
    assert bags.labels is not None and bags.labels.tolist() == [0, -1]
    assert bags.candidates is not None and bags.candidates.tolist() == [[True, True], [False, True]]
    bags.write(tmp_path / "bags.npz")
    again = Bags.read(tmp_path / "bags.npz")
    for name in ("instances", "offsets", "labels", "candidates", "names", "groups", "coords", "classes"):
        assert np.array_equal(getattr(again, name), getattr(bags, name)), name


def test_lists_in_frames_and_parquet(tmp_path: Path) -> None:
    frame = FRAME.assign(candidates=[["cat", "dog"], None, ["dog"]])
    frame.to_parquet(tmp_path / "bags.parquet")
    for bags in (Bags.from_frame(frame, ignore=["patient"]), Bags.read(tmp_path / "bags.parquet", ignore=["patient"])):
        assert bags.candidates is not None and bags.candidates.tolist() == [[True, True], [False, True]]
    several = FRAME.assign(label=["cat dog", None, ""])
    multi = Bags.from_frame(several, multi=True, ignore=["patient"])
    assert multi.labels is not None and multi.labels.tolist() == [[True, True], [False, False]]


def test_csv_is_read_as_the_program_reads_it(tmp_path: Path, program: Callable[..., dict[str, Any]]) -> None:
    text = "bag,label,candidates,f1\n001,10,10 1,0.5\n002,1,1 2,1\n002,,,2\n003,,2 10,1\n"
    (tmp_path / "bags.csv").write_text(text)
    bags = Bags.read(tmp_path / "bags.csv")
    assert (
        bags.class_names == ["1", "2", "10"] and bags.names is not None and bags.names.tolist() == ["001", "002", "003"]
    )
    assert bags.labels is not None and bags.labels.tolist() == [2, 0, -1]
    bags.write(tmp_path / "bags.npz")
    hashes = [program("data", "inspect", tmp_path / f"bags.{e}")["sets"][0]["sha256"] for e in ("csv", "npz")]
    assert hashes[0] == hashes[1]
    numbered = Bags.from_frame(
        pd.DataFrame({"bag": [1, 2], "label": [1, None], "candidates": ["1 2", "2"], "f": [0, 1]})
    )
    assert numbered.class_names == ["1", "2"] and numbered.labels is not None and numbered.labels.tolist() == [0, -1]


def test_hdf5(tmp_path: Path, bags: Bags) -> None:
    import h5py

    with h5py.File(tmp_path / "slides.h5", "w") as file:
        for name, bag in zip(("s1", "s2"), TWO):
            file[f"{name}/features"], file[f"{name}/coords"] = bag, np.zeros((len(bag), 2))
    slides = Bags.read(tmp_path / "slides.h5").with_labels({"s2": "tumor", "s1": "normal"})
    assert slides.labels is not None and slides.labels.tolist() == [0, 1] and slides.coords is not None
    with h5py.File(tmp_path / "slide 1.h5", "w") as file:  # as CLAM and TRIDENT write it
        file["features"], file["coords"] = TWO[0], np.array([[0, 1], [2, 3], [4, 5]])
    slide = Bags.read(tmp_path / "slide 1.h5")
    assert slide.names is not None and slide.names.tolist() == ["slide 1"] and np.array_equal(slide[0], TWO[0])
    assert slide.coords is not None and slide.coords.tolist() == [[0, 1], [2, 3], [4, 5]] and slide.kind == "none"
    np.save(tmp_path / "slide-2.npy", TWO[1])
    (tmp_path / "table.csv").write_text("bag,label,file\na,tumor,slide 1.h5\nb,normal,slide-2.npy\n")
    for table in (Bags.read(tmp_path / "table.csv"), Bags.read(tmp_path / "table.csv", label="label")):
        assert table.class_names == ["normal", "tumor"] and table.sizes.tolist() == [3, 1] and table.kind == "known"
        assert np.array_equal(table.instances, np.concatenate(TWO).astype(np.float32))
    with h5py.File(tmp_path / "bags.h5", "w") as file:
        file["instances"], file["offsets"] = bags.instances, bags.offsets
    with pytest.raises(DataError, match='no array "features"; it has instances, offsets'):
        Bags.read(tmp_path / "bags.h5")


# The program finds the same mistakes in files with these arrays as the constructor, in the same words.
GOOD: dict[str, Any] = {
    "instances": np.ones((4, 2), np.float32),
    "offsets": np.array([0, 3, 4]),
    "candidates": np.array([[1, 1], [0, 1]], np.uint8),
    "labels": np.array([0, -1]),
    "class_names": np.array(["cat", "dog"]),
}
NAN = np.array([[1, 1], [np.nan, 1], [1, 1], [1, np.inf]], np.float32)


@pytest.mark.parametrize(
    "wrong",
    [
        {"instances": NAN},
        {"offsets": np.array([0, 4, 4])},
        {"offsets": np.array([0, 3, 2])},
        {"offsets": np.array([1, 3, 4])},
        {"offsets": np.array([0, 3, 5])},
        {"labels": np.array([0, 0])},
        {"labels": np.array([0, 0, 1])},
        {"candidates": np.array([[0, 0], [1, 1]], np.uint8)},
        {"candidates": np.array([[0, 1], [0, 1]], np.uint8), "labels": np.array([1, 1])},
        {"candidates": np.array([[1], [1]], np.uint8), "labels": np.array([0, 0]), "class_names": np.array(["cat"])},
        {"bag_names": np.array(["a", "a"])},
        {"bag_names": np.array(["a", " b"])},
        {"bag_names": np.array(["a"])},
        {"bag_names": np.array(["a", "NA"])},
        {"groups": np.array(["a", "nan"])},
        {"feature_names": np.array(["a", "a"])},
        {"feature_names": np.array(["a", " b"])},
        {"class_names": np.array(["a", "a"])},
        {"groups": np.array(["a", ""])},
        {"groups": np.array(["a", "a", "a"])},
        {"coords": np.zeros((3, 2), np.float32)},
        {"coords": np.full((4, 2), np.nan, np.float32)},
        {"feature_names": np.array(["a"])},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_words_of_the_program(wrong: dict[str, Any], tmp_path: Path, program: Callable[..., dict[str, Any]]) -> None:
    np.savez(tmp_path / "bags.npz", **{**GOOD, **wrong})
    said = program("data", "inspect", tmp_path / "bags.npz")["errors"]
    with pytest.raises(DataError) as caught:
        Bags._made(_readers._made({**GOOD, **wrong}, "candidates"))
    assert [p["text"] for p in caught.value.problems] == [p["text"] for p in said]
    with pytest.raises(DataError) as read:
        Bags.read(tmp_path / "bags.npz")
    assert [p["text"] for p in read.value.problems] == [p["text"] for p in said]
    assert read.value.file == str(tmp_path / "bags.npz") and read.value.line is None
    if said[0]["text"].startswith("bag "):
        assert caught.value.bag == int(said[0]["text"].split()[1].strip(":"))


@pytest.mark.parametrize(
    ("make", "text", "bag"),
    [
        (lambda: Bags([np.ones((2, 3)), np.ones((2, 4))]), "the shape [4], those of the first bag [3]", 2),
        (lambda: Bags([[[1, 2], [3]]]), "its instances have different numbers of features", 1),
        (lambda: Bags([np.array([[1, "x"]], object)]), 'feature 2 of instance 1 is "x", not a number', 1),
        (lambda: Bags([np.array([[1, None]], object)]), "feature 2 of instance 1 is None, not a number", 1),
        (lambda: Bags([np.ones((1, 2)) * 1j]), "is 1j, not a number", 1),
        (lambda: Bags([np.ones((1, 2)), np.ones(3)]), "has the shape [3]; [instances, features] is needed", 2),
        (lambda: Bags([np.ones((1, 2)), np.ones((0, 2))]), "is empty; a bag needs at least one instance", 2),
        (lambda: Bags([np.ones((2, 0))]), "the shape [0] of an instance is not usable", 1),
        (lambda: Bags([]), "no bags", None),
        (lambda: Bags(np.ones((3, 2))), "the bags are one matrix of the shape [3 2]", None),
        (lambda: Bags(FRAME), "the bags are of the type DataFrame", None),
        (lambda: Bags(TWO, labels=["a", "b", "a"]), "3 true labels for 2 bags", None),
        (lambda: Bags(TWO, labels=["a", None]), "bag 2 has no label, and there are no candidates", 2),
        (lambda: Bags(TWO, candidates=[{"a"}, [["b"]]]), "bag 2: [['b']] is not a label or a set of labels", 2),
        (lambda: Bags(TWO, labels=["a", 1]), "the labels are text and numbers", None),
        (lambda: Bags(TWO, labels=[0.5, 1.5]), "miplc predicts classes, not numbers", None),
        (lambda: Bags(TWO, labels=["a", "b"], classes=["a", "c"]), 'the label "b" is not in classes', None),
        (lambda: Bags(TWO, candidates=[{"a", "b"}]), "1 candidate set for 2 bags", None),
        (lambda: Bags(TWO, candidates=[{"a", "b"}, set()]), "bag 2 has no candidate label", 2),
        (lambda: Bags(TWO, candidates=np.array([[2, 1], [0, 1]])), "contains 2; entries must be 0 or 1", 1),
        (lambda: Bags(TWO, coords=np.zeros((4, 3))), "[instances, 2] is needed: x and y", None),
        (lambda: Bags.from_frame(FRAME.iloc[[0, 2, 1]], ignore=["patient"]), "the rows of a bag must be adjacent", 1),
        (lambda: Bags.from_frame(FRAME), 'column "patient": named like an identifier', None),
        (lambda: Bags.from_frame(FRAME.rename(columns={"patient": "p"})), 'column "p": its values are text', None),
        (lambda: Bags.from_frame(FRAME, bag="slide"), 'the frame has no column "slide"', None),
        (
            lambda: Bags.from_frame(FRAME.assign(label=["cat", "dog", None]), ignore=["patient"]),
            'has the label "dog" here and "cat" in row 1',
            1,
        ),
        (lambda: Bags.read("none.npz"), "there is no such file", None),
    ],
)  # fmt: skip
def test_wrong_input(make: Callable[[], Bags], text: str, bag: int | None) -> None:
    with pytest.raises(DataError) as caught:
        make()
    assert text in str(caught.value) and caught.value.bag == bag
    assert isinstance(caught.value, ValueError)
