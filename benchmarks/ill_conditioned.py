"""Newton steps among the choices, and without: test error where columns are correlated.

    nice python benchmarks/ill_conditioned.py [--repeat 7] [--only NAME]

Data sets of `DPCD_DATA`, features and target in stated bounds 1.5 times as wide as the records, and
made-up ones of a stated condition number (of second moments in these bounds), in which every
direction tells as much about the target. "with" is ``solver="auto"``, "without" ``solver="skgd"``;
errors are 1 - R², or the share of wrong labels, on a fifth of the records: medians of splits. Where
"auto" is the descent both are the same fit. "excess" is the ratio of what both have more than a
model without privacy, where that is a tenth of its error or more.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor

DATA = Path(os.environ.get("DPCD_DATA", "../shared/data"))
FILES = ("communities_crime", "diamonds", "california_housing", "abalone", "beijing_pm25",
         "cps_wages_2024", "madelon")  # fmt: skip
MADE_UP = {f"made up, 1e{k}": 10.0**k for k in (3, 4, 5, 6)}
EPSILONS = (0.1, 1.0, 10.0)
WIDE = 1.5


def made_up(condition, n=50_000, p=10):
    """Normal records whose second moments have this condition number, and a target of R² = .8."""
    rng = np.random.default_rng(int(np.log10(condition)))
    axes, _ = np.linalg.qr(rng.standard_normal((p, p)))
    plain = np.clip(rng.standard_normal((n, p)), -3, 3)
    X = plain * np.logspace(0, -0.5 * np.log10(condition), p) @ axes.T
    signal = plain.sum(axis=1) / p**0.5
    return X, signal + 0.5 * rng.standard_normal(n)


def problems():
    """Name: records and target; labels are integers."""
    found = {"breast_cancer": load_breast_cancer(return_X_y=True)}
    X, y = load_digits(return_X_y=True)
    found["digits, odd or even"] = X, y % 2
    found["diabetes"] = load_diabetes(return_X_y=True, scaled=False)
    for name in FILES:
        path = DATA / f"{name}.npz"
        if path.is_file():
            with np.load(path, allow_pickle=True) as arrays:
                X, y = arrays["X"].astype(float), arrays["y"]
            found[name] = X[:, ~np.isnan(X).any(axis=0)], y
        else:
            print(f"{path} is not there")
    return found | {name: made_up(condition) for name, condition in MADE_UP.items()}


def bounds_of(values):
    lo, hi = values.min(axis=0), values.max(axis=0)
    middle, half = (lo + hi) / 2, np.maximum(hi - lo, 1e-9) / 2 * WIDE
    return middle - half, middle + half


def condition_of(X):
    lo, hi = X.min(axis=0), X.max(axis=0)
    units = (2 * X - lo - hi)[:, hi > lo] / (hi - lo)[hi > lo]
    squares = np.linalg.svd(np.column_stack([units, np.ones(len(X))]), compute_uv=False) ** 2
    return squares[0] / squares[squares > 1e-12 * squares[0]][-1]  # columns may add up to one


def errors(X, y, seed, epsilon):
    """Without privacy, with Newton steps and without, and whether these are two recipes."""
    X, fresh, y, truth = train_test_split(X, y, test_size=0.2, random_state=seed)
    labels = y.dtype.kind not in "fc"
    params = {"epsilon": epsilon, "feature_bounds": bounds_of(X)}
    if labels:
        plain, kind = make_pipeline(StandardScaler(), LogisticRegression()), DPLinearClassifier
        params["classes"] = np.unique(y)
    else:
        plain, kind = LinearRegression(), DPLinearRegressor
        params["target_bounds"] = tuple(float(v) for v in bounds_of(y))
    models = [plain, kind(**params), kind(solver="skgd", **params)]
    found = [1 - model.fit(X, y).score(fresh, truth) for model in models]
    return found, models[1].n_iter_ != models[2].n_iter_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", default="", help="data sets whose name has this in it")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data set | condition | epsilon | plain | with | without | ratio | excess |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (X, y) in problems().items():
        if asked.only not in name:
            continue
        for epsilon in EPSILONS:
            found = [errors(X, y, seed, epsilon) for seed in range(asked.repeat)]
            plain, ours, descent = np.median([one for one, _ in found], axis=0)
            row = f"| {name} | {condition_of(X):.0e} | {epsilon:g} | {plain:.3f} | {ours:.3f} |"
            if not found[0][1]:
                print(row + " the same | | |", flush=True)
                continue
            tells = descent - plain > 0.1 * plain
            excess = f"{(ours - plain) / (descent - plain):.2f}" if tells else ""
            print(f"{row} {descent:.3f} | {ours / descent:.2f} | {excess} |", flush=True)


if __name__ == "__main__":
    main()
