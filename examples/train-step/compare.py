"""Compares the losses of several logs with lines "step I loss X".

    python3 compare.py 1e-5 miplc.log python.log browser.log
"""
import sys

tolerance, names = float(sys.argv[1]), sys.argv[2:]
logs = {name: [float(line.split()[3]) for line in open(name) if line.startswith("step ")] for name in names}
first = logs[names[0]]
if not first or any(len(log) != len(first) for log in logs.values()):
    sys.exit(f"the logs hold {[len(log) for log in logs.values()]} steps")
print("step", *(name.rsplit("/", 1)[-1].removesuffix(".log").rjust(14) for name in names))
for i in range(len(first)):
    print(f"{i + 1:4}", *(f"{logs[name][i]:14.8f}" for name in names))
worst = max(abs(log[i] - x) / max(1, abs(x)) for log in logs.values() for i, x in enumerate(first))
print(f"largest difference {worst:.1e}, tolerance {tolerance:.0e}")
sys.exit(0 if worst <= tolerance else 1)
