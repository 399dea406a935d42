# ---
# jupyter:
#   kernelspec: {name: python3, display_name: Python 3, language: python}
# ---

# %% [markdown]
# # From the notebook to a Go service
#
# Train a model here, hand its file to a Go program, and check that both predict the same. This notebook needs Go and
# a clone of the repository, whose folder `python/notebooks` it runs in.

# %%
import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import numpy as np
import onnxruntime

import miplc

# %% [markdown]
# ## Train
#
# The classes, the names of the features and the normalisation are in the file, so the service sends raw features.

# %%
bags = miplc.synth("prototypes", bags=200, classes=["cat", "dog", "horse"], features=4, r=1)
classifier = miplc.MIPLClassifier("demipl-mlp", train__epochs=30, random_state=0).fit(bags)
model = classifier.model_.save("model.onnx").resolve()
print(f"{model.name}: {model.stat().st_size} bytes")

# %% [markdown]
# ## The service
#
# Four lines of Go open the file and predict a bag:
#
# ```go
# model, err := runtime.Open("model.onnx") // package github.com/miplc/miplc/runtime
# bag, err := runtime.NewBag([][]float32{{0.4, -1.4, 1.9, 0.5}, {-2.2, 0.6, 2.3, -2.6}})
# p, err := model.Predict(ctx, bag)
# fmt.Println(p.Class, p.Probabilities, p.Attention)
# ```
#
# `examples/service` is a complete HTTP service of this kind. This cell builds and starts it. It needs the onnxruntime
# library; that of the Python package will do.

# %%
repository = Path("../..").resolve()
subprocess.run(["go", "build", "-o", model.with_name("service"), "./examples/service"], cwd=repository, check=True)

with socket.socket() as free:
    free.bind(("localhost", 0))
    port = free.getsockname()[1]
library = next(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime*"))
environment = os.environ | {"PORT": str(port), "ONNXRUNTIME_SHARED_LIBRARY_PATH": str(library)}
service = subprocess.Popen([model.with_name("service"), model], env=environment, stderr=subprocess.DEVNULL)


def post(bag):
    request = urllib.request.Request(f"http://localhost:{port}/predict", json.dumps(bag.tolist()).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


for attempt in range(100):  # until it listens
    try:
        answer = post(bags[0])
        break
    except OSError:
        time.sleep(0.1)
answer

# %% [markdown]
# ## The same predictions
#
# Go and Python run the same file, so their probabilities agree up to rounding.

# %%
served = np.array([post(bag)["probabilities"] for bag in bags])
difference = np.abs(served - classifier.predict_proba(bags)).max()
print(f"largest difference of {served.size} probabilities: {difference:.1e}")
assert difference < 1e-5

# %%
service.terminate()
print("exit status:", service.wait())

# %% [markdown]
# ## Without writing Go
#
# The program of this package is a server, too. It has a page that shows a bag with its attention, metrics, and the
# protocols of Triton and KServe:
#
#     miplc serve model.onnx
