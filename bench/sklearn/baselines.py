# Trains scikit-learn on the mean, minimum and maximum of each bag, and prints results for miplc report --add.
# Usage: python baselines.py NAME [multi], with NAME.csv and NAME-splits.csv of prepare.py.
import sys

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler

name, multi = sys.argv[1], "multi" in sys.argv
table = pd.read_csv(f"{name}.csv", dtype={"bag": str, "label": str}, keep_default_na=False)
features = list(table.columns.drop(["bag", "label", "candidates"], errors="ignore"))
bags = table.groupby("bag", sort=False)
x = pd.concat([bags[features].agg(how) for how in ("mean", "min", "max")], axis=1)
y = bags["label"].first()
if multi:
    y = pd.DataFrame(MultiLabelBinarizer().fit_transform(y.str.split()), y.index)

logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=5000))
learners = {"logistic regression": OneVsRestClassifier(logistic) if multi else logistic,
            "random forest": RandomForestClassifier(500, random_state=1)}
print("data,learner,split,accuracy,macro_f1" + ",mean_average_precision" * multi)
for split, part in pd.read_csv(f"{name}-splits.csv", dtype={"bag": str}).groupby("split"):
    train, test = (part.bag[part.part == p] for p in ("train", "test"))
    for learner, model in learners.items():
        model.fit(x.loc[train].values, y.loc[train].values)
        predicted, true = model.predict(x.loc[test].values), y.loc[test].values
        values = [accuracy_score(true, predicted), f1_score(true, predicted, average="macro")]
        if multi:
            p = model.predict_proba(x.loc[test].values)
            p = np.column_stack([c[:, 1] for c in p]) if isinstance(p, list) else p
            values.append(average_precision_score(true, p, average="macro"))
        print(name, learner, split, *(f"{v:.4f}" for v in values), sep=",")
