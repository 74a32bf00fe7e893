"""
The gender wage gap, with ε = 1
===============================

How much less do women earn than men of the same education and experience, and how sure is that? A
regression of the logarithm of wages answers it, and its records are what people least like to
publish. Here it is with (1, 1e-6)-differential privacy and with error bars that count the noise.
"""

# %%
# Records and public bounds
# -------------------------
# 54,875 people of the Current Population Survey (ASEC 2024, US Census Bureau, public domain): years
# of education and of experience, whether a woman, and the logarithm of the annual wage. They are no
# part of the package: where the folder ``DPCD_DATA`` has them they are read, otherwise the records
# below are made up, and **their numbers say nothing about wages**.
#
# Bounds need no look at the records: schools and lives are only so long, and a logarithm of 15 is a
# wage of three million. Experience is counted in decades, so that all coefficients can be read.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dpcd_sklearn import DPLinearRegressor
from dpcd_sklearn.inspection import CoefficientDisplay

bounds = {"education": (0, 22), "decades": (0, 6), "decades²": (0, 36), "female": (0, 1)}


def wages():
    path = Path(os.environ.get("DPCD_DATA", "../../../shared/data")) / "cps_wages_2024.npz"
    if path.is_file():
        with np.load(path) as arrays:
            X, y = arrays["X"].astype(float), arrays["y"].astype(float)
        return X / [1, 10, 100, 1], y, "Current Population Survey, ASEC 2024"
    rng = np.random.default_rng(0)
    education = np.clip(np.rint(rng.normal(14, 3, 54_875)), 0, 22)
    decades = rng.uniform(0, 4.5, len(education))
    female = rng.integers(2, size=len(education))
    X = np.column_stack([education, decades, decades**2, female])
    y = 9.4 + X @ [0.1, 0.2, -0.03, -0.4] + 0.8 * rng.standard_normal(len(X))
    return X, np.clip(y, 0, 15), f"made up, since {path.name} is not here"


X, y, source = wages()
X = pd.DataFrame(X, columns=list(bounds))
print(f"{len(X):,} records: {source}")

# %%
# The private fit
# ---------------
# ``inference=True`` takes a share of the budget (here 13 % of μ²) for two noisy
# matrices at the last iterate; standard errors, intervals and tests are made of them. Neighbours
# are data sets with one person more or fewer, so the number of people is not used: `n_public` is a
# round number that is known to everybody.

model = DPLinearRegressor(
    penalty=None,
    inference=True,
    epsilon=1,
    delta=1e-6,
    neighboring="add_remove",
    n_public=55_000,
    feature_bounds=bounds,
    target_bounds=(0, 15),
).fit(X, y)
print(model.summary())

# %%
# The last column is the noise's share of a variance: the rest is what any sample of people has. The
# gap in per cent, with its interval:

low, gap, high = -np.expm1([*model.confidence_interval()[3], model.coef_[3]])[[1, 2, 0]]
print(f"in these records women earn {gap:.1%} less (95 % interval: {low:.1%} to {high:.1%})")

# %%
# Do men's and women's wages differ as a year and a half of education does? A Wald test of that:
# the gap plus 1.5 times the coefficient of education is zero.

statistic, p_value = model.wald_test([1.5, 0, 0, 1, 0], [0.0])
print(f"χ² = {statistic:.1f}, p = {p_value:.2g}")

# %%
# What ordinary least squares says
# --------------------------------
# These records are public, so we may look. With ``epsilon=float("inf")`` the same estimator is
# ordinary least squares with the robust errors of the sandwich.

ols = DPLinearRegressor(penalty=None, inference=True, epsilon=float("inf")).fit(X, y)
table = pd.DataFrame(
    {
        "ε = 1": np.append(model.coef_, model.intercept_),
        "least squares": np.append(ols.coef_, ols.intercept_),
        "std err, ε = 1": model.coef_std_,
        "of least squares": ols.coef_std_,
        "ratio": model.coef_std_ / ols.coef_std_,
    },
    index=[*bounds, "intercept"],
)
print(table.round(4).to_string())

# %%
# An interval covers what was fitted: the minimiser with each person's gradient clipped. Wages have
# a long lower tail, and the clip was chosen wide, since the signal pays for it: little of the tail
# is lost, and the two sets of coefficients agree within their errors.

fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
CoefficientDisplay.from_estimator(model, beside=ols, units="raw", ax=ax)
ax.set(xlabel="change of the log wage, with 95 % intervals")
ax.set_title(source, fontsize="medium")
ax.spines[["top", "right"]].set_visible(False)

# %%
# Beside what is published
# ------------------------
# dp-econometrics, the package whose table of these records this is, adds noise to the sums of
# squares and products, and has standard errors too. The paper in its repository states them for the
# same survey as multiples of those of least squares: 300 at ε = 10, 37 at ε = 100 and 4 at
# ε = 1,000. A point of the blue line is the standard error of education in one fit.

stated = {10: 300, 100: 37, 1000: 4}
epsilons = [0.5, 1, 3, 10]
found = []
for epsilon in epsilons:
    fit = DPLinearRegressor(**model.get_params(deep=False) | {"epsilon": epsilon}).fit(X, y)
    found.append(fit.coef_std_[0] / ols.coef_std_[0])

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.axhline(1, color="#444444", linewidth=1.2, linestyle="--")
ax.plot(epsilons, found, "o-", color="#0072B2", label="DPLinearRegressor, δ = 1e-6")
ax.plot(*zip(*stated.items(), strict=True), "D-", color="#D55E00", label="dp-econometrics, stated")
ax.set(xscale="log", yscale="log", xlabel="ε", ylabel="standard error over least squares")
ax.set_yticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
