"""Writes reference.json, the numbers that the tests of this package compare with.

Accuracies are drawn once and stored with the results. Made with the versions named in the
file: pip install scipy==1.17.1 statsmodels==0.15.0
"""
import json
import math

import numpy as np
import scipy
import scipy.stats as st
import statsmodels
from statsmodels.stats.multitest import multipletests

rng = np.random.default_rng(7)
datasets, learners, splits = 6, 5, 10
train, test = 350, 150
base = rng.uniform(0.5, 0.9, datasets)
skill = np.array([0.05, 0.045, 0.02, 0.0, -0.03])
hard = rng.normal(0, 0.02, (datasets, 1, splits))  # a split is hard for all learners
x = base[:, None, None] + skill[None, :, None] + hard + rng.normal(0, 0.025, (datasets, learners, splits))
x = np.round(np.clip(x, 0, 1) * test) / test
x[1, 2] = x[1, 0]  # equal learners: ties of ranks
x[4, 3] = x[4, 4]

paired, corrected, pairs = [], [], []
for d in range(datasets):
    for i in range(learners):
        for j in range(i + 1, learners):
            diff = x[d, i] - x[d, j]
            if np.all(diff == 0):  # scipy gives NaN: without variance there is no test
                continue
            pairs.append([d, i, j])
            paired.append(st.ttest_rel(x[d, i], x[d, j]).pvalue)
            t = diff.mean() / math.sqrt((1 / splits + test / train) * diff.var(ddof=1))
            corrected.append(2 * st.t.sf(abs(t), splits - 1))

means = x.mean(axis=2)
ranks = np.array([st.rankdata(-np.round(row, 10)) for row in means])
friedman = st.friedmanchisquare(*np.round(means, 10).T)
chi2 = friedman.statistic
f = (datasets - 1) * chi2 / (datasets * (learners - 1) - chi2)

json.dump({
    "versions": {"scipy": scipy.__version__, "numpy": np.__version__, "statsmodels": statsmodels.__version__},
    "train": train, "test": test,
    "accuracies": x.tolist(),
    "mean": x.mean(axis=2).tolist(),
    "deviation": x.std(axis=2, ddof=1).tolist(),
    "pairs": pairs,
    "paired": paired,
    "corrected": corrected,
    "holm": multipletests(paired, method="holm")[1].tolist(),
    "ranks": ranks.mean(axis=0).tolist(),
    "friedman": {"chi2": chi2, "p": friedman.pvalue, "F": f,
                 "Fp": st.f.sf(f, learners - 1, (learners - 1) * (datasets - 1))},
    "studentized_range": [{"k": k, "p": p, "q": st.studentized_range.ppf(p, k, np.inf)}
                          for k in (2, 3, 5, 10, 20, 50) for p in (0.9, 0.95, 0.99)],
    "nemenyi": st.studentized_range.ppf(0.95, learners, np.inf) / math.sqrt(2)
               * math.sqrt(learners * (learners + 1) / (6 * datasets)),
}, open("reference.json", "w"), indent=1)
