"""Two noisy matrices at a released iterate, from which standard errors follow.

As curvatures are (``_curvature``): exact integer sums of products of rows, here of images in a
public geometry, that were scaled down to a public norm. Proof: ``proofs/release_moments.md``.
"""

import hashlib
import math

import numpy as np

from ..accounting._events import GaussianEvent
from ..noise._noise import NoiseSource
from ._curvature import SquareUnits, integer_transform


class MomentUnits(SquareUnits):
    """Units of two matrices of moments.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent of two releases, or a NonPrivateEvent.
    n_samples, smoothness, n_normalizer : as of Units

    Raises
    ------
    TypeError, ValueError
        If the event has other releases, or the numbers are outside of what is proved.
    """

    def __init__(self, event, *, n_samples, smoothness, n_normalizer):
        super().__init__(event, n_samples=n_samples, smoothness=smoothness,
                         n_normalizer=n_normalizer)  # fmt: skip
        if self.noiseless:
            return
        (release, *others) = event.releases
        if others or type(release) is not GaussianEvent or release.count != 2:
            raise TypeError(f"two moments are paid for together, not {event}")
        self.bits, self.row_units = self.square_grid(release.noise_multiplier)


class MomentOracle:
    """Releases two matrices of moments, once.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : MomentUnits
    place : Place
    loss : Loss
        Of one output, with a second derivative.
    fit_intercept : bool
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.
    """

    def __init__(self, receipt, units, place, *, loss, fit_intercept=True, key=None):
        units.redeem(receipt, place, fit_intercept)
        if key is not None:
            key = hashlib.blake2b(key, digest_size=32, person=b"moments").digest()
        self._units, self._noise, self._left = units, NoiseSource(key), 1
        self._sums = place.second_order(loss, units.smoothness, fit_intercept=fit_intercept)

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")

    def release_moments(self, root, coef, clip, row_norm):
        """Second moments in a geometry at an iterate: of curvature, and of clipped gradients.

        Parameters
        ----------
        root : ndarray of shape (n_coordinates, n_coordinates), lower triangular
            R, public: records are seen as z = R M^(-1/2) x.
        coef : ndarray of shape (n_coordinates,)
            Public.
        clip : float
            Of gradients; public.
        row_norm : float
            Of rows times the root of the loss' second derivative; public.

        Returns
        -------
        jacobian, scores : ndarrays of shape (n_coordinates, n_coordinates), symmetric
            Means of ℓ'' z zᵀ over records that are not clipped, and of g gᵀ.

        Raises
        ------
        RuntimeError
            If they were released before.
        ValueError
            If a width is not positive, or the geometry is zero or not finite.
        """
        units = self._units
        if self._left < 1:
            raise RuntimeError("moments are paid for once, and they were released")
        if not (0 < clip < math.inf and 0 < row_norm < math.inf):
            raise ValueError("clip and row_norm must be positive and finite")
        if units.noiseless:
            transform = np.asfortranarray(np.tril(root))
            sums = self._sums.image_grams(transform, coef, 1.0, math.inf, math.inf, 0.0)
            return [total / units.n_normalizer for total in sums]
        transform, exponent = integer_transform(root)
        self._left -= 1
        step = float(units.row_units)
        sums = self._sums.image_grams(
            transform, coef, 2.0**-exponent, float(clip), float(row_norm), step
        )
        return [
            units.noisy_mean(self._noise, total, units.bits, width / step)
            for total, width in zip(sums, (float(row_norm), float(clip)), strict=True)
        ]
