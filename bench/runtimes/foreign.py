"""Runs models of miplc in runtimes that miplc does not use, and says how far each is
from what miplc predicts.

    python3 foreign.py REPORT DIR...

Each DIR contains the output of `miplc build SPEC -o DIR --sample-steps N`, and a file bags.json:
a list of bags, each an object with inputs and the outputs of the Go runtime by name:
{"instances": {"shape": [3, 20], "data": [...]}, ...}. REPORT is one JSON object. It lists the
runtimes by name, each with its version or the reason why it is missing, and for each DIR the
largest difference of a prediction and of the loss of a step.
"""
import importlib.metadata
import json
import pathlib
import sys
import tempfile

import numpy as np

outputs = ["probabilities", "attention"]


def onnxruntime(path):
    import onnxruntime
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return lambda feed: dict(zip(names, session.run(None, feed)))


def reference(path):
    from onnx.reference import ReferenceEvaluator
    evaluator = ReferenceEvaluator(str(path))
    return lambda feed: dict(zip(evaluator.output_names, evaluator.run(None, feed)))


def openvino(path):
    import openvino
    # Computes in bfloat16 where the processor can, unless told otherwise.
    compiled = openvino.compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    def run(feed):
        made = compiled(feed)
        return {name: made[o] for o in compiled.outputs for name in o.get_names()}
    return run


def tract(path):
    import onnx
    import tract
    names = [o.name for o in onnx.load(path).graph.output]  # tract has its own in their place
    model = tract.onnx().load(str(path)).into_model()
    inputs = [model.input_name(i) for i in range(model.input_count())]
    runnable = model.into_runnable()
    def run(feed):
        return dict(zip(names, (t.to_numpy() for t in runnable.run([feed[name] for name in inputs]))))
    return run


def tinygrad(path):
    from tinygrad import Tensor
    from tinygrad.nn.onnx import OnnxRunner
    def run(feed):
        made = OnnxRunner(str(path))({name: Tensor(v) for name, v in feed.items()})  # one runner knows one number of instances
        return {name: t.numpy() for name, t in made.items()}
    return run


def opencv(path):
    import cv2
    net = cv2.dnn.readNetFromONNX(str(path))
    def run(feed):
        for name, value in feed.items():
            net.setInput(value, name)
        return dict(zip(outputs, net.forward(outputs)))
    return run


def mnn(path):
    import MNN
    import subprocess
    converted = tempfile.NamedTemporaryFile(suffix=".mnn").name
    subprocess.run([sys.executable, "-m", "MNN.tools.mnnconvert", "-f", "ONNX", "--modelFile", str(path), "--MNNModel", converted, "--bizCode", "miplc"],
                   check=True, capture_output=True)
    module = MNN.nn.load_module_from_file(converted, ["instances"], outputs)
    def run(feed):
        x = MNN.expr.placeholder(list(feed["instances"].shape), MNN.expr.NCHW)
        x.write(feed["instances"])
        return {name: np.array(v.read()) for name, v in zip(outputs, module.forward([x]))}
    return run


# name, distribution, how a model is opened, whether it is given training steps
runtimes = [
    ("onnxruntime", "onnxruntime", onnxruntime, True),
    ("reference evaluator", "onnx", reference, True),
    ("OpenVINO", "openvino", openvino, True),
    ("tract", "tract", tract, True),
    ("tinygrad", "tinygrad", tinygrad, False),
    ("OpenCV", "opencv-python-headless", opencv, False),
    ("MNN", "MNN", mnn, False),
]


def apart(a, b):
    """The largest difference, relative where the value is above 1."""
    if np.shape(a) != np.shape(b):
        raise ValueError(f"the shape is {np.shape(a)}, not {np.shape(b)}")
    worst = float(np.max(np.abs(np.subtract(a, b, dtype=np.float64)) / np.maximum(1, np.abs(b))))
    if not np.isfinite(worst):
        raise ValueError("it computes NaN")
    return worst


def predictions(build, open_model):
    run = open_model(build / "model.onnx")
    worst = 0.0
    for bag in json.loads((build / "bags.json").read_text()):
        value = {name: np.array(v["data"], np.float32).reshape(v["shape"]) for name, v in bag.items()}
        made = run({"instances": value["instances"]})
        worst = max(worst, *(apart(made[name], value[name]) for name in outputs))
    return worst


def steps(build, open_model):
    """Trains the sample steps; the later ones start from the parameters of the ones before."""
    manifest = json.loads((build / "manifest.json").read_text())
    sample = json.loads((build / "sample_steps.json").read_text())
    data = (build / sample["file"]).read_bytes()
    params = np.fromfile(build / manifest["train_step"]["initial"]["file"], np.float32)
    velocity = np.zeros_like(params)
    run, worst = open_model(build / "train_step.onnx"), 0.0
    for step in sample["steps"]:
        feed = {"params": params, "velocity": velocity}
        for name, t in step["inputs"].items():
            count = int(np.prod(t["shape"]))
            feed[name] = np.frombuffer(data, t["type"], count, t["offset"]).reshape(t["shape"])
        made = run(feed)
        worst = max(worst, apart(made["loss"], np.float32(step["loss"]).reshape(made["loss"].shape)))
        params, velocity = made["new_params"], made["new_velocity"]
    return worst


def checker(path):
    import onnx
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    return 0.0


def attempt(what, *given):
    try:
        return {"difference": what(*given)}
    except Exception as error:  # whatever a runtime throws is its answer
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:200]}


def tried(builds, distribution, tasks):
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return {"missing": f"the Python package {distribution} is not installed"}
    return {"version": version, **{name: {b.name: attempt(task, b, *more) for b in builds} for name, task, *more in tasks}}


def main():
    builds = [pathlib.Path(d) for d in sys.argv[2:]]
    report = {"onnx checker": tried(builds, "onnx", [
        ("model", lambda b: checker(b / "model.onnx")), ("train_step", lambda b: checker(b / "train_step.onnx"))])}
    for name, distribution, open_model, trains in runtimes:
        tasks = [("model", predictions, open_model)] + ([("train_step", steps, open_model)] if trains else [])
        report[name] = tried(builds, distribution, tasks)
    pathlib.Path(sys.argv[1]).write_text(json.dumps(report, indent=1))


main()
