"""The noise of a fit and its error in a simulation, before any record is used."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..model_selection._find_budget import by_persons, simulated_records, simulated_scores
from ..pipeline._budget_of_step import last_step, private_part
from ..privacy.accounting._accounting import checked_releases, epsilon_of, zcdp
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._promise import resolved_delta
from ..privacy.ledger._rehearsal import event_of
from ..utils._public import check_count, check_real, width_of
from ..utils._texts import ReadableRepr, counted
from ..utils._typing import ArrayLike, Seed

_MOST_CELLS = 2_000_000  # of simulations with more records than were asked for
_FARTHEST = 64.0  # times the largest simulation


@dataclasses.dataclass(frozen=True, eq=False)
class FitPlan(ReadableRepr):
    """Findings of `plan`; nothing in them was computed from records.

    Attributes
    ----------
    name : str
        What would be fitted.
    n_samples, n_features : int
    epsilon, delta : float
        The guarantee: the loss of `event` at its delta.
    event : FitEvent
        What a fit would release.
    releases : tuple of (str, float)
        Each kind of release with its noise, and its share of the privacy loss (of ρ in zCDP; NaN
        where there is none).
    sizes : ndarray of shape (n_sizes,)
        Numbers of records of the simulations.
    scores : ndarray of shape (n_sizes, n_repeats)
        R² or accuracy of private fits, on new made-up records.
    plain_scores : ndarray of shape (n_sizes,)
        The same of a fit without noise.
    valid : ndarray of bool, shape (n_sizes, n_repeats), or None
        Which private fits have standard errors; None without ``inference=True``.
    rows_per_person : float
        How many made-up rows a person has on average. For ``Persons()``, where `n_samples` and
        `sizes` are numbers of persons; 1 otherwise.
    """

    name: str
    n_samples: int
    n_features: int
    epsilon: float
    delta: float
    event: FitEvent
    releases: tuple
    sizes: np.ndarray
    scores: np.ndarray
    plain_scores: np.ndarray
    valid: np.ndarray | None = None
    rows_per_person: float = 1.0

    @property
    def excess_errors(self):
        """The price of privacy in score at each size: shape (n_sizes, n_repeats)."""
        return self.plain_scores[:, np.newaxis] - self.scores

    @property
    def excess_error(self):
        """Median of what privacy costs in score, for the number of records that was asked for."""
        return float(np.median(self.excess_errors[self.sizes == self.n_samples]))

    def n_samples_for(self, excess_error: float) -> float:
        """How many records bring the median of the excess error down to this.

        Between simulations by interpolation in logarithms; beyond the largest by the slope of the
        last ones, which grows uncertain.

        Parameters
        ----------
        excess_error : float, > 0

        Returns
        -------
        n_samples : float
            A whole number; the smallest size that was simulated if that is enough already, and
            infinity if more than 64 times the largest would be needed.

        Raises
        ------
        TypeError, ValueError
            If `excess_error` is no positive number.
        """
        target = math.log(check_real(excess_error, "excess_error", low=0.0))
        log_n = np.log(self.sizes)
        errors = np.log(np.maximum(np.median(self.excess_errors, axis=1), 1e-6))
        errors = np.minimum.accumulate(errors)  # more records never hurt
        if errors[0] <= target:
            return float(self.sizes[0])
        if errors[-1] <= target:
            return float(math.ceil(math.exp(np.interp(-target, -errors, log_n))))
        # noise alone falls like n^-2 in squares of errors, and never slower than n^(-1/2)
        slope = -1.0 if len(errors) == 1 else np.polyfit(log_n[-3:], errors[-3:], 1)[0]
        farther = (errors[-1] - target) / min(max(-slope, 0.5), 2.0)
        if farther > math.log(_FARTHEST):
            return math.inf
        return float(math.ceil(math.exp(log_n[-1] + farther)))

    def __str__(self):
        who = "persons" if self.event.max_contributions is None else "records"
        unit = "" if self.event.unit == "record" else f", unit of privacy: {self.event.unit}"
        lines = [
            f"{self.name}: {self.n_samples:,} {who} of {counted(self.n_features, 'feature')}, "
            f"epsilon={self.epsilon:.4g} at delta={self.delta:.4g}{unit}",
            "would release",
        ]
        for text, share in self.releases:
            part = "" if math.isnan(share) else f" ({share:.0%} of the loss)"
            lines.append(f"  {text}{part}")
        per_person = f" (rows per person: {self.rows_per_person:.4g})" * (who == "persons")
        lines.append(f"on made-up {who}{per_person}")
        has_valid = self.valid is not None
        head = f"   {who}  without noise   private: median, worst"
        lines.append(head + "  with intervals" * has_valid)
        rows = zip(self.sizes, self.plain_scores, self.scores, strict=True)
        for k, (n, plain, scores) in enumerate(rows):
            valid = f"  {self.valid[k].mean():>14.0%}" if has_valid else ""
            mark = "  <" if n == self.n_samples else ""
            private = f"{np.median(scores):>16.3f}  {scores.min():>5.3f}"
            lines.append(f"{n:>10,}  {plain:>13.3f}  {private}{valid}{mark}")
        for target in (0.05, 0.02):
            needed = self.n_samples_for(target)
            number = "far more" if math.isinf(needed) else f"about {needed:,.0f} {who}"
            if needed <= self.sizes[0]:
                number = f"{self.sizes[0]:,} {who} or fewer"
            lines.append(f"to lose at most {target:g}: {number}")
        return "\n".join(lines)

    __repr__ = __str__


def plan(
    estimator: BaseEstimator,
    n_samples: int,
    n_features: int | ArrayLike,
    *,
    n_outputs: int = 1,
    signal: float = 0.5,
    n_repeats: int = 5,
    sizes: Sequence[int] | None = None,
    make_data: Callable[..., Any] | None = None,
    rows_per_person: int | ArrayLike | None = None,
    random_state: Seed | None = None,
) -> FitPlan:
    """Say what to expect of a private fit: its noise, its error, and how many records it needs.

    The noise follows from public facts. The error is that of fits to made-up records of the same
    shape, beside one fit without noise. Nothing is charged and no record is needed, so it may be
    asked as often as you like, also to choose between models.

    Parameters
    ----------
    estimator : private estimator, PrivatePipeline, or Pipeline with one private step
        It is neither fitted nor changed; its accountant is not asked.
    n_samples : int
        Number of training records; of persons for ``Persons()``.
    n_features : int, or array-like of shape (n_rows, n_features)
        Number of features; or made-up rows, where columns are picked by name (then `make_data` is
        needed too).
    n_outputs : int, default=1
        Number of classes, if more than two and not stated as `classes`.
    signal : float in (0, 1), default=0.5
        Share of the target's variance that the made-up features explain: R² of the best model.
        For labels, of the number whose sign (or largest) decides.
    n_repeats : int, default=5
        Private fits for each size.
    sizes : array-like of int, default=None
        Other numbers of records to simulate; None is 1/4, 1/2 and 2 times `n_samples`, the last one
        only if it has at most two million cells.
    make_data : callable, default=None
        ``make_data(n_samples, rng) -> (X, y)``, made-up or public records in place of ours: for
        columns by name, words, and what you know of the distribution.
    rows_per_person : int, or array-like of ints, default=None
        For ``Persons()``: how many made-up rows each person has, or numbers of which each person
        draws one; None is 1. It is a guess about a secret, so only the forecast follows it, and
        the release does not.
    random_state : int or None, default=None
        Seed of the made-up records; the noise of the fits is never seeded.

    Returns
    -------
    plan : FitPlan
        ``print`` it; `scores` against `sizes` are its curve.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, or nothing is known of the records that the first step takes, or
        rows are counted by person where persons are not told by their ids.

    Notes
    -----
    Made-up records are kind: features are independent and all of them count, bounds are filled
    and scales are right. With ``inference=True`` the share of fits that have intervals is shown
    too, and columns or residuals that fill little of their bounds have them less often. Real data
    is harder, and `make_data` may be so too; rows of a person are as different as those of others.
    It takes as long as ``n_repeats + 1`` fits for each size.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.inspection import plan
    >>> found = plan(DPRidgeSkGD(alpha=1e-3, feature_bounds=(0, 10)), 2000, 5, random_state=0)
    >>> found.excess_error < 0.2
    True
    >>> found.n_samples_for(0.1) <= 2000
    True
    """
    check_count(n_samples, "n_samples")
    check_count(n_repeats, "n_repeats")
    rows = n_features
    is_number = isinstance(n_features, Integral)
    n_features = check_count(n_features, "n_features") if is_number else width_of(n_features)
    signal = check_real(signal, "signal", low=0.0, high=1.0)
    model = clone(estimator)
    part = private_part(model)
    if not hasattr(part, "n_public"):
        raise TypeError(
            f"plan forecasts one fit, and {type(part).__name__} has several: plan its estimator, "
            "and planned_event of the search has its price"
        )
    part.set_params(accountant=None)
    event = event_of(part, n_samples, rows, n_outputs)
    delta = resolved_delta(part.delta, n_samples, part.n_public)
    make_data = make_data or simulated_records(model, n_features, n_outputs, signal)
    by_id = event.max_contributions is None
    if rows_per_person is not None and not by_id:
        raise ValueError(
            "rows_per_person is for neighboring=Persons(), whose n_samples counts persons; got "
            f"neighboring={part.neighboring!r}, for which n_samples counts rows: leave it out"
        )
    counts = np.ravel(1 if rows_per_person is None else rows_per_person).tolist()
    check_count(len(counts), "the number of rows_per_person")
    counts = [check_count(one, "rows_per_person") for one in counts]
    make_data = by_persons(make_data, counts) if by_id else make_data
    sizes = _sizes(n_samples, n_features, sizes)
    plain, rng = clone(model), np.random.default_rng(random_state)
    private_part(plain).set_params(epsilon=math.inf)
    if by_id:
        private_part(plain).set_params(neighboring="replace_one", n_public=None)

    def simulated(fitted, count):
        of_sizes = [simulated_scores(fitted, make_data, int(n), count, rng) for n in sizes]
        return map(np.array, zip(*of_sizes, strict=True))

    plain_scores, _ = simulated(plain, 1)
    scores, valid = simulated(model, n_repeats)
    return FitPlan(
        name=type(estimator).__name__,
        n_samples=int(n_samples),
        n_features=int(n_features),
        epsilon=epsilon_of(event, delta),
        delta=delta,
        event=event,
        releases=_releases(event),
        sizes=sizes,
        scores=scores,
        plain_scores=plain_scores[:, 0],
        valid=valid if getattr(last_step(model), "inference", False) else None,
        rows_per_person=float(np.mean(counts)),
    )


def _releases(event):
    whole = zcdp(event)
    found = []
    for release in checked_releases(event):
        rho = zcdp(FitEvent((release,), *event.neighbours))
        known = rho is not None and whole is not None and 0 < whole < math.inf
        found.append((str(release), rho / whole if known else math.nan))
    return tuple(found)


def _sizes(n_samples, n_features, stated):
    if stated is not None:
        return np.unique([n_samples, *(check_count(n, "sizes") for n in stated)])
    sizes = [max(10, round(factor * n_samples)) for factor in (0.25, 0.5, 1.0, 2.0)]
    small = [n for n in sizes if n <= n_samples or n * n_features <= _MOST_CELLS]
    return np.unique([*small, n_samples])
