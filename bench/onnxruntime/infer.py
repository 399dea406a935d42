"""Times predictions with onnxruntime from Python, each of one bag or of several.

    python3 infer.py --data bags.npz --model model.onnx --steps 1000
"""
import argparse
import json
import time

import numpy as np
import onnxruntime


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--data", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--bags", type=int, default=1, help="more than one: the model has the signature batch")
    p.add_argument("--threads", type=int, default=1)
    args = p.parse_args()
    f = np.load(args.data)
    x, off = f["instances"], f["offsets"]
    bags = [np.ascontiguousarray(x[off[i]:off[i + 1]]) for i in range(len(off) - 1)]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
    session = onnxruntime.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    warm, times, cpu = args.steps // 10 + 3, [], 0.0
    for n in range(warm + args.steps):
        if n == warm:
            cpu = time.process_time()
        start = time.perf_counter()
        feed = {"instances": bags[n % len(bags)]}
        if args.bags > 1:
            some = [bags[(n + j) % len(bags)] for j in range(args.bags)]
            feed = {"instances": np.concatenate(some), "bag_of": np.repeat(np.arange(len(some)), [len(b) for b in some])}
        session.run(["probabilities", "attention"], feed)
        times.append(time.perf_counter() - start)
    print(json.dumps({"steps": args.steps, "median_us": 1e6 * float(np.median(times[warm:])), "min_us": 1e6 * min(times[warm:]),
                      "cpu_us": 1e6 * (time.process_time() - cpu) / args.steps}))


main()
