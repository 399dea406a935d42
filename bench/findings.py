"""Counts the findings of good runs and of runs that are spoiled on purpose, for the table of docs/studies.md.

    python3 bench/findings.py miplc prototypes.npz birdsong-mipl-r1.npz

The first argument is the program, the others are datasets as `miplc data synth` and `miplc data bags` write them. Each
run is repeated on --splits random splits. Needs numpy.
"""
import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy

FROZEN = """name: frozen
extends: demipl-mlp
model:
  let: {frozen: 0.98 + 0.02 * a}
  attention: frozen
loss: [disambiguation]
"""


def bags_of(arrays):
    """Returns the instances of each bag."""
    return numpy.split(arrays["instances"], arrays["offsets"][1:-1])


def chosen(arrays, bags, change=lambda instances, label, i: instances):
    """Returns the bags with these numbers. change gets the instances, the label and the new number of each."""
    all_bags = bags_of(arrays)
    lists = [change(all_bags[bag], arrays["labels"][bag], i) for i, bag in enumerate(bags)]
    return {"instances": numpy.concatenate(lists).astype("f4"), "offsets": numpy.cumsum([0] + [len(b) for b in lists]),
            "labels": arrays["labels"][bags], "candidates": arrays["candidates"][bags]}


def good(arrays, rng):
    return arrays


def constant_column(arrays, rng):
    x = arrays["instances"]
    return {**arrays, "instances": numpy.concatenate([x, numpy.full((len(x), 1), 3, x.dtype)], 1)}


def all_constant(arrays, rng):
    return {**arrays, "instances": numpy.full_like(arrays["instances"], 3)}


def shuffled(arrays, rng):
    """Gives the labels and candidate sets of each bag to another one."""
    order = rng.permutation(len(arrays["labels"]))
    return {**arrays, "labels": arrays["labels"][order], "candidates": arrays["candidates"][order]}


def twice(arrays, rng):
    """Has every bag twice, with its instances in another order."""
    n = len(arrays["labels"])
    return chosen(arrays, numpy.r_[0:n, 0:n], lambda bag, label, i: rng.permutation(bag) if i >= n else bag)


def nearly_twice(arrays, rng):
    """Has every bag twice, the second time with noise."""
    n, deviation = len(arrays["labels"]), arrays["instances"].std(0)
    return chosen(arrays, numpy.r_[0:n, 0:n],
                  lambda bag, label, i: bag + 1e-3 * deviation * rng.standard_normal(bag.shape) * (i >= n))


def shuffled_twice(arrays, rng):
    return twice(shuffled(arrays, rng), rng)


def contradicted(arrays, rng):
    """Has one bag in 20 twice, the second time with another label."""
    n, classes = arrays["candidates"].shape
    copies = rng.choice(n, n // 20, replace=False)
    spoiled = chosen(arrays, numpy.r_[0:n, copies])
    spoiled["labels"] = numpy.r_[arrays["labels"], (arrays["labels"][copies] + 1) % classes]
    spoiled["candidates"] = spoiled["candidates"].copy()
    spoiled["candidates"][n:] = numpy.arange(classes) == spoiled["labels"][n:, None]
    spoiled["candidates"][copies] = numpy.arange(classes) == arrays["labels"][copies][:, None]
    return spoiled


def leaking(arrays, rng):
    """Adds a feature that is the label, plus little noise."""
    label = numpy.repeat(arrays["labels"], numpy.diff(arrays["offsets"])).astype("f4")
    label += rng.normal(0, 0.05, len(label)).astype("f4")
    return {**arrays, "instances": numpy.concatenate([arrays["instances"], label[:, None]], 1)}


def all_candidates(arrays, rng):
    return {**arrays, "candidates": numpy.ones_like(arrays["candidates"])}


def wrong(share):
    """Replaces the true label in the candidate sets of a share of the bags by a false one."""
    def spoil(arrays, rng):
        labels, candidates = arrays["labels"], arrays["candidates"].copy()
        for bag in rng.choice(len(labels), int(share * len(labels)), replace=False):
            false = rng.choice(numpy.flatnonzero(candidates[bag] == 0)) if not candidates[bag].all() else labels[bag]
            candidates[bag, labels[bag]], candidates[bag, false] = 0, 1
        return {**arrays, "candidates": candidates}
    return spoil


def mistaken(arrays, rng):
    """Replaces the candidate set and the label of one bag in 50 by a wrong label."""
    labels, candidates = arrays["labels"].copy(), arrays["candidates"].copy()
    for bag in rng.choice(len(labels), len(labels) // 50, replace=False):
        labels[bag] = (labels[bag] + 1) % candidates.shape[1]
        candidates[bag] = numpy.arange(candidates.shape[1]) == labels[bag]
    return {**arrays, "labels": labels, "candidates": candidates}


def wrong_unknown(arrays, rng):
    """As 30 % wrong, without the true labels of the training bags, which come first."""
    spoiled = wrong(0.3)(arrays, rng)
    order = rng.permutation(len(spoiled["labels"]))
    spoiled = chosen(spoiled, order)
    n = int(0.7 * len(order))
    spoiled["labels"] = spoiled["labels"].copy()
    spoiled["labels"][:n] = -1
    for bag in range(n, len(order)):
        spoiled["candidates"][bag] = numpy.arange(spoiled["candidates"].shape[1]) == spoiled["labels"][bag]
    return spoiled


def noise_columns(arrays, rng):
    x = arrays["instances"]
    return {**arrays, "instances": numpy.concatenate([x, rng.standard_normal((len(x), 2000)).astype("f4")], 1)}


def imbalanced(arrays, rng):
    """Keeps two classes, the second one with one bag in 100."""
    first, second = (numpy.flatnonzero(arrays["labels"] == c) for c in (0, 1))
    bags = numpy.r_[numpy.resize(first, 297), second[:3]]
    spoiled = chosen(arrays, bags, lambda bag, label, i: bag + rng.normal(0, 0.3, bag.shape) * arrays["instances"].std(0))
    spoiled["candidates"] = spoiled["candidates"][:, :2].copy()
    spoiled["candidates"][:, 0] = 1  # half of the sets have both labels
    spoiled["candidates"][rng.random(300) < 0.5, 1] = 1
    spoiled["candidates"][-3:, 1] = 1
    return spoiled


def parts(arrays, part):
    """Returns the lines of a split file with the part of each bag, from the function part(bag, label)."""
    return "split,bag,part\n" + "".join(
        f"1,{bag},{part(bag - 1, label)}\n" for bag, label in enumerate(arrays["labels"], 1))


def without_class(arrays, rng):
    """Puts no bag of the first class into the training part, and 70 % of the others."""
    draw = rng.random(len(arrays["labels"]))
    return parts(arrays, lambda bag, label: "train" if label != 0 and draw[bag] < 0.7 else "test")


def one_of_each(arrays, rng):
    """Trains on one bag of each class, and tests all others."""
    first = [rng.choice(numpy.flatnonzero(arrays["labels"] == c)) for c in numpy.unique(arrays["labels"])]
    return parts(arrays, lambda bag, label: "train" if bag in first else "test")


def two_of_each(arrays, rng):
    """Keeps two bags of each class."""
    pairs = [rng.choice(numpy.flatnonzero(arrays["labels"] == c), 2) for c in numpy.unique(arrays["labels"])]
    return chosen(arrays, numpy.concatenate(pairs))


def ordered(arrays, rng):
    n = int(0.7 * len(arrays["labels"]))
    return parts(arrays, lambda bag, label: "train" if bag < n else "test")


# condition: the function of the arrays, settings, the function of the split
CONDITIONS = {
    "good": (good, [], None),
    "one constant feature": (constant_column, [], None),
    "all features constant": (all_constant, [], None),
    "labels shuffled": (shuffled, [], None),
    "every bag twice": (twice, [], None),
    "every bag twice, with noise": (nearly_twice, [], None),
    "labels shuffled, every bag twice": (shuffled_twice, [], None),
    "1 bag in 20 twice, with another label": (contradicted, [], None),
    "a feature that is the label": (leaking, [], None),
    "all classes are candidates": (all_candidates, [], None),
    "30 % of the candidate sets wrong": (wrong(0.3), ["data.labels=noisy"], None),
    "30 % wrong, true labels of test bags only": (wrong_unknown, [], ordered),
    "1 candidate set in 50 wrong": (mistaken, [], None),
    "99 bags of one class to 1": (imbalanced, [], None),
    "no training bags of one class": (good, [], without_class),
    "one training bag per class": (good, [], one_of_each),
    "one training and one test bag per class": (two_of_each, ["data.split.train=0.5"], None),
    "learning rate 1": (good, ["train.lr=1"], None),
    "learning rate 100": (good, ["train.lr=100", "train.clip=0"], None),
    "2,000 features of noise": (noise_columns, ["train.epochs=30"], None),
    "attention frozen": (good, [], None),
}


def train(program, spec, data, folder, settings, split):
    """Trains one run and returns its summary; None if the training ended with an error."""
    sets = [f"--set={s}" for s in (f"data.set={data}", *split, *settings)]
    done = subprocess.run([program, "train", spec, "-o", folder, *sets], check=False, capture_output=True, text=True)
    summary = pathlib.Path(folder) / "summary.json"
    found = json.loads(summary.read_text()) if summary.exists() else None
    if not found:
        print("   ", done.stderr.strip().splitlines()[-1], flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return found


def main():
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("files", nargs="+")
    options.add_argument("--specs", default="demipl-mlp", help="separated by commas")
    options.add_argument("--splits", type=int, default=1, help="random splits of each run")
    options.add_argument("--only", default="", help="only conditions with this text")
    options.add_argument("--set", action="append", default=[], help="setting of all runs, e.g. train.epochs=40")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "frozen.yaml").write_text(FROZEN)
        for condition, (spoil, settings, index) in CONDITIONS.items():
            if options.only not in condition:
                continue
            specs = [str(work / "frozen.yaml")] if condition == "attention frozen" else options.specs.split(",")
            count, runs, errors, values = collections.Counter(), 0, 0, []
            for number, file in enumerate(options.files):
                for seed in range(1, options.splits + 1):
                    rng = numpy.random.default_rng([number, seed])
                    with numpy.load(file, allow_pickle=False) as read:
                        arrays = spoil({k: read[k] for k in ("instances", "offsets", "labels", "candidates")}, rng)
                    numpy.savez(work / "bags.npz", **arrays)
                    split = [f"data.split.seed={seed}"]
                    if index:
                        (work / "split.csv").write_text(index(arrays, rng))
                        split = [f"data.split.index={work / 'split.csv'}"]
                    for spec in specs:
                        found = train(options.program, spec, work / "bags.npz", work / "run", options.set + settings, split)
                        runs += 1
                        if not found:
                            errors += 1
                            continue
                        names = [f["finding"] for f in found["findings"]]
                        count.update(names)
                        values.append(f"{pathlib.Path(file).stem} {found.get('accuracy', 0):.3f} "
                                      + str([(f["finding"], f["value"]) for f in found["findings"]]))
            text = ", ".join(f"`{name}` {n}" for name, n in count.most_common()) or "none"
            text += f"; {errors} ended with an error" if errors else ""
            print(f"| {condition} | {runs} | {text} |", flush=True)
            print("   ", "; ".join(values), flush=True)


if __name__ == "__main__":
    main()
