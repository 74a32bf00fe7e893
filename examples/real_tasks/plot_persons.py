"""
Wages of men over years: rows are not persons
=============================================

The table has the wages of 545 men in each of eight years. The guarantee should protect a man, not
one of his eight rows. We compare three models at the same ε: one protects rows, one relies on the
promise that nobody has more than eight of them, and one is given the id of the man of each row.
"""

# %%
# The panel
# ---------
# The table is that of Vella & Verbeek (1998) if ``linearmodels``, which bundles it, is installed.
# Otherwise we simulate as many men and years, with a lasting effect of each man.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupShuffleSplit

from dpcd_sklearn import DPLinearRegressor, Persons
from dpcd_sklearn.privacy.accounting import gdp_epsilon, gdp_mu

COLUMNS = ["educ", "exper", "hours", "black", "hisp", "married", "union"]
BOUNDS = np.transpose([(0, 20), (0, 20), (0, 5000), (0, 1), (0, 1), (0, 1), (0, 1)])
N_MEN, N_YEARS, DELTA = 545, 8, 1e-6
rng = np.random.default_rng(0)


def made_up():
    """Rows of men over years, the logarithm of their wages, and whose they are."""
    men = np.repeat(np.arange(N_MEN), N_YEARS)
    years = np.tile(np.arange(N_YEARS), N_MEN)
    educ = np.clip(rng.normal(12, 2, N_MEN), 3, 16).round()[men]
    exper = np.clip(rng.normal(3, 1.6, N_MEN), 0, 11).round()[men] + years
    hours = np.clip(rng.normal(2200, 560, men.size), 120, 5000)
    black, hisp = (rng.random(N_MEN) < 0.11)[men], (rng.random(N_MEN) < 0.16)[men]
    married, union = rng.random(men.size) < 0.08 + 0.1 * years, rng.random(men.size) < 0.24
    wage = 0.1 * educ + 0.06 * exper - 0.14 * black + 0.11 * married + 0.18 * union - 0.05
    wage += 0.33 * rng.normal(size=N_MEN)[men] + 0.35 * rng.normal(size=men.size)
    return np.column_stack([educ, exper, hours, black, hisp, married, union]), wage, men


try:
    from linearmodels.datasets import wage_panel
except ImportError:
    where, (X, y, men) = "simulated men", made_up()
else:
    frame = wage_panel.load()
    where, X = "wages of Vella & Verbeek", frame[COLUMNS].to_numpy(dtype=float)
    y, men = frame["lwage"].to_numpy(), frame["nr"].to_numpy()
print(f"{where}: {len(y):,} rows of {len(set(men))} men")

# %%
# The same ε, three promises
# --------------------------
# If eight rows are protected one by one, the man loses far more than ε: the μ of his rows add up,
# and ε grows faster than μ.

EPSILONS = [1.0, 3.0, 10.0]
of_a_man = [gdp_epsilon(N_YEARS * gdp_mu(epsilon, DELTA), DELTA) for epsilon in EPSILONS]
for epsilon, lost in zip(EPSILONS, of_a_man, strict=True):
    print(f"epsilon={epsilon:g} for a row is epsilon={lost:.1f} for a man")

# %%
# Errors on other men
# -------------------
# We hold out a fifth of the men. ``Persons(8)`` adds eight times the noise of a row. ``Persons()``
# with ``groups=men`` clips the gradient of a man as one vector, however many rows he has.

WAYS = {
    "rows (protects no man)": ("replace_one", False),
    "Persons(8)": (Persons(N_YEARS), False),
    "Persons(), groups=men": (Persons(), True),
}
scores = {way: np.empty((len(EPSILONS), 5)) for way in WAYS}
plain = []
for k in range(5):
    split = GroupShuffleSplit(1, test_size=0.2, random_state=k)
    ((train, test),) = split.split(X, groups=men)
    plain.append(LinearRegression().fit(X[train], y[train]).score(X[test], y[test]))
    for way, (unit, by_id) in WAYS.items():
        for row, epsilon in enumerate(EPSILONS):
            model = DPLinearRegressor(
                epsilon=epsilon,
                delta=DELTA,
                neighboring=unit,
                feature_bounds=tuple(BOUNDS),
                target_bounds=(-2, 4),
            )
            model.fit(X[train], y[train], groups=men[train] if by_id else None)
            scores[way][row, k] = r2_score(y[test], model.predict(X[test]))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for way, found in scores.items():
    left.plot(EPSILONS, np.median(found, axis=1), "o-", label=way)
left.axhline(np.median(plain), color="black", linestyle=":", label="without privacy")
left.set(xscale="log", xlabel="ε that is stated", ylabel="R² on other men (median of 5)")
left.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
left.legend()
right.plot(EPSILONS, of_a_man, "o-", label="rows (protects no man)")
right.plot(EPSILONS, EPSILONS, "o-", color="C2", label="Persons(8) and Persons()")
right.set(xscale="log", yscale="log", xlabel="ε that is stated", ylabel="ε of a man")
right.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
right.set_yticks([1, 10, 100], ["1", "10", "100"])
right.legend()
plt.show()

# %%
# Only ``Persons()`` keeps the number of rows of a man secret. If you have ids, pass them. If
# nothing is lost by it, join the rows of each man before the fit.
