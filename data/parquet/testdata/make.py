"""Writes the files of this folder. Needs numpy, pyarrow 26.0 and polars 2.1."""
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

N = 37
i = np.arange(N)
# Column j has the values (5 i + j) % 23 - 7.
value = lambda j: (5 * i + j) % 23 - 7

columns = {"bag": pa.array([f"b{k // 4}" for k in i])}
for j, kind in enumerate("f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8".split()):
    x = value(j) + (7 if kind[0] == "u" else 0)
    columns[kind] = pa.array(x.astype(kind))
columns["flag"] = pa.array(i % 3 == 0)
columns["list"] = pa.FixedSizeListArray.from_arrays(pa.array((np.add.outer(5 * i, np.arange(3)) % 23 - 7).astype("f4").ravel()), 3)
columns["list of halves"] = pa.array([list(row) for row in np.add.outer(i, np.arange(2)).astype("f2")], pa.list_(pa.float16()))
t = pa.table(columns)
pq.write_table(t, "snappy.parquet")
pq.write_table(t, "gzip.parquet", compression="gzip", row_group_size=10, data_page_version="2.0")
pq.write_table(t, "zstd.parquet", compression="zstd", use_dictionary=False, row_group_size=16)
split = {c: "BYTE_STREAM_SPLIT" for c in ("f2", "f4", "f8", "i4", "i8")}
pq.write_table(t, "pages.parquet", compression="none", use_dictionary=["bag"], column_encoding=split, data_page_size=16, write_batch_size=3)
pl.from_arrow(t.drop_columns(["f2", "list of halves"])).write_parquet("polars.parquet")

pq.write_table(pa.table({
    "when": pa.array(i, pa.timestamp("ns")), "date": pa.array(i.astype("i4"), pa.int32()).cast(pa.date32()), "decimal": pa.array([1] * N).cast(pa.decimal128(21, 2)),
    "struct": pa.array([{"a": 1, "b": 2}] * N), "lists": pa.array([[[1]]] * N), "ragged": pa.array([[1] * (1 + k % 2) for k in i]),
    "missing": pa.array([None if k == 5 else k for k in i]), "text": pa.array(["x"] * N), "delta": pa.array(i),
}), "others.parquet", use_dictionary=False, column_encoding={"delta": "DELTA_BINARY_PACKED"})
pq.write_table(pa.table({"f": i}), "lz4.parquet", compression="lz4")
