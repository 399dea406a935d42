"""Writes the HDF5 files of this folder with h5py 3.16.0 (HDF5 2.0.0).

Run it in this folder. expected() is what the test in Go expects of each array.
"""
import h5py
import numpy as np


def expected(shape):
    """Small integers, which every number type represents exactly."""
    return (np.arange(np.prod(shape)) % 97 - 40).reshape(shape)


def types():
    with h5py.File("types.h5", "w") as f:
        for name in "f2 f4 f8 i1 i2 i4 i8 >f4 >f8 >i2".split():
            f[name.replace(">", "big-")] = expected((5, 3)).astype(name)
        for name in "u1 u2 u4 u8".split():
            f[name] = (expected((5, 3)) + 40).astype(name)
        # h5py has no bfloat16: a float16 with other fields is one.
        t = h5py.h5t.IEEE_F32LE.copy()
        t.set_fields(15, 7, 8, 0, 7)
        t.set_size(2)
        t.set_ebias(127)
        space = h5py.h5s.create_simple((5, 3))
        d = h5py.h5d.create(f.id, b"bf16", t, space)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, expected((5, 3)).astype("f4"), h5py.h5t.NATIVE_FLOAT)
        f["text"] = ["a", "b"]
        f["scalar"] = 1.0
        f["flag"] = np.array([True, False])
        f.create_dataset("empty", (0, 3), "f4")
        f.create_dataset("unwritten", (4, 3), "f4", chunks=(2, 3))
        f["unwritten"][:2] = 1


def layouts():
    with h5py.File("layouts.h5", "w") as f:
        x = expected((37, 6)).astype("f4")
        f["contiguous"] = x
        f.create_dataset("row-chunks", data=x, chunks=(1, 6), maxshape=(None, 6))  # CLAM
        f.create_dataset("chunks", data=x, chunks=(8, 4))
        f.create_dataset("deflate", data=x, chunks=(8, 4), compression="gzip")
        f.create_dataset("shuffle", data=x, chunks=(8, 6), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("checksum", data=x.astype("f2"), chunks=(5, 5), fletcher32=True)
        f.create_dataset("one-more", data=x[None], chunks=(1, 8, 6), compression="gzip")  # TRIDENT
        f.create_dataset("images", data=expected((7, 2, 4, 3)).astype("f2"), chunks=(2, 1, 3, 3), compression="gzip")
        f.create_dataset("vector", data=expected((9,)).astype("f4"), chunks=(4,))
        f.create_dataset("smaller", data=x, chunks=(8, 6), maxshape=(None, 6)).resize((20, 6))
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_layout(h5py.h5d.COMPACT)
        d = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((4, 3)), dcpl)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, expected((4, 3)).astype("f4"))
        f.create_dataset("lzf", data=x, chunks=(8, 6), compression="lzf")
        f["link"] = h5py.SoftLink("/contiguous")
        g = f.create_group("linked")
        g["external"] = h5py.ExternalLink("other.h5", "/x")
        g["hard"] = f["contiguous"]


def links():
    for name, version in ("links.h5", None), ("links-latest.h5", "latest"):
        with h5py.File(name, "w", libver=version) as f:
            f["x"] = expected((37, 6)).astype("f4")
            g = f.create_group("g")
            g["x"] = expected((5, 3)).astype("f4")
            g["near"] = h5py.SoftLink("x")
            g["far"] = h5py.SoftLink("/x")
            f["chain"] = h5py.SoftLink("group/far")
            f["group"] = h5py.SoftLink("/g/.")
            f["circle"] = h5py.SoftLink("/circle")
            f["dangling"] = h5py.SoftLink("/g/none")


def groups():
    with h5py.File("groups.h5", "w") as f:
        for i in range(20):
            g = f.create_group(f"bags/slide-{i:02}")
            g["features"] = expected((2, 3)).astype("f2") + i
            g.attrs["label"] = "tumor"


def latest():
    """Newer formats. The indexes of the chunks and the list of the links of a large group are not supported."""
    with h5py.File("latest.h5", "w", libver="v110", userblock_size=512) as f:
        x = expected((37, 6)).astype("f4")
        f["contiguous"] = x
        f.create_dataset("one-chunk", data=x, chunks=(37, 6), compression="gzip")
        f.create_dataset("chunks", data=x, chunks=(8, 6))
        f.create_dataset("deflate", data=x, chunks=(8, 4), compression="gzip", shuffle=True)
        f.create_dataset("grows", data=x, chunks=(8, 6), maxshape=(None, 6))
        f.create_dataset("limited", data=x, chunks=(8, 6), maxshape=(50, 6))
        g = f.create_group("many", track_order=True)
        for i in range(150):
            g[f"slide-{i:03}" + i * "x"] = f["contiguous"]


def lzf():
    with h5py.File("lzf.h5", "w") as f:
        x = expected((37, 6)).astype("f4")
        f.create_dataset("small", data=x, chunks=(8, 6), compression="lzf")
        f.create_dataset("half", data=x.astype("f2"), chunks=(37, 6), compression="lzf", shuffle=True, fletcher32=True)
        y = expected((1500, 2)).astype("f4")
        f.create_dataset("large", data=y, chunks=(1500, 2), compression="lzf")
        f.create_dataset("zeros", data=np.zeros((3000, 2), "f4"), chunks=(1000, 2), compression="lzf")
        noise = np.random.default_rng(1).integers(0, 1 << 15, (64, 2)).astype("i2")
        f.create_dataset("noise", data=noise, chunks=(32, 2), compression="lzf")  # stored as it is


def attributes():
    for name, version in ("attributes.h5", "earliest"), ("attributes-latest.h5", "latest"):
        with h5py.File(name, "w", libver=version) as f:
            x = f.create_dataset("coords", data=expected((4, 2)).astype("i8"))
            x.attrs["name"] = "slide"
            x.attrs["patch_size_level0"] = 256
            x.attrs["overlap"] = np.float32(0.5)
            x.attrs["sizes"] = np.array([3, 4], "i2")
            x.attrs["präparat"] = -7


types(), layouts(), links(), groups(), latest(), lzf(), attributes()
