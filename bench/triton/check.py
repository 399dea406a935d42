"""Asks a Triton on loopback for predictions, over HTTP and gRPC, many at once, and
compares them with onnxruntime on the model file that was exported from.

    python3 check.py HTTP_PORT GRPC_PORT NAME MODEL.onnx
"""
import sys
import threading

import numpy as np
import onnxruntime
import tritonclient.grpc as grpc
import tritonclient.http as http

ports, name = {"http": sys.argv[1], "grpc": sys.argv[2]}, sys.argv[3]
session = onnxruntime.InferenceSession(sys.argv[4], providers=["CPUExecutionProvider"])
batch = "bag_of" in [i.name for i in session.get_inputs()]
shape = [d for d in session.get_inputs()[0].shape[1:]]
names = [o.name for o in session.get_outputs()]
worst, lock = 0.0, threading.Lock()


def ask(kind, module, sizes, seed):
    global worst
    client, rng = module.InferenceServerClient(f"127.0.0.1:{ports[kind]}"), np.random.default_rng(seed)
    for n in sizes:
        bag = rng.normal(size=(n, *shape)).astype(np.float32)
        feed = {"instances": bag, "bag_of": np.zeros(n, np.int64)} if batch else {"instances": bag}
        want = dict(zip(names, session.run(None, feed)))
        sent = bag[None] if batch else bag
        x = module.InferInput("instances", list(sent.shape), "FP32")
        x.set_data_from_numpy(sent)
        made = client.infer(name, [x], outputs=[module.InferRequestedOutput(o) for o in names])
        for o in names:
            got = made.as_numpy(o)
            assert got.size == want[o].size, (o, got.shape, want[o].shape)
            with lock:
                worst = max(worst, float(np.abs(got.ravel() - want[o].ravel()).max()))


threads = [threading.Thread(target=ask, args=(kind, module, (1, 2, 40, 1000, 3), seed))
           for seed in range(8) for kind, module in (("http", http), ("grpc", grpc))]
failed = []
threading.excepthook = lambda args: failed.append(args)
for t in threads:
    t.start()
for t in threads:
    t.join()
for f in failed[:3]:
    print(f.exc_type.__name__, f.exc_value)
print(f"{name}: {len(threads) * 5} predictions over HTTP and gRPC, largest difference {worst:.1e}")
sys.exit(bool(failed) or worst > 1e-5)
