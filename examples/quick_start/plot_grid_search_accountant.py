"""
A grid search and its accountant
================================

A grid search fits the same records many times, and every fit is a release. One
:class:`~dpcd_sklearn.PrivacyAccountant` protects one data set: it holds the budget, writes down
every fit before a record is used, and refuses what would exceed the budget.
"""

# %%
# A budget, and a model that is charged to it
# -------------------------------------------
# The accountant is a handle to a ledger. ``clone`` hands the handle on, so that all fits of a
# search are charged to one ledger, whatever ``n_jobs`` is.

import warnings
from tempfile import mkdtemp

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline

from dpcd_sklearn import (
    BudgetExceededError,
    DPLogisticGCD,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from dpcd_sklearn.inspection import BudgetDisplay
from dpcd_sklearn.preprocessing import BoundsScaler

# Scores of a search have no noise, and every fit says so; these digits are public anyway.
warnings.simplefilter("ignore", PrivacyLeakWarning)

X, digit = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, digit >= 5, random_state=0)

ledger = f"{mkdtemp()}/records.ledger"  # of real records: a file that stays
accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6, path=ledger)
model = make_pipeline(
    BoundsScaler((0, 16)),  # public: a pixel counts the dots in a cell of 4 x 4
    DPLogisticGCD(
        epsilon=0.5,
        delta=1e-6,
        classes=[False, True],
        feature_bounds=(-1, 1),
        accountant=accountant,
    ),
)

# %%
# A dry run says what a fit would cost. Most fits of a search see only two thirds of the records; as
# ``epsilon`` and ``delta`` are stated, their price is the same.

print(accountant.cost(model[-1], n_samples=2 * len(X_train) // 3, n_features=X.shape[1]))

# %%
# The search
# ----------
# ``cv=KFold(3)``: for classifiers scikit-learn's default is a *stratified* split, in which the fold
# of a record depends on the labels of all others. One changed label then changes many records of a
# fold, and the guarantee is void. Splits must come from row numbers.
#
# ``error_score="raise"``: by default a search turns a refused fit into a NaN score and goes on.

search = GridSearchCV(
    model,
    {"dplogisticgcd__C": [0.01, 0.1, 1.0, 10.0]},
    cv=KFold(3),
    error_score="raise",
)
search.fit(X_train, y_train)
print(f"{len(accountant.entries())} entries: 4 candidates x 3 folds, and the refit")
print(f"accuracy on held-out records: {search.best_estimator_.score(X_test, y_test):.3f}")

# %%
# The report lists every fit. The scores on the folds are not in it: they were computed without
# noise, so do not publish them.

print(accountant.report())

# %%
# Until the budget is spent
# -------------------------
# The refusal comes before a record is used, so nothing is lost but the fit.

try:
    while True:
        model.fit(X_train, y_train)
except BudgetExceededError as error:
    print(error)
print(accountant.spent())

# %%
# The accountant adds up μ² instead of ε: thirteen fits with ε = 0.5 cost much less than 13 x 0.5.

BudgetDisplay.from_accountant(accountant)
plt.show()
