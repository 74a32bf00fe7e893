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

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline

from dpcd_sklearn import BudgetExceededError, DPLogisticGCD, PrivacyAccountant
from dpcd_sklearn.preprocessing import BoundsScaler

X, digit = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, digit >= 5, random_state=0)

accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6)
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
#
# The scorer is called after every fit on a fold; here it also notes what is left.

left = [accountant.remaining()]


def accuracy(fitted, X, y):
    left.append(accountant.remaining())
    return fitted.score(X, y)


search = GridSearchCV(
    model,
    {"dplogisticgcd__C": [0.01, 0.1, 1.0, 10.0]},
    cv=KFold(3),
    error_score="raise",
    scoring=accuracy,
)
search.fit(X_train, y_train)
left.append(accountant.remaining())
n_searched = len(accountant.entries())
print(f"{n_searched} entries: 4 candidates x 3 folds, and the refit")
print(f"accuracy on held-out records: {search.best_estimator_.score(X_test, y_test):.3f}")

# %%
# The ledger can be read by people. The scores on the folds are not in it: they were computed
# without noise, and are not to be published.

print(accountant.report())

# %%
# Until the budget is spent
# -------------------------
# The refusal comes before a record is used, so nothing is lost but the fit.

try:
    while True:
        model.fit(X_train, y_train)
        left.append(accountant.remaining())
except BudgetExceededError as error:
    print(error)
print(accountant.spent())

# %%
# A filter adds up a quantity that grows slower than ε: after thirteen fits of ε = 0.5 much more is
# left than 3 - 13 x 0.5, which would be less than nothing.

blue, orange = "#0072B2", "#D55E00"
fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
fits = range(len(left))
ax.axhline(0.5, color="#444444", linewidth=1, linestyle="--")
ax.plot(fits[n_searched:], left[n_searched:], "o-", color=orange, markersize=5)
ax.plot(fits[: n_searched + 1], left[: n_searched + 1], "o-", color=blue, markersize=5)
ax.annotate("the search", (6, left[6]), (8, 8), textcoords="offset points", color=blue)
ax.annotate(
    "single fits",
    ((n_searched + len(left)) // 2, left[(n_searched + len(left)) // 2]),
    (8, 8),
    textcoords="offset points",
    color=orange,
)
ax.annotate("the next fit needs 0.5", (0, 0.5), (0, 5), textcoords="offset points", color="#444444")
ax.set(
    xlabel="fits charged to the ledger",
    ylabel="largest ε of one more fit",
    ylim=(0, None),
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
