"""
DP-SkGD: how many coordinates at once
=====================================

Maranjyan, Sadiev and Richtárik (2024) move a random block of coordinates in each update. One, a few
or all: which is best, at the same (ε, δ)?
"""

# %%
# A ridge regression of thirty-two features, made up
# --------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np

from dpcd_sklearn import DPRidgeSkGD
from dpcd_sklearn.samplings import NiceSampling

rng = np.random.default_rng(0)
scale = np.exp(rng.normal(0, 0.5, 32))
X = scale * rng.normal(size=(10_000, 32))
y = X[:, :10] @ (rng.normal(size=10) / scale[:10]) + rng.normal(0, 0.1, 10_000)

public = {"alpha": 1.0, "feature_scale": scale, "target_bounds": (-10, 10)}
best = DPRidgeSkGD(alpha=1.0, epsilon=float("inf")).fit(X, y)
least = ((y - best.predict(X)) ** 2).mean()

sizes = [1, 4, 11, 33]  # of 32 features and the intercept
gaps = []
for size in sizes:
    found = []
    for _ in range(5):
        model = DPRidgeSkGD(
            **public,
            epsilon=1.0,
            delta=1e-8,
            solver="skgd",
            sampling="full" if size == 33 else NiceSampling(33, size),
        ).fit(X, y)
        errors = y - X @ model.coef_ - model.intercept_
        found.append(((errors**2).mean() - least) / (y.var() - least))
    gaps.append(found)
    print(f"{size:2} at once: {model.n_iter_:6} updates, excess error {np.median(found):.4f}")

# %%
# Updating all coordinates is best, since an update of one coordinate costs as much privacy as an
# update of all. So "full" is the default.

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for size, found in zip(sizes, gaps, strict=True):
    ax.plot([size] * len(found), found, ".", color="#0072B2", alpha=0.5)
ax.plot(sizes, np.median(gaps, axis=1), "o-", color="#0072B2")
ax.set(xscale="log", yscale="log", xlabel="coordinates in a block", ylabel="excess error")
ax.set_xticks(sizes, [*map(str, sizes[:-1]), "all 33"])
ax.set_yticks([5e-4, 1e-3, 2e-3, 4e-3], ["0.0005", "0.001", "0.002", "0.004"])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
plt.show()
