"""Trains the model of slides.yaml in PyTorch over the files of make_slides.py with h5py.

Needs torch, numpy and h5py. Prints the time of the training steps and of the evaluation of
an epoch, with the reading in the same thread, and the peak memory.
"""
import argparse
import csv
import os
import resource
import time

import h5py
import torch
from torch import nn

p = argparse.ArgumentParser()
p.add_argument("folder")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--epochs", type=int, default=1)
p.add_argument("--train", type=float, default=0.7)
o = p.parse_args()
torch.set_num_threads(o.threads)
torch.manual_seed(1)


class Gated(nn.Module):
    def __init__(self, features, classes, hidden=512, width=256):
        super().__init__()
        self.dense = nn.Linear(features, hidden)
        self.v, self.u = nn.Linear(hidden, width), nn.Linear(hidden, width)
        self.w = nn.Linear(width, 1, bias=False)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, x):
        h = torch.relu(self.dense(x))
        a = torch.softmax(self.w(torch.tanh(self.v(h)) * torch.sigmoid(self.u(h))), 0)
        return self.classify((a * h).sum(0, keepdim=True))


def features(row):
    with h5py.File(os.path.join(o.folder, row["file"])) as f:
        return torch.from_numpy(f["features"][:]).float()


with open(os.path.join(o.folder, "slides.csv")) as f:
    rows = list(csv.DictReader(f))
classes = len({r["label"] for r in rows})
split = round(o.train * len(rows))
total, square, n = 0, 0, 0
for r in rows[:split]:
    x = features(r)
    total, square, n = total + x.sum(0), square + (x * x).sum(0), n + len(x)
mean = total / n
std = (square / n - mean * mean).sqrt()
model = Gated(len(mean), classes)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, nesterov=True)
for epoch in range(o.epochs):
    start, cpu = time.perf_counter(), time.process_time()
    for i in torch.randperm(split).tolist():
        r = rows[i]
        loss = nn.functional.cross_entropy(model((features(r) - mean) / std), torch.tensor([int(r["label"])]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    steps, steps_cpu = time.perf_counter() - start, time.process_time() - cpu
    right = 0
    with torch.no_grad():
        for r in rows[split:]:
            right += int(model((features(r) - mean) / std).argmax()) == int(r["label"])
    whole, whole_cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"epoch {epoch + 1}: steps {steps:.1f} s ({steps_cpu:.1f} s of processor time), "
          f"with the evaluation of the test bags {whole:.1f} s ({whole_cpu:.1f} s), accuracy {right / max(1, len(rows) - split):.3f}")
print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
