"""Units of releases: noise, limits of a record and sensitivities, from public numbers alone.

Made with the plan, so that whatever can't be carried out is refused before anything is charged; a
mechanism redeems from its receipt what the units were made for, no more and nothing else.
Sensitivities stand here, once; that of sums of integers in `record_limit`. Proofs:
``proofs/release_partial.md``, ``release_gradient.md``, ``release_argmax.md``, ``release_mean.md``.
"""

import math

import numpy as np
from libc.math cimport floor, sqrt

from ..sums._sums cimport Question, question_of

from ..accounting._events import (
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
)

# Scores are rounded to integers of which neighbours move none by more than this, the last 1 being
# for rounding; and floating-point Gumbel selection is the exact one at a range wider by the factor,
# at most, while the public part of the scores stays below `most_public_score`
# (proofs/release_argmax.md).
SCORE_UNITS = 2.0**13 + 1
GUMBEL_ROUNDING = 1 + 2.0**-12
# Norm of a whole row, and units of a record that adds multiples of it; half of them under
# add_remove, which admits 2^28 records however few are public: sums stay within 2^53.
_ROW, _MOST_OF_WHOLE = 2.0**14, 2.0**26


# ---- the integer grid that records are summed on ----
#
# The unit is chosen by the noise: 2^bits units of standard deviation, so that a record counts for
# at most 2^24 units (2^26 of whole rows) and the sum of all records is exact in a double.

cpdef double record_limit(int bits, double noise_multiplier, double neighbors, Py_ssize_t size,
                          double slack=0.0) noexcept nogil:
    """K, the norm bound of one record's integers, such that 2^bits >= z * (sensitivity + slack).

    The sensitivity of the integer sums is `neighbors` (2 under replace-one, 1 under add-remove)
    times the largest norm of one record's integers: K for one entry, which is clamped, and
    K (1 + (size + 16) 2^-52) + sqrt(size) / 2 for a vector, whose entries are rounded after the
    clip. `slack` is what else may move the state between neighbours, in units.
    """
    cdef double norm = (2.0**bits / noise_multiplier - slack) / neighbors
    if size > 1 or slack > 0:
        norm = (norm - 0.5 * sqrt(<double>size)) / (1 + (size + 16) * 2.0**-52)
    return floor(norm)


cpdef int noise_bits(double noise_multiplier, double neighbors, double n_normalizer,
                     Py_ssize_t n_samples, Py_ssize_t size, double most=2.0**24) except -1:
    """The bits of a release of `size` entries or fewer, where a record has at most `most` units.

    Raises
    ------
    ValueError
        If the noise is not positive and finite, no grid suits it, or of more records.
    """
    if not 0 < noise_multiplier < math.inf:
        raise ValueError(f"noise must be positive and finite, got {noise_multiplier!r}")
    target = min(most, 2.0**50 / n_normalizer)
    bits = min(MAX_NOISE_BITS, math.floor(math.log2(noise_multiplier * neighbors * target)))
    if bits < 1 or record_limit(bits, noise_multiplier, neighbors, size) < 1:
        raise ValueError(f"noise multiplier {noise_multiplier:g} is out of the range that the "
                         "integer grid supports; change epsilon or max_iter")
    _refuse_more_records(n_samples, n_normalizer)  # of `target` units at most: sums below 2^52
    return bits


def _refuse_more_records(n_samples, n_normalizer):
    """Raise a ValueError for more records than `doc/threat_model.rst` promises."""
    if n_samples > max(2.0**28, 4 * n_normalizer):
        raise ValueError("more than 2^28 records (or 4 n_public, if that is more) have no exact "
                         "sums; state a larger n_public or fit on fewer records")


# ---- units ----


cdef class Units:
    """Public numbers that the units of every mechanism have.

    Parameters
    ----------
    event : FitEvent
        What is redeemed: all releases of the mechanism.
    n_samples : int, default=-1
        Number of records; -1 is any. Nothing depends on it but the refusal of others, and of more
        than are promised.
    n_normalizer : int, default=1
        Public number of records: n, or n_public under add_remove.
    width : int, default=0
        Number of columns, an intercept's included; 0 is any.

    Raises
    ------
    TypeError, ValueError
        If the event has another kind of release, or the numbers are outside of what is proved.
    """

    def __init__(self, event, *, n_samples=-1, n_normalizer=1, width=0):
        self.event, self.n_samples, self.n_normalizer = event, n_samples, n_normalizer
        self.neighbors = {"replace_one": 2.0, "add_remove": 1.0}[event.neighboring]
        self.width = width
        self.noiseless = event.releases == (NonPrivateEvent(),)
        if not 1 <= n_normalizer < math.inf:
            raise ValueError(f"n_normalizer is a public number of records, got {n_normalizer!r}")

    @property
    def counts(self):
        """How many releases are paid for, by their names."""
        return {self.what: 1}

    def _only(self, kind, count=None):
        """The one release of the event, of this kind; with so many choices or sums, if stated."""
        releases = self.event.releases
        if len(releases) != 1 or not isinstance(releases[0], kind):
            raise TypeError(f"{self.what} are paid for by one {kind.__name__}, not by {self.event}")
        if count not in (None, releases[0].count):
            raise ValueError(f"{count} {self.what} are not paid for by {self.event}")
        return releases[0]

    def refuse_more_than(self, most):
        """Raise a ValueError if more records than these are admitted, by public numbers alone."""
        _refuse_more_records(self.n_samples, self.n_normalizer)
        admitted = self.n_normalizer * (4 if self.neighbors == 1 else 1)  # under add_remove
        if admitted > most:
            raise ValueError(f"sums are of {most:,} records at most, and {admitted:,.0f} (under "
                             "add_remove 4 n_public) are admitted: fit on fewer records")

    def _kinds(self, *kinds):
        """The releases by their kind, each at most once."""
        found = {}
        for release in () if self.noiseless else self.event.releases:
            if not isinstance(release, kinds) or type(release) in found:
                raise TypeError(f"this mechanism can't carry out {release!r}, or only once")
            if not release.count >= 1:
                raise ValueError(f"an event counts at least one release, got {release!r}")
            found[type(release)] = release
        return [found.get(kind) for kind in kinds]

    def redeem(self, receipt, place=None, fit_intercept=False):
        """Take from the receipt what these units are for; they are of the records at the place.

        Raises
        ------
        RuntimeError
            If the receipt does not pay for it, or did before.
        ValueError
            If the place has other numbers of records or features than the units.

        Returns
        -------
        What questions are asked of: the place, or sums that were opened there.
        """
        if place is not None:
            _compare("records", self.n_samples, place.n_samples, -1)
            _compare("columns", self.width, place.n_features + fit_intercept, 0)
        receipt.redeem(self.event)
        return place


def _compare(what, planned, found, any_number):
    if planned != found and planned != any_number:
        raise ValueError(f"the units are of {planned} {what}, not {found}")


cdef class GeometryUnits(Units):
    """Units of sums in the geometry of M^(-1/2).

    Parameters
    ----------
    event, n_samples, n_normalizer : as of Units
        One release event a kind.
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public.
    n_outputs : int, default=1
        Margins of a record.
    """

    def __init__(self, event, *, n_samples, smoothness, n_normalizer, Py_ssize_t n_outputs=1):
        if n_outputs < 1:
            raise ValueError(f"a record has at least one margin, got n_outputs={n_outputs}")
        smoothness = np.ascontiguousarray(smoothness, dtype=np.float64)
        if smoothness.flags.writeable:  # clips and norms are of one M, whatever becomes of it
            smoothness = smoothness.copy()
        # The kernels' guards against overflow are proved for this range.
        if not ((smoothness >= 1e-60) & (smoothness <= 1e60)).all():
            raise ValueError("smoothness must lie in [1e-60, 1e60]; rescale the features")
        self.smoothness, self.n_coordinates = smoothness, len(smoothness)
        self.n_outputs = n_outputs
        super().__init__(event, n_samples=n_samples, n_normalizer=n_normalizer,
                         width=self.n_coordinates)


cdef class CoordinateUnits(GeometryUnits):
    """Units of coordinates, blocks and choices at an iterate that moves.

    Parameters
    ----------
    event : FitEvent
        GaussianEvent pays for coordinates and blocks, SelectionEvent for choices.
    n_samples, n_normalizer : as of Units
    smoothness : ndarray of shape (n_outputs * n_coordinates,)
        M_kj, public, output by output: each of them is a coordinate of its own.
    clip : float
        C, public: C_kj = C sqrt(M_kj K / tr M), the trace over all K outputs, and a block of d
        coordinates has the norm C sqrt(d / tr M): a coordinate of all outputs has that of one.
    n_chosen : int, default=1
        Number of coordinates of one greedy choice.
    largest_score : float, default=0
        Bound on the public part of its scores at the start.
    step : float, default=0
        Over M_j the step of a move in coordinate j.
    n_outputs : int, default=1
    whole : bool, default=False
        Whether nothing but gradients of all coordinates is released, with one M_j for all outputs.
        They are sums of rows of 16 bits then, if rounding is little beside the noise.
    sparse : bool, default=False
        Whether records are. A row of 16 bits takes little room then, and may be a single cell.
    """

    def __init__(self, event, *, n_samples, smoothness, double clip, n_normalizer,
                 Py_ssize_t n_chosen=1, double largest_score=0.0, double step=0.0,
                 Py_ssize_t n_outputs=1, bint whole=False, bint sparse=False):
        super().__init__(event, n_samples=n_samples, smoothness=smoothness,
                         n_normalizer=n_normalizer)
        if n_outputs < 1 or self.n_coordinates % n_outputs:
            raise ValueError(f"smoothness has {self.n_coordinates} entries, which are not those of "
                             f"{n_outputs} outputs")
        self.n_outputs, self.width = n_outputs, self.n_coordinates // n_outputs
        self.coordinate_clip = clip / math.sqrt(self.smoothness.sum() / n_outputs)
        if not 1e-40 < self.coordinate_clip < 1e40:
            raise ValueError("clip over the root of the summed smoothness must lie in "
                             "(1e-40, 1e40); rescale the target or the features")
        gaussians, selections = self._kinds(GaussianEvent, SelectionEvent)
        if self.noiseless:
            return
        self.noise_multiplier = 1.0  # a grid that is fine enough for choices
        if gaussians is not None:
            self.noise_multiplier, self.n_gaussians = gaussians.noise_multiplier, gaussians.count
        # fewer columns and fewer passes do not pay for making rows
        self.whole = (whole and self.width >= 64 and self.n_gaussians >= 8
                      and self._suits_whole_rows(sparse))
        self.bits = noise_bits(self.noise_multiplier, self.neighbors, self.n_normalizer,
                               self.n_samples, self.n_coordinates,
                               _MOST_OF_WHOLE / (3 - self.neighbors) if self.whole else 2.0**24)
        if selections is not None:
            self.eta, self.n_selections = selections.eta, selections.count
            self._check_choices(n_chosen)
            self._check_scores(n_chosen, largest_score, step)

    def _suits_whole_rows(self, sparse):
        """Whether rows may be kept, and rounding adds a tenth of the noise at most.

        Rounding errors of records are taken to be independent, and cells of a dense row about as
        long. Dense rows are kept up to 1 GiB. Iterates of sparse ones stay in the cache up to 2^18
        columns; wider ones take longer in whole numbers.
        """
        most = min(_MOST_OF_WHOLE / (3 - self.neighbors), 2.0**50 / self.n_normalizer) / 2
        cell = _ROW if sparse else _ROW / self.width**0.5
        error = math.sqrt(self.n_normalizer / 12) * max(cell, most / _ROW)
        fits = self.width <= 2.0**18 if sparse else self.n_normalizer * self.width <= 2.0**29
        return fits and error <= 0.1 * self.noise_multiplier * self.neighbors * most

    def _check_choices(self, n_chosen):
        if self.eta > 0:
            self.units_per_noise = 2 * SCORE_UNITS / self.eta * GUMBEL_ROUNDING
        if not 0 < self.eta <= 2.0**10 or not self.most_public_score(n_chosen) > 0:
            raise ValueError(
                f"{n_chosen} choices of bounded range {self.eta:g} at once among "
                f"{self.n_normalizer:g} records are outside what is proved; change epsilon, "
                "max_iter or block_size"
            )

    def _check_scores(self, n_chosen, largest, step):
        # four moves by the longest gradient and sixty standard deviations: iterates that go
        # farther make no model, and would be refused when they are paid for
        largest += 4 * step * (self.coordinate_clip
                               + 60 * self.noise_multiplier * self.score_sensitivity())
        most = self.most_public_score(n_chosen)
        if not largest < most:
            raise ValueError(
                f"the penalty, the radius or the step makes greedy scores of {largest:.3g} in the "
                f"scaled problem, and they must stay below {most:.3g}; lower alpha, radius or "
                "step_size, or raise clip"
            )

    cdef Question question(self, const Py_ssize_t *block, Py_ssize_t size,
                           bint joint) noexcept nogil:
        """About a block, or all coordinates (NULL): clipped by its norm, or one by one."""
        return question_of(block, size, joint,
                           self.block_clip(size) if joint else self.coordinate_clip,
                           0.0 if self.noiseless else self.limit(size if joint else 1))

    cdef double block_clip(self, Py_ssize_t size) noexcept nogil:
        """C sqrt(d / tr M): bound on the norm of a block of d coordinates, of any outputs."""
        return self.coordinate_clip * sqrt(<double>size / self.n_outputs)

    cdef double limit(self, Py_ssize_t size) noexcept nogil:
        """K, the norm bound of one record's integers in a release of `size` entries."""
        return record_limit(self.bits, self.noise_multiplier, self.neighbors, size)

    cdef double score_sensitivity(self) noexcept nogil:
        """Largest change of a greedy score between neighbours, equal for all coordinates.

        The mean partial derivative changes by neighbors * C_j / n with C_j = sqrt(M_j) *
        coordinate_clip, and a score is 1/sqrt(M_j)-Lipschitz in it.
        """
        return self.neighbors * self.coordinate_clip / self.n_normalizer

    cdef double most_public_score(self, Py_ssize_t size) noexcept nogil:
        """Bound on the public part of a score in a choice of `size`: from public numbers alone.

        What the records add is at most n score sensitivities. Together they stay below 2^47 units,
        where a computed score is right to half a unit, and below B noise scales with 8 k² τ paid
        for, τ = 2^-44 + 2^-52 B the error of a key.
        """
        cdef double sensitivity = self.score_sensitivity()
        cdef double noise = sensitivity / 2.0**13 * self.units_per_noise
        cdef double paid = 2.0**37 * self.eta * (1 - 2.0**-11) / (<double>size * size) - 2.0**8
        return min(2.0**34 * sensitivity, paid * noise) - self.n_normalizer * sensitivity


cdef class MeanUnits(GeometryUnits):
    """Units of mean gradients at stated iterates.

    Parameters
    ----------
    event : FitEvent
        GaussianEvent pays for means over all records, PoissonSampledEvent for means over samples.
    n_samples, smoothness, n_normalizer : as of GeometryUnits
    clip : float
        Bound on the norm of one record's vector; public.
    anchor_clip : float
        The same for differences of gradients.
    n_outputs : int, default=1
    """

    def __init__(self, event, *, n_samples, smoothness, double clip, double anchor_clip,
                 n_normalizer, Py_ssize_t n_outputs=1):
        super().__init__(event, n_samples=n_samples, smoothness=smoothness,
                         n_normalizer=n_normalizer, n_outputs=n_outputs)
        for value in (clip, anchor_clip):
            if not 1e-30 < value < 1e30:
                raise ValueError("clip must lie in (1e-30, 1e30) in the units of the scaled "
                                 "problem; rescale the target or the features")
        self.clip, self.anchor_clip, self.rate = clip, anchor_clip, 1.0
        full, sampled = self._kinds(GaussianEvent, PoissonSampledEvent)
        if full is not None:
            self.full = self._paid(full)
        if sampled is not None:
            self.rate = sampled.sampling_rate
            if not 2.0**-40 <= self.rate <= 1:
                raise ValueError(f"the sampling rate must lie in [2^-40, 1], got {self.rate}")
            self.sampled = self._paid(sampled)
            # rounded down: a record is in the sample with the rate that was paid for, at most
            self.threshold = int(self.rate * 2**64) if self.rate < 1 else 0

    def _paid(self, release):
        bits = noise_bits(release.noise_multiplier, self.neighbors, self.n_normalizer,
                          self.n_samples, self.n_outputs * self.n_coordinates)
        return Paid(release.count, release.noise_multiplier, bits)

    cdef Question question(self, bint sampled, const double *coef, const double *anchor,
                           const double *directions, Py_ssize_t n_directions) noexcept nogil:
        """About all records at an iterate, in the units of a mean over a sample or over all."""
        cdef Py_ssize_t size = self.n_coordinates if directions == NULL else n_directions
        cdef Question question = question_of(
            NULL, self.n_coordinates, True, self.clip if anchor == NULL else self.anchor_clip,
            0.0 if self.noiseless else self.limit(sampled, size))
        question.coef, question.anchor, question.directions = coef, anchor, directions
        question.n_directions = 0 if directions == NULL else n_directions
        return question

    cdef double limit(self, bint of_sample, Py_ssize_t size) noexcept nogil:
        """K, the norm bound of one record's integers in a release of `size` entries an output."""
        cdef Paid *paid = &self.sampled if of_sample else &self.full
        return record_limit(paid.bits, paid.noise_multiplier, self.neighbors,
                            self.n_outputs * size)
