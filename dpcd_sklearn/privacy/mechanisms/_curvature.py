"""A noisy curvature matrix, and mean gradients that are clipped and noised in its geometry.

(a) *Rows.* Before all else, how long they are on average and where their middle is: exact integer
    sums of clipped rows and of their squared norms. To which norm rows are clipped, and from which
    centre they are seen, follows from what was released.
(b) *Curvature.* Exact integer sums of products of clipped rows. Every cell of the matrix gets noise
    of its own, of one standard deviation, and the mean of the matrix and its transpose is released:
    the sensitivity is that of the Frobenius norm, and off the diagonal the noise is 1/sqrt(2).
    Rows are the same in all outputs, and so is the curvature.
(c) *Preconditioned gradients.* A geometry is a public triangular matrix R of integers: whatever was
    released or stated. A record's gradient g is scaled down such that |R g| is at most the clip,
    gradients are summed as integers where they are, and the image of the sum, which is exact too,
    gets isotropic noise. Of several outputs g has a column for each, and one norm for all.
(d) Sensitivities stand in ``_curvature_units``. Proofs: ``proofs/release_mean_row.md``,
    ``proofs/release_curvature.md``, ``proofs/release_preconditioned.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..sums._integer_rows import joined, most_of_transform, short_transform
from ._curvature_units import constant_of_rows
from ._gaussian_sum import middles
from ._questions import Answered, GaussianNoise, Gram, source_of

# Condition numbers of transforms, up to which the rounding of contributions is next to nothing.
_WORST_CONDITION = 2.0**15
_LIMB = 15


@dataclass(frozen=True, eq=False)
class RowSums(Answered):
    """Sums of clipped rows, or of their squared norms."""

    of: str
    row_norm: float
    units: float


@dataclass(frozen=True, eq=False)
class ImageOfGradients(Answered):
    """The image of summed gradients in a geometry, cut to integers."""

    transform: np.ndarray
    exponent: int
    coef: np.ndarray
    clip: float


class CurvatureOracle:
    """Releases a curvature once, and gradients in one geometry as often as they are paid for.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : CurvatureUnits
    place : Place
    loss : Loss
    fit_intercept : bool
    max_weight : float, default=inf
        Public; weights above it count as it.
    key : bytes of length 32, or None

    Attributes
    ----------
    mean_square, mean_row : float, ndarray of shape (n_coordinates,)
        What was released of the rows, or None.
    row_norm, shift : float, ndarray of shape (n_features,) or 0.0
        How rows are seen: within which norm, and from which centre; public.
    """

    mean_square = mean_row = None
    shift = 0.0

    def __init__(
        self, receipt, units, place, *, loss, fit_intercept=True, max_weight=math.inf, key=None
    ):
        constant = constant_of_rows(loss, units.smoothness, fit_intercept)
        if not units.noiseless and units.constant < constant:
            raise ValueError(
                f"the units are of rows whose constant has the length {units.constant:.6g}, and "
                f"with this intercept it has {constant:.6g}"
            )
        units.redeem(receipt, place, fit_intercept)
        self._units, self._source = units, source_of(key)
        self._roots = np.sqrt(units.smoothness)
        self._public = loss, fit_intercept, max_weight
        self._sums = self._open(place)
        self._shape = place.n_samples, place.n_features
        self.row_norm, self._curvatures_left = units.row_norm, 1
        of_rows = 0 if units.noiseless else units.n_of_rows
        self._squares_left, self._means_left = int(of_rows >= 1), int(of_rows == 2)
        self._times_left = int(units.most_times > 0)
        self._gradients_left = math.inf if units.noiseless else units.n_gradients
        self._grid = self._root = self._row_sums = None

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")

    def _open(self, place):
        loss, fit_intercept, max_weight = self._public
        units = self._units
        return place.second_order(
            loss, units.smoothness, fit_intercept=fit_intercept, n_outputs=units.n_outputs,
            max_weight=max_weight,
        )  # fmt: skip

    def release_mean_square(self):
        """The mean squared norm of rows that are clipped to the units' norm.

        Returns
        -------
        float
            It may be negative.

        Raises
        ------
        RuntimeError
            If it was not paid for, or was released before.
        """
        units = self._units
        if self._squares_left < 1:
            raise RuntimeError("a mean square of rows is not paid for, or was released")
        self._squares_left -= 1
        question = RowSums("squares", units.row_norm, float(units.square_units))
        sums, noise = self._sums_of_rows()[-1:], units.row_noise(units.square_bits)
        (noisy,) = middles(self._source.release(sums, question, noise))
        self.mean_square = float(noisy) * units.square_unit
        return self.mean_square

    def release_mean_row(self):
        """The mean of rows that are clipped to the units' norm.

        Returns
        -------
        ndarray of shape (n_coordinates,)

        Raises
        ------
        RuntimeError
            If it was not paid for, or was released before.
        """
        units = self._units
        if self._means_left < 1:
            raise RuntimeError("a mean row is not paid for, or was released")
        self._means_left -= 1
        question = RowSums("rows", units.row_norm, float(units.mean_units))
        sums, noise = self._sums_of_rows()[:-1], units.row_noise(units.mean_bits)
        self.mean_row = middles(self._source.release(sums, question, noise)) * units.mean_unit
        return self.mean_row

    def release_times(self):
        """The mean root of a person's number of records, which is at most so large.

        Returns
        -------
        float
            It may be below 1.

        Raises
        ------
        RuntimeError
            If it was not paid for, or was released before.
        """
        units = self._units
        if self._times_left < 1:
            raise RuntimeError("a mean root of numbers is not paid for, or was released")
        self._times_left -= 1
        question = RowSums("times", units.most_times, float(units.square_units) ** 2)
        exact = self._sums.times(question.row_norm, question.units)
        noise = units.row_noise(units.square_bits)
        (noisy,) = middles(self._source.release(exact, question, noise))
        return 1 + float(noisy) * units.times_unit

    def _sums_of_rows(self):
        """Secret; rows are read once for both releases."""
        if self._row_sums is None:
            units = self._units
            of_each = float(units.mean_units), float(units.square_units)
            self._row_sums = self._sums.row_sums(units.row_norm, *of_each)
        return self._row_sums

    def see(self, place, row_norm, shift=0.0):
        """Say how rows are seen from here on: where from, and clipped to which norm.

        Parameters
        ----------
        place : Place
            Place of the same records, with public bounds and centre.
        row_norm : float
            Public.
        shift : ndarray of shape (n_features,) or 0.0
            By which its centre is another one.

        Raises
        ------
        RuntimeError
            If the curvature was released: gradients are those of its rows.
        ValueError
            If these are other records, or the norm is out of range.
        """
        if self._curvatures_left < 1:
            raise RuntimeError("how rows are seen is fixed before their curvature is released")
        if (place.n_samples, place.n_features) != self._shape:
            raise ValueError("the same records are seen in another way, not others")
        if not self._units.noiseless:
            self._units.check_row_norm(row_norm)
        self.row_norm, self.shift = float(row_norm), shift
        self._sums = self._open(place)

    def release_curvature(self):
        """Mean second moments of rows, times the loss' bound: M^(-1/2) H M^(-1/2) with noise.

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates), symmetric

        Raises
        ------
        RuntimeError
            If it was released before.
        """
        units = self._units
        if self._curvatures_left < 1:
            raise RuntimeError("one curvature is paid for, and it was released")
        self._curvatures_left -= 1
        if units.noiseless:
            return self._sums.gram(math.inf, 0.0) / units.n_normalizer
        question = Gram(self.row_norm, float(units.row_units))
        noisy = self._source.release(self._sums, question, units.curvature_noise)
        return units.noisy_mean(noisy, self.row_norm / units.row_units)

    def fix_geometry(self, root):
        """State the geometry of all gradients: |R M^(-1/2) g| is clipped for every record.

        Parameters
        ----------
        root : ndarray of shape (n_coordinates, n_coordinates), lower triangular
            Public: made of what was released.

        Returns
        -------
        root : ndarray
            R, which is `root` rounded to a grid.

        Raises
        ------
        RuntimeError
            If there is a geometry already: clipped by another one, records pull elsewhere.
        ValueError
            If it is singular or too far from it.
        """
        if self._root is not None:
            raise RuntimeError("the geometry of a fit is fixed once")
        root = np.tril(np.asarray(root, dtype=np.float64))
        if self._units.noiseless:
            self._root = root
            return root
        transform, exponent = integer_transform(root)
        values = np.linalg.svd(transform, compute_uv=False)
        error = 2.0**-45 * len(root) * values[0]  # more than LAPACK's
        largest, smallest = values[0] + error, values[-1] - error
        if not smallest * _WORST_CONDITION > largest:
            raise ValueError("the geometry is too close to singular; raise its least curvature")
        reads_short_rows = getattr(self._sums, "reads_short_rows", True)
        short = short_transform(transform) if reads_short_rows else None
        self._grid = self._units.gradient_grid(largest, smallest, short is not None)
        self._transform, self._exponent, self._smallest = transform, exponent, smallest
        self._sums.measure(transform, largest, smallest, short)
        self._root = np.ldexp(transform, -exponent)
        return self._root

    def release_preconditioned(self, coef, clip):
        """The noisy mean of R M^(-1/2) g, g the gradients at `coef`, clipped in this geometry.

        Parameters
        ----------
        coef : ndarray of shape (n_outputs * n_coordinates,)
            Public; output by output.
        clip : float
            Clip of a record's gradient in all outputs together; public. The noise is in proportion.

        Returns
        -------
        ndarray of shape (n_outputs * n_coordinates,)

        Raises
        ------
        RuntimeError
            If so many are not paid for, or without a geometry.
        ValueError
            If the clip is out of range.
        """
        units = self._units
        if self._root is None:
            raise RuntimeError("gradients need a geometry: fix it first")
        if self._gradients_left < 1:
            raise RuntimeError("all gradients that are paid for were released")
        if not 1e-30 < clip < 1e30:
            raise ValueError("clip must lie in (1e-30, 1e30) in the units of the scaled problem")
        self._gradients_left -= 1
        if units.noiseless:
            plain = self._sums.gradient(coef, 1.0, 0.0).reshape(units.n_outputs, -1)
            return (plain / self._roots @ self._root.T).ravel() / units.n_normalizer
        bits, shift, limit = self._grid
        longest = float(clip) * 2.0**self._exponent / self._smallest  # bounds every entry
        sums = self._sums.gradient(coef, longest, float(limit))
        image = self._image(sums) if sums.ndim == 1 else map(joined, *map(self._image, sums))
        exact = np.array([value >> shift for value in image], dtype=object)
        question = ImageOfGradients(self._transform, self._exponent, coef, float(clip))
        noise = GaussianNoise(bits, units.noise_multiplier)
        noisy = middles(self._source.release(exact, question, noise))
        return noisy * (math.ldexp(longest / limit, shift - self._exponent) / units.n_normalizer)

    def _image(self, sums):
        """Images of the sums of all outputs, exactly."""
        outputs = np.split(sums, self._units.n_outputs)
        return [value for part in outputs for value in exact_image(self._transform, part)]


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
    """The transform times the sums, exactly: a list of int.

    Pieces of 15 bits: a row's norm is at most 2^31, theirs at most 2^15 sqrt(size) (up to 2^21).
    """
    sign, rest = np.sign(sums), np.abs(sums)
    image = [0] * len(sums)
    for start in range(0, 60, _LIMB):
        piece = sign * ((rest >> start) & (2**_LIMB - 1))
        part = transform @ piece.astype(np.float64)
        image = [value + (int(p) << start) for value, p in zip(image, part, strict=True)]
    return image
