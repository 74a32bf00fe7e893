"""Columns mapped to a uniform or normal law by quantiles that are released privately."""

import math
from abc import abstractmethod
from numbers import Integral
from typing import Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtr, ndtri
from sklearn.base import OneToOneFeatureMixin
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import check_is_fitted

from ..plan._release import own_key
from ..plan._scale_choices import find_scales, zooms_of
from ..privacy.accounting._calibration import gaussian_fit_event
from ..privacy.accounting._events import FitEvent
from ..privacy.mechanisms._cell_sums import RunningOracle, RunningUnits
from ..privacy.mechanisms._quantiles import QuantileOracle, QuantileUnits
from ..privacy.mechanisms._units import Units
from ..privacy.sums._counts import N_LINEAR
from ..privacy.sums._place import LocalPlace
from ..utils._compat import Interval, StrOptions, fit_context
from ..utils._input import read_records
from ..utils._public import check_bounds
from ..utils._tiles import within_range
from ..utils._typing import ArrayLike, Auto, Column, Seed
from ._bounds_scaler import CHECKS
from ._private_transformer import (
    OF_BUDGET,
    PrivateTransformer,
    after_scales,
    few_records,
    lacks_evidence,
)

_SHARE_OF_RANGE = 0.3  # of ρ, where no bounds are stated
_WIDTH = 3.0  # of the range that is found, in inter-quartile ranges to either side


class QuantileStep(OneToOneFeatureMixin, PrivateTransformer):
    """A transformer that learns quantiles of its columns."""

    _parameter_constraints = OF_BUDGET | {"feature_bounds": [None, tuple, list, dict]}

    @abstractmethod
    def _quantiles(self):
        """Which quantiles are learnt: a list of numbers in [0, 1]."""

    @abstractmethod
    def _keep(self, values, lo, hi):
        """Keep what was released: an array (n_quantiles, n_features), and ends of the range."""

    # ---- the plan ----

    def _event(self, n_features, budget):
        counts = gaussian_fit_event(budget, 1)
        if self.feature_bounds is not None or not budget.private:
            return counts
        return after_scales(budget, n_features, _SHARE_OF_RANGE, counts)

    def _units(self, event, n_features, n_samples, n_normalizer):
        if math.isinf(self.epsilon):
            return [Units(event)]
        *ranges, counts = (FitEvent((part,), event.neighboring) for part in event.releases)
        sizes = {"n_samples": n_samples, "n_normalizer": n_normalizer}
        return [*map(QuantileUnits, ranges), RunningUnits(counts, n_columns=n_features, **sizes)]

    # ---- fitting ----

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: None = None, groups: Column = None) -> Self:
        """Find quantiles, charging the accountant before a record is used.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The records; sparse ones only where zero stays zero.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record: one of each is read, at most k for ``Persons(k)``.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused or can't be written; no record was used.
        TypeError, ValueError
            If a parameter or X is invalid; nothing was charged.
        """
        X = self._read(X, reset=True)
        _, X = self._read_by_fit(groups, X.shape[0], X)
        bounds, plan = self._bounds(), self._planned(*X.shape)
        values, lo, hi = np.empty((0, X.shape[1])), None, None
        if plan.units:
            receipt, key = self._paid(plan, X.shape[1])
            values, lo, hi = self._found(X, plan, receipt, key, bounds)
        self._keep(values, lo, hi)
        self._promise(plan)
        return self

    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def _found(self, X, plan, receipt, key, bounds):
        *ranges, units = plan.units
        wanted = np.array(self._quantiles())
        if units.noiseless:
            units.redeem(receipt)
            values = np.quantile(X.toarray() if issparse(X) else X, wanted, axis=0)
            return (values, *(bounds or (values[0], values[-1])))
        place = LocalPlace(X)
        for of_range in ranges:
            oracle = QuantileOracle(receipt, of_range, place, key=own_key("range", key))
            oracle = receipt.shown(oracle, of_range)
            how = "quartiles", plan.budget.n * of_range.eta, _WIDTH
            zooms = zooms_of(of_range, X.shape[1])
            center, half_width = find_scales(oracle, "features", *how, zooms=zooms, twice=True)
            bounds = center - half_width, center + half_width
        oracle = RunningOracle(receipt, units, place, key=own_key("counts", key))
        n_known = X.shape[0] if plan.budget.neighboring == "replace_one" else None
        oracle = receipt.shown(oracle, units)
        running = oracle.release_running_counts(*bounds, n_known)
        return (_inverted(running, wanted, *bounds), *bounds)

    def _read(self, X, reset):
        checks = CHECKS if self._takes_sparse else CHECKS | {"accept_sparse": False}
        if issparse(X) and not self._takes_sparse:
            raise TypeError(
                f"X is sparse, but {type(self).__name__} as its parameters are would make it "
                "dense; pass X.toarray(), or a scaler with with_centering=False"
            )
        return read_records(self, X, reset=reset, **checks)

    @property
    def _takes_sparse(self):
        """Whether zero stays zero."""
        return False

    def _bounds(self):
        if self.feature_bounds is None:
            return None
        names = getattr(self, "feature_names_in_", None)
        return check_bounds(self.feature_bounds, self.n_features_in_, columns=names)

    def _said_of_few(self, units, n_normalizer):
        if lacks_evidence(units, n_normalizer):
            return few_records(self, n_normalizer, "quantiles", "feature_bounds that you know")
        return None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _inverted(running, quantiles, lo, hi):
    """Quantiles of each column from noisy running counts: linear within cells."""
    cells = np.arange(N_LINEAR + 1) / N_LINEAR
    found = np.empty((len(quantiles), len(running)))
    for j, counts in enumerate(running):
        below = np.append(0.0, isotonic_regression(np.clip(counts, 0.0, max(counts[-1], 0.0))))
        low = np.interp(quantiles * below[-1], below, cells)
        # beyond the last record counts are alike: there the first cell of so many is right
        high = 1.0 - np.interp((1 - quantiles) * below[-1], below[-1] - below[::-1], cells)
        share = np.where(quantiles > 0.5, high, low)
        found[:, j] = lo[j] + share * (hi[j] - lo[j])
    return np.clip(found, lo, hi)


# The normal law is cut where scikit-learn cuts it.
_LEAST_PROBABILITY = 1e-7
NORMAL_BOUND = float(-ndtri(_LEAST_PROBABILITY - np.spacing(1)))


class DPQuantileTransformer(QuantileStep):
    r"""Map each column to a uniform or a normal law, by its released quantiles.

    As scikit-learn's QuantileTransformer. What lies beyond the released quantiles gets the value of
    the last one, so bounds of the result are known, and are told in a `PrivatePipeline`.

    **Privacy**

    $guarantee
    - Charged, as one event, before a record is used: running counts of all columns together, from
      which all quantiles follow, however many; and five choices a column for the range that they
      are looked for in, where no bounds are stated.
    - Not protected: shapes, dtype and column names. The transformed records are as sensitive as the
      records. NaN and infinite values break the promise on the domain.

    Parameters
    ----------
    n_quantiles : int from 2 to 1,000, default=100
        How many quantiles are kept; their number costs nothing. Beyond 257 they say nothing new.
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity takes the quantiles of the records, and protects nobody.
    $delta
    output_distribution : {"uniform", "normal"}, default="uniform"
        Numbers from 0 to 1, or normal ones, cut to ∓5.2.
    $bounds_of_quantiles
    $neighboring
    $n_public
    $accountant
    $random_state

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Quantiles of each column, in order. Released.
    references_ : ndarray of shape (n_quantiles,)
        Which ones, from 0 to 1. Public.
    $privacy_event_
    $privacy_spent_
    $n_features_in_
    $feature_names_in_

    Raises
    ------
    $BudgetExceededError
    $LedgerError
    TypeError, ValueError
        If a parameter is invalid, or X is sparse, empty, or NaN or infinite somewhere; nothing was
        charged.

    Warns
    -----
    UserWarning
        If n and epsilon are too small for so many columns: a public fact.

    See Also
    --------
    DPStandardScaler : Scales, and leaves the law of a column as it is.

    Notes
    -----
    As in `DPRobustScaler`. Proof: ``privacy/proofs/release_running_counts.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPQuantileTransformer
    >>> X = np.random.default_rng(0).exponential(7.0, size=(50_000, 1))
    >>> Z = DPQuantileTransformer(epsilon=1.0).fit_transform(X)
    >>> bool(np.abs(np.quantile(Z, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.03)
    True
    """

    _parameter_constraints = QuantileStep._parameter_constraints | {
        "n_quantiles": [Interval(Integral, 2, 1000, closed="both")],
        "output_distribution": [StrOptions({"uniform", "normal"})],
    }

    def __init__(
        self,
        n_quantiles: int = 100,
        *,
        epsilon: float = 0.2,
        delta: Auto = "auto",
        output_distribution: str = "uniform",
        feature_bounds=None,
        neighboring: str = "replace_one",
        n_public: int | None = None,
        accountant=None,
        random_state: Seed | None = None,
    ):
        self.n_quantiles = n_quantiles
        self.epsilon = epsilon
        self.delta = delta
        self.output_distribution = output_distribution
        self.feature_bounds = feature_bounds
        self.neighboring = neighboring
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state

    charges_nothing = False

    def _quantiles(self):
        return np.linspace(0.0, 1.0, self.n_quantiles)

    def _keep(self, values, lo, hi):
        self.references_ = np.array(self._quantiles())
        self.quantiles_ = np.maximum.accumulate(values, axis=0)

    def transform(self, X: ArrayLike):
        """Map records, each by itself.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_mapped : ndarray of shape (n_samples, n_features)
        """
        return self._mapped(X, self._to_law)

    def inverse_transform(self, X: ArrayLike):
        """From the uniform or normal law to quantiles of the columns.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
        """
        return self._mapped(X, self._from_law)

    def _to_law(self, cells, quantiles):
        # where quantiles are one number, the middle of their places
        shares = np.interp(cells, quantiles, self.references_)
        shares -= np.interp(-cells, -quantiles[::-1], -self.references_[::-1])
        shares /= 2
        if self.output_distribution == "uniform":
            return shares
        return np.clip(ndtri(shares), -NORMAL_BOUND, NORMAL_BOUND)

    def _from_law(self, cells, quantiles):
        shares = ndtr(cells) if self.output_distribution == "normal" else cells
        return np.interp(shares, self.references_, quantiles)

    @np.errstate(all="ignore")
    def _mapped(self, X, function):
        check_is_fitted(self, "quantiles_")  # a refused fit leaves n_features_in_
        X = self._read(X, reset=False).copy()
        for j, quantiles in enumerate(self.quantiles_.T):
            X[:, j] = within_range(function(X[:, j].astype(np.float64), quantiles), X.dtype)
        return X
