"""How time grows with n, p and the stored entries; and how fast records on disk are fitted.

    python benchmarks/growth.py [--quick] [--plots FOLDER]

On one thread, whose own time is counted (of what reads a disk, all time). A time is the least of
several where one is not long, because other work on a machine can only add to it. Dense records are
in C order, and in F order for coordinate steps.
Slopes are those of a line through the logarithms, over the last two decades (with --quick: one):
below them a call's fixed costs show, which no slope of a kernel explains.
"""

import argparse
import math
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kernels_timing import MovingSums
from papers.figures import pyplot
from reproduce_papers import print_environment
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from unreleased import released_mean

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyLeakWarning,
)
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.losses import LogisticLoss
from dpcd_sklearn.privacy.accounting._events import FitEvent, GaussianEvent, PoissonSampledEvent
from dpcd_sklearn.privacy.ledger._accountant import charge
from dpcd_sklearn.privacy.mechanisms._record_oracle import BatchOracle
from dpcd_sklearn.privacy.mechanisms._units import CoordinateUnits, MeanUnits
from dpcd_sklearn.privacy.sums._place import LocalPlace
from dpcd_sklearn.testing import ReproducibleNoise

# Colours of Okabe and Ito; markers tell the lines apart in print. The first are large and hollow:
# another line may lie upon theirs.
STYLES = [
    {"color": "#0072B2", "marker": "o", "markersize": 9, "markerfacecolor": "none"},
    {"color": "#D55E00", "marker": "s", "markersize": 4, "linestyle": "--"},
    {"color": "#009E73", "marker": "^", "markersize": 5},
    {"color": "#CC79A7", "marker": "D", "markersize": 4.5},
    {"color": "#E69F00", "marker": "v", "markersize": 5},
]
# One δ: a calibration for all sizes.
PUBLIC = {"delta": 1e-6, "random_state": ReproducibleNoise(0), "feature_scale": 1.0}
REGRESSION = PUBLIC | {"target_bounds": (-1, 1)}


def best(call, enough, clock=time.process_time):
    """The least of up to 200 times, in seconds; no more of them once `enough` are spent."""
    times = []
    while not times or (sum(times) < enough and len(times) < 200):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


class Problem(NamedTuple):
    """Records, and how much there is of what grows."""

    X: object
    y: np.ndarray


def dense(n, p):
    X = np.random.default_rng(0).standard_normal((n, p))
    return Problem(X, (X[:, 0] > 0).astype(float))


def entries(nnz):
    """Rows of 50 entries, and ten features for every record, most of them rare."""
    rng, n, p = np.random.default_rng(0), nnz // 50, nnz // 5
    columns = np.minimum(rng.zipf(1.3, nnz) - 1, p - 1)
    rare = columns == p - 1
    columns[rare] = rng.integers(0, p, rare.sum())
    X = sparse.csc_array((np.ones(nnz), (rng.integers(0, n, nnz), columns)), shape=(n, p))
    X.sum_duplicates()
    return Problem(X, (rng.random(n) > 0.5).astype(float))


# ---- what is measured: from a problem to seconds -----------------------------------------------


def full_pass(problem, enough, joint):
    """One sum of all coordinates, after a step of all of them; rounded, without noise."""
    n, p = problem.X.shape
    event = FitEvent((GaussianEvent(10.0, 1),))
    units = CoordinateUnits(event, n_samples=n, smoothness=np.ones(p), clip=3.0, n_normalizer=n)
    sums = MovingSums(units, LocalPlace(*problem), loss=LogisticLoss(), fit_intercept=False)
    everything, step = np.arange(p), np.full(p, 1e-9)
    return best(lambda: sums.of(everything, step, joint=joint), enough)


def mini_batch(problem, enough):
    """One mean over a Poisson sample of a tenth of the records, with its noise."""
    n, p = problem.X.shape
    event = FitEvent((PoissonSampledEvent(0.1, 10.0, 2**40),))
    units = MeanUnits(
        event, n_samples=n, smoothness=np.ones(p), clip=3.0, anchor_clip=3.0, n_normalizer=n
    )
    oracle = BatchOracle(
        charge(None, event), units, LocalPlace(*problem), loss=LogisticLoss(), fit_intercept=False
    )
    coef = np.zeros(p)
    return best(lambda: released_mean(oracle, coef, sampled=True), enough)


def longer_fit(model, few, more, cells=0, clock=time.process_time):
    """Seconds of one pass: what `more` passes, or as many as read so many cells, add to `few`.

    Both are timed up to five times, until the longer fit takes longer; NaN if it never does.
    """

    def seconds(problem, enough):
        added = max(more, math.ceil(cells / problem.X.size))
        times = {few: math.inf, few + added: math.inf}
        for _ in range(5):
            for passes in times:
                longer = clone(model).set_params(max_iter=passes)
                longer.planned_event(*problem.X.shape)  # the calibration is kept
                one = best(lambda m=longer: m.fit(*problem), enough, clock)
                times[passes] = min(times[passes], one)
            if times[few + added] > times[few]:
                return (times[few + added] - times[few]) / added
        return math.nan

    return seconds


def whole_fit(model):
    def seconds(problem, enough):
        model.planned_event(*problem.X.shape)  # the calibration is kept
        return best(lambda: model.fit(*problem), enough)

    return seconds


def by_columns(seconds):
    """The same in F order, for what reads single columns."""

    def in_order(problem, enough):
        if sparse.issparse(problem.X):
            return seconds(problem, enough)
        return seconds(Problem(np.asfortranarray(problem.X), problem.y), enough)

    return in_order


STEPS = DPLinearClassifier(solver="cd", fit_intercept=False, **PUBLIC)
GREEDY = DPLogisticGCD(solver="gcd", fit_intercept=False, **PUBLIC)
PASSES = {
    "pass, coordinate-clipped": partial(full_pass, joint=False),
    "pass, norm-clipped": partial(full_pass, joint=True),
    "mini-batch of n / 10": mini_batch,
}
KERNELS = PASSES | {"a coordinate step each": by_columns(longer_fit(STEPS, 1, 1, cells=1e7))}
FITS = {
    "DPLogisticGCD, 10 updates": whole_fit(DPLogisticGCD(solver="gcd", max_iter=10, **PUBLIC)),
    "DPRidgeSkGD, 10 updates": whole_fit(DPRidgeSkGD(max_iter=10, **REGRESSION)),
    "DPLassoCD, one pass": by_columns(whole_fit(DPLassoCD(solver="cd", max_iter=1, **REGRESSION))),
    "sgd, one pass": whole_fit(DPLinearClassifier(solver="sgd", max_iter=1, **PUBLIC)),
}
# One greedy step goes through the records that the last one touched, and noise for every feature.
SPARSE_KERNELS = PASSES | {"greedy step, incremental": longer_fit(GREEDY, 5, 20)}


class Axis(NamedTuple):
    """The number that grows, the problem of a size, and the call that is timed there."""

    label: str
    title: str
    sizes: np.ndarray
    problem: Callable
    groups: tuple


def decades(low, high):
    return np.rint(10 ** np.arange(low, high + 0.01, 0.5)).astype(int)


def axes_of(quick):
    n, p, nnz = ((3, 4), (1, 3), (4, 5)) if quick else ((3, 6), (1, 5), (4, 7))
    return [
        Axis("records n", "p = 100", decades(*n), lambda size: dense(size, 100), (KERNELS, FITS)),
        Axis("features p", "n = 1,000", decades(*p), lambda s: dense(1_000, s), (KERNELS, FITS)),
        Axis("stored entries", "n = entries / 50, p = entries / 5", decades(*nnz), entries,
             (SPARSE_KERNELS, FITS)),
    ]  # fmt: skip


def measure(axis, enough):
    """For each group a dict from names to times, one a size."""
    found = [{name: [] for name in group} for group in axis.groups]
    for size in axis.sizes:
        problem = axis.problem(int(size))
        for group, times in zip(axis.groups, found, strict=True):
            for name, seconds in group.items():
                times[name].append(seconds(problem, enough))
    return found


def slope(sizes, times, n_decades):
    last = sizes >= sizes[-1] / 10**n_decades * 0.99
    return np.polyfit(np.log(sizes[last]), np.log(np.asarray(times)[last]), 1)[0]


def print_table(axis, found, n_decades):
    print(f"\nTime in ms against {axis.label} ({axis.title})\n")
    print(f"{'':26}", *(f"{size:>9,}" for size in axis.sizes), "  slope")
    for times in found:
        for name, seconds in times.items():
            cells = " ".join(f"{1e3 * value:9.3g}" for value in seconds)
            print_row(f"{name:26} {cells} {slope(axis.sizes, seconds, n_decades):7.2f}")


def print_row(text):
    noisy = " (---: this machine is too busy; run it again)" if "nan" in text else ""
    print(text.replace("nan", "---") + noisy, flush=True)


# ---- the figure ---------------------------------------------------------------------------------


def save(axes, measured, folder):
    """Kernels above whole fits; a panel for each thing that grows. The path, or None."""
    plt = pyplot()
    if plt is None:
        return None
    canvas = plt.figure(figsize=(12.5, 7), layout="constrained")
    for row, part in enumerate(canvas.subfigures(2, 1)):
        lines = {}
        for axis, found, panel in zip(
            axes, measured, part.subplots(1, len(axes), sharey=True), strict=True
        ):
            lines |= draw(panel, axis, found[row], first=row == 0)
        lines["slope one"] = lines.pop("slope one")  # the last
        part.legend(
            lines.values(), lines, loc="outside right center", frameon=False,
            title="one sum or step" if row == 0 else "whole fits", alignment="left",
        )  # fmt: skip
        part.axes[0].set_ylabel("time")
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder, "growth.png")
    canvas.savefig(path, dpi=150)
    plt.close(canvas)
    return os.path.relpath(path)


def draw(panel, axis, times, first):
    """The lines of one panel by name, those of slope one included."""
    from matplotlib.ticker import EngFormatter

    lines = {}
    sizes = axis.sizes.astype(float)
    for name, seconds in times.items():
        style = STYLES[list(KERNELS | SPARSE_KERNELS if first else FITS).index(name)]
        (lines[name],) = panel.plot(sizes, seconds, linewidth=1.4, **style)
    panel.set(xscale="log", yscale="log", xlabel=axis.label)
    limits = panel.get_xlim(), panel.get_ylim()
    last = np.log([seconds[-1] for seconds in times.values()])
    for shift in (np.exp(last.mean()) / 4, np.exp(last.mean()) * 4):  # one to lay beside each line
        (lines["slope one"],) = panel.plot(
            sizes, shift * sizes / sizes[-1], ":", color="0.6", linewidth=1, zorder=0
        )
    panel.set(xlim=limits[0])
    panel.yaxis.set_major_formatter(EngFormatter(unit="s"))
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    if first:
        panel.set_title(axis.title, fontsize=10.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(alpha=0.25)
    return lines


# ---- records on disk ----------------------------------------------------------------------------


def read_once(path, cold):
    """Seconds of one reading of the file from its start to its end."""
    buffer = bytearray(1 << 22)

    def read():
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass

    if not cold:
        return best(read, 1.0, time.perf_counter)
    forget(path)
    start = time.perf_counter()
    read()
    return time.perf_counter() - start


def forget(path):
    """Ask the system to drop the file from memory: what is read next comes from the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cold_pass(path, model, shape, order, y):
    """Seconds of a fit of one pass that is the first to see the file, and what reads it ahead."""
    forget(path)
    X = np.memmap(path, np.float64, "r", shape=shape, order=order)
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def disk_rows(n, p, folder, enough):
    """Name, seconds and what they are to one reading of the file."""
    path, rng = Path(folder, "records"), np.random.default_rng(0)
    with path.open("wb") as file:  # the same bytes are rows in C order, and columns in F order
        for _ in range(0, n, 1000):
            file.write(rng.standard_normal((1000, p)).tobytes())
    y = (np.arange(n) % 3 == 0).astype(float)
    warm = read_once(path, cold=False)
    rate = path.stat().st_size / 1e9
    yield "reading the file, in the page cache", warm, f"{rate / warm:.1f} GB/s"
    if hasattr(os, "posix_fadvise"):
        cold = min(read_once(path, cold=True) for _ in range(2))
        yield "reading the file, from the disk", cold, f"{rate / cold:.1f} GB/s"
        model = DPRidgeSkGD(max_iter=1, **REGRESSION).fit(np.eye(100, p), y[:100])
        for order in "CF":
            seconds = min(cold_pass(path, model, (n, p), order, y) for _ in range(2))
            yield f"first fit of one pass, {order}", seconds, f"{seconds / cold:.1f} cold readings"
    models = {
        "DPLogisticGCD": (DPLogisticGCD(solver="gcd", **PUBLIC), 2, 5, "CF"),
        "DPRidgeSkGD": (DPRidgeSkGD(solver="skgd", **REGRESSION), 2, 5, "CF"),
        "DPLassoCD": (DPLassoCD(solver="cd", **REGRESSION), 0.1, 0.2, "FC"),
    }
    for name, (model, few, more, orders) in models.items():
        seconds = longer_fit(model, few, more, cells=1e7, clock=time.perf_counter)
        for order in orders:
            X = np.memmap(path, np.float64, "r", shape=(n, p), order=order)
            mapped = seconds(Problem(X, y), enough)
            held = seconds(Problem(np.array(X, order=order), y), enough)
            remark = f"{mapped / warm:.1f} readings, {mapped / held:.2f} of the array in memory"
            yield f"{name}, a pass over the map, {order}", mapped, remark


def print_disk(quick, enough):
    n, p = (10_000, 100) if quick else (1_000_000, 100)
    print(f"\nA memory map of {n:,} x {p} doubles, {n * p * 8 / 1e9:.3g} GB\n")
    with tempfile.TemporaryDirectory() as folder:
        for name, seconds, remark in disk_rows(n, p, folder, enough):
            print_row(f"{name:42} {seconds * 1e3:10.2f} ms   {remark}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, in seconds")
    parser.add_argument("--plots", type=Path, help="folder for the figure; none without it")
    options = parser.parse_args(arguments)
    axes, measured = axes_of(options.quick), []
    enough = 0.01 if options.quick else 0.5
    print_environment()
    with threadpool_limits(1):
        for axis in axes:
            measured.append(measure(axis, enough))
            print_table(axis, measured[-1], 1 if options.quick else 2)
        print_disk(options.quick, enough)
    if options.plots:
        path = save(axes, measured, options.plots)
        print(f"\n{path}" if path else "")


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    warnings.simplefilter("ignore", FewRecordsWarning)  # times do not depend on it
    main()
