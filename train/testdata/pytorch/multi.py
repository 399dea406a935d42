"""Write the PyTorch traces of bags with any number of labels (data.labels: multi): a linear
model on bag means with sigmoid outputs and BCEWithLogitsLoss, twenty steps with and without
class weights.

    python3 multi.py      # needs torch; writes trace-multi*.json.gz beside itself
"""
import torch
import torch.nn.functional as F

from pll import FEW, Pooled, mean, trace


class Multi(Pooled):
    multi = True

    def outputs(self, p, bags, mask, t):
        logits = torch.cat([self.pool(x) for x in bags]) @ p["Wc"] + p["bc"]
        return logits, torch.sigmoid(logits)

    def terms(self, logits, p, S, w):
        return {"binary_cross_entropy": F.binary_cross_entropy_with_logits(logits, S, pos_weight=self.class_weights)}

    def weights(self, p, S, w, lam):
        return w


class Weighted(Multi):
    class_weights = torch.tensor([1.0, 2.0, 0.5, 0.25, 1.25])


if __name__ == "__main__":
    sets = FEW + ["data.labels=multi", "model.blocks=[pool: mean, classifier]", "train.schedule=constant", "train.nesterov=false"]
    trace("multi", Multi(mean), "quickstart", sets, 0.05, 60)
    trace("multi-class-weights", Weighted(mean), "quickstart", sets + ["train.class_weights=[1, 2, 0.5, 0.25, 1.25]"], 0.05, 61)
