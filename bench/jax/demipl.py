"""DEMIPL as the authors' program computes it, in JAX: a peer of bench/compare.py and bench/gpu.py.

    python3 demipl.py --data birdsong-mipl-r1.npz --split run/split.json --epochs 100

--jit step   each step is a call of a program, as the authors' loop goes bag by bag
--jit epoch  all steps of an epoch are one call
--runs 64    so many runs with different seeds, as one run with an axis more (vmap)
All bags lie on the device, padded to the largest. Compiling is not timed. Prints one
JSON object; a time of a step is that of an epoch, divided by its steps and by the runs.
"""
import argparse
import json
import math
import os
import time
from functools import partial

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--split", help="split.json of a run; default: all bags are for training, as they are")
    p.add_argument("--cnn", action="store_true", help="the two-layer CNN on 28x28 images")
    p.add_argument("--jit", choices=["step", "epoch"], default="step")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--attention-weight", type=float, default=0.001)
    p.add_argument("--seconds", type=float, default=math.inf, help="end after the epoch in which so much time is over")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    return p.parse_args()


def start(key, d, k, cnn):
    """Parameters, drawn as PyTorch draws them."""
    shapes = {"v": (d, k), "score1": (k, 128), "score2": (128, 1), "classifier": (d, k)}
    if cnn:
        shapes.update(conv1=(20, 1, 5, 5), conv2=(50, 20, 5, 5), dense=(800, 500))
    params = {}
    for name, s in shapes.items():
        key, w, b = jax.random.split(key, 3)
        inputs, outputs = (math.prod(s[1:]), s[0]) if len(s) == 4 else s
        bound = 1 / math.sqrt(inputs)
        params[name] = (jax.random.uniform(w, s, minval=-bound, maxval=bound), jax.random.uniform(b, (outputs,), minval=-bound, maxval=bound))
    return params


def linear(p, x):
    return x @ p[0] + p[1]


def features(params, x, key):
    """The CNN of images; key draws the dropout, None leaves it out."""
    h = x.reshape(-1, 1, 28, 28)
    for name in ("conv1", "conv2"):
        w, b = params[name]
        h = nn.relu(lax.conv_general_dilated(h, w, (1, 1), "VALID") + b[:, None, None])
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    h = linear(params["dense"], h.reshape(len(h), -1))
    if key is not None:
        h = jnp.where(jax.random.bernoulli(key, 0.5, h.shape), 2 * h, 0)
    return nn.relu(h)


def forward(params, x, here, key, cnn):
    """Log probabilities, attention scores and their logarithms of a bag; here is 1 for
    its instances, 0 for padding."""
    h = features(params, x, key) if cnn else x
    v = linear(params["v"], h)
    s = linear(params["score2"], nn.relu(linear(params["score1"], jnp.tanh(v) * nn.sigmoid(v))))
    log_a = nn.log_sigmoid(s) * here[:, None]
    a = jnp.exp(log_a) * here[:, None]
    q = nn.sigmoid(linear(params["classifier"], (a * h).sum(0) / a.sum()))
    return (q if key is None else jnp.clip(q, 1e-5, 1 - 1e-5)), a, log_a


def trainer(args, X, here, S):
    def step(state, i, lam, lr):
        params, velocity, w, key = state
        key, mask = jax.random.split(key)

        def loss(params):
            q, a, log_a = forward(params, X[i], here[i], mask, args.cnn)
            logp = nn.log_softmax(q)
            return -(w[i] * logp).sum() - args.attention_weight * (a * log_a).sum(), logp

        (value, logp), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        gradient = jax.tree.map(lambda g, p: g + 1e-4 * p, gradient, params)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradient)
        params = jax.tree.map(lambda p, g, v: p - lr * (g + 0.9 * v), params, gradient, velocity)
        share = nn.softmax(jnp.where(S[i] > 0, logp, -1e30))
        return (params, velocity, w.at[i].set(lam * w[i] + (1 - lam) * share), key), value

    def epoch(state, order, lam, lr):
        state, losses = lax.scan(lambda s, i: step(s, i, lam, lr), state, order)
        return state, losses.sum()

    def program(f):
        return jax.jit(jax.vmap(f, in_axes=(0, 0, None, None)) if args.runs > 1 else f, donate_argnums=0)

    return program(step), program(epoch)


def load(args):
    f = np.load(args.data)
    x, off = f["instances"].reshape(len(f["instances"]), -1), f["offsets"]
    train, test = list(range(len(off) - 1)), []
    if args.split:
        split = json.load(open(args.split))
        train, test = ([bag - 1 for bag in split[part]] for part in ("train", "test"))  # bags of a split count from 1
    if args.split and not args.cnn:  # the specs of features take z-scores of the training bags, those of images none
        rows = np.concatenate([x[off[i]:off[i + 1]] for i in train])
        std = rows.std(0)
        x = (x - rows.mean(0)) / np.where(std > 0, std, 1)
    sizes = np.diff(off)
    X, here = np.zeros((len(sizes), sizes.max(), x.shape[1]), np.float32), np.zeros((len(sizes), sizes.max()), np.float32)
    for i, n in enumerate(sizes):
        X[i, :n], here[i, :n] = x[off[i]:off[i + 1]], 1
    return jnp.array(X), jnp.array(here), jnp.array(f["candidates"], jnp.float32), f["labels"], train, test


def main():
    args = arguments()
    jax.config.update("jax_platforms", args.device)
    jax.config.update("jax_default_matmul_precision", "highest")  # full float32, no TF32
    X, here, S, labels, train, test = load(args)

    def initial(seed):
        params = start(jax.random.key(seed), 500 if args.cnn else X.shape[2], S.shape[1], args.cnn)
        return params, jax.tree.map(jnp.zeros_like, params), S / S.sum(1, keepdims=True), jax.random.key(seed + 1)

    seeds = args.seed + np.arange(args.runs)
    state = initial(args.seed) if args.runs == 1 else jax.vmap(initial)(seeds)
    step, epoch = trainer(args, X, here, S)
    draws = [np.random.default_rng(seed) for seed in seeds]

    def orders():
        """The bags of the steps of an epoch, with an axis of runs in front if there are several."""
        list = np.array([draw.permutation(train) for draw in draws], np.int32)
        return list[0] if args.runs == 1 else list

    rate = np.float32(0)
    if args.jit == "step":
        step = step.lower(state, orders()[..., 0], rate, rate).compile()
    else:
        epoch = epoch.lower(state, orders(), rate, rate).compile()
    times, begin, cpu = [], time.perf_counter(), time.process_time()
    for t in range(args.epochs):
        lam = np.float32((args.epochs - t) / args.epochs)
        lr = np.float32(args.lr * (1 + math.cos(math.pi * t / args.epochs)) / 2)
        order = orders()
        if args.jit == "step":
            loss = 0
            for i in order.T:
                state, value = step(state, i, lam, lr)
                loss += value
        else:
            state, loss = epoch(state, order, lam, lr)
        loss = np.asarray(loss).tolist()
        seconds = time.perf_counter() - begin
        times.append(seconds)
        if seconds > args.seconds:
            break
    cpu, steps = time.process_time() - cpu, len(train) * args.runs
    us = 1e6 * np.diff([0] + times)[min(t, 1):] / steps  # the first epoch allocates
    out = {"peer": "jax " + jax.__version__, "jit": args.jit, "runs": args.runs, "seed": args.seed, "epochs": t + 1,
           "seconds": seconds, "last_loss": loss, "median_step_us": float(np.median(us)), "min_step_us": float(us.min()),
           "cpu_step_us": 1e6 * cpu / (t + 1) / steps}
    if test and args.runs == 1:
        predict = jax.jit(partial(forward, key=None, cnn=args.cnn))
        found = [int(predict(state[0], X[i], here[i])[0].argmax()) for i in test]
        out["test_accuracy"] = float(np.mean(labels[test] == found))
    print(json.dumps(out))


main()
