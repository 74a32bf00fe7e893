"""
DP-GCD: few features of many
============================

Mangold, Bellet, Salmon and Tommasi (2023): where few coordinates matter, noise is better spent on
choosing them than on moving all.
"""

# %%
# The paper's first problem
# -------------------------
# It is called log1: two classes, independent features, and log-normal weights, of which few stand
# out.

import matplotlib.pyplot as plt
import numpy as np

from dpcd_sklearn import DPLinearClassifier
from dpcd_sklearn.solvers import CD, GCD

rng = np.random.default_rng(0)
X = rng.normal(size=(4_000, 200))
y = np.where(X @ np.exp(rng.normal(size=200)) + rng.normal(size=4_000) > 0, 1, -1)
problem = {"penalty": "l2", "alpha": 1e-3, "feature_scale": 1.0, "classes": [-1, 1]}


def objective(coefs, intercepts):
    """Of each iterate of a path, one a row."""
    margins = y[:, np.newaxis] * (X @ coefs.T + intercepts)
    return np.logaddexp(0, -margins).mean(axis=0) + 5e-4 * (coefs**2).sum(axis=1)


# %%
# Paths are free, since all iterates are paid for. The objective is computed from the records
# without noise, so this plot can be drawn for made-up records only.

paths = {}
for name, solver in {"gcd: the best coordinate": GCD, "cd: a random one": CD}.items():
    found = []
    for _ in range(5):
        model = DPLinearClassifier(
            **problem, solver=solver(averaging="last"), coef_path=True, epsilon=1.0, delta=1e-7
        ).fit(X, y)
        coefs = np.reshape(model.coef_path_, (-1, X.shape[1]))
        found.append(objective(coefs, np.ravel(model.intercept_path_)))
    paths[name] = np.median(found, axis=0)
    n_used = np.count_nonzero(np.abs(model.coef_) > 1e-12)
    print(f"{name}: {model.n_iter_} updates, {n_used} coefficients are not zero")
noiseless = DPLinearClassifier(**problem, solver="cd", epsilon=float("inf"), tol=1e-6).fit(X, y)
best = objective(noiseless.coef_, noiseless.intercept_)[0]

# %%
# Medians of five fits at ε = 1.

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for (name, path), colour in zip(paths.items(), ["#009E73", "#D55E00"], strict=True):
    shares = np.linspace(0, 1, len(path))
    ax.plot(shares, path - best, color=colour, linewidth=2, label=name)
ax.set(xlabel="share of the fit's updates", ylabel="objective above the optimum", yscale="log")
ax.set_yticks([0.3, 0.5, 1], ["0.3", "0.5", "1"])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
