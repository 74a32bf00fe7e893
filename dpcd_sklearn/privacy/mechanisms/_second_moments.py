"""Second moments of rows alone, with Gaussian noise: a curvature of the squared loss, and no more.

Sensitivities stand in ``_curvature_units``. Proof: ``proofs/release_curvature.md``.
"""

import numpy as np

from ...losses import SquaredLoss
from ..accounting._events import GaussianEvent
from ._curvature_units import SquareUnits
from ._gaussian_sum import SumOracle, SumUnits
from ._questions import Gram, source_of


class SecondMomentUnits(SquareUnits):
    """Units of one matrix of second moments.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent of one release, or a NonPrivateEvent.
    n_samples, n_normalizer : as of Units
    n_features : int
    row_norm : float
        Rows are clipped to it, their constant included.
    constant : float, > 0
        What stands behind the features of each row; below `row_norm`.

    Raises
    ------
    TypeError, ValueError
        If the event has other releases, or the numbers are outside of what is proved.
    """

    what = "second moments"

    def __init__(self, event, *, n_samples, n_normalizer, n_features, row_norm, constant):
        if not 1e-9 < constant < row_norm < 1e9:
            raise ValueError(f"rows are clipped to a norm above {constant:g} and below 1e9")
        smoothness = np.append(np.ones(n_features), constant**-2.0)
        super().__init__(
            event, n_samples=n_samples, smoothness=smoothness, n_normalizer=n_normalizer
        )
        self.row_norm, self.constant = row_norm, constant
        if self.noiseless:
            return
        release = self._only(GaussianEvent, self.what)
        if release.count != 1:
            raise ValueError(f"{self.what} are released once, not as {event}")
        self.bits, self.row_units = self.matrix_grid(release.noise_multiplier)

    noise = SumUnits.noise


class SecondMomentOracle(SumOracle):
    """Releases second moments of rows, once.

    Parameters
    ----------
    receipt, units, place, key : as of SumOracle
        SecondMomentUnits; the place has bounds and a centre, and targets that nobody looks at.
    """

    def __init__(self, receipt, units, place, *, key=None):
        units.redeem(receipt, place, True)
        self._units, self._source, self._left = units, source_of(key), 1
        self._place = place.second_order(SquaredLoss(), units.smoothness, fit_intercept=True)

    def release_curvature(self):
        """Noisy means of products of features, and of features times the constant.

        Returns
        -------
        ndarray of shape (n_features + 1, n_features + 1), symmetric

        Raises
        ------
        RuntimeError
            If it was released before; nothing is drawn.
        """
        units, noise = self._units, self._spent()
        if units.noiseless:
            return self._place.gram(np.inf, 0.0) / units.n_normalizer
        question = Gram(units.row_norm, float(units.row_units))
        noisy = self._source.release(self._place, question, noise)
        return units.noisy_mean(noisy, units.row_norm / units.row_units)
