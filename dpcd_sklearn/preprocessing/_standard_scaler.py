"""Scaling whose centres and widths are found in the records, at a price."""

import math
from dataclasses import KW_ONLY, dataclass

from scipy.sparse import issparse

from ..plan._scale_choices import AMPLE_EVIDENCE, find_scales, most_zooms, n_choices
from ..privacy.accounting._calibration import greedy_fit_event
from ..privacy.mechanisms._quantiles import QuantileOracle, QuantileUnits
from ..privacy.sums._place import LocalPlace
from ..utils._input import read_records
from ._bounds_scaler import CHECKS, BoundedMap
from ._private_transformer import OF_BUDGET, PrivateTransformer


@dataclass(eq=False, repr=False)
class DPStandardScaler(PrivateTransformer, BoundedMap):
    r"""Centre and scale features by private quantiles, and clip them to [-1, 1].

    For raw columns of which no bounds are known. Feature j of a record becomes

    .. math::

        z_{ij} = \frac{\min(\max(x_{ij}, c_j - h_j), c_j + h_j) - c_j}{h_j},

    with :math:`c_j` the middle of its quartiles and :math:`h_j` twice the distance between them.
    Both are quantiles, so a few records far away move nothing.

    **Privacy**

    $guarantee
    - Charged: one choice a column (the octave of the median of abs(x)), three more (quartiles
      and an interval around them) with centring, one with tails, and of many records up to five
      zooms, as one event, before a record is used.
    - Not protected: shapes, dtype, layout and column names; the time of sparse data, which follows
      its number of entries. The transformed records are as sensitive as the records. NaN and
      infinite values break the promise on the domain: the error about them is outside the
      guarantee.

    Parameters
    ----------
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone: a fifth of what the models behind it have by default. Infinity
        takes the same cells without noise, and protects nobody.
    $delta
    with_centering : bool, default=True
        Whether the middle of the quartiles becomes 0. If False, zero stays zero, as sparse data
        needs, and one choice a column is paid for instead of four.
    with_tails : bool, default=False
        Whether widths double until they hold 19 of 20 records, for columns whose few large numbers
        matter: delays, incomes. A twentieth of the records far away moves them then. Of so few
        records that they could not tell of a tail none is looked for: a public rule. It needs
        `with_centering`.
    $relation
    copy : bool, default=True
        If False, `transform` and `inverse_transform` overwrite X where they can: a NumPy array or
        a CSR or CSC matrix of writeable floats. Anything else is copied, data frames always.
    $ledger_and_seed

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        What is subtracted. Released.
    scale_ : ndarray of shape (n_features,), > 0
        What is divided by, :math:`h_j`. Released.
    feature_bounds_ : tuple (lo, hi) of ndarray of shape (n_features,)
        Where features are clipped, ``center_`` ∓ ``scale_``, in the units of X. Released, hence
        public now. What `transform` returns has the bounds (-1, 1): state those to the next step.
    $of_fit

    Raises
    ------
    $refused_charge
    TypeError, ValueError
        If a parameter is invalid, if X is empty, NaN or infinite somewhere, or if X is sparse and
        to be centred; nothing was charged.

    $few_records

    Notes
    -----
    Each choice is an exponential mechanism. The score of a cell is minus the number of records
    that would have to move for it to hold the quantile. Octaves are those of 2^-125 to 2^125.
    Quartiles are found to a 64th of the upper end of the octave. Of a column far from zero beside
    its spread both lie in one cell, and finer cells there are zoomed in on, up to five times and as
    far as evidence (a public number) and double precision go. The last choice is between intervals
    around that centre: where records are not spread within any, but most are one number, the
    width is twice the upper end of the octave. A column that is mostly zero is clipped to [-1, 1],
    if evidence does not tell the size of what is not zero: of counts it becomes the indicator of
    "not zero".

    The result keeps float32, its memory layout and sparsity; other dtypes become float64.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([30, 1e6], [10, 1e5], size=(50_000, 2))
    >>> scaler = DPStandardScaler(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(scaler.center_ - [30, 1e6]) < [5, 2e5]))
    True
    >>> Z = scaler.transform(X)
    >>> float(np.abs(Z).max())
    1.0
    >>> print(scaler.planned_event(50_000, 2))
    18 choices of bounded range 0.08647, under replace-one neighbours
    """

    _remedy = "bounds that you know to a BoundsScaler"
    _parameter_constraints = OF_BUDGET | dict.fromkeys(
        ("with_centering", "with_tails", "copy"), ["boolean"]
    )

    _: KW_ONLY
    with_centering: bool = True
    with_tails: bool = False
    copy: bool = True

    def _read(self, X, *, reset):
        X = read_records(self, X, reset=reset, **CHECKS)
        if issparse(X) and self.with_centering:
            raise ValueError(f"X is sparse, but {self._how_zero_stays(0)}")
        return X

    def _release(self, releases, tables, stated):
        (X,), plan = tables, releases.plan
        (units,) = plan.units
        how, zooms = self._way(X.shape[1], plan.budget)
        oracle = releases.oracle(QuantileOracle, units, LocalPlace(X))
        evidence = math.inf if units.noiseless else plan.budget.n * units.eta
        self.center_, self.scale_ = find_scales(oracle, "features", how, evidence, zooms=zooms)
        self.feature_bounds_ = self.center_ - self.scale_, self.center_ + self.scale_

    def _way(self, n_features, budget):
        """How scales are looked for, and with how many zooms: the finest way there is evidence for.

        Near zero a zoom gains nothing, so it must take little from other choices.
        """
        if not self.with_centering:
            return "octaves", 0
        rho = budget.rho if budget.private else math.inf
        evidence = budget.n * math.sqrt(8 * rho)  # of one choice alone
        if not self.with_tails:
            return "quartiles", most_zooms(evidence, n_features, "quartiles", 2 * AMPLE_EVIDENCE)
        if evidence / math.sqrt(n_choices(n_features, "tails")) < AMPLE_EVIDENCE:
            return "quartiles", 0
        return "tails", most_zooms(evidence, n_features, "tails", 4 * AMPLE_EVIDENCE)

    def _event(self, n_features, budget):
        if self.with_tails and not self.with_centering:
            raise ValueError(
                "with_tails=True needs with_centering=True: tails are distances from a centre"
            )
        count = n_choices(n_features, *self._way(n_features, budget))
        return greedy_fit_event(budget, count, 1.0)

    def _needed_share(self, signal, n_features):
        """Share of μ² in a pipeline, from its n μ: a model suffers more from wrong scales."""
        needed = n_choices(n_features, "quartiles") * (AMPLE_EVIDENCE / (2 * signal)) ** 2
        return min(max(needed, 0.1), 0.3)

    def _units(self, parts, n_features, sizes):
        return map(QuantileUnits, parts)

    def _map(self):
        lo, hi = self.feature_bounds_
        return lo, hi, self.center_, self.scale_

    def _how_zero_stays(self, j):
        return "centring would make it dense; pass with_centering=False"

    @property
    def _takes_sparse(self):
        return not self.with_centering
