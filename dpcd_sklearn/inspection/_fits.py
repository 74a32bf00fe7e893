"""Many fits on two data sets, and the tests that tell them apart: what an audit looks at.

Nothing here enters what an audit proves: a test is fixed before the fits that it is judged by.
"""

import functools
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from ..pipeline._budget_of_step import last_step
from ..utils._warnings import silence
from ._likelihood import log_ratios, pair_rows
from ._transcript import Transcript, is_recordable, recorded, records_of

_CHUNK = 50
# A direction that was learnt from a few fits must separate so much more than the likelihood.
_LEARNT = 1.5


@dataclass(frozen=True, eq=False)
class Test:
    """Says "first data set" when `direction` times what a fit shows is above the threshold."""

    direction: np.ndarray
    threshold: float
    separation: float
    statistic: str

    def of(self, shown):
        """The statistic of each fit."""
        return np.where(self.direction != 0, shown, 0.0) @ self.direction


class PairRows:
    """The rows of a pair, as the plan of a fit reads them.

    Parameters
    ----------
    pair : two tuples (X, y) or (X, y, sample_weight)
    models : two fitted estimators
    plan : SolverPlan
        Plan of one of their fits.

    Attributes
    ----------
    differ : bool
        Whether each fit finds scales of its own.
    """

    def __init__(self, pair, models, plan):
        request = plan.request
        searches = request.scales.n_choices or request.target_search.n_choices
        self.differ = bool(searches or request.smoothness_share)
        self._sides = [records_of(model, data) for model, data in zip(models, pair, strict=True)]
        self._rows = None if self.differ else self._of(plan)

    def of(self, plan):
        """The rows in the scales of this plan."""
        return self._of(plan) if self.differ else self._rows

    def _of(self, plan):
        return pair_rows(plan, *(side.scaled(plan.request) for side in self._sides))


class Subject:
    """A model on two data sets.

    Parameters
    ----------
    model : estimator
        Without an accountant and seeds.
    pair : two tuples (X, y) or (X, y, sample_weight)
    statistic : callable or None
        From a fitted model to numbers; None is the transcript and the coefficients.
    """

    def __init__(self, model, pair, statistic):
        self.model, self.pair, self.statistic, self.rows = model, pair, statistic, None
        self.n_jobs = None
        copies = [clone(model) for _ in pair]
        transcript = Transcript() if is_recordable(model) else None
        self.fitted = fitted(copies[0], pair[0], transcript)
        if transcript is None or statistic is not None:
            return
        if transcript.updates is not None:
            fitted(copies[1], pair[1])
            self.rows = PairRows(pair, copies, transcript.plan)

    def shows(self, side, n_runs, noise=1.0):
        """One row of numbers for each fit on one of the data sets."""
        sizes = np.diff(np.append(np.arange(0, n_runs, _CHUNK), n_runs))
        work = functools.partial(_some_fits, self.model, self.pair[side], self.statistic, self.rows)
        found = Parallel(n_jobs=self.n_jobs)(delayed(work)(noise, int(size)) for size in sizes)
        found = np.concatenate(found)
        if not np.isfinite(found).all():
            raise ValueError("the statistic of a fit is not finite")
        return found


def fitted(model, data, recorder=None):
    """A model, which nobody else uses, after its fit; a recorder listens to that."""
    X, y, *weights = data
    options = {"sample_weight": weights[0]} if weights else {}
    with silence():  # an audit's data are small, and what it asks is another thing
        if recorder is None:
            return model.fit(X, y, **options)
        return recorded(model, recorder, lambda: model.fit(X, y, **options))


def _some_fits(model, data, statistic, rows, noise, size):
    """The transcript's log likelihood ratio (or 0), then what the user or the model shows."""
    found = []
    for _ in range(size):
        copy = clone(model)
        transcript = Transcript(noise) if is_recordable(copy) else None
        fitted(copy, data, transcript)
        ratio = 0.0 if rows is None else _ratio(transcript, rows)
        found.append(np.append(ratio, np.ravel((statistic or coefficients)(copy)).astype(float)))
    return np.array(found)


def _ratio(transcript, pair):
    plan = transcript.plan
    return log_ratios(plan, transcript.updates, pair.of(plan))[0]


def coefficients(model):
    """All coefficients and intercepts of a model, or of the last step of a pipeline."""
    last = last_step(model)
    if not hasattr(last, "coef_"):
        raise TypeError(f"{type(last).__name__} has no coef_; give a statistic")
    return np.append(np.ravel(last.coef_), np.ravel(last.intercept_))


# ---- tests -------------------------------------------------------------------------------------


def separation(one, other):
    """Distance of means in standard deviations: μ, for Gaussians of one variance."""
    gap, spread = np.mean(one) - np.mean(other), np.sqrt((np.var(one) + np.var(other)) / 2)
    if gap == 0 or not np.isfinite(gap):
        return 0.0
    return float(min(abs(gap) / spread, 1e6)) if spread > 0 else 1e6


def best_test(subject, shown):
    """The test that separates some fits on each data set best.

    The log likelihood ratio is known beforehand; a direction among other numbers is learnt from
    one half of these fits and judged by the other.
    """
    tests = []
    size = shown[0].shape[1]
    if subject.rows is not None:
        values = [s[:, 0] for s in shown]
        alone = np.eye(1, size)[0]
        tests.append(Test(alone, 0.0, separation(*values), "likelihood of all releases"))
    halves = [np.array_split(s[:, 1:], 2) for s in shown]
    learnt = _direction(*(half[0] for half in halves))
    found = separation(*(half[1] @ learnt for half in halves))
    if not tests or found > tests[0].separation + _LEARNT:
        direction = _direction(*(s[:, 1:] for s in shown))
        values = [s[:, 1:] @ direction for s in shown]
        middle = sum(map(np.median, values)) / 2
        name = "numbers of the user" if subject.statistic else "coefficients"
        tests.append(Test(np.append(0.0, direction), middle, found, name))
    return max(tests, key=lambda test: test.separation)


def _direction(one, other):
    """The linear discriminant of numbers whose variances are shrunk a little."""
    difference = one.mean(axis=0) - other.mean(axis=0)
    spread = np.atleast_2d(np.cov(one, rowvar=False) + np.cov(other, rowvar=False))
    scale = np.sqrt(np.diag(spread))
    scale = np.where(scale > 0, scale, np.where(difference != 0, np.abs(difference), 1.0))
    shrunk = spread / np.outer(scale, scale) + 0.01 * np.eye(len(scale))
    return np.linalg.solve(shrunk, difference / scale) / scale
