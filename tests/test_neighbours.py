"""Gaussian sums: how far apart neighbours are, how large the noise is, and what is released once.

Exact answers are compared, so that one release shows a distance. The worst neighbours are named for
each sum; the tape looks for others in whole fits.
"""

import math
import pickle
from itertools import combinations

import numpy as np
import pytest
from noise_mutants import HalfOffTheDiagonal, HalfTheNoise, NoiseOfOneClass
from tables import table

from dpcd_sklearn.losses import LOSSES
from dpcd_sklearn.privacy.accounting import (
    Budget,
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    Receipt,
    curvature_fit_event,
    moments_event,
)
from dpcd_sklearn.privacy.mechanisms import (
    CountUnits,
    CurvatureOracle,
    CurvatureUnits,
    MomentOracle,
    MomentUnits,
    Oracle,
    PartitionUnits,
    PresentUnits,
    RunningUnits,
    ScoreUnits,
    SecondMomentUnits,
    SmoothnessUnits,
    TargetUnits,
    _cell_sums,
    _curvature_units,
    _questions,
    _scores,
    _tables,
)
from dpcd_sklearn.privacy.mechanisms._questions import GaussianNoise
from dpcd_sklearn.privacy.sums import CategoryPlace, GroupPlace, LocalPlace, PresentPlace
from dpcd_sklearn.privacy.sums._integer_rows import short_transform
from dpcd_sklearn.privacy.sums._score_sums import LEVELS

RELATIONS = ["replace_one", "add_remove"]
NAN = math.nan
N_CELLS = 256
Z = 2.0


# ---- sums of columns -----------------------------------------------------------------------------


class OfColumns:
    """Sums that are released once, by an event of one release."""

    reach = 0.98  # cells have a width
    relations = RELATIONS

    def event(self, neighboring):
        return FitEvent((GaussianEvent(Z, 1),), neighboring)

    def noise_multiplier(self, neighboring):
        return Z


class Present(OfColumns):
    """Sums of p columns of what is present, and how many are."""

    sensitivity = _cell_sums, "present_sensitivity"

    def __init__(self, p):
        self.others = [np.full(p, 0.5)] * 4
        self.records = [np.full(p, x) for x in (-5.0, -1.0, 0.3, 1.0, 7.0, NAN)]
        self.records.append(np.where(np.arange(p) % 2, NAN, 1.0))

    def oracle(self, rows, receipt, **sizes):
        X = np.vstack(rows)
        units = PresentUnits(receipt.event, n_columns=X.shape[1], **sizes)
        return Oracle(receipt, units, PresentPlace(X))

    def release(self, oracle):
        ends = np.ones(len(self.others[0]))
        oracle.release(-ends, ends)


class Running(OfColumns):
    """Running counts of three columns."""

    sensitivity = _cell_sums, "running_sensitivity"
    others = [np.full(3, 0.5)] * 4
    records = [np.full(3, x) for x in (-5.0, 0.0, 0.4, 212.5 / N_CELLS, 0.999, 7.0)]

    def oracle(self, rows, receipt, **sizes):
        units = RunningUnits(receipt.event, n_columns=3, **sizes)
        return Oracle(receipt, units, LocalPlace(np.vstack(rows)))

    def release(self, oracle):
        oracle.release(np.zeros(3), np.ones(3), None)


class Target(OfColumns):
    """Sums of a target, or counts of its classes, by two columns of categories."""

    sensitivity = _tables, "target_sensitivity"

    def __init__(self, n_classes):
        self.n_classes, self.kind = n_classes, np.intp if n_classes else np.float64
        codes = [[0, 1], [1, 1], [2, 0], [0, 2]]
        self.others = list(zip(codes, [0, 1, 0, 1], strict=True))
        targets = range(n_classes) if n_classes else (-7.0, -1.0, 0.2, 1.0, 3.0, NAN)
        self.records = [(code, y) for code in ([0, 1], [1, 2], [2, 0]) for y in targets]

    def oracle(self, rows, receipt, **sizes):
        codes, y = zip(*rows, strict=True)
        n, n_folds = len(y), 2 if receipt.event.neighboring == "replace_one" else 1
        units = TargetUnits(receipt.event, n_columns=2, n_classes=self.n_classes, **sizes)
        place = GroupPlace(
            list(np.array(codes).T), [3, 3], np.array(y, dtype=self.kind), self.n_classes,
            np.arange(n) % n_folds, n_folds,
        )  # fmt: skip
        return Oracle(receipt, units, place)

    def release(self, oracle):
        oracle.release(oracle._place.shapes)


class Categories(OfColumns):
    """Counts of two categories in each of four columns, one answer for all of them."""

    sensitivity, reach = (_tables, "partition_sensitivity"), 0.99
    others = records = [["a"] * 4, ["b"] * 4]

    def event(self, neighboring):
        return FitEvent((CoveredEvent(Z, 1e-6),), neighboring)

    def oracle(self, rows, receipt, **sizes):
        columns = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
        units = PartitionUnits(receipt.event, n_columns=4, **sizes)
        return Oracle(receipt, units, CategoryPlace(columns, len(rows)))

    def release(self, oracle):
        oracle.release()


class Squares(OfColumns):
    """Sums of squares of four columns, with or without those of halves."""

    sensitivity = _cell_sums, "squares_sensitivity"

    def __init__(self, with_means):
        self.with_means = with_means
        self.others = [np.zeros(4)]
        worst = (math.sqrt(0.5) - 1) / 2 if with_means else 0.0  # with records of ones
        self.records = [np.full(4, x) for x in (1.0, worst, -1.0, 3.0)]

    def oracle(self, rows, receipt, **sizes):
        units = SmoothnessUnits(receipt.event, n_columns=4, with_means=self.with_means, **sizes)
        return Oracle(receipt, units, LocalPlace(np.vstack(rows)))

    def release(self, oracle):
        # numbers may be farther from the centre than the half-width that is stated
        ones = np.ones(4)
        oracle.release(-3 * ones, 3 * ones, 0 * ones, ones)


class Labels(OfColumns):
    """Counts of classes; of two classes, one."""

    sensitivity, reach = (_cell_sums, "count_sensitivity"), 0.99

    def __init__(self, n_classes, n_columns=1):
        self.n_classes, self.others, self.records = n_classes, [0, 1, 1, 0], range(n_classes)
        self.ones = np.ones(n_columns)

    def oracle(self, rows, receipt, **sizes):
        numbers = {"n_classes": self.n_classes, "n_columns": len(self.ones)} | sizes
        units = CountUnits(receipt.event, **numbers)
        return Oracle(receipt, units, LocalPlace(np.outer(rows, [0.0]), np.outer(rows, self.ones)))

    def release(self, oracle):
        oracle.release("target", (-0.5 * self.ones, 255.5 * self.ones))


class Outside(Labels):
    """How many records lie outside of each of so many bounds."""

    def __init__(self, n_bounds):
        self.others, self.records = [0.0, 0.4, 2.0], [0.5, -0.5, 9.0, math.inf, NAN]
        self.bounds = np.arange(1, n_bounds + 1)[:, np.newaxis] / 2

    def oracle(self, rows, receipt, **sizes):
        units = CountUnits(receipt.event, n_classes=2, n_columns=len(self.bounds), **sizes)
        return Oracle(receipt, units, LocalPlace(np.array(rows)[:, None]))

    def release(self, oracle):
        oracle.release("outside", (-self.bounds, self.bounds))


class Score(OfColumns):
    """Sums of a score, of which a row is what one record adds; test_scorers.py has the metrics."""

    sensitivity, reach = (_scores, "score_sensitivity"), 0.99

    def __init__(self, kind, others, records, relations=RELATIONS):
        self.kind, self.others, self.records, self.relations = kind, others, records, relations

    def oracle(self, rows, receipt, n_samples, n_normalizer):
        units = ScoreUnits(receipt.event, self.kind, len(rows[0]), n_samples)
        return Oracle(receipt, units, lambda: np.sum(rows, axis=0).tolist())

    def release(self, oracle):
        oracle.release()


# ---- second moments, and gradients in a geometry -------------------------------------------------


class OfRows:
    """A curvature, of which records are pairs of a row and a target."""

    reach, n_outputs, loss, place_of_event = 0.99, 1, "squared", 1
    relations = RELATIONS
    sensitivity = _curvature_units, "matrix_sensitivity"
    others = [([0.0, 0.0], 0.0)]
    records = [([1.5, 0.0], 0.0), ([0.0, 1.5], 0.0), ([30.0, 30.0], 0.0)]

    def event(self, neighboring):
        return curvature_fit_event(Budget(2.0, 1e-3, neighboring), 1, 0.3, 1, 0.5, 2)

    def noise_multiplier(self, neighboring):
        return self.event(neighboring).releases[self.place_of_event].noise_multiplier

    def oracle(self, rows, receipt, **sizes):
        X, y = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
        loss = LOSSES[self.loss]()
        units = CurvatureUnits(
            receipt.event, smoothness=np.full(2, loss.curvature), row_norm=1.5,
            n_outputs=self.n_outputs, **sizes,
        )  # fmt: skip
        return CurvatureOracle(receipt, units, LocalPlace(X, y), loss=loss, fit_intercept=False)

    def release(self, oracle):
        oracle.release_curvature()


class MeanRow(OfRows):
    sensitivity, place_of_event = (_curvature_units, "row_sensitivity"), 2
    records = [([5.0, 0.0], 0.0), ([-5.0, 0.0], 0.0)]

    def release(self, oracle):
        oracle.release_mean_row()


class MeanSquare(OfRows):
    place_of_event = 2
    records = [([5.0, 0.0], 0.0), ([0.0, 0.0], 0.0)]
    reach = 0.99 / math.sqrt(2)  # the grid is that of a matrix

    def release(self, oracle):
        oracle.release_mean_square()


class Gradient(OfRows):
    """Records pull along the short axis of a geometry, where it is stretched."""

    sensitivity, place_of_event = None, 0
    records = [([0.0, 1.0], 1e6), ([0.0, 1.0], -1e6)]
    mutant = staticmethod(lambda sums: sums)  # of its sums

    def oracle(self, rows, receipt, **sizes):
        oracle = super().oracle(rows, receipt, **sizes)
        oracle._sums = self.mutant(oracle._sums)
        oracle.fix_geometry(np.diag([1.0, 8.0]))
        return oracle

    def release(self, oracle):
        oracle.release_preconditioned(np.zeros(2 * self.n_outputs), 1.0)


class ClassGradient(Gradient):
    """Records of one label pull apart in all three classes."""

    n_outputs, loss = 3, "multinomial"
    records = [([0.0, 1e3], 0.0), ([0.0, -1e3], 0.0)]


class Moments(OfRows):
    sensitivity, place_of_event = (_curvature_units, "matrix_sensitivity"), 0
    records = [([3.0, 0.0], 0.0), ([0.0, 3.0], 0.0), ([3.0, 0.0], 9.0)]

    def event(self, neighboring):
        return moments_event(Budget(2.0, 1e-3, neighboring), 0.5)

    def oracle(self, rows, receipt, **sizes):
        X, y = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
        units = MomentUnits(receipt.event, smoothness=np.ones(2), **sizes)
        options = {"loss": LOSSES["squared"](), "fit_intercept": False}
        return MomentOracle(receipt, units, LocalPlace(X, y), **options)

    def release(self, oracle):
        oracle.release_moments(np.eye(2), np.zeros(2), 1.0, 1.0, 1.0)


class MomentSquare(Moments):
    place_of_event, reach = 1, MeanSquare.reach
    records = [([1.0, 0.0], 100.0), ([1.0, 0.0], 0.0)]

    def release(self, oracle):
        oracle.release_mean_square(np.eye(2), np.zeros(2), 1.0)


class SecondMoments(OfColumns):
    """Products of the entries of rows, which have a small constant behind them."""

    sensitivity, reach = (_curvature_units, "matrix_sensitivity"), 0.95
    others = [[0.1, 0.1]] * 4
    records = [[9.0, 0.0], [0.0, 9.0], [-9.0, 0.0], [0.0, 0.0]]

    def oracle(self, rows, receipt, **sizes):
        units = SecondMomentUnits(receipt.event, n_features=2, row_norm=1.0, constant=0.1, **sizes)
        bounds = np.full(2, -9.0), np.full(2, 9.0), np.zeros(2)
        place = LocalPlace(np.array(rows), np.zeros(len(rows)), None, bounds)
        return Oracle(receipt, units, place)

    def release(self, oracle):
        oracle.release()


SUMS = {
    "mean of a column": Present(1),
    "means of columns": Present(3),
    "running counts": Running(),
    "sums of a target": Target(0),
    "counts of classes": Target(3),
    "counts of categories": Categories(),
    "squares": Squares(False),
    "squares and means": Squares(True),
    "counts of two classes": Labels(2),
    "counts of labels": Labels(3),
    **{f"records outside of {k} bounds": Outside(k) for k in (1, 2)},
    "counts of three labels each": Labels(3, n_columns=3),
    "score of right answers": Score("right", [[1], [0]], [[0], [1]]),
    "score by cells": Score("cells", np.eye(4, dtype=int).tolist(), np.eye(4, dtype=int).tolist()),
    "score of numbers": Score("bounded", [[0, 0]], [[LEVELS] * 2, [-LEVELS] * 2]),
    # a record of the first class above forty of the second becomes one of the second
    "score of pairs": Score("pairs", [[0, 1]] * 40, [[-40, 0], [0, 1]], ["replace_one"]),
    "second moments": SecondMoments(),
    "curvature": OfRows(),
    "mean row": MeanRow(),
    "mean square": MeanSquare(),
    "gradient": Gradient(),
    "gradient of classes": ClassGradient(),
    "moments": Moments(),
    "mean square of gradients": MomentSquare(),
}


# ---- distances -----------------------------------------------------------------------------------


def sizes_of(rows, n_public=None):
    return {"n_samples": len(rows), "n_normalizer": n_public or len(rows)}


def releases_of(name, rows, neighboring, n_public=None):
    """Mechanism, exact answer and released one of all that is asked of these records."""
    found, honest = [], GaussianNoise.release

    def release(self, exact, noise):
        exact, released = np.array(exact, dtype=object), honest(self, exact, noise)
        found.append((self, exact, np.array(released, dtype=object)))
        return released

    kind, sizes = SUMS[name], sizes_of(rows, n_public)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianNoise, "release", release)
        kind.release(kind.oracle(rows, Receipt(kind.event(neighboring), None), **sizes))
    assert found
    if isinstance(kind, Categories):  # column by column
        mechanisms, *answers = zip(*found, strict=True)
        return [(mechanisms[0], *map(np.concatenate, answers))]
    return found


def distance(name, neighboring):
    """The largest of neighbours, over what is claimed."""
    kind, worst = SUMS[name], 0.0
    n = len(kind.others) + 1
    every = [releases_of(name, [*kind.others, record], neighboring) for record in kind.records]
    pairs = combinations(every, 2)
    if neighboring == "add_remove":  # the same grid: the normaliser is public
        without = releases_of(name, kind.others, neighboring, n)
        pairs = [(one, without) for one in every]
    for one, other in pairs:
        for (mechanism, exact, _), (same, neighbour, _) in zip(one, other, strict=True):
            assert mechanism.bits == same.bits
            assert mechanism.noise_multiplier == kind.noise_multiplier(neighboring)
            worst = max(worst, mechanism.excess(exact, neighbour))
    return worst


@table(("name", "neighboring"), [(name, of) for name in SUMS for of in SUMS[name].relations])
def test_the_worst_neighbours_are_as_far_apart_as_is_claimed_and_no_farther(name, neighboring):
    reach = SUMS[name].reach
    if name.startswith("mean square") and neighboring == "add_remove":
        reach *= math.sqrt(2)
    assert reach <= distance(name, neighboring) <= 1 + 1e-12


class ClippedBefore:
    """Sums whose records are clipped before they are moved into the geometry."""

    def __init__(self, sums):
        self.gradient, self._sums = sums.gradient, sums

    def measure(self, transform, largest, smallest, narrow=None):
        same = np.asfortranarray(np.eye(len(transform)) * np.rint(smallest))
        self._sums.measure(same, smallest, smallest, short_transform(same))


class ClippedByClass:
    """Sums in which the gradient of each class has a clip of its own: each class is at it."""

    def __init__(self, sums):
        self.measure, self._sums = sums.measure, sums

    def gradient(self, coef, clip, limit):
        found = self._sums.gradient(coef, clip, limit).reshape(3, -1).astype(float)  # of one record
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        longer = np.linalg.norm(found) / np.maximum(norms, 1.0)
        return np.rint(found * longer).astype(np.int64).ravel()


def half(exact):
    return lambda *facts: exact(*facts) / 2


def no_root_of_p(exact):
    return lambda p, *facts: exact(1, *facts)


def uncut(exact):
    def units_of_cells(lo, hi, center, half_width, most):
        squares, halves = exact(lo, hi, center, 3 * half_width, most)
        return [9 * squares, 3 * halves]

    return units_of_cells


def forgets_how_many_are_present(exact):
    return lambda p, of: math.sqrt(p)


def no_root_of_two(exact):
    return lambda norm, neighboring: norm**2


def one_of_two(exact):
    return lambda norm, neighbors: norm


# the sum, and of which attribute what is made
MUTANTS = [(name, *kind.sensitivity, half) for name, kind in SUMS.items() if kind.sensitivity]
MUTANTS += [(name, *SUMS[name].sensitivity, no_root_of_p) for name in
            ("running counts", "sums of a target", "counts of classes", "counts of categories",
             "squares", "squares and means")]  # fmt: skip
MUTANTS += [
    ("mean of a column", _cell_sums, "present_sensitivity", forgets_how_many_are_present),
    ("means of columns", _cell_sums, "present_sensitivity", forgets_how_many_are_present),
    ("squares", _cell_sums, "units_of_cells", uncut),
    ("squares and means", _cell_sums, "units_of_cells", uncut),
    ("curvature", _curvature_units, "matrix_sensitivity", no_root_of_two),
    ("mean row", _curvature_units, "row_sensitivity", one_of_two),
    ("gradient", Gradient, "mutant", lambda honest: ClippedBefore),
    ("gradient of classes", Gradient, "mutant", lambda honest: ClippedBefore),
    ("gradient of classes", Gradient, "mutant", lambda honest: ClippedByClass),
]


@table(("name", "owner", "attribute", "mutant"), MUTANTS)
def test_a_mutant_moves_neighbours_farther_apart(name, owner, attribute, mutant):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, attribute, mutant(getattr(owner, attribute)))
        assert distance(name, "replace_one") > 1.2


# ---- noise ---------------------------------------------------------------------------------------

N_DRAWS = 200


def noise_is_as_claimed(name):
    """White noise of 2^bits units; statistics of a fair source are off by six deviations at most.

    A false alarm is rarer than one in ten million.
    """
    kind, drawn = SUMS[name], []
    for _ in range(N_DRAWS):
        found = releases_of(name, [*kind.others, kind.records[0]], "replace_one")
        residuals = [
            (np.ravel(released - exact).astype(float) + 0.5) / 2.0**mechanism.bits
            for mechanism, exact, released in found
        ]
        drawn.append(np.concatenate(residuals))
    drawn = np.array(drawn)
    size = drawn.shape[1]
    if abs(np.mean(drawn**2) - 1) > 6 * math.sqrt(2 / drawn.size):
        return False
    correlations = drawn.T @ drawn / N_DRAWS - np.eye(size)
    return np.abs(correlations).max() < 7 * math.sqrt(2 / N_DRAWS)


@table("name", SUMS)
def test_every_entry_has_noise_of_its_own_as_large_as_is_claimed(name):
    assert noise_is_as_claimed(name)


@table(("name", "source"), [
    *[(name, HalfTheNoise) for name in SUMS],
    ("curvature", HalfOffTheDiagonal),
    ("gradient of classes", NoiseOfOneClass),
])  # fmt: skip
def test_a_mutant_of_the_noise_is_caught(name, source, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(_questions, "NoiseSource", source)
        assert not noise_is_as_claimed(name)


# ---- what was paid for ---------------------------------------------------------------------------


@table("name", SUMS)
def test_what_was_paid_for_is_released_once(name):
    kind = SUMS[name]
    rows = [*kind.others, kind.records[0]]
    event = kind.event("replace_one")
    receipt = Receipt(event, None)
    oracle = kind.oracle(rows, receipt, **sizes_of(rows))
    kind.release(oracle)
    with pytest.raises(RuntimeError, match="paid for"):
        kind.release(oracle)
    with pytest.raises(TypeError, match="never copied or pickled"):
        pickle.dumps(oracle)
    with pytest.raises(RuntimeError, match="redeemed before"):
        kind.oracle(rows, receipt, **sizes_of(rows))
    if not isinstance(kind, Score):  # whose sums know no number of records
        with pytest.raises(ValueError, match="units are of"):
            kind.oracle(rows, Receipt(event, None), **sizes_of([*rows, rows[0]]))
