#!/usr/bin/env python3
"""Tests and measures miplc on the NVIDIA GPU of a machine without network and without Go.

    MIPLC_DATA=data python3 bench/gpu.py pack packet          # on a machine with Go, in the source repository
    python3 bench/gpu.py run packet --out results PART...     # on the machine with the GPU

pack writes archives of the command, its libraries and the datasets. run unpacks those that are not yet in --work,
runs the parts and appends their results to OUT/results.md at once. The python3 of the machine needs jax with its CUDA
plugin, PyTorch and NVIDIA's libraries. A part that fails or takes longer than its limit is reported, and the next one
begins. See bench/README.md for the parts.
"""

import argparse
import hashlib
import json
import lzma
import os
import re
import shutil
import signal
import site
import statistics
import struct
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TESTED = ("compile/xla", "train/engines")  # packages whose tests run on the GPU
SETTINGS = ["--set", "train.checkpoint=0", "--set", "train.eval_every=1000"]


# ---- packing


def pack(folder):
    """Writes the archives base, fashion, tests and cuda."""
    os.makedirs(folder, exist_ok=True)
    data, miplc = os.environ["MIPLC_DATA"], os.path.join(folder, "miplc")
    subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", miplc, "./cmd/miplc"], cwd=ROOT, check=True)

    def said(*command):
        return (
            subprocess.run([miplc, *command], check=True, capture_output=True, text=True).stdout.split("\n")[0].strip()
        )

    birdsong = os.path.join(folder, "birdsong.npz")
    said("data", "synth", "birdsong-mipl", "--source", data, "-o", birdsong, "--force")
    archive(
        folder,
        "base",
        {
            "miplc": miplc,
            "birdsong.npz": birdsong,
            "libonnxruntime.so": said("runtime", "path"),
            "data/mnist": os.path.join(data, "mnist"),
            "data/mipl-splits": os.path.join(data, "mipl-splits"),
        },
    )
    archive(folder, "fashion", {"data/fashion-mnist": os.path.join(data, "fashion-mnist")})
    os.remove(miplc)
    os.remove(birdsong)
    tests = {"tests/%s.test" % name.replace("/", "-"): os.path.join(folder, os.path.basename(name) + ".test") for name in TESTED}
    for name, file in zip(TESTED, tests.values()):
        subprocess.run(["go", "test", "-c", "-trimpath", "-ldflags=-s -w", "-o", file, "./" + name], cwd=ROOT, check=True)
    archive(folder, "tests", tests)
    for file in tests.values():
        os.remove(file)
    cuda = os.environ.get("MIPLC_ORT_GPU")  # the folder onnxruntime/capi of the wheel onnxruntime-gpu
    if cuda:
        slim = os.path.join(folder, "slim.so")
        slimmed(os.path.join(cuda, "libonnxruntime_providers_cuda.so"), slim, 90)
        library = next(n for n in os.listdir(cuda) if n.startswith("libonnxruntime.so."))
        archive(
            folder,
            "cuda",
            {
                "cuda/libonnxruntime_providers_cuda.so": slim,
                "cuda/libonnxruntime.so": os.path.join(cuda, library),
                "cuda/libonnxruntime_providers_shared.so": os.path.join(cuda, "libonnxruntime_providers_shared.so"),
            },
        )
        os.remove(slim)


def archive(folder, name, files):
    path = os.path.join(folder, name + ".tar.xz")
    with lzma.open(path, "w", preset=1) as out, tarfile.open(fileobj=out, mode="w") as tar:
        for inside, file in files.items():
            tar.add(os.path.realpath(file), inside)
    print("%s: %.0f MB" % (path, os.path.getsize(path) / 1e6))


def slimmed(library, to, arch):
    """Copies a library with the code of one architecture of GPUs. The code of others becomes zeros, which compress well."""
    data, at = bytearray(open(library, "rb").read()), 0
    while (at := data.find(b"\x50\xed\x55\xba", at)) >= 0:  # the header of a fat binary
        _, version, header, size = struct.unpack_from("<IHHQ", data, at)
        if version != 1 or header != 16 or at + size > len(data):
            at += 4
            continue
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, head, length = struct.unpack_from("<HHIQ", data, entry)
            if kind != 2 or struct.unpack_from("<I", data, entry + 28)[0] != arch:
                data[entry + head : entry + head + length] = bytes(length)
            entry += head + length
        at = end
    with open(to, "wb") as f:
        f.write(data)


# ---- running


class Failure(Exception):
    """A part failed; the text gives the reason."""


class Bench:
    def __init__(self, args):
        self.args, self.work, self.begin = args, args.work, time.time()
        os.makedirs(args.out, exist_ok=True)
        os.makedirs(self.work, exist_ok=True)
        for name in sorted(os.listdir(args.packet)):
            done = os.path.join(self.work, name + ".done")
            if name.endswith(".tar.xz") and not os.path.exists(done):
                with tarfile.open(os.path.join(args.packet, name)) as tar:
                    tar.extractall(self.work, filter="data")
                open(done, "w").close()
        self.report = open(os.path.join(args.out, "results.md"), "a")
        self.log = open(os.path.join(args.out, "log.txt"), "a")
        self.env = dict(
            os.environ, ONNXRUNTIME_SHARED_LIBRARY_PATH=self.file("libonnxruntime.so"), MIPLC_DATA=self.file("data")
        )
        self.env["LD_LIBRARY_PATH"] = ":".join(
            filter(None, [os.environ.get("LD_LIBRARY_PATH"), "/usr/local/nvidia/lib64"])
        )
        self.env["PATH"] = os.path.dirname(sys.executable) + ":" + self.env["PATH"]
        self.deadline = self.begin + args.limit
        self.gpu = ["--device", "cuda"] if args.device == "cuda" else ["--engine", "xla", "--device", "cpu"]

    def file(self, *names):
        return os.path.join(self.work, *names)

    def say(self, *line):
        text = " ".join(str(x) for x in line)
        print(text, flush=True)
        self.report.write(text + "\n")
        self.report.flush()

    def call(self, command, limit=60, env=None, ok=(0,)):
        """Runs a command and returns its output; what it writes to standard error goes into the log."""
        limit = min(limit, self.deadline - time.time() - 3)
        if limit < 2:
            raise Failure("the limit of all parts is reached")
        self.log.write("$ %s\n" % " ".join(command))
        self.log.flush()
        began = time.time()
        p = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env or self.env,
            start_new_session=True,
        )
        try:
            out, err = p.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            self.log.write(err[-6000:] + "\n")
            raise Failure("stopped after %.0f s: %s" % (limit, last(err)))
        self.log.write(err[-6000:] + "\n[%d after %.1f s]\n" % (p.returncode, time.time() - began))
        self.log.flush()
        if p.returncode not in ok:
            raise Failure("exit code %d: %s" % (p.returncode, last(err or out)))
        return out

    def train(self, name, spec, device, epochs, options=(), limit=60, env=None, engine=""):
        """Trains and returns the JSON of the command, with the wall-clock seconds, and the seconds of each epoch of a run."""
        folder, began = self.file("runs", name), time.time()
        if device == "cuda" and self.args.device == "cpu":  # a dry run
            engine, device = "xla", "cpu"
        command = [
            self.file("miplc"),
            "train",
            spec,
            "-o",
            folder,
            "--force",
            "--json",
            "--device",
            device,
            "--set",
            "train.epochs=%d" % epochs,
        ]
        out = json.loads(self.call(command + (["--engine", engine] if engine else []) + list(options), limit, env))
        first = folder if "runs" not in out else os.path.join(folder, out["runs"][0]["folder"])
        metrics = [json.loads(line) for line in open(os.path.join(first, "metrics.jsonl"))]
        return dict(out, wall=time.time() - began, metrics=metrics, path=first)

    def data(self, case):
        """Returns the spec of a case and the options that name its data."""
        if case == "quickstart":
            return "quickstart", []
        if case == "birdsong":
            return "demipl", ["--set", "data.set=" + self.file("birdsong.npz")]
        set_ = self.file("mnist-40.npz" if case == "images" else "mnist.npz")
        if not os.path.exists(set_):
            self.call(
                [self.file("miplc"), "data", "synth", "mnist-mipl", "--source", self.file("data"), "-o", set_]
                + (["--bags", "40"] if case == "images" else [])
            )
        return "demipl-image" if case == "images" else "demipl-program", ["--set", "data.set=" + set_]

    # parts

    def doctor(self):
        env = dict(self.env)
        out = self.call([self.file("miplc"), "doctor"], 60, env, ok=(0, 1))
        for line in out.split("\n"):
            if re.match(r"(miplc|Go|xla on|onnxruntime on|pjrt)", line):
                self.say("   ", line)
        self.log.write(out)
        return out

    def agree(self):
        """Losses of every epoch on the GPU and on the CPU, accuracies, parity, and the same bits twice."""
        self.say(
            "| case | epochs | largest difference of a loss | test accuracy, GPU and CPU | same bits twice | parity | seconds, GPU and CPU |"
        )
        self.say("|---|---:|---:|---|---|---|---|")
        for case, epochs in (("quickstart", 30), ("birdsong", 5), ("images", 5)):
            try:
                spec, options = self.data(case)
                gpu, again, cpu = (
                    self.train(case + "-" + n, spec, d, epochs, options)
                    for n, d in (("gpu", "cuda"), ("again", "cuda"), ("cpu", "cpu"))
                )
                losses = [abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(gpu["metrics"], cpu["metrics"])]
                same = digest(gpu) == digest(again)
                parity = (
                    max((c.get("probabilities", 0) for c in gpu.get("parity", [])), default=float("nan"))
                    if isinstance(gpu.get("parity"), list)
                    else gpu.get("parity") and "ok"
                )
                self.say(
                    "| %s | %d | %.2g, %.2g in the first | %.4f %.4f | %s | %s | %.1f %.1f |"
                    % (
                        case,
                        epochs,
                        max(losses),
                        losses[0],
                        gpu["accuracy"],
                        cpu["accuracy"],
                        same,
                        parity,
                        gpu["wall"],
                        cpu["wall"],
                    )
                )
            except Failure as why:
                self.say("| %s | failed: %s |" % (case, why))

    def resume(self):
        """Interrupts a training and resumes it."""
        spec, options = self.data("birdsong")
        options = options + ["--set", "train.checkpoint=1"]
        whole = self.train("whole", spec, "cuda", 40, options)
        folder = self.file("runs", "cut")
        shutil.rmtree(folder, ignore_errors=True)
        command = (
            [self.file("miplc"), "train", spec, "-o", folder, "--json", "--set", "train.epochs=40"] + self.gpu + options
        )
        p = subprocess.Popen(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        metrics = os.path.join(folder, "metrics.jsonl")
        while p.poll() is None and time.time() < self.deadline - 5:
            if os.path.exists(metrics) and sum(1 for _ in open(metrics)) >= 3:
                p.send_signal(signal.SIGINT)
                break
            time.sleep(0.01)
        p.wait(30)
        at = sum(1 for _ in open(metrics))
        self.call([self.file("miplc"), "train", "-o", folder, "--resume", "--json"])
        self.say(
            "interrupted after %d of 40 epochs (exit code %d), resumed: the same bits: %s"
            % (at, p.returncode, digest(whole) == digest({"path": folder}))
        )

    def refuse(self):
        """A device that rounds products to TF32 must be refused."""
        spec, options = self.data("images")
        try:
            self.train("tf32", spec, "cuda", 1, options, env=dict(self.env, NVIDIA_TF32_OVERRIDE="1"))
            self.say("TF32 in NVIDIA's libraries: not refused")
        except Failure as why:
            self.say("TF32 in NVIDIA's libraries: refused:", why)

    def speed(self, how=("xla-cuda", "native-cpu"), cases=None):
        """Seconds of an epoch."""
        self.say(
            "| case | runs | device | ms of an epoch of a run | us of a step of all runs | seconds around the epochs | accuracy |"
        )
        self.say("|---|---:|---|---:|---:|---:|---:|")
        for case, runs, epochs in cases or (
            ("birdsong", 1, 8),
            ("birdsong", 16, 8),
            ("birdsong", 64, 8),
            ("mnist", 1, 4),
            ("mnist", 10, 4),
            ("mnist", 16, 4),
        ):
            for h in how:
                engine, device = h.split("-")
                if case == "mnist" and device == "cpu" and runs > 1:
                    continue
                try:
                    spec, options = self.data(case)
                    n = min(epochs, 2) if case == "mnist" and device == "cpu" else epochs
                    out = self.train(
                        "speed",
                        spec,
                        device,
                        n,
                        options + SETTINGS + (["--seeds", ",".join(map(str, range(1, runs + 1)))] if runs > 1 else []),
                        90,
                        engine=engine,
                    )
                    seconds = statistics.median(m["seconds"] for m in out["metrics"][1:] or out["metrics"])
                    steps = 910 if case == "birdsong" else 350
                    accuracy = statistics.mean(r["accuracy"] for r in out.get("runs", [out]))
                    self.say(
                        "| %s | %d | %s | %.2f | %.0f | %.1f | %.3f |"
                        % (
                            case,
                            runs,
                            h,
                            1000 * seconds,
                            1e6 * seconds * runs / steps,
                            out["wall"] - sum(m["seconds"] for m in out["metrics"]) * runs,
                            accuracy,
                        )
                    )
                except Failure as why:
                    self.say("| %s | %d | %s | failed: %s |" % (case, runs, h, why))

    def epochs(self, spec, options, runs, epochs, how="", cores=0, limit=120):
        """Returns the milliseconds of an epoch and run from the first fifth of the epochs to their end, the seconds before
        the first epoch, and the memory of the GPU in MiB. The checks after the last epoch are left out."""
        folder, began, times, memory = self.file("runs", "epochs"), time.time(), [], ""
        shutil.rmtree(folder, ignore_errors=True)
        command = ["taskset", "-c", "0-%d" % (cores - 1)] if cores else []
        command += [self.file("miplc"), "train", spec, "-o", folder, "--events", *options, *SETTINGS]
        command += ["--set", "train.epochs=%d" % epochs]
        command += ["--seeds", ",".join(map(str, range(1, runs + 1)))] if runs > 1 else []
        command += ["--engine", "native", "--device", "cpu"] if how == "cpu" else self.gpu
        self.log.write("$ %s\n" % " ".join(command))
        p = subprocess.Popen(
            command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        timer = threading.Timer(max(1, min(limit, self.deadline - time.time() - 5)), os.killpg, (p.pid, signal.SIGKILL))
        timer.start()
        for line in p.stderr:
            if not line.startswith('{"epoch"'):
                self.log.write(line[:2000])
                continue
            times.append(time.time())
            if len(times) == epochs * runs - 1 and how != "cpu" and shutil.which("nvidia-smi"):
                query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
                memory = subprocess.run(query, capture_output=True, text=True).stdout.strip()
            if len(times) == epochs * runs:
                break
        timer.cancel()
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
        p.wait()
        first = len(times) // 5
        if len(times) < 3 or len(times) - first < 2:
            raise Failure("%d of %d epochs after %.0f s" % (len(times), epochs * runs, time.time() - began))
        ms = 1000 * (times[-1] - times[first]) / (len(times) - 1 - first)
        return "%.2f | %.1f | %s | %d of %d" % (ms, times[0] - began, memory, len(times), epochs * runs)

    def table(self, rows):
        """Prints the times of rows: a name, the spec, its options, runs, epochs, and the device with the cores."""
        self.say("| case | runs | device | ms of an epoch of a run | seconds before them | MiB of the GPU | epochs |")
        self.say("|---|---:|---|---:|---:|---:|---:|")
        for name, spec, options, runs, epochs, (how, cores) in rows:
            try:
                out = self.epochs(spec, options, runs, epochs, how, cores)
            except Failure as why:
                out = "failed: %s" % why
            self.say("| %s | %d | %s | %s |" % (name, runs, "%d cores" % cores if cores else self.args.device, out))

    def images(self):
        """The epochs of 16 and of 64 runs on images."""
        self.table([("mnist", *self.data("mnist"), runs, 6, ("", 0)) for runs in (16, 64)])

    def groups(self):
        """The epochs of 1 to 256 runs on features, on the GPU and on 4, 8 and 16 cores."""
        ways = [("", 0)] + [("cpu", cores) for cores in (16, 8, 4)]
        self.table(
            [("birdsong", *self.data("birdsong"), runs, epochs, way)
             for runs, epochs in ((1, 25), (16, 20), (64, 15), (256, 5)) for way in ways]
        )

    def slides(self):
        """The epochs of gated attention on bags of 10,000 to 60,000 instances, read from disk."""
        folder = self.file("slides")
        if not os.path.exists(folder):
            maker = os.path.join(HERE, "disk", "make_slides.py")
            self.say(self.call([sys.executable, maker, folder, "--bags", str(self.args.bags)]))
        options = ["--set", "data.set=" + os.path.join(folder, "slides.csv")]
        spec = os.path.join(HERE, "disk", "slides.yaml")
        ways = [("", 0), ("cpu", os.cpu_count())]
        self.table([("slides", spec, options, runs, 3, way) for runs in (1, 4) for way in ways])

    def peers(self):
        """PyTorch and JAX on the same bags, one split."""
        self.say("| case | program | ms of an epoch | us of a step |")
        self.say("|---|---|---:|---:|")
        for case in ("birdsong", "mnist"):
            spec, options = self.data(case)
            set_ = options[1].split("=")[1]
            bags = 500 if case == "mnist" else 1300
            split = self.file("split-%s.json" % case)
            json.dump(
                {"train": list(range(1, bags * 7 // 10 + 1)), "test": list(range(bags * 7 // 10 + 1, bags + 1))},
                open(split, "w"),
            )
            common = [
                "--data",
                set_,
                "--split",
                split,
                "--device",
                self.args.device,
                "--epochs",
                "100",
                "--seconds",
                "5",
            ] + (["--cnn"] if case == "mnist" else [])
            for name, command in (
                (
                    "PyTorch, authors' loop",
                    [
                        os.path.join(HERE, "pytorch", "demipl.py"),
                        "--reading",
                        "program",
                        "--loop",
                        "loader",
                        "--normalize",
                        "none" if case == "mnist" else "training",
                    ],
                ),
                ("JAX, step under jit", [os.path.join(HERE, "jax", "demipl.py"), "--jit", "step"]),
                ("JAX, epoch under jit", [os.path.join(HERE, "jax", "demipl.py"), "--jit", "epoch"]),
            ):
                try:
                    out = json.loads(self.call([sys.executable] + command + common, 60))
                    ms = 1000 * out["seconds"] / out["epochs"]
                    self.say("| %s | %s | %.0f | %.0f |" % (case, name, ms, 1000 * ms / (bags * 7 // 10)))
                except Failure as why:
                    self.say("| %s | %s | failed: %s |" % (case, name, why))

    def seeds(self):
        """Three more seeds on each of the ten splits of FMNIST-MIPL, r = 1."""
        self.authors("seeds", [("FMNIST-MIPL", 1)])

    def authors(self, file="authors", cases=None):
        """The table of the DEMIPL authors: ten splits of 100 epochs."""
        for name, r in cases or self.cases():
            began = time.time()
            try:
                self.call(
                    [
                        self.file("miplc"),
                        "experiment",
                        os.path.join(HERE, "published", file + ".yaml"),
                        "-o",
                        self.file(file),
                        "--data-dir",
                        self.file("data"),
                        "--data",
                        name,
                        "--r",
                        str(r),
                        "--engine",
                        "xla",
                        "--device",
                        self.args.device,
                    ],
                    240,
                )
                self.say("%s, r = %s: %.1f s" % (name, r, time.time() - began))
            except Failure as why:
                self.say("%s, r = %s: %s" % (name, r, why))
            if os.path.exists(self.file(file, "results")):
                with tarfile.open(os.path.join(self.args.out, file + ".tar"), "w") as tar:
                    tar.add(self.file(file, "results"), "results")

    def cases(self):
        """Pairs of a dataset and r."""
        return [(c.rpartition("-")[0], int(c.rpartition("-")[2])) for c in self.args.cases.split(",")]

    def splits(self):
        """PyTorch on the authors' ten splits: all runs of a dataset as one stack."""
        from scipy.io import loadmat

        for name, r in self.cases():
            set_, splits, began = self.file("%s-%d.npz" % (name.lower(), r)), [], time.time()
            self.call([self.file("miplc"), "data", "synth", name.lower(), "--source", self.file("data"), "--r", str(r), "-o", set_, "--force"])
            for n in self.args.splits:
                split, mat = self.file("split-%d.json" % n), loadmat(self.file("data", "mipl-splits", "index%d.mat" % n))
                json.dump({part: mat[part + "Index"].ravel().tolist() for part in ("train", "test")}, open(split, "w"))
                splits.append(split)
            command = [sys.executable, os.path.join(HERE, "pytorch", "stacked.py"), "--data", set_, "--splits", *splits]
            command += ["--seeds", *map(str, self.args.seeds), "--lr", "0.05" if r == 3 else "0.01"]
            try:
                out = self.call(command + ["--device", self.args.device, "--epochs", str(self.args.epochs)], 600)
                runs = [json.loads(line) for line in out.splitlines()]
                self.say("%s, r = %d: %d epochs of %d runs in %.1f s, %.1f s with the start and the accuracies"
                         % (name, r, self.args.epochs, len(runs), runs[0]["seconds"], time.time() - began))
                for run in runs:
                    self.say("    %s, seed %d: %.4f" % (os.path.basename(run["split"]), run["seed"], run["test_accuracy"]))
            except Failure as why:
                self.say("%s, r = %d: %s" % (name, r, why))

    def kernels(self):
        """Kernels of a step: what the loop that XLA compiled starts on the GPU."""
        for case, runs in (("birdsong", 64), ("mnist", 10)):
            spec, options = self.data(case)
            dump = self.file("dump-%s-%d" % (case, runs))
            shutil.rmtree(dump, ignore_errors=True)
            flags = "--xla_gpu_deterministic_ops=true --xla_dump_hlo_as_text --xla_dump_to=" + dump
            seeds = ["--seeds", ",".join(map(str, range(1, runs + 1)))] if runs > 1 else []
            try:
                self.train("kernels", spec, "cuda", 1, options + SETTINGS + seeds, 90, dict(self.env, XLA_FLAGS=flags))
            except Failure as why:
                self.say("%s, %d runs: %s" % (case, runs, why))
            for path in sorted(os.listdir(dump) if os.path.isdir(dump) else []):
                if path.endswith("epoch.thunk_sequence_after_thunk_passes.txt"):
                    body = open(os.path.join(dump, path)).read().partition("body:")[2]
                    launches = re.findall(r"^ *\d+: k(?!CommandBuffer)(\w+)", body, re.M)
                    products = sum("Matmul" in name for name in launches)
                    self.say("%s, %d runs: %d kernels, %d of them products" % (case, runs, len(launches), products))
            with tarfile.open(os.path.join(self.args.out, "hlo-%s-%d.tar.xz" % (case, runs)), "w:xz") as tar:
                for path in os.listdir(dump):
                    if "after_optimizations.txt" in path or "thunk" in path:
                        tar.add(os.path.join(dump, path), path)

    def tests(self):
        """Tests of single ops, gradients and steps of all specs on the GPU, against the interpreter."""
        env = dict(self.env, MIPLC_TEST_XLA="cuda" if self.args.device == "cuda" else "plugin")
        for name in TESTED:
            p = subprocess.run(
                ["timeout", "-s", "INT", "240", self.file("tests", name.replace("/", "-") + ".test"), "-test.v", "-test.short",
                 "-test.run=Ops|InPlace|RandomGraphs|Steps|Maxima|Traces|Oracle|TwoRuns|Jobs"],
                cwd=os.path.join(ROOT, name), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            self.log.write(p.stdout)
            count = {word: len(re.findall(r"--- %s: " % word, p.stdout)) for word in ("PASS", "FAIL", "SKIP")}
            self.say(name, "exit code", p.returncode, count, *re.findall(r"--- FAIL: \S+", p.stdout)[:20])

    def cuda(self):
        """Predictions and a server on onnxruntime's CUDA provider."""
        folder = self.file("cuda")
        for place in site.getsitepackages():
            for lib in ("cu13", "cudnn"):
                source = os.path.join(place, "nvidia", lib, "lib")
                for name in os.listdir(source) if os.path.isdir(source) else []:
                    if ".so" in name and not os.path.lexists(os.path.join(folder, name)):
                        os.symlink(os.path.join(source, name), os.path.join(folder, name))
        self.env = dict(
            self.env,
            ONNXRUNTIME_SHARED_LIBRARY_PATH=os.path.join(folder, "libonnxruntime.so"),
            MIPLC_PROVIDER_CUDA=os.path.join(folder, "libonnxruntime_providers_cuda.so"),
        )
        self.doctor()
        for case in ("birdsong", "images"):
            try:
                spec, options = self.data(case)
                run = self.file("runs", case + "-cpu")
                if not os.path.exists(run):
                    self.train(case + "-cpu", spec, "cpu", 5, options)
                set_ = options[1].split("=")[1]
                answers = {}
                for device in ("cpu", self.args.device):
                    began = time.time()
                    answers[device] = json.loads(
                        self.call([self.file("miplc"), "predict", run, set_, "--device", device, "--json"], 60)
                    )
                    answers[device + "-s"] = time.time() - began
                worst = max(
                    abs(a - b)
                    for x, y in zip(bags(answers["cpu"]), bags(answers[self.args.device]))
                    for a, b in zip(x["probabilities"], y["probabilities"])
                )
                self.say(
                    "predict %s: %d bags, largest difference of a probability %.2g, %.1f s on the CPU, %.1f s on the GPU"
                    % (case, len(bags(answers["cpu"])), worst, answers["cpu-s"], answers[self.args.device + "-s"])
                )
                try:
                    self.call(
                        [self.file("miplc"), "predict", run, set_, "--device", self.args.device, "--json"],
                        60,
                        dict(self.env, NVIDIA_TF32_OVERRIDE="1"),
                    )
                    self.say("predict %s with TF32: not refused" % case)
                except Failure as why:
                    self.say("predict %s with TF32: refused: %s" % (case, why))
                if case == "birdsong":
                    self.serve(run)
            except (Failure, OSError, KeyError, ValueError) as why:
                self.say("predict %s: %s" % (case, why))

    def serve(self, run):
        bag = [[((i * 31 + j * 17) % 97) / 97 for j in range(38)] for i in range(37)]
        body, answers = json.dumps({"instances": bag}).encode(), {}
        for device in ("cpu", self.args.device):
            p = subprocess.Popen(
                [self.file("miplc"), "serve", run, "--device", device, "--http", "127.0.0.1:18080", "--grpc", ""],
                env=self.env,
                stderr=self.log,
                stdout=self.log,
            )
            try:
                for _ in range(120):
                    try:
                        request = urllib.request.Request(
                            "http://127.0.0.1:18080/predict", body, {"Content-Type": "application/json"}
                        )
                        answers[device] = json.load(urllib.request.urlopen(request, timeout=10))
                        break
                    except (urllib.error.URLError, ConnectionError):
                        if p.poll() is not None:
                            raise Failure("serve on %s ended with %d" % (device, p.returncode))
                        time.sleep(0.25)
                times = []
                for _ in range(50):
                    began = time.time()
                    urllib.request.urlopen(request, timeout=10).read()
                    times.append(time.time() - began)
                answers[device + "-ms"] = 1000 * statistics.median(times)
            finally:
                p.terminate()
                p.wait(20)
        self.say(
            "serve: largest difference of a probability %.2g, %.2f ms a request on the CPU, %.2f on the GPU"
            % (
                max(
                    abs(a - b)
                    for a, b in zip(answers["cpu"]["probabilities"], answers[self.args.device]["probabilities"])
                ),
                answers["cpu-ms"],
                answers[self.args.device + "-ms"],
            )
        )


def bags(answer):
    return answer["bags"] if "bags" in answer else answer["predictions"]


def digest(run):
    return hashlib.sha256(open(os.path.join(run["path"], "model.onnx"), "rb").read()).hexdigest()


def last(text):
    return (text or "").replace("\r", "\n").strip().split("\n")[-1][-300:]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["pack", "run"])
    p.add_argument("packet", help="folder of the archives")
    p.add_argument("parts", nargs="*")
    p.add_argument("--out", default="gpu-results")
    p.add_argument("--work", default="/tmp/miplc-gpu")
    p.add_argument("--limit", type=float, default=420, help="seconds for all parts")
    p.add_argument("--device", default="cuda")
    cases = ",".join("%s-%d" % (name, r) for r in (1, 2, 3) for name in ("MNIST-MIPL", "FMNIST-MIPL"))
    p.add_argument("--cases", default=cases, help="datasets and r of the parts authors and splits")
    p.add_argument("--epochs", type=int, default=100, help="epochs of the part splits")
    p.add_argument("--splits", type=int, nargs="*", default=range(1, 11), help="splits of the part splits")
    p.add_argument("--seeds", type=int, nargs="*", default=[1], help="seeds of the part splits")
    p.add_argument("--bags", type=int, default=30, help="bags of the part slides")
    args = p.parse_args()
    if args.what == "pack":
        return pack(args.packet)
    b = Bench(args)
    b.say("unpacked after %.0f s" % (time.time() - b.begin))
    for part in args.parts:
        began = time.time()
        b.say("\n## %s\n" % part)
        try:
            out = getattr(b, part)()
            if part == "doctor" and args.device == "cuda" and not re.search("xla on cuda  *usable", out):
                b.say(out)
                break
        except Exception as why:
            b.say("failed: %s: %s" % (type(why).__name__, why))
        b.say("\n(%s: %.0f s, at %.0f s)" % (part, time.time() - began, time.time() - b.begin))


main()
