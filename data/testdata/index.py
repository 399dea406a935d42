"""Makes the index files in testdata with SciPy: python index.py."""
import os
import numpy as np
from scipy.io import savemat

here = os.path.dirname(os.path.abspath(__file__))


def save(name, **variables):
    path = os.path.join(here, name + ".mat")
    savemat(path, {k: np.array([v], dtype=float) for k, v in variables.items()})
    with open(path, "r+b") as f:  # the header contains the time of writing
        f.write(b"MATLAB 5.0 MAT-file, made by index.py".ljust(116))


os.makedirs(os.path.join(here, "bad"), exist_ok=True)
save("index-small", trainIndex=[3, 1], testIndex=[2])
save("bad/index-overlap", trainIndex=[1, 2], testIndex=[2, 3])
save("bad/index-from-zero", trainIndex=[0, 1], testIndex=[2])
save("bad/index-beyond", trainIndex=[1, 2], testIndex=[3, 4])
save("bad/index-missing-bags", trainIndex=[1], testIndex=[3])
save("bad/index-twice", trainIndex=[1, 1, 2], testIndex=[3])
save("bad/index-empty-part", trainIndex=[1, 2, 3], testIndex=[])
save("bad/index-half", trainIndex=[1.5, 2], testIndex=[3])
save("bad/index-names", train=[1])
