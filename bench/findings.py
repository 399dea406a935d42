"""Counts the findings of good runs and of runs that are spoiled on purpose, for the table of docs/studies.md.

    python3 bench/findings.py miplc prototypes.npz birdsong-mipl-r1.npz

The first argument is the program, the others are datasets as `miplc data synth` and `miplc data bags` write them. Each
run is repeated on three splits. Needs numpy.
"""
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy

SPECS = ["demipl-mlp", "gated-abmil", "miplma"]
FROZEN = """name: frozen
extends: demipl-mlp
model:
  let: {frozen: 0.98 + 0.02 * a}
  attention: frozen
loss: [disambiguation]
"""


def shuffled(arrays, rng):
    """Gives the labels and candidate sets of each bag to another one."""
    order = rng.permutation(len(arrays["labels"]))
    return {**arrays, "labels": arrays["labels"][order], "candidates": arrays["candidates"][order]}


def doubted(arrays, rng):
    """Replaces the candidate set and the label of one bag in 50 by a wrong label."""
    labels, candidates = arrays["labels"].copy(), arrays["candidates"].copy()
    for bag in rng.choice(len(labels), len(labels) // 50, replace=False):
        labels[bag] = (labels[bag] + 1) % candidates.shape[1]
        candidates[bag] = numpy.arange(candidates.shape[1]) == labels[bag]
    return {**arrays, "labels": labels, "candidates": candidates}


def without_class(labels, rng):
    """Yields the lines of three splits whose training bags lack the first class; 70 % of the others are training bags."""
    yield "split,bag,part"
    for split in (1, 2, 3):
        for bag, (label, draw) in enumerate(zip(labels, rng.random(len(labels))), start=1):
            yield f"{split},{bag},{'train' if label != 0 and draw < 0.7 else 'test'}"


def findings(program, data, spec, folder, settings=(), splits=("--grid", "data.split.seed=1,2,3")):
    """Trains on three splits and returns the names of the findings of each run."""
    sets = [f"--set={s}" for s in (f"data.set={data}", *settings)]
    subprocess.run([program, "train", spec, "-o", folder, *splits, *sets], check=False, capture_output=True)
    summaries = [json.loads(s.read_text()) for s in sorted(pathlib.Path(folder).glob("*/summary.json"))]
    shutil.rmtree(folder, ignore_errors=True)  # does not exist if no run began
    return [[f["finding"] for f in s["findings"]] for s in summaries]


def main(program, *files):
    rng = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "frozen.yaml").write_text(FROZEN)
        for file in files:
            arrays = dict(numpy.load(file, allow_pickle=False))
            numpy.savez(work / "shuffled.npz", **shuffled(arrays, rng))
            numpy.savez(work / "doubted.npz", **doubted(arrays, rng))
            index = work / "without.csv"
            index.write_text("\n".join(without_class(arrays["labels"], rng)) + "\n")
            kinds = [("good", file, SPECS, []), ("labels shuffled", work / "shuffled.npz", SPECS, []),
                     ("1 candidate set in 50 wrong", work / "doubted.npz", SPECS, []),
                     ("learning rate 100", file, SPECS, ["train.lr=100", "train.clip=0"]),
                     ("no training bags of one class", file, SPECS, [f"data.split.index={index}"], ["--split-numbers=1,2,3"]),
                     ("attention frozen", file, [str(work / "frozen.yaml")], [])]
            for kind, data, specs, *options in kinds:
                runs = [r for s in specs for r in findings(program, data, s, str(work / "run"), *options)]
                count = collections.Counter(name for names in runs for name in names)
                text = ", ".join(f"`{name}` {n}" for name, n in count.most_common()) or "none"
                print(f"| {pathlib.Path(file).stem} | {kind} | {len(runs)} | {text} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
