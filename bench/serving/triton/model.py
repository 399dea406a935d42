"""Runs model.onnx through onnxruntime in Triton's python back end, the only one in the
wheel nvidia-pytriton; a real Triton has one for onnxruntime in C++."""
import json
import os
import sys

sys.path.insert(0, os.environ["TRITON_SITE"])  # the back end reads no PYTHONPATH
import onnxruntime
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [i["name"] for i in config["input"]]
        self.outputs = [o["name"] for o in config["output"]]

    def execute(self, requests):
        responses = []
        for r in requests:
            feed = {name: pb.get_input_tensor_by_name(r, name).as_numpy() for name in self.inputs}
            got = self.session.run(self.outputs, feed)
            responses.append(pb.InferenceResponse([pb.Tensor(n, v) for n, v in zip(self.outputs, got)]))
        return responses
