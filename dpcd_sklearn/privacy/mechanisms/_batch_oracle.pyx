"""Clipped mean gradients at a stated iterate: of all records or of a secret Poisson sample.

(a) Solvers see the abstract ``IterateOracle``, which has no field: released numbers come out.
(b) ``BatchOracle`` is made from a redeemed receipt and releases no more often than it says.
(c) Who is in a sample is drawn here, by words of the noise source, and never leaves. Records are
    read, clipped and summed in the room ``sums``; the sensitivity stands in ``_grid``.
    Proof: ``proofs/release_mean.md``.
"""

import numpy as np
from libc.stdint cimport int64_t, uint64_t

from ...losses._base cimport Loss
from ..noise._noise cimport NoiseSource
from ..sums._sums cimport Place, Question, Sums, question_of
from ._grid cimport noise_bits, record_limit

from ..accounting._events import GaussianEvent, NonPrivateEvent, PoissonSampledEvent

cdef enum:
    RELEASED = 0
    REFUSED = -1


cdef class IterateOracle:
    """What a solver sees of the records: means that are paid for, at an iterate that it states."""

    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil:
        """Release the noisy mean of clipped gradients; a negative number when not paid for.

        Parameters
        ----------
        sampled : of a Poisson sample (normalised by its expected size), or of all records.
        coef : in, the iterate, n_outputs x n_coordinates.
        anchor : in, another iterate, whose gradients are subtracted record by record, or NULL.
        directions : in, n_directions x n_coordinates: release products with these, or NULL.
        mean : out, n_outputs x (n_directions or n_coordinates).
        """
        return REFUSED


# One kind of release: how many are left, and its noise in units.
cdef struct Paid:
    Py_ssize_t left
    double noise_multiplier
    int bits


cdef class BatchOracle(IterateOracle):
    """Oracle over records at stated iterates.

    Parameters
    ----------
    receipt : Receipt
        Proof that the event was charged: GaussianEvent pays for means over all records,
        PoissonSampledEvent for means over samples. It is redeemed here, once.
    place : Place
        Where the records lie; it is opened once the receipt is redeemed.
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public: norms are in the geometry of M^(-1/2), those of products are euclidean.
    clip : float
        Bound on the norm of one record's vector; public.
    anchor_clip : float
        The same for differences of gradients.
    n_normalizer : int
        Public number of records.
    fit_intercept : bool
    n_outputs : int
    key : bytes of length 32, or None
    """

    cdef Sums _sums
    cdef NoiseSource _noise
    cdef Paid _full, _sampled
    cdef bint _exact
    cdef uint64_t _threshold
    cdef double _n_normalizer, _rate, _neighbors, _clip, _anchor_clip
    cdef Py_ssize_t _n, _n_coordinates, _n_outputs
    cdef double[::1] _noisy, _roots
    cdef Py_ssize_t[::1] _rows

    def __init__(self, receipt, Place place, *, Loss loss, smoothness, double clip,
                 double anchor_clip, n_normalizer, bint fit_intercept=True,
                 Py_ssize_t n_outputs=1, key=None):
        if self._sums is not None:
            raise RuntimeError("an oracle is made once; make another one with another receipt")
        self._n = place.n_samples
        self._set_geometry(smoothness, clip, anchor_clip, n_outputs, n_normalizer)
        self._read_event(receipt.redeem(), self._n)
        self._noise = NoiseSource(key)
        self._noisy = np.empty(self._n_outputs * self._n_coordinates)
        self._roots = np.sqrt(smoothness, dtype=np.float64)
        self._rows = np.empty(self._n if self._sampled.left else 0, dtype=np.intp)
        self._sums = place.stated(loss, smoothness, fit_intercept=fit_intercept,
                                  n_outputs=n_outputs)

    @staticmethod
    def check(event, *, n_samples, smoothness, double clip, double anchor_clip, n_normalizer,
              Py_ssize_t n_outputs=1):
        """Raise the ValueError that a fit with these public numbers would raise, before it pays."""
        cdef BatchOracle dry = BatchOracle.__new__(BatchOracle)
        dry._set_geometry(smoothness, clip, anchor_clip, n_outputs, n_normalizer)
        dry._read_event(event, n_samples)

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")

    # ---- set-up ----

    def _set_geometry(self, smoothness, clip, anchor_clip, n_outputs, n_normalizer):
        smoothness = np.ascontiguousarray(smoothness, dtype=np.float64)
        # The kernels' guards against overflow are proved for this range.
        if not ((smoothness >= 1e-20) & (smoothness <= 1e20)).all():
            raise ValueError("smoothness must lie in [1e-20, 1e20]; rescale the features")
        for value in (clip, anchor_clip):
            if not 1e-30 < value < 1e30:
                raise ValueError("clip must lie in (1e-30, 1e30) in the units of the scaled "
                                 "problem; rescale the target or the features")
        self._clip, self._anchor_clip = clip, anchor_clip
        self._n_coordinates, self._n_outputs = len(smoothness), n_outputs
        self._n_normalizer = n_normalizer

    def _read_event(self, event, n_samples):
        """Take noise, rate and numbers of releases from what was paid for."""
        self._neighbors = {"replace_one": 2.0, "add_remove": 1.0}[event.neighboring]
        self._exact = event.releases == (NonPrivateEvent(),)
        self._rate = 1.0
        if self._exact:
            return
        for release in event.releases:
            if isinstance(release, GaussianEvent) and not self._full.left:
                self._full = self._paid(release, n_samples)
            elif isinstance(release, PoissonSampledEvent) and not self._sampled.left:
                self._sampled = self._paid(release, n_samples)
                if not 2.0**-40 <= release.sampling_rate <= 1:
                    raise ValueError("the sampling rate must lie in [2^-40, 1], got "
                                     f"{release.sampling_rate}")
                self._rate = release.sampling_rate
                # rounded down: a record is in the sample with the rate that was paid for, at most
                self._threshold = int(self._rate * 2**64) if self._rate < 1 else 0
            else:
                raise TypeError(f"this oracle can't carry out {release!r}, or only once")

    def _paid(self, release, n_samples):
        if not release.count >= 1:
            raise ValueError(f"an event counts at least one release, got {release!r}")
        size = self._n_outputs * self._n_coordinates
        bits = noise_bits(release.noise_multiplier, self._neighbors, self._n_normalizer,
                          n_samples, size)
        return Paid(release.count, release.noise_multiplier, bits)

    # ---- releases ----

    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil:
        cdef Py_ssize_t size = n_directions if directions != NULL else self._n_coordinates, k
        cdef Paid *paid = &self._sampled if sampled else &self._full
        cdef double normalizer = self._n_normalizer * (self._rate if sampled else 1.0), unit
        cdef const int64_t *sums
        cdef const double *plain
        if self._sums is None or not 1 <= size <= self._n_coordinates:
            return REFUSED
        if not self._exact:
            if paid.left <= 0 or self._noise.failed:
                return REFUSED
            paid.left -= 1
        cdef Question question = self._question(sampled, coef, anchor, directions, n_directions)
        if self._exact:
            plain = self._sums.plain(&question)
            if plain == NULL:
                self._noise.failed = True  # out of memory: refuse this and all that follow
                return REFUSED
            for k in range(self._n_outputs * size):
                mean[k] = plain[k] / normalizer
            return RELEASED
        # 1. what no solver sees: sums, and noise added to them
        sums = self._sums.integers(&question)
        if sums == NULL:
            self._noise.failed = True
            return REFUSED
        for k in range(self._n_outputs * size):
            unit = question.clip / question.limit
            if directions == NULL:
                unit *= self._roots[k % size]
            self._noisy[k] = (<double>(sums[k] + self._noise.gaussian(paid.bits)) + 0.5) * unit
        if self._noise.failed:
            return REFUSED
        # 2. what it sees, once all noise was drawn
        for k in range(self._n_outputs * size):
            mean[k] = self._noisy[k] / normalizer
        return RELEASED

    cdef Question _question(self, bint sampled, const double *coef, const double *anchor,
                            const double *directions, Py_ssize_t n_directions) noexcept nogil:
        cdef Py_ssize_t size = n_directions if directions != NULL else self._n_coordinates
        cdef Paid *paid = &self._sampled if sampled else &self._full
        cdef Question question = question_of(
            NULL, self._n_coordinates, True, self._clip if anchor == NULL else self._anchor_clip,
            0.0)
        question.coef, question.anchor, question.directions = coef, anchor, directions
        question.n_directions = n_directions if directions != NULL else 0
        if not self._exact:
            question.limit = record_limit(paid.bits, paid.noise_multiplier, self._neighbors,
                                          self._n_outputs * size)
            if sampled and self._threshold:
                self._draw(&question)
        return question

    cdef void _draw(self, Question *question) noexcept nogil:
        """Each record is in the sample with the rate that was paid for, or a little less."""
        cdef Py_ssize_t i, n_rows = 0
        for i in range(self._n):
            self._rows[n_rows] = i
            n_rows += self._noise.word() < self._threshold
        question.rows, question.n_rows = &self._rows[0], n_rows

    # ---- for the tests of this room only ----

    def _unreleased_sums(self, coef, anchor=None, directions=None, *, sampled=False):
        """The noiseless integer sums and their limit: never to leave a test."""
        cdef const double[:, ::1] w = np.array(coef, dtype=float, ndmin=2)
        cdef const double[:, ::1] a = np.array(0.0 if anchor is None else anchor, float, ndmin=2)
        cdef const double[:, ::1] d = np.array(
            0.0 if directions is None else directions, float, ndmin=2)
        cdef Py_ssize_t m = 0 if directions is None else d.shape[0]
        cdef const double *at = NULL
        cdef const double *along = NULL
        if anchor is not None:
            at = &a[0, 0]
        if directions is not None:
            along = &d[0, 0]
        cdef Question question = self._question(sampled, &w[0, 0], at, along, m)
        cdef const int64_t *sums = self._sums.integers(&question)
        cdef Py_ssize_t width = m or self._n_coordinates
        cdef const int64_t[:, ::1] view = <const int64_t[:self._n_outputs, :width]>sums
        return np.array(view, dtype=np.float64), question.limit
