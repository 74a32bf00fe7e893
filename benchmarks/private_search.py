"""Worth of a private search: test scores beside defaults and a counted grid search.

At the same total (epsilon, 1/n²): the estimator's defaults, one fit; PrivateSearchCV, with four
laws of the number of runs, and with refit; and a grid search by hand over the same candidates, each
of whose fits is charged. That one gets its validation scores without noise for nothing, which no
guarantee covers.
"""

import argparse
import itertools
import math
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from papers.problems import MissingDataError, data_file
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit, train_test_split

from dpcd_sklearn import DPLassoCD, DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.privacy.accounting._accounting import gdp_squared, zcdp, zcdp_epsilon
from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_epsilon

LAWS = {
    "search": "logarithmic",
    "search, shape -.5": -0.5,
    "search, geometric": "geometric",
    "search, Poisson": "poisson",
    "search, refit": "logarithmic",
}
ROWS = ("defaults", *LAWS, "counted grid")


@dataclass(frozen=True)
class Problem:
    """Records, an estimator with its public facts, and what may be chosen.

    The bounds were stated before: of counts, shares and degrees, or of how a set was made.
    """

    name: str
    X: object
    y: np.ndarray
    model: object
    grid: dict


def a9a():
    X = sp.load_npz(data_file("a9a_train.npz")).tocsr()
    y = np.load(data_file("a9a_train_y.npy"))
    # one of 14 attributes each
    model = DPLogisticGCD(classes=[-1, 1], row_norm_bound=math.sqrt(14))
    return Problem("a9a", X, y, model, {"C": [0.01, 1.0], "max_iter": ["auto", 10, 40, 600]})


def madelon():
    with np.load(data_file("madelon.npz"), allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    model = DPLogisticGCD(classes=[-1, 1], feature_bounds=(200, 800))
    return Problem("madelon", X, y, model, {"C": [0.01, 1.0], "max_iter": ["auto", 3, 10, 60]})


def california():
    with np.load(data_file("california_housing.npz"), allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    low, high = [0, 0, 0, 0, 0, 0, 32, -125], [15, 60, 20, 5, 10_000, 10, 42, -114]
    model = DPLassoCD(feature_bounds=(low, high), target_bounds=(0, 5.00001))
    return Problem("california", X, y, model, {"alpha": [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-4]})


def abalone():
    with np.load(data_file("abalone.npz"), allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    high = [1, 1, 1, 1, 1, 1.2, 3, 1.5, 1, 1.2]
    model = DPRidgeSkGD(feature_bounds=(np.zeros(10), high), target_bounds=(0, 30))
    return Problem(
        "abalone", X, y, model, {"alpha": [1e-2, 1.0, 100.0], "max_iter": ["auto", 30, 400]}
    )


PROBLEMS = {"a9a": a9a, "madelon": madelon, "california": california, "abalone": abalone}


def part_of(model, epsilon, delta, n_fits, shape):
    """The epsilon of one of so many fits, as composition allows: exact for Gaussians, else zCDP."""
    event = clone(model).set_params(epsilon=epsilon, delta=delta).planned_event(*shape)
    if (squared := gdp_squared(event)) is not None:
        return gdp_epsilon(math.sqrt(squared / n_fits), delta)
    return zcdp_epsilon(zcdp(event) / n_fits, delta)


def counted_grid(problem, X, y, epsilon, delta, seed):
    """A grid search by hand: every fit and the refit charged, scores without noise for nothing."""
    candidates = [
        dict(zip(problem.grid, values, strict=True))
        for values in itertools.product(*problem.grid.values())
    ]
    part = part_of(problem.model, epsilon, delta, len(candidates) + 1, X.shape)
    model = clone(problem.model).set_params(epsilon=part, delta=delta)
    ((train, test),) = ShuffleSplit(1, test_size=0.25, random_state=seed).split(X)
    scores = [
        clone(model).set_params(**c).fit(X[train], y[train]).score(X[test], y[test])
        for c in candidates
    ]
    return clone(model).set_params(**candidates[int(np.argmax(scores))]).fit(X, y)


def fitted(row, problem, X, y, epsilon, seed):
    delta = 1.0 / len(y) ** 2
    model = clone(problem.model).set_params(epsilon=epsilon, delta=delta)
    if row == "defaults":
        return model.fit(X, y)
    if row == "counted grid":
        return counted_grid(problem, X, y, epsilon, delta, seed)
    search = PrivateSearchCV(model, problem.grid, epsilon=epsilon, delta=delta, random_state=seed)
    search.set_params(distribution=LAWS[row], refit=row == "search, refit")
    return search.fit(X, y)


def without_privacy(problem, X_train, X_test, y_train, y_test):
    """The best of the grid without noise, by the test score itself."""
    scores = []
    for values in itertools.product(*problem.grid.values()):
        params = dict(zip(problem.grid, values, strict=True)) | {"max_iter": 400}
        model = clone(problem.model).set_params(**params, epsilon=math.inf)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not all of them meet their tolerance
            scores.append(model.fit(X_train, y_train).score(X_test, y_test))
    return max(scores)


def measure(problem, epsilons, seeds):
    """Test scores by row and epsilon, and that without privacy."""
    found = {(row, epsilon): [] for row in ROWS for epsilon in epsilons}
    best = []
    for seed in range(seeds):
        split = train_test_split(problem.X, problem.y, test_size=0.2, random_state=seed)
        X_train, X_test, y_train, y_test = split
        best.append(without_privacy(problem, *split))
        for row, epsilon in found:
            model = fitted(row, problem, X_train, y_train, epsilon, seed)
            # a search may end without a model (Poisson: once in 22,000): nothing is worth nothing
            missing = getattr(model, "best_estimator_", model) is None
            found[row, epsilon].append(0.0 if missing else model.score(X_test, y_test))
    return found, float(np.median(best))


def print_table(problem, found, best, epsilons):
    n, p = problem.X.shape
    name, n_candidates = type(problem.model).__name__, math.prod(map(len, problem.grid.values()))
    print(f"\n{problem.name}: n = {n:,}, p = {p}, {name}, {n_candidates} candidates")
    print(f"{'test score: median (least, largest)':<36}" + "".join(f"{e:>26g}" for e in epsilons))
    for row in ROWS:
        cells = [found[row, epsilon] for epsilon in epsilons]
        texts = [f"{np.median(c):.3f} ({min(c):.3f}, {max(c):.3f})" for c in cells]
        print(f"{row:<36}" + "".join(f"{text:>26}" for text in texts))
    print(f"{'without privacy, best of the grid':<36}{best:>26.3f}")


def save(measured, epsilons, folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(measured), figsize=(3.2 * len(measured), 3.2), squeeze=False)
    for axis, (name, (found, best)) in zip(axes[0], measured.items(), strict=True):
        for k, row in enumerate(ROWS):
            x = np.arange(len(epsilons)) + 0.1 * (k - len(ROWS) // 2)
            cells = [found[row, epsilon] for epsilon in epsilons]
            middle = np.array([np.median(cell) for cell in cells])
            ends = np.abs(np.array([[min(c) for c in cells], [max(c) for c in cells]]) - middle)
            axis.errorbar(x, middle, ends, fmt="o", capsize=3, color=f"C{k}", label=row)
        axis.axhline(best, color="black", linestyle="--", linewidth=1, label="without privacy")
        axis.set(title=name, xticks=range(len(epsilons)), xticklabels=[f"{e:g}" for e in epsilons])
        axis.set_xlabel("total epsilon")
    axes[0, 0].set_ylabel("test score")
    axes[0, -1].legend(fontsize=7)
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "private_search.png"
    figure.savefig(path, dpi=150)
    return path


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="madelon, two seeds, epsilon = 1")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--epsilons", nargs="*", type=float, default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=7, help="of splits; noise is new in every fit")
    parser.add_argument("--plots", type=Path, help="folder for the figure; none without it")
    options = parser.parse_args(arguments)
    if options.quick:
        options.problems, options.epsilons, options.seeds = ["madelon"], [1.0], 2
    warnings.simplefilter("ignore", FewRecordsWarning)  # of shares of a budget that is compared
    warnings.filterwarnings("ignore", message="each of .* candidates")
    start, measured = time.perf_counter(), {}
    for name in options.problems:
        try:
            problem = PROBLEMS[name]()
        except MissingDataError as error:
            print(f"\n{name} is left out: {error}")
            continue
        measured[name] = measure(problem, options.epsilons, options.seeds)
        print_table(problem, *measured[name], options.epsilons)
    if options.plots and measured:
        print(f"\n{save(measured, options.epsilons, options.plots)}")
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
