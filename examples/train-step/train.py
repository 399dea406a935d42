"""Trains ten steps of a miplc model with onnxruntime alone.

    python3 train.py build

build is the folder that `miplc build SPEC -o build --sample-steps 10` wrote.
"""
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

build = Path(sys.argv[1])
step = onnxruntime.InferenceSession(build / "train_step.onnx", providers=["CPUExecutionProvider"])
layout = json.loads(step.get_modelmeta().custom_metadata_map["miplc.train_step"])
sample = json.loads((build / "sample_steps.json").read_text())
values = (build / sample["file"]).read_bytes()


def tensor(t):
    count = int(np.prod(t["shape"]))
    return np.frombuffer(values, t["type"], count, t["offset"]).reshape(t["shape"])


# The parameters, and vectors of the optimizer, which start as zeros.
shapes = {value["name"]: value["shape"] for value in layout["inputs"]}
state = {name: np.zeros(shapes[name], "<f4") for name in layout["state"]}
state["params"] = np.fromfile(build / layout["initial"]["file"], "<f4").reshape(shapes["params"])
outputs = [o["name"] for o in layout["outputs"]]
for i, s in enumerate(sample["steps"]):
    batch = {name: tensor(t) for name, t in s["inputs"].items()}
    out = dict(zip(outputs, step.run(outputs, {**state, **batch})))
    state = {name: out["new_" + name] for name in state}
    print(f"step {i + 1} loss {out['loss']:.8f}")

# Each parameter is a window of the flat vector.
p = layout["params"][0]
first = state["params"][p["offset"]:][: int(np.prod(p["shape"]))].reshape(p["shape"])
print(f"{p['name']} {list(first.shape)} now has the norm {np.linalg.norm(first):.4f}", file=sys.stderr)
