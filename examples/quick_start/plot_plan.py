"""
Will it work? Records, epsilon and error
========================================

How many records are enough is a question about public numbers: n, the number of features and ε.
:func:`~dpcd_sklearn.inspection.plan` answers it on made-up records; nothing is read or charged.
"""

# %%
# One plan
# --------
# What a fit would release, and its score at half, once and twice as many records.

import matplotlib.pyplot as plt
import numpy as np

from dpcd_sklearn import DPRidgeSkGD
from dpcd_sklearn.inspection import plan

model = DPRidgeSkGD(epsilon=1.0, delta=1e-6, feature_bounds=(-1, 1))
found = plan(model, n_samples=2_000, n_features=20, n_repeats=5, random_state=0)
print(found)

# %%
# A chart
# -------
# The same for three values of ε. The loss of R² falls like one over the square of the number of
# records, and half the ε needs twice as many records.

colours = {0.3: "#D55E00", 1.0: "#0072B2", 3.0: "#009E73"}
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for epsilon, colour in colours.items():
    private = DPRidgeSkGD(epsilon=epsilon, delta=1e-6, feature_bounds=(-1, 1))
    found = plan(private, n_samples=4_000, n_features=20, n_repeats=5, random_state=0)
    middle = np.median(found.excess_errors, axis=1)
    ax.plot(found.sizes, np.maximum(middle, 1e-3), "o-", color=colour, label=f"ε = {epsilon:g}")
    print(f"ε = {epsilon:g}: to lose 0.05, {found.n_samples_for(0.05):,.0f} records")
ax.axhline(0.05, color="#444444", linewidth=1, linestyle=":")
ax.set(xscale="log", yscale="log", xlabel="records", ylabel="loss of R² by privacy")
ax.set_xticks([1000, 2000, 4000, 8000], ["1,000", "2,000", "4,000", "8,000"])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Simulated records are easy: independent features that fill their bounds. Pass harder ones as
# ``make_data=``, such as public records of the same kind.
