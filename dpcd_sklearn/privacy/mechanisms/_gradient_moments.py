"""Two noisy matrices at a released iterate, from which standard errors follow.

As curvatures are (``_curvature``): exact integer sums of products of rows, here of images in a
public geometry, that were scaled down to a public norm. Proof: ``proofs/release_moments.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..accounting._events import GaussianEvent
from ._curvature import integer_transform
from ._curvature_units import SquareUnits
from ._gaussian_sum import middles
from ._questions import Answered, GaussianNoise, source_of


class MomentUnits(SquareUnits):
    """Units of two matrices of moments.

    Parameters
    ----------
    event : FitEvent
        A GaussianEvent of two releases, the matrices, and one of a single release, the mean
        square of gradients;
        or a NonPrivateEvent.
    n_samples, smoothness, n_normalizer : as of GeometryUnits

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
        gaussian = all(type(release) is GaussianEvent for release in event.releases)
        if not gaussian or [release.count for release in event.releases] != [2, 1]:
            raise TypeError(f"two moments and a mean square are paid for together, not {event}")
        matrices, mean_square = event.releases
        self.bits, self.row_units = self.square_grid(matrices.noise_multiplier)
        # of Σ |q|², whose sensitivity is that of one row's square: less than a matrix' has
        self.mean_square_bits, self.mean_square_units = self.square_grid(
            mean_square.noise_multiplier
        )


@dataclass(frozen=True, eq=False)
class MomentSums(Answered):
    """Sums of products of images in a geometry at an iterate: of rows, of gradients, or a trace."""

    of: str
    root: np.ndarray
    coef: np.ndarray
    widths: tuple
    units: float


class MomentOracle:
    """Releases two matrices of moments, and a mean square before, each once.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : MomentUnits
    place : Place
    loss : Loss
        Loss of one output, with a second derivative.
    fit_intercept : bool
    key : bytes of length 32, or None
        Reproducible noise.
    """

    def __init__(self, receipt, units, place, *, loss, fit_intercept=True, key=None):
        units.redeem(receipt, place, fit_intercept)
        self._units, self._source, self._left = units, source_of(key), 1
        self._mean_squares_left = 1
        self._sums = place.second_order(loss, units.smoothness, fit_intercept=fit_intercept)

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")

    def release_mean_square(self, root, coef, clip):
        """The mean squared norm of clipped gradients in a geometry at an iterate.

        Parameters
        ----------
        root, coef, clip : as of `release_moments`

        Returns
        -------
        float
            It may be negative.

        Raises
        ------
        RuntimeError
            If it was released before.
        ValueError
            If the clip is not positive, or the geometry is zero or not finite.
        """
        if self._mean_squares_left < 1:
            raise RuntimeError("one mean square is paid for, and it was released")
        units = self._units
        step = 0.0 if units.noiseless else float(units.mean_square_units)
        _, scores = self._sums_of(root, coef, clip, clip, clip, step)
        self._mean_squares_left -= 1
        if units.noiseless:
            return float(np.trace(scores)) / units.n_normalizer
        question = MomentSums("trace", root, coef, (clip, clip, clip), step)
        total = np.array([np.trace(scores)])
        z = units.event.releases[1].noise_multiplier
        noise = GaussianNoise(units.mean_square_bits, z)
        (noisy,) = middles(self._source.release(total, question, noise))
        return float(noisy) * (clip / step) ** 2 / units.n_normalizer

    def release_moments(self, root, coef, clip, row_norm, score_norm):
        """Second moments in a geometry at an iterate: of curvature, and of clipped gradients.

        Parameters
        ----------
        root : ndarray of shape (n_coordinates, n_coordinates), lower triangular
            R, public: records are seen as z = R M^(-1/2) x.
        coef : ndarray of shape (n_coordinates,)
            Public.
        clip : float
            Clip of gradients; public.
        row_norm : float
            Norm of rows times the root of the loss' second derivative; public.
        score_norm : float
            Norm of gradients in their second moments; public.

        Returns
        -------
        jacobian, scores : ndarrays of shape (n_coordinates, n_coordinates), symmetric
            Means of ℓ'' z zᵀ over records whose gradient is within the clip, and of g gᵀ.

        Raises
        ------
        RuntimeError
            If they were released before.
        ValueError
            If a width is not positive, or the geometry is zero or not finite.
        """
        if self._left < 1:
            raise RuntimeError("moments are paid for once, and they were released")
        units = self._units
        step = 0.0 if units.noiseless else float(units.row_units)
        sums = self._sums_of(root, coef, clip, row_norm, score_norm, step)
        self._left -= 1
        if units.noiseless:
            return [total / units.n_normalizer for total in sums]
        noise = GaussianNoise(units.bits, units.event.releases[0].noise_multiplier)
        found, widths = [], (clip, row_norm, score_norm)
        for of, total, width in zip(("rows", "gradients"), sums, widths[1:], strict=True):
            question = MomentSums(of, root, coef, widths, step)
            noisy = self._source.release(total, question, noise)
            found.append(units.noisy_mean(noisy, width / step))
        return found

    def _sums_of(self, root, coef, *widths_and_step):
        *widths, step = map(float, widths_and_step)
        if not all(0 < width < math.inf for width in widths):
            raise ValueError("clips and norms must be positive and finite")
        if step == 0:
            plain = math.inf, math.inf, math.inf, 0.0
            return self._sums.image_grams(np.asfortranarray(np.tril(root)), coef, 1.0, *plain)
        transform, exponent = integer_transform(root)
        return self._sums.image_grams(transform, coef, 2.0**-exponent, *widths, step)
