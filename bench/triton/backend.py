"""A replacement for Triton's onnxruntime back end, which is not on PyPI: the tritonserver that
nvidia-pytriton ships has only the python back end. Installed as BACKENDS/onnxruntime/model.py, it
lets the real server read, schedule and batch with the config.pbtxt that is used in production. It
handles ragged batches like the real back end: it concatenates inputs that allow it, fills
batch_input, and splits the outputs by batch_output."""
import json
import os
import sys

sys.path.insert(0, os.environ["TRITON_SITE"])  # the stub ignores PYTHONPATH
import numpy as np
import onnxruntime
import triton_python_backend_utils as pb


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        return config

    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        path = os.path.join(args["model_repository"], args["model_version"], self.config.get("default_model_filename") or "model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [i["name"] for i in self.config["input"]]
        self.outputs = [o["name"] for o in self.config["output"]]

    def execute(self, requests):
        feeds = [{name: pb.get_input_tensor_by_name(r, name).as_numpy() for name in self.inputs} for r in requests]
        try:
            made = self.ragged(feeds) if self.config.get("batch_input") else [self.session.run(self.outputs, feed) for feed in feeds]
            print(f"ran {len(feeds)} requests at once" if self.config.get("batch_input") else f"ran {len(feeds)} requests", flush=True)
            return [pb.InferenceResponse([pb.Tensor(n, v) for n, v in zip(self.outputs, values)]) for values in made]
        except Exception as e:  # the request is wrong, not the server
            return [pb.InferenceResponse([], pb.TritonError(str(e))) for _ in requests]

    def ragged(self, feeds):
        whole = {name: np.concatenate([feed[name].reshape(-1) for feed in feeds]) for name in self.inputs}
        for b in self.config["batch_input"]:
            assert b["kind"] == "BATCH_ACCUMULATED_ELEMENT_COUNT", b
            counts = np.cumsum([feed[b["source_input"][0]].size for feed in feeds])
            whole[b["target_name"][0]] = counts.astype({"TYPE_INT32": np.int32, "TYPE_FP32": np.float32}[b["data_type"]])
        source = {b["target_name"][0]: b["source_input"][0] for b in self.config["batch_output"]}
        parts = []
        for name, value in zip(self.outputs, self.session.run(self.outputs, whole)):
            if name in source:  # the dynamic dimension is that of the input
                ends = np.cumsum([feed[source[name]].shape[1] for feed in feeds])
                parts.append([v.reshape(1, -1) for v in np.split(value, ends[:-1])])
            else:
                parts.append([v.reshape(1, *value.shape[1:]) for v in value])
        return list(zip(*parts))
