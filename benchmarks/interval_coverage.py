"""Coverage of private confidence intervals: how many contain the truth, and how long they are.

    nice python benchmarks/interval_coverage.py [--repeat 4000] [--epsilons 1 3 10]
    nice python benchmarks/interval_coverage.py --repeat 200 --errors wages houses dummies
    nice python benchmarks/interval_coverage.py --repeat 80 --errors randhie fair anes96 modechoice

A row a simulation: errors of one kind, n records of p features, and ε. "valid" is the share of
slopes that have an interval, "slopes" and "intercept" are shares of valid 95 % intervals that
contain the truth, "bias" is the largest mean distance of an estimated slope from it in standard
errors, and "length" the mean length over that of intervals without privacy. With skewed errors the
intercept's truth is that of the mean, which a clip that bites is not about: "own" is the share of
its intervals that contain where the valid fits are on average, which the clipped loss is about, and
"own slopes" that of slopes. Of tables records are drawn with replacement, and the truth is least
squares on the whole table within the stated bounds; "dummies" are wages by categories that are made
up. Wages and houses lie in the folder ``DPCD_DATA``; the last four tables are those of statsmodels,
which are left out where it is not installed. Of tables "robust" is the mean length over that of the
robust intervals of least squares on the same records, and R² on these is that of fits with
inference, of fits without it, and of least squares.
"""

import argparse
import functools
import importlib.util
import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import r2_score

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor

ERRORS = ("homoscedastic", "heteroscedastic", "skewed", "logistic")
# Tables: bounds of features and target that need no look at the records, and sizes of samples.
_COLUMNS = {"education": (0, 22), "decades": (0, 6), "decades²": (0, 36), "female": (0, 1)}
_HOUSES = [(0, 15), (0, 52), (0, 20), (0, 5), (0, 5000), (0, 10), (32, 42), (-125, -114)]
TABLES = {
    "wages": ("cps_wages_2024", list(_COLUMNS.values()), (5, 15), [1, 10, 100, 1]),
    "houses": ("california_housing", _HOUSES, (0, 5), 1),
    "dummies": ("cps_wages_2024", [*_COLUMNS.values()] + 6 * [(0, 1)], (5, 15), [1, 10, 100, 1]),
}
_UNIT, _MONEY = (0, 1), (0, 8)
# Tables of statsmodels: a target with its bounds, and the bounds of features.
ECONOMETRIC = {
    "randhie": (  # visits to physicians in the RAND health insurance experiment
        ("mdvis", (0, 20)),
        {"lncoins": (0, 5), "idp": _UNIT, "lpi": _MONEY, "fmde": (0, 9), "physlm": _UNIT}
        | {"disea": (0, 40), "hlthg": _UNIT, "hlthf": _UNIT, "hlthp": _UNIT},
    ),
    "fair": (  # how women rate their marriage
        ("rate_marriage", (1, 5)),
        {"age": (17, 42), "yrs_married": (0, 23), "children": (0, 6), "religious": (1, 4)}
        | {"educ": (9, 20), "occupation": (1, 6), "occupation_husb": (1, 6), "affairs": (0, 10)},
    ),
    "anes96": (  # family income, in 24 classes
        ("income", (1, 24)),
        {"age": (18, 90), "educ": (1, 7), "PID": (0, 6), "TVnews": (0, 7), "selfLR": (1, 7)},
    ),
    "modechoice": (  # the generalised cost of ways to travel
        ("gc", (0, 300)),
        {"ttme": (0, 100), "invc": (0, 200), "invt": (0, 1500), "hinc": (0, 80), "psize": (1, 6)},
    ),
}
TABLE_NAMES = (*TABLES, *ECONOMETRIC)
HAS_STATSMODELS = importlib.util.find_spec("statsmodels") is not None
SIZES = ((250, 3), (1_000, 3), (4_000, 3), (10_000, 10))
EPSILONS = (1.0, 3.0)
REACH = 1.959964
PARAMS = {"penalty": None, "inference": True, "feature_bounds": (-1, 1)}


@functools.cache
def table(name):
    """A whole table and the coefficients of least squares on it, within its bounds."""
    if name in ECONOMETRIC:
        (target, of_target), features = ECONOMETRIC[name]
        data = importlib.import_module(f"statsmodels.datasets.{name}").load_pandas().data
        X, y = data[[*features]].to_numpy(float), data[target].to_numpy(float)
        bounds = list(features.values())
    else:
        file, bounds, of_target, units = TABLES[name]
        with np.load(Path(os.environ["DPCD_DATA"]) / f"{file}.npz") as arrays:
            X, y = arrays["X"] / np.array(units, dtype=float), arrays["y"].astype(float)
    if name == "dummies":
        kind = np.random.default_rng(0).choice(7, len(X), p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.06, 0.04])
        X = np.column_stack([X, kind[:, None] == np.arange(1, 7)])
    lo, hi = np.transpose(bounds)
    return X, y, least_squares(X, y, (lo, hi), of_target)[0], (lo, hi), of_target


def least_squares(X, y, bounds, of_target):
    """Coefficients within bounds, the intercept last, their robust errors, and R² of y."""
    within = np.column_stack([np.clip(X, *bounds), np.ones(len(X))])
    coef = np.linalg.lstsq(within, np.clip(y, *of_target))[0]
    residuals = np.clip(y, *of_target) - within @ coef
    inverse = np.linalg.pinv(within.T @ within)
    robust = inverse @ ((within * residuals[:, None] ** 2).T @ within) @ inverse
    return coef, np.sqrt(np.diag(robust)), r2_score(y, within @ coef)


def simulated(errors, n, p, rng):
    """Records, the target, and the truth, the intercept last."""
    if errors in TABLE_NAMES:
        X, y, truth, *_ = table(errors)
        drawn = rng.integers(len(X), size=n)
        return X[drawn], y[drawn], truth
    truth = np.zeros(p + 1)
    truth[:3], truth[-1] = (0.3, -0.2, 0.1), 0.05
    X = rng.uniform(-1, 1, (n, p))
    margins = X @ truth[:-1] + truth[-1]
    if errors == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-3 * margins))).astype(int), 3 * truth
    noise = rng.standard_exponential(n) - 1 if errors == "skewed" else rng.standard_normal(n)
    if errors == "heteroscedastic":
        noise *= 0.5 + np.abs(X[:, 0])
    return X, margins + 0.15 * noise, truth


def model_of(errors, epsilon):
    """The estimator, with defaults but for what it must be told."""
    if errors in TABLE_NAMES:
        *_, bounds, of_target = table(errors)
        stated = {"feature_bounds": bounds, "target_bounds": of_target}
        return DPLinearRegressor(epsilon=epsilon, **PARAMS | stated)
    if errors == "logistic":
        return DPLinearClassifier(epsilon=epsilon, classes=[0, 1], **PARAMS)
    return DPLinearRegressor(epsilon=epsilon, target_bounds=(-1, 1), **PARAMS)


def row(errors, n, p, epsilon, repeat, rng):
    """Shares of valid fits and of intervals that contain the truth, bias, and lengths.

    Of tables also lengths over those of least squares, and means of R².
    """
    gaps, errors_of, lengths, beside = [], [], [], []
    for _ in range(repeat):
        X, y, truth = simulated(errors, n, p, rng)
        model = model_of(errors, epsilon).fit(X, y)
        if errors in TABLE_NAMES:
            plain = model_of(errors, epsilon).set_params(inference=False).fit(X, y)
            _, robust, best = least_squares(X, y, model.feature_bounds, model.target_bounds)
            robust = np.nanmean(model.coef_std_ / robust) if model.inference_valid_ else np.nan
            beside.append((robust, model.score(X, y), plain.score(X, y), best))
        if model.inference_valid_:
            gaps.append(np.append(model.coef_, model.intercept_) - truth)
            errors_of.append(model.coef_std_)
            sampling = model.coef_std_**2 - model.privacy_std_**2
            lengths.append(np.nanmean(model.coef_std_ / np.sqrt(sampling)))
    beside = tuple(np.nanmean(beside, axis=0)) if beside else ()
    if not gaps:
        return (0.0,) + 6 * (np.nan,) + beside
    gaps, errors_of = np.array(gaps), np.array(errors_of)
    told = np.isfinite(errors_of)
    gaps = np.where(told, gaps, np.nan)

    def shares(distances):
        inside = np.abs(distances) < REACH * errors_of
        return inside[:, :-1].sum() / max(told[:, :-1].sum(), 1), inside[told[:, -1], -1].mean()

    (slopes, intercept), (of_slopes, own) = shares(gaps), shares(gaps - np.nanmean(gaps, axis=0))
    bias = np.nanmax(np.abs(np.nanmean(gaps / errors_of, axis=0))[:-1])
    valid = told[:, :-1].mean() * len(gaps) / repeat
    return valid, slopes, intercept, own, of_slopes, bias, np.nanmean(lengths), *beside


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=4000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--errors", nargs="+", default=ERRORS, choices=(*ERRORS, *TABLE_NAMES))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    heads = "errors n p epsilon valid slopes intercept own own_slopes bias length".split()
    if {*asked.errors} & {*TABLE_NAMES}:
        heads += ["robust", "R²", "R² plain", "R² least squares"]
    print("|", " | ".join(heads), "|\n" + "|---" * len(heads) + "|")
    for errors in asked.errors:
        if errors in ECONOMETRIC and not HAS_STATSMODELS:
            print(f"{errors} is left out: statsmodels, which has it, is not installed")
            continue
        sizes = SIZES
        if errors in TABLE_NAMES:
            X, *_ = table(errors)
            own = (len(X),) if errors in ECONOMETRIC else (50_000,)
            sizes = [(n, X.shape[1]) for n in sorted({12_000, *own})]
        for n, p in sizes:
            for epsilon in asked.epsilons:
                kind = (*ERRORS, *TABLE_NAMES).index(errors)
                rng = np.random.default_rng([0, kind, n, p, int(epsilon)])
                found = row(errors, n, p, epsilon, asked.repeat, rng)
                cells = " | ".join(f"{share:.3f}" for share in found)
                print(f"| {errors} | {n} | {p} | {epsilon:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
