#!/usr/bin/env python3
"""Runs miplc, PyTorch and JAX in turn on the same bags and prints how they compare.

    python3 bench/compare.py                 # everything, about twenty minutes
    python3 bench/compare.py --only cnn      # cases whose name contains a word
    python3 bench/compare.py --rounds 3 --seconds 0.5

Every case is measured in rounds. In each round every program runs once, so
that other load on the machine affects all of them alike. See bench/README.md.
Needs Go, and numpy in the Python that runs this script.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
PEER = os.path.join(HERE, "pytorch", "demipl.py")
JAX_PEER = os.path.join(HERE, "jax", "demipl.py")
PROGRAM = os.path.join(HERE, "program-features.yaml")

BAGS = 64  # of each set
RUNS = 64  # that train at the same time
# name: shape of an instance, classes, instances of a bag
SETS = {"features38": ((38,), 13, 37), "features128": ((128,), 7, 25), "cnn": ((1, 28, 28), 5, 41)}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    env = os.environ.get
    p.add_argument("--torch", default=env("MIPLC_BENCH_TORCH", "python3"), help="Python with PyTorch; also $MIPLC_BENCH_TORCH")
    p.add_argument("--jax", default=env("MIPLC_BENCH_JAX", ""), help="Python with JAX; also $MIPLC_BENCH_JAX; empty: do not measure it")
    p.add_argument("--onnxruntime", default=env("MIPLC_BENCH_ONNXRUNTIME", ""),
                   help="Python with onnxruntime; also $MIPLC_BENCH_ONNXRUNTIME; empty: do not measure it")
    p.add_argument("--library", default=env("ONNXRUNTIME_SHARED_LIBRARY_PATH", ""), help="onnxruntime library for miplc; empty: searched")
    p.add_argument("--go", default=env("GO", "go"))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=1.0, help="approximate duration of one program in one round, in seconds")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--only", default="", help="cases whose name contains this word")
    p.add_argument("--out", default=os.path.join(HERE, "results"), help="folder for the results; empty: do not write them")
    return p.parse_args()


def write_set(path, shape, classes, size, bags=BAGS):
    """Bags of random instances; images are mostly background, like digits."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(bags * size,) + shape)
    if len(shape) == 3:
        x = np.where(rng.random(x.shape) < 0.19, rng.random(x.shape), 0)
    labels = rng.integers(0, classes, bags)
    candidates = np.zeros((bags, classes), np.uint8)
    candidates[np.arange(bags), labels] = 1
    candidates[np.arange(bags), (labels + 1) % classes] = 1
    np.savez(path, instances=x.astype(np.float32), offsets=np.arange(bags + 1, dtype=np.int64) * size,
             candidates=candidates, labels=labels.astype(np.int64))


def run(command, threads=1):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    if shutil.which("taskset"):  # the last cores: JAX takes as many threads as it finds cores
        cores = os.cpu_count()
        command = ["taskset", "-c", "%d-%d" % (max(0, cores - threads), cores - 1)] + command
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit("%s failed:\n%s" % (" ".join(command), done.stderr.strip()))
    out = json.loads(done.stdout.strip().splitlines()[-1])
    for name in ("median", "min", "cpu"):
        out.setdefault(name + "_us", out.get(name + "_step_us"))
    return out


def install_onnxruntime(go, folder):
    """Installs onnxruntime in the cache of miplc, unless miplc finds one on this machine."""
    miplc = os.path.join(folder, "miplc")
    subprocess.run([go, "build", "-o", miplc, "./cmd/miplc"], cwd=ROOT, check=True)
    if subprocess.run([miplc, "runtime", "path"], capture_output=True).returncode != 0:
        subprocess.run([miplc, "runtime", "install"], check=True)


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.results = args, folder, []
        self.driver = os.path.join(folder, "driver")
        subprocess.run([args.go, "build", "-o", self.driver, "./bench"], cwd=ROOT, check=True)
        if not args.library:
            install_onnxruntime(args.go, folder)
        self.data = {}
        for name, (shape, classes, size) in SETS.items():
            self.data[name] = os.path.join(folder, name + ".npz")
            write_set(self.data[name], shape, classes, size)
        self.gpu = subprocess.run([args.torch, "-c", "import torch; print(int(torch.cuda.is_available()))"],
                                  capture_output=True, text=True).stdout.strip() == "1"

    def miplc(self, command, name, spec, steps, threads, *more):
        return [self.driver, command, "-data", self.data[name], "-spec", spec, "-library", self.args.library,
                "-steps", str(steps), "-threads", str(threads)] + [str(m) for m in more]

    def torch(self, name, threads, *more):
        return [self.args.torch, PEER, "--data", self.data[name], "--normalize", "none", "--threads", str(threads)] + \
            (["--cnn"] if name == "cnn" else []) + [str(m) for m in more]

    def torches(self, dev):
        """PyTorch as people run it on a device, and compiled."""
        at = ["--device", dev]
        return [("PyTorch %s" % dev, at), ("PyTorch %s, torch.compile" % dev, at + ["--compile"])]

    def jax(self, name, *more):
        cnn = ["--cnn"] if name == "cnn" else []
        return lambda epochs: [self.args.jax, JAX_PEER, "--data", self.data[name], "--epochs", str(epochs)] + cnn + [str(m) for m in more]

    def case(self, title, threads, programs, reference):
        """Measures programs, a list of (label, function from a number of steps to
        a command). The others are compared with the first one."""
        if self.args.only and self.args.only not in title:
            return
        steps = {}
        for label, command in programs:  # a short run shows how many steps fit into the time
            us = run(command(5), threads)["median_us"]
            steps[label] = max(3, min(100000, int(self.args.seconds * 1e6 / us)))
        rounds = {label: [] for label, _ in programs}
        for _ in range(self.args.rounds):
            for label, command in programs:
                rounds[label].append(run(command(steps[label]), threads))
        print("\n%s, %d thread%s (%d bags of %d instances)" % (title, threads, "s" * (threads > 1), *reference))
        ours = rounds[programs[0][0]]
        for label, _ in programs:
            r = rounds[label]
            row = {"case": title, "threads": threads, "program": label, "steps_a_round": steps[label],
                   "median_us": float(np.median([x["median_us"] for x in r])), "min_us": min(x["min_us"] for x in r),
                   "cpu_us": float(np.median([x["cpu_us"] for x in r])), "rounds_us": [x["median_us"] for x in r]}
            if r is not ours:
                row["times_miplc"] = float(np.median([x["median_us"] / o["median_us"] for x, o in zip(r, ours)]))
                row["times_miplc_min"] = row["min_us"] / min(x["min_us"] for x in ours)
                row["times_miplc_cpu"] = float(np.median([x["cpu_us"] / o["cpu_us"] for x, o in zip(r, ours)]))
            self.results.append(row)
            print("  %-34s median %9.1f  min %9.1f  cpu %9.1f us%s" % (
                label, row["median_us"], row["min_us"], row["cpu_us"],
                "   %.2f times miplc (%.2f by minima, %.2f by processor time)" % (
                    row["times_miplc"], row["times_miplc_min"], row["times_miplc_cpu"]) if r is not ours else ""), flush=True)

    def training(self, threads):
        for name, (_, _, size) in SETS.items():
            spec = "demipl-image" if name == "cnn" else "demipl"
            program = "demipl-program" if name == "cnn" else PROGRAM
            devices = ["cpu"] + (["cuda"] if self.gpu else [])
            for bags in (1, 16):
                programs = [("miplc", lambda s, b=bags: self.miplc("train", name, spec, s, threads, "-bags", b))]
                for label, more in [t for dev in devices for t in self.torches(dev)]:
                    programs.append((label, lambda s, b=bags, m=more: self.torch(name, threads, "--batch", b, "--steps", s, *m)))
                self.case("train %s, %d a step, paper's formula" % (name, bags), threads, programs, (bags, size))
            programs = [("miplc", lambda s: self.miplc("train", name, program, s, threads))]
            for label, more in [t for dev in devices for t in self.torches(dev)]:
                programs.append((label + ", authors' loop", lambda s, m=more: self.torch(
                    name, threads, "--reading", "program", "--loop", "loader", "--steps", s, *m)))
            if self.args.jax:
                programs += [("JAX, each %s under jit" % unit, self.epochs(self.jax(name, "--jit", unit))) for unit in ("step", "epoch")]
            self.case("train %s, 1 a step, authors' program" % name, threads, programs, (1, size))
            if self.args.jax and name != "cnn":  # 64 runs on images take minutes a round
                self.case("train %s, %d runs, authors' program" % (name, RUNS), threads, [
                    ("miplc", self.epochs(lambda e: self.miplc("runs", name, program, e, threads, "-runs", RUNS), RUNS)),
                    ("JAX, each epoch of all runs under jit", self.epochs(self.jax(name, "--jit", "epoch", "--runs", RUNS), RUNS)),
                ], (1, size))

    def epochs(self, command, runs=1):
        """A program that counts epochs of BAGS bags and several runs, as one that counts steps."""
        return lambda steps: command(max(2, round(steps / BAGS / runs)))

    def inference(self, threads):
        for name, (_, _, size) in SETS.items():
            spec = "demipl-image" if name == "cnn" else "demipl"
            for bags in (1, 16):
                model = os.path.join(self.folder, "%s-%d.onnx" % (name, bags))
                run([self.driver, "model", "-data", self.data[name], "-spec", spec, "-bags", str(bags), "-out", model])
                programs = [("miplc runtime", lambda s: self.miplc("infer", name, spec, s, threads, "-model", model, "-bags", bags)),
                            ("PyTorch cpu, eval", lambda s: self.torch(name, threads, "--infer", s, "--batch", bags))]
                if self.args.onnxruntime:
                    programs.append(("onnxruntime from Python", lambda s: [
                        self.args.onnxruntime, os.path.join(HERE, "onnxruntime", "infer.py"), "--data", self.data[name],
                        "--model", model, "--steps", str(s), "--threads", str(threads), "--bags", str(bags)]))
                if threads == 1 and bags == 1:
                    programs.append(("onnx-go", lambda s: self.miplc("infer", name, spec, s, 1, "-model", model, "-backend", "onnx-go")))
                self.case("predict %s, %d at once" % (name, bags), threads, programs, (bags, size))


def machine(args):
    """Returns the description of the machine and the versions of the programs."""
    def ask(python, code):
        done = subprocess.run([python, "-c", code], capture_output=True, text=True) if python else None
        return done.stdout.strip() if done and done.returncode == 0 else ""

    cpu = platform.processor()
    if os.path.exists("/proc/cpuinfo"):
        text = open("/proc/cpuinfo").read()
        cpu = (re.search(r"model name\s*:\s*(.*)", text) or [0, cpu])[1]
    if shutil.which("lscpu"):
        fields = dict(re.findall(r"^(CPU family|Model|Stepping):\s*(\S+)", subprocess.run(["lscpu"], capture_output=True, text=True).stdout, re.M))
        cpu += " family %s model %s" % (fields.get("CPU family", "?"), fields.get("Model", "?"))
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {
        "date": datetime.date.today().isoformat(), "cpu": cpu, "cores": os.cpu_count(), "system": "%s %s" % (platform.system(), platform.machine()),
        "load_at_start": "%.1f" % os.getloadavg()[0], "miplc": git,
        "go": subprocess.run([args.go, "env", "GOVERSION"], cwd=ROOT, capture_output=True, text=True).stdout.strip(),
        "torch": ask(args.torch, "import torch; print(torch.__version__)"),
        "gpu": ask(args.torch, "import torch; print(torch.cuda.get_device_name(0) if torch.cuda.is_available() else '')"),
        "jax": ask(args.jax, "import jax; print(jax.__version__)"),
        "onnxruntime for Python": ask(args.onnxruntime, "import onnxruntime; print(onnxruntime.__version__)"),
        "rounds": args.rounds, "seconds": args.seconds,
    }


def save(folder, about, results):
    slug = re.sub(r"[^a-z0-9]+", "-", about["cpu"].lower()).strip("-")
    path = os.path.join(folder, "%s-%s" % (about["date"], slug))
    with open(path + ".json", "w") as f:
        json.dump({"machine": about, "results": results}, f, indent=1)
    with open(path + ".md", "w") as f:
        f.write("# Measured %s on %s\n\n" % (about["date"], about["cpu"]))
        f.writelines("- %s: %s\n" % (k, v) for k, v in about.items() if v)
        f.write("\nMicroseconds per step or prediction: median of the medians of all rounds, minimum, processor time. The last three columns are ratios to miplc: bench/README.md defines them.\n")
        title = None
        for r in results:
            if title != (r["case"], r["threads"]):
                title = (r["case"], r["threads"])
                f.write("\n## %s, %d thread%s\n\n| program | median | min | cpu | times miplc | by minima | by processor time |\n|---|---|---|---|---|---|---|\n"
                        % (r["case"], r["threads"], "s" * (r["threads"] > 1)))
            ratios = "%.2f | %.2f | %.2f" % (r["times_miplc"], r["times_miplc_min"], r["times_miplc_cpu"]) if "times_miplc" in r else "1 | 1 | 1"
            f.write("| %s | %.1f | %.1f | %.1f | %s |\n" % (r["program"], r["median_us"], r["min_us"], r["cpu_us"], ratios))
    print("\nwrote %s.md and .json" % path)


def main():
    args = arguments()
    about = machine(args)
    if not about["torch"]:
        sys.exit("%s has no PyTorch: name a Python that has it with --torch or MIPLC_BENCH_TORCH" % args.torch)
    if args.out:  # not after ten minutes: the folder may be read-only
        os.makedirs(args.out, exist_ok=True)
    print(json.dumps(about, indent=1))
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for threads in [int(t) for t in args.threads.split(",")]:
            bench.training(threads)
            bench.inference(threads)
        if args.out and bench.results:
            save(args.out, about, bench.results)


main()
