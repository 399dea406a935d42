"""Write the PyTorch traces of PRODEN, RC, LWS, ELIMIPL, MIPLMA, ProMIPL, AGOPMIPL, FastMIPL
and UAMIPL.

Twenty steps each, in plain PyTorch (float32, one thread), written from the
formulas of the papers and, where these leave a choice, from what their programs
do: softmax, logarithm and renormalisation as they stand in the formulas, not in
the stable forms of the specs. Model and optimiser are those of the shipped
specs, made small. A trace holds what trace.py describes, and for some steps the
velocity of the optimiser: after the first step it is the gradient of the loss
plus the weight decay.

    python3 pll.py      # needs torch; writes trace-*.json.gz beside itself
"""
import gzip
import json
import math
import os

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, EPOCHS, BATCH, K, D = 20, 2, 4, 5, 10
DECAY, MOMENTUM = 1e-4, 0.9


def uniform(shape, fan_in, gen):
    bound = 1 / math.sqrt(fan_in)
    return ((torch.rand(shape, generator=gen) * 2 - 1) * bound).requires_grad_()


def layer(params, weight, bias, rows, columns, gen):
    params[weight] = uniform((rows, columns), rows, gen)
    params[bias] = uniform((columns,), rows, gen)


def numbers(t):
    return [float(f"{v:.9g}") for v in t.detach().flatten()]  # as many digits as a float32 has


class Learner:
    # Of each learner: the width of its dropout mask, whether it renews the label weights
    # before the loss, and otherwise whether it does so with the prediction after the step.
    units, before, again = 0, False, False
    class_weights = None
    multi = False  # whether S are true labels, which a bag may lack
    buffers = {}  # running statistics

    def mask(self, bags, instances):  # shape of the mask of a step
        return instances, self.units

    def total(self, terms):  # the loss
        return sum(terms.values())


# The pooled learners: a bag becomes one vector, then a linear model or an MLP.

def mean(x):
    return x.mean(0, keepdim=True)


def maxmin(x):
    return torch.cat([x.max(0, keepdim=True).values, x.min(0, keepdim=True).values], 1)


class Pooled(Learner):
    nesterov, cosine, first = False, False, 1

    def __init__(self, pool, hidden=()):
        self.pool, self.hidden = pool, hidden

    def params(self, gen):
        p, width = {}, D if self.pool is mean else 2 * D
        for i, units in enumerate(self.hidden):
            layer(p, f"dense{i+1}.weight", f"dense{i+1}.bias", width, units, gen)
            width = units
        layer(p, "Wc", "bc", width, K, gen)
        return p

    def outputs(self, p, bags, mask, t):
        z = torch.cat([self.pool(x) for x in bags])
        for i in range(len(self.hidden)):
            z = F.relu(z @ p[f"dense{i+1}.weight"] + p[f"dense{i+1}.bias"])
        logits = z @ p["Wc"] + p["bc"]
        return logits, F.softmax(logits, 1)


class Proden(Pooled):
    def terms(self, logits, p, S, w):
        return {"label": -(w * torch.log(p)).sum(1).mean()}

    def weights(self, p, S, w, lam):
        return (p * S) / (p * S).sum(1, keepdim=True)


class Weighted(Proden):
    """PRODEN whose loss weighs the classes. With probabilities as targets PyTorch divides
    by the number of bags, as miplc does; with one label a bag it divides by the sum of
    the weights of the batch."""
    class_weights = torch.tensor([1.0, 2.0, 0.5, 0.25, 1.25])

    def terms(self, logits, p, S, w):
        return {"disambiguation": F.cross_entropy(logits, w, weight=self.class_weights)}


class Normed(Proden):
    """PRODEN with a hidden layer on the instances and one on the bags, each with a batch
    normalisation as BatchNorm1d."""

    def params(self, gen):
        self.buffers, p = {}, {}
        layer(p, "dense1.weight", "dense1.bias", D, 7, gen)
        layer(p, "dense2.weight", "dense2.bias", 7, 6, gen)
        layer(p, "Wc", "bc", 6, K, gen)
        for i, units in ((1, 7), (2, 6)):
            p[f"batch_norm{i}.weight"] = uniform((units,), 1, gen)
            p[f"batch_norm{i}.bias"] = uniform((units,), 1, gen)
            self.buffers[f"batch_norm{i}.mean"] = torch.zeros(units)
            self.buffers[f"batch_norm{i}.variance"] = torch.ones(units)
        return p

    def norm(self, p, i, x, training):
        b = self.buffers
        return F.batch_norm(x, b[f"batch_norm{i}.mean"], b[f"batch_norm{i}.variance"], p[f"batch_norm{i}.weight"], p[f"batch_norm{i}.bias"],
                            training, momentum=(0.1, 0.3)[i - 1])

    def outputs(self, p, bags, mask, t, training=True):
        h = F.relu(self.norm(p, 1, torch.cat(bags) @ p["dense1.weight"] + p["dense1.bias"], training))
        z = torch.stack([x.mean(0) for x in h.split([len(x) for x in bags])])
        z = F.relu(self.norm(p, 2, z @ p["dense2.weight"] + p["dense2.bias"], training))
        logits = z @ p["Wc"] + p["bc"]
        return logits, F.softmax(logits, 1)


class RC(Proden):
    again = True


class LWS(Pooled):
    again, beta = True, 2.0

    def terms(self, logits, p, S, w):
        return {"candidates": (w * S * torch.sigmoid(-logits)).sum(1).mean(),
                "others": self.beta * (w * (1 - S) * torch.sigmoid(logits)).sum(1).mean()}

    def weights(self, p, S, w, lam):
        inside, outside = p * S, p * (1 - S)
        return inside / inside.sum(1, keepdim=True) + outside / (outside.sum(1, keepdim=True) + 1e-30)


# The attention learners: dense, dropout, relu, gated scores, softmax attention.

class Attention(Learner):
    nesterov, cosine, first = True, True, 0
    units, hidden = 16, 8

    def params(self, gen):
        p = {}
        layer(p, "dense1.weight", "dense1.bias", D, self.units, gen)
        layer(p, "Wv", "bv", self.units, K, gen)
        layer(p, "W1", "b1", K, self.hidden, gen)
        layer(p, "W2", "b2", self.hidden, 1, gen)
        layer(p, "Wc", "bc", self.units, K, gen)
        return p

    def outputs(self, p, bags, mask, t):
        z, start = [], 0
        for x in bags:
            h = F.relu((x @ p["dense1.weight"] + p["dense1.bias"]) * mask[start:start + len(x)])
            start += len(x)
            gate = h @ p["Wv"] + p["bv"]
            s = F.relu((torch.tanh(gate) * torch.sigmoid(gate)) @ p["W1"] + p["b1"]) @ p["W2"] + p.get("b2", 0)
            z.append((self.attend(s, t) * h).sum(0, keepdim=True))
        self.z = torch.cat(z)
        q = torch.sigmoid(self.z @ p["Wc"] + p["bc"]).clamp(1e-5, 1 - 1e-5)
        return q, F.softmax(q, 1)

    def weights(self, p, S, w, lam):
        return lam * w + (1 - lam) * (p * S) / (p * S).sum(1, keepdim=True)


class Elimipl(Attention):
    mu, gamma = 10.0, 10.0

    def attend(self, s, t):
        return F.softmax(s / math.sqrt(self.units), 0)

    def terms(self, q, p, S, w):
        return {"mapping": -(w * torch.log(p)).sum(1).mean(),
                "sparsity": self.mu * (p * S).sum(1).mean(),
                "inhibition": -self.gamma * ((1 - S) * torch.log(1 - p)).sum(1).mean()}


class Miplma(Attention):
    start, decay, least, scale, margin = 5.0, 0.05, 0.1, 0.5, 0.01

    def params(self, gen):
        p = super().params(gen)
        del p["b2"]  # without effect: attend subtracts the mean
        return p

    def attend(self, s, t):
        tau = max(self.start * (1 - self.decay) ** t, self.least)
        s = (s - s.mean()) / (torch.std(s.detach()) + 1e-8)
        return F.softmax(s / math.sqrt(self.units) / tau, 0)

    def terms(self, q, p, S, w):
        parts = []
        for i in range(len(p)):
            m = self.scale * (1 - (p[i] * S[i]).max() + (p[i] * (1 - S[i])).max())
            both = torch.stack([torch.zeros(()), m])
            parts.append(both.mean() / (1 - both.std(unbiased=True)))
        return {"label": -(w * torch.log(p)).sum(1).mean(), "margin": self.margin * torch.stack(parts).mean()}


class Promipl(Miplma):
    cosine = False
    bits, first_width, second_width = 16, 7, 9

    def mask(self, bags, instances):  # the bits of a uniform number for each label
        return bags, self.bits * K

    def params(self, gen):
        p = super().params(gen)
        h, a, b = self.units, self.first_width, self.second_width
        for letter, other in (("I", "w"), ("G", "y")):
            p[letter + "z"] = uniform((h, a), h, gen)
            p[letter + other] = uniform((K, a), h, gen)
            p[letter.lower() + "1"] = uniform((a,), h, gen)
            layer(p, letter + "2", letter.lower() + "2", a, b, gen)
        layer(p, "I3", "i3", b, a, gen)
        layer(p, "I4", "i4", a, K, gen)
        layer(p, "G3", "g3", b, K, gen)
        self.p = p
        return p

    def outputs(self, p, bags, mask, t):
        self.noise = 2.0 ** -17 + sum(mask[:, i * K:(i + 1) * K] * 2.0 ** (-i - 2) for i in range(self.bits))
        return super().outputs(p, bags, torch.ones(sum(len(x) for x in bags), self.units), t)

    def network(self, letter, labels, other):
        p, small = self.p, letter.lower()
        x = torch.cat([self.z, labels], 1) @ torch.cat([p[letter + "z"], p[letter + other]]) + p[small + "1"]
        return F.relu(F.relu(x) @ p[letter + "2"] + p[small + "2"])

    def terms(self, q, p, S, w):
        x = F.relu(self.network("I", w, "w") @ self.p["I3"] + self.p["i3"])
        posterior = torch.sigmoid(x @ self.p["I4"] + self.p["i4"]) * w
        eps = torch.finfo(posterior.dtype).eps
        sure = posterior.clamp(eps, 1 - eps)
        noise = torch.log(self.noise) - torch.log1p(-self.noise)
        drawn = torch.sigmoid(1.5 * (noise + torch.log(sure) - torch.log1p(-sure)))
        self.restored = torch.sigmoid(self.network("G", drawn, "y") @ self.p["G3"] + self.p["g3"])
        return {"label": -(posterior.detach() * torch.log(p)).sum(1).mean(),
                "entropy": torch.mean(sure * torch.log(sure) + (1 - sure) * torch.log1p(-sure)),
                "reconstruction": F.cross_entropy(self.restored, w)}

    def weights(self, p, S, w, lam):
        inside = self.restored * S
        return lam * w + (1 - lam) * inside / inside.sum(1, keepdim=True)


class Agopmipl(Learner):
    """With the eigenvalues of the matrix, where the spec iterates."""
    nesterov, cosine, first = True, True, 0
    units, embedding, hidden, round = 16, 8, 6, 2

    def params(self, gen):
        p, e = {}, self.embedding
        layer(p, "A", "ba", D, self.units, gen)
        layer(p, "B", "bb", self.units, e, gen)
        p["prototypes"] = (torch.randn(K, D, generator=gen) * 0.5).requires_grad_()
        layer(p, "V", "bv", e, K, gen)
        layer(p, "U", "bu", e, 1, gen)
        layer(p, "W1", "b1", K, self.hidden, gen)
        p["W2"] = uniform((self.hidden, 1), self.hidden, gen)
        layer(p, "Wc", "bc", e, K, gen)
        layer(p, "Wi", "bi", e, K, gen)
        self.p = p
        return p

    def embed(self, x, mask=1):
        p = self.p
        return F.relu((F.relu(x @ p["A"] + p["ba"]) * mask) @ p["B"] + p["bb"])

    def root(self, t):  # of the mean outer product of the gradients of the classifier
        if t < self.round:
            return torch.eye(self.embedding)
        W = self.p["Wc"].detach().double()
        values, vectors = torch.linalg.eigh(W @ W.t())
        return (vectors @ torch.diag(values.clamp(min=1e-6).sqrt()) @ vectors.t()).float()

    def scores(self, h, prototypes):
        p = self.p
        gates = torch.sigmoid(prototypes @ p["U"] + p["bu"]).t()
        return F.relu((torch.sigmoid(h @ p["V"] + p["bv"]) * gates) @ p["W1"] + p["b1"]) @ p["W2"]

    def outputs(self, p, bags, mask, t):
        root, classes, z, start = self.root(t), self.embed(p["prototypes"]), [], 0
        self.instances, self.t = [], t
        for x in bags:
            h = self.embed(x, mask[start:start + len(x)])
            start += len(x)
            s = self.scores(h @ root, classes @ root) + self.scores(h, classes)
            a = F.softmax(s / math.sqrt(self.embedding), 0)
            z.append(a.t() @ h)
            self.instances.append(h @ root @ p["Wi"] + p["bi"])
        logits = torch.cat(z) @ p["Wc"] + p["bc"]
        return logits, F.softmax(logits, 1)

    def terms(self, logits, p, S, w):
        inside = p * S / (p * S).sum(1, keepdim=True)
        each = [F.cross_entropy(x, w[i:i + 1].expand(len(x), K)) for i, x in enumerate(self.instances)]
        return {"label": -(w * torch.log(p)).sum(1).mean(),
                "sparsity": -0.1 * (inside * torch.log(inside + 1e-10)).sum(1).mean(),
                "inhibition": -0.5 * ((1 - S) * torch.log((1 - p).clamp(min=1e-10))).sum(1).mean(),
                "instances": 0.1 * torch.stack(each).mean()}

    def weights(self, p, S, w, lam):
        since = self.t % self.round
        keep = 1 - max(since - 0.2 * self.round, 0) / (0.8 * self.round)
        return keep * w + (1 - keep) * (p * S) / (p * S).sum(1, keepdim=True)


class Fastmipl(Learner):
    nesterov, cosine, first = True, False, 0
    units, draws, bits = 4, 10, 16

    def mask(self, bags, instances):  # the bits of a uniform number for each drawn weight
        return self.units, self.bits * self.draws * K

    def params(self, gen):
        p = {}
        layer(p, "dense1.weight", "dense1.bias", D, self.units, gen)
        for letter in "uv":
            p["M" + letter] = uniform((self.units, K), 1, gen)
            p["S" + letter] = uniform((self.units, K), 4, gen)
            p["g" + letter] = uniform((K,), 1, gen)
        self.p, self.buffers = p, {"batch_norm1.mean": torch.zeros(K), "batch_norm1.variance": torch.ones(K)}
        return p

    def draw(self, letter, noise):
        mean, deviation = self.p["M" + letter], self.p["S" + letter]
        return mean.repeat(1, self.draws) + torch.sqrt(deviation ** 2 + 1e-4).repeat(1, self.draws) * noise

    def mix(self, h, u, sizes, t):  # weights of the instances for each class and draw
        return torch.cat([F.softmax(x @ u, 0) for x in h.split(sizes)])

    def pool(self, values, sizes):
        return torch.stack([x.sum(0) for x in values.split(sizes)])

    def outputs(self, p, bags, mask, t, training=True):
        sizes = [len(x) for x in bags]
        h = F.relu(torch.cat(bags) @ p["dense1.weight"] + p["dense1.bias"])
        length = p["Mv"].square().mean(0).sqrt()
        raw = self.pool(torch.cat([F.softmax(x @ p["Mu"], 0) for x in h.split(sizes)]) * (h @ (p["Mv"] / length)), sizes)
        logits = length * F.batch_norm(raw, self.buffers["batch_norm1.mean"], self.buffers["batch_norm1.variance"], training=training)
        if training:
            width = self.draws * K
            numbers = 2.0 ** -17 + sum(mask[:, i * width:(i + 1) * width] * 2.0 ** (-i - 2) for i in range(self.bits))
            noise = torch.special.ndtri(numbers.double()).float()
            u, v = self.draw("u", noise), self.draw("v", noise)
            b = v.square().mean(0).sqrt()
            z = self.pool(self.mix(h, u, sizes, t) * (h @ (v / b)), sizes)
            self.scores = (b * (z - z.mean(0)) / z.std(0)).view(len(bags), self.draws, K)
        return logits, F.softmax(logits, 1)

    def terms(self, logits, p, S, w):
        divergence = 0
        for letter in "uv":
            posterior = torch.distributions.Normal(self.p["M" + letter], torch.sqrt(self.p["S" + letter] ** 2 + 1e-4))
            prior = torch.distributions.Normal(torch.zeros(self.units, K), self.p["g" + letter].exp().expand(self.units, K))
            divergence += torch.distributions.kl_divergence(posterior, prior).sum()
        return {"link": -(self.scores * w.unsqueeze(1)).sum() / len(w), "divergence": divergence / len(w)}

    def weights(self, p, S, w, lam):
        return lam * w + (1 - lam) * (F.softmax(self.scores, 2) * S.unsqueeze(1)).mean(1)


class Uamipl(Fastmipl):
    def mix(self, h, u, sizes, t):
        scores, weights = h @ u, super().mix(h, u, sizes, t)
        evidence = F.relu(scores).view(-1, self.draws, K) + 1e-6
        doubt = K / (evidence + 1).sum(1, keepdim=True)
        doubt = (doubt - doubt.min()) / (doubt.max() - doubt.min() + 1e-8)
        level = doubt.mean().item()
        share = 0.3 * level if t >= 1 and level >= 0.4 else 0
        return (1 - share) * weights + share * (1 - doubt).repeat(1, self.draws, 1).view(len(h), -1)


def sgd(model, params, lr):
    return torch.optim.SGD(params, lr=lr, momentum=MOMENTUM, nesterov=model.nesterov, weight_decay=DECAY)


def trace(name, model, spec, sets, lr, seed, optimizer=sgd, clip=0, accumulate=1, epochs=EPOCHS, fewest=2):
    gen = torch.Generator().manual_seed(seed)
    params, bags = model.params(gen), STEPS * BATCH // epochs
    sizes = [int(torch.randint(fewest, 9, (1,), generator=gen)) for _ in range(bags)]
    x = [torch.randn(n, D, generator=gen) for n in sizes]
    S = torch.zeros(bags, K)
    for i in range(bags):  # from a single candidate to all classes, or from no label
        S[i, torch.randperm(K, generator=gen)[:i % K + (not model.multi)]] = 1
    w = S / S.sum(1, keepdim=True).clamp(min=1)
    out = {"spec": spec, "sets": sets, "instance": [D], "classes": K, "sizes": sizes,
           "instances": numbers(torch.cat(x)), "candidates": numbers(S),
           "start": {n: numbers(v) for n, v in (params | model.buffers).items()}, "steps": []}
    if model.class_weights is not None:
        out["classWeights"] = numbers(model.class_weights)
    opt, updates = optimizer(model, params.values(), lr), 0
    for epoch in range(epochs):
        t = epoch + model.first
        rate = 0.5 * lr * (1 + math.cos(math.pi * epoch / epochs)) if model.cosine else lr
        lam = (epochs - t) / epochs
        for group in opt.param_groups:
            group["lr"] = rate
        order = torch.randperm(bags, generator=gen).tolist()
        starts = list(range(0, bags, BATCH))
        for number, at in enumerate(starts):
            window = number // accumulate  # the last one of an epoch may be shorter
            steps = min(accumulate, len(starts) - window * accumulate)
            pending = number - window * accumulate < steps - 1
            chosen = order[at:at + BATCH]
            batch, rows = [x[i] for i in chosen], sum(sizes[i] for i in chosen)
            mask = (torch.rand(model.mask(len(chosen), rows), generator=gen) < 0.5).float() * 2 if model.units else torch.zeros(0)
            raw, p = model.outputs(params, batch, mask, t)
            if model.before:
                with torch.no_grad():
                    w[chosen] = model.weights(p, S[chosen], w[chosen], lam)
            terms = model.terms(raw, p, S[chosen], w[chosen])
            loss = model.total(terms)
            (loss / steps).backward()
            if not pending:
                if clip:
                    torch.nn.utils.clip_grad_norm_(params.values(), clip)
                opt.step()
                opt.zero_grad()
                updates += 1
            if not model.before:
                with torch.no_grad():
                    now = model.outputs(params, batch, mask, t)[1] if model.again else p
                    w[chosen] = model.weights(now, S[chosen], w[chosen], lam)
            step = {"bags": chosen, "epoch": t, "lr": rate, "lambda": lam, "mask": numbers(mask),
                    "loss": loss.item(), "terms": {n: v.item() for n, v in terms.items()},
                    "probabilities": numbers(p), "weights": [numbers(w[i]) for i in chosen]}
            if accumulate > 1:
                step["position"] = {"update": updates + pending, "steps": steps, "pending": pending}
            if len(out["steps"]) in (0, 4, STEPS - 1):
                step["params"] = {n: numbers(v) for n, v in (params | model.buffers).items()}
                if optimizer is sgd:
                    step["velocity"] = {n: numbers(opt.state[v]["momentum_buffer"]) for n, v in params.items()}
            out["steps"].append(step)
    if model.buffers:  # with the running statistics
        with torch.no_grad():
            out["evaluated"] = numbers(model.outputs(params, x, None, 0, training=False)[1])
    path = os.path.join(HERE, f"trace-{name}.json.gz")
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as f:
        f.write(json.dumps(out).encode())
    print(path, os.path.getsize(path), "bytes, last loss", out["steps"][-1]["loss"])


FEW = ["data.normalize=none", f"train.epochs={EPOCHS}", f"train.batch={BATCH}", "train.lr=0.05", f"train.weight_decay={DECAY}"]
MLP = ["model.blocks=[pool: mean, dense: 8, relu, dense: 6, relu, classifier: softmax]"]
MAXMIN_MLP = ["model.blocks=[pool: maxmin, dense: 8, relu, dense: 6, relu, classifier: softmax]"]
SMALL = ["model.blocks.dense=16", "model.blocks.attention.hidden=8"]
CENTRED = ["model.blocks.dense=16", "model.sizes.hidden=8"]

if __name__ == "__main__":
    trace("proden-mean", Proden(mean), "proden-mean", FEW, 0.05, 11)
    trace("proden-maxmin-mlp", Proden(maxmin, (8, 6)), "proden-maxmin", FEW + MAXMIN_MLP, 0.05, 12)
    trace("rc-mean-mlp", RC(mean, (8, 6)), "rc-mean", FEW + MLP, 0.05, 13)
    trace("rc-maxmin", RC(maxmin), "rc-maxmin", FEW, 0.05, 14)
    trace("lws-mean", LWS(mean), "lws-mean", FEW + ["model.numbers.beta=2"], 0.05, 15)
    trace("lws-maxmin-mlp", LWS(maxmin, (8, 6)), "lws-maxmin", FEW + MAXMIN_MLP + ["model.numbers.beta=2"], 0.05, 16)
    trace("elimipl", Elimipl(), "elimipl", FEW + SMALL, 0.05, 17)
    trace("miplma", Miplma(), "miplma", FEW + CENTRED, 0.05, 18)
    trace("promipl", Promipl(), "promipl", FEW + CENTRED + ["model.blocks.dropout=0", "model.sizes.h1=7", "model.sizes.h2=9"], 0.05, 19)
    trace("agopmipl", Agopmipl(), "agopmipl", FEW + ["model.sizes.m=16", "model.sizes.n=8", "model.sizes.q=6", "model.numbers.round=2",
                                                       "train.epochs=5", "model.let.embedding=embed(dropout(hidden(X), 0.5))"],
          0.05, 22, epochs=5)
    bayes = FEW + ["model.blocks=[dense: 4, relu]"]
    trace("fastmipl", Fastmipl(), "fastmipl", bayes, 0.005, 57)
    trace("uamipl", Uamipl(), "uamipl", bayes + ["model.numbers.lambda_edl=0.3", "model.numbers.warm=1", "model.numbers.least=0.4"], 0.005, 57)
    # Without velocities: the gradient of a bias before a normalisation is rounding alone.
    trace("batch-norm", Normed(mean), "proden-mean", FEW + [
        "model.blocks=[dense: 7, batch_norm, relu, pool: mean, dense: 6, batch_norm: 0.3, relu, classifier: softmax]"],
        0.05, 20, lambda model, params, lr: sgd(model, params, lr))
