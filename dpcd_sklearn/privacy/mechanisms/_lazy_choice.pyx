"""The exponential mechanism with a few random words instead of one for each candidate.

(a) *Law.* Choices among 2p signed scores v, without replacement of coordinates, as the k best of
    v + Gumbel: each has the probability e^v / Σ e^v among those that are left. It is drawn by
    rejection. The weights 2^-d, d = (top - v) log2 e, are sorted into octaves, levels floor(d); an
    octave is drawn with probability ~ count 2^-level in integers, one of its candidates uniformly,
    and accepted with probability 2^(level - d), above one half. So the number of tries doesn't
    grow with p, whatever the scores are.
(b) *Rounding.* Octaves, counts and uniform draws are exact; d and one exp2 are all that is
    rounded, by less than what the full draw pays for. Proof: ``proofs/lazy_argmax.md``.
(c) *Time* depends on the scores, which are not released: how many tries there were. That is why
    the full draw is the default.
(d) Memory is taken once, by the public number of coordinates.
(e) Scores of sums and coefficients that did not change are not made anew.
"""

import numpy as np
from libc.math cimport INFINITY, NAN, exp2, floor
from libc.stdint cimport uint64_t

from ...penalties._penalty cimport Penalty, Rule
from ..noise._noise cimport NoiseSource

cdef enum:
    OUT = 65535  # the level of what is no candidate, or no longer one
    MOST_LEVELS = 65534
    BLOCK = 4096
    MOST_CHOICES = 6  # sorted anew before each of them, the worst case, this is still no slower

cdef double LOG2_E = 1.4426950408889634  # log2(e)

cdef class LazyChoice:
    """Room for choices among `n_coordinates` coordinates, each with two signed scores.

    ``scores[2 * j + (sign > 0)]`` is the score of a move over b, -infinity for no candidate; they
    are written by the mechanism.

    Parameters
    ----------
    n_coordinates : int
    window : int, or None
        Octaves below the largest one that are told apart in a draw. None is as many as admit
        integer weights of all candidates below 2^62.
    n_levels : int, or None
        Octaves that are told apart when they are sorted; None is enough for nearly all scores, and
        not many more than there is to sort. Neither number changes the law.
    """

    def __init__(self, Py_ssize_t n_coordinates, *, window=None, n_levels=None):
        if not 1 <= n_coordinates < 2**60:
            raise ValueError(f"a choice is among 1 to 2^60 coordinates, got {n_coordinates}")
        self._n = 2 * n_coordinates
        most = 62 - int(self._n).bit_length()
        self._window = most if window is None else window
        self._last = min(max(self._n, 1024), MOST_LEVELS) if n_levels is None else n_levels
        if not 1 <= self._window <= min(most, self._last) or self._last > MOST_LEVELS:
            raise ValueError(f"no room for a window of {window} octaves of {n_levels}")
        self._scores, self._levels = np.empty(self._n), np.empty(self._n, dtype=np.uint16)
        self._counts = np.zeros(self._last + 1, dtype=np.int64)
        self.scores = &self._scores[0]
        self._sums, self._coef = np.full(n_coordinates, NAN), np.empty(n_coordinates)

    def __reduce__(self):
        raise TypeError("scores of records are never copied or pickled")

    # ---- scores that are known ----

    cdef void begin(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                    Py_ssize_t size) noexcept nogil:
        """Forget scores of another problem; `size` decides which public parts are refused."""
        cdef Py_ssize_t j
        if (self._penalty is penalty and self._n_penalized == n_penalized
                and self._rule == rule and self._size == size):
            return
        with gil:
            self._penalty = penalty
        self._n_penalized, self._rule, self._size = n_penalized, rule, size
        for j in range(self._sums.shape[0]):
            self.forget(j)

    cdef bint knows(self, Py_ssize_t j, double total, double w) noexcept nogil:
        """Whether both scores of coordinate j are of this sum over records and coefficient."""
        return (&self._sums[0])[j] == total and (&self._coef[0])[j] == w

    cdef void learn(self, Py_ssize_t j, double total, double w) noexcept nogil:
        (&self._sums[0])[j] = total
        (&self._coef[0])[j] = w

    cdef void forget(self, Py_ssize_t j) noexcept nogil:
        (&self._sums[0])[j] = NAN  # equals nothing

    # ---- choices ----

    cdef bint choose(self, NoiseSource noise, Py_ssize_t size, Py_ssize_t *chosen,
                     int *directions) noexcept nogil:
        """`size` choices in their order; False if there are fewer candidates.

        Scores of what was chosen are written over, and forgotten.
        """
        cdef Py_ssize_t i, c
        cdef int64_t *counts = &self._counts[0]
        self._base = self._last + 1
        for i in range(size):
            while self._base + self._window <= self._last and counts[self._base] == 0:
                self._base += 1
            # at first, and when the window reaches depths that were not told apart
            if self._base + self._window > self._last and not self._sort_into_levels():
                return False
            c = self._draw(noise)
            chosen[i], directions[i] = c // 2, 1 if c % 2 else -1
            self._remove(c)
            self._remove(c ^ 1)
        return True

    cdef bint _sort_into_levels(self) noexcept nogil:
        """Octaves below the largest score that is left; False if none is."""
        cdef Py_ssize_t c, n = self._n
        cdef int level
        cdef const double *scores = self.scores
        cdef uint16_t *levels = &self._levels[0]
        cdef int64_t *counts = &self._counts[0]
        cdef double depth, one = -INFINITY, other = -INFINITY, top, last = self._last
        for c in range(0, n, 2):  # two maxima at a time; NaN is larger than nothing
            one = scores[c] if scores[c] > one else one
            other = scores[c + 1] if scores[c + 1] > other else other
        top = one if one > other else other
        if not -INFINITY < top < INFINITY:
            return False
        for c in range(n):
            depth = (top - scores[c]) * LOG2_E
            levels[c] = <int>(depth if depth < last else last)
        for level in range(self._last + 1):
            counts[level] = 0
        self._top, self._n_left, self._base = top, n, 0
        for c in range(n):
            if levels[c] == self._last and not scores[c] > -INFINITY:
                levels[c] = OUT
                self._n_left -= 1
            else:
                counts[levels[c]] += 1
        return True

    cdef Py_ssize_t _draw(self, NoiseSource noise) noexcept nogil:
        """A candidate, with the probability e^v / Σ e^v."""
        cdef int64_t *counts = &self._counts[0]
        # octaves of the window one by one, all that is below in one
        cdef int level, low, below = self._base + self._window
        cdef int64_t n_below = self._n_left
        cdef uint64_t total = 0, at, mass
        cdef Py_ssize_t c
        for level in range(self._base, below):
            total += <uint64_t>counts[level] << (below - level)
            n_below -= counts[level]
        total += <uint64_t>n_below
        while True:
            at = _uniform(noise, total)
            low = self._base
            while low < below:
                mass = <uint64_t>counts[low] << (below - low)
                if at < mass:
                    break
                at -= mass
                low += 1
            c = self._find(at >> (below - low), low, low if low < below else self._last)
            if self._accept(noise, c, low):
                return c

    cdef Py_ssize_t _find(self, int64_t rank, int low, int high) noexcept nogil:
        """The candidate of this rank, from zero, among those of levels low to high."""
        cdef const uint16_t *levels = &self._levels[0]
        cdef Py_ssize_t c = 0, start = 0, end
        cdef uint16_t first = low, width = high - low, inside
        while True:
            end = min(start + BLOCK, self._n)
            inside = 0
            for c in range(start, end):
                inside += <uint16_t>(levels[c] - first) <= width
            if rank < inside or end == self._n:
                break
            rank -= inside
            start = end
        for c in range(start, end):
            if <uint16_t>(levels[c] - first) <= width:
                if rank == 0:
                    break
                rank -= 1
        return c

    cdef bint _accept(self, NoiseSource noise, Py_ssize_t c, int level) noexcept nogil:
        """True with probability 2^(level - d): zero bits for its octaves, one word for the rest."""
        cdef double depth = (self._top - self.scores[c]) * LOG2_E
        cdef double whole = floor(depth), bits = whole - level
        while bits >= 64:
            if noise.word() != 0:
                return False
            bits -= 64
        if bits > 0 and noise.word() >> (64 - <int>bits) != 0:
            return False
        return <double>(noise.word() >> 11) * 2.0**-53 < exp2(whole - depth)

    cdef void _remove(self, Py_ssize_t c) noexcept nogil:
        cdef uint16_t *level = &self._levels[0] + c
        if level[0] != OUT:
            (&self._counts[0])[level[0]] -= 1
            self._n_left -= 1
            level[0] = OUT
            self.scores[c] = -INFINITY
            self.forget(c // 2)


cdef uint64_t _uniform(NoiseSource noise, uint64_t end) noexcept nogil:
    """A uniform integer in [0, end), 0 < end <= 2^63, by rejection."""
    cdef uint64_t word, mask = end - 1
    cdef int shift = 1
    while shift < 64:
        mask |= mask >> shift
        shift *= 2
    while True:
        word = noise.word() & mask
        if word < end:
            return word


cdef bint is_worth_it(Py_ssize_t size) noexcept nogil:
    """Whether so many choices take less than a full draw; a public fact."""
    return size <= MOST_CHOICES
