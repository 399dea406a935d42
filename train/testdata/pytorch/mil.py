"""Write the PyTorch traces of the multi-instance models that are trained with the label
weights of DEMIPL: a hidden layer before its attention, ABMIL, gated ABMIL, classifiers of instances
with mean and maximum pooling, DSMIL, CLAM, ACMIL, a transformer with a class token, attention
with extra keys, and normalisation as functions.

Each bag goes through the network alone, as in the programs of the papers. The recording
is that of pll.py, with gradients clipped to norm 1 as in the specs. Bags have between one and
all classes as candidates, so the traces contain certain labels too.

    python3 mil.py      # needs torch; writes trace-*.json.gz into this folder
"""
import math

import torch
import torch.nn.functional as F

from pll import D, FEW, K, Learner, layer, trace, uniform


class Mil(Learner):
    nesterov, cosine, first, before = True, True, 1, True
    hidden = 8

    def params(self, gen):
        p = {}
        layer(p, "dense1.weight", "dense1.bias", D, self.hidden, gen)
        self.head(p, gen)
        return p

    def outputs(self, p, bags, mask, t):
        self.scores = []
        logits = torch.cat([self.bag(p, F.relu(x @ p["dense1.weight"] + p["dense1.bias"])) for x in bags])
        return logits, self.link(logits)

    def link(self, logits):
        return F.softmax(logits, 1)

    def terms(self, logits, p, S, w):
        return {"disambiguation": -(w * torch.log(p)).sum(1).mean()}

    def weights(self, p, S, w, lam):
        return lam * w + (1 - lam) * (p * S) / (p * S).sum(1, keepdim=True)


class Demipl(Mil):
    def head(self, p, gen):
        layer(p, "Wv", "bv", self.hidden, K, gen)
        layer(p, "Wu", "bu", self.hidden, K, gen)
        p["W"] = uniform((K, 1), K, gen)
        layer(p, "Wc", "bc", self.hidden, K, gen)

    def bag(self, p, h):
        a = torch.sigmoid((torch.tanh(h @ p["Wv"] + p["bv"]) * torch.sigmoid(h @ p["Wu"] + p["bu"])) @ p["W"])
        self.scores.append(a)
        return ((a / a.sum()) * h).sum(0, keepdim=True) @ p["Wc"] + p["bc"]

    def terms(self, logits, p, S, w):
        entropy = torch.stack([-(a * torch.log(a)).sum() for a in self.scores]).mean()
        return {**super().terms(logits, p, S, w), "attention": entropy}

    def total(self, terms):
        return terms["disambiguation"] + 0.001 * terms["attention"]


class Cdl(Demipl):
    """With the rivals inside and outside the candidates, half of each."""

    def terms(self, logits, p, S, w):
        inside = (p * S).sort(1, descending=True).values
        rival = 0.5 * inside[:, 1] + 0.5 * (p * (1 - S)).max(1).values
        focus = (1 - inside[:, 0] + rival) ** 1.5
        terms = super().terms(logits, p, S, w)
        return {"calibratable": -(focus * (w * torch.log(p)).sum(1)).mean(), "attention": terms["attention"]}

    def total(self, terms):
        return terms["calibratable"] + 0.001 * terms["attention"]


class Abmil(Mil):
    width = 6

    def head(self, p, gen):
        layer(p, "V", "bv", self.hidden, self.width, gen)
        p["Wa"] = uniform((self.width, 1), self.width, gen)
        layer(p, "Wc", "bc", self.hidden, K, gen)

    def score(self, p, h):
        return torch.tanh(h @ p["V"] + p["bv"]) @ p["Wa"]

    def bag(self, p, h):
        a = F.softmax(self.score(p, h), 0)
        return a.t() @ h @ p["Wc"] + p["bc"]


class Gated(Abmil):
    def head(self, p, gen):
        super().head(p, gen)
        layer(p, "U", "bu", self.hidden, self.width, gen)

    def score(self, p, h):
        return (torch.tanh(h @ p["V"] + p["bv"]) * torch.sigmoid(h @ p["U"] + p["bu"])) @ p["Wa"]


class Maximum(Mil):
    def head(self, p, gen):
        layer(p, "C", "c", self.hidden, K, gen)

    def bag(self, p, h):
        return (h @ p["C"] + p["c"]).max(0, keepdim=True).values


class Mean(Maximum):
    def bag(self, p, h):
        return F.softmax(h @ p["C"] + p["c"], 1).mean(0, keepdim=True)

    def link(self, probabilities):
        return probabilities


class Dsmil(Maximum):
    width = 6

    def head(self, p, gen):
        super().head(p, gen)
        layer(p, "Q", "bq", self.hidden, self.width, gen)
        layer(p, "V", "bv", self.hidden, self.hidden, gen)
        p["F"] = uniform((K, K, self.hidden), self.hidden, gen)
        p["bf"] = uniform((K,), self.hidden, gen)

    def bag(self, p, h):
        f = h @ p["C"] + p["c"]
        self.scores.append(f.max(0, keepdim=True).values)
        q, v = h @ p["Q"] + p["bq"], h @ p["V"] + p["bv"]
        critical = h[f.argmax(0)] @ p["Q"] + p["bq"]
        a = F.softmax(q @ critical.t() / math.sqrt(self.width), 0)
        return F.conv1d((a.t() @ v).unsqueeze(0), p["F"], p["bf"]).view(1, -1)

    def terms(self, logits, p, S, w):
        first = F.log_softmax(torch.cat(self.scores), 1)
        return {**super().terms(logits, p, S, w), "instances": -(w * first).sum(1).mean()}

    def total(self, terms):
        return 0.5 * terms["disambiguation"] + 0.5 * terms["instances"]


class ClamSB(Gated):
    top, branches = 2, 1

    def head(self, p, gen):
        super().head(p, gen)
        p["Wa"] = uniform((self.width, self.branches), self.width, gen)
        layer(p, "I1", "i1", self.hidden, K, gen)
        layer(p, "I0", "i0", self.hidden, K, gen)

    def bag(self, p, h):
        self.p, self.h = p, getattr(self, "h", []) + [h]
        s = self.score(p, h)
        self.scores.append(s)
        return self.classify(p, F.softmax(s, 0), h)

    def classify(self, p, a, h):
        return a.t() @ h @ p["Wc"] + p["bc"]

    def terms(self, logits, p, S, w):
        params, total, one = self.p, [], torch.ones(self.top, dtype=torch.long)
        for s, h, weights in zip(self.scores, self.h, w):
            for c in range(K):
                column = s[:, min(c, self.branches - 1)]
                high, low = torch.topk(column, self.top)[1], torch.topk(-column, self.top)[1]
                both = torch.stack([h @ params["I0"][:, c] + params["i0"][c], h @ params["I1"][:, c] + params["i1"][c]], 1)
                within = F.cross_entropy(torch.cat([both[high], both[low]]), torch.cat([one, 0 * one]))
                others = F.cross_entropy(both[high], 0 * one)
                total.append(weights[c] * within + (1 - weights[c]) * others)
        self.h = []
        return {**super().terms(logits, p, S, w), "instances": torch.stack(total).sum() / (len(w) * K)}

    def total(self, terms):
        return 0.7 * terms["disambiguation"] + 0.3 * terms["instances"]


class ClamMB(ClamSB):
    branches = K

    def classify(self, p, a, h):
        return ((a.t() @ h) * p["Wc"].t()).sum(1).unsqueeze(0) + p["bc"]


class Acmil(Gated):
    branches, top = 5, 2
    units, before = 1, True  # one mask for the scores of all branches

    def head(self, p, gen):
        super().head(p, gen)
        del p["Wa"]
        for i in range(1, self.branches + 1):
            p[f"u{i}"] = uniform((self.width, 1), self.width, gen)
            layer(p, f"W{i}", f"b{i}", self.hidden, K, gen)

    def outputs(self, p, bags, mask, t):
        self.drawn, self.subs, self.similarity = mask, [], []
        return super().outputs(p, bags, mask, t)

    def bag(self, p, h):
        masked, self.drawn = self.drawn[:len(h)] > 0, self.drawn[len(h):]
        gated = torch.tanh(h @ p["V"] + p["bv"]) * torch.sigmoid(h @ p["U"] + p["bu"])
        attentions, subs = [], []
        for i in range(1, self.branches + 1):
            s = gated @ p[f"u{i}"]
            high = torch.zeros_like(s, dtype=torch.bool)
            high[torch.topk(s[:, 0], min(self.top, len(s)))[1]] = True
            a = F.softmax(s.masked_fill(high & masked, -1e9), 0)
            attentions.append(a)
            subs.append(F.log_softmax(a.t() @ h @ p[f"W{i}"] + p[f"b{i}"], 1))
        pairs = [F.cosine_similarity(attentions[i], attentions[j], 0) for i in range(5) for j in range(i + 1, 5)]
        self.similarity.append(torch.stack(pairs).mean())
        self.subs.append(torch.stack(subs).mean(0))
        return torch.stack(attentions).mean(0).t() @ h @ p["Wc"] + p["bc"]

    def terms(self, logits, p, S, w):
        return {**super().terms(logits, p, S, w), "branches": -(w * torch.cat(self.subs)).sum(1).mean(),
                "similarity": torch.stack(self.similarity).mean()}


class Transformer(Mil):
    heads = 2

    def head(self, p, gen):
        h = self.hidden
        p["token"] = torch.randn(h, generator=gen).requires_grad_()
        for i in (1, 2, 3):
            p[f"g{i}"] = (1 + 0.1 * torch.randn(h, generator=gen)).requires_grad_()
            p[f"o{i}"] = (0.1 * torch.randn(h, generator=gen)).requires_grad_()
        for i in (1, 2):
            for name in "QKV":
                p[f"{name}{i}"] = uniform((h, h), h, gen)
            layer(p, f"O{i}", f"r{i}", h, h, gen)
        layer(p, "Wc", "bc", h, K, gen)

    def norm(self, p, i, x):
        return F.layer_norm(x, (self.hidden,), p[f"g{i}"], p[f"o{i}"])

    def attend(self, q, k, v, heads):
        split = lambda x: x.view(len(x), heads, -1).transpose(0, 1)
        return F.scaled_dot_product_attention(split(q), split(k), split(v)).transpose(0, 1).reshape(len(q), -1)

    def layer(self, p, i, token, h):
        t, x = self.norm(p, i, token), self.norm(p, i, h)
        k, v = x @ p[f"K{i}"], x @ p[f"V{i}"]
        return (token + self.attend(t @ p[f"Q{i}"], k, v, 1) @ p[f"O{i}"] + p[f"r{i}"],
                h + self.attend(x @ p[f"Q{i}"], k, v, self.heads) @ p[f"O{i}"] + p[f"r{i}"])

    def bag(self, p, h):
        token, h = self.layer(p, 1, p["token"].unsqueeze(0), h)
        token, h = self.layer(p, 2, token, h)
        return self.norm(p, 3, token) @ p["Wc"] + p["bc"]


class Keys(Transformer):
    """The instances attend to a token and to the mean of their bag too."""

    def head(self, p, gen):
        h = self.hidden
        p["token"] = torch.randn(h, generator=gen).requires_grad_()
        for name in "QKV":
            p[name] = uniform((h, h), h, gen)
        layer(p, "Wc", "bc", h, K, gen)

    def bag(self, p, h):
        rows = torch.cat([h, p["token"].unsqueeze(0), h.mean(0, keepdim=True)])
        x = h + self.attend(h @ p["Q"], rows @ p["K"], rows @ p["V"], self.heads)
        return x.mean(0, keepdim=True) @ p["Wc"] + p["bc"]


class Norms(Mil):
    """Normalisation of each instance, then of each column in its bag."""

    def head(self, p, gen):
        h = self.hidden
        for n in "12":
            p["g" + n] = torch.ones(h).requires_grad_()
            p["o" + n] = uniform((h,), h, gen)
        p["W"] = uniform((h, h), h, gen)
        layer(p, "Wc", "bc", h, K, gen)

    def bag(self, p, h):
        x = torch.tanh(F.layer_norm(h, (self.hidden,), p["g1"], p["o1"])) @ p["W"]
        # instance_norm of PyTorch refuses bags of one instance; layer_norm of the columns is the same.
        x = F.layer_norm(x.t(), (len(x),)).t() * p["g2"] + p["o2"]
        return torch.tanh(x).mean(0, keepdim=True) @ p["Wc"] + p["bc"]


if __name__ == "__main__":
    dense = FEW + ["model.blocks.dense=8"]
    narrow, whole = dense + ["model.sizes.m=6"], ["model.blocks.dropout=0"]
    trace("demipl-mlp", Demipl(), "demipl-mlp", dense + whole, 0.05, 21, clip=1)
    trace("demipl-cdl", Cdl(), "demipl-cdl", FEW + ["model.blocks=[dense: 8, relu, attention, pool: attention, classifier]",
                                                    "model.numbers.gamma=1.5", "model.numbers.others=0.5"], 0.05, 31)
    trace("abmil", Abmil(), "abmil", narrow + whole, 0.05, 22, clip=1)
    trace("gated-abmil", Gated(), "gated-abmil", narrow + whole, 0.05, 23, clip=1)
    trace("instance-max", Maximum(), "instance-max", dense + whole, 0.05, 24, clip=1)
    trace("instance-mean", Mean(), "instance-mean", dense + whole, 0.05, 25, clip=1)
    trace("dsmil", Dsmil(), "dsmil", narrow + whole, 0.05, 26, clip=1)
    clam = narrow + whole + ["model.sizes.n=2"]
    trace("clam-sb", ClamSB(), "clam-sb", clam, 0.05, 27, clip=1)
    trace("clam-mb", ClamMB(), "clam-mb", clam, 0.05, 28, clip=1)
    trace("acmil", Acmil(), "acmil", narrow + ["model.sizes.n=2"], 0.05, 29, clip=1)
    trace("transmil", Transformer(), "transmil", dense + whole + ["model.sizes.heads=2", "model.numbers.rate=0"], 0.05, 30, clip=1)
    trace("keys", Keys(), "trace-keys.yaml", FEW, 0.05, 32)
    # In a bag of two instances, bag_norm magnifies the rounding to float32.
    trace("norms", Norms(), "trace-norms.yaml", FEW, 0.05, 33, fewest=5)
