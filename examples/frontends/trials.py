"""Puts the settings that an experiment tried (its grids) into an Optuna storage, a
study for each cell: data set, r, learner and split.

    python trials.py smoke sqlite:///trials.db

The value of a trial is the accuracy on the bags that were held out for the choice.
"""

import collections
import glob
import json
import re
import sys

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial


def params(setting):
    """The pairs of "train.lr=0.01, loss.attention=0.001"; numbers are numbers."""
    pairs = (pair.split("=", 1) for pair in re.split(r", (?=[\w.]+=)", setting))
    return {key: float(value) if re.fullmatch(r"[-+.\de]*\d[-+.\de]*", value) else value for key, value in pairs}


folder, storage = sys.argv[1:]
cells = {}
for name in sorted(glob.glob(f"{folder}/results/*.jsonl")):
    for line in open(name):
        if line.endswith("\n"):  # else it is being written
            cell = json.loads(line)
            if cell.get("trials"):
                cells[cell["key"]] = cell

for cell in cells.values():
    tried = [(params(t["setting"]), t.get("accuracy")) for t in cell["trials"]]
    choices = collections.defaultdict(set)
    for setting, _ in tried:
        for key, value in setting.items():
            choices[key].add(value)
    distributions = {key: CategoricalDistribution(sorted(values)) for key, values in choices.items()}
    study = optuna.create_study(
        study_name=f"{cell['learner']} on {cell['data']} r={cell['r']} split {cell['split']}",
        storage=storage, direction="maximize", load_if_exists=True)
    if study.trials:
        continue
    for setting, accuracy in tried:
        state = TrialState.FAIL if accuracy is None else TrialState.COMPLETE
        study.add_trial(create_trial(params=setting, distributions=distributions, value=accuracy, state=state))
    print(f"{study.study_name}: {len(study.trials)} trials, best {study.best_value:.3f} with {study.best_params}")
