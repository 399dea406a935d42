"""Writes the small models of this directory: python3 make_models.py

Needs onnx and numpy. The models follow the ONNX contract of miplc; their
parameters are random but fixed. They exist so that package runtime can be
tested on files that miplc's own exporter did not write.
"""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))


class Graph:
    """Collects nodes and initializers in the order in which they are made."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.initializers = [], []

    def const(self, name, value, dtype=np.float32):
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def param(self, name, *shape, scale=1.0):
        bound = scale / np.sqrt(np.prod(shape[:-1]))
        return self.const(name, self.rng.uniform(-bound, bound, shape))

    def op(self, kind, *inputs, out=None, **attrs):
        out = out or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attrs))
        return out

    def dense(self, x, name, rows, cols, **kw):
        y = self.op("MatMul", x, self.param(name + ".weight", rows, cols, **kw))
        return self.op("Add", y, self.param(name + ".bias", 1, cols, **kw))

    def scores(self, h, dim, hidden, gain):
        """s of Eq. 2, [N, 1]: the attention score is sigmoid(s)."""
        v = self.op("Tanh", self.dense(h, "attention.v", dim, hidden, scale=3))
        u = self.op("Sigmoid", self.dense(h, "attention.u", dim, hidden, scale=3))
        g = self.op("Mul", v, u)
        return self.op("MatMul", g, self.param("attention.w", hidden, 1, scale=gain))

    def log_attention(self, s):
        """log a = -softplus(-s); also for large |s|."""
        return self.op("Neg", self.op("Softplus", self.op("Neg", s)))


def pool_one_bag(g, h, s, dim, k):
    la = g.op("Transpose", g.log_attention(s), perm=[1, 0])  # [1, n]
    weights = g.op("Softmax", la, axis=1)
    z = g.op("MatMul", weights, h)
    logits = g.dense(z, "classifier", dim, k, scale=4)
    p = g.op("Softmax", logits, axis=1)
    g.op("Identity", p, out="probabilities")
    a = g.op("Exp", la)
    g.op("Identity", a, out="attention")


def pool_batch(g, h, s, dim, k):
    """One row a bag: the softmax of log a runs over the instances of the bag."""
    la = g.op("Transpose", g.log_attention(s), perm=[1, 0])  # [1, N]
    last = g.op("ReduceMax", "bag_of", keepdims=0)
    bags = g.op("Add", last, g.const("one", 1, np.int64))
    ids = g.op("Range", g.const("zero", 0, np.int64), bags, g.const("step", 1, np.int64))
    column = g.op("Unsqueeze", ids, g.const("axis1", [1], np.int64))
    row = g.op("Unsqueeze", "bag_of", g.const("axis0", [0], np.int64))
    mask = g.op("Equal", column, row)  # [B, N]
    masked = g.op("Where", mask, la, g.const("minus", -1e30))
    z = g.op("MatMul", g.op("Softmax", masked, axis=1), h)
    p = g.op("Softmax", g.dense(z, "classifier", dim, k, scale=4), axis=1)
    g.op("Identity", p, out="probabilities")
    a = g.op("Exp", la)
    g.op("Reshape", a, g.const("flat", [-1], np.int64), out="attention")
    g.op("ArgMax", p, axis=1, keepdims=0, out="label")


def save(g, name, shape, k, contract="bag/1", opset=17, drop=(), meta=None, rename=None):
    batch = contract.startswith("batch")
    N, B = ("N", "B") if batch else ("n", 1)
    inputs = [helper.make_tensor_value_info("instances", TensorProto.FLOAT, [N] + shape)]
    outputs = [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [B, k]),
               helper.make_tensor_value_info("attention", TensorProto.FLOAT, [N] if batch else [1, N])]
    if batch:
        inputs.append(helper.make_tensor_value_info("bag_of", TensorProto.INT64, ["N"]))
        outputs.append(helper.make_tensor_value_info("label", TensorProto.INT64, ["B"]))
    graph = helper.make_graph(g.nodes, "demipl", inputs, outputs, g.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)],
                              producer_name="make_models.py", ir_version=8)
    props = {
        "miplc.contract": contract,
        "miplc.version": "test",
        "miplc.classes": json.dumps([f"class {i}" for i in range(k)]),
        "miplc.input_shape": json.dumps(shape),
        "miplc.normalization": "none",
        "miplc.spec_sha256": "0" * 64,
        "miplc.data_sha256": "1" * 64,
        "miplc.seed": "7",
        "miplc.split": json.dumps({"kind": "random", "train": 0.7}),
        "miplc.engine": "none",
        "miplc.parity": json.dumps({}),
        "miplc.backends": json.dumps(["onnxruntime"] if batch else ["onnxruntime", "onnx-go"]),
    }
    props.update(meta or {})
    for key in drop:
        del props[key]
    helper.set_model_props(model, props)
    onnx.checker.check_model(model, full_check=True)
    path = os.path.join(HERE, name)
    onnx.save(model, path)
    print(f"{name}: {os.path.getsize(path)} bytes")


def features(name, dim, hidden, k, seed, gain=1.0, **kw):
    g = Graph(seed)
    s = g.scores("instances", dim, hidden, gain)
    pool = pool_batch if kw.get("contract", "bag/1").startswith("batch") else pool_one_bag
    pool(g, "instances", s, dim, k)
    save(g, name, [dim], k, **kw)


def image(name, seed):
    """Two convolutions on 12x12 images, as small as their pooling allows."""
    g = Graph(seed)
    h = "instances"
    for i, (cin, cout) in enumerate([(1, 3), (3, 4)]):
        w = g.const(f"conv{i}.weight", g.rng.uniform(-0.4, 0.4, (cout, cin, 3, 3)))
        b = g.const(f"conv{i}.bias", g.rng.uniform(-0.4, 0.4, (cout,)))
        h = g.op("Conv", h, w, b, kernel_shape=[3, 3], pads=[0, 0, 0, 0], strides=[1, 1])
        h = g.op("Relu", h)
        h = g.op("MaxPool", h, kernel_shape=[2, 2], strides=[2, 2])
    h = g.op("Flatten", h, axis=1)
    h = g.op("Relu", g.dense(h, "dense", 4, 6))
    s = g.scores(h, 6, 5, 1.0)
    pool_one_bag(g, h, s, 6, 3)
    save(g, name, [1, 12, 12], 3)


if __name__ == "__main__":
    features("demipl-38x13.onnx", 38, 128, 13, seed=1)  # the size of Birdsong-MIPL
    features("demipl-3x4.onnx", 3, 5, 4, seed=2)
    features("saturated-3x4.onnx", 3, 5, 4, seed=3, gain=250)  # |s| up to 60
    features("batch-3x4.onnx", 3, 5, 4, seed=2, contract="batch/1")
    image("image-12x12.onnx", seed=4)
