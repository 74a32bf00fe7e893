"""
What bounds are worth
=====================

Noise hides the largest influence that a record could have, and bounds limit that influence. They
are public facts, never the minimum and maximum of the records. How tight must they be?
"""

# %%
# Bounds of any width
# -------------------
# The records are adults under treatment: ten measurements, and a score of disease progression. The
# bounds are ranges that a clinician would call plausible, then wider ones with the same middle.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPRidgeSkGD
from dpcd_sklearn.exceptions import FewRecordsWarning

warnings.simplefilter("ignore", FewRecordsWarning)  # of the widest bounds

plausible = [(18, 90), (1, 2), (15, 50), (50, 150), (80, 350), (20, 250), (20, 100), (1, 10)]
plausible += [(3, 7), (50, 200)]  # age, sex, body mass, pressure and six values of the blood
lo, hi = np.transpose(plausible)
X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)


def scores(widening, epsilon, **more):
    middle, half = (lo + hi) / 2, widening * (hi - lo) / 2
    bounds = (middle - half, middle + half)
    models = [
        DPRidgeSkGD(epsilon=epsilon, feature_bounds=bounds, target_bounds=(0, 400), **more)
        for _ in range(25)
    ]
    return [model.fit(X_train, y_train).score(X_test, y_test) for model in models]


# %%
# At ε = 10 and 3 bounds even eight times too wide cost hardly more than the noise shows; at ε = 1
# the median still varies more by noise than by width, and single fits are worse. When in doubt,
# state generous bounds, but not by orders of magnitude.

widths = [1, 1.5, 2, 3, 5, 8]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for epsilon, colour in {1: "#D55E00", 3: "#0072B2", 10: "#009E73"}.items():
    found = [scores(width, epsilon) for width in widths]
    low, middle, high = np.quantile(found, [0.25, 0.5, 0.75], axis=1)
    ax.fill_between(widths, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(widths, middle, "o-", color=colour, label=f"ε = {epsilon}: median, quartiles of 25")
    print(f"ε = {epsilon}: {np.round(middle, 2)}")
plain = Ridge().fit((X_train - lo) / (hi - lo), y_train)
ax.axhline(
    plain.score((X_test - lo) / (hi - lo), y_test), color="#444444", ls="--", label="no privacy"
)
ax.set(xscale="log", xlabel="bounds, times too wide", ylabel="R² on held-out records")
ax.set_xticks(widths, [f"{width:g}" for width in widths])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
