"""Makes the .mat files beside it with SciPy: python mat.py.

Small sets of bags in the layouts that package data reads, and arrays of every
class for package matfile. The numbers are chosen by hand; nothing is random.
"""
import os
import numpy as np
from scipy.io import savemat

here = os.path.dirname(os.path.abspath(__file__))


def save(name, contents, **options):
    path = os.path.join(here, name)
    savemat(path, contents, **options)
    with open(path, "r+b") as f:  # the header holds the time of writing
        f.write(b"MATLAB 5.0 MAT-file, made by mat.py".ljust(116))


def cells(rows):
    out = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            out[i, j] = value
    return out


bags = [
    (np.array([[0.5, -1.0], [2.0, 0.25]]), [1, 2], [1]),
    (np.array([[3.0, 4.0]]), [2, 3], [3]),
    (np.array([[0.0, 1.0], [-7.25, 300.0], [0.125, 0.75]]), [1, 3], [1]),
]


def rows(candidates, *, kind=np.uint8, truth=True, feature=np.float64):
    out = []
    for x, s, y in bags:
        row = [x.astype(feature), candidates(s, kind)]
        if truth:
            row.append(np.array([y], dtype=kind))
        out.append(row)
    return out


def listed(s, kind):
    return np.array([s], dtype=kind)


def column(s, kind):
    return np.array([s], dtype=kind).T


def vector(s, kind):
    return np.array([[1 if c + 1 in s else 0 for c in range(3)]], dtype=kind)


save("bags.mat", {"data": cells(rows(listed))}, do_compression=True)
save("bags-plain.mat", {"data": cells(rows(column, kind=np.float64))})
save("bags-vector.mat", {"data": cells(rows(vector))})
save("bags-logical.mat", {"data": cells(rows(vector, kind=bool, truth=False))})
save("bags-named.mat", {"my_bags": cells(rows(listed, feature=np.float32)), "version": 2.0})
inst = [np.array([[1], [0]]), np.array([[3]]), np.array([[0], [0], [1]])]
save("bags-instances.mat", {"data": cells([r + [i] for r, i in zip(rows(listed), inst)])}, do_compression=True)

kinds = [np.float64, np.float32, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
every = {np.dtype(k).name: np.array([[1, 2, 3], [4, 5, 100]], dtype=k) for k in kinds}
every.update({
    "negative": np.array([[-1, -128]], dtype=np.int8),
    "large": np.array([[2**40]], dtype=np.int64),
    "logical": np.array([[True, False]]),
    "complex": np.array([[1 + 2j, -3.5j]]),
    "cube": np.arange(24.0).reshape(2, 3, 4),
    "empty": np.zeros((0, 3)),
    "text": "caf\u00e9",
    "rows": np.array(["ab ", "cde"]),
    "nested": cells([[np.array([[1.0]]), cells([["x", np.zeros((0, 0))]])]]),
    "structure": {"a": 1.0, "b": "x"},
})
save("classes.mat", every)
save("classes-packed.mat", every, do_compression=True)
