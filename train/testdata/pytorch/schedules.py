"""Learning rates of PyTorch's schedulers, for TestLearningRate of package train.

    python schedules.py > schedules.json

Each entry has the settings of a spec, the mean losses of the epochs, and the rate of each
epoch from a base of 0.1.
"""
import json

import torch
from torch.optim import lr_scheduler as sched

EPOCHS = 12
LOSSES = [2.0, 1.5, 1.4999, 1.6, 1.2, 1.3, 1.25, 1.21, 1.2, 0.9, 0.95, 0.8]


def rates(make, epochs=EPOCHS):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = make(optimizer)
    out = []
    for loss in LOSSES[:epochs]:
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if isinstance(scheduler, sched.ReduceLROnPlateau):
            scheduler.step(loss)
        else:
            scheduler.step()
    return out


def warm(optimizer, w):
    return sched.LinearLR(optimizer, start_factor=1 / (w + 1), total_iters=w)


cases = {
    "cosine": (["train.schedule=cosine"], lambda o: sched.CosineAnnealingLR(o, T_max=EPOCHS)),
    "constant": (["train.schedule=constant"], lambda o: sched.ConstantLR(o, factor=1)),
    "step": (["train.schedule=step", "train.decay_every=3"], lambda o: sched.StepLR(o, 3)),
    "milestones": (["train.schedule=step", "train.decay_at=[2, 3, 7]", "train.decay_factor=0.5"],
                   lambda o: sched.MultiStepLR(o, [2, 3, 7], gamma=0.5)),
    "plateau": (["train.schedule=plateau", "train.decay_patience=1", "train.decay_factor=0.3"],
                lambda o: sched.ReduceLROnPlateau(o, patience=1, factor=0.3)),
    "plateau at once": (["train.schedule=plateau", "train.decay_patience=0"], lambda o: sched.ReduceLROnPlateau(o, patience=0)),
    "plateau of a measure to lower": (["train.schedule=plateau", "train.decay_patience=1", "train.decay_measure=log_loss", "data.split.validation=0.2"],
                                      lambda o: sched.ReduceLROnPlateau(o, patience=1)),
    "plateau of a measure to raise": (["train.schedule=plateau", "train.decay_patience=1", "train.decay_measure=accuracy", "data.split.validation=0.2"],
                                      lambda o: sched.ReduceLROnPlateau(o, patience=1, mode="max")),
    "warm-up": (["train.schedule=constant", "train.warmup=4"], lambda o: warm(o, 4)),
    "warm-up and cosine": (["train.warmup=3"], lambda o: sched.SequentialLR(
        o, [warm(o, 3), sched.CosineAnnealingLR(o, T_max=EPOCHS - 3)], milestones=[3])),
    "warm-up and step": (["train.warmup=2", "train.schedule=step", "train.decay_every=5"],
                         lambda o: sched.ChainedScheduler([warm(o, 2), sched.StepLR(o, 5)])),
}

out = {name: {"sets": sets + [f"train.epochs={EPOCHS}"], "losses": LOSSES, "rates": rates(make)} for name, (sets, make) in cases.items()}
print(json.dumps(out, indent=1))
