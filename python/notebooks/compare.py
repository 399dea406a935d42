# ---
# jupyter:
#   kernelspec: {name: python3, display_name: Python 3, language: python}
# ---

# %% [markdown]
# # Methods in one table, with a scikit-learn baseline
#
# Compare published methods on the same splits of your data, and put a baseline of your own beside them.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import miplc

# %% [markdown]
# ## The data
#
# 200 bags of five classes. About a fifth of the instances of a bag shows its label. Each candidate set contains the
# true label and one false one.

# %%
bags = miplc.synth("prototypes", bags=200, features=10, noise=0.8, r=1, seed=5)
bags

# %% [markdown]
# ## The splits
#
# The baseline needs the same splits as the methods, so they come from scikit-learn here. Without `index`, miplc draws
# them.

# %%
splits = list(StratifiedShuffleSplit(4, test_size=0.3, random_state=0).split(np.arange(len(bags)), bags.labels))
rows = [
    (number, bag + 1, part)
    for number, division in enumerate(splits, 1)
    for part, chosen in zip(("train", "test"), division)
    for bag in chosen
]
pd.DataFrame(rows, columns=["split", "bag", "part"]).to_csv("splits.csv", index=False)

# %% [markdown]
# ## The methods
#
# `experiment` trains each learner on each split. With `output="folder"`, the same call continues after an
# interruption. A learner is a shipped spec (`miplc.specs()` lists all) or your own. The first one is the reference of
# the significance tests.

# %%
specs = {"DEMIPL-MLP": "demipl-mlp", "DEMIPL": "demipl", "Gated ABMIL": "gated-abmil", "PRODEN on means": "proden-mean"}
comparison = miplc.experiment(
    {
        "name": "comparison",
        "learners": [{"name": name, "spec": spec, "set": {"train.epochs": 30}} for name, spec in specs.items()],
        "splits": {"count": len(splits), "index": os.path.abspath("splits.csv")},
    },
    data={"prototypes": bags},
    progress=False,
)
comparison.tables["Classification accuracy"]

# %% [markdown]
# • marks a learner that is significantly worse than the first one, ◦ one that is better. `comparison.html` is the
# complete report. These figures come from 30 epochs, which keep the notebook short; the specs train longer by
# themselves.
#
# ## The baseline
#
# Logistic regression on the mean of each bag cannot learn from candidate sets. It is trained twice: on one candidate
# of each bag, drawn at random, and on the true labels, which are unknown in practice.

# %%
means = np.array([bag.mean(axis=0) for bag in bags])
drawn = np.array([np.random.default_rng(i).choice(np.flatnonzero(row)) for i, row in enumerate(bags.candidates)])
baseline = make_pipeline(StandardScaler(), LogisticRegression())
rows = []
for name, y in {"logistic, drawn label": drawn, "logistic, true label": bags.labels}.items():
    for number, (train, test) in enumerate(splits, 1):
        accuracy = baseline.fit(means[train], y[train]).score(means[test], bags.labels[test])
        rows.append({"learner": name, "split": number, "accuracy": accuracy})

# %% [markdown]
# `comparison.results` has one row for each training, with all measures. The frame of the baseline has the same
# columns, so one table contains both.

# %%
results = pd.concat([comparison.results, pd.DataFrame(rows)])
table = results.groupby("learner", sort=False).accuracy.agg(["mean", "std"]).round(3)
table

# %%
figure, axes = plt.subplots(figsize=(7, 3))
for place, (name, group) in enumerate(results.groupby("learner", sort=False)):
    color = "tab:gray" if name.startswith("logistic") else "tab:blue"
    axes.plot(group.accuracy, [place] * len(group), "o", color=color, alpha=0.5)
    axes.plot(group.accuracy.mean(), place, "|", color=color, markersize=18, markeredgewidth=3)
axes.set(yticks=range(len(table)), yticklabels=table.index, xlabel="test accuracy (points: splits, lines: means)")
axes.margins(y=0.1)
axes.invert_yaxis()
figure.tight_layout()
plt.show()
