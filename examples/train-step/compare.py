"""Compares the losses of several logs. Their lines are "step I loss X ..." with a loss for each run,
or the same after the name of a provider.

    python3 compare.py 1e-5 miplc.log python.log browser.log
"""
import re
import sys
from pathlib import Path

tolerance, series = float(sys.argv[1]), {}
for path in map(Path, sys.argv[2:]):
    for provider, losses in re.findall(r"^(\w+ )?step \d+ loss (.+)$", path.read_text(), re.MULTILINE):
        series.setdefault(provider.strip() or path.stem, []).append([float(x) for x in losses.split()])
first = next(iter(series.values()), [])
if not first or any([len(s) for s in steps] != [len(s) for s in first] for steps in series.values()):
    sys.exit(f"the logs have different numbers of losses: { {name: sum(map(len, steps)) for name, steps in series.items()} }")
print("mean loss of the runs" if len(first[0]) > 1 else "loss")
print("step", *(name.rjust(14) for name in series))
for i in range(len(first)):
    print(f"{i + 1:4}", *(f"{sum(steps[i]) / len(steps[i]):14.8f}" for steps in series.values()))
worst = max(abs(x - y) / max(1, abs(y)) for steps in series.values() for a, b in zip(steps, first) for x, y in zip(a, b))
print(f"largest difference of a run {worst:.1e}, tolerance {tolerance:.0e}")
sys.exit(0 if worst <= tolerance else 1)
