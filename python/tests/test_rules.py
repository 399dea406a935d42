"""The same inputs for the program, Bags.read, Bags.from_frame and arrays: the same dataset, or refused by all."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

from miplc import Bags, DataError, PerInstance
from miplc._rules import RULES, missing_mark, suspect

ROLES = ("bag", "label", "candidates", "instance_label")
MARKS = ["NA", "<NA>", "NaN", "nan", "None", "NULL", "null", "NaT", "#N/A", "N/A"]

# Each has the text of a CSV file and the arguments that the program has for it as well.
GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "candidates": ("bag,label,candidates,f1,f2\nb,cat,cat dog,0.5,1\nb,,,0.25,-3\na,,dog,1,0\n", {}),
    "only candidates": ("bag,candidates,f\na,u v,1\nb,v,2\n", {}),
    "known": ("bag,label,f\nb,cat,0.5\nb,cat,1\na,dog,1\n", {}),
    "numbers": ("bag,label,f\n1,10,0.5\n2,9,1\n3,-1,2\n4,+3,2\n", {}),
    "large numbers": ("bag,label,f\n1,10,0.5\n2,99999999999999999999,1\n3,9,1\n", {}),
    "leading zeros": ("bag,label,f\na,1,0\nb,01,1\nc,001,2\nd,2,2\n", {}),
    "numbers of pandas": ("bag,label,candidates,f\na,1.0,1 2,0\nb,,2,1\n", {}),
    "numbers and text": ("bag,label,f\na,10,0\nb,9,1\nc,x,1\n", {}),
    "a listed mark": ("bag,label,candidates,f\na,NA,NA b,0\nb,b,b,1\n", {"classes": ["NA", "b"]}),
    "order of classes": ("bag,label,f\na,x,0\nb,y,1\n", {"classes": ["y", "x"]}),
    "groups": ("bag,label,patient,f\na,x,p,0\na,,,1\nb,y,q,1\n", {"group": "patient"}),
    "coordinates": ("bag,label,f,x,y\na,u,0,1,2\nb,v,1,3,4\n", {}),
    "other coordinates": ("bag,label,f,left,top\na,u,0,1,2\nb,v,1,3,4\n", {"coords": ["left", "top"]}),
    "x and y are features": ("bag,label,y,x\na,u,0,1\nb,v,1,3\n", {"features": ["x", "y"]}),
    "instance labels": ("bag,label,instance_label,f\na,u,u,0\na,,,1\nb,v,v,2\n", {}),
    "declared features": ("bag,label,time,f,g\na,u,5,0,1\nb,v,6,1,2\n", {"features": ["g", "time"]}),
    "left out": ("bag,label,slide_id,f\na,u,5,0\nb,v,6,1\n", {"ignore": ["slide_id"]}),
    "a column of text left out": ("bag,label,scanner,f\na,u,A,0\nb,v,B,1\n", {"ignore": ["scanner"]}),
    "no labels": ("bag,f\na,0\nb,1\n", {}),
    "no label is known": ("bag,label,f\na,,0\nb,,1\n", {}),
    "numbered bags": ("bag,label,f\n1,u,0\n2,v,1\n", {}),
    "spaces": ("bag,label,candidates,f\n a ,u , u  v ,0\nb, v,v,1\n", {}),
    "another case": ("Bag,LABEL,f\na,u,0\nb,v,1\n", {}),
    "other names": ("rec,species,f\na,u,0\nb,v,1\n", {"bag": "rec", "label": "species"}),
    "multi": ("bag,label,f\na,u v,0\nb,,1\nc,v,2\n", {"multi": True}),
    "noisy": ("bag,label,candidates,f\na,v,u,0\nb,u,v u,1\n", {"noisy": True}),
    "columns that are numbers": ("bag,label,0,1\na,u,0,1\nb,v,1,2\n", {}),
    "booleans": ("bag,label,stained,f\na,u,True,0.5\na,,False,1\nb,v,False,2\n", {}),
    "booleans of R": ("bag,label,stained,f\na,u,TRUE,0.5\nb,v,FALSE,2\n", {}),
    "lists": ('bag,label,candidates,f\na,New York,"[""New York"", ""u""]",0\nb,u,u,1\n', {}),
    "names of a frame": ("bag,label,feature 1,Fläche\na,u,0,1\nb,v,1e-3,2\n", {}),
}
BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "candidate twice": ("bag,label,candidates,f\na,u,u v u,0\nb,v,v,1\n", {}, "twice"),
    "separator": ("bag,label,candidates,f\na,,u;v,0\nb,,v,1\n", {}, "does not look like the name of a class"),
    "label of a known bag": ("bag,label,f\na,,0\nb,v,1\nc,u,1\n", {}, "has no label, and there are no candidates"),
    "no candidate": ("bag,label,candidates,f\na,u,,0\nb,v,v,1\n", {}, "has no candidate label"),
    "outside": ("bag,label,candidates,f\na,u,v,0\nb,v,u,1\n", {}, "is not among the candidates"),
    "one class": ("bag,label,f\na,u,0\nb,u,1\n", {}, "at least 2 are needed"),
    "not in classes": ("bag,label,f\na,u,0\nb,v,1\n", {"classes": ["u", "w"]}, "v"),
    "class without examples": ("bag,label,candidates,f\na,,u,0\nb,,v,1\n", {"classes": list("uvw")}, "has no examples"),
    "bag again": ("bag,label,f\na,u,0\nb,v,1\na,u,1\n", {}, "occurs again after other bags"),
    "empty bag": ("bag,label,f\na,u,0\n,v,1\n", {}, "the column bag is empty"),
    "two labels": ("bag,label,f\na,u,0\na,v,1\nb,v,1\n", {}, "has the label"),
    "two groups": ("bag,label,p,f\na,u,1,0\na,,2,1\nb,v,1,1\n", {"group": "p"}, "has the group"),
    "no group": ("bag,label,p,f\na,u,1,0\nb,v,,1\n", {"group": "p"}, "has no group: the column p is empty"),
    "no such column to leave out": ("bag,label,f\na,u,0\nb,v,1\n", {"ignore": ["g"]}, 'has no column "g"'),
    "a feature twice": ("bag,label,f,f\na,u,0,1\nb,v,1,2\n", {"features": ["f"]}, 'two columns are named "f"'),
    "text": ("bag,label,scanner,f\na,u,A,0\nb,v,B,1\n", {}, "its values are text"),
    "date": ("bag,label,scanned,f\na,u,2024-01-01,0\nb,v,2024-01-02,1\n", {}, "scanned"),
    "missing number": ("bag,label,f,g\na,u,0,1\nb,v,,1\n", {}, "bag 2"),
    "infinite": ("bag,label,f\na,u,0\nb,v,inf\n", {}, "must be finite"),
    "coordinate": ("bag,label,f,x,y\na,u,0,1,2\nb,v,1,,4\n", {}, "bag 2"),
    "instance label": ("bag,label,instance_label,f\na,u,w,0\nb,v,v,2\n", {}, "is no label and no candidate of any bag"),
    "no feature": ("bag,label\na,u\nb,v\n", {}, "feature"),
    "numbers to predict": ("bag,label,f\na,0.5,0\nb,0.25,1\nc,1,1\nd,2,2\n", {}, "predicts classes, not numbers"),
    "no such column": ("bag,label,f\na,u,0\nb,v,1\n", {"group": "patient"}, 'has no column "patient"'),
    "no such feature": ("bag,label,f\na,u,0\nb,v,1\n", {"features": ["g"]}, 'has no column "g"'),
    "no bag": ("label,f\nu,0\nv,1\n", {}, 'has no column "bag"'),
    "row numbers": (",bag,label,f\n0,a,u,0\n1,b,v,1\n", {}, "a column has no name"),
    "column twice": ("bag,label,f,f\na,u,0,1\nb,v,1,2\n", {}, 'two columns are named "f"'),
    "label and group": ("bag,label,f\na,u,0\nb,v,1\n", {"group": "label"}, "label"),
}
for mark in MARKS:
    BAD[f"label {mark}"] = (f"bag,label,f\na,{mark},0\nb,v,1\nc,u,1\n", {}, "as programs write a missing value")
    BAD[f"candidate {mark}"] = (f"bag,candidates,label,f\na,{mark} u,,0\nb,v,v,1\n", {}, "as programs write")
    BAD[f"group {mark}"] = (f"bag,label,p,f\na,u,{mark},0\nb,v,1,1\n", {"group": "p"}, "as programs write")
    BAD[f"bag {mark}"] = (f"bag,label,f\n{mark},u,0\nb,v,1\n", {}, "as programs write")
NAMES = ["Unnamed: 0", "slide_id", "Slide ID", "x-coord", "__index_level_0__"]
NAMES += [*RULES["suspect_names"], *RULES["suspect_columns"]]
for column in NAMES:
    if column and column not in ("label", "group"):
        text = f"bag,label,{column},f\na,u,0,0\nb,v,1,1\n"
        BAD[f"column {column}"] = (text, {}, "named like an identifier")


def frame_of(text: str) -> pd.DataFrame:
    """Return the frame of a CSV file: roles as text, empty fields as missing values."""
    header = text.splitlines()[0].split(",")
    roles = {*ROLES, "Bag", "LABEL", "p", "patient", "rec", "species"}
    types = {name: str for name in header if name in roles}
    frame = pd.read_csv(io.StringIO(text), dtype=types, keep_default_na=False, na_values=[""])
    frame.columns = pd.Index(header)
    return frame


def facts(bags: Bags, path: Path, program: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """Return what a dataset has, with the hash of the program."""
    bags.write(path)
    kind = ["--labels", bags.kind] if bags.kind in ("known", "multi", "noisy") else []
    found: dict[str, Any] = {"sha256": None}
    if bags.kind != "none":
        found = {"sha256": program("data", "inspect", path, *kind)["sets"][0]["sha256"]}
    for name in ("names", "groups", "coords", "instance_labels", "labels", "candidates", "offsets", "instances"):
        value = getattr(bags, name)
        found[name] = None if value is None else value.tolist()
    found["group_name"] = bags.group_name if bags.groups is not None else None
    return found | {"kind": bags.kind, "classes": bags.class_names, "features": bags.feature_names}


@pytest.mark.parametrize("name", GOOD)
def test_same_dataset(name: str, tmp_path: Path, program: Callable[..., dict[str, Any]]) -> None:
    text, arguments = GOOD[name]
    (tmp_path / "bags.csv").write_text(text, "utf-8")
    frame = frame_of(text)
    read = Bags.read(tmp_path / "bags.csv", **arguments)
    expected = facts(read, tmp_path / "read.npz", program)
    again = facts(Bags.read(tmp_path / "read.npz", noisy=read.noisy), tmp_path / "again.npz", program)
    assert again == expected, "npz"
    for door, given in (("pandas", frame), ("polars", pl.from_pandas(frame)), ("nullable", frame.convert_dtypes())):
        made = Bags.from_frame(given, **arguments)
        assert facts(made, tmp_path / "frame.npz", program) == expected, door
    frame.to_parquet(tmp_path / "bags.parquet")
    assert facts(Bags.read(tmp_path / "bags.parquet", **arguments), tmp_path / "p.npz", program) == expected, "parquet"
    values: dict[str, Any] = {"labels": read.labels, "candidates": read.candidates, "classes": read.classes}
    if read.labels is not None and not read.multi:
        values["labels"] = [None if c < 0 else read.class_names[c] for c in read.labels]
    if read.candidates is not None:
        values["candidates"] = [set(read.classes[row].tolist()) for row in read.candidates]
    if "classes" not in arguments and not read.multi:
        values["classes"] = None
    made = Bags(
        list(read),
        **values,
        noisy=read.noisy,
        names=read.names,
        groups=read.groups,
        group_name=read.group_name,
        coords=read.coords,
        feature_names=read.feature_names,
    )
    made.instance_labels = read.instance_labels
    assert facts(made, tmp_path / "arrays.npz", program) == expected, "arrays"


@pytest.mark.parametrize("name", BAD)
def test_refused_by_all(name: str, tmp_path: Path) -> None:
    text, arguments, words = BAD[name]
    (tmp_path / "bags.csv").write_text(text, "utf-8")
    frame = frame_of(text)
    frame.columns = pd.Index([None if column == "" else column for column in frame.columns], dtype=object)
    doors: list[Callable[[], Bags]] = [
        lambda: Bags.read(tmp_path / "bags.csv", **arguments),
        lambda: Bags.from_frame(frame, **arguments),
    ]
    for door in doors:
        with pytest.raises(DataError) as caught:
            door()
        assert words in str(caught.value) and "--" not in str(caught.value)


def test_rules_of_the_program() -> None:
    assert missing_mark("NaN") and missing_mark("NA") and not missing_mark("na") and not missing_mark("")
    assert suspect(" Slide-ID ") and suspect("x.coord") and not suspect("f1") and not suspect("area")


FORMS = {
    "semicolons": "bag;label;f\na;u;0,5\nb;v;1,25\n".encode(),
    "tabs": b"bag\tlabel\tf\na\tu\t0.5\nb\tv\t1.25\n",
    "utf-16": "bag,label,f\na,u,0.5\nb,v,1.25\n".encode("utf-16"),
    "classes": b"# classes: v u\nbag,label,f\na,u,0.5\nb,v,1.25\n",
    "spaces": b"bag, label, f\na, u, 0.5\nb, v, 1.25\n",
    "a byte order mark": b"\xef\xbb\xbfbag,label,f\r\na,u,0.5\r\nb,v,1.25\r\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_csv(form: str, tmp_path: Path) -> None:
    import gzip

    for path, contents in ((tmp_path / "a.csv", FORMS[form]), (tmp_path / "a.csv.gz", gzip.compress(FORMS[form]))):
        path.write_bytes(contents)
        bags = Bags.read(path)
        assert bags.instances[:, 0].tolist() == [0.5, 1.25] and bags.feature_names == ["f"]
        assert bags.class_names == (["v", "u"] if form == "classes" else ["u", "v"])
        assert bags.labels is not None and [bags.class_names[c] for c in bags.labels] == ["u", "v"]


def test_order_of_classes_is_stable() -> None:
    for labels in itertools.permutations(["01", "1", "001", "2"]):
        assert Bags([np.ones((1, 2))] * 4, labels=labels).class_names == ["001", "01", "1", "2"]


def test_generator_is_kept(tmp_path: Path) -> None:
    generator = json.dumps({"generator": "patches", "size": 4})
    arrays = {"instances": np.ones((4, 2)), "offsets": [0, 2, 4], "labels": [0, 1], "generator": np.array([generator])}
    np.savez(tmp_path / "bags.npz", **arrays)
    bags = Bags.read(tmp_path / "bags.npz")
    for made in (bags, bags[[1, 0]], bags.with_labels(["a", "b"]), Bags(bags)):
        assert made.generator == generator
    scaled = PerInstance(StandardScaler()).fit_transform(bags)
    assert getattr(scaled, "generator", None) is None  # a model of these cannot cut images
    bags.write(tmp_path / "again.npz")
    assert np.load(tmp_path / "again.npz")["generator"].tolist() == [generator]
