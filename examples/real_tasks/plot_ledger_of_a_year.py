"""
A ledger over a year
====================

A model that is fitted anew each month, on records that overlap, releases twelve times. One ledger
counts them, and says early whether the budget lasts.
"""

# %%
# Twelve fits, one file
# ---------------------
# The records are simulated. Each month has some new records and most of the old ones; the ledger
# protects people who stay for all twelve months.

from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

from dpcd_sklearn import BudgetExceededError, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.preprocessing import BoundsScaler

rng = np.random.default_rng(0)
records = rng.uniform(0, 10, size=(8_000, 5))
target = np.clip(records @ [1, -1, 0.5, 0, 0] + rng.normal(0, 1, len(records)), -10, 15)
X = BoundsScaler((0, 10)).fit_transform(records)  # learns nothing

ledger = f"{mkdtemp()}/records.ledger"  # of real records: a file that stays
PrivacyAccountant(epsilon=2.0, delta=1e-7, path=ledger)  # once
accountant = PrivacyAccountant.open(ledger)  # in every program that fits
model = DPRidgeSkGD(
    epsilon=0.5,
    delta=1e-7,
    solver="skgd",
    feature_bounds=(-1, 1),
    target_bounds=(-10, 15),
    accountant=accountant,
)

spent, left = [], []
for month in range(12):
    now = slice(250 * month, 250 * month + 5_000)
    DPRidgeSkGD(**model.get_params()).fit(X[now], target[now])
    spent.append(accountant.spent().epsilon)
    left.append(accountant.remaining())
print(f"after twelve fits of 0.5: {accountant.spent()}, not {12 * 0.5:g}")

# %%
# Gaussian releases add up in μ², not in ε, so the spent ε grows like a square root. The ε that
# remains for one more fit falls, and the first fit that would exceed it is refused before it
# starts.

further = 0
try:
    while True:
        DPRidgeSkGD(**model.get_params()).fit(X[:5_000], target[:5_000])
        further += 1
except BudgetExceededError as error:
    print(f"{further} more fits, then:", str(error).partition(";")[0])

months = np.arange(1, 13)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(months, 0.5 * months, ":", color="#444444", label="sum of the ε of the fits")
ax.plot(months, spent, "o-", color="#0072B2", label="spent, as the ledger counts")
ax.plot(months, left, "o-", color="#009E73", label="largest ε of one more fit")
ax.axhline(2.0, color="#D55E00", linewidth=1.2, label="budget")
ax.set(xlabel="month", ylabel="ε at δ = 1e-7", ylim=(0, 4), xticks=months)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# The last lines of the ledger's report:

print("\n".join(str(accountant.report()).splitlines()[-6:]))
