"""
A private search, and what it is worth
======================================

A grid search that is only counted pays for every fit, and its scores are not private at all.
:class:`~dpcd_sklearn.model_selection.PrivateSearchCV` stays within one ``epsilon``. Candidates that
differ in their penalty alone, as here, are one fit: what it releases is enough to choose among
them, so the search costs what a fit costs.
"""

# %%
# A problem that has something to tune
# ------------------------------------
# Three of forty features matter, so a penalty helps. The best strength depends on the noise, so no
# rule of thumb without ``epsilon`` finds it.

import warnings
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, train_test_split

from dpcd_sklearn import DPLassoCD, PrivacyAccountant, PrivacyLeakWarning
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.inspection import StrengthDisplay
from dpcd_sklearn.model_selection import PrivateSearchCV

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(20_000, 40))
y = X[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(len(X))
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = DPLassoCD(feature_bounds=(-1, 1), target_bounds=(-3, 3))
alphas = {"alpha": np.geomspace(1e-4, 0.3, 30)}

# %%
# The cost is known beforehand: one entry in the ledger, the price of one fit.

ledger = f"{mkdtemp()}/records.ledger"  # of real records: a file that stays
PrivacyAccountant(epsilon=1.0, delta=1e-6, path=ledger)  # once
accountant = PrivacyAccountant.open(ledger)  # in every program that fits
search = PrivateSearchCV(model, alphas, epsilon=1.0, delta=1e-7, accountant=accountant)
print(accountant.cost(search, *X_train.shape))

# %%
# The search
# ----------

search.fit(X_train, y_train)
print(f"alpha = {search.best_params_['alpha']:.3g}")
print(f"score on held-out records {search.score(X_test, y_test):.3f}")
print(f"{len(accountant.entries())} entry in the ledger: {accountant.spent()}")

# %%
# The fit released the coefficients of all strengths, and an estimate of the loss of each. At the
# chosen strength three coefficients stay and the others are near zero.

StrengthDisplay.from_estimator(search, max_labels=4)

# %%
# Beside a search that is counted
# -------------------------------
# At the same total: the private search, and scikit-learn's with eight candidates, five folds and a
# refit, each of whose 41 fits pays for itself. That one chooses by scores without noise, which no
# guarantee covers. (Neither needs to fear the default: ``alpha=1`` leaves no coefficient here.)

warnings.simplefilter("ignore", PrivacyLeakWarning)
warnings.simplefilter("ignore", FewRecordsWarning)  # of fits that share what one search has


def counted(epsilon):
    """Gaussian releases compose like sums of squares: 41 fits may have about 1/6.4 of epsilon."""
    part = clone(model).set_params(epsilon=epsilon / 41**0.5, delta=1e-7)
    grid = {"alpha": np.geomspace(1e-4, 0.3, 8)}
    return GridSearchCV(part, grid, cv=KFold(5)).fit(X_train, y_train)


def private(epsilon):
    return PrivateSearchCV(model, alphas, epsilon=epsilon, delta=1e-7).fit(X_train, y_train)


epsilons = [0.15, 0.3, 1.0]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
ways = {"PrivateSearchCV": (private, "#0072B2"), "GridSearchCV, counted": (counted, "#D55E00")}
for name, (way, colour) in ways.items():
    scores = [[way(epsilon).score(X_test, y_test) for _ in range(5)] for epsilon in epsilons]
    axes.plot(epsilons, np.median(scores, axis=1), "o-", color=colour, label=f"{name}, median of 5")
    axes.plot(epsilons, scores, ".", color=colour, alpha=0.4)
axes.set(xscale="log", xlabel="total ε", ylabel="R² on held-out records")
axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axes.minorticks_off()
axes.spines[["top", "right"]].set_visible(False)
axes.legend(loc="lower right", frameon=False)
plt.show()

# %%
# Each dot is a search. ``DPLassoCV(epsilon=1.0)`` does the same with strengths of its own choice.
