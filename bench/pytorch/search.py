"""The search of `miplc train SPEC --search` with Optuna and PyTorch.

64 trials with the ranges of the shipped specs demipl-mlp and gated-abmil, each on 80 % of the training bags
and measured on the other 20 % after each epoch. Optuna's default sampler (TPE) draws the settings, and its
successive halving stops trials after 4, 12 and 36 of 100 epochs, a third of them continuing. The best setting
is trained on all training bags. It needs optuna beside PyTorch:

    python3 search.py --model demipl-mlp --data sival6-mipl-r1.npz --split run/split.json

Prints one JSON object.
"""
import argparse
import json
import math
import random
import time
from types import SimpleNamespace

import optuna
import torch

from demipl import load
from mil import WIDTH, Demipl, Pooled, accuracy, epochs


def draw(trial, name):
    """Draws the settings of one trial: the ranges of the section search of the spec."""
    s = {"lr": trial.suggest_float("lr", 1e-3, 1e-1, log=True),
         "weight_decay": trial.suggest_float("weight_decay", 1e-5, 1e-2, log=True),
         "hidden": trial.suggest_categorical("hidden", [64, 128, 256])}
    if name == "demipl-mlp":
        s["dropout"] = trial.suggest_float("dropout", 0.2, 0.7)
        s["attention"] = trial.suggest_float("attention", 1e-4, 1e-1, log=True)
    else:
        s["dropout"] = trial.suggest_float("dropout", 0.1, 0.6)
    return s


def build(name, d, k, s):
    if name != "demipl-mlp":
        return Pooled(d, k, WIDTH, True, s["hidden"], s["dropout"])
    model = Demipl(d, k, k, True, s["hidden"], s["dropout"])
    model.attention_weight = s["attention"]
    return model


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", choices=["demipl-mlp", "gated-abmil"], required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--split", required=True, help="split.json of a run")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--trials", type=int, default=64)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    bags, S, labels, train, test = load(SimpleNamespace(data=args.data, split=args.split, normalize="training", device="cpu"))
    d, k = bags[0].shape[1], S.shape[1]
    order = random.Random(args.seed).sample(train, len(train))
    held, fitted = order[:len(train) // 5], order[len(train) // 5:]
    begin, trained = time.process_time(), 0

    def objective(trial):
        nonlocal trained
        s = draw(trial, args.model)
        model = build(args.model, d, k, s)
        for epoch in epochs(model, bags, S, fitted, args.epochs, s["lr"], s["weight_decay"]):
            trained += 1
            score = accuracy(model, bags, labels, held)
            model.train()
            trial.report(score, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned()
        return score

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    halving = optuna.pruners.SuccessiveHalvingPruner(min_resource=math.ceil(args.epochs / 27), reduction_factor=3)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=args.seed), pruner=halving)
    study.optimize(objective, n_trials=args.trials)
    searched = time.process_time() - begin
    best = study.best_params
    model = build(args.model, d, k, best)
    for _ in epochs(model, bags, S, train, args.epochs, best["lr"], best["weight_decay"]):
        pass
    print(json.dumps({"peer": f"optuna {optuna.__version__}, pytorch {torch.__version__}", "model": args.model, "seed": args.seed,
                      "epochs": trained, "search_cpu_seconds": searched, "cpu_seconds": time.process_time() - begin, "settings": best,
                      "held_out_accuracy": study.best_value, "test_accuracy": accuracy(model, bags, labels, test)}))


if __name__ == "__main__":
    main()
