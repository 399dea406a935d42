"""MIPLMA in plain PyTorch on the bags and the split of a miplc run.

    python3 miplma.py --data bags.npz --split run/split.json --seed 1

The formula is that of specs/models/miplma.yaml. --through lets the gradient flow through
the standard deviation of the scores, which MIPLMA takes for a constant. Prints one JSON
object; largest is the largest parameter, which shows a collapse.
"""
import argparse
import json
import math

import numpy as np
import torch
import torch.nn.functional as F

HIDDEN, START, DECAY, LEAST = 128, 5.0, 0.05, 0.1  # units, and the temperature
SCALE, MARGIN = 0.5, 0.01


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--split", required=True, help="split.json of a run")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--through", action="store_true", help="gradient through the standard deviation")
    return p.parse_args()


class Miplma(torch.nn.Module):
    def __init__(self, features, classes, through):
        super().__init__()
        linear = torch.nn.Linear
        self.dense, self.gate, self.classifier = linear(features, HIDDEN), linear(HIDDEN, classes), linear(HIDDEN, classes)
        self.score1, self.score2 = linear(classes, HIDDEN), linear(HIDDEN, 1)
        self.through = through

    def forward(self, x, temperature):
        h = F.relu(F.dropout(self.dense(x), 0.5, self.training))
        gate = self.gate(h)
        s = self.score2(F.relu(self.score1(torch.tanh(gate) * torch.sigmoid(gate)))).T
        deviation = torch.std(s if self.through else s.detach()) if s.shape[1] > 1 else torch.zeros(())
        a = F.softmax((s - s.mean()) / (deviation + 1e-8) / math.sqrt(HIDDEN) / temperature, 1)
        return F.softmax(torch.sigmoid(self.classifier(a @ h)).clamp(1e-5, 1 - 1e-5), 1)[0]


def loss_of(p, w, S):
    margin = SCALE * (1 - (p * S).max() + (p * (1 - S)).max())
    both = torch.stack([torch.zeros(()), margin])
    return -(w * torch.log(p)).sum() + MARGIN * both.mean() / (1 - both.std())


def main():
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    f, split = np.load(args.data), json.load(open(args.split))
    train, test = ([bag - 1 for bag in split[part]] for part in ("train", "test"))
    x, off = f["instances"].reshape(len(f["instances"]), -1), f["offsets"]
    rows = np.concatenate([x[off[i]:off[i + 1]] for i in train])
    std = rows.std(0)
    x = torch.tensor((x - rows.mean(0)) / np.where(std > 0, std, 1), dtype=torch.float32)
    bags = [x[off[i]:off[i + 1]] for i in range(len(off) - 1)]
    S, labels = torch.tensor(f["candidates"], dtype=torch.float32), f["labels"]
    w = S / S.sum(1, keepdim=True)
    model = Miplma(x.shape[1], S.shape[1], args.through)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=1e-4)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        temperature, lam = max(START * (1 - DECAY) ** epoch, LEAST), (args.epochs - epoch) / args.epochs
        for j in torch.randperm(len(train)).tolist():
            i = train[j]
            p = model(bags[i], temperature)
            opt.zero_grad()
            loss_of(p, w[i], S[i]).backward()
            opt.step()
            new = p.detach() * S[i]
            w[i] = lam * w[i] + (1 - lam) * new / new.sum()
        cosine.step()
    model.eval()
    with torch.no_grad():
        hits = {part: sum(int(model(bags[i], temperature).argmax()) == int(labels[i]) for i in which) / len(which)
                for part, which in (("train", train), ("test", test))}
    print(json.dumps({"peer": "pytorch " + torch.__version__, "seed": args.seed, "through": args.through, "epochs": args.epochs,
                      "train_accuracy": hits["train"], "test_accuracy": hits["test"],
                      "largest": max(float(p.detach().abs().max()) for p in model.parameters())}))


main()
