"""DEMIPL in PyTorch, many runs at the same time: one for each pair of a split and a seed.

Model, initial parameters and formula are those of demipl.py, with --reading program --cnn --normalize none.
torch.vmap computes a step of all runs, and CUDA replays it as one graph:

    python3 stacked.py --data fmnist-mipl-r1.npz --splits split-1.json split-2.json --seeds 1 2 3 --device cuda

Prints one JSON object for each run, with its accuracy on the test bags.
"""
import argparse
import json
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, stack_module_state, vmap

import demipl


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--splits", nargs="+", required=True)
    p.add_argument("--seeds", type=int, nargs="+", default=[1])
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--attention-weight", type=float, default=0.001)
    p.add_argument("--device", default="cpu")
    return p.parse_args()


class Stack:
    """The runs, their bags padded to the size of the largest, and one step of all runs."""

    def __init__(self, args):
        f = np.load(args.data)
        sizes, device = np.diff(f["offsets"]), args.device
        self.args, self.labels, self.keys = args, f["labels"], [(s, n) for s in args.splits for n in args.seeds]
        rows = f["offsets"][:-1, None] + np.minimum(np.arange(sizes.max()), sizes[:, None] - 1)
        self.x = torch.tensor(f["instances"].reshape(len(f["instances"]), -1), dtype=torch.float32, device=device)
        self.rows = torch.tensor(rows, device=device)
        self.mask = torch.tensor(np.arange(sizes.max()) < sizes[:, None], dtype=torch.float32, device=device)[..., None]
        self.S = torch.tensor(f["candidates"], dtype=torch.float32, device=device)
        self.parts = [{k: [bag - 1 for bag in v] for k, v in json.load(open(s)).items() if k in ("train", "test")} for s, _ in self.keys]
        models = [self.model(seed) for _, seed in self.keys]
        self.params, _ = stack_module_state(models)
        self.params = {name: p.detach().clone() for name, p in self.params.items()}
        self.speed = {name: torch.zeros_like(p) for name, p in self.params.items()}
        self.one = models[0]
        self.w = (self.S / self.S.sum(1, keepdim=True)).repeat(len(self.keys), 1, 1)
        self.run = torch.arange(len(self.keys), device=device)
        self.ids = torch.zeros(len(self.keys), dtype=torch.long, device=device)
        self.lam, self.lr = torch.ones((), device=device), torch.zeros((), device=device)
        self.losses = torch.zeros(len(self.keys), device=device)

    def model(self, seed):
        torch.manual_seed(seed)
        return demipl.Demipl(self.x.shape[1], self.S.shape[1], "program", True, patches=True).to(self.args.device)

    def loss(self, params, x, mask, S, w):
        logp, a, log_a = functional_call(self.one, params, (x, None, 1, mask))
        share = F.softmax(logp.detach() - (1 - S) * 1e30, 1)
        loss = -(w * logp).sum() - self.args.attention_weight * (a * log_a).sum()
        return loss, (self.lam * w + (1 - self.lam) * share[0], loss)

    def step(self):
        ids = self.ids
        x, w = self.x[self.rows[ids]], self.w[self.run, ids]
        g, (new, loss) = vmap(grad(self.loss, has_aux=True), randomness="different")(self.params, x, self.mask[ids], self.S[ids], w)
        self.w[self.run, ids] = new
        self.losses += loss
        names = list(self.params)
        p, v, g = [[d[n] for n in names] for d in (self.params, self.speed, g)]
        g = torch._foreach_add(g, p, alpha=1e-4)  # weight decay, then Nesterov's momentum as torch.optim.SGD
        torch._foreach_mul_(v, 0.9)
        torch._foreach_add_(v, g)
        torch._foreach_add_(g, v, alpha=0.9)
        torch._foreach_mul_(g, self.lr)
        torch._foreach_sub_(p, g)

    def replay(self):
        """Returns a function that computes a step: the replay of a CUDA graph, or the step itself on a CPU."""
        if self.args.device == "cpu":
            return self.step
        state = [*self.params.values(), *self.speed.values(), self.w, self.losses]
        kept, side = [t.clone() for t in state], torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())  # the copies are made before the state changes
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        for t, k in zip(state, kept):
            t.copy_(k)
        return graph.replay

    def accuracies(self):
        self.one.eval()
        out = []
        with torch.no_grad():
            for r, part in enumerate(self.parts):
                params, hits = {name: p[r] for name, p in self.params.items()}, 0
                for bag in part["test"]:
                    x = self.x[self.rows[bag]]
                    hits += int(functional_call(self.one, params, (x, None, 1, self.mask[bag]))[0].argmax()) == int(self.labels[bag])
                out.append(hits / len(part["test"]))
        return out


def main():
    args = arguments()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # full float32
    stack = Stack(args)
    step, order = stack.replay(), [np.random.default_rng([seed, n]) for n, (_, seed) in enumerate(stack.keys)]
    began = time.perf_counter()
    for epoch in range(args.epochs):
        stack.lam.fill_((args.epochs - epoch) / args.epochs)
        stack.lr.fill_(args.lr * (1 + np.cos(np.pi * epoch / args.epochs)) / 2)
        stack.losses.zero_()
        ids = torch.tensor(np.array([rng.permutation(part["train"]) for rng, part in zip(order, stack.parts)]), device=args.device)
        for t in range(ids.shape[1]):
            stack.ids.copy_(ids[:, t])
            step()
    losses, seconds = stack.losses.tolist(), time.perf_counter() - began
    for (split, seed), loss, accuracy in zip(stack.keys, losses, stack.accuracies()):
        print(json.dumps({"split": split, "seed": seed, "epochs": args.epochs, "test_accuracy": accuracy,
                          "last_loss": loss, "seconds": seconds, "runs": len(stack.keys)}))


if __name__ == "__main__":
    main()
