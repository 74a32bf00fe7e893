"""Person-periods: survival by a Poisson regression with an offset."""

from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch, check_array

from ..utils._stated import Stated
from ..utils._typing import ArrayLike


class PiecewiseExponential(Stated):
    r"""Durations as person-periods, of which a Poisson regression is a survival model.

    Time is cut into periods, within which the hazard of a record x is constant:
    :math:`h(t, x) = \exp(b_k + w^T x)` for t in period k. Its likelihood is that of a Poisson
    regression of events on x and indicators of the periods, with the logarithm of the time at risk
    as offset (Holford 1980). Hence ``exp(w)`` are hazard ratios, as of Cox's model, and unlike
    there the baseline hazard is fitted too, and nothing compares one record with others.

    **Privacy**

    - Guarantee: nothing is learnt from the records, hence there is nothing to charge. Each record
      becomes periods by itself, whose number depends on its duration. So **the person is the
      unit**: fit with ``neighboring=Persons()`` and ``groups=table.groups``, or with
      ``neighboring=Persons(len(cuts) + 1)``, the largest number of periods. A fit of "replace_one"
      or "add_remove" would protect single periods of a person.
    - Not protected: the cuts, which are public and must not be chosen from the durations.

    Parameters
    ----------
    cuts : sequence of float, default=()
        Ends of all periods but the last one, which has none: increasing, in (0, inf), in the unit
        of durations. Public: never from the data. One event at a cut belongs to the period that
        ends there.

    Raises
    ------
    ValueError
        If cuts are not increasing, positive and finite.

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
           [6., 0., 0.],
           [6., 1., 0.],
           [6., 0., 1.]])
    >>> table.y, table.exposure, table.groups
    (array([1., 0., 0., 0.]), array([0.5, 1. , 2. , 1. ]), array([0, 1, 1, 1]))
    """

    def __init__(self, cuts: Sequence[float] = ()):
        self.cuts = cuts

    def expand(
        self, X: ArrayLike, duration: ArrayLike, event: ArrayLike, groups: ArrayLike | None = None
    ):
        """Make the rows of a Poisson regression, one for each period that a record has reached.

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
            `X` of shape (n_periods, n_features + len(cuts)): the features and indicators of all
            periods but the first one, a data frame if X is one; `y`, 1 where the event ended the
            period; `exposure`, the time at risk in it, and `offset`, its logarithm; `groups`.

        Raises
        ------
        ValueError
            If a duration is not positive and finite, an event is not 0 or 1, or lengths differ.
        """
        edges = self._edges()
        values, names = check_array(X, dtype=np.float64), getattr(X, "columns", None)
        duration = _column(duration, "duration", len(values), float)
        event = _column(event, "event", len(values), float)
        if not ((duration > 0) & (duration < np.inf)).all():
            raise ValueError("duration must be positive and finite everywhere")
        if not np.isin(event, (0, 1)).all():
            raise ValueError("event must be 0 or 1 everywhere: 1 where the duration ends with it")
        groups = np.arange(len(values)) if groups is None else groups
        groups = _column(groups, "groups", len(values), None)
        # 1. the periods that each record has reached, in the order of records
        record, period = np.nonzero(duration[:, np.newaxis] > edges[:-1])
        # 2. the time at risk in each, and what ended it
        ends = np.minimum(duration[record], edges[period + 1])
        exposure = ends - edges[period]
        y = event[record] * (duration[record] <= edges[period + 1])
        # 3. the features, and indicators of the periods
        rows = self._rows(values[record], period)
        if names is not None:
            rows = type(X)(rows, columns=[*names, *(f"after {cut:g}" for cut in edges[1:-1])])
        return Bunch(X=rows, y=y, exposure=exposure, offset=np.log(exposure), groups=groups[record])

    def hazard(self, model, X: ArrayLike):
        """Hazards of records in every period, of a fitted model.

        Parameters
        ----------
        model : regressor
            It was fitted to the rows of `expand`, and predicts rates without an offset.
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        hazard : ndarray of shape (n_samples, len(cuts) + 1)
            In events a unit of time.
        """
        n_periods, names = len(self._edges()) - 1, getattr(X, "columns", None)
        values = check_array(X, dtype=np.float64)
        periods = np.tile(np.arange(n_periods), len(values))
        rows = self._rows(np.repeat(values, n_periods, axis=0), periods)
        if names is not None:
            rows = type(X)(rows, columns=model.feature_names_in_)
        return np.asarray(model.predict(rows)).reshape(-1, n_periods)

    def survival_function(self, model, X: ArrayLike, times: ArrayLike):
        """Probabilities that no event has happened until given times.

        Parameters
        ----------
        model, X
            As of `hazard`.
        times : array-like of shape (n_times,)
            In [0, inf).

        Returns
        -------
        survival : ndarray of shape (n_samples, n_times)
        """
        edges, times = self._edges(), np.asarray(times, dtype=float)
        if times.ndim != 1 or not ((times >= 0) & (times < np.inf)).all():
            raise ValueError(f"times must be a sequence of numbers in [0, inf), got {times!r}")
        at_risk = np.clip(times[:, np.newaxis] - edges[:-1], 0, np.diff(edges))
        return np.exp(-self.hazard(model, X) @ at_risk.T)

    def _edges(self):
        """Where periods begin and end, with 0 and infinity."""
        cuts = np.asarray(self.cuts, dtype=float)
        edges = np.concatenate([[0.0], np.atleast_1d(cuts), [np.inf]])
        if cuts.ndim != 1 or not (np.diff(edges) > 0).all():
            raise ValueError(f"cuts must increase and lie in (0, inf), got {self.cuts!r}")
        return edges

    def _rows(self, values, period):
        indicators = period[:, np.newaxis] == np.arange(1, len(self._edges()) - 1)
        return np.hstack([values, indicators.astype(np.float64)])


def _column(values, name, n_samples, dtype):
    """An array of one value a record."""
    array = np.asarray(values, dtype=dtype)
    if array.shape != (n_samples,):
        raise ValueError(f"{name} must have shape ({n_samples},), got {array.shape}")
    return array
