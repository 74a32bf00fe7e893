"""Person-periods: survival by a Poisson regression with an offset."""

from collections.abc import Sequence
from numbers import Real

import numpy as np
from sklearn.utils import Bunch

from ..utils._compat import Interval
from ..utils._input import read_array, read_input
from ..utils._stated import Stated
from ..utils._tiles import elementwise
from ..utils._typing import ArrayLike


class PiecewiseExponential(Stated):
    r"""Durations as person-periods, of which a Poisson regression is a survival model.

    Time is cut into periods, within which the hazard of a record x is constant:
    :math:`h(t, x) = \exp(b_k + w^T x)` for t in period k. Its likelihood is that of a Poisson
    regression on x and indicators of the periods: of rates, events over the time at risk, with this
    time as weight, or of events with its logarithm as offset (Holford 1980). Hence ``exp(w)`` are
    hazard ratios, as of Cox's model. Unlike there the baseline hazard is fitted too, and no record
    is compared with others.

    **Privacy**

    - Guarantee: nothing is learnt from the records, hence there is nothing to charge. Each record
      becomes ``len(cuts) + 1`` rows by itself, whatever its duration is: those of periods that it
      has not reached have no time at risk, hence no weight. So the number of rows is public, but
      **the person is the unit**: fit with ``neighboring=Persons()`` and ``groups=table.groups``, or
      with ``neighboring=Persons(len(cuts) + 1)``. A fit of "replace_one" or "add_remove" protects
      single periods alone.
    - Not protected: the cuts, which are public and must not be chosen from the durations.

    Parameters
    ----------
    cuts : sequence of float, default=()
        Ends of all periods but the last one, which has none: increasing, in (0, inf), in the unit
        of durations. An event at a cut belongs to the period that ends there. Public: never from
        the data.
    largest_rate : float in (0, inf], default=inf
        R, the upper bound of a private fit's ``target_bounds=(0, R)``, in events a unit of time.
        Where an event ended a period, the time at risk counts as 1 / R at least: with periods of
        one unit and R = 2 half a unit more, at most. All of them lie in [1e-21, 1e21]. Public.

    Raises
    ------
    ValueError
        If cuts are not increasing, positive and finite, or `largest_rate` is not positive.

    References
    ----------
    Holford (1980). The analysis of rates and of survivorship using log-linear models. Biometrics.

    Examples
    --------
    >>> from dpcd_sklearn.preprocessing import PiecewiseExponential
    >>> periods = PiecewiseExponential(cuts=[1.0, 3.0])
    >>> table = periods.expand([[5.0], [6.0]], duration=[0.5, 4.0], event=[1, 0])
    >>> table.X
    array([[5., 0., 0.],
           [5., 1., 0.],
           [5., 0., 1.],
           [6., 0., 0.],
           [6., 1., 0.],
           [6., 0., 1.]])
    >>> table.rate, table.exposure
    (array([2., 0., 0., 0., 0., 0.]), array([0.5, 0. , 0. , 1. , 2. , 1. ]))
    """

    _parameter_constraints = {"largest_rate": [Interval(Real, 0, None, closed="right")]}

    def __init__(self, cuts: Sequence[float] = (), *, largest_rate: float = np.inf):
        self.cuts = cuts
        self.largest_rate = largest_rate

    def expand(
        self, X: ArrayLike, duration: ArrayLike, event: ArrayLike, groups: ArrayLike | None = None
    ):
        """Make the rows of a Poisson regression: a record in each period.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
            The records, dense numbers.
        duration : array-like of shape (n_samples,)
            Time until the event, or until a record was last seen, in (0, inf).
        event : array-like of shape (n_samples,)
            Whether it ended with the event: 0 and 1, or booleans.
        groups : array-like of shape (n_samples,), default=None
            Whose each record is. None is a person a record.

        Returns
        -------
        table : Bunch
            `X` of shape (n_samples * n_periods, n_features + n_periods - 1): the features and
            indicators of all periods but the first one, a data frame if X is one of pandas; `y`, 1
            where the event ended the period; `exposure`, the time at risk in it; `rate`, `y` over
            that, a target with `exposure` as its weight; `offset`, the logarithm of `exposure`, 0
            where nothing is at risk, for `y` with the weight ``exposure > 0``; `groups`.

        Raises
        ------
        ValueError
            If a duration is not positive and finite, an event is not 0 or 1, lengths differ, or a
            parameter is out of range.
        """
        self.check()
        rows, n_samples = self._rows(X), len(X)
        duration = _column(duration, "duration", n_samples, float)
        event = _column(event, "event", n_samples, float)
        if not ((duration > 0) & (duration < np.inf)).all():
            raise ValueError("duration must be positive and finite everywhere")
        if not np.isin(event, (0, 1)).all():
            raise ValueError("event must be 0 or 1 everywhere: 1 where the duration ends with it")
        groups = np.arange(n_samples) if groups is None else groups
        groups = _column(groups, "groups", n_samples, None)
        exposure = self._at_risk(duration)
        ends = (exposure > 0) & (duration[:, np.newaxis] <= self._edges()[1:])
        y, exposure = (event[:, np.newaxis] * ends).ravel(), exposure.ravel()
        exposure = np.where(y > 0, np.maximum(exposure, 1 / self.largest_rate), exposure)
        # of any time at risk the rate is finite, and the logarithm an offset that `fit` takes
        exposure = np.where(exposure > 0, np.clip(exposure, 1e-21, 1e21), 0.0)
        at_risk = np.where(exposure > 0, exposure, 1.0)
        return Bunch(
            X=rows,
            y=y,
            exposure=exposure,
            rate=y / at_risk,
            offset=elementwise(np.log, at_risk),
            groups=np.repeat(groups, len(rows) // n_samples),
        )

    def hazard(self, model, X: ArrayLike):
        """Hazards of records in every period, of a fitted model.

        Parameters
        ----------
        model : regressor
            It was fitted to the rows of `expand`, and predicts rates without an offset.
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        hazard : ndarray of shape (n_samples, n_periods)
            In events a unit of time.
        """
        return np.asarray(model.predict(self._rows(X))).reshape(len(X), -1)

    def survival_function(self, model, X: ArrayLike, times: ArrayLike):
        """Probabilities that no event has happened until given times.

        Parameters
        ----------
        model : regressor
            As of `hazard`.
        X : array-like of shape (n_samples, n_features)
        times : array-like of shape (n_times,)
            In [0, inf).

        Returns
        -------
        survival : ndarray of shape (n_samples, n_times)

        Raises
        ------
        ValueError
            If a time is negative, infinite or NaN.
        """
        times = np.asarray(times, dtype=float)
        if times.ndim != 1 or not ((times >= 0) & (times < np.inf)).all():
            raise ValueError(f"times must be a sequence of numbers in [0, inf), got {times!r}")
        return np.exp(-self.hazard(model, X) @ self._at_risk(times).T)

    def concordance(self, model, X: ArrayLike, duration: ArrayLike, event: ArrayLike) -> float:
        """Share of comparable pairs that hazards order as durations do (Harrell's C); not private.

        It is computed from these records without noise, so take records that may be public. A pair
        is comparable if the shorter duration ended with the event. Equal hazards count half.

        Parameters
        ----------
        model : regressor, as of `hazard`
        X, duration, event : as of `expand`

        Returns
        -------
        concordance : float
            0.5 is that of no model; NaN where no pair is comparable.

        Raises
        ------
        ValueError
            As of `expand`.
        """
        self.expand(X, duration, event)  # refuses what is invalid
        hazard = self.hazard(model, X)[:, 0]
        duration, event = np.asarray(duration, dtype=float), np.asarray(event, dtype=bool)
        agreed = n_pairs = 0.0
        for i in np.flatnonzero(event):
            later = (duration > duration[i]) | ((duration == duration[i]) & ~event)
            others = hazard[later]
            agreed += (others < hazard[i]).sum() + (others == hazard[i]).sum() / 2
            n_pairs += len(others)
        return agreed / n_pairs if n_pairs else float("nan")

    def _edges(self):
        """Where periods begin and end, with 0 and infinity."""
        cuts = np.asarray(self.cuts, dtype=float)
        is_inside = cuts.ndim == 1 and ((cuts > 0) & (cuts < np.inf)).all()
        if not is_inside or (np.diff(cuts) <= 0).any():
            raise ValueError(f"cuts must increase and lie in (0, inf), got {self.cuts!r}")
        return np.concatenate([[0.0], cuts, [np.inf]])

    def _at_risk(self, durations):
        """Time spent in each period, of shape (n_durations, n_periods)."""
        edges = self._edges()
        return np.clip(durations[:, np.newaxis] - edges[:-1], 0, np.diff(edges))

    def _rows(self, X):
        """Features and indicators of the periods: every record in every period."""
        cuts, values = self._edges()[1:-1], read_array(X, dtype=np.float64)
        indicators = np.tile(np.eye(len(cuts) + 1)[:, 1:], (len(values), 1))
        rows = np.hstack([np.repeat(values, len(cuts) + 1, axis=0), indicators])
        if not hasattr(X, "iloc"):
            return rows
        return type(X)(rows, columns=[*X.columns, *(f"after {cut:g}" for cut in cuts)])


def _column(values, name, n_samples, dtype):
    """An array of one value a record."""
    array = read_input(np.asarray, values, dtype=dtype, name=name)
    if array.shape != (n_samples,):
        raise ValueError(f"{name} must have shape ({n_samples},), got {array.shape}")
    return array
