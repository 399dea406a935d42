"""Multi-instance models in plain PyTorch, trained with DEMIPL's label weights.

The networks of the shipped specs demipl-mlp, abmil, gated-abmil and dsmil with the settings of
these specs: a hidden layer of 128 units with dropout of 0.5, SGD with Nesterov
momentum and a cosine schedule, gradients clipped to norm 1, one bag a step. Initial parameters,
order of bags and dropout masks are PyTorch's own. It trains on the bags and the split of a miplc
run:

    python3 mil.py --model abmil --data sival6-mipl-r1.npz --split run/split.json

Prints one JSON object.
"""
import argparse
import json
import math
import time
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

from demipl import load

HIDDEN, WIDTH = 128, 128


class Pooled(nn.Module):
    """A hidden layer, scores of the instances, their weighted mean, and a linear classifier."""

    def __init__(self, d, k, width, gated, hidden=HIDDEN, dropout=0.5):
        super().__init__()
        self.hidden, self.drop = nn.Linear(d, hidden), nn.Dropout(dropout)
        self.v = nn.Linear(hidden, width)
        self.u = nn.Linear(hidden, width) if gated else None
        self.score = nn.Linear(width, 1, bias=False)
        self.classifier = nn.Linear(hidden, k)

    def weigh(self, s):
        return F.softmax(s, 0)

    def forward(self, x):
        h = F.relu(self.drop(self.hidden(x)))
        gate = torch.tanh(self.v(h))
        if self.u:
            gate = gate * torch.sigmoid(self.u(h))
        z = (self.weigh(self.score(gate)) * h).sum(0)
        return F.log_softmax(self.classifier(z), 0)

    def loss(self, w, logp):
        return -(w * logp).sum()


class Demipl(Pooled):
    attention_weight = 0.001

    def weigh(self, s):
        a = torch.sigmoid(s)
        self.entropy = -(a * F.logsigmoid(s)).sum()
        return a / a.sum()

    def loss(self, w, logp):
        return super().loss(w, logp) + self.attention_weight * self.entropy


class Dsmil(nn.Module):
    """DSMIL: queries and values of instances, one critical instance for each class."""

    def __init__(self, d, k):
        super().__init__()
        self.hidden, self.drop, self.instances = nn.Linear(d, HIDDEN), nn.Dropout(0.5), nn.Linear(HIDDEN, k)
        self.query, self.value = nn.Linear(HIDDEN, WIDTH), nn.Linear(HIDDEN, HIDDEN)
        # The spec draws these weights with the width of one embedding as their number of inputs.
        self.classifier = nn.Conv1d(k, k, HIDDEN)
        for p in self.classifier.parameters():
            nn.init.uniform_(p, -1 / math.sqrt(HIDDEN), 1 / math.sqrt(HIDDEN))

    def forward(self, x):
        h = F.relu(self.drop(self.hidden(x)))
        f, query = self.instances(h), self.query(h)
        a = F.softmax(query @ query[f.argmax(0)].t() / math.sqrt(WIDTH), 0)
        self.top = F.log_softmax(f.max(0).values, 0)
        return F.log_softmax(self.classifier((a.t() @ self.value(h))[None]).view(-1), 0)

    def loss(self, w, logp):
        return -0.5 * (w * logp).sum() - 0.5 * (w * self.top).sum()


MODELS = {
    "demipl-mlp": lambda d, k: Demipl(d, k, k, True),
    "abmil": lambda d, k: Pooled(d, k, WIDTH, False),
    "gated-abmil": lambda d, k: Pooled(d, k, WIDTH, True),
    "dsmil": Dsmil,
}


def accuracy(model, bags, labels, which):
    model.eval()
    with torch.no_grad():
        return sum(int(model(bags[i]).argmax()) == int(labels[i]) for i in which) / len(which)


def epochs(model, bags, S, train, count, lr, weight_decay=1e-4):
    """Trains a model and yields the number of each epoch after it, from 1."""
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True, weight_decay=weight_decay)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, count)
    w = S / S.sum(1, keepdim=True)
    for epoch in range(1, count + 1):
        lam = (count - epoch) / count
        for j in torch.randperm(len(train)).tolist():
            i = train[j]
            logp = model(bags[i])
            share = F.softmax(logp.detach() - (1 - S[i]) * 1e30, 0)
            w[i] = lam * w[i] + (1 - lam) * share
            opt.zero_grad()
            model.loss(w[i], logp).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            opt.step()
        cosine.step()
        yield epoch


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=sorted(MODELS), required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--split", required=True, help="split.json of a run")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    bags, S, labels, train, test = load(SimpleNamespace(data=args.data, split=args.split, normalize="training", device="cpu"))
    model = MODELS[args.model](bags[0].shape[1], S.shape[1])
    begin = time.process_time()
    for _ in epochs(model, bags, S, train, args.epochs, args.lr):
        pass
    seconds = time.process_time() - begin
    print(json.dumps({"peer": "pytorch " + torch.__version__, "model": args.model, "seed": args.seed, "cpu_seconds": seconds,
                      "test_accuracy": accuracy(model, bags, labels, test), "train_accuracy": accuracy(model, bags, labels, train)}))


if __name__ == "__main__":
    main()
