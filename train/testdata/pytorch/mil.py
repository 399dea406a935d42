"""Write the PyTorch traces of the multi-instance models that are trained with the label
weights of DEMIPL: a hidden layer before its attention, ABMIL, gated ABMIL, and
classifiers of instances with mean and maximum pooling.

Each bag goes through the network alone, as in the programs of the papers. The recording
is that of pll.py. Bags have between one and all classes as candidates, so the traces
contain certain labels too.

    python3 mil.py      # needs torch; writes trace-*.json.gz beside itself
"""
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


if __name__ == "__main__":
    dense = FEW + ["model.blocks.dense=8"]
    narrow = dense + ["model.sizes.m=6"]
    trace("demipl-mlp", Demipl(), "demipl-mlp", dense, 0.05, 21)
    trace("abmil", Abmil(), "abmil", narrow, 0.05, 22)
    trace("gated-abmil", Gated(), "gated-abmil", narrow, 0.05, 23)
    trace("instance-max", Maximum(), "instance-max", dense, 0.05, 24)
    trace("instance-mean", Mean(), "instance-mean", dense, 0.05, 25)
