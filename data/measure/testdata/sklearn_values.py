"""Computes measures of random predictions with scikit-learn 1.7.2, for the test that
compares them. Run: python sklearn_values.py > sklearn_values.json"""
import json
import warnings

import numpy as np
from sklearn import metrics

warnings.filterwarnings("ignore")
rng = np.random.default_rng(1)


def ece(y, p, bins=15):
    """Guo et al., ICML 2017."""
    confidence, right, total = p.max(axis=1), p.argmax(axis=1) == y, 0.0
    edges = np.linspace(0, 1, bins + 1)
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return total


def wilson(hits, n, z=1.959963984540054):
    if n == 0:
        return None
    low, high = np.roots([1 + z * z / n, -(2 * hits / n + z * z / n), (hits / n) ** 2])[::-1]
    return {"low": float(np.real(low)), "high": float(np.real(high))}


def case(bags, classes, sharpness, unseen=0, rounded=None):
    y = rng.choice(classes - unseen, size=bags, p=rng.dirichlet(np.ones(classes - unseen) * 2))
    logits = rng.normal(size=(bags, classes)) * sharpness
    logits[np.arange(bags), y] += 1.2 * sharpness
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True)).astype(np.float32)
    if rounded:
        p = (np.round(p * rounded) / rounded).astype(np.float32)
    candidates = rng.random((bags, classes)) < 0.4
    candidates[np.arange(bags), y] = True
    p64, predicted, labels = p.astype(np.float64), p.argmax(axis=1), list(range(classes))
    areas = [metrics.roc_auc_score(y == c, p64[:, c]) if 0 < (y == c).sum() < bags else None for c in labels]
    limited = ~candidates.all(axis=1)
    values = {
        "accuracy": metrics.accuracy_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "macro_f1": metrics.f1_score(y, predicted, average="macro"),
        "auroc": float(np.mean([a for a in areas if a is not None])),
        "log_loss": float(-np.log(np.maximum(p64[np.arange(bags), y], 2.0**-23)).mean()),
        "brier": float(((p64 - np.eye(classes)[y]) ** 2).sum(axis=1).mean()),
        "ece": ece(y, p64),
        "inside_candidates": float(candidates[limited][np.arange(limited.sum()), predicted[limited]].mean()),
    }
    if not rounded:  # scikit-learn divides by the sum, and breaks ties by the last class
        assert abs(values["log_loss"] - metrics.log_loss(y, p, labels=labels)) < 1e-6, "log loss"
    if classes > 2:
        order = np.argsort(-p64, axis=1, kind="stable")[:, :2]
        values["top2"] = float((order == y[:, None]).any(axis=1).mean())
        if not rounded:
            assert values["top2"] == metrics.top_k_accuracy_score(y, p64, k=2, labels=labels), "top2"
    precision, recall, f1, support = metrics.precision_recall_fscore_support(y, predicted, labels=labels, zero_division=np.nan)
    confusion = metrics.confusion_matrix(y, predicted, labels=labels)
    number = lambda v: None if v is None or np.isnan(v) else float(v)
    table = [{
        "class": str(c), "support": int(support[c]), "predicted": int(confusion[:, c].sum()),
        "precision": number(precision[c]), "recall": number(recall[c]), "f1": number(f1[c]), "auroc": number(areas[c]),
        "precision_interval": wilson(confusion[c, c], confusion[:, c].sum()),
        "recall_interval": wilson(confusion[c, c], support[c]),
    } for c in labels]
    return {
        "labels": y.tolist(), "classes": classes, "probabilities": [float(v) for v in p.ravel()],
        "candidates": candidates.ravel().astype(int).tolist(),
        "values": values, "table": table, "confusion": confusion.tolist(),
    }


def multi(bags, classes, sharpness, threshold, rounded=None, rare=0.4):
    """Any number of labels per bag."""
    y = rng.random((bags, classes)) < rare
    p = 1 / (1 + np.exp(-sharpness * (rng.normal(size=y.shape) + 1.5 * y - 0.7)))
    p = (np.round(p * rounded) / rounded if rounded else p).astype(np.float32)
    p64 = p.astype(np.float64)
    predicted = p64 > threshold
    precision, recall, f1, support = metrics.precision_recall_fscore_support(y, predicted, zero_division=np.nan)
    areas = [metrics.roc_auc_score(y[:, c], p64[:, c]) if 0 < y[:, c].sum() < bags else None for c in range(classes)]
    averages = [metrics.average_precision_score(y[:, c], p64[:, c]) if y[:, c].any() else None for c in range(classes)]
    mean = lambda values: float(np.mean([v for v in values if v is not None]))
    values = {
        "accuracy": metrics.accuracy_score(y, predicted),
        "macro_f1": float(np.nanmean(f1)),
        "micro_f1": metrics.f1_score(y, predicted, average="micro"),
        "hamming_loss": metrics.hamming_loss(y, predicted),
        "mean_average_precision": mean(averages),
        "auroc": mean(areas),
        "log_loss": float(-np.log(np.maximum(np.where(y, p64, 1 - p64), 2.0**-23)).mean()),
    }
    number = lambda v: None if v is None or np.isnan(v) else float(v)
    hits, guesses = (y & predicted).sum(axis=0), predicted.sum(axis=0)
    table = [{
        "class": str(c), "support": int(support[c]), "predicted": int(guesses[c]),
        "precision": number(precision[c]), "recall": number(recall[c]), "f1": number(f1[c]), "auroc": number(areas[c]),
        "average_precision": number(averages[c]),
        "precision_interval": wilson(hits[c], guesses[c]), "recall_interval": wilson(hits[c], support[c]),
    } for c in range(classes)]
    return {
        "labels": y.ravel().astype(int).tolist(), "threshold": threshold, "classes": classes,
        "probabilities": [float(v) for v in p.ravel()], "values": values, "table": table,
    }


json.dump([case(60, 3, 1.0), case(80, 5, 0.4), case(50, 2, 2.0), case(40, 6, 0.7, unseen=2), case(60, 4, 1.0, rounded=8), case(30, 3, 8.0),
           multi(60, 3, 1.0, 0.5), multi(40, 6, 2.0, 0.25, rounded=8), multi(30, 5, 8.0, 0.5, rare=0.05)],
          __import__("sys").stdout)
print()
