"""Search privately, and put what comes out beside what a user could do instead.

    OMP_NUM_THREADS=1 python benchmarks/search.py            # compare with search.csv
    OMP_NUM_THREADS=1 python benchmarks/search.py --store    # and replace its rows

R² of test records (of classes minus the log loss) at one total (epsilon, 1e-6), within stated
bounds, of

- default: one fit with the defaults of the generic estimator,
- search: ``PrivateSearchCV`` with its defaults, which is one fit where candidates differ in their
  penalty alone, or where the budget is too small to compare them,
- same releases: of these fits the candidate that is best by the test records,
- runs: ``PrivateSearchCV`` with a stated score, which fits and scores every candidate,
- blind: a candidate drawn blindly, with the whole budget,
- best: the candidate with the best median of test scores, with the whole budget, which no honest
  user knows.

A row has the median and the worst of 20 (of 10 on census), or nan where there is none. Splits are
seeded, noise is new in each fit. "loss" is the search's score less the default's, by repetition;
"gap" is its score less that of the best of the same releases.
"""

import argparse
import csv
import itertools
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
from papers.problems import MissingDataError, data_file
from private_search import abalone, california
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, DPLogisticGCD
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPQuantileTransformer, DPStandardScaler

STORED = Path(__file__).with_suffix(".csv")
COLUMNS = ("set", "grid", "epsilon", "way", "median", "worst")
EPSILONS = (0.3, 1.0, 3.0)
DELTA = 1e-6
ALPHAS = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
ABSURD = [1e-5, 1e-3, 1e-2, 0.1, 1.0, 100.0]
GRIDS = {
    "fine": {"penalty": ["l1"], "alpha": ALPHAS},
    "absurd values": {"penalty": ["l1"], "alpha": ABSURD},
    "kinds of penalty": {"penalty": ["l1", "l2", "elasticnet"], "alpha": ABSURD},
    "solvers": {"solver": ["newton", "skgd", "cd"]},
}
# Steps before the model, and the grid that is searched.
BEFORE = {
    "products": (
        [PolynomialFeatures(include_bias=False)],
        {
            "polynomialfeatures__degree": [1, 2],
            "polynomialfeatures__interaction_only": [True, False],
        },
    ),
    "columns": (
        [ColumnTransformer([("kept", "passthrough", slice(0, 200))], sparse_threshold=0)],
        {
            "columntransformer__transformers": [
                [("kept", "passthrough", slice(0, most))] for most in (4, 8, 20, 200)
            ]
        },
    ),
    "preprocessing": (
        ["passthrough"],
        {"passthrough": [DPStandardScaler(), DPQuantileTransformer(), "passthrough"]},
    ),
}
MOST = 30  # columns of which products are made
OF_CLASSES = {"absurd values": {"C": [1e-6, 1e-4, 1e-2, 1.0, 100.0]}}


def simulated(n, p, n_relevant):
    """Columns in [-1, 1], targets within bounds of three standard deviations, R² of .7 at best."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p))
    signal = X[:, :n_relevant] @ rng.choice([-1.0, 1.0], n_relevant)
    scale = (n_relevant / 3) ** 0.5
    y = signal + scale * (3 / 7) ** 0.5 * rng.normal(size=n)
    bound = 3 * scale * (10 / 7) ** 0.5
    return X, y, {"feature_bounds": (-1, 1), "target_bounds": (-bound, bound)}


def real(problem):
    names = ("feature_bounds", "target_bounds")
    return problem.X, problem.y, {name: getattr(problem.model, name) for name in names}


def census():
    """a9a: 32,561 persons, 123 indicators."""
    parts = sparse.load_npz(data_file("a9a_train.npz")), np.load(data_file("a9a_train_y.npy"))
    return parts[0].toarray(), parts[1], {"feature_bounds": (0, 1), "classes": [-1, 1]}


SETS = {
    "California housing": lambda: real(california()),
    "abalone": lambda: real(abalone()),
    "10,000 x 50": lambda: simulated(10_000, 50, 50),
    "4,000 x 40, 4 relevant": lambda: simulated(4_000, 40, 4),
    "10,000 x 100, 5 relevant": lambda: simulated(10_000, 100, 5),
    "census": census,
}


def candidates_of(grid):
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def score_of(model, X, y):
    """R², or minus the log loss."""
    if is_regressor(model):
        return model.score(X, y)
    return -log_loss(y, model.predict_proba(X))


def best_of_the_same(model, X, y):
    """The best score along the path of strengths, by the test records."""
    if (path := getattr(model, "strength_path_", None)) is None:  # of a pipeline too
        return np.nan
    found, one = [], deepcopy(model)
    for coef, intercept in zip(path["coef"], path["intercept"], strict=True):
        one._set_coef(coef, intercept)
        found.append(score_of(one, X, y))
    return max(found)


def searched(grid, stated, default):
    """The estimator that is searched, and its grid."""
    if grid in BEFORE:
        steps, values = BEFORE[grid]
        model = clone(default).set_params(feature_bounds=None)
        scaler = BoundsScaler(stated["feature_bounds"])
        return make_private_pipeline(scaler, *steps, model), values
    if "classes" in stated:
        return DPLogisticGCD(**stated), OF_CLASSES[grid]
    return clone(default), GRIDS[grid]


def scores(X, y, stated, grid, epsilon, repeat):
    """Scores of each way, by repetition."""
    budget = {"epsilon": epsilon, "delta": DELTA}
    of_classes = "classes" in stated
    default = (DPLinearClassifier if of_classes else DPLinearRegressor)(**stated)
    model, grid = searched(grid, stated, default)
    scoring = "neg_log_loss" if of_classes else "r2"
    search = PrivateSearchCV(model, grid, **budget)
    runs = PrivateSearchCV(model, grid, scoring=scoring, **budget)
    found, candidates = {"default": [], "search": [], "same releases": [], "runs": []}, []
    rng = np.random.default_rng(0)
    for seed in range(repeat):
        X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)

        def score(fitted, train=(X_fit, y_fit), test=(X_test, y_test)):
            fitted = clone(fitted).fit(*train)
            best = getattr(fitted, "best_estimator_", fitted)
            return np.nan if best is None else score_of(best, *test), best

        found["default"].append(score(clone(default).set_params(**budget))[0])
        own, best = score(search.set_params(random_state=seed))
        found["search"].append(own)
        found["same releases"].append(best_of_the_same(best, X_test, y_test))
        found["runs"].append(score(runs.set_params(random_state=seed))[0])
        each = [clone(model).set_params(**budget, **params) for params in candidates_of(grid)]
        candidates.append([score(one)[0] for one in each])
    candidates = np.array(candidates)
    found["best"] = candidates[:, np.argmax(np.median(candidates, axis=0))]
    found["blind"] = candidates[np.arange(repeat), rng.integers(candidates.shape[1], size=repeat)]
    found["loss"] = np.subtract(found["search"], found["default"])
    if not np.isnan(found["same releases"]).all():
        found["gap"] = np.subtract(found["search"], found["same releases"])
    return found


def stored():
    if not STORED.exists():
        return {}
    with STORED.open(newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    return {
        (s, g, float(e), w): (float(median), float(worst)) for s, g, e, w, median, worst in rows
    }


def store(rows):
    with STORED.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for key, values in sorted(rows.items()):
            writer.writerow([key[0], key[1], f"{key[2]:g}", key[3], *(f"{v:.4f}" for v in values)])


def table():
    """The stored rows as the page has them: median (worst) of each way."""
    ways = ("default", "search", "runs", "blind", "best")
    print(f"| set | grid | ε | {' | '.join(ways)} |\n|{'---|' * (3 + len(ways))}")
    rows = stored()
    for name, grid, epsilon in dict.fromkeys(key[:3] for key in rows):
        cells = ["{:.3f} ({:.3f})".format(*rows[name, grid, epsilon, way]) for way in ways]
        print(f"| {name} | {grid} | {epsilon:g} | {' | '.join(cells)} |")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="replace the stored rows by these")
    parser.add_argument("--only", default="", help="sets with this in their name")
    parser.add_argument("--grid", default="", help="grids with this in their name")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--table", action="store_true", help="only print the stored rows")
    asked = parser.parse_args(arguments)
    if asked.table:
        return table()
    warnings.simplefilter("ignore", FewRecordsWarning)
    warnings.filterwarnings("ignore", ".*too few (for a choice|to compare)")
    old, new = stored(), {}
    for name, load in SETS.items():
        if asked.only not in name:
            continue
        try:
            problem = load()
        except MissingDataError as missing:
            print(f"{name} is left out: {missing}")
            continue
        grids = OF_CLASSES if "classes" in problem[2] else GRIDS | BEFORE
        for grid in (g for g in grids if asked.grid in g):
            if grid == "products" and problem[0].shape[1] > MOST:
                continue
            for epsilon in EPSILONS:
                found = scores(*problem, grid, epsilon, asked.repeat)
                for way, values in found.items():
                    key = name, grid, epsilon, way
                    new[key] = float(np.median(values)), float(np.min(values))
                    text = "{:.3f}, {:.3f}".format(*new[key])
                    before = "before {:.3f}, {:.3f}".format(*old[key]) if key in old else ""
                    print(
                        f"{name:<24}{grid:<15}{epsilon:>4g}  {way:<13} {text}  {before}", flush=True
                    )
    if asked.store:
        store(stored() | new)
    return None


if __name__ == "__main__":
    main()
