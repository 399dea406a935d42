"""Write the PyTorch traces of the optimizers, of accumulated gradients and of class weights:
PRODEN on bag means, as in pll.py, twenty steps with each.

    python3 optimizers.py      # needs torch; writes trace-*.json.gz beside itself
"""
from torch.optim import SGD, Adam, AdamW, RMSprop

from pll import BATCH, EPOCHS, FEW, Proden, Weighted, mean, trace

CASES = [  # name, settings of train, clip, optimizer
    ("clip", {"lr": 0.05, "clip": 0.3}, 0.3,
     lambda params, lr: SGD(params, lr=lr, momentum=0.9, weight_decay=1e-4)),
    ("adam", {"optimizer": "adam", "lr": 0.01, "weight_decay": 0.01}, 0,
     lambda params, lr: Adam(params, lr=lr, weight_decay=0.01)),
    ("adam-clip", {"optimizer": "adam", "lr": 0.01, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4, "clip": 0.3}, 0.3,
     lambda params, lr: Adam(params, lr=lr, betas=(0.8, 0.9), eps=1e-4)),
    ("adamw", {"optimizer": "adamw", "lr": 0.01, "weight_decay": 0.1}, 0,
     lambda params, lr: AdamW(params, lr=lr, weight_decay=0.1)),
    ("rmsprop", {"optimizer": "rmsprop", "lr": 0.01}, 0,
     lambda params, lr: RMSprop(params, lr=lr)),
    ("rmsprop-momentum", {"optimizer": "rmsprop", "lr": 0.003, "alpha": 0.9, "momentum": 0.9, "weight_decay": 0.01}, 0,
     lambda params, lr: RMSprop(params, lr=lr, alpha=0.9, momentum=0.9, weight_decay=0.01)),
]

if __name__ == "__main__":
    for i, (name, settings, clip, make) in enumerate(CASES):
        sets = ["data.normalize=none", f"train.epochs={EPOCHS}", f"train.batch={BATCH}"]
        sets += [f"train.{key}={value}" for key, value in settings.items()]
        trace(name, Proden(mean), "proden-mean", sets, settings["lr"], 40 + i, lambda model, params, lr: make(params, lr), clip)
    few = ["data.normalize=none", f"train.epochs={EPOCHS}", f"train.batch={BATCH}"]
    trace("accumulate", Proden(mean), "proden-mean", few + ["train.optimizer=adam", "train.lr=0.01", "train.clip=0.3", "train.accumulate=4"],
          0.01, 50, lambda model, params, lr: Adam(params, lr=lr), 0.3, accumulate=4)
    trace("class-weights", Weighted(mean), "proden-mean", FEW + ["loss=[disambiguation]", "train.class_weights=[4, 8, 2, 1, 5]"], 0.05, 51)
