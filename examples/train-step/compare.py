"""Compares the losses of several logs. Their lines are "step I loss X", or the same after the name of a provider.

    python3 compare.py 1e-5 miplc.log python.log browser.log
"""
import re
import sys
from pathlib import Path

tolerance, series = float(sys.argv[1]), {}
for path in map(Path, sys.argv[2:]):
    for provider, loss in re.findall(r"^(\w+ )?step \d+ loss (.+)$", path.read_text(), re.MULTILINE):
        series.setdefault(provider.strip() or path.stem, []).append(float(loss))
first = next(iter(series.values()), [])
if not first or any(len(losses) != len(first) for losses in series.values()):
    sys.exit(f"the logs have different numbers of losses: { {name: len(losses) for name, losses in series.items()} }")
print("loss")
print("step", *(name.rjust(14) for name in series))
for i in range(len(first)):
    print(f"{i + 1:4}", *(f"{losses[i]:14.8f}" for losses in series.values()))
worst = max(abs(x - y) / max(1, abs(y)) for losses in series.values() for x, y in zip(losses, first))
print(f"largest difference {worst:.1e}, tolerance {tolerance:.0e}")
sys.exit(0 if worst <= tolerance else 1)
