"""Costs of stated bounds that are wider than the records, with and without released mean squares.

    python benchmarks/loose_bounds.py [--epsilon 1 3] [--splits 5] [--only abalone] [--store]

Bounds of features are those of the records, which nobody may state in a private fit, made so many
times as wide around their middle. Printed are medians over random splits of R² or, of two classes,
AUC on test records: of M_j from the bounds, and of feature_scale="private".
"""

import argparse
import warnings

import numpy as np
import scipy.sparse as sp
from papers.problems import MissingDataError, data_file, store
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor

# Public bounds of the targets; None is two classes.
TARGETS = {
    "california_housing": (0, 5.00001),
    "diamonds": (0, 20_000),
    "abalone": (0, 30),
    "beijing_pm25": (0, 1_000),
    "a9a": None,
}
SOLVERS, WIDTHS = ("cd", "gcd", "skgd"), (1, 3, 10)


def records(name):
    """X and y, columns without a spread left out."""
    if name == "a9a":
        X = sp.load_npz(data_file("a9a_train.npz")).toarray()
        y = np.load(data_file("a9a_train_y.npy"))
    else:
        with np.load(data_file(f"{name}.npz"), allow_pickle=False) as arrays:
            X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
    return X[:, X.min(axis=0) < X.max(axis=0)], y


def score(name, X, y, split, **params):
    """Score of a private fit on four fifths of the records, on the others."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=split)
    if TARGETS[name] is None:
        model = DPLinearClassifier(classes=np.unique(y), **params).fit(X_train, y_train)
        return roc_auc_score(y_test, model.decision_function(X_test))
    model = DPLinearRegressor(target_bounds=TARGETS[name], **params).fit(X_train, y_train)
    return r2_score(y_test, model.predict(X_test))


def row(name, X, y, wide, epsilon, n_splits):
    """Medians of both ways, solver by solver."""
    lo, hi = X.min(axis=0), X.max(axis=0)
    middle, half_width = (lo + hi) / 2, wide * (hi - lo) / 2
    params = {"feature_bounds": (middle - half_width, middle + half_width), "epsilon": epsilon}
    for solver in SOLVERS:
        for scale in (None, "private"):
            params |= {"solver": solver, "feature_scale": scale}
            yield np.median([score(name, X, y, split, **params) for split in range(n_splits)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--store", action="store_true", help="replace the stored rows")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    kept = []
    print("| records | ε | width | " + " | ".join(f"{s} | private" for s in SOLVERS) + " |")
    print("|---" * (3 + 2 * len(SOLVERS)) + "|")
    for name in asked.only:
        try:
            X, y = records(name)
        except MissingDataError as missing:
            print(f"{name} is left out: {missing}")
            continue
        for epsilon in asked.epsilon:
            for wide in WIDTHS:
                scores = [float(s) for s in row(name, X, y, wide, epsilon, asked.splits)]
                cells = " | ".join(f"{s:.3f}" for s in scores)
                print(f"| {name} | {epsilon:g} | {wide} | {cells} |", flush=True)
                kept.append([name, f"{epsilon:g}", str(wide), *scores])
    if asked.store and kept:
        of_solvers = [f"{s}{way}" for s in SOLVERS for way in ("", " private")]
        store("loose_bounds", ["set", "epsilon", "width", *of_solvers], kept)


if __name__ == "__main__":
    main()
