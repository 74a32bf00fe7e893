"""Default fits beside scikit-learn's own estimators: time over theirs, and accuracy, in one run.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/default_fits.py [--small | --full]

Every private estimator is fitted with its defaults but public bounds, and so are the generic ones
with ``solver="newton"``; a ridge is fitted without any bounds, too. Wide records, dense ones and
rows of text, have a row for each epsilon of descents alone, and are few unless --full is given:
then a table takes an hour. Times are medians of fits in turn, scikit-learn's between ours, so that
a busy machine slows both. Accuracy is R² or the share of right labels on fresh records.
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.preprocessing import normalize

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)

SIZES = {
    "n = 1e5, p = 100": (100_000, 100, 2),
    "n = 1e6, p = 20": (1_000_000, 20, 2),
    "n = 1e5, p = 50, five classes": (100_000, 50, 5),
}
WIDE = {
    "n = 2e4, p = 1,500": (20_000, 1_500, 2),
    "n = 2e4, p = 1e4, sparse": (20_000, 10_000, 2),
}
FULL = {
    "n = 5e4, p = 2,000": (50_000, 2_000, 2),
    "n = 2e5, p = 47,236, sparse": (200_000, 47_236, 2),
}
SMALL = {"n = 5e3, p = 10": (5_000, 10, 2), "n = 5e3, p = 10, five classes": (5_000, 10, 5)}
EPSILONS = (0.1, 1.0, 10.0)
ALPHA = 1e-3  # of the l1 penalty, beside a mean loss


def records(n_samples, n_features, n_classes, rng):
    """Uniform features in C order, a linear target with noise, and labels of a logistic model."""
    X = rng.uniform(-1, 1, (n_samples, n_features))
    coef = np.random.default_rng(1).normal(size=n_features) / n_features**0.5
    margins = X @ coef
    y = np.clip(margins / 2 + 0.05 * rng.standard_normal(n_samples), -1, 1)
    if n_classes > 2:
        coef = np.random.default_rng(1).normal(size=(n_features, n_classes)) / n_features**0.5
        return X, y, (3 * X @ coef + rng.gumbel(size=(n_samples, n_classes))).argmax(axis=1)
    return X, y, (rng.random(n_samples) < 1 / (1 + np.exp(-4 * margins))).astype(int)


def texts(n_samples, n_features, rng):
    """Rows of norm one, of 70 words each whose odds fall as their rank, and labels; no target."""
    ranks = np.arange(1, n_features + 1)
    ends = np.cumsum(1 / ranks)
    words = np.searchsorted(ends, ends[-1] * rng.random(70 * n_samples)).astype(np.int32)
    of_rows = np.arange(0, 70 * n_samples + 1, 70, dtype=np.int32)
    X = sparse.csr_array((np.log1p(ranks)[words], words, of_rows), shape=(n_samples, n_features))
    X.sum_duplicates()
    X = normalize(X)
    margins = X @ np.random.default_rng(1).normal(size=n_features)
    return X, None, (rng.random(n_samples) < 1 / (1 + np.exp(-8 * margins))).astype(int)


def pairs(n_samples, n_classes):
    """Name: ours (made for an epsilon), scikit-learn's, and whether it is of labels."""
    bounds = {"feature_bounds": (-1, 1)}
    labels, both = bounds | {"classes": range(n_classes)}, bounds | {"target_bounds": (-1, 1)}
    newton = {"solver": "newton"}
    l1 = {"penalty": "l1", "alpha": ALPHA}
    ridge, lasso, logistic = Ridge(), Lasso(ALPHA), LogisticRegression()
    alpha = 1 / n_samples  # of Ridge and LogisticRegression, beside a mean loss
    return {
        "DPRidgeSkGD": (lambda e: DPRidgeSkGD(epsilon=e, **both), ridge, False),
        "DPRidgeSkGD, nothing stated": (lambda e: DPRidgeSkGD(epsilon=e), ridge, False),
        "DPLinearRegressor": (lambda e: DPLinearRegressor(epsilon=e, **both), ridge, False),
        "DPLinearRegressor, newton": (
            lambda e: DPLinearRegressor(epsilon=e, penalty="l2", alpha=alpha, **newton, **both),
            ridge, False,
        ),
        "DPLassoCD": (lambda e: DPLassoCD(ALPHA, epsilon=e, **both), lasso, False),
        "DPLinearRegressor, l1, newton": (
            lambda e: DPLinearRegressor(epsilon=e, **l1, **newton, **both), lasso, False,
        ),
        "DPLogisticGCD": (lambda e: DPLogisticGCD(epsilon=e, **labels), logistic, True),
        "DPLinearClassifier": (
            lambda e: DPLinearClassifier(epsilon=e, **labels), logistic, True,
        ),
        "DPLinearClassifier, newton": (
            lambda e: DPLinearClassifier(epsilon=e, alpha=alpha, **newton, **labels),
            logistic, True,
        ),
    }  # fmt: skip


def wide_pairs(is_sparse):
    """The same of descents over many features."""
    stated = {"row_norm_bound": 1.0} if is_sparse else {"feature_bounds": (-1, 1)}
    labels, both = stated | {"classes": (0, 1)}, stated | {"target_bounds": (-1, 1)}
    of_labels = {
        "DPLogisticGCD": (
            lambda e: DPLogisticGCD(epsilon=e, **labels), LogisticRegression(), True,
        ),
    }  # fmt: skip
    if is_sparse:
        return of_labels
    return {"DPRidgeSkGD": (lambda e: DPRidgeSkGD(epsilon=e, **both), Ridge(), False)} | of_labels


def seconds(model, X, y):
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def row(ours, theirs, data, fresh, of_labels, repeat):
    """Times of both (medians of fits in turn), and the scores of the last ones."""
    X, y = data[0], data[2 if of_labels else 1]
    times = [(seconds(theirs, X, y), seconds(ours, X, y)) for _ in range(repeat)]
    scores = [model.score(fresh[0], fresh[2 if of_labels else 1]) for model in (theirs, ours)]
    return np.median(times, axis=0), scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--small", action="store_true", help="few records: to see that it runs")
    size.add_argument("--full", action="store_true", help="wide records in full: 800 MB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="estimators whose name has this in it")
    parser.add_argument("--records", default="", help="sizes whose title has this in it")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| records | estimator | epsilon | s | over scikit-learn | score | scikit-learn's |")
    print("|---|---|---|---|---|---|---|")
    wide = FULL if asked.full else WIDE
    for title, (n_samples, *sizes) in (SMALL if asked.small else SIZES | wide).items():
        if asked.records not in title:
            continue
        rng, is_sparse = np.random.default_rng(0), "sparse" in title
        if is_sparse:
            data, fresh = (texts(n, sizes[0], rng) for n in (n_samples, 20_000))
        else:
            data, fresh = (records(n, *sizes, rng) for n in (n_samples, 20_000))
        rows = wide_pairs(is_sparse) if title in wide else pairs(n_samples, sizes[-1])
        for name, (make, theirs, of_labels) in rows.items():
            if asked.only not in name or (sizes[-1] > 2 and not of_labels):
                continue
            for epsilon in EPSILONS:
                (base, own), (best, score) = row(
                    make(epsilon), theirs, data, fresh, of_labels, asked.repeat
                )
                print(
                    f"| {title} | {name} | {epsilon:g} | {own:.3f} | {own / base:.2f} | "
                    f"{score:.4f} | {best:.4f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
