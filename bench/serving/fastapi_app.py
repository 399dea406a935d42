"""A plain service with FastAPI and onnxruntime: inference of the Open Inference Protocol
in JSON, one session of one thread. MODEL names the file."""
import os

import numpy as np
import onnxruntime
from fastapi import FastAPI, Request

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(os.environ["MODEL"], options, providers=["CPUExecutionProvider"])
names = [o.name for o in session.get_outputs()]
app = FastAPI()


@app.get("/v2/health/ready")
async def ready():
    return {"ready": True}


@app.post("/v2/models/bag/infer")
async def infer(request: Request):
    feed = {i["name"]: np.asarray(i["data"], np.float32).reshape(i["shape"]) for i in (await request.json())["inputs"]}
    outputs = zip(names, session.run(names, feed))
    return {"model_name": "bag", "outputs": [
        {"name": n, "datatype": "FP32", "shape": list(v.shape), "data": v.ravel().tolist()} for n, v in outputs]}
