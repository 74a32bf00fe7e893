"""A fixed grid of data sets, models and epsilons: what fell since the stored run?

    OMP_NUM_THREADS=1 python benchmarks/regress.py            # compare with regress.csv
    OMP_NUM_THREADS=1 python benchmarks/regress.py --store    # and replace its rows

Run it before and after every change of a recipe. It takes about four minutes. Scores are those of
test records: R², AUC (accuracy for more than two classes) and D², the share by which the log loss
is below that of the classes' shares, or a deviance or pinball loss below that of one constant. Of
two made-up sets "coefficient" is minus the largest error of one, times the spread of its column and
over the largest such effect of least squares: a coefficient that is a thousand times too large
hides behind a fine R². A row has the median of 20 fits, its standard error and the worst fit.
Splits and noise are seeded, so that the same code gives the same rows. Noise of other seeds moved
1 median and 10 worst fits of 530 enough to be listed.
"""

import argparse
import csv
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from defaults import in_wide_bounds, madelon, regression, text
from papers.problems import MissingDataError
from scipy import sparse
from sklearn import datasets
from sklearn.linear_model import LinearRegression
from sklearn.metrics import d2_log_loss_score, d2_pinball_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPPoissonRegressor,
    DPQuantileRegressor,
)
from dpcd_sklearn.testing import ReproducibleNoise

STORED = Path(__file__).with_suffix(".csv")
COLUMNS = ("set", "model", "score", "epsilon", "median", "error", "worst")
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
FALL = 0.02  # of a median from one epsilon to a larger one
WITH_COEFFICIENTS = "columns of few values", "columns of all kinds"
N_ERRORS = 3.0  # of a difference of medians


# ---- the data ----------------------------------------------------------------------------------


def some(load, n, cuts=None):
    """At most n records in a fixed random order; cuts divide the target into classes."""
    X, y = load()
    kept = np.random.default_rng(0).permutation(len(y))[:n]
    return X[kept], y[kept] if cuts is None else np.digitize(y[kept], cuts)


def made_up(kind, n=4_000, p=8, share=None):
    """A linear problem with one of the difficulties that raw tables have.

    Labels are 1 for the given share of the records, those of the largest targets.
    """
    rng = np.random.default_rng(0)
    X, noise, coef = rng.normal(size=(n, p)), rng.normal(size=n), rng.normal(size=p)
    if kind == "heavy tails":
        X = np.exp(1.2 * X)
        y = X @ np.abs(coef) + 3 * noise
    elif kind == "0/1 columns":
        X = (rng.random((n, p)) < rng.uniform(0.1, 0.3, p)).astype(float)
        y = X @ coef + 0.5 * noise
    elif kind == "half of the targets zero":
        y = np.where(X @ coef / 2 + noise > 0, np.exp(X @ coef / 2 + 0.5 * noise), 0.0)
    elif kind == "far from zero":
        X, y = X + 1e4, X @ coef + noise
    elif kind == "columns of few values":
        X = (rng.random((n, p)) < [0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.98]).astype(float)
        y = X.sum(axis=1) + 0.5 * noise
    elif kind == "columns of all kinds":
        X[:, 0] = np.where(X[:, 0] > 0, 1e3 * np.exp(rng.normal(size=n)), 0.0)  # amounts
        X[:, 1] = rng.poisson(1.0, n)
        X[:, 2] = rng.integers(1990, 2021, n)  # years
        X[:, 3] = 1.4e9 + 3e8 * rng.random(n)  # seconds since 1970
        X[:, 4] = 5 + (X[:, 4] > 0)
        X[:, 5] = (0.85 - (rng.random(n) < 0.85)) / 0.36  # a standardised indicator
        X[:, 6] = np.where(X[:, 6] > 0.5, X[:, 6], 40.0)
        X[:, 7] += 300
        y = (X / X.std(axis=0)).sum(axis=1) + noise
    elif kind == "rare counts":
        y = rng.poisson(0.05 * np.exp(X @ coef / p**0.5)).astype(float)
    elif kind == "three relevant":
        y = X[:, :3].sum(axis=1) + noise
    else:  # all columns are relevant
        y = X @ coef / p**0.5 + noise
    return X, y if share is None else (y > np.quantile(y, 1 - share)).astype(int)


# ---- the models --------------------------------------------------------------------------------


def times_as_wide(values, factor):
    """The range of the values, so many times as wide around its middle."""
    lo, hi = values.min(axis=0), values.max(axis=0)
    spare = (factor - 1) / 2 * (hi - lo) + 1e-9
    return lo - spare, hi + spare


def regressors(X, y, estimator=DPLinearRegressor, **params):
    """Bounds of all records, those of the test set too, which no private fit may look at."""
    yield "nothing stated", estimator(**params)
    for factor in (1, 4):
        bounds = {"feature_bounds": times_as_wide(X, factor)}
        bounds["target_bounds"] = times_as_wide(y, factor)
        yield f"bounds x {factor}", estimator(**params, **bounds)


def regressors_of_counts(X, y, **params):
    bounds = {"feature_bounds": times_as_wide(X, 2), "target_bounds": (0, 2 * y.max())}
    yield "nothing stated", DPPoissonRegressor(**params)
    yield "bounds x 2", DPPoissonRegressor(**params, **bounds)


def classifiers(X, y, **params):
    params["classes"] = np.unique(y)
    yield "nothing stated", DPLinearClassifier(**params)
    if not sparse.issparse(X):
        yield "bounds x 2", DPLinearClassifier(**params, feature_bounds=in_wide_bounds(X))


def lasso(X, y, **params):
    yield "l1", DPLassoCD(alpha=1e-3, **params)


def l1_classifier(X, y, **params):
    yield "l1", DPLinearClassifier(penalty="l1", alpha=1e-3, classes=np.unique(y), **params)


def scores_of(model, X, y, of_coefficients=False):
    if not hasattr(model, "classes_"):
        scores = {"D2" if isinstance(model, DPPoissonRegressor) else "R2": model.score(X, y)}
        if isinstance(model, DPQuantileRegressor):
            scores = {"D2": d2_pinball_score(y, model.predict(X), alpha=model.quantile)}
        if of_coefficients:
            right = LinearRegression().fit(scale(X), y).coef_  # of raw ones it drops columns
            error = np.abs(model.coef_ * X.std(axis=0) - right).max()
            scores["coefficient"] = -error / np.abs(right).max()
        return scores
    chances = model.predict_proba(X)
    saved = {"D2": d2_log_loss_score(y, chances, labels=model.classes_)}
    if len(model.classes_) > 2:
        return {"accuracy": model.score(X, y)} | saved
    return {"AUC": roc_auc_score(y, chances[:, 1])} | saved


# ---- the grid ----------------------------------------------------------------------------------


def grid():
    """Triples of a name, a function that loads records, and one that makes models."""
    raw = ("abalone", "beijing_pm25", "california_housing", "communities_crime", "cps_wages_2024")
    raw = {name: partial(regression, name) for name in (*raw, "diamonds")}
    of_scikit_learn = {
        name: partial(getattr(datasets, f"load_{name}"), return_X_y=True)
        for name in ("diabetes", "breast_cancer", "digits", "iris", "wine")
    }
    yield "diabetes", of_scikit_learn.pop("diabetes"), regressors
    for name, load in raw.items():
        yield name, partial(some, load, 5_000), regressors
    for name in ("abalone", "beijing_pm25", "california_housing", "diamonds"):
        yield f"{name}, 250 records", partial(some, raw[name], 250), regressors
    kinds = ("heavy tails", "0/1 columns", "half of the targets zero", "far from zero")
    for kind in (*kinds, *WITH_COEFFICIENTS):
        yield kind, partial(made_up, kind), regressors
    for name, load in of_scikit_learn.items():
        yield name, load, classifiers
    cuts = {
        "abalone": [8, 11],
        "beijing_pm25": [150],
        "california_housing": [1.8],
        "diamonds": [1_000, 2_000, 5_000],
    }
    for name, at in cuts.items():
        for n in (500, 5_000):
            title = f"{name}, {len(at) + 1} classes, {n} records"
            yield title, partial(some, raw[name], n, at), classifiers
    for name, file in {"a9a": "a9a_train", "w8a": "w8a_train"}.items():
        yield name, partial(some, partial(text, name, file), 5_000), classifiers
    for kind, share in ("0/1 columns", 0.03), ("all relevant", 0.03), ("heavy tails", 0.05):
        title = f"{kind}, a class of {share:g}"
        yield title, partial(made_up, kind, 20_000, share=share), classifiers
    yield "rare counts", partial(made_up, "rare counts", 20_000), regressors_of_counts
    for name in ("california_housing", "diamonds"):
        for quantile in (0.5, 0.9):
            estimator = partial(DPQuantileRegressor, quantile=quantile, alpha=0.0)
            models = partial(regressors, estimator=estimator)
            yield f"{name}, quantile {quantile:g}", partial(some, raw[name], 5_000), models
    by_coordinates = partial(regressors, solver="cd")
    for name in ("communities_crime", "california_housing"):
        yield f"{name}, cd", partial(some, raw[name], 5_000), by_coordinates
    yield "madelon", madelon, l1_classifier
    yield "communities_crime", raw["communities_crime"], lasso
    for kind in ("three relevant", "all relevant"):
        for title, share, models in (("", None, lasso), (", labels", 0.5, l1_classifier)):
            load = partial(made_up, kind, 3_000, 600, share)
            yield f"{kind} of 600{title}", load, models


def cells(name, load, models, repeat):
    """Scores of the fits of a set: {(set, model, score, epsilon): list}."""
    X, y = load()
    found = {}
    for epsilon in EPSILONS:
        for seed in range(repeat):
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.2, random_state=seed, stratify=y if y.dtype.kind in "iu" else None
            )
            noise = ReproducibleNoise(seed)
            for title, model in models(X, y, epsilon=epsilon, random_state=noise):
                model.fit(X_train, y_train)
                scores = scores_of(model, X_test, y_test, name in WITH_COEFFICIENTS)
                for score, value in scores.items():
                    found.setdefault((name, title, score, epsilon), []).append(value)
    return found


def summary(values):
    """The median, its standard error from the quartiles, and the worst."""
    low, median, high = np.percentile(values, (25, 50, 75))
    error = 1.2533 * (high - low) / 1.349 / len(values) ** 0.5
    return tuple(float(f"{number:.4g}") for number in (median, error, min(values)))


def stored():
    if not STORED.is_file():
        return {}
    with STORED.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {
        (row["set"], row["model"], row["score"], float(row["epsilon"])): tuple(
            float(row[column]) for column in COLUMNS[4:]
        )
        for row in rows
    }


def store(rows):
    with STORED.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*key[:3], f"{key[3]:g}", *map(repr, row)) for key, row in rows.items())


# ---- what is printed ---------------------------------------------------------------------------


def show(title, lines):
    print(f"\n{title}: {len(lines)}")
    for key, *values in lines:
        name = f"{key[0]}, {key[1]}"
        print(f"  {name:<54} {key[2]:<8} {key[3]:>4g}  " + "  ".join(values))


def compare(old, new):
    """Medians that moved by more than their errors, and worst fits that are three times as far."""
    rose, fell, worse = [], [], []
    for key in new.keys() & old.keys():
        (was, its_error, was_worst), (now, error, worst) = old[key], new[key]
        error = max(np.hypot(error, its_error), 1e-3)
        line = key, f"{was:.3f} -> {now:.3f}", f"error {error:.3f}"
        if abs(now - was) > N_ERRORS * error:
            (rose if now > was else fell).append(line)
        if was_worst - worst > max(2 * (was - was_worst), FALL):
            worse.append((key, f"{was_worst:.3f} -> {worst:.3f}", f"median {was:.3f} -> {now:.3f}"))
    for title, lines in (("rose", rose), ("worst fit fell", worse), ("fell", fell)):
        show(title, sorted(lines))


def falls(rows):
    """Medians below that of a smaller epsilon."""
    lines = []
    for key, (median, *_) in rows.items():
        smaller = [rows[(*key[:3], e)][0] for e in EPSILONS if e < key[3]]
        if smaller and max(smaller) - median > FALL:
            before = EPSILONS[int(np.argmax(smaller))]
            lines.append((key, f"{median:.3f}", f"{max(smaller):.3f} at {before:g}"))
    return lines


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="replace the stored rows by these")
    parser.add_argument("--only", default="", help="sets with this in their name")
    parser.add_argument("--repeat", type=int, default=20)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    new = {}
    for name, load, models in grid():
        if asked.only not in name:
            continue
        try:
            found = cells(name, load, models, asked.repeat)
        except MissingDataError as missing:
            print(f"{name} is left out: {missing}")
            continue
        new |= {key: summary(values) for key, values in sorted(found.items())}
    old = stored()
    print(f"{len(new)} cells, {len(new.keys() & old.keys())} of them stored")
    show(f"falls by more than {FALL} from a smaller epsilon", falls(new))
    compare(old, new)
    if asked.store:
        store(old | new)


if __name__ == "__main__":
    main()
