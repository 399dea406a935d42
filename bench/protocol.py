#!/usr/bin/env python3
"""Times the protocol of a paper: many splits of one data set, whole trainings.

miplc trains all splits side by side in one program of the engine xla, PyTorch
runs the authors' loop on one split after the other. Same bags, same splits:

    python3 bench/protocol.py --data mnist-mipl-r1.npz --device cuda             # ten splits, 100 epochs, the CNN
    python3 bench/protocol.py --data birdsong-mipl-r1.npz --device cuda --splits 40 --spec bench/program-features.yaml
    python3 bench/protocol.py --data birdsong-mipl-r1.npz --engine ort --splits 3 --epochs 10 --spec bench/program-features.yaml

Without a GPU name --engine ort: its trainings go one after the other. Needs Go,
and numpy in the Python that runs this script. See bench/README.md.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    env = os.environ.get
    p.add_argument("--data", required=True, help="a set of bags (.npz)")
    p.add_argument("--spec", default="demipl-program", help="spec of miplc; the peer computes the authors' program")
    p.add_argument("--splits", type=int, default=10)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--engine", default="xla", choices=["xla", "ort", "gorgonia"])
    p.add_argument("--threads", type=int, default=1, help="of PyTorch and of the engine ort on a CPU")
    p.add_argument("--torch", default=env("MIPLC_BENCH_TORCH", "python3"), help="Python with PyTorch; also $MIPLC_BENCH_TORCH")
    p.add_argument("--torch-splits", type=int, default=0, help="splits that PyTorch really trains, its total is estimated from them; 0: all")
    p.add_argument("--miplc", default="", help="a built miplc; empty: built by Go")
    p.add_argument("--go", default=env("GO", "go"))
    p.add_argument("--peak", type=float, default=0, help="GFLOP/s that the device can do in float32, to print the share of it")
    p.add_argument("--out", default="", help="file for the result as JSON")
    return p.parse_args()


class Protocol:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.set = np.load(args.data)
        self.bags = len(self.set["offsets"]) - 1
        self.images = self.set["instances"][0].size == 784
        self.splits = []
        for seed in range(1, args.splits + 1):
            order = np.random.default_rng(seed).permutation(self.bags)
            cut = self.bags * 7 // 10
            self.splits.append((sorted(order[:cut].tolist()), sorted(order[cut:].tolist())))
        self.index = os.path.join(folder, "splits.csv")
        with open(self.index, "w", newline="") as f:
            w = csv.writer(f)
            w.writerow(["split", "part", "bags"])
            for i, (train, test) in enumerate(self.splits, 1):
                for part, bags in (("train", train), ("test", test)):
                    w.writerow([i, part, " ".join(str(b + 1) for b in bags)])

    def miplc(self):
        """Trains all splits; gives the seconds of training and the accuracies."""
        a = self.args
        binary = a.miplc or os.path.join(self.folder, "miplc")
        if not a.miplc:
            subprocess.run([a.go, "build", "-o", binary, "./cmd/miplc"], cwd=ROOT, check=True)
        common = [binary, "train", a.spec, "--json", "--engine", a.engine]
        if a.engine != "gorgonia":
            common += ["--device", a.device]
        if a.engine == "ort":
            common += ["--threads", str(a.threads)]
        for s in ("data.set=" + os.path.abspath(a.data), "data.split.index=" + self.index,
                  "train.epochs=%d" % a.epochs, "train.lr=%g" % a.lr, "train.eval_every=%d" % a.epochs):
            common += ["--set", s]
        if a.engine == "xla":
            parts = ",".join(str(i + 1) for i in range(a.splits))
            out = answer(common + ["-o", os.path.join(self.folder, "runs"), "--parts", parts])
            return out["seconds"], [r["accuracy"] for r in out["runs"]]
        seconds, accuracies = 0.0, []
        for i in range(1, a.splits + 1):
            out = answer(common + ["-o", os.path.join(self.folder, "run-%d" % i), "--set", "data.split.part=%d" % i])
            seconds, accuracies = seconds + out["seconds"], accuracies + [out["accuracy"]]
        return seconds, accuracies

    def torch(self):
        """The same of the authors' loop, one split after the other."""
        a, seconds, accuracies = self.args, 0.0, []
        runs = a.torch_splits or a.splits
        for i, (train, test) in enumerate(self.splits[:runs]):
            path = os.path.join(self.folder, "split.json")
            with open(path, "w") as f:
                json.dump({"train": train, "test": test}, f)
            out = answer([a.torch, os.path.join(HERE, "pytorch", "demipl.py"), "--data", a.data, "--split", path,
                          "--reading", "program", "--loop", "loader", "--normalize", "all", "--epochs", str(a.epochs),
                          "--lr", str(a.lr), "--device", a.device, "--threads", str(a.threads), "--seed", str(i + 1)]
                         + (["--cnn"] if self.images else []))
            seconds, accuracies = seconds + out["seconds"], accuracies + [out["test_accuracy"]]
        return seconds * a.splits / runs, accuracies

    def gflop(self):
        """Floating point operations of all training steps of the CNN in its three
        products (forward, by inputs, by weights), in 1e9; 0 for features."""
        if not self.images:
            return 0
        conv1, rest = 24 * 24 * 25 * 20, 8 * 8 * 500 * 50 + 800 * 500
        sizes = np.diff(self.set["offsets"])
        instances = sum(int(sizes[train].sum()) for train, _ in self.splits)
        return 2 * (2 * conv1 + 3 * rest) * instances * self.args.epochs / 1e9


def answer(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s failed:\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return json.loads(done.stdout.strip())


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        p = Protocol(args, folder)
        begin = time.perf_counter()
        ours, found = p.miplc()
        wall = time.perf_counter() - begin
        peer, beside = p.torch()
        gflop = p.gflop()
    estimated = args.torch_splits and args.torch_splits < args.splits
    print("%d splits of %s, %d epochs, on %s" % (args.splits, os.path.basename(args.data), args.epochs, args.device))
    row = "  %-32s %10.1f s   accuracy %.3f, deviation %.3f%s"
    print(row % ("miplc %s" % args.engine, ours, np.mean(found), np.std(found, ddof=len(found) > 1),
                 "   (%.1f s with build, export and checks)" % wall))
    print(row % ("PyTorch, authors' loop", peer, np.mean(beside), np.std(beside, ddof=len(beside) > 1),
                 "   (estimated from %d splits)" % len(beside) if estimated else ""))
    print("  PyTorch takes %.2f times as long" % (peer / ours))
    if gflop:
        print("  miplc reaches %.0f GFLOP/s%s" % (gflop / ours, ", %.1f %% of the peak" % (100 * gflop / ours / args.peak) if args.peak else ""))
    if args.out:
        with open(args.out, "w") as f:
            json.dump({"data": os.path.basename(args.data), "spec": args.spec, "splits": args.splits, "epochs": args.epochs,
                       "device": args.device, "engine": args.engine, "miplc_s": ours, "miplc_wall_s": wall, "torch_s": peer,
                       "torch_splits": len(beside), "times_miplc": peer / ours, "accuracy": found, "torch_accuracy": beside,
                       "gflop": gflop}, f, indent=1)


main()
