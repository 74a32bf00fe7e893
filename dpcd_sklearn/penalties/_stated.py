"""Penalties with parameters of their own, as users state them."""

import math
from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral, Real

import numpy as np

from ..utils._compat import Interval
from ..utils._public import check_interval
from ..utils._stated import Stated

_BOUND = [Interval(Real, None, None, closed="both")]


class StatedPenalty(Stated):
    """A penalty that an object states.

    Attributes
    ----------
    word : str
        Of which penalty of `PENALTIES` it is.
    """

    word = None

    def by_column(self, n_features, columns):
        """Return signs or groups of columns, by their places, as a tuple."""
        return None


class Box(StatedPenalty):
    """Bounds of every coefficient, in units of one over feature.

    Parameters
    ----------
    lo, hi : float, lo < hi, default=0.0 and inf
        Either may be infinite; public.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import Box
    >>> DPLinearRegressor(penalty=Box(-1.0, 1.0)).get_params()["penalty__hi"]
    1.0
    """

    word = "box"
    _parameter_constraints = {"lo": _BOUND, "hi": _BOUND}

    def __init__(self, lo: float = 0.0, hi: float = math.inf):
        self.lo = lo
        self.hi = hi

    def check(self):
        """Refuse what is no interval, as of any parameter."""
        super().check()
        check_interval((self.lo, self.hi), "Box")


class Monotonic(StatedPenalty):
    """An elastic net of coefficients with stated signs.

    Its strength is the estimator's `alpha` and its share of l1 `l1_ratio`: ``alpha=0`` states signs
    alone, ``l1_ratio=1`` a lasso and ``l1_ratio=0`` a ridge with signs.

    Parameters
    ----------
    monotonic_cst : sequence of {-1, 0, 1}, or dict by column name, default=()
        As of scikit-learn's HistGradientBoostingRegressor: predictions never fall as a feature with
        1 grows, never rise with -1, and 0 states nothing. A dict may leave columns out;
        an empty one states nothing. Public.

    Raises
    ------
    ValueError
        By the fit, before anything is charged: if other numbers are stated, of another length, or
        of unknown columns, or for more than two classes, of which no coefficient has a sign.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import Monotonic
    >>> model = DPLinearRegressor(penalty=Monotonic([1, 0]), alpha=0.0, epsilon=float("inf"))
    >>> model.fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [2.0, 1.0, 0.0]).coef_[0] >= 0
    np.True_
    """

    word = "elasticnet"

    def __init__(self, monotonic_cst: Sequence[int] | Mapping[str, int] = ()):
        self.monotonic_cst = monotonic_cst

    def by_column(self, n_features, columns):
        signs = self.monotonic_cst
        if isinstance(signs, Mapping) or (isinstance(signs, Sequence) and not signs):
            stated, signs = dict(signs), np.zeros(n_features, dtype=object)
            for name, sign in stated.items():
                signs[_place(name, n_features, columns, "monotonic_cst")] = sign
        signs = np.asarray(signs, dtype=object)
        if signs.shape != (n_features,):
            raise ValueError(
                f"monotonic_cst must state one of -1, 0 and 1 for each of {n_features} features, "
                f"or be a dict by column name; got shape {signs.shape}"
            )
        for sign in signs:
            if isinstance(sign, bool) or not isinstance(sign, Real) or sign not in (-1, 0, 1):
                raise ValueError(f"monotonic_cst must hold -1, 0 and 1 alone, got {sign!r}")
        return tuple(map(int, signs))


class GroupLasso(StatedPenalty):
    """Lengths of groups of coefficients: the columns of a group are kept or left out together.

    It is the estimator's `alpha` times the sum over groups of the square root of the group's size
    times the length of its coefficients. Solvers that move all coefficients at once take it:
    ``SGD`` and ``SVRG``, of which ``solver="auto"`` chooses the first.

    Parameters
    ----------
    groups : sequence of sequences, default=()
        Indices or names of the columns of each group. No column is in two of them, and one in none
        is free. Public.

    Raises
    ------
    ValueError
        By the fit, before anything is charged: if a group is empty, or a column is in two of them
        or unknown.

    References
    ----------
    Yuan & Lin (2006). Model selection and estimation in regression with grouped variables. JRSSB.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.penalties import GroupLasso
    >>> DPLinearRegressor(penalty=GroupLasso([[0, 1], [2, 3]]), alpha=0.1).penalty
    GroupLasso(groups=[[0, 1], [2, 3]])
    """

    word = "group_lasso"

    def __init__(self, groups: Sequence[Sequence[int | str]] = ()):
        self.groups = groups

    def by_column(self, n_features, columns):
        try:
            groups = [list(group) for group in self.groups if not isinstance(group, str)]
        except TypeError as error:
            raise ValueError(f"groups must be lists of columns, got {self.groups!r}") from error
        if len(groups) < len(self.groups) or not all(groups):
            raise ValueError(f"groups must be lists of at least one column, got {self.groups!r}")
        found = tuple(
            tuple(_place(column, n_features, columns, "groups") for column in group)
            for group in groups
        )
        together = sum(found, ())
        if len(set(together)) < len(together):
            raise ValueError(f"groups must hold no column twice, got {self.groups!r}")
        return found


def _place(column, n_features, columns, name):
    """Where a column lies, by its name or index."""
    if isinstance(column, Integral) and not isinstance(column, bool):
        if 0 <= column < n_features:
            return int(column)
    elif isinstance(column, Hashable) and columns is not None and column in columns:
        return columns.index(column)
    known = f"0 to {n_features - 1}" if columns is None else f"of {list(columns)}"
    raise ValueError(f"{name} must be of columns of X, {known}, got {column!r}")
