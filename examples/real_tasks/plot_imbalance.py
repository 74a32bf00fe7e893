"""
One in twenty: a rare class
===========================

``class_weight="balanced"`` counts the labels of the records, for free. Here the weights are stated,
and a threshold that is known beforehand does the rest.
"""

# %%
# Rare, and made up
# -----------------
# 20,000 records, one in twenty of the class that matters.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPLogisticGCD

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(20_000, 12))
odds = -4.3 + 2.5 * X[:, 0] + 2 * X[:, 1] - 1.5 * X[:, 2]
y = (rng.random(len(X)) < 1 / (1 + np.exp(-odds))).astype(int)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
print(f"{y.mean():.1%} of them")

# %%
# Weights that are stated
# -----------------------
# A record's gradient is clipped after it is weighted, so give the common class a smaller weight
# instead of a larger one to the rare class: weights are at most 1.

ways = {
    "as they are": None,
    "common ones count 1/10": {0: 0.1},
}
curves = {}
for name, weights in ways.items():
    model = DPLogisticGCD(
        epsilon=1.0, delta=1e-7, classes=[0, 1], class_weight=weights, feature_bounds=(-1, 1)
    ).fit(X_train, y_train)
    chance = model.predict_proba(X_test)[:, 1]
    found = chance > 0.5
    recall = found[y_test == 1].mean()
    print(f"{name}: finds {recall:.0%}, at AUC {roc_auc_score(y_test, chance):.3f}")
    curves[name] = roc_curve(y_test, chance), recall, found[y_test == 0].mean()
plain = LogisticRegression().fit(X_train, y_train).predict_proba(X_test)[:, 1]

# %%
# The weights move the operating point along the curve, and hardly change the curve. At this size
# noise matters little. The dots mark a threshold of one half.

fig, ax = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
ax.plot(*roc_curve(y_test, plain)[:2], "--", color="#444444", label="no privacy")
for (name, (curve, recall, alarms)), colour in zip(
    curves.items(), ["#0072B2", "#D55E00"], strict=True
):
    ax.plot(*curve[:2], color=colour, label=f"ε = 1, {name}")
    ax.plot(alarms, recall, "o", color=colour, markersize=8)
ax.set(xlabel="false positive rate", ylabel="true positive rate (rare class)")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()
