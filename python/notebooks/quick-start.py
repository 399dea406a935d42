# ---
# jupyter:
#   kernelspec: {name: python3, display_name: Python 3, language: python}
# ---

# %% [markdown]
# # Quick start
#
# Train a classifier on groups of vectors, for each of which you know only a few possible labels. Then look at what
# the model attends to, and save it for a service.
#
# In a clone of the repository, this installs miplc, with Go 1.26 and a C compiler:
#
#     pip install "./python[all]"

# %%
import matplotlib.pyplot as plt
import numpy as np

import miplc

# %% [markdown]
# ## Bags
#
# A **bag** is an array of shape `(instances, features)`, for example one vector for each patch of a photo. Bags may
# have different numbers of instances. Each bag has one true label, but several people looked at the photos and
# disagreed: you only have **candidate sets**.
#
# `synth` generates such data. Use your own list of arrays in the same way, or read it from a [data
# frame](own-data.py).

# %%
data = miplc.synth("prototypes", bags=300, classes=["cat", "dog", "horse"], features=8, noise=0.7, r=1, seed=3)

bags = list(data)
candidates = [{str(name) for name in data.classes[row]} for row in data.candidates]
truth = data.classes[data.labels]  # only to measure accuracy

print("first bag:", bags[0].shape)
print("its candidates:", candidates[0])

# %% [markdown]
# ## Train
#
# `MIPLClassifier` follows the conventions of scikit-learn. It learns from the candidate sets only. The first argument
# names a method; `miplc.specs()` lists all, and any setting of a method is a keyword.

# %%
order = np.random.default_rng(0).permutation(len(bags))
train, test = order[:200], order[200:]

classifier = miplc.MIPLClassifier("demipl-mlp", train__epochs=40, random_state=1)
classifier.fit([bags[i] for i in train], [candidates[i] for i in train])

accuracy = classifier.score([bags[i] for i in test], truth[test])
print(f"accuracy on {len(test)} other bags: {accuracy:.3f}")

# %% [markdown]
# `history_` is a data frame with one row for each epoch.

# %%
axes = classifier.history_.plot(x="epoch", y=["loss", "train_inside_candidates"], subplots=True, figsize=(6, 4))
axes[0].set_ylabel("loss")
axes[1].set_ylabel("share of bags")
plt.show()

# %% [markdown]
# ## Predict and explain
#
# A prediction consists of the probability of each class, and of one **attention score** for each instance. In this
# bag, we know which instances show the animal.

# %%
i = test[0]
probabilities = classifier.predict_proba([bags[i]])[0]
attention = classifier.attention([bags[i]])[0]
shown = data[[i]].instance_labels == data.labels[i]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), width_ratios=[1, 2])
left.barh(classifier.classes_, probabilities)
left.set(title=f"true label: {truth[i]}", xlabel="probability", xlim=(0, 1))
right.bar(range(1, len(attention) + 1), attention, color=np.where(shown, "tab:orange", "tab:gray"))
right.set(title=f"orange: instances that show a {truth[i]}", xlabel="instance", ylabel="attention")
figure.tight_layout()
plt.show()

# %% [markdown]
# ## Save the model
#
# A fitted classifier can be pickled. Its model is also one ONNX file, which Go services and any ONNX runtime run. See
# [From the notebook to a Go service](go-service.py).

# %%
path = classifier.model_.save("quick-start.onnx")
print(f"{path}: {path.stat().st_size / 1024:.0f} KiB, classes {miplc.load(path).classes}")
