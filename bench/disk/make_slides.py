"""Writes a dataset of large bags: one HDF5 file per bag, as CLAM does, and a table.

Needs numpy and h5py. A tenth of the instances of a bag is shifted towards its class.
"""
import argparse
import os

import h5py
import numpy as np

p = argparse.ArgumentParser()
p.add_argument("folder")
p.add_argument("--bags", type=int, default=60)
p.add_argument("--smallest", type=int, default=10_000)
p.add_argument("--largest", type=int, default=60_000)
p.add_argument("--features", type=int, default=1024)
p.add_argument("--classes", type=int, default=4)
p.add_argument("--chunk", type=int, default=0, help="rows of a chunk (default: contiguous)")
o = p.parse_args()

rng = np.random.default_rng(1)
os.makedirs(o.folder, exist_ok=True)
centres = rng.standard_normal((o.classes, o.features), dtype=np.float32)
sizes = np.linspace(o.smallest, o.largest, o.bags).astype(int)
rng.shuffle(sizes)
block = rng.standard_normal((1 << 14, o.features), dtype=np.float32).astype(np.float16)
with open(os.path.join(o.folder, "slides.csv"), "w") as table:
    table.write("bag,label,candidates,file\n")
    for i, n in enumerate(sizes):
        label = i % o.classes
        x = block[rng.integers(0, len(block), n)]
        x[: n // 10] += centres[label].astype(np.float16) / 2
        name = f"slide-{i:03}.h5"
        with h5py.File(os.path.join(o.folder, name), "w") as f:
            chunks = (o.chunk, o.features) if o.chunk else None
            f.create_dataset("features", data=x, chunks=chunks)
        table.write(f"{name[:-3]},{label},{label} {(label + 1) % o.classes},{name}\n")
print(f"{o.bags} bags, {sizes.sum()} instances, {sizes.sum() * o.features * 2 / 1e9:.2f} GB of float16")
