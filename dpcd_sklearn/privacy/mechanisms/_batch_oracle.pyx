"""Clipped mean gradients at a stated iterate: of all records or of a secret Poisson sample.

(a) Solvers see the abstract ``IterateOracle``, which has no field: released numbers come out.
(b) ``BatchOracle`` is made from a redeemed receipt and releases no more often than it says.
(c) Who is in a sample is drawn here, by words of the noise source, and never leaves. Records are
    read, clipped and summed in the room ``sums``; the sensitivity stands in ``_units``.
    Proof: ``proofs/release_mean.md``.
"""

import numpy as np
from libc.stdint cimport int64_t

from ...losses._loss cimport Loss
from ..noise._noise cimport NoiseSource
from ..sums._sums cimport Place, Question, Sums
from ._units cimport MeanUnits, Paid

from ._questions import GaussianNoise, MeanGradient, is_tape

cdef enum:
    RELEASED = 0
    REFUSED = -1


cdef class IterateOracle:
    """The face that solvers see: means that are paid for, at an iterate that they state."""

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


cdef class BatchOracle(IterateOracle):
    """Oracle over records at stated iterates.

    Parameters
    ----------
    receipt : Receipt
        Proof that what the units are for was charged; it is redeemed here, once.
    units : MeanUnits
        Units of the public plan. Norms are in the geometry of M^(-1/2), those of products
        euclidean.
    place : Place
        Where the records lie; it is opened once the receipt is redeemed.
    loss : Loss
    fit_intercept : bool
    key : bytes of length 32, or None
    """

    cdef Sums _sums
    cdef MeanUnits _units
    cdef NoiseSource _noise
    cdef Py_ssize_t _n, _n_coordinates, _n_outputs, _full_left, _sampled_left
    cdef double[::1] _noisy, _roots
    cdef Py_ssize_t[::1] _rows
    cdef object _tape

    def __init__(self, receipt, MeanUnits units, Place place, *, Loss loss,
                 bint fit_intercept=True, key=None):
        if self._sums is not None:
            raise RuntimeError("an oracle is made once; make another one with another receipt")
        units.redeem(receipt, place, fit_intercept)
        self._units, self._n = units, units.n_samples
        self._n_coordinates, self._n_outputs = units.n_coordinates, units.n_outputs
        self._full_left, self._sampled_left = units.full.count, units.sampled.count
        self._tape = key if is_tape(key) and not units.noiseless else None
        self._noise = NoiseSource(None if is_tape(key) else key)
        self._noisy = np.empty(self._n_outputs * self._n_coordinates)
        self._roots = np.sqrt(units.smoothness)
        self._rows = np.empty(self._n if units.threshold else 0, dtype=np.intp)
        self._sums = place.stated(loss, units.smoothness, fit_intercept=fit_intercept,
                                  n_outputs=units.n_outputs)

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")

    # ---- releases ----

    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil:
        cdef Py_ssize_t size = n_directions if directions != NULL else self._n_coordinates, k
        cdef Py_ssize_t *left = &self._sampled_left if sampled else &self._full_left
        cdef double normalizer, unit
        cdef int bits
        cdef const int64_t *sums
        cdef const double *plain
        if self._sums is None or not 1 <= size <= self._n_coordinates:
            return REFUSED
        bits = self._units.sampled.bits if sampled else self._units.full.bits
        normalizer = self._units.n_normalizer * (self._units.rate if sampled else 1.0)
        if not self._units.noiseless:
            if left[0] <= 0 or self._noise.failed:
                return REFUSED
            left[0] -= 1
        cdef Question question = self._units.question(sampled, coef, anchor, directions,
                                                      n_directions)
        if sampled and self._units.threshold:
            self._draw(&question)
        if self._units.noiseless:
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
            self._noisy[k] = <double>(sums[k] + self._noise.gaussian(bits))
        if self._tape is not None:
            self._release_on_tape(&question, sampled, sums, size)
        if self._noise.failed:
            return REFUSED
        # 2. what it sees, once all noise was drawn
        for k in range(self._n_outputs * size):
            unit = question.clip / question.limit
            if directions == NULL:
                unit *= self._roots[k % size]
            mean[k] = (self._noisy[k] + 0.5) * unit / normalizer
        return RELEASED

    cdef void _release_on_tape(self, const Question *question, bint sampled, const int64_t *sums,
                               Py_ssize_t size) noexcept with gil:
        """Put what a tape tells into _noisy."""
        cdef Py_ssize_t k, n = self._n_coordinates, of_iterate = self._n_outputs * n
        cdef const double *anchor = question.anchor
        cdef const double *directions = question.directions
        cdef Paid *paid = &self._units.sampled if sampled else &self._units.full
        try:
            iterate = np.array([question.coef[k] for k in range(of_iterate)])
            start = None if anchor == NULL else np.array([anchor[k] for k in range(of_iterate)])
            along = None if directions == NULL else np.array(
                [directions[k] for k in range(size * n)])
            exact = np.array([sums[k] for k in range(self._n_outputs * size)], dtype=np.int64)
            asked = MeanGradient(sampled, question.clip, question.limit, iterate, start, along)
            noise = GaussianNoise(paid.bits, paid.noise_multiplier)
            drawn = np.asarray(self._noisy[:len(exact)]).astype(np.int64)
            noisy = self._tape.release(exact, asked, noise, drawn)
            for k in range(self._n_outputs * size):
                self._noisy[k] = noisy[k]
        except Exception:  # the tape keeps it
            self._noise.failed = True

    cdef void _draw(self, Question *question) noexcept nogil:
        """Each record is in the sample with the rate that was paid for, or a little less."""
        cdef Py_ssize_t i, n_rows = 0
        if self._tape is not None:
            with gil:
                for i in self._tape.members(self._n, self._units.threshold):
                    self._rows[n_rows] = i
                    n_rows += 1
            question.rows, question.n_rows = &self._rows[0], n_rows
            return
        for i in range(self._n):
            self._rows[n_rows] = i
            n_rows += self._noise.word() < self._units.threshold
        question.rows, question.n_rows = &self._rows[0], n_rows
