"""Compares fit_many, which trains all settings in one call of the program, with GridSearchCV."""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import miplc


def main(values: int = 8, epochs: int = 30) -> None:
    warnings.simplefilter("ignore", miplc.FindingWarning)  # of each of the trials
    bags = miplc.synth("prototypes", noise=1.0)
    assert bags.labels is not None and bags.candidates is not None
    truth = bags.classes[bags.labels]
    sets = [set(bags.classes[row].tolist()) for row in bags.candidates]
    splits = list(StratifiedKFold(3, shuffle=True, random_state=0).split(truth, truth))[:1]
    grid = {
        "train__lr": np.geomspace(0.002, 0.1, values).round(4).tolist(),
        "loss__attention": np.geomspace(0.0001, 0.1, values).round(5).tolist(),
    }
    classifier = miplc.MIPLClassifier("demipl-mlp", train__epochs=epochs, random_state=1)

    begin = time.perf_counter()
    fits = miplc.fit_many(classifier, bags, params=grid, splits=splits)
    together = time.perf_counter() - begin

    begin = time.perf_counter()
    search = GridSearchCV(classifier, grid, cv=splits, refit=False)
    search.fit(list(bags), truth, candidates=sets)
    one_by_one = time.perf_counter() - begin

    same = np.array_equal(fits.scores.mean(axis=1), search.cv_results_["mean_test_score"])
    print(
        f"{len(fits.params)} settings: fit_many {together:.1f} s, GridSearchCV {one_by_one:.1f} s, same scores: {same}"
    )
    print(f"best: {fits.best_params}, accuracy {fits.scores.max():.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
