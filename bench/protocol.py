#!/usr/bin/env python3
"""Measures the time of a paper's protocol: whole trainings on many splits of one dataset.

miplc trains all splits in one program of the engine xla. PyTorch and JAX run the
authors' loop on one split after the other. All use the same bags, the same splits
and full float32:

    python3 bench/protocol.py --data mnist-mipl-r1.npz --device cuda             # ten splits, 100 epochs, the CNN
    python3 bench/protocol.py --data birdsong-mipl-r1.npz --device cuda --splits 40 --spec bench/program-features.yaml
    python3 bench/protocol.py --data birdsong-mipl-r1.npz --engine ort --splits 3 --epochs 10 --spec bench/program-features.yaml

Without a GPU, give --engine ort, which trains the splits in sequence. The program needs only
Python, and Go if --miplc does not name a built command. It prints each
result as soon as it is measured. A peer that is not installed, fails or takes too long is reported and omitted. See bench/README.md.
"""
import argparse
import ast
import csv
import json
import math
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    env = os.environ.get
    p.add_argument("--data", required=True, help="a dataset (.npz)")
    p.add_argument("--spec", default="demipl-program", help="spec of miplc; PyTorch and JAX compute the authors' program")
    p.add_argument("--splits", type=int, default=10)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    p.add_argument("--engine", default="xla", choices=["xla", "ort", "gorgonia"])
    p.add_argument("--threads", type=int, default=1, help="threads of PyTorch and of the engine ort on a CPU")
    p.add_argument("--torch", default=env("MIPLC_BENCH_TORCH", "python3"), help="Python with PyTorch; also $MIPLC_BENCH_TORCH; empty: without")
    p.add_argument("--jax", default=env("MIPLC_BENCH_JAX", "python3"), help="Python with JAX; also $MIPLC_BENCH_JAX; empty: without")
    p.add_argument("--peer-splits", type=int, default=0, help="splits that PyTorch and JAX train; the time of all splits is estimated from them; 0: all")
    p.add_argument("--limit", type=float, default=math.inf, help="seconds for the whole program: 70 %% for miplc, the rest divided among PyTorch and JAX")
    p.add_argument("--miplc", default="", help="a built miplc; empty: built by Go")
    p.add_argument("--go", default=env("GO", "go"))
    p.add_argument("--peak", type=float, default=0, help="peak GFLOP/s of the device in float32, of which the share is printed")
    p.add_argument("--out", default="", help="file for the result as JSON")
    return p.parse_args()


class Failure(Exception):
    """A measurement failed; the text gives the reason."""


class Protocol:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.offsets = integers(args.data, "offsets")
        self.images = math.prod(shape(args.data, "instances")[1:]) == 28 * 28
        bags = len(self.offsets) - 1
        self.splits = []
        for seed in range(1, args.splits + 1):
            order, cut = list(range(bags)), bags * 7 // 10
            random.Random(seed).shuffle(order)
            self.splits.append((sorted(order[:cut]), sorted(order[cut:])))
        self.index = os.path.join(folder, "splits.csv")
        with open(self.index, "w", newline="") as f:
            w = csv.writer(f)
            w.writerow(["split", "part", "bags"])
            for i, (train, test) in enumerate(self.splits, 1):
                for part, list_ in (("train", train), ("test", test)):
                    w.writerow([i, part, " ".join(str(b + 1) for b in list_)])

    def miplc(self, limit):
        """Trains all splits and returns the seconds of the epochs, the accuracies and the number of epochs."""
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
        parts = ",".join(str(i + 1) for i in range(a.splits))
        env = dict(os.environ) if a.engine == "xla" else dict(os.environ, GOMAXPROCS="1")  # one run after the other
        out = answer(common + ["-o", os.path.join(self.folder, "runs"), "--parts", parts], limit, env)
        if out["failed"]:
            raise Failure("; ".join(out["failed"]))
        # If groups run in parallel on the cores of a CPU, the sum counts their time twice.
        seconds = min(out["seconds"], sum(r["seconds"] for r in out["runs"]))
        return seconds, [r["accuracy"] for r in out["runs"]], a.splits * a.epochs

    def peer(self, command, limit):
        """Trains one split after the other with another program. Returns the seconds of all
        splits, estimated if the limit stopped it, the accuracies of complete trainings, and
        the number of epochs that it trained."""
        a, seconds, epochs, accuracies = self.args, 0.0, 0, []
        path, begin = os.path.join(self.folder, "split.json"), time.perf_counter()
        for i, (train, test) in enumerate(self.splits[:a.peer_splits or a.splits]):
            with open(path, "w") as f:
                json.dump({"train": [b + 1 for b in train], "test": [b + 1 for b in test]}, f)
            left = limit - (time.perf_counter() - begin)
            if epochs and left < 0:
                break
            out = answer(command + ["--data", a.data, "--split", path, "--epochs", str(a.epochs), "--lr", str(a.lr), "--device", a.device,
                                    "--seed", str(i + 1), "--seconds", str(left)] + (["--cnn"] if self.images else []), 2 * left + 60)
            seconds, epochs = seconds + out["seconds"], epochs + out["epochs"]
            if out["epochs"] == a.epochs:
                accuracies.append(out["test_accuracy"])
        return seconds / epochs * a.epochs * a.splits, accuracies, epochs

    def gflop(self):
        """Returns the floating-point operations of all training steps of the CNN (forward
        pass, gradients of inputs and of weights), in 1e9; 0 for features."""
        if not self.images:
            return 0
        conv1, rest = 24 * 24 * 25 * 20, 8 * 8 * 500 * 50 + 800 * 500
        instances = sum(self.offsets[b + 1] - self.offsets[b] for train, _ in self.splits for b in train)
        return 2 * (2 * conv1 + 3 * rest) * instances * self.args.epochs / 1e9


def header(f):
    """Read the header of a .npy file and return its type and shape."""
    start = f.read(8)
    size = struct.unpack("<H", f.read(2))[0] if start[6] == 1 else struct.unpack("<I", f.read(4))[0]
    header = ast.literal_eval(f.read(size).decode())
    return header["descr"], header["shape"]


def shape(path, name):
    with zipfile.ZipFile(path) as z, z.open(name + ".npy") as f:
        return header(f)[1]


def integers(path, name):
    with zipfile.ZipFile(path) as z, z.open(name + ".npy") as f:
        kind, (n,) = header(f)
        return struct.unpack("<%d%s" % (n, {"<i8": "q", "<i4": "i"}[kind]), f.read())


def answer(command, limit, env=None):
    """Runs a command and returns the JSON that it prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=None if limit == math.inf else limit, env=env)
        if done.returncode == 0:
            return json.loads(done.stdout)
    except subprocess.TimeoutExpired as late:
        raise Failure(("did not end within %.0f s; %s" % (limit, last(late.stderr))).rstrip("; "))
    except (OSError, ValueError) as err:
        raise Failure(str(err))
    sys.stderr.write(done.stderr)
    raise Failure("failed: " + last(done.stderr or done.stdout))


def last(text):
    """Returns the last line of the output of a program."""
    text = text.decode(errors="replace") if isinstance(text, bytes) else text or ""
    return text.replace("\r", "\n").strip().split("\n")[-1]


class Memory:
    """Measures the peak memory of the GPU during the block, of all programs together."""

    def __enter__(self):
        self.most, self.program = 0, None
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0", "-lms", "200"]
        try:
            self.program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            return self
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        for line in self.program.stdout:
            if line.strip().isdigit():
                self.most = max(self.most, int(line))

    def __exit__(self, *_):
        if self.program:
            self.program.terminate()
            self.program.wait()
            self.reader.join()


def main():
    args = arguments()
    print("%d splits of %s, %d epochs, on %s, in full float32" % (args.splits, os.path.basename(args.data), args.epochs, args.device))
    result = dict(vars(args), data=os.path.basename(args.data))
    with tempfile.TemporaryDirectory() as folder:
        p = Protocol(args, folder)

        def measured(name, run):
            """Measures, prints a line and returns its figures, or None if the measurement failed."""
            begin = time.perf_counter()
            with Memory() as memory:
                try:
                    seconds, accuracies, epochs = run()
                except Failure as why:
                    print("  %-32s %s" % (name, why), flush=True)
                    return None
            r = {"seconds": seconds, "wall": time.perf_counter() - begin, "accuracy": accuracies, "epochs": epochs, "gpu_mib": memory.most}
            figures = ["%10.1f s" % seconds]
            if accuracies:
                figures.append("accuracy %.3f, deviation %.3f" % (statistics.mean(accuracies), statistics.stdev(accuracies) if accuracies[1:] else 0))
            if epochs < args.splits * args.epochs:
                figures.append("estimated from %.1f of %d epochs" % (epochs, args.splits * args.epochs))
            if memory.most:
                figures.append("%d MiB on the GPU" % memory.most)
            print("  %-32s %s" % (name, "   ".join(figures)), flush=True)
            result[name] = r
            return r

        end = time.perf_counter() + args.limit
        ours = measured("miplc %s" % args.engine, lambda: p.miplc(0.7 * args.limit))
        if ours:
            print("  %-32s %10.1f s" % ("  with compiling, export, checks", ours["wall"]))
            gflop = p.gflop()
            if gflop:
                share = "%.1f %% of the peak of %g" % (100 * gflop / ours["seconds"] / args.peak, args.peak) if args.peak else "share of the peak unknown (--peak)"
                print("  miplc reaches %.0f GFLOP/s, %s" % (gflop / ours["seconds"], share), flush=True)
        left = peers(args, "none" if p.images else "training")
        while left:
            limit = (end - time.perf_counter()) / len(left)
            name, command = left.pop(0)
            theirs = measured(name, lambda: p.peer(command, limit))
            if ours and theirs:
                print("    %.2f times the time of miplc, %.2f times if compiling, export and checks count" %
                      (theirs["seconds"] / ours["seconds"], theirs["seconds"] / ours["wall"]), flush=True)
    if args.out:
        with open(args.out, "w") as f:
            json.dump(result, f, indent=1)
    return 0 if ours else 1


def peers(args, normalize):
    """Returns the names and commands of the other programs. They normalise as the specs do:
    demipl-program does not, program-features.yaml uses z-scores of the training bags."""
    list_ = []
    if args.torch:
        list_.append(("PyTorch, authors' loop", [args.torch, os.path.join(HERE, "pytorch", "demipl.py"), "--reading", "program",
                                                 "--loop", "loader", "--normalize", normalize, "--threads", str(args.threads)]))
    if args.jax:
        list_ += [("JAX, %s under jit" % how, [args.jax, os.path.join(HERE, "jax", "demipl.py"), "--jit", how]) for how in ("step", "epoch")]
    return list_


sys.exit(main())
