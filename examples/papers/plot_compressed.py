"""
DP-CompGD: a gradient through few directions
============================================

Huang, Lei and Kabán (2023): a record's gradient is looked at along a few random directions only,
and noise is added to these. Few directions are little noise, and say little of the gradient.
"""

# %%
# A regression within an l1 ball, made up
# ---------------------------------------
# Fifty features of which five matter; coefficients lie in the ball that the solution touches.

import matplotlib.pyplot as plt
import numpy as np

from dpcd_sklearn import DPLinearRegressor
from dpcd_sklearn.penalties import L1Ball
from dpcd_sklearn.solvers import CompGD

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(4_000, 50))
coef = np.zeros(50)
coef[:5] = [1, -1, 0.5, 0.5, -0.5]
y = X @ coef + 0.3 * rng.standard_normal(len(X))
problem = {"constraint": L1Ball(3.5), "fit_intercept": False}
public = {"feature_bounds": (-1, 1), "target_bounds": (-4, 4), "epsilon": 1.0, "delta": 1e-8}

sizes = [1, 4, 16, 50]
gaps = []
for size in sizes:
    found = []
    for _ in range(3):
        model = DPLinearRegressor(
            penalty=None, solver=CompGD(n_directions=size), **problem, **public
        ).fit(X, y)
        found.append(((X @ (model.coef_ - coef)) ** 2).mean() / ((X @ coef) ** 2).mean())
    gaps.append(found)
    print(f"{size:2} directions: {model.n_iter_} updates, error {np.median(found):.4f}")

# %%
# The errors of three fits for each number of directions, divided by the size of the signal. Fifty
# directions cost no more than a few: the noise in each is the same, and fewer directions need more
# updates, which share the budget.

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for size, found in zip(sizes, gaps, strict=True):
    ax.plot([size] * len(found), found, ".", color="#D55E00", alpha=0.5)
ax.plot(sizes, np.median(gaps, axis=1), "o-", color="#D55E00")
ax.set(xscale="log", yscale="log", xlabel="random directions", ylabel="error, share of the signal")
ax.set_xticks(sizes, [*map(str, sizes[:-1]), "all 50"])
ax.set_yticks([0.03, 0.1, 0.3, 1], ["0.03", "0.1", "0.3", "1"])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
plt.show()
