"""Columns mapped to a uniform or normal law by quantiles that are released privately."""

from numbers import Integral

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from ..utils._compat import Interval, StrOptions
from ..utils._tiles import within_range
from ..utils._typing import ArrayLike, Auto, Seed
from ._quantile_step import QuantileStep

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
