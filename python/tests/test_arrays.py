"""Tests of labels and arrays in the forms that NumPy, pandas and scikit-learn give them, and of wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from miplc import Bags, DataError

X = [np.ones((1, 2)), np.zeros((2, 2)), np.ones((1, 2)) * 2]
FRAME: Any = pd.DataFrame({"bag": ["a", "b", "c"], "label": ["u", "v", "u"], "f": [1.0, 2.0, 3.0]})


def labels_of(bags: Bags) -> list[Any]:
    assert bags.labels is not None
    return [None if c < 0 else bags.classes[c] for c in bags.labels]


def test_masked_values_are_missing() -> None:
    masked = np.ma.array([[1.0, -999.0]], mask=[[False, True]])
    for bags in ([masked], [X[0], masked], np.ma.array([masked, masked])):
        with pytest.raises(DataError, match="feature 2 of instance 1 is NaN"):
            Bags(bags)
    assert Bags([np.ma.array([[1.0, 2.0]])]).instances.tolist() == [[1, 2]]
    y = np.ma.array([0, 1, -999], mask=[False, False, True])
    with pytest.raises(DataError, match="bag 3 has no label"):
        Bags(X, labels=y)
    bags = Bags(X, labels=y, candidates=[{0, 1}, {1}, {0}])
    assert labels_of(bags) == [0, 1, None] and bags.classes.tolist() == [0, 1]
    with pytest.raises(DataError, match="bag 2: contains --"):
        Bags(X, candidates=np.ma.array([[1, 1], [0, 1], [1, 0]], mask=[[0, 0], [0, 1], [0, 0]]))
    with pytest.raises(DataError, match="bag 2 has the group"):
        Bags(X, groups=np.ma.array(["a", "b", "c"], mask=[False, True, False]))


def test_dates_are_no_features() -> None:
    dates = pd.to_datetime("2024-01-01") + pd.to_timedelta(range(3), "D")
    ages = pd.to_timedelta(range(3), "D")
    objects = list(dates.date), list(ages.to_pytimedelta())
    for column in (dates, ages, dates.tz_localize("UTC"), dates.to_period("M"), *objects):
        frame = FRAME.assign(scanned=column)
        for features in (None, ["f", "scanned"]):
            with pytest.raises(DataError, match='column "scanned"(: its values are text| is .*, not a number)'):
                Bags.from_frame(frame, features=features)
        with pytest.raises(DataError, match="not a number"):
            Bags([frame[["f", "scanned"]]])
    for kind in (pl.Date, pl.Datetime, pl.Duration, pl.Time):
        scanned = pl.Series([1, 2, 3]).cast(kind)
        with pytest.raises(DataError, match='column "scanned"(: its values are text| is .*, not a number)'):
            Bags.from_frame(pl.from_pandas(FRAME).with_columns(scanned=scanned))


def test_columns_of_frames() -> None:
    numbered = pd.DataFrame(np.arange(6.0).reshape(3, 2)).assign(bag=["a", "b", "c"], label=["u", "v", "u"])
    assert Bags.from_frame(numbered).feature_names == ["0", "1"]
    assert Bags.from_frame(numbered, features=[1]).instances.tolist() == [[1], [3], [5]]
    assert Bags.from_frame(numbered, ignore=[0]).feature_names == ["1"]
    assert Bags.from_frame(FRAME.assign(g=0), ignore="g").feature_names == ["f"]
    twice = FRAME.assign(g=[4.0, 5, 6]).set_axis(["bag", "label", "f", "f"], axis=1)
    with pytest.raises(DataError, match='two columns are named "f"'):
        Bags.from_frame(twice)
    with pytest.raises(DataError, match="several levels"):
        Bags.from_frame(pd.DataFrame({("a", "b"): [1]}))
    with pytest.raises(DataError, match=r"frame.reset_index\(\)"):
        Bags.from_frame(FRAME.set_index("bag"))
    with pytest.raises(DataError, match='no column "lable".*\\n.*did you mean "label"'):
        Bags.from_frame(FRAME, label="lable")
    for wrong in (None, 5, [1], {"bag": [1]}, np.ones((2, 2)), pl.from_pandas(FRAME).lazy(), FRAME["f"]):
        with pytest.raises(DataError, match="a frame of pandas or polars is needed"):
            Bags.from_frame(wrong)
    text = FRAME.astype({"f": object}).assign(f=[1, "x", 2])
    with pytest.raises(DataError, match='^row 2: bag 2: the column "f" is "x", not a number'):
        Bags.from_frame(text)
    for values in ([1, 2, 3], [True, False, True], pd.array([1, 2, 3], "Int64"), pd.Categorical([1, 2, 3])):
        assert Bags.from_frame(FRAME.assign(f=values)).instances[:, 0].tolist() == [float(v) for v in values]
    with pytest.raises(DataError, match="bag 2: feature 1 of instance 1 is NaN"):
        Bags.from_frame(FRAME.assign(f=pd.array([1, None, 3], "Int64")))


def test_columns_of_sets() -> None:
    expected = [[True, True], [False, True], [True, False]]
    for values in (
        [{"u", "v"}, {"v"}, {"u"}],
        [["u", "v"], ["v"], ["u"]],
        [("u", "v"), np.array(["v"]), "u"],
        ["u v", "v", "u"],
        [frozenset({"u", "v"}), {"v": 1}.keys(), "u"],
    ):
        frame = FRAME[["bag", "f"]].assign(candidates=values)
        bags = Bags.from_frame(frame)
        assert bags.candidates is not None and bags.candidates.tolist() == expected
        bags = Bags.from_frame(frame.rename(columns={"candidates": "label"}), multi=True)
        assert bags.labels is not None and bags.labels.tolist() == expected
        bags = Bags(X, candidates=values)
        assert bags.candidates is not None and bags.candidates.tolist() == expected
    repeated = FRAME[["bag", "f"]].assign(bag="a", candidates=[{"u", "v"}] * 3)
    assert len(Bags.from_frame(repeated)) == 1
    lists = pl.DataFrame({"bag": ["a", "b"], "candidates": [["u", "v"], ["v"]], "f": [1.0, 2.0]})
    assert Bags.from_frame(lists).class_names == ["u", "v"]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([10, 9, 10], [9, 10]),
        ([10.0, 9.0, 10.0], [9.0, 10.0]),
        ([True, False, True], [False, True]),
        (pd.array([10, 9, 10], "Int64"), [9, 10]),
        (pd.Categorical([10, 9, 10]), [9, 10]),
        (["10", "9", "10"], ["9", "10"]),
        ([10, "9", 10], ["9", "10"]),
        (["a b", "c", "a b"], ["a b", "c"]),
    ],
)
def test_classes_of_frames_keep_their_types(labels: Any, classes: list[Any]) -> None:
    for frame in (FRAME.assign(label=labels), FRAME.assign(label=labels, instance_label=labels)):
        bags = Bags.from_frame(frame)
        assert bags.classes.tolist() == classes and bags.classes.dtype == np.array(classes).dtype
        given = classes[::-1]
        assert Bags.from_frame(frame, classes=given).classes.tolist() == given
    sets = FRAME.assign(label=[10, "", None], candidates=[{10, 9}, [9], (10,)])
    assert Bags.from_frame(sets).classes.tolist() == [9, 10] and labels_of(Bags.from_frame(sets)) == [10, None, None]
    text = FRAME.assign(label=[10, None, None], candidates=["10 9", "9", "10"])
    assert Bags.from_frame(text).classes.tolist() == ["9", "10"]
    named = FRAME.assign(label="New York", candidates=[{"New York", "Oslo, N"}, ["New York"], ("New York",)])
    assert Bags.from_frame(named).classes.tolist() == ["New York", "Oslo, N"]
    for wrong in (pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"]), [b"u", b"v", b"u"]):
        with pytest.raises(DataError, match="a label is of the type"):
            Bags.from_frame(FRAME.assign(label=wrong))


def test_rows_of_frames_in_messages() -> None:
    notes = FRAME.assign(note=["a\nb", "c\r\nd", "e"])
    with pytest.raises(DataError, match="^row 3: bag 3 .* has no label") as caught:
        Bags.from_frame(notes.assign(label=["u", "v", None]), ignore=["note"])
    assert caught.value.line == 3 and caught.value.file is None and caught.value.bag == 3
    with pytest.raises(DataError, match=r"^row 3: bag 1 .* \(the first is row 1\)"):
        Bags.from_frame(FRAME.assign(bag=["a", "b", "a"]))
    with pytest.raises(DataError, match="^row 2: the column bag is empty"):
        Bags.from_frame(FRAME.assign(bag=["a", None, "c"], label=["u", None, "v"]))
    with pytest.raises(DataError, match='^row 1: column "file": its values are text') as caught:
        Bags.from_frame(FRAME.assign(file="a.npy"))


def test_iterators_and_names_of_bags() -> None:
    values = ["u", "v", "u"]
    for given in (iter(values), map(str, values), (v for v in values), dict(zip("abc", values)).values()):
        bags = Bags(X, labels=given, groups=iter("pqr"), names=iter("abc"), instance_labels=iter("uvvu"))
        assert labels_of(bags) == values and bags.groups is not None and bags.groups.tolist() == ["p", "q", "r"]
    sets = Bags(X, candidates=iter([{"u", "v"}, {"v"}, {"u"}]), labels=iter(values))
    assert labels_of(sets) == values and sets.kind == "candidates"
    named = Bags(X, names=["a", "b", "c"], labels={"c": "u", "b": "v", "a": "v"})
    assert labels_of(named) == ["v", "v", "u"]
    assert labels_of(Bags(X).with_labels({1: "u", 2: "v", 3: "u"})) == values


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bags(X, labels="uvu"),
        lambda: Bags(X, labels={"u", "v", "w"}),
        lambda: Bags(X, labels=5),
        lambda: Bags(X, labels=np.array("u")),
        lambda: Bags(X, labels=[b"u", b"v", b"u"]),
        lambda: Bags(X, labels=np.array(["u", np.nan, "v"])),
        lambda: Bags(X, labels=np.array(["2024-01-01"] * 3, "M8[D]")),
        lambda: Bags(X, labels=[1 + 2j, 1, 2]),
        lambda: Bags(X, labels=[[["u"]], ["v"], ["u"]]),
        lambda: Bags(X, labels=[object(), 1, 2]),
        lambda: Bags(X, candidates=[{"u", "nan"}, {"v", "None"}, {"u", "v"}]),
        lambda: Bags(X, candidates=[["u", "u"], ["v"], ["u", "v"]]),
        lambda: Bags(X, candidates=[[0, 1, 1], [1, 0, 0], [0, 0, 1]]),
        lambda: Bags(X, labels=["u", "v", "u"], classes=["u", "v", "u"]),
        lambda: Bags(X, labels=["u", "v", "u"], classes=["u", "v", None]),
        lambda: Bags(X, labels=["u", "v", "u"], classes="uv"),
        lambda: Bags(X, labels=["u", "v", "u"], classes=5),
        lambda: Bags(X, labels=["u", "v", "u"], groups=["p1", "nan", "None"]),
        lambda: Bags(X, names=["a", None, "c"]),
        lambda: Bags(X, names="abc"),
        lambda: Bags(X, names=["a", "\ud800", "c"]),
        lambda: Bags(X, groups=5),
        lambda: Bags(X, coords=5),
        lambda: Bags(X, coords=np.zeros((4, 2)) * 1j),
        lambda: Bags(X, instance_labels=["u"] * 4),
        lambda: Bags(X, labels=["u", "v", "u"], instance_labels=5),
        lambda: Bags(X, feature_names=["a", "a"]),
        lambda: Bags(X, feature_names="ab"),
        lambda: Bags(5),
        lambda: Bags(None),
        lambda: Bags([None]),
        lambda: Bags([[]]),
        lambda: Bags([{1: 2}]),
        lambda: Bags(iter([])),
        lambda: Bags(np.ones((4, 2)), "x"),
        lambda: Bags(np.ones((4, 2)), [[0], [1, 2]]),
        lambda: Bags(np.ones((4, 2)), np.ma.array([0, 2, 4], mask=[0, 1, 0])),
        lambda: Bags([FRAME.assign(label=0, bag=1)]),
        lambda: Bags(X).write("bags.csv"),
        lambda: Bags(X).with_labels({"a": 1}),
        lambda: Bags(X).with_groups(5),
        lambda: Bags.from_frame(FRAME, coords=("f", "f")),
        lambda: Bags.from_frame(FRAME, coords=("f",)),
        lambda: Bags.from_frame(FRAME, group="label"),
        lambda: Bags.from_frame(FRAME[:0]),
        lambda: Bags.from_frame(FRAME.assign(label=[{"u"}, "v", "u"], f=[[1], 2, 3])),
    ],
)
def test_only_data_errors(make: Callable[[], Bags]) -> None:
    with pytest.raises(DataError):
        make()


def test_unknown_arguments_of_read(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "bags.csv", index=False)
    with pytest.raises(TypeError, match="no argument 'lable'"):
        Bags.read(tmp_path / "bags.csv", lable="x")
    with pytest.raises(DataError, match="max_bytes"):
        Bags.read(tmp_path / "bags.csv", max_bytes=10)
    assert Bags.read(tmp_path / "bags.csv", max_bytes="1MB", features=["f"], ignore=(), multi=0).kind == "known"
    assert Bags.read(tmp_path / "bags.csv", features=np.array(["f"]), label=None).feature_names == ["f"]
    with pytest.raises(DataError, match='no column "0"'):
        Bags.read(tmp_path / "bags.csv", label=0)
    Bags(X).write(tmp_path / "bags.npz")
    assert Bags.read(tmp_path / "bags.npz", ignore=(), noisy=True).kind == "none"
    with pytest.raises(DataError, match="this file has no columns"):
        Bags.read(tmp_path / "bags.npz", label="species")
