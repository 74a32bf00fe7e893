"""
A private classifier on frozen features
=======================================

What a network learnt from public images serves private ones: its last hidden layer maps each image
by itself, nothing in it moves any more, and only the linear classifier on top is fitted with
privacy. The same budget goes much farther than on pixels.
"""

# %%
# Public images, private images
# -----------------------------
# Clothes of Fashion-MNIST: 10,000 are taken to be public, 12,000 others private. They are no part
# of the package: where the folder ``DPCD_DATA`` has them they are read, otherwise scikit-learn's
# digits stand in, of which 600 are too few to learn features from: there pixels do better.

import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from dpcd_sklearn import DPLogisticGCD


def images():
    path = Path(os.environ.get("DPCD_DATA", "../../../shared/data")) / "fashion_mnist.npz"
    if path.is_file():
        with np.load(path) as arrays:
            X, y = arrays["X_train"][:27_000], arrays["y_train"][:27_000]
        return X.reshape(len(X), -1) / np.float32(255), y, (10_000, 22_000), "Fashion-MNIST"
    X, y = load_digits(return_X_y=True)
    return X / 16, y, (600, 1_400), f"digits, since {path.name} is not here"


X, y, (n_public, end), source = images()
public, private, test = slice(n_public), slice(n_public, end), slice(end, None)
print(f"{end - n_public:,} private images: {source}")

# %%
# The network, from public images alone
# -------------------------------------
# One hidden layer and a few passes make a poor classifier, but good features. We scale each row of
# activations to norm 1, separately for each image, so the norm is a public bound.

network = MLPClassifier((64,), max_iter=12, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    network.fit(X[public], y[public])
print(f"the network itself: accuracy {network.score(X[test], y[test]):.3f}")


def features(images):
    hidden = np.maximum(images @ network.coefs_[0] + network.intercepts_[0], 0)
    return hidden / np.maximum(np.linalg.norm(hidden, axis=1, keepdims=True), 1e-9)


# %%
# Heads
# -----
# All that is stated of the features is ``row_norm_bound=1``, and of pixels that they lie in [0, 1].

epsilons = [0.5, 1.0, 3.0]
kinds = {
    "features": (features(X), {"row_norm_bound": 1.0}),
    "pixels": (X, {"feature_bounds": (0, 1)}),
}
fig, ax = plt.subplots(layout="constrained")
for (name, (records, bounds)), colour in zip(kinds.items(), ["#0072B2", "#D55E00"], strict=True):
    scores = []
    for epsilon in epsilons:
        head = DPLogisticGCD(C=1000.0, epsilon=epsilon, classes=range(10), **bounds)
        head.fit(records[private], y[private])
        scores.append(head.score(records[test], y[test]))
        print(f"{name}, ε = {epsilon:g}: accuracy {scores[-1]:.3f}")
    ax.plot(epsilons, scores, "o-", color=colour, label=f"{name}, private")
plain = LogisticRegression(C=1000.0, max_iter=200)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    plain.fit(features(X[private]), y[private])
most = plain.score(features(X[test]), y[test])
ax.axhline(most, color="#0072B2", linestyle="--", label="features, no privacy")
ax.set(xscale="log", xlabel="epsilon", ylabel="accuracy on held-out images")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend(loc="lower right")
plt.show()

# %%
# What is promised, and what is not
# ---------------------------------
# The guarantee is about the private images. The public ones are in the network for all to see, so
# they must be public indeed. And the promise holds if nothing about the network was chosen by
# looking at the private images: how wide it is, how long it is trained, and whether it is used.
