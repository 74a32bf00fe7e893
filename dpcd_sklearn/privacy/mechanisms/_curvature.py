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
from operator import methodcaller

import numpy as np

from ..accounting._events import GaussianEvent
from ..sums._integer_rows import short_transform
from ._curvature_units import SquareUnits, constant_of_rows, exact_image, integer_transform
from ._gaussian_sum import Oracle, middles
from ._questions import Answered, GaussianNoise, Gram, NoNoise

# Condition numbers of transforms, up to which the rounding of contributions is next to nothing.
_WORST_CONDITION = 2.0**15


@dataclass(frozen=True, eq=False)
class RowSums(Answered):
    """Sums of clipped rows, of their squared norms, or of roots of persons' numbers of records."""

    name: str
    row_norm: float
    units: float


@dataclass(frozen=True, eq=False)
class ImageOfGradients(Answered):
    """The image of summed gradients in a geometry, cut to integers."""

    transform: np.ndarray
    exponent: int
    coef: np.ndarray
    clip: float
    name = "Newton gradients"


class CurvatureOracle(Oracle):
    """Releases a curvature once, and gradients in one geometry as often as they are paid for.

    Parameters
    ----------
    receipt, units, place, key : as of Oracle
        CurvatureUnits.
    loss : Loss
    fit_intercept : bool
    max_weight : float, default=inf
        Public; weights above it count as it.

    Attributes
    ----------
    row_norm : float
        Within which norm rows are seen; public.
    """

    def __init__(
        self, receipt, units, place, *, loss, fit_intercept=True, max_weight=math.inf, key=None
    ):
        constant = constant_of_rows(loss, units.smoothness, fit_intercept)
        if not units.noiseless and units.constant < constant:
            raise ValueError(
                f"the units are of rows whose constant has the length {units.constant:.6g}, and "
                f"with this intercept it has {constant:.6g}"
            )
        super().__init__(receipt, units, place, key=key, fit_intercept=fit_intercept)
        self._roots = np.sqrt(units.smoothness)
        self._open = methodcaller(
            "second_order", loss, units.smoothness, fit_intercept=fit_intercept,
            n_outputs=units.n_outputs, max_weight=max_weight,
        )  # fmt: skip
        self._sums = self._open(place)
        self._shape = place.n_samples, place.n_features
        self.row_norm = units.row_norm
        self._grid = self._root = self._row_sums = None

    def release_mean_square(self):
        """The mean squared norm of rows that are clipped to the units' norm; it may be negative."""
        return float(self._release_of_rows("mean square of rows")[0])

    def release_mean_row(self):
        """The mean of rows that are clipped to the units' norm: an array of (n_coordinates,)."""
        return self._release_of_rows("mean row")

    def release_times(self):
        """The mean root of a person's number of records, which is cut; it may be below 1."""
        return 1 + float(self._release_of_rows("mean root of a person's number of records")[0])

    def _release_of_rows(self, name):
        """A mean over rows with noise, the first time."""
        self._count_down(name)
        units, release = self._units, self._units.of_rows(name)
        question = RowSums(name, release.norm, float(release.units))
        if name.startswith("mean root"):
            exact = self._sums.times(question.row_norm, question.units)
        else:
            if self._row_sums is None:  # secret; rows are read once for both releases
                of_each = float(units.rows.units), float(units.squares.units)
                self._row_sums = self._sums.row_sums(units.row_norm, *of_each)
            exact = self._row_sums[:-1] if name == "mean row" else self._row_sums[-1:]
        return middles(self._source.release(exact, question, release.noise)) * release.unit

    def see(self, place, row_norm):
        """Say how rows are seen from here on: where from, and clipped to which norm.

        Parameters
        ----------
        place : Place
            Place of the same records, with public bounds and centre.
        row_norm : float
            Public.

        Raises
        ------
        RuntimeError
            If the curvature was released: gradients are those of its rows.
        ValueError
            If these are other records, or the norm is out of range.
        """
        if not self._left["curvature"]:
            raise RuntimeError("how rows are seen is fixed before their curvature is released")
        if (place.n_samples, place.n_features) != self._shape:
            raise ValueError("the same records are seen in another way, not others")
        if not self._units.noiseless:
            self._units.check_row_norm(row_norm)
        self.row_norm = float(row_norm)
        self._sums = self._open(place)

    def release_curvature(self):
        """Mean second moments of rows, times the loss' bound: M^(-1/2) H M^(-1/2) with noise.

        Returns
        -------
        ndarray of shape (n_coordinates, n_coordinates), symmetric
        """
        units = self._units
        self._count_down("curvature")
        noise, units_of_norm = units.curvature
        question = Gram(self.row_norm, float(units_of_norm), keeps=True)
        noisy = self._source.release(self._sums, question, noise)
        return units.noisy_mean(noisy, self.row_norm, units_of_norm)

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
        if not 1e-30 < clip < 1e30:
            raise ValueError("clip must lie in (1e-30, 1e30) in the units of the scaled problem")
        self._count_down("gradients")
        if units.noiseless:
            plain = self._sums.gradient(coef, 1.0, 0.0).reshape(units.n_outputs, -1)
            return (plain / self._roots @ self._root.T).ravel() / units.n_normalizer
        bits, shift, limit = self._grid
        longest = float(clip) * 2.0**self._exponent / self._smallest  # bounds every entry
        sums = self._sums.gradient(coef, longest, float(limit))
        exact = exact_image(self._transform, sums) >> shift
        question = ImageOfGradients(self._transform, self._exponent, coef, float(clip))
        noise = GaussianNoise(bits, units.noise_multiplier)
        noisy = middles(self._source.release(exact, question, noise))
        return noisy * (math.ldexp(longest / limit, shift - self._exponent) / units.n_normalizer)


# ---- Two noisy matrices at a released iterate, from which standard errors follow -----------------
#
# As curvatures are (``_curvature``): exact integer sums of products of rows, here of images in a
# public geometry, that were scaled down to a public norm. Proof: ``proofs/release_moments.md``.


class MomentUnits(SquareUnits):
    """Units of two matrices of moments.

    Parameters
    ----------
    event : FitEvent
        A GaussianEvent of two releases, the matrices, and one of a single release, the mean
        square of gradients;
        or a NonPrivateEvent.
    n_samples, smoothness, n_normalizer : as of GeometryUnits
    """

    def __init__(self, event, **numbers):
        super().__init__(event, **numbers)
        if self.noiseless:
            return
        gaussian = all(type(release) is GaussianEvent for release in event.releases)
        if not gaussian or [release.count for release in event.releases] != [2, 1]:
            raise TypeError(f"two moments and a mean square are paid for together, not {event}")
        matrices, mean_square = event.releases
        self.matrices = self.square_grid(matrices.noise_multiplier)
        # of Σ |q|², whose sensitivity is that of one row's square: less than a matrix' has
        self.mean_square = self.square_grid(mean_square.noise_multiplier)

    @property
    def counts(self):
        return {"moments": 1, "mean squares": 1}


@dataclass(frozen=True, eq=False)
class MomentSums(Answered):
    """Sums of products of images in a geometry at an iterate: of rows, of gradients, or a trace."""

    of: str
    root: np.ndarray
    coef: np.ndarray
    widths: tuple
    units: float

    @property
    def name(self):
        return "mean square of gradients" if self.of == "trace" else "moments for inference"


class MomentOracle(Oracle):
    """Releases two matrices of moments, and a mean square before, each once.

    Parameters
    ----------
    receipt, units, place, key : as of Oracle
        MomentUnits.
    loss : Loss
        Loss of one output, with a second derivative.
    fit_intercept : bool
    """

    def __init__(self, receipt, units, place, *, loss, fit_intercept=True, key=None):
        super().__init__(receipt, units, place, key=key, fit_intercept=fit_intercept)
        self._sums = place.second_order(loss, units.smoothness, fit_intercept=fit_intercept)

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
        ((square,),) = self._release("mean squares", ("trace",), root, coef, clip, clip, clip)
        return float(square)

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
        kinds = "rows", "gradients"
        return self._release("moments", kinds, root, coef, clip, row_norm, score_norm)

    def _release(self, what, kinds, root, coef, *widths):
        """Sums of these kinds over n, with noise: clip, norms of rows and of gradients."""
        units, widths = self._units, tuple(map(float, widths))
        if not all(0 < width < math.inf for width in widths):
            raise ValueError("clips and norms must be positive and finite")
        if units.noiseless:
            transform, exponent = np.asfortranarray(np.tril(root)), 0
            noise, step, asked = NoNoise(), 0, (math.inf,) * 3
        else:
            noise, step = units.matrices if what == "moments" else units.mean_square
            (transform, exponent), asked = integer_transform(root), widths
        self._count_down(what)
        rows, gradients = self._sums.image_grams(
            transform, coef, 2.0**-exponent, *asked, float(step)
        )
        sums = {"rows": rows, "gradients": gradients, "trace": np.array([np.trace(gradients)])}
        released = []
        for kind in kinds:
            total, width = sums[kind], widths[1] if kind == "rows" else widths[2]
            question = MomentSums(kind, root, coef, widths, float(step))
            noisy = self._source.release(total, question, noise)
            released.append(units.noisy_mean(noisy, width, step))
        return released
