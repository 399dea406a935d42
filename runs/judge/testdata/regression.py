"""Trains scikit-learn's LogisticRegression as docs/findings.md does, and prints test accuracies as JSON.

    python3 regression.py bags.json [all]

same: with the label weights of bags.json; again: then weighted by its own predictions, once. With all also five: from
equal weights, weighted five times; equal: with equal weights.
"""
import json
import sys
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

warnings.filterwarnings("ignore")  # of a tolerance that rounding does not allow
bags = json.load(open(sys.argv[1]))
instances = np.fromfile(bags["instances"], "<f4").reshape(-1, bags["features"]).astype(float)
offsets, labels, train, test = (np.array(bags[k]) for k in ("offsets", "labels", "train", "test"))
pooled = np.array([np.concatenate([b.mean(0), b.max(0), b.min(0)]) for b in np.split(instances, offsets[1:-1])])
mean, deviation = pooled[train].mean(0), pooled[train].std(0)
deviation[deviation <= 1e-10 * np.abs(pooled[train]).max(0)] = np.inf
X = (pooled - mean) / deviation
classes = np.array(bags["classes"])
allowed = np.array([[c in bags["candidates"][bag] for c in classes] for bag in train])


def fit(weights):
    rows, columns = np.nonzero(weights > 0)
    model = LogisticRegression(C=1, tol=1e-7, max_iter=20_000)
    return model.fit(X[train][rows], classes[columns], sample_weight=weights[rows, columns])


def reweighted(model, rounds):
    for _ in range(rounds):
        p = np.zeros(allowed.shape)
        p[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X[train])
        p *= allowed
        model = fit(p / p.sum(1, keepdims=True))
    return model


def accuracy(model):
    return float((model.predict(X[test]) == labels[test]).mean())


certain = allowed.sum() == len(train)
same = fit(np.array(bags["label_weights"]))
found = {"same": accuracy(same), "again": accuracy(same if certain else reweighted(same, 1))}
if "all" in sys.argv[2:]:
    equal = fit(allowed / allowed.sum(1, keepdims=True))
    found |= {"five": accuracy(equal if certain else reweighted(equal, 5)), "equal": accuracy(equal)}
print(json.dumps(found))
