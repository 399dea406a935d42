"""Writes the files of this folder. Needs numpy, pyarrow 26.0 and pandas 2.3."""
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

# A table with one row per instance, and the same table as CSV.
bags = np.repeat([10, 20, 30], [2, 3, 1])
first = np.r_[True, bags[1:] != bags[:-1]]
labels = {10: "cat", 20: None, 30: "dog"}
t = pd.DataFrame({
    "f1": np.arange(6, dtype="f4") / 3,
    "candidates": [c if f else None for c, f in zip(np.repeat(["cat dog", "dog cat", "dog"], [2, 3, 1]), first)],
    "label": [labels[b] if f else None for b, f in zip(bags, first)],
    "bag": bags,
    "f2": np.arange(6) * 2.5 - 1,
    "x": np.arange(6), "y": np.arange(6)[::-1],
})
t.to_parquet("rows.parquet", index=False)
t[["bag", "label", "candidates", "f1", "f2", "x", "y"]].to_csv("rows.csv", index=False)

# Instances of one bag: a list, and a column per feature.
x = (np.arange(12) * 7 % 64 - 20).reshape(4, 3)
at = {"x": np.arange(4) * 256, "y": np.arange(4) * 512}
pq.write_table(pa.table({"features": pa.array([list(r) for r in x.astype("f2")], pa.list_(pa.float16())), **at}), "list.parquet")
pd.DataFrame({**{f"f{j}": x[:, j].astype("f4") for j in range(3)}, **at}).to_parquet("columns.parquet", index=False)
pq.write_table(pq.read_table("columns.parquet").select(["f2", "f1", "f0", "x", "y"]), "reversed.parquet")
pd.DataFrame({"f0": x[:, 0]}, index=list("abcd")).to_parquet("index.parquet")
pd.DataFrame({"bag": bags, "label": "cat", "candidates": "cat", "f1": [1, 2, 3, None, 5, 6]}).to_parquet("missing.parquet", index=False)
