"""
Solvers on one problem
======================

:class:`~dpcd_sklearn.DPLinearRegressor` fits one model by many solvers. Here four of them minimise
the Lasso's objective at ε = 1, on a synthetic problem: how far is each from the optimum after how
many passes over the records, and how far is what it hands back?
"""

# %%
# A synthetic problem
# -------------------
# Ten of fifty features matter, and their scales differ. The scales and the bounds of the target are
# what a user would state as public facts: here they are known, because the data are made up.

import matplotlib.pyplot as plt
import numpy as np

from dpcd_sklearn import DPLinearRegressor

rng = np.random.default_rng(0)
scale = np.exp(rng.normal(0, 0.5, 50))
X = scale * rng.normal(size=(10_000, 50))
y = X[:, :10] @ (rng.normal(size=10) / scale[:10]) + rng.normal(0, 0.1, 10_000)
lasso = {"penalty": "l1", "alpha": 0.1, "feature_scale": scale, "target_bounds": (-10, 10)}


def objective(coef, intercept):
    """Of each iterate of a path, one a row."""
    residuals = X @ np.transpose(coef) + intercept - y[:, np.newaxis]
    return (residuals**2).mean(axis=0) / 2 + lasso["alpha"] * np.abs(coef).sum(axis=1)


# %%
# The optimum comes from a fit without noise, which protects nobody; gaps are shares of that of the
# start, where all coefficients are zero. The objective is computed from the records without noise,
# too: on records that need protection nobody could draw this plot.

optimal = DPLinearRegressor(**lasso, solver="cd", epsilon=float("inf"), tol=1e-9).fit(X, y)
best = objective(optimal.coef_[np.newaxis], optimal.intercept_)[0]
start = (y**2).mean() / 2 - best
print(f"{np.count_nonzero(optimal.coef_)} coefficients of the optimum are not zero")

# %%
# Fits
# ----
# Everything but the solver is left to its public defaults. ``coef_path`` keeps one iterate of every
# pass; all iterates are released anyway, so it costs no privacy. Noise differs from fit to fit:
# the lines are medians of five.

solvers = {
    "cd": "cd: one random coordinate",
    "gcd": "gcd: the best coordinate",
    "skgd": "skgd: all coordinates",
    "sgd": "sgd: mini-batches",
}
paths, released = {}, {}
for solver in solvers:
    gaps, ends = [], []
    for _ in range(5):
        model = DPLinearRegressor(**lasso, solver=solver, epsilon=1.0, delta=1e-6, coef_path=True)
        model.fit(X, y)
        gaps.append((objective(model.coef_path_, model.intercept_path_) - best) / start)
        ends.append((objective(model.coef_[np.newaxis], model.intercept_)[0] - best) / start)
    paths[solver], released[solver] = np.median(gaps, axis=0), np.median(ends)
    print(f"{solver:4} gap {released[solver]:.1e}: {model.privacy_event_}")

# %%
# Iterates and averages
# ---------------------
# Iterates wander about the optimum at a distance that the noise decides; the mean of the last half
# of them (dots), which all but "gcd" hand back by default, is much nearer. "gcd" moves the few
# coordinates that matter, and needs no mean, which would not be sparse. "cd" spends as much on the
# forty that do not matter, and moves each by the whole of a noisy step; "skgd" takes shorter ones,
# over which the noise averages out.

colours = {"cd": "#D55E00", "gcd": "#009E73", "skgd": "#0072B2", "sgd": "#CC79A7"}

fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for solver, gap in paths.items():
    colour = colours[solver]
    passes = np.arange(len(gap))
    ax.plot(passes, gap, color=colour, linewidth=1.5)
    ax.plot(passes[-1], released[solver], "o", color=colour, markersize=7)
ax.set(
    xscale="log",
    yscale="log",
    xlim=(1, 400),
    xlabel="passes",
    ylabel="gap of the objective,\nas a share of the start's",
)
for solver, label in solvers.items():
    ax.plot([], [], "-o", color=colours[solver], label=label)
ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.84))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
