"""
DP-CD: columns of different scales
==================================

Mangold, Bellet, Salmon and Tommasi (2022): a coordinate has a step of its own, as long as its own
smoothness allows, where a gradient step must suit the worst of all.
"""

# %%
# Scales that spread
# ------------------
# Made-up regressions of twenty features whose scales are log-normal, from all alike (0) to very
# different. Scales and bounds of the target are what a user would state.

import matplotlib.pyplot as plt
import numpy as np

from dpcd_sklearn import DPLinearRegressor

spreads = [0, 1, 2]
ways = {
    "cd, a step for each coordinate": ("cd", False),
    "cd, one step for all": ("cd", True),
    "auto, the default": ("auto", False),
}
gaps = {name: [] for name in ways}
for spread in spreads:
    rng = np.random.default_rng(0)
    scale = np.exp(spread / 2 * rng.normal(size=20))
    X = scale * rng.normal(size=(10_000, 20))
    y = X[:, :10] @ (rng.normal(size=10) / scale[:10]) + rng.normal(0, 0.1, 10_000)
    public = {"penalty": None, "target_bounds": (-10, 10), "epsilon": 1.0, "delta": 1e-8}
    best = DPLinearRegressor(penalty=None, epsilon=float("inf")).fit(X, y)
    least = ((y - best.predict(X)) ** 2).mean()
    for name, (solver, alike) in ways.items():
        scales = np.full_like(scale, scale.max()) if alike else scale
        found = []
        for _ in range(5):
            model = DPLinearRegressor(**public, solver=solver, feature_scale=scales).fit(X, y)
            errors = y - X @ model.coef_ - model.intercept_
            found.append(((errors**2).mean() - least) / (y.var() - least))
        gaps[name].append(np.quantile(found, [0.25, 0.5, 0.75]))

# %%
# What is left to the optimum
# ---------------------------
# Medians and quartiles of five fits at ε = 1, divided by the excess loss of the start. Where scales
# differ, a common step is too short for most coordinates. "auto" chooses Newton steps here, which
# move all coordinates with one released matrix.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, found), colour in zip(gaps.items(), ["#D55E00", "#0072B2", "#009E73"], strict=True):
    low, middle, high = np.maximum(np.transpose(found), 1e-5)
    print(f"{name:32} {np.round(middle, 4)}")
    ax.fill_between(spreads, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(spreads, middle, "o-", color=colour, label=name)
ax.set(yscale="log", xticks=spreads, xlabel="spread of the logarithm of smoothness")
ax.set_ylabel("excess error, share of the start's")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
