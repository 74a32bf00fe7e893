"""Search privately, and put what comes out beside what a user could do instead.

    OMP_NUM_THREADS=1 python benchmarks/search.py            # compare with search.csv
    OMP_NUM_THREADS=1 python benchmarks/search.py --store    # and replace its rows

R² of test records at one total (epsilon, 1e-6), of ``DPLassoCD`` within stated bounds: one fit of
``DPLinearRegressor`` with its defaults; "best", the candidate with the best median of test scores
at the whole budget, which no honest user knows; a candidate drawn blindly, with the whole budget;
``PrivateSearchCV`` with its defaults, and with the logarithmic law of ten runs. A row has the
median and the worst of 50, or nan where the search is refused. Splits are seeded, noise is new in
each fit.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from papers_problems import MissingDataError
from private_search import california
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPLassoCD, DPLinearRegressor
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.model_selection import PrivateSearchCV

STORED = Path(__file__).with_suffix(".csv")
COLUMNS = ("set", "grid", "epsilon", "way", "median", "worst")
EPSILONS = (0.3, 1.0, 3.0)
DELTA = 1e-6
GRIDS = {
    "fine": {"alpha": [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]},
    "absurd values": {"alpha": [1e-5, 1e-3, 1e-2, 0.1, 1.0, 100.0]},
}


def simulated(n, p, n_relevant):
    """Columns in [-1, 1], targets within bounds of three standard deviations, R² of .7 at best."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p))
    signal = X[:, :n_relevant] @ rng.choice([-1.0, 1.0], n_relevant)
    scale = (n_relevant / 3) ** 0.5
    y = signal + scale * (3 / 7) ** 0.5 * rng.normal(size=n)
    bound = 3 * scale * (10 / 7) ** 0.5
    return X, y, DPLassoCD(feature_bounds=(-1, 1), target_bounds=(-bound, bound))


def housing():
    problem = california()
    return problem.X, problem.y, problem.model


SETS = {
    "California housing": housing,
    "10,000 x 50": lambda: simulated(10_000, 50, 50),
    "4,000 x 40, 4 relevant": lambda: simulated(4_000, 40, 4),
}


def scores(X, y, model, grid, epsilon, repeat):
    """R² of each way, by repetition."""
    ((name, values),) = grid.items()
    model = clone(model).set_params(epsilon=epsilon, delta=DELTA)
    bounds = {key: getattr(model, key) for key in ("feature_bounds", "target_bounds")}
    default = DPLinearRegressor(epsilon=epsilon, delta=DELTA, **bounds)
    ways = {
        "search": PrivateSearchCV(model, grid, epsilon=epsilon, delta=DELTA),
        "logarithmic": PrivateSearchCV(
            model, grid, epsilon=epsilon, delta=DELTA, distribution="logarithmic", n_iter=10
        ),
    }
    found = {"default": []} | {way: [] for way in ways}
    candidates, rng = [], np.random.default_rng(0)
    for seed in range(repeat):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)

        def score(fitted, train=(X_train, y_train), test=(X_test, y_test)):
            return clone(fitted).fit(*train).score(*test)

        found["default"].append(score(default))
        for way, search in ways.items():
            try:
                found[way].append(score(search.set_params(random_state=seed)))
            except ValueError as refusal:  # of the plan: of all searches or of none
                print(f"refused: {refusal}")
                found[way].append(np.nan)
        candidates.append([score(clone(model).set_params(**{name: v})) for v in values])
    candidates = np.array(candidates)
    found["best"] = candidates[:, np.argmax(np.median(candidates, axis=0))]
    found["blind"] = candidates[np.arange(repeat), rng.integers(len(values), size=repeat)]
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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="replace the stored rows by these")
    parser.add_argument("--only", default="", help="sets with this in their name")
    parser.add_argument("--grid", default="", help="grids with this in their name")
    parser.add_argument("--repeat", type=int, default=50)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore", FewRecordsWarning)
    warnings.filterwarnings("ignore", "each of 6 candidates")
    old, new = stored(), {}
    for name, load in SETS.items():
        if asked.only not in name:
            continue
        try:
            problem = load()
        except MissingDataError as missing:
            print(f"{name} is left out: {missing}")
            continue
        for grid in (g for g in GRIDS if asked.grid in g):
            for epsilon in EPSILONS:
                found = scores(*problem, GRIDS[grid], epsilon, asked.repeat)
                for way, values in found.items():
                    key = name, grid, epsilon, way
                    new[key] = float(np.median(values)), float(np.min(values))
                    text = "{:.3f}, {:.3f}".format(*new[key])
                    before = "before {:.3f}, {:.3f}".format(*old[key]) if key in old else ""
                    print(
                        f"{name:<24}{grid:<15}{epsilon:>4g}  {way:<8} {text}  {before}", flush=True
                    )
    if asked.store:
        store(stored() | new)


if __name__ == "__main__":
    main()
