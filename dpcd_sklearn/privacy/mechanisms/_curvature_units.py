"""Units and sensitivities of a curvature, of moments of rows and of preconditioned gradients.

Sensitivities are written here, once; from public numbers alone, with the plan. Proofs:
``proofs/release_mean_row.md``, ``proofs/release_curvature.md``,
``proofs/release_preconditioned.md``.
"""

import math
from typing import NamedTuple

import numpy as np

from ..accounting._events import GaussianEvent
from ..sums._integer_rows import most_of_rows, most_of_transform
from ._gaussian_sum import middles, out_of_range
from ._questions import GaussianNoise, NoNoise
from ._units import GeometryUnits

# Proofs and memory are made for so many.
MOST_COORDINATES = 4_001
MOST_RECORDS = 2**36
_MOST_BITS = 46
_LIMB = 15
_REMEDY = "change epsilon, max_iter or curvature_share"
# Units of a row in the sum of all, at most: far finer than its noise, and 2^36 of them are exact.
_MOST_OF_ROW = 2.0**16


def matrix_sensitivity(norm, neighboring):
    """Sensitivity of Σ q qᵀ in the Frobenius norm, for rows within `norm`.

    |q qᵀ - r rᵀ|² = |q|⁴ + |r|⁴ - 2 (qᵀr)², which is largest for orthogonal rows.
    """
    return {"replace_one": math.sqrt(2.0), "add_remove": 1.0}[neighboring] * norm**2


def row_sensitivity(norm, neighbors):
    """Sensitivity of Σ q, for rows within `norm`: two of them, or one."""
    return neighbors * norm


def image_sensitivity(norm, size, neighbors):
    """Sensitivity of a sum's image, cut to integers: a record's is within `norm` of such units.

    Cut to the next lower integer, each of `size` entries differs by less than one more: those of
    all outputs.
    """
    return neighbors * norm + math.sqrt(size)


def constant_of_rows(loss, smoothness, fit_intercept):
    """Length of the intercept's constant in the units of rows; 0 without an intercept."""
    return math.sqrt(loss.curvature / float(smoothness[-1])) if fit_intercept else 0.0


class Grid(NamedTuple):
    """Noise on sums of integers, and how many units the norm of a record has; 0 without noise."""

    noise: GaussianNoise | NoNoise
    units: int


class SquareUnits(GeometryUnits):
    """Units of sums of squares and products of rows that are cut to integers.

    Parameters
    ----------
    event, n_samples, smoothness, n_normalizer, n_outputs : as of GeometryUnits

    Raises
    ------
    ValueError
        If the numbers are outside of what is proved.
    """

    def __init__(self, event, **numbers):
        super().__init__(event, **numbers)
        if self.n_coordinates > MOST_COORDINATES:
            raise ValueError(
                f"a curvature matrix of {self.n_coordinates:,} coordinates is more than the "
                f"{MOST_COORDINATES:,} that are held; use another solver, or fewer features"
            )
        if not self.noiseless:
            self.refuse_more_than(MOST_RECORDS)

    def matrix_grid(self, noise_multiplier):
        """The grid of a matrix whose rows are of 16 bits."""
        return self.square_grid(noise_multiplier, most_of_rows(self.n_coordinates))

    def square_grid(self, noise_multiplier, most=2.0**17):
        """The grid of sums of squares of rows, which stay below 2^62."""
        target = min(most**2, 2.0**58 / self.n_normalizer)
        sensitivity = matrix_sensitivity(1.0, self.event.neighboring)
        return self._sums_grid(noise_multiplier, sensitivity, 2, target)

    def _sums_grid(self, noise_multiplier, sensitivity, degree, target):
        """The grid of sums of this degree in rows; the sensitivity is that of rows within 1."""
        of_unit = noise_multiplier * sensitivity
        if not 2.0**-60 < of_unit < 2.0**40:
            raise out_of_range(noise_multiplier, remedy=_REMEDY)
        bits = min(48, math.floor(math.log2(of_unit * target)))
        # rows are rounded after the clip
        norm = (2.0**bits / of_unit) ** (1 / degree) * (1 - 2.0**-40)
        units = math.floor(norm - 0.5 * math.sqrt(self.n_coordinates))
        if bits < 1 or units < 2:
            raise out_of_range(noise_multiplier, remedy=_REMEDY)
        return Grid(GaussianNoise(bits, noise_multiplier), units)

    def noisy_mean(self, noisy, norm, units):
        """The mean of noisy sums of squares and its transpose, of rows of so many units a norm."""
        if self.noiseless:
            return noisy / self.n_normalizer
        noisy = middles(noisy)
        return (noisy + noisy.T) * (0.5 * (norm / units) ** 2 / self.n_normalizer)


class RowRelease(NamedTuple):
    """A mean over rows: its noise, the norm of a row and its units, and a unit of the mean."""

    noise: GaussianNoise
    norm: float
    units: int
    unit: float

    @property
    def std(self):
        """Standard deviation of the noise."""
        return math.ldexp(self.unit, self.noise.bits)


class CurvatureUnits(SquareUnits):
    """Units of a curvature and of gradients in its geometry.

    Parameters
    ----------
    event : FitEvent
        A GaussianEvent that counts the gradients, one of a single release, the curvature, and one
        of what is released of the rows, if anything is: their mean square, or it and their mean;
        or a NonPrivateEvent.
    n_samples, smoothness, n_normalizer : as of GeometryUnits
    row_norm : float
        Rows are clipped to it, in the units of sqrt(M_j / curvature of the loss), the intercept's
        constant included; those of the curvature, if `CurvatureOracle.see` says nothing else.
    n_outputs : int, default=1
        Number of outputs of the gradients.
    constant : float, default=0
        `constant_of_rows`, of the oracle's loss and intercept.
    most_times : float, default=0
        Up to which number the root of a person's number of records counts, if its mean is released;
        0 if it is not.

    Raises
    ------
    TypeError, ValueError
        If the event has other releases, or the numbers are outside of what is proved.
    """

    def __init__(
        self, event, *, n_samples, smoothness, n_normalizer, row_norm, n_outputs=1, constant=0.0,
        most_times=0.0,
    ):  # fmt: skip
        super().__init__(event, n_samples=n_samples, smoothness=smoothness,
                         n_normalizer=n_normalizer, n_outputs=n_outputs)  # fmt: skip
        self.row_norm, self.constant, self.most_times = row_norm, constant, most_times
        self.curvature = Grid(NoNoise(), 0)
        if self.noiseless:
            return
        gaussian = all(type(release) is GaussianEvent for release in event.releases)
        counts = [release.count for release in event.releases[1:]]
        if not gaussian or counts not in ([1], [1, 1], [1, 2], [1, 3]):
            raise TypeError(
                f"gradients, one curvature and moments of rows are paid for, not {event}"
            )
        self.check_row_norm(row_norm)
        gradients, curvature, *of_rows = event.releases
        self.n_of_rows = (counts[1] if of_rows else 0) - (most_times > 0)
        if not 0 <= self.n_of_rows <= 2:
            raise TypeError(f"moments of rows are paid for once, not by {event}")
        if of_rows:
            z, of_row = of_rows[0].noise_multiplier, row_sensitivity(1.0, self.neighbors)
            # the sensitivity of a sum of squares is that of one row: less than a matrix' has
            self.squares = self.square_grid(z)
            self.rows = self._sums_grid(z, of_row, 1, _MOST_OF_ROW)
        self.n_gradients, self.noise_multiplier = gradients.count, gradients.noise_multiplier
        self.curvature = self.matrix_grid(curvature.noise_multiplier)
        self._check_gradients()

    @property
    def counts(self):
        of_rows = 0 if self.noiseless else self.n_of_rows
        return {
            "mean square of rows": int(of_rows >= 1),
            "mean row": int(of_rows == 2),
            "mean root of a person's number of records": int(self.most_times > 0),
            "curvature": 1,
            "gradients": math.inf if self.noiseless else self.n_gradients,
        }

    def check_row_norm(self, row_norm):
        """Refuse a norm that rows can't be clipped to: their constant is not made shorter.

        Raises
        ------
        ValueError
        """
        if not (self.constant >= 0 and 0 < row_norm < 1e15):
            raise ValueError(f"row_norm must be positive and below 1e15, got {row_norm!r}")
        if row_norm < self.constant:
            raise ValueError(
                f"row_norm must not be below the intercept's constant, which has the length "
                f"{self.constant:.6g} in the units of rows, got {row_norm!r}"
            )

    def of_rows(self, name):
        """The release of this name: a mean over rows."""
        n, norm, (noise, units) = self.n_normalizer, self.row_norm, self.squares
        if name == "mean square of rows":
            return RowRelease(noise, norm, units, (norm / units) ** 2 / n)
        if name == "mean row":
            noise, units = self.rows
            return RowRelease(noise, norm, units, norm / units / n)
        return RowRelease(noise, self.most_times, units**2, (self.most_times - 1) / units**2 / n)

    @property
    def mean_std(self):
        """Noise of each entry of the mean row."""
        return self.of_rows("mean row").std

    @property
    def size(self):
        """Number of entries of a gradient."""
        return self.n_outputs * self.n_coordinates

    def _check_gradients(self):
        """Whatever geometry is released, the grid has room for it."""
        z, root = self.noise_multiplier, math.sqrt(self.size)
        if not (self.n_gradients >= 1 and 2.0**-16 < z < 2.0**_MOST_BITS / (64 * root)):
            raise out_of_range(z, remedy=_REMEDY)

    def gradient_grid(self, largest, smallest, whole_rows=False):
        """The grid of gradients under a transform with singular values between these.

        Records add whole multiples of rows of 16 bits where `whole_rows`, whose sums have more than
        64 bits at need, or integers that a double holds the sum of.

        Returns
        -------
        bits : int
            The noise has a standard deviation of 2^bits units.
        shift : int
            A unit of the image is 2^shift of those of the transform times the sums.
        limit : int
            Units of the clip over the smallest singular value: what a record is summed in.
        """
        z, size = self.noise_multiplier, self.size
        most = min(2.0**24, 2.0**50 / self.n_normalizer)
        if whole_rows:
            most = min(2.0**38, 2.0**66 / self.n_normalizer)
        total = math.floor(math.log2(z * self.neighbors * most * smallest))
        bits = min(total, _MOST_BITS)
        shift = total - bits
        # 2^bits >= z * image_sensitivity(norm / 2^shift): a record's image has at most this norm,
        norm = (2.0**bits / z * (1 - 2.0**-40) - math.sqrt(size)) / self.neighbors * 2.0**shift
        # of which the rounding of its entries takes a part
        limit = math.floor((norm - 0.5001 * largest * math.sqrt(size)) / smallest * (1 - 2.0**-40))
        if bits < 1 or limit < 1:
            raise ValueError("the geometry leaves gradients no integers: raise its least curvature")
        return bits, shift, limit


def integer_transform(root):
    """A lower triangular matrix as integers such that images of rows are exact.

    Returns
    -------
    transform : ndarray of integers, in Fortran order
        About 2^exponent times `root`.
    exponent : int

    Raises
    ------
    ValueError
        If the matrix is zero or not finite.
    """
    largest = np.max(np.abs(root))
    if not 0 < largest < math.inf:
        raise ValueError("a geometry is finite, and not zero")
    exponent = math.floor(math.log2(most_of_transform(len(root)) / largest))
    return np.asfortranarray(np.rint(np.ldexp(np.tril(root), exponent))), exponent


def exact_image(transform, sums):
    """The transform times the sums of each output, up to 2^68, exactly: an array of int.

    Pieces of 15 bits, the last one signed: a row's norm is at most 2^31, theirs at most 2^21.
    """
    starts, digits, two = range(0, 75, _LIMB), 2**_LIMB - 1, 2 * _LIMB
    low, high = (sums & (2**two - 1)).astype(np.int64), (sums >> two).astype(np.int64)
    pieces = [low & digits, low >> _LIMB, high & digits, high >> _LIMB & digits, high >> two]
    images = np.array(pieces, dtype=np.float64).reshape(-1, len(transform)) @ transform.T
    images = images.astype(np.int64).astype(object).reshape(len(starts), -1)
    return sum(image << start for image, start in zip(images, starts, strict=True))
