"""Write the PyTorch traces that the engines are held to.

Twenty steps of DEMIPL in plain PyTorch (float32, one thread), in the paper's
reading on features and in the authors' reading on small images, with one and
with four bags a step. A trace holds all that an engine needs to repeat the
steps (bags, starting parameters, order, masks, learning rates, lambda) and
what must come out (losses, label weights, parameters).

    python3 trace.py      # needs torch; writes trace-*.json.gz beside itself
"""
import gzip
import json
import math
import os

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, EPOCHS, K = 20, 2, 5
LR, MOMENTUM, DECAY, LAMBDA_A = 0.05, 0.9, 1e-4, 0.01


def uniform(shape, fan_in, gen):
    bound = 1 / math.sqrt(fan_in)
    return ((torch.rand(shape, generator=gen) * 2 - 1) * bound).requires_grad_()


def paper_params(d, gen):
    return {
        "Wv": uniform((d, K), d, gen), "bv": uniform((K,), d, gen),
        "Wu": uniform((d, K), d, gen), "bu": uniform((K,), d, gen),
        "W": uniform((K, 1), K, gen),
        "Wc": uniform((d, K), d, gen), "bc": uniform((K,), d, gen),
    }


def program_params(gen):
    return {
        "conv1.weight": uniform((4, 1, 3, 3), 9, gen), "conv1.bias": uniform((4,), 9, gen),
        "conv2.weight": uniform((6, 4, 3, 3), 36, gen), "conv2.bias": uniform((6,), 36, gen),
        "dense1.weight": uniform((6, 16), 6, gen), "dense1.bias": uniform((16,), 6, gen),
        "Wv": uniform((16, K), 16, gen), "bv": uniform((K,), 16, gen),
        "W1": uniform((K, 8), K, gen), "b1": uniform((8,), K, gen),
        "W2": uniform((8, 1), 8, gen), "b2": uniform((1,), 8, gen),
        "Wc": uniform((16, K), 16, gen), "bc": uniform((K,), 16, gen),
    }


def paper_bag(p, x, mask):
    s = (torch.tanh(x @ p["Wv"] + p["bv"]) * torch.sigmoid(x @ p["Wu"] + p["bu"])) @ p["W"]
    a = torch.sigmoid(s)
    z = (a * x).sum(0, keepdim=True) / a.sum()
    logits = z @ p["Wc"] + p["bc"]
    return F.softmax(logits, 1), F.log_softmax(logits, 1), a


def program_bag(p, x, mask):
    h = x.view(-1, 1, 12, 12)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["conv1.weight"], p["conv1.bias"])), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["conv2.weight"], p["conv2.bias"])), 2)
    h = F.relu((h.flatten(1) @ p["dense1.weight"] + p["dense1.bias"]) * mask)
    gate = h @ p["Wv"] + p["bv"]
    g = torch.tanh(gate) * torch.sigmoid(gate)
    a = torch.sigmoid(F.relu(g @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"])
    z = (a * h).sum(0, keepdim=True) / a.sum()
    q = torch.sigmoid(z @ p["Wc"] + p["bc"]).clamp(1e-5, 1 - 1e-5)
    return F.softmax(q, 1), F.log_softmax(q, 1), a


def numbers(t):
    return [float(v) for v in t.detach().flatten()]


def trace(reading, batch, seed):
    gen = torch.Generator().manual_seed(seed)
    image = reading == "program"
    d, bags = (144, 10 * batch) if image else (10, 10 * batch)
    params = program_params(gen) if image else paper_params(d, gen)
    forward = program_bag if image else paper_bag
    sizes = [int(torch.randint(2, 9, (1,), generator=gen)) for _ in range(bags)]
    # Blank corners, as real images have, put ties into the pooling windows.
    x = [torch.randn(n, d, generator=gen) for n in sizes]
    if image:
        x = [torch.relu(v) for v in x]
    S = torch.zeros(bags, K)
    for i in range(bags):
        S[i, torch.randperm(K, generator=gen)[:3]] = 1
    w = S / S.sum(1, keepdim=True)
    out = {"spec": f"trace-{reading}.yaml", "instance": [1, 12, 12] if image else [d], "classes": K,
           "sizes": sizes, "instances": numbers(torch.cat(x)), "candidates": numbers(S),
           "start": {n: numbers(v) for n, v in params.items()}, "steps": []}
    opt = torch.optim.SGD(params.values(), lr=LR, momentum=MOMENTUM, nesterov=True, weight_decay=DECAY)
    first = 0 if image else 1
    for epoch in range(EPOCHS):
        lr = 0.5 * LR * (1 + math.cos(math.pi * epoch / EPOCHS))
        lam = (EPOCHS - (epoch + first)) / EPOCHS
        for group in opt.param_groups:
            group["lr"] = lr
        order = torch.randperm(bags, generator=gen).tolist()
        for at in range(0, bags, batch):
            chosen = order[at:at + batch]
            rows = sum(sizes[i] for i in chosen)
            mask = (torch.rand(rows, 16, generator=gen) < 0.5).float() * 2 if image else torch.zeros(0)
            disamb, attn, probs, start = 0.0, 0.0, [], 0
            for i in chosen:
                p, logp, a = forward(params, x[i], mask[start:start + sizes[i]])
                start += sizes[i]
                share = (p.detach() * S[i]) / (p.detach() * S[i]).sum()
                new = lam * w[i] + (1 - lam) * share[0]
                used = w[i].clone() if image else new
                disamb = disamb - (used * logp[0]).sum()
                attn = attn - (a * torch.log(a)).sum()
                w[i] = new
                probs += numbers(p)
            disamb, attn = disamb / len(chosen), attn / len(chosen)
            loss = disamb + LAMBDA_A * attn
            opt.zero_grad()
            loss.backward()
            opt.step()
            step = {"bags": chosen, "epoch": epoch + first, "lr": lr, "lambda": lam, "mask": numbers(mask),
                    "loss": float(loss), "disambiguation": float(disamb), "attention": float(attn),
                    "probabilities": probs, "weights": [numbers(w[i]) for i in chosen]}
            if len(out["steps"]) in (0, 4, STEPS - 1):
                step["params"] = {n: numbers(v) for n, v in params.items()}
            out["steps"].append(step)
    path = os.path.join(HERE, f"trace-{reading}-b{batch}.json.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as f:
        f.write(json.dumps(out).encode())
    print(path, os.path.getsize(path), "bytes, last loss", out["steps"][-1]["loss"])


for seed, (reading, batch) in enumerate([("paper", 1), ("paper", 4), ("program", 1), ("program", 4)]):
    trace(reading, batch, seed + 1)
