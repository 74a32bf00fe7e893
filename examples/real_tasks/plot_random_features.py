"""
Curves, by features of each row
===============================

The models here are linear, the features need not be. Whatever maps each row by itself, and learnt
nothing from these records, may stand before them for free: the hidden layer of a network that was
trained elsewhere, or random waves, as here.
"""

# %%
# A problem that no line solves
# -----------------------------
# The simulated records are two moons. We take the range of each coordinate to be public.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from dpcd_sklearn import DPLogisticGCD

X, y = make_moons(12_000, noise=0.2, random_state=0)
X_train, X_test, y_train, y_test = X[:10_000], X[10_000:], y[:10_000], y[10_000:]
bounds = [(-2, 3), (-1.5, 2)]
straight = DPLogisticGCD(epsilon=1.0, classes=[0, 1], feature_bounds=bounds).fit(X_train, y_train)
print(f"a line: accuracy {straight.score(X_test, y_test):.3f}")

# %%
# Random waves
# ------------
# Cosines along directions that were drawn without a look at the records (Rahimi & Recht 2007). Each
# lies between -1 and 1, so bounds are known, and each row is mapped by itself, sums in one order.

rng = np.random.default_rng(0)
directions, phases = rng.normal(0, 2, (2, 60)), rng.uniform(0, 2 * np.pi, 60)


def waves(records):
    x, y = records[:, :1], records[:, 1:]
    return np.cos(x * directions[0] + y * directions[1] + phases)


models = {}
for epsilon in (0.1, 1.0):
    curved = DPLogisticGCD(C=10.0, epsilon=epsilon, classes=[0, 1], feature_bounds=(-1, 1))
    models[epsilon] = curved.fit(waves(X_train), y_train)
    print(f"waves, ε = {epsilon:g}: accuracy {curved.score(waves(X_test), y_test):.3f}")
plain = LogisticRegression(C=10.0, max_iter=1000).fit(waves(X_train), y_train)
print(f"waves, no privacy: accuracy {plain.score(waves(X_test), y_test):.3f}")

# %%
# Where they draw the border
# --------------------------
# At small ε noise decides the border where there are few records. Where there are many, the border
# is that of the model without privacy (dashed).

across, up = np.meshgrid(np.linspace(-2, 3, 150), np.linspace(-1.5, 2, 120))
grid = np.column_stack([across.ravel(), up.ravel()])
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
shades = ListedColormap(["#cfe3f2", "#fbe0cf"])
for ax, (epsilon, model) in zip(axes, models.items(), strict=True):
    shown = model.predict(waves(grid)).reshape(across.shape)
    ax.contourf(across, up, shown, levels=[-0.5, 0.5, 1.5], cmap=shades)
    border = plain.predict_proba(waves(grid))[:, 1].reshape(across.shape)
    ax.contour(across, up, border, levels=[0.5], colors="#444444", linestyles="--")
    for label, colour in enumerate(["#0072B2", "#D55E00"]):
        some = X_test[y_test == label][:150]
        ax.plot(*some.T, ".", color=colour, markersize=3)
    ax.set(title=f"ε = {epsilon:g}", xticks=[], yticks=[])
plt.show()
