"""DEMIPL in plain PyTorch: the peer that miplc is measured against.

The formula of the paper or of the authors' program, written for this
comparison. It trains on the bags and the split of a miplc run, so that accuracies
and times can be compared:

    python3 demipl.py --data birdsong-mipl-r1.npz --split run/split.json --epochs 100

--loop plain   one bag after the other from lists of tensors
--loop loader  the shape of the authors' loop: a DataLoader with one bag a step
--batch M      bags a step (plain loop) or a prediction; instances of all bags go through as one
Prints one JSON object.
"""
import argparse
import json
import math
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--split", help="split.json of a run; default: a random 7:3 split")
    p.add_argument("--reading", choices=["paper", "program"], default="paper")
    p.add_argument("--cnn", action="store_true", help="the two-layer CNN on 28x28 images")
    p.add_argument("--normalize", choices=["none", "training", "all"], default="training")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--attention-weight", type=float, default=0.001)
    p.add_argument("--schedule", choices=["linear", "progressive", "averaging"], default="linear")
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--loop", choices=["plain", "loader"], default="plain")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--init", help="model.onnx of demipl-program with the initial parameters")
    p.add_argument("--device", default="cpu")
    p.add_argument("--compile", action="store_true", help="torch.compile the model: fast where all bags have the same number of instances")
    p.add_argument("--steps", type=int, default=0, help="time this many steps and stop, for benchmarks")
    p.add_argument("--seconds", type=float, default=math.inf, help="end when so much time is over")
    p.add_argument("--infer", type=int, default=0, help="time this many predictions with the starting parameters and stop")
    return p.parse_args()


def convolve(layer, x, patches):
    """Convolves, or multiplies patches by the weights: with vmap, that is one product instead of a slow grouped convolution."""
    if not patches:
        return layer(x)
    p = x.unfold(2, 5, 1).unfold(3, 5, 1)
    n, c, height, width = p.shape[:4]
    y = p.permute(0, 2, 3, 1, 4, 5).reshape(n * height * width, c * 25) @ layer.weight.flatten(1).T + layer.bias
    return y.view(n, height, width, -1).permute(0, 3, 1, 2)


class Cnn(nn.Module):
    def __init__(self, patches):
        super().__init__()
        self.patches = patches
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.dense, self.drop = nn.Linear(800, 500), nn.Dropout(0.5)

    def forward(self, x):
        h = F.max_pool2d(F.relu(convolve(self.conv1, x.view(-1, 1, 28, 28), self.patches)), 2)
        h = F.max_pool2d(F.relu(convolve(self.conv2, h, self.patches)), 2)
        return F.relu(self.drop(self.dense(h.flatten(1))))


class Demipl(nn.Module):
    def __init__(self, d, k, reading, cnn, patches=False):
        super().__init__()
        self.program = reading == "program"
        self.features = Cnn(patches) if cnn else nn.Identity()
        d = 500 if cnn else d
        self.v, self.u = nn.Linear(d, k), nn.Linear(d, k)
        if self.program:
            self.score = nn.Sequential(nn.Linear(k, 128), nn.ReLU(), nn.Linear(128, 1))
        else:
            self.score = nn.Linear(k, 1, bias=False)
        self.classifier = nn.Linear(d, k)

    def forward(self, x, bag_of, bags, mask=None):
        h = self.features(x)
        v = self.v(h)
        s = self.score(torch.tanh(v) * torch.sigmoid(v if self.program else self.u(h)))
        log_a = F.logsigmoid(s)
        a = log_a.exp() if mask is None else log_a.exp() * mask
        if bags == 1:
            z = (a * h).sum(0, keepdim=True) / a.sum()
        else:
            top = torch.zeros(bags, h.shape[1], device=h.device).index_add(0, bag_of, a * h)
            z = top / torch.zeros(bags, 1, device=h.device).index_add(0, bag_of, a)
        q = self.classifier(z)
        if self.program:
            q = torch.sigmoid(q)
            if self.training:
                q = q.clamp(1e-5, 1 - 1e-5)
        return F.log_softmax(q, 1), a, log_a


def start(model, path):
    """Sets the parameters to those of a model file of the spec demipl-program."""
    import onnx

    values = {t.name: torch.tensor(onnx.numpy_helper.to_array(t)) for t in onnx.load(path).graph.initializer}
    names = {"features.conv1": "conv1", "features.conv2": "conv2", "features.dense": "dense1", "v": ("Wv", "bv"),
             "score.0": ("W1", "b1"), "score.2": ("W2", "b2"), "classifier": ("Wc", "bc")}
    with torch.no_grad():
        for layer, name in names.items():
            weight, bias = (name + ".weight", name + ".bias") if isinstance(name, str) else name
            bias = bias if bias in values else next(n for n in values if n.startswith(bias))  # of another shape
            to, w = model.get_submodule(layer), values[weight]
            to.weight.copy_(w.T if w.ndim == 2 else w)
            to.bias.copy_(values[bias].ravel())


def load(args):
    f = np.load(args.data)
    x, off = f["instances"].reshape(len(f["instances"]), -1), f["offsets"]
    m = len(off) - 1
    if args.split:
        split = json.load(open(args.split))
        train, test = ([bag - 1 for bag in split[part]] for part in ("train", "test"))
    else:
        order = np.random.default_rng(args.seed).permutation(m)
        train, test = order[:m * 7 // 10].tolist(), order[m * 7 // 10:].tolist()
    if args.normalize != "none":
        rows = x if args.normalize == "all" else np.concatenate([x[off[i]:off[i + 1]] for i in train])
        std = rows.std(0)
        x = (x - rows.mean(0)) / np.where(std > 0, std, 1)
    bags = [torch.tensor(x[off[i]:off[i + 1]], dtype=torch.float32, device=args.device) for i in range(m)]
    return bags, torch.tensor(f["candidates"], dtype=torch.float32, device=args.device), f["labels"], train, test


class Bags(torch.utils.data.Dataset):
    def __init__(self, bags, S, train):
        self.bags, self.S, self.train = bags, S, train

    def __len__(self):
        return len(self.train)

    def __getitem__(self, i):
        return self.bags[self.train[i]], self.S[self.train[i]], self.train[i]


def steps_of_epoch(args, bags, S, train):
    if args.loop == "loader":
        for x, _, i in torch.utils.data.DataLoader(Bags(bags, S, train), batch_size=1, shuffle=True):
            yield x.squeeze(0), torch.zeros(x.shape[1], dtype=torch.long), i
        return
    order = torch.randperm(len(train)).tolist()
    for at in range(0, len(order), args.batch):
        i = [train[j] for j in order[at:at + args.batch]]
        sizes = torch.tensor([len(bags[j]) for j in i])
        bag_of = torch.repeat_interleave(torch.arange(len(i)), sizes).to(S.device)
        yield torch.cat([bags[j] for j in i]), bag_of, torch.tensor(i)


def accuracy(model, bags, labels, which):
    model.eval()
    with torch.no_grad():
        hits = sum(int(model(bags[i], None, 1)[0].argmax()) == int(labels[i]) for i in which)
    model.train()
    return hits / len(which)


def inference(model, bags, args):
    """Times predictions, each of args.batch bags."""
    model.eval()
    times = []
    warm = args.infer // 10 + 3
    with torch.no_grad():
        for n in range(warm + args.infer):
            if n == warm:
                cpu = time.process_time()
            start = time.perf_counter()
            if args.batch == 1:
                model(bags[n % len(bags)], None, 1)[0].exp().tolist()
            else:
                some = [bags[(n + j) % len(bags)] for j in range(args.batch)]
                bag_of = torch.repeat_interleave(torch.arange(len(some)), torch.tensor([len(x) for x in some]))
                model(torch.cat(some), bag_of, len(some))[0].exp().tolist()
            times.append(time.perf_counter() - start)
    return {"peer": "pytorch " + torch.__version__, "steps": args.infer, "median_step_us": 1e6 * float(np.median(times[warm:])),
            "min_step_us": 1e6 * min(times[warm:]), "cpu_step_us": 1e6 * (time.process_time() - cpu) / args.infer}


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # full float32
    torch.manual_seed(args.seed)
    bags, S, labels, train, test = load(args)
    model = Demipl(bags[0].shape[1], S.shape[1], args.reading, args.cnn).to(args.device)
    if args.init:
        start(model, args.init)
    if args.compile:
        model = torch.compile(model, dynamic=False)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, nesterov=True, weight_decay=1e-4)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    w = S / S.sum(1, keepdim=True)
    if args.infer:
        print(json.dumps(inference(model, bags, args)))
        return
    times, epoch_loss, begin, cpu = [], 0.0, time.perf_counter(), 0.0
    warm = args.steps // 10 + 3
    for epoch in range(args.epochs):
        t = epoch if args.reading == "program" else epoch + 1
        lam = {"linear": (args.epochs - t) / args.epochs, "progressive": 0.0, "averaging": 1.0}[args.schedule]
        epoch_loss = 0.0
        start = time.perf_counter()
        for x, bag_of, i in steps_of_epoch(args, bags, S, train):
            logp, a, log_a = model(x, bag_of, len(i))
            share = F.softmax(logp.detach() - (1 - S[i]) * 1e30, 1)
            new = lam * w[i] + (1 - lam) * share
            used = w[i] if args.reading == "program" else new
            loss = (-(used * logp).sum() - args.attention_weight * (a * log_a).sum()) / len(i)
            opt.zero_grad()
            loss.backward()
            opt.step()
            w[i] = new
            epoch_loss += float(loss.detach())
            now = time.perf_counter()  # a step includes laying out its bags
            times.append(now - start)
            start = now
            if len(times) == warm:
                cpu = time.process_time()
            enough = args.steps and len(times) >= warm + args.steps or now - begin > args.seconds
            if enough:
                break
        if enough:
            break
        cosine.step()
    cpu, warm = time.process_time() - cpu, min(warm, len(times) - 1)
    out = {"peer": "pytorch " + torch.__version__, "loop": args.loop, "reading": args.reading, "batch": args.batch,
           "threads": args.threads, "seed": args.seed, "epochs": len(times) / math.ceil(len(train) / args.batch), "steps": len(times),
           "median_step_us": 1e6 * float(np.median(times[warm:])), "min_step_us": 1e6 * min(times[warm:]),
           "cpu_step_us": 1e6 * cpu / (len(times) - warm), "seconds": time.perf_counter() - begin}
    if not args.steps:
        out["last_loss"] = epoch_loss
        out["test_accuracy"] = accuracy(model, bags, labels, test)
        out["train_accuracy"] = accuracy(model, bags, labels, train)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
