"""
Accuracy and privacy
====================

How much accuracy does a guarantee cost? :class:`~dpcd_sklearn.DPLogisticGCD` tells benign from
malignant tumours at several ε, beside scikit-learn's ``LogisticRegression``.
"""

# %%
# Public bounds
# -------------
# The ten features are means over the cell nuclei in an image. Their bounds come from what a feature
# *is*: with a radius of 5 to 30, geometry gives perimeter and area; the others are ratios. They are
# round numbers, not the minimum and the maximum of the columns, which would be somebody's record.
# :class:`~dpcd_sklearn.preprocessing.BoundsScaler` maps them to [-1, 1], clips what lies outside,
# and costs nothing.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from dpcd_sklearn import DPLogisticGCD
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.preprocessing import BoundsScaler

bounds = {
    "mean radius": (5, 30),
    "mean texture": (0, 50),
    "mean perimeter": (30, 200),
    "mean area": (80, 3000),
    "mean smoothness": (0, 0.25),
    "mean compactness": (0, 0.5),
    "mean concavity": (0, 0.5),
    "mean concave points": (0, 0.2),
    "mean symmetry": (0, 0.4),
    "mean fractal dimension": (0, 0.2),
}

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X[list(bounds)], y, random_state=0)

# %%
# Fits
# ----
# ``classes`` states the labels, so that they are not read from the data. Noise differs from fit to
# fit, so one fit says little: here are twenty at every ε. Repeating fits is a benchmark on data
# that is public anyway; on records that need protection all of these fits would add up.

epsilons = [0.2, 0.5, 1, 2, 5, 10]
warnings.simplefilter("ignore", FewRecordsWarning)  # of the least of them, as the curve shows
scores = []
for epsilon in epsilons:
    model = make_pipeline(
        BoundsScaler(bounds),
        DPLogisticGCD(epsilon=epsilon, delta=1e-6, classes=[0, 1], feature_bounds=(-1, 1)),
    )
    scores.append([model.fit(X_train, y_train).score(X_test, y_test) for _ in range(20)])

plain = make_pipeline(BoundsScaler(bounds), LogisticRegression()).fit(X_train, y_train)
plain_score = plain.score(X_test, y_test)
for epsilon, run in zip(epsilons, scores, strict=True):
    print(f"ε = {epsilon:4}: median accuracy {np.median(run):.3f}")
print(f"no privacy: {plain_score:.3f}")

# %%
# What a fit released, in a sentence:

print(model[-1].privacy_event_)
print(model[-1].privacy_spent_)

# %%
# The price of privacy
# --------------------
# At small ε the accuracy is not only lower, it also varies more: it is the noise that decides. With
# more records, the same noise protects each of them and weighs less.

low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75], axis=1)
majority = max(y_test.mean(), 1 - y_test.mean())
blue = "#0072B2"

fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.axhline(plain_score, color="#444444", linewidth=1.2, linestyle="--")
ax.axhline(majority, color="#444444", linewidth=1, linestyle=":")
ax.fill_between(epsilons, low, high, color=blue, alpha=0.18, linewidth=0)
ax.plot(epsilons, middle, "o-", color=blue, linewidth=2, markersize=5)
for epsilon, run in zip(epsilons, scores, strict=True):
    ax.plot([epsilon] * len(run), run, ".", color=blue, alpha=0.4, markersize=4)
for height, text, colour in (
    (plain_score, "LogisticRegression,\nno privacy", "#444444"),
    (middle[-1] - 0.05, "DPLogisticGCD:\nmedian, quartiles", blue),
    (majority, "always the\nlarger class", "#444444"),
):
    ax.annotate(text, (1.01, height), xycoords=("axes fraction", "data"), va="center", color=colour)
ax.set(xscale="log", xlabel="ε, at δ = 1e-6", ylabel="accuracy on held-out records")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
plt.show()
