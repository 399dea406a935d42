"""Datasets of bags: arrays with their labels, validated with the words of the program."""

from __future__ import annotations

import inspect
import math
import numbers
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _readers
from ._labels import MARK, class_name, count, is_missing, is_set, is_sets, listed, members, quoted, sorted_classes
from ._process import located, warn, writing
from ._rules import missing_mark, suspect
from .errors import DataError

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MOST = 20  # mistakes that one exception lists


class _Faults:
    """The mistakes of a dataset, found so far."""

    def __init__(self) -> None:
        self.problems: list[dict[str, Any]] = []
        self.more = 0

    def add(self, text: str, *notes: str) -> None:
        if len(self.problems) >= _MOST:
            self.more += 1
        else:
            self.problems.append({"text": text, "notes": list(notes)})

    def check(self) -> None:
        if self.more:
            self.problems.append({"text": f"and {count(self.more, 'more error')}"})
        if self.problems:
            raise DataError(self.problems)


def check_length(n: int, noun: str, bags: int) -> None:
    """Raise a DataError if there is not one label for each bag."""
    if n != bags:
        raise DataError(f"{count(n, noun)} for {count(bags, 'bag')}")


def _shape(shape: Iterable[int]) -> str:
    return "[" + " ".join(str(n) for n in shape) + "]"


def _number(value: Any) -> str:
    """Return a number as the program prints it."""
    if math.isnan(value):
        return "NaN"
    return f"{value:+}".replace("inf", "Inf") if math.isinf(value) else str(value)


class Bags(Sequence[NDArray[np.float32]]):
    """A dataset of bags, with labels or without.

    A bag is an array of instances ``[n, d]``, or of images ``[n, channels, height, width]``. n may differ between bags.
    The labels are of one of these kinds:

    ========== ================================= ==========================================
    kind       arguments                         meaning
    ========== ================================= ==========================================
    none       neither                           bags to predict
    known      ``labels``, one for each bag      each label is certain
    candidates ``candidates``, maybe ``labels``  the true label is one of the candidates;
                                                 ``labels`` serve only to measure accuracy
    noisy      the same, ``noisy=True``          the true label may be outside of them
    multi      ``labels``, a set for each bag    a bag has any number of labels
    ========== ================================= ==========================================

    Parameters
    ----------
    instances : sequence of m arrays ``[n_i, ...]``, or array ``[N, ...]`` with ``offsets``
        The bags. Numbers are converted to float32 and must be finite.
    offsets : int array ``[m + 1]``, optional
        Bag i is ``instances[offsets[i]:offsets[i + 1]]``.
    labels : sequence of m labels, or of m sets of labels, or bool array ``[m, k]``, optional
        A label is a text or a number. None and NaN are unknown labels. With sets or a matrix, a bag has several labels.
    candidates : sequence of m sets of labels, or bool array ``[m, k]``, optional
        The labels that may be true.
    classes : sequence of k labels, optional
        The classes in their order. Default: all labels, sorted; the columns of a matrix are the classes 0, 1, ...
    noisy : bool
        Accept true labels outside of the candidates.
    names : sequence of m str, optional
        Distinct names of the bags.
    groups : sequence of m str or int, optional
        Groups, such as patients, which a split does not divide.
    group_name : str
        What the groups are.
    coords : sequence of m arrays ``[n_i, 2]``, or array ``[N, 2]``, optional
        x and y of each instance, for heatmaps.
    instance_labels : sequence of N labels, optional
        Class of each instance, None if it is unknown or none. Only for descriptions and figures.
    feature_names : sequence of d str, optional
        Distinct names of the features.

    Attributes
    ----------
    generator : str or None
        How the instances were made of images, for models that predict images.

    Raises
    ------
    DataError
        If something is wrong. ``DataError.bag`` is the number of the bag.

    Examples
    --------
    >>> bags = Bags([np.zeros((3, 2)), np.ones((5, 2))], candidates=[{"cat", "dog"}, {"dog"}])
    >>> len(bags), bags[1].shape
    (2, (5, 2))
    """

    def __init__(
        self,
        instances: Sequence[ArrayLike] | NDArray[Any],
        offsets: ArrayLike | None = None,
        *,
        labels: Any = None,
        candidates: Any = None,
        classes: Sequence[Any] | None = None,
        noisy: bool = False,
        names: Sequence[Any] | None = None,
        groups: Sequence[Any] | None = None,
        group_name: str = "group",
        coords: Any = None,
        instance_labels: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if offsets is None:
            instances, found = _named(instances)
            feature_names = found if feature_names is None else feature_names
            self.instances, self.offsets = _join(instances)
        else:
            self.instances = _float32(_array(instances, "the instances"))
            self.offsets = _offsets(offsets, len(self.instances))
        self._check_instances()
        faults = _Faults()
        self.names = self._texts(names, "bag name", "name", "bags", faults)
        faults.check()
        self.multi, self.noisy = False, noisy
        self.labels: NDArray[Any] | None = None
        self.candidates: NDArray[np.bool_] | None = None
        self.classes: NDArray[Any] = np.array([])
        if labels is not None or candidates is not None:
            self._set_labels(labels, candidates, classes, noisy, faults)
        self.groups = self._texts(groups, "group", "group", "", faults)
        self.group_name = str(group_name)
        self.coords = self._coordinates(coords, faults)
        self.instance_labels = self._instance_labels(instance_labels, faults)
        features = self._texts(feature_names, "feature name", "name", "features", faults)
        self.feature_names = None if features is None else features.tolist()
        self.generator: str | None = getattr(instances, "generator", None)  # of other Bags
        faults.check()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> NDArray[np.float32]: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> Self: ...
    def __getitem__(self, index: Any) -> Any:
        """Return a bag ``[n, ...]``, or the bags of a slice, a list of numbers or a mask."""
        if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:  # the indices of scikit-learn
            index = index[0]
        if isinstance(index, numbers.Integral):
            i = range(len(self))[int(index)]
            return self.instances[self.offsets[i] : self.offsets[i + 1]]
        chosen = np.arange(len(self))[index]
        copy = self._copy()
        rows = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in chosen]
        at = np.concatenate(rows) if rows else np.array([], np.int64)
        copy.instances, copy.offsets = self.instances[at], _cumulated(len(r) for r in rows)
        for name in ("coords", "instance_labels"):
            if getattr(self, name) is not None:
                setattr(copy, name, getattr(self, name)[at])
        for name in ("labels", "candidates", "names", "groups"):
            if getattr(self, name) is not None:
                setattr(copy, name, getattr(self, name)[chosen])
        return copy

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        return (self.instances[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:]))

    def __repr__(self) -> str:
        shape = " x ".join(str(n) for n in self.instances.shape[1:])
        kind = "" if self.kind == "none" else f", labels {self.kind}"
        of = f", {count(len(self.classes), 'class')}" if len(self.classes) else ""
        bags, n = count(len(self), "bag"), count(len(self.instances), "instance")
        return f"<Bags: {bags}, {n} of {shape} features{of}{kind}>"

    @property
    def shape(self) -> tuple[int]:
        """Number of bags, ``(m,)``, by which scikit-learn divides a dataset without taking it apart."""
        return (len(self),)

    @property
    def kind(self) -> str:
        """``none``, ``known``, ``candidates``, ``noisy`` or ``multi``: see the class."""
        if self.multi:
            return "multi"
        if self.candidates is None:
            return "none" if self.labels is None else "known"
        return "noisy" if self.noisy else "candidates"

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of instances of each bag, ``[m]``."""
        return np.diff(self.offsets)

    def with_labels(
        self, labels: Any = None, *, candidates: Any = None, classes: Sequence[Any] | None = None, noisy: bool = False
    ) -> Self:
        """Return these bags with other labels, as in the constructor.

        ``labels`` and ``candidates`` may also be dicts of the names of the bags. If the bags have candidates and
        labels are given, one for each bag, the candidates stay: the labels only measure accuracy.
        """
        copy, faults = self._copy(), _Faults()
        copy._set_labels(labels, candidates, classes, noisy, faults)
        if self.instance_labels is not None:
            index = {label: i for i, label in enumerate(copy.classes.tolist())}
            old = [index.get(label, -1) for label in self.classes.tolist()] + [-1]
            copy.instance_labels = np.array(old, np.int64)[self.instance_labels]
        faults.check()
        return copy

    def _with_used_classes(self) -> Self:
        """Return these bags without the classes that no bag has, which a selection of bags may lack."""
        names, matrix = self.classes.tolist(), self.labels if self.multi else self.candidates
        sets = None if matrix is None else [set(self.classes[row].tolist()) for row in matrix]
        labels = None if self.labels is None or self.multi else [None if i < 0 else names[i] for i in self.labels]
        used = {*(labels or ())}.union(*(sets or ()))
        if used >= {*names}:
            return self
        classes = [name for name in names if name in used]
        if self.multi:
            return self.with_labels(sets, classes=classes)
        return self.with_labels(labels, candidates=sets, classes=classes, noisy=self.noisy)

    def _with_features(self, instances: NDArray[Any], names: Sequence[str] | None) -> Self:
        """Return these bags with other features of the same instances: array ``[N, ...]``."""
        copy = self._copy()
        copy.instances = _float32(_array(instances, "the instances"))
        copy.feature_names, copy.generator = None if names is None else list(names), None
        copy._check_instances()
        return copy

    def _in_order(self, names: Sequence[str] | None) -> Self:
        """Return these bags with the features of a model in its order, found by their names if both have some."""
        own = self.feature_names
        if names is None or own is None or own == list(names):
            return self
        faults = _Faults()
        for name in [*names, *own]:
            if name not in own or name not in names:
                faults.add(f"{'the model has' if name in own else 'the bags have'} no feature {quoted(name)}")
        faults.check()
        wide = self.instances.reshape(len(self.instances), -1)[:, [own.index(name) for name in names]]
        return self._with_features(wide.reshape(self.instances.shape), names)

    def with_groups(self, groups: Sequence[Any], name: str = "group") -> Self:
        """Return these bags with other groups: m str or int."""
        copy, faults = self._copy(), _Faults()
        copy.groups, copy.group_name = self._texts(groups, "group", "group", "", faults), name
        faults.check()
        return copy

    def _copy(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def _by_name(self, values: Any, what: str) -> Any:
        if not isinstance(values, Mapping):
            return values
        names = self.names if self.names is not None else np.arange(1, len(self) + 1)
        for i, name in enumerate(names.tolist()):
            if name not in values:
                raise DataError(f"bag {i + 1} ({quoted(str(name))}) has no {what}")
        return [values[name] for name in names.tolist()]

    # Checks. Each adds its mistakes to faults.

    def _check_instances(self) -> None:
        faults = _Faults()
        for i in np.flatnonzero(self.sizes <= 0):
            faults.add(f"bag {i + 1} is empty; a bag needs at least one instance")
        if len(self) == 0:
            faults.add("no bags")
        faults.check()
        finite = np.isfinite(self.instances)
        if finite.all():
            return
        wide, last = self.instances.reshape(len(self.instances), -1), 0
        for row, column in np.argwhere(~finite.reshape(wide.shape)):
            bag, j = self._place(row)
            if bag != last:
                at = f"bag {bag}: feature {column + 1} of instance {j}"
                faults.add(f"{at} is {_number(wide[row, column])}; features must be finite (float32)")
            last = bag
        faults.check()

    def _set_labels(
        self, labels: Any, candidates: Any, classes: Sequence[Any] | None, noisy: bool, faults: _Faults
    ) -> None:
        labels, candidates = self._by_name(labels, "label"), self._by_name(candidates, "candidates")
        declared = classes is not None
        labels, candidates, classes = _tables(labels, candidates, classes)
        if self.candidates is not None and candidates is None and labels is not None and not is_sets(labels):
            candidates = [set(self.classes[row].tolist()) for row in self.candidates]
            noisy = noisy or self.noisy
            if classes is None and {one for one in listed(labels) if not is_missing(one)} <= set(self.classes.tolist()):
                classes = self.classes.tolist()
        self.noisy, self.labels, self.candidates = noisy, None, None
        self.multi = candidates is None and labels is not None and is_sets(labels)
        self.classes = sorted_classes(labels, candidates, classes)
        index = {label: i for i, label in enumerate(self.classes.tolist())}
        m, k = len(self), len(self.classes)
        if labels is not None and not self.multi:
            values = listed(labels)
            check_length(len(values), "true label", m)
            self.labels = np.array([-1 if is_missing(v) else index[v] for v in values], np.int64)
        matrix = candidates if candidates is not None else labels if self.multi else None
        if matrix is not None:
            check_length(len(matrix), "label set" if self.multi else "candidate set", m)
            self.candidates = _matrix(matrix, index, k, faults)
            if self.multi:
                self.labels, self.candidates = self.candidates, None
        self._check_labels(declared, faults)

    def _check_labels(self, declared: bool, faults: _Faults) -> None:
        if self.kind == "known":
            for i in np.flatnonzero(np.asarray(self.labels) < 0):
                advice = "leave the bag out, or use candidates: all classes if nothing is known"
                faults.add(f"bag {i + 1} has no label, and there are no candidates", advice)
        names = self.class_names
        if len(names) < 2:
            faults.add(f"the number of classes is {len(names)}; at least 2 are needed")
        first: dict[str, int] = {}
        for number, name in enumerate(names):
            if name == "" or _CONTROL.search(name):
                faults.add(f"a class has the name {quoted(name)}, which is empty or not plain text")
            elif first.setdefault(name, number) != number:
                faults.add(f"classes {first[name]} and {number} (counted from 0) are both named {quoted(name)}")
        matrix = self.labels if self.multi else self.candidates
        if matrix is None:
            return
        if not self.multi:
            for i in np.flatnonzero(~matrix.any(axis=1)):
                faults.add(f"bag {i + 1} has no candidate label")
        for c in np.flatnonzero(~matrix.any(axis=0)) if declared else ():
            what = "label" if self.multi else "candidate"
            faults.add(f"class {quoted(names[c])} has no examples: it is a {what} of no bag")
        if self.multi or self.labels is None or self.noisy:
            return
        known = self.labels >= 0
        inside = matrix[np.arange(len(self)), np.maximum(self.labels, 0)]
        for i in np.flatnonzero(known & ~inside & matrix.any(axis=1)):
            listed = [names[c] for c in np.flatnonzero(matrix[i])]
            text = ", ".join(listed[:10] + ["..."] * (len(listed) > 10))
            true = quoted(names[self.labels[i]])
            faults.add(
                f"bag {i + 1}: the true label {true} is not among the candidates {{{text}}}",
                "change the label or the candidates; leave an unknown label empty (None)",
                "if candidate sets are noisy on purpose, set noisy=True",
            )

    def _texts(
        self, values: Sequence[Any] | None, noun: str, what: str, plural: str, faults: _Faults
    ) -> NDArray[np.str_] | None:
        """Return names of bags, groups or features as an array."""
        if values is None:
            return None
        texts = ["" if is_missing(v) else str(v) for v in listed(values)]
        of = "feature" if plural == "features" else "bag"
        needed = math.prod(self.instances.shape[1:]) if of == "feature" else len(self)
        if len(texts) != needed:
            faults.add(f"{count(len(texts), noun)} for {count(needed, of)}")
        first: dict[str, int] = {}
        for i, text in enumerate(texts):
            if text != text.strip() or not text or _CONTROL.search(text):
                why = "which is empty, not plain text (UTF-8), or has spaces around it"
                faults.add(f"{of} {i + 1} has the {what} {quoted(text)}, {why}")
            elif missing_mark(text) and of == "bag":
                faults.add(f"bag {i + 1} has the {what} {quoted(text)}, {MARK}")
            elif plural and text in first:
                faults.add(f"{plural} {first[text] + 1} and {i + 1} are both named {quoted(text)}")
            else:
                first.setdefault(text, i)
        return np.array(texts, dtype=np.str_)

    def _coordinates(self, coords: Any, faults: _Faults) -> NDArray[np.float32] | None:
        if coords is None:
            return None
        if isinstance(coords, np.ndarray) and coords.ndim == 2 and coords.dtype != object:
            coords = [coords]
        if not is_set(coords):
            raise DataError("coords has no arrays [instances, 2], one for each bag: x and y of each instance")
        xy = np.concatenate([_array(one, f"bag {i + 1}: coords") for i, one in enumerate(coords)]).astype(np.float32)
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise DataError(f"coords has the shape {_shape(xy.shape)}; [instances, 2] is needed: x and y")
        n = len(self.instances)
        if len(xy) != n:
            faults.add(f"{count(xy.size, 'coordinate')} for {count(n, 'instance')}; each has x and y")
            return xy
        for row, column in np.argwhere(~np.isfinite(xy))[:1]:
            i, j = self._place(row)
            value = _number(xy[row, column])
            faults.add(f"bag {i}: instance {j} has the coordinate {value}; coordinates must be finite")
        return xy

    def _instance_labels(self, labels: Sequence[Any] | None, faults: _Faults) -> NDArray[np.int64] | None:
        if labels is None:
            return None
        values, n = listed(labels), len(self.instances)
        if len(values) != n:
            faults.add(f"{count(len(values), 'instance label')} for {count(n, 'instance')}")
            return None
        index = {label: c for c, label in enumerate(self.classes.tolist())}
        for value in values:
            if not is_missing(value) and value not in index:
                faults.add(f"the instance label {quoted(class_name(value))} is no label and no candidate of any bag")
                return None
        return np.array([-1 if is_missing(v) else index[v] for v in values], np.int64)

    def _place(self, row: int) -> tuple[int, int]:
        """Return the number of the bag and of the instance, from 1, of a row of instances."""
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return i + 1, int(row - self.offsets[i]) + 1

    @property
    def class_names(self) -> list[str]:
        """Names of the classes in the program and in model files, ``[k]``."""
        return [class_name(label) for label in self.classes.tolist()]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write an uncompressed ``.npz`` file, which the program and :meth:`read` read."""
        named = ("instances", "offsets", "groups", "coords", "instance_labels", "candidates", "labels", "feature_names")
        optional: dict[str, Any] = {name: getattr(self, name) for name in named}
        optional["bag_names"] = self.names
        optional["class_names"] = self.class_names or None
        optional["group_name"] = None if self.groups is None else [self.group_name]
        optional["generator"] = None if self.generator is None else [self.generator]
        arrays: dict[str, Any] = {key: np.asarray(value) for key, value in optional.items() if value is not None}
        for key, value in arrays.items():
            arrays[key] = value.astype(np.uint8) if value.dtype == bool else value
        to = located(path)
        if to.suffix != ".npz":
            raise DataError("the name of the file must end in .npz", file=str(to))
        part = to.with_name(to.name[:-4] + ".part.npz")  # so that no half-written file has the name
        with writing(to):
            try:
                np.savez(part, **arrays)
                part.replace(to)
            finally:
                part.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: str | os.PathLike[str], **columns: Any) -> Self:
        """Read bags from a file.

        Parameters
        ----------
        path : path
            A file that the program reads: ``.csv`` or ``.csv.gz`` with one row for each instance, or with the file of
            each bag; ``.npz`` or ``.mat`` with arrays; or the features of a slide, such as ``.h5``, ``.npy`` or
            ``.safetensors``, without labels. Or ``.parquet``, which pandas reads: see :meth:`from_frame`.
        **columns
            Arguments of :meth:`from_frame`, those of columns only for files that have columns; and
            ``max_bytes``, the maximum uncompressed size of the file such as ``"16GiB"`` (default: 4GiB).
        """
        known = {*inspect.signature(cls.from_frame).parameters} - {"frame"} | {"max_bytes"}
        for name in sorted({*columns} - known):
            raise TypeError(f"Bags.read has no argument {name!r}")
        return cls._made(_readers.read(located(path, error=DataError), columns))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        bag: str = "bag",
        label: str | None = None,
        candidates: str | None = None,
        group: str | None = None,
        coords: tuple[str, str] | None = None,
        instance_label: str | None = None,
        features: Sequence[str] | None = None,
        ignore: Sequence[str] = (),
        multi: bool = False,
        classes: Sequence[Any] | None = None,
        noisy: bool = False,
    ) -> Self:
        """Make bags of a pandas or polars frame with one row for each instance.

        The rows of a bag are adjacent. Its first row has its label and its candidates; the others repeat them or leave
        them empty.

        Parameters
        ----------
        bag : str
            Column with the name of the bag of each row.
        label, candidates : str, optional
            Columns. Default: ``label`` and ``candidates``, if the frame has them. Candidates, and labels if ``multi``,
            are lists, or text with spaces between labels.
        group, instance_label : str, optional
            Columns with the group of each bag and the class of each instance.
        coords : pair of str, optional
            Columns of x and y. Default: ``x`` and ``y``, if the frame has both.
        features : sequence of str, optional
            Columns of the features. Default: all others.
        ignore : sequence of str
            Columns that are not features.
        multi : bool
            A bag has any number of labels.
        classes, noisy
            As in the constructor.
        """
        arguments = {name: value for name, value in locals().items() if name not in ("cls", "frame")}
        return cls._made(_readers.from_frame(frame, arguments))

    @classmethod
    def _made(cls, arguments: dict[str, Any]) -> Self:
        """Make bags of the arguments that were read, which also have the generator of the bags."""
        generator = arguments.pop("generator")
        bags = cls(**arguments)
        bags.generator = generator
        return bags


_NEEDED = "a list of arrays [instances, features] is needed"


def _matrix(sets: Any, index: Mapping[Any, int], k: int, faults: _Faults) -> NDArray[np.bool_]:
    """Return sets of labels as a matrix [m, k]."""
    if isinstance(sets, np.ndarray) and sets.ndim == 2:
        wrong = ~np.isin(np.asarray(sets), (0, 1)) | np.ma.getmaskarray(sets)
        if wrong.any():
            i, c = np.argwhere(wrong)[0]
            faults.add(f"bag {i + 1}: contains {sets[i, c]}; entries must be 0 or 1, one column per class")
        return np.asarray(~wrong & (np.asarray(sets) == 1))
    matrix = np.zeros((len(sets), k), dtype=bool)
    for i, one in enumerate(listed(sets)):
        labels = members(one)
        matrix[i, [index[label] for label in labels]] = True
        if len(labels) != matrix[i].sum():
            twice = next(label for label in labels if labels.count(label) > 1)
            faults.add(f"bag {i + 1} lists the label {quoted(class_name(twice))} twice")
    return matrix


def _cumulated(sizes: Iterable[int]) -> NDArray[np.int64]:
    return np.cumsum([0, *sizes], dtype=np.int64)


def _offsets(offsets: ArrayLike, n: int) -> NDArray[np.int64]:
    """Check offsets."""
    try:
        at = np.ma.filled(np.asanyarray(offsets), -1)
    except ValueError:  # ragged lists
        at = np.array(0)
    if at.ndim != 1 or at.dtype.kind not in "iu":
        raise DataError(
            f"offsets has the shape {_shape(at.shape)} and the type {at.dtype}; whole numbers [bags + 1] "
            "are needed: where each bag begins, from 0, and the number of instances"
        )
    at = at.astype(np.int64)
    if len(at) < 2:
        raise DataError("no bags")
    faults = _Faults()
    if at[0] != 0:
        faults.add(f"the offsets start at {at[0]}, not at 0")
    for i in np.flatnonzero(np.diff(at) < 0):
        faults.add(f"bag {i + 1}: the offsets fall from {at[i]} to {at[i + 1]}; they must increase")
    if at[-1] != n:
        faults.add(f"the bags end at instance {at[-1]}, but the data have {count(n, 'instance')}")
    faults.check()
    return at


def as_bags(X: Any) -> Bags:
    """Return Bags, a path of bags, or a sequence of arrays as Bags."""
    if isinstance(X, Bags):
        return X
    return Bags.read(X) if isinstance(X, (str, os.PathLike)) else Bags(X)


def _named(bags: Any) -> tuple[Any, list[str] | None]:
    """Return bags that are frames with their columns in the order of the first one, and the names of the columns."""
    if isinstance(bags, Bags):
        return bags, bags.feature_names
    if not isinstance(bags, (list, tuple)) or not bags or not all(hasattr(bag, "columns") for bag in bags):
        return bags, None
    names = list(bags[0].columns)
    if not all(isinstance(name, str) for name in names):  # numbers are places, as scikit-learn sees them
        return bags, None
    if unclear := [quoted(name) for name in names if suspect(name)]:
        raise DataError(
            f"bag 1: its columns {', '.join(unclear)} are named like identifiers or coordinates, not like features",
            "leave them out of the frames: frame.drop(columns=[...])",
            "if they are features, give arrays: [frame.to_numpy() for frame in bags]",
        )
    for i, bag in enumerate(bags):
        for name in sorted(set(names) ^ set(bag.columns)):
            text = "its column {} is not in bag 1" if name not in names else "it has no column {}, as bag 1 has"
            raise DataError(f"bag {i + 1}: {text.format(quoted(name))}")
    return [bag[names] for bag in bags], names


def _tables(labels: Any, candidates: Any, classes: Any) -> tuple[Any, Any, Any]:
    """Return labels and candidates, with the columns of a frame as classes, and texts such as "cat dog" as sets."""
    found: list[Any] = []
    for single, values in ((True, labels), (False, candidates)):
        if hasattr(values, "toarray"):  # a sparse matrix, such as that of OneHotEncoder
            values = values.toarray()
        if hasattr(values, "columns"):
            classes = list(values.columns) if classes is None and values.shape[1] > 1 else classes
            values = np.asarray(values)
        if isinstance(values, np.ndarray) and values.ndim == 2:
            values = values[:, 0] if single and values.shape[1] == 1 else values
        elif values is not None:
            if isinstance(values, (set, frozenset)):
                raise DataError("the labels are a set, which has no order; a list in the order of the bags is needed")
            values = values if hasattr(values, "__array__") else listed(values)
            if is_rows(values):
                text = "the labels are lists of 0 and 1, which are a matrix or sets of the classes 0 and 1"
                raise DataError(text, "give a matrix as an array, np.array(rows), and sets as Python sets")
        found.append(values)
    labels, candidates = found
    if candidates is not None and not (isinstance(candidates, np.ndarray) and candidates.ndim == 2):
        whole = {label for one in listed(candidates) if is_set(one) for label in one if isinstance(label, str)}
        whole |= set() if classes is None else {label for label in listed(classes) if isinstance(label, str)}
        candidates = [one.split() if isinstance(one, str) and one not in whole else one for one in listed(candidates)]
    if candidates is None and classes is None and labels is not None and not is_sets(labels):
        _check_texts({one for one in listed(labels) if isinstance(one, str)})
    return labels, candidates, classes


def is_rows(values: Any) -> bool:
    """Report whether labels are lists of 0 and 1 of one length, as those of a matrix are."""
    rows = listed(values)
    lists = [listed(row) for row in rows if isinstance(row, (list, tuple, np.ndarray))]
    widths = {len(row) for row in lists}
    if len(lists) < len(rows) or len(widths) != 1 or min(widths) < 2:
        return False
    return all(isinstance(value, (bool, int, float)) and value in (0, 1) for row in lists for value in row)


def _check_texts(labels: set[str]) -> None:
    """Raise a DataError for labels such as "cat dog" and "dog", which look like candidate sets in one text."""
    parts = {part for label in labels for part in label.split()}
    spaced = sorted(label for label in labels if len(label.split()) > 1)
    if spaced and len(labels) >= len(parts):
        raise DataError(
            f"the label {quoted(spaced[0])} looks like a set of labels: there are {count(len(labels), 'label')} of "
            f"{count(len(parts), 'word')}",
            "for candidate sets: [set(text.split()) for text in labels]",
            "if these are names of classes, give them to Bags as classes",
        )


def _join(bags: Any) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Concatenate bags."""
    if isinstance(bags, Bags):
        return bags.instances, bags.offsets
    if hasattr(bags, "toarray"):
        raise DataError(f"the bags are a sparse matrix; {_NEEDED}")
    if hasattr(bags, "__array__") and not hasattr(bags, "columns"):
        bags = np.asanyarray(bags)
    if isinstance(bags, np.ndarray) and bags.ndim == 2 and bags.dtype != object:
        text = f"the bags are one matrix of the shape {_shape(bags.shape)}"
        raise DataError(f"{text}; {_NEEDED}", "if each row is a bag of one instance: X[:, None, :]")
    if hasattr(bags, "columns") or isinstance(bags, (str, bytes, Mapping)) or not is_set(bags):
        text = f"the bags are of the type {type(bags).__name__}"
        note = "for a frame with one row for each instance: Bags.from_frame(frame)"
        raise DataError(f"{text}; {_NEEDED}", note)
    arrays = [_array(bag, f"bag {i + 1}") for i, bag in enumerate(bags)]
    if not arrays:
        raise DataError("no bags")
    shape = arrays[0].shape[1:]
    for i, array in enumerate(arrays):
        if array.shape[1:] != shape:
            raise DataError(
                f"bag {i + 1}: its instances have the shape {_shape(array.shape[1:])}, "
                f"those of the first bag {_shape(shape)}"
            )
    return _float32(np.concatenate(arrays)), _cumulated(len(a) for a in arrays)


def _array(bag: Any, what: str) -> NDArray[Any]:
    """Return the instances of a bag as numbers ``[n, ...]``. what names them in messages."""
    bag = bag.toarray() if hasattr(bag, "toarray") else bag  # a sparse matrix
    try:
        array = np.asarray(np.ma.filled(bag.astype(np.float64), np.nan) if np.ma.isMaskedArray(bag) else bag)
    except (TypeError, ValueError):  # ragged lists
        raise DataError(f"{what}: its instances have different numbers of features") from None
    if array.ndim < 2:
        raise DataError(f"{what} has the shape {_shape(array.shape)}; [instances, features] is needed")
    if 0 in array.shape[1:]:
        text = f"{what}: the shape {_shape(array.shape[1:])} of an instance is not usable"
        raise DataError(f"{text}; every extent must be at least 1")
    if array.dtype.kind not in "biuf":
        _check_numbers(array, what)
        array = array.astype(np.float64)
    return array


def _float32(array: NDArray[Any]) -> NDArray[np.float32]:
    """Convert instances ``[N, ...]``, with the warning of the program of features that lose their differences."""
    with np.errstate(over="ignore", invalid="ignore"):
        converted = array.astype(np.float32, copy=False)
        if array.dtype.itemsize < 8 or not array.size:
            return converted
        wide = array.reshape(len(array), -1)
        low, high = wide.min(axis=0).astype(float), wide.max(axis=0).astype(float)
        largest = np.maximum(-low, high)
        lost = (high - low < 32 * np.spacing(np.abs(largest).astype(np.float32))) & (high - low > 1e-12 * largest)
        lost &= (low.astype(np.float32) != low) | (high.astype(np.float32) != high)
    for j in np.flatnonzero(lost)[:5]:
        text = f"feature {j + 1} has values from {low[j]} to {high[j]}, of which float32 keeps few"
        warn(f"{text}: subtract a constant such as {(low[j] + high[j]) / 2:.6g} from it")
    return converted


def _check_numbers(array: NDArray[Any], what: str) -> None:
    """Raise a DataError for the first value that is no number."""
    wide = array.reshape(len(array), -1)
    for j, row in enumerate(wide.tolist()):
        for f, value in enumerate(row):
            if not isinstance(value, numbers.Real):
                shown = quoted(value) if isinstance(value, str) else repr(value)
                raise DataError(f"{what}: feature {f + 1} of instance {j + 1} is {shown}, not a number")
