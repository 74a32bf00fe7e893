"""The papers' figures, redrawn: relative gap against passes over the records."""

import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from dpcd_sklearn.exceptions import PrivacyLeakWarning
from dpcd_sklearn.testing import ReproducibleNoise

from .problems import SYNTHETIC
from .settings import FIGURES, TUNED, fixed_of

# Colours of Okabe and Ito, told apart by everybody; the dashes tell them apart in print.
STYLES = {
    "plain DP-SGD": ("#D55E00", "--"),
    "DP-CD": ("#0072B2", "-"),
    "DP-SkGD": ("#009E73", "-."),
    "DP-GCD": ("#CC79A7", "-"),
}


class Curve(NamedTuple):
    """One solver on one problem: `gaps` has a row for each run."""

    name: str
    passes: np.ndarray
    gaps: np.ndarray


def path_of(problem, settings, seed):
    """Relative gaps of one fit's iterates, one a pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # as in the tables
        model = problem.model(**settings, coef_path=True, random_state=ReproducibleNoise(seed))
        model.fit(problem.X, problem.y)
    path = model.coef_path_.reshape(-1, problem.X.shape[1])
    return [problem.gap(coef) for coef in path]


def curve(problem, name, runs, jobs):
    settings = fixed_of(name) | TUNED[problem.name][name]
    _ = problem.optimum, problem.scale
    parallel = Parallel(n_jobs=jobs)
    gaps = np.array(parallel(delayed(path_of)(problem, settings, seed) for seed in range(runs)))
    passes = np.minimum(np.arange(gaps.shape[1]), settings["max_iter"])
    return Curve(name, passes, gaps)


def measure(figure, runs, jobs):
    """The curves of a figure's problems that have settings."""
    problems, names = FIGURES[figure]
    return {
        name: [curve(SYNTHETIC[name](), solver, runs, jobs) for solver in names]
        for name in problems
    }


def print_ends(figure, measured, runs):
    print(f"\nFigure {figure!r}: relative gap at the start and after the last pass, {runs} runs\n")
    print(
        f"{'problem':18} {'solver':12} {'passes':>7} {'start':>9} {'mean':>9} {'min':>9} {'max':>9}"
    )
    for name, curves in measured.items():
        for one in curves:
            ends = one.gaps[:, -1]
            numbers = (one.gaps[0, 0], ends.mean(), ends.min(), ends.max())
            cells = " ".join(f"{number:9.3g}" for number in numbers)
            print(f"{name:18} {one.name:12} {one.passes[-1]:7g} {cells}")


def pyplot():
    """matplotlib's pyplot, drawing into files; None, and a word about it, where there is none."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no plots")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def save(figure, measured, folder):
    """One panel a problem; a band from the least to the largest run. The path, or None."""
    plt = pyplot()
    if plt is None:
        return None
    columns = 2 if len(measured) == 4 else len(measured)
    rows = -(-len(measured) // columns)
    size = (4.2 * columns, 3.3 * rows + 0.5)
    canvas, panels = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for (name, curves), axes in zip(measured.items(), panels.flat, strict=True):
        draw(axes, name, curves)
    for axes in panels[-1]:
        axes.set_xlabel("passes over the records")
    for axes in panels[:, 0]:
        axes.set_ylabel("(f(w) − f*) / f*")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder, f"papers_{figure}.png")
    canvas.savefig(path, dpi=150)
    plt.close(canvas)
    return os.path.relpath(path)


def draw(axes, name, curves):
    for one in curves:
        colour, dashes = STYLES[one.name]
        axes.plot(one.passes, one.gaps.mean(axis=0), dashes, color=colour, label=one.name)
        low, high = one.gaps.min(axis=0), one.gaps.max(axis=0)
        axes.fill_between(one.passes, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(one.passes[-1], one.gaps[:, -1].mean(), "o", color=colour, markersize=4)
    axes.set(yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    low, high = axes.get_ylim()
    digits = range(2, 10) if high < 10 * low else (2, 5)
    axes.set_yticks([digit * 10.0**k for k in range(-6, 3) for digit in digits], minor=True)
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.set_ylim(low, high)
    axes.set_xlim(left=0)
    axes.set_title(name, fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
