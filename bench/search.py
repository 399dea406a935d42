#!/usr/bin/env python3
"""Runs the search of miplc and that of Optuna with PyTorch in turn, and prints their processor times and accuracies.

    python3 bench/search.py --miplc miplc --torch venv/bin/python --spec demipl-mlp --data sival6-mipl-r1.npz --splits 5

Both search 64 settings from the same ranges on the same training bags and measure the chosen model on the same
test bags; see bench/pytorch/search.py. Each program uses one core. The Python of --torch has PyTorch and optuna.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pytorch", "search.py")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--miplc", default="miplc", help="the command miplc")
    p.add_argument("--torch", default="python3", help="Python with PyTorch and optuna; empty: measure miplc only")
    p.add_argument("--spec", choices=["demipl-mlp", "gated-abmil"], default="demipl-mlp")
    p.add_argument("--data", required=True, help="an .npz file of bags, such as that of miplc data synth")
    p.add_argument("--splits", type=int, default=5, help="number of random splits")
    return p.parse_args()


def run(command):
    """Returns the processor seconds of a command on one core, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "GOMAXPROCS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main():
    args = arguments()
    rows = []
    with tempfile.TemporaryDirectory() as temp:
        for split in range(1, args.splits + 1):
            to = os.path.join(temp, str(split))
            own, _ = run([args.miplc, "train", args.spec, "--search", "-o", to,
                          "--set", "data.set=" + os.path.abspath(args.data), "--set", f"data.split.seed={split}"])
            with open(os.path.join(to, "summary.json")) as f:
                row = {"split": split, "miplc_cpu_seconds": own, "miplc_test_accuracy": json.load(f)["accuracy"]}
            if args.torch:
                _, out = run([args.torch, PEER, "--model", args.spec, "--data", args.data, "--split",
                              os.path.join(to, "split.json"), "--seed", str(split)])
                peer = json.loads(out)
                row |= {"optuna_cpu_seconds": peer["cpu_seconds"], "optuna_epochs": peer["epochs"],
                        "optuna_test_accuracy": peer["test_accuracy"], "ratio": peer["cpu_seconds"] / own}
            rows.append(row)
            print(json.dumps(row), flush=True)
    print(json.dumps({"median " + name: statistics.median(row[name] for row in rows) for name in rows[0] if name != "split"}))


if __name__ == "__main__":
    main()
