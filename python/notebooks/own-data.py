# ---
# jupyter:
#   kernelspec: {name: python3, display_name: Python 3, language: python}
# ---

# %% [markdown]
# # Your own data, from pandas
#
# Read bags from a data frame, keep the recordings of one site together when you split, train, and return the
# predictions as a data frame.

# %%
import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit

import miplc

# %% [markdown]
# ## The frame
#
# Each row is one instance: here a second of a sound recording, with its features. `recording` names its bag, and the
# rows of a bag are adjacent. Two people listened to each recording. Where they disagree, both answers are candidates.
# An expert checked some recordings; `species` is empty for the others.
#
# This cell makes up such a table. Replace it by `pd.read_csv` or `pd.read_parquet`.

# %%
rng = np.random.default_rng(7)
species = ["robin", "thrush", "wren"]
songs = pd.DataFrame(rng.normal(scale=2, size=(3, 6)), index=species)
rows = []
for number in range(240):
    bird = species[number % 3]
    heard = {bird} | set(rng.choice(species, rng.integers(0, 2)))
    checked = bird if rng.random() < 0.5 else None
    for second in range(rng.integers(4, 9)):
        sings = second == 0 or rng.random() < 0.3
        bands = rng.normal(size=6) + sings * songs.loc[bird].to_numpy()
        rows.append([f"recording-{number + 1:03}", f"site {number % 12}", checked, " ".join(sorted(heard)), *bands])
table = pd.DataFrame(rows, columns=["recording", "site", "species", "heard", *(f"band{i}" for i in range(6))])
table.head(8)

# %% [markdown]
# ## Bags
#
# Name the columns; all others are features. Polars frames, and the files `.csv`, `.parquet`, `.npz` and `.h5` with
# `Bags.read`, work in the same way.

# %%
bags = miplc.Bags.from_frame(table, bag="recording", label="species", candidates="heard", group="site")
bags

# %% [markdown]
# Mistakes are exceptions that name the place.

# %%
broken = table.copy()
broken.loc[9, "band3"] = np.nan
try:
    miplc.Bags.from_frame(broken, bag="recording", label="species", candidates="heard", group="site")
except miplc.DataError as error:
    print("bag", error.bag, "is wrong:", error)

# %% [markdown]
# ## Split and train
#
# All recordings of a site are in one part, so the test measures how the model works at new sites. A bag without a
# known species counts in no accuracy.

# %%
train, test = next(GroupShuffleSplit(test_size=0.3, random_state=0).split(np.arange(len(bags)), groups=bags.groups))
classifier = miplc.MIPLClassifier("demipl-mlp", train__epochs=40, random_state=0).fit(bags[train])
print(f"accuracy at new sites: {classifier.score(bags[test]):.3f}")

# %% [markdown]
# ## Predictions as a frame
#
# `loudest` is the second of the recording with the highest attention: listen there first.

# %%
held_out = bags[test]
predictions = pd.DataFrame(classifier.predict_proba(held_out), columns=classifier.classes_, index=held_out.names)
predictions.insert(0, "predicted", classifier.predict(held_out))
predictions["loudest"] = [int(scores.argmax()) for scores in classifier.attention(held_out)]
predictions.round(3).head(8)

# %% [markdown]
# Recordings that the model is least sure about are worth an expert's time:

# %%
predictions[classifier.classes_].max(axis=1).nsmallest(5).round(3).rename("highest probability").to_frame()

# %% [markdown]
# ## Train on everything
#
# The final model learns from all bags. `write` saves the dataset for the command line, and for colleagues.

# %%
final = miplc.MIPLClassifier("demipl-mlp", train__epochs=40, random_state=0).fit(bags)
final.model_.save("birds.onnx")
bags.write("birds.npz")
