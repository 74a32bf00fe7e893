"""The papers' own problems: their numbers beside ours, and their figures with our solvers."""

import argparse
import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from papers_problems import REAL, MissingDataError
from papers_settings import SOLVERS, TUNED, grid_of

from dpcd_sklearn.exceptions import PrivacyLeakWarning

RUNS = 10
_TUNING_SEEDS = 1000  # the first of the seeds that settings are tuned on


def gaps(problem, settings, seeds):
    """Relative gaps of one fit a seed, each of them (1, 1/n^2)-private."""
    with warnings.catch_warnings():
        # the data are public, and whoever runs this again should see the same table
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return [
            problem.gap(
                problem.model(**settings, random_state=seed)
                .fit(problem.X, problem.y)
                .coef_.reshape(-1)
            )
            for seed in seeds
        ]


# ---- tuning ----------------------------------------------------------------------------------


def draw(grid, count):
    """So many different points of a grid, all of it if it has no more."""
    rng = np.random.default_rng(0)
    sizes = [len(values) for values in grid.values()]
    chosen = rng.permutation(np.prod(sizes))[:count]
    places = np.array(np.unravel_index(chosen, sizes)).T
    return [
        {name: values[k] for (name, values), k in zip(grid.items(), place, strict=True)}
        for place in places
    ]


def tune(problem, row, count, jobs=-1):
    """The best of `count` points of a row's grid: three fits for each, fifteen for the best."""

    def mean_gap(point, seeds):
        seeds = range(_TUNING_SEEDS + seeds.start, _TUNING_SEEDS + seeds.stop)
        try:
            return float(np.mean(gaps(problem, SOLVERS[row] | point, seeds)))
        except ValueError:  # a point that the estimator refuses
            return np.inf

    _ = problem.optimum, problem.scale
    points = draw(grid_of(row), count)
    parallel = Parallel(n_jobs=jobs)
    scores = parallel(delayed(mean_gap)(point, range(3)) for point in points)
    points = [points[k] for k in np.argsort(scores)[: max(1, count // 10)]]
    scores = parallel(delayed(mean_gap)(point, range(3, 18)) for point in points)
    best = int(np.argmin(scores))
    return points[best], scores[best]


def print_tuned(names, rows, count):
    for name in names:
        try:
            problem = REAL[name]()
        except MissingDataError as error:
            print(f"{name}: {error}")
            continue
        for row in rows:
            start = time.perf_counter()
            point, score = tune(problem, row, count)
            seconds = time.perf_counter() - start
            print(f"{name} {row!r}: {point},  # {score:.3g}, {seconds:.0f} s", flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--problems", nargs="*", default=list(REAL))
    parser.add_argument("--rows", nargs="*", default=list(SOLVERS))
    parser.add_argument("--candidates", type=int, default=300)
    options = parser.parse_args(arguments)
    print_tuned(options.problems, options.rows, options.candidates)


if __name__ == "__main__":
    main()
