# ---
# jupyter:
#   kernelspec: {name: python3, display_name: Python 3, language: python}
# ---

# %% [markdown]
# # A slide with a heatmap
#
# A tissue slide is a bag: its instances are the features of its patches. Train on slides whose diagnosis two
# pathologists disagree about, and see which patches the model looks at.

# %%
import matplotlib.pyplot as plt
import numpy as np

import miplc

# %% [markdown]
# ## The slides
#
# With real slides, CLAM or TRIDENT write the features and the `coords` of the patches to one HDF5 file per slide. A
# table names the files, with the diagnosis of each slide ([Large data](../../docs/large-data.md)):
#
#     slides = miplc.Bags.read("slides.csv")
#
# This cell makes up 90 small slides: tissue of a random shape on a grid of patches of 256 pixels and, in the slides
# with a tumour, one round region of it.

# %%
PATCH, GRID, DIMENSIONS = 256, 24, 32
rng = np.random.default_rng(3)
types = ["ductal", "lobular", "normal"]
prototypes = {"ductal": rng.normal(size=DIMENSIONS), "lobular": rng.normal(size=DIMENSIONS)}
column, row = np.meshgrid(np.arange(GRID), np.arange(GRID))


def ellipse(x, y, a, b):
    return ((column - x) / a) ** 2 + ((row - y) / b) ** 2 < 1


def slide(kind):
    """Return the features, the coordinates, and which patches show the tumour."""
    x, y = rng.uniform(9, 14, 2)
    tissue = ellipse(x, y, *rng.uniform(6, 10, 2)) | ellipse(*(np.array([x, y]) + rng.normal(scale=4, size=2)), 5, 5)
    tumour = np.zeros_like(tissue)
    if kind != "normal":
        center = rng.permutation(np.argwhere(tissue))[0]
        tumour = tissue & ellipse(center[1], center[0], *rng.uniform(2.5, 4, 2))
    features = rng.normal(size=(GRID, GRID, DIMENSIONS))
    if kind != "normal":
        features[tumour] += prototypes[kind]
    return features[tissue], np.column_stack([column[tissue], row[tissue]]) * PATCH, tumour[tissue]


truth = [types[number % 3] for number in range(90)]
features, coords, tumours = zip(*(slide(kind) for kind in truth))
opinions = [{kind} | set(rng.choice(types, rng.integers(0, 2))) for kind in truth]
slides = miplc.Bags(features, labels=truth, candidates=opinions, coords=coords)
slides

# %% [markdown]
# ## Train
#
# The last 30 slides are for testing. The attention scores of `gated-abmil` compare the patches of a slide with each
# other, so they show where the tumour is.

# %%
train, test = slides[:60], slides[60:]
classifier = miplc.MIPLClassifier("gated-abmil", train__epochs=40, random_state=0).fit(train)
print(f"accuracy on {len(test)} slides: {classifier.score(test):.3f}")

# %% [markdown]
# ## Heatmap
#
# The attention scores of a slide add up to 1. A score of 1 / patches is the mean. The outline shows the tumour, which
# the model was never told.

# %%
def image(number, values):
    """Arrange one value for each patch of a slide as an image."""
    grid = np.full((GRID, GRID), np.nan)
    x, y = (np.asarray(coords[number]) // PATCH).T
    grid[y, x] = values
    return grid


shown = [next(i for i in range(60, 90) if truth[i] == kind) for kind in types]
scores = classifier.attention([features[i] for i in shown])
predicted = classifier.predict([features[i] for i in shown])
extent = (0, GRID * PATCH, GRID * PATCH, 0)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharey=True, layout="constrained")
for axis, i, attention, label in zip(axes, shown, scores, predicted):
    drawn = axis.imshow(image(i, attention * len(attention)), cmap="magma", extent=extent, vmin=0, vmax=10)
    if tumours[i].any():
        outline = np.nan_to_num(image(i, tumours[i]))
        centers = (np.arange(GRID) + 0.5) * PATCH
        axis.contour(centers, centers, outline, levels=[0.5], colors="deepskyblue", linewidths=2)
    axis.set(title=f"true: {truth[i]}, predicted: {label}", xlabel="x in pixels")
axes[0].set_ylabel("y in pixels")
figure.colorbar(drawn, ax=axes, shrink=0.8, label="attention, in multiples of the mean")
plt.show()

# %% [markdown]
# ## Patches to look at
#
# The five patches with the highest attention of the first slide, by their upper left corners:

# %%
first = shown[0]
for patch in np.argsort(scores[0])[::-1][:5]:
    x, y = coords[first][patch]
    print(f"x {x:5} y {y:5}  attention {scores[0][patch]:.3f}  {'tumour' if tumours[first][patch] else 'no tumour'}")
