# Compiles StableHLO text with jax's XLA on the CPU and runs it; requests and
# replies are lines of JSON, arrays lie in files (see jax.go).
import json
import os
import shutil
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax._src import xla_bridge
from jax._src.lib import _jax, xla_client

backend = xla_bridge.get_backend("cpu")
device = backend.devices()[0]
programs = {}
folder = None


def compile_text(q):
    with open(q["path"], "rb") as f:
        programs[q["program"]] = backend.compile_and_load(
            f.read(), _jax.DeviceList((device,)), xla_client.CompileOptions())
    return {}


def run(q):
    arrays = [
        jax.device_put(np.fromfile(a["path"], dtype=a["type"]).reshape(a["shape"]), device)
        for a in q["inputs"]
    ]
    result = programs[q["program"]].execute_sharded(arrays)
    outputs = [r[0] for r in result.disassemble_into_single_device_arrays()]
    for i, a in enumerate(outputs):
        np.ascontiguousarray(np.asarray(a)).tofile(q["path"] + str(i))
    return {"outputs": [list(a.shape) for a in outputs]}


for line in sys.stdin:
    q = json.loads(line)
    folder = os.path.dirname(q["path"])
    try:
        reply = compile_text(q) if q["op"] == "compile" else run(q)
    except Exception as e:  # whatever it is, the test wants to see it
        reply = {"error": str(e)}
    print(json.dumps(reply), flush=True)

if folder:
    shutil.rmtree(folder, ignore_errors=True)
