"""Searches settings with Optuna, which stops unpromising trainings after each epoch."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

import optuna

import miplc


def main(trials: int = 20, epochs: int = 30) -> None:
    warnings.simplefilter("ignore", miplc.FindingWarning)  # of each of the trials
    bags = miplc.synth("prototypes", noise=1.0)

    def objective(trial: optuna.Trial) -> float:
        def report(epoch: Mapping[str, Any]) -> None:
            trial.report(epoch["measures"]["validation"]["accuracy"], epoch["epoch"])
            if trial.should_prune():
                raise optuna.TrialPruned()

        classifier = miplc.MIPLClassifier(
            "demipl-mlp",
            train__lr=trial.suggest_float("lr", 1e-3, 0.2, log=True),
            train__epochs=epochs,
            data__split__validation=0.2,
            callbacks=[report],
        )
        return classifier.fit(bags).run_.measures["validation"]["accuracy"]

    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
    study.optimize(objective, n_trials=trials)
    print(f"best: {study.best_params}, validation accuracy {study.best_value:.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
