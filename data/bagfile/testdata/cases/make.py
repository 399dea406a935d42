"""Writes seconds.h5 with h5py 3.16.0. The other files of this folder are from reports of mistakes."""
import h5py
import numpy as np

with h5py.File("seconds.h5", "w") as f:
    n = np.arange(6)
    f["features"] = np.stack([1_700_000_000 + n, 100 * n], axis=1)  # int64
