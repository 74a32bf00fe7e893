"""Default fits on raw data: nothing is stated but epsilon.

    python benchmarks/defaults.py [--quick] [--seeds 10] [--sets NAME ...] [--oracle]
                                  [--diffprivlib PYTHON] [--store]

Test scores (R²; accuracy and AUC), medians over random splits of 80 to 20, the worst of them
beside; δ = 1/n². "gap" is that to the plain model on the same split, of the worst seed over that of
the median one. With --oracle the best of a grid over clip and time, chosen by the test score
itself, which no honest user has. --diffprivlib names an interpreter of an environment that has
diffprivlib, with a scikit-learn that it imports under; its models are told nothing either.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from papers.problems import MissingDataError, data_file, store
from reproduce_papers import print_environment
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, DPLogisticGCD
from dpcd_sklearn.exceptions import UnknownScaleWarning

# Aims by epsilon: R², or accuracy and AUC.
GOALS = {
    ("california_housing", 0.1): (0.62,),
    ("california_housing", 1.0): (0.65,),
    ("diamonds", 0.1): (0.87,),
    ("diamonds", 1.0): (0.90,),
    ("beijing_pm25", 0.1): (0.235,),
    ("beijing_pm25", 1.0): (0.285,),
    ("a9a", 0.1): (0.830, 0.873),
    ("a9a", 1.0): (0.849, 0.900),
    ("w8a", 0.1): (None, 0.75),
    ("w8a", 1.0): (None, 0.92),
    ("farm_ads", 0.1): (0.60, 0.65),
    ("farm_ads", 1.0): (0.78, 0.89),
    ("breast_cancer, wide bounds", 1.0): (0.90, 0.99),
    ("digits, wide bounds", 1.0): (0.80,),
    ("digits, wide bounds", 3.0): (0.91,),
    ("digits, wide bounds", 10.0): (0.95,),
    ("madelon, wide bounds", 1.0): (0.62, 0.63),
}


# ---- the data ----------------------------------------------------------------------------------


def regression(name):
    with np.load(data_file(f"{name}.npz"), allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64)
    return X[:, ~np.isnan(X).any(axis=0)], y


def text(name, file):
    X = sparse.load_npz(data_file(f"{file}.npz")).tocsr().astype(np.float64)
    return X, np.load(data_file(f"{file}_y.npy"))


def a9a(seed):
    """It has a test set of its own."""
    (X, y), (X_test, y_test) = (text("a9a", f"a9a_{part}") for part in ("train", "test"))
    return X, X_test, y, y_test


def madelon():
    with np.load(data_file("madelon.npz"), allow_pickle=False) as arrays:
        return arrays["X"].astype(np.float64), arrays["y"]


def in_wide_bounds(X):
    """Bounds of the features that are twice too wide, as public knowledge often is."""
    lo, hi = X.min(axis=0), X.max(axis=0)
    spare = (hi - lo) / 2
    return lo - spare, hi + spare


def split(load, seed):
    X, y = load()
    return train_test_split(X, y, test_size=0.2, random_state=seed)


SETS = {
    name: (partial(split, partial(regression, name)), DPLinearRegressor, False)
    for name in ("california_housing", "diamonds", "beijing_pm25", "abalone", "communities_crime")
}
SETS |= {
    "a9a": (a9a, DPLinearClassifier, False),
    "w8a": (partial(split, partial(text, "w8a", "w8a_train")), DPLinearClassifier, False),
    "farm_ads": (partial(split, partial(text, "farm_ads", "farm_ads")), DPLinearClassifier, False),
    "breast_cancer, wide bounds": (
        partial(split, partial(load_breast_cancer, return_X_y=True)), DPLinearClassifier, True,
    ),
    "digits, wide bounds": (
        partial(split, partial(load_digits, return_X_y=True)), DPLinearClassifier, True,
    ),
    "madelon, wide bounds": (partial(split, madelon), DPLogisticGCD, True),
}  # fmt: skip
OWN_EPSILONS = {"digits, wide bounds": (1.0, 3.0, 10.0)}
CLIPS, TIMES = (0.3, 1.0, 3.0), (0.2, 1.0, 5.0)


# ---- scores ------------------------------------------------------------------------------------


def scores(model, X, y):
    """R², or accuracy and, of two classes, AUC."""
    score = model.score(X, y)
    if not hasattr(model, "classes_") or len(model.classes_) > 2:
        return (score,)
    return score, roc_auc_score(y, model.decision_function(X))


def plain(kind):
    if kind is DPLinearRegressor:
        return LinearRegression()
    return make_pipeline(MaxAbsScaler(), LogisticRegression(max_iter=1000))


def private(kind, X, y, epsilon, wide, **others):
    stated = {"feature_bounds": in_wide_bounds(X)} if wide else {}
    if kind is not DPLinearRegressor:
        stated["classes"] = np.unique(y)
    return kind(epsilon=epsilon, **stated, **others)


def oracle(kind, data, epsilon, wide):
    """The best test score over a grid around the defaults."""
    X, X_test, y, y_test = data
    default = private(kind, X, y, epsilon, wide).fit(X, y)
    passes = default.n_iter_ if kind is not DPLogisticGCD else default.n_iter_ / X.shape[1]
    grid = [{"clip": c * default.clip_, "max_iter": t * passes} for c in CLIPS for t in TIMES]
    found = [private(kind, X, y, epsilon, wide, **at).fit(X, y) for at in grid]
    return max(scores(model, X_test, y_test) for model in found)


PEER = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib.models import LinearRegression, LogisticRegression
folder, epsilon, is_regression = sys.argv[1], float(sys.argv[2]), sys.argv[3] == "1"
with np.load(folder) as data:
    X, X_test, y, y_test = (data[name] for name in ("X", "X_test", "y", "y_test"))
model = (LinearRegression if is_regression else LogisticRegression)(epsilon=epsilon)
print(model.fit(X, y).score(X_test, y_test))
"""


def peer(python, kind, data, epsilon):
    """diffprivlib's score at pure epsilon, of dense data only."""
    if sparse.issparse(data[0]):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.npz")
        np.savez(path, **dict(zip(("X", "X_test", "y", "y_test"), data, strict=True)))
        which = str(int(kind is DPLinearRegressor))
        command = [python, "-c", PEER, str(path), str(epsilon), which]
        done = subprocess.run(command, capture_output=True, encoding="utf-8")
    return float(done.stdout) if done.returncode == 0 else None


# ---- the table ---------------------------------------------------------------------------------


def shown(values):
    return "/".join("-" if value is None else f"{value:.3f}" for value in values)


def row(name, epsilon, options):
    load, kind, wide = SETS[name]
    ours, without, tuned, peers, seconds = [], [], [], [], []
    for seed in range(options.seeds):
        data = X, X_test, y, y_test = load(seed)
        start = time.perf_counter()
        model = private(kind, X, y, epsilon, wide).fit(X, y)
        seconds.append(time.perf_counter() - start)
        ours.append(scores(model, X_test, y_test))
        without.append(scores(plain(kind).fit(X, y), X_test, y_test))
        if options.oracle:
            tuned.append(oracle(kind, data, epsilon, wide))
        if options.diffprivlib is not None:
            found = peer(options.diffprivlib, kind, data, epsilon)
            peers += [] if found is None else [found]
    gaps = np.array(without)[:, 0] - np.array(ours)[:, 0]
    goal = GOALS.get((name, epsilon))
    print(
        f"{name:<27} {epsilon:>5g}  {shown(np.median(ours, axis=0)):>13}"
        f" {shown(np.min(ours, axis=0)):>13} {shown(np.median(without, axis=0)):>13}"
        f" {'' if goal is None else shown(goal):>13} {gaps.max() - np.median(gaps):>6.3f}"
        + (f" {shown(np.median(tuned, axis=0)):>13}" if tuned else "")
        + (f" {np.median(peers):>11.3g}" if peers else "")
        + f" {np.median(seconds):>8.2f}",
        flush=True,
    )
    measures = [np.median(ours, axis=0), np.min(ours, axis=0), np.median(without, axis=0)]
    names = ("R²",) if kind is DPLinearRegressor else ("accuracy", "AUC")
    found = zip(names, zip(*measures, strict=True), strict=False)  # no AUC of ten classes
    return [[name, score, f"{epsilon:g}", *map(float, cells)] for score, cells in found]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two seeds")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 3.0])
    parser.add_argument("--oracle", action="store_true")
    parser.add_argument("--diffprivlib", metavar="PYTHON")
    parser.add_argument("--store", action="store_true", help="replace the stored rows")
    options = parser.parse_args(arguments)
    options.seeds = 2 if options.quick else options.seeds
    print_environment()
    print(f"Default fits, medians of {options.seeds} splits; delta = 1/n^2\n")
    print(
        f"{'data set':<27} {'eps':>5}  {'ours':>13} {'worst':>13} {'plain':>13} {'goal':>13}"
        f" {'gap':>6}"
        + (f" {'oracle':>13}" if options.oracle else "")
        + (f" {'diffprivlib':>11}" if options.diffprivlib else "")
        + f" {'s/fit':>8}"
    )
    warnings.simplefilter("ignore", UnknownScaleWarning)
    kept = []
    for name in options.sets:
        epsilons = OWN_EPSILONS.get(name, options.epsilons)
        try:
            for epsilon in epsilons:
                kept += row(name, epsilon, options)
        except MissingDataError as error:
            print(f"{name} is left out: {error}")
    if options.store and kept:
        columns = ["set", "score", "epsilon", "median", "worst", "without privacy"]
        store("defaults", columns, kept)


if __name__ == "__main__":
    main(sys.argv[1:])
