"""The papers' own problems: their numbers beside ours, and their figures with our solvers."""

import argparse
import platform
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np
from joblib import Parallel, delayed
from papers import figures
from papers.problems import REAL, SYNTHETIC, MissingDataError
from papers.settings import FIGURES, GIVEN_RADIUS, GOALS, PAPERS, SOLVERS, TUNED, fixed_of, grid_of

import dpcd_sklearn
from dpcd_sklearn.exceptions import PrivacyLeakWarning
from dpcd_sklearn.testing import ReproducibleNoise

RUNS = 10
CURVE_RUNS = 5
_TUNING_SEEDS = 1000  # the first of the seeds that settings are tuned on


def gaps(problem, settings, seeds):
    """Relative gaps of one fit a seed, each of them (1, 1/n^2)-private."""
    with warnings.catch_warnings():
        # the data are public, and whoever runs this again should see the same table
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return [
            problem.gap(
                problem.model(**settings, random_state=ReproducibleNoise(seed))
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


def tune(problem, row, count, jobs):
    """The best of `count` points of a row's grid: three fits for each, fifteen for the best."""

    def mean_gap(point, seeds):
        seeds = range(_TUNING_SEEDS + seeds.start, _TUNING_SEEDS + seeds.stop)
        try:
            return float(np.mean(gaps(problem, fixed_of(row) | point, seeds)))
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


def print_tuned(names, rows, count, jobs):
    for name in names:
        try:
            problem = (REAL | SYNTHETIC)[name]()
        except MissingDataError as error:
            print(f"{name}: {error}")
            continue
        for row in rows:
            start = time.perf_counter()
            point, score = tune(problem, row, count, jobs)
            seconds = time.perf_counter() - start
            print(f"{name} {row!r}: {point},  # {score:.3g}, {seconds:.0f} s", flush=True)


# ---- the tables ------------------------------------------------------------------------------


def print_environment():
    versions = {"Python": platform.python_version()} | {
        package: version(package) for package in ("numpy", "scipy", "scikit-learn", "joblib")
    }
    print(f"dpcd_sklearn {dpcd_sklearn.__version__};", end=" ")
    print(", ".join(f"{name} {number}" for name, number in versions.items()))
    print(f"{platform.system()} {platform.machine()}, {joblib.cpu_count()} cores")


def print_optimum(problem):
    """f* of scikit-learn beside what was stated, and beside our own solver without noise."""
    n, p = problem.X.shape
    print(f"\n{problem.name}: n = {n:,}, p = {p:,}, {problem.loss} loss, ", end="")
    print(f"{problem.penalty}, alpha = {problem.alpha:g}; epsilon = 1, delta = {1 / n**2:.2g}")
    print(f"f* = {problem.optimum:.8f} by scikit-learn ({problem.stated:.8f} stated", end="")
    if abs(problem.optimum - problem.stated) > 1e-7:
        raise SystemExit("): these are not the papers' data")
    if n * p < 1e7:
        exact = problem.model(solver="cd", epsilon=float("inf"), tol=1e-8)
        coef = exact.fit(problem.X, problem.y).coef_.reshape(-1)
        print(f"; {problem.objective(coef):.8f} by DP-CD, epsilon = inf", end="")
    zero = problem.gap(np.zeros(p))
    print(f"); relative gap of w = 0: {zero:.3g}\n")


def print_table(problem, rows, runs):
    """A row for each solver that has settings; returns the mean gaps."""
    name, means = problem.name, {}
    head = f"{'solver':17} {'paper':>8} {'goal':>8} {'ours':>8} {'min':>8} {'max':>8} {'s/fit':>7}"
    print(head, "", sep="\n")
    for row in rows:
        if row not in TUNED[name]:
            continue
        start = time.perf_counter()
        found = gaps(problem, SOLVERS[row] | TUNED[name][row], range(runs))
        seconds = (time.perf_counter() - start) / runs
        means[row] = float(np.mean(found))
        goal = GOALS[name].get("greedy") if "GCD" in row else None
        known = [f"{x:8.2g}" if x else " " * 8 for x in (PAPERS[name].get(row), goal)]
        ours = [f"{x:8.2g}" for x in (means[row], min(found), max(found))]
        print(f"{row:17} {' '.join(known + ours)} {seconds:7.3f}", flush=True)
    return means


def print_verdict(problem, means):
    """The goals, and whether the means meet them."""
    means = {row: mean for row, mean in means.items() if row not in GIVEN_RADIUS}
    greedy = {row: mean for row, mean in means.items() if "GCD" in row}
    for kind, rows in (("best", means), ("greedy", greedy)):
        goal = GOALS[problem.name].get(kind)
        if goal and rows:
            row = min(rows, key=rows.get)
            verdict = "met" if rows[row] <= goal else "missed"
            print(f"goal, {kind}: {goal:.2g}; {row}: {rows[row]:.2g}, {verdict}")


def print_tables(names, rows, runs):
    print(
        f"\nRelative gap (f(w) - f*) / f* of the training objective: mean of {runs} private fits,"
    )
    print(
        "settings tuned on it as in the papers, which is not paid for. Frank-Wolfe and DP-CompGD,"
    )
    print("which have no proximal step, are given the l1 ball that the optimum lies on.")
    for name in names:
        try:
            problem = REAL[name]()
        except MissingDataError as error:
            print(f"\n{name} is left out: {error}")
            continue
        print_optimum(problem)
        print_verdict(problem, print_table(problem, rows, runs))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two runs, California")
    parser.add_argument("--tune", action="store_true", help="search the grids; no tables")
    parser.add_argument("--candidates", type=int, default=200, help="points of a grid, for --tune")
    parser.add_argument("--problems", nargs="*", help="names; all by default")
    parser.add_argument("--rows", nargs="*", default=list(SOLVERS), help="solvers of the tables")
    parser.add_argument("--plots", type=Path, help="folder for the figures; none without it")
    parser.add_argument("--jobs", type=int, default=-1, help="processes for --tune and figures")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    print_environment()
    if options.tune:
        print_tuned(options.problems or REAL, options.rows, options.candidates, options.jobs)
    else:
        runs = 2 if options.quick else RUNS
        names = options.problems or (["california"] if options.quick else list(REAL))
        print_tables(names, options.rows, runs)
        if options.plots:
            names = ["greedy"] if options.quick else list(FIGURES)  # the other takes a minute
            print_figures(names, options.plots, 2 if options.quick else CURVE_RUNS, options.jobs)
    print(f"\n{time.perf_counter() - start:.0f} s in all")


def print_figures(names, folder, runs, jobs):
    for figure in names:
        measured = figures.measure(figure, runs, jobs)
        figures.print_ends(figure, measured, runs)
        path = figures.save(figure, measured, folder)
        print(f"\n{path}" if path else "")


if __name__ == "__main__":
    main()
