"""The only source of noise.

(a) *Key stream.* ChaCha20 under a fresh 256-bit key from the operating system for every fit. A
    source lives inside one fit of one thread: it is never copied, pickled or kept, so forks,
    workers and clones can't share a stream.
(b) *Gaussian.* ``gaussian(bits)`` is floor(2^bits N) for an exact standard normal N (Karney 2016,
    Algorithm N): no rounding error, no truncated tail. Added to an integer sum it is the Gaussian
    mechanism followed by floor, which is post-processing; nothing has to be paid for the sampler.
    Proof: ``proofs/gaussian.md``.
(c) *Gumbel.* ``log_exponential()`` is log E for a standard exponential E whose relative error is
    below 2^-48 in both tails, so that argmin(log E_j - score_j / b) is the exponential mechanism
    up to a factor that the calibration has paid for. Proof: ``proofs/release_argmax.md``.
"""

import os

from libc.math cimport exp, fabs, log, log1p
from libc.stdint cimport int64_t, uint32_t, uint64_t

from . import _exact_gaussian

cdef extern from "_chacha.h":
    const int DPCD_CHACHA_LANES
    const int DPCD_CHACHA_BYTES
    void dpcd_chacha20(const uint32_t *key, const uint32_t *nonce, uint32_t counter,
                       unsigned char *out) noexcept nogil

cdef enum:
    MAX_BITS = 48
    N_CELLS = 12

# floor(2^63 P(k' <= k)) for the discrete half-normal P(k) ~ exp(-k^2/2), k = 0, 1, ...
cdef uint64_t[N_CELLS] _CELLS
for _k, _edge in enumerate(_exact_gaussian.cell_table(N_CELLS)):
    _CELLS[_k] = _edge


cdef class NoiseSource:
    """A private stream of random words; `key` is for reproducible fits, which are not private.

    Parameters
    ----------
    key : bytes of length 32, or None
        None takes the key from the operating system's entropy.
    """

    def __cinit__(self, key=None, *, nonce=bytes(12)):
        if key is None:
            key = os.urandom(32)
        if len(key) != 32 or len(nonce) != 12:
            raise ValueError("a key has 32 bytes and a nonce 12")
        for i in range(8):
            self._key[i] = int.from_bytes(key[4 * i:4 * i + 4], "little")
        for i in range(3):
            self._nonce[i] = int.from_bytes(nonce[4 * i:4 * i + 4], "little")
        self._counter = 0
        self._used = DPCD_CHACHA_BYTES
        self.failed = False

    def __reduce__(self):
        raise TypeError("a noise source is never copied or pickled: two users would share noise")

    cdef uint64_t word(self) noexcept nogil:
        """The next 64 bits."""
        cdef uint64_t value = 0
        cdef int i
        if self._used == DPCD_CHACHA_BYTES:
            dpcd_chacha20(self._key, self._nonce, self._counter, self._buffer)
            self._counter += DPCD_CHACHA_LANES
            if self._counter == 0:  # 2^32 blocks: the next stream of the same key
                self._nonce[0] += 1
            self._used = 0
        for i in range(8):
            value |= <uint64_t>self._buffer[self._used + i] << (8 * i)
        self._used += 8
        return value

    cdef int64_t gaussian(self, int bits) noexcept nogil:
        """floor(2^bits N) for a standard normal N; 0 <= bits <= 48."""
        cdef uint64_t a, b, c
        cdef int k
        cdef double u, v, q
        cdef bint accepted
        while True:
            # 1. k with probability ~ exp(-k^2/2), from 63 bits; bit 0 is the sign
            a = self.word()
            k = _cell(a >> 1)
            if k < 0:
                k = self._exact_cell(a >> 1)
            # 2. u uniform in [0, 1): its first 64 bits are b
            b = self.word()
            # 3. accept with probability exp(-u (2k + u) / 2)
            c = self.word()
            u = <double>(b >> 11) * 2.0**-53
            v = <double>(c >> 11) * 2.0**-53
            q = exp(-0.5 * u * (2 * k + u))
            if fabs(v - q) > 2.0**-45:  # proofs/gaussian.md: the error is below 2^-46
                accepted = v < q
            else:
                accepted = self._exact_accept(k, b, c)
            if self.failed:
                return 0
            if accepted:
                break
        cdef int64_t magnitude = (<int64_t>k << bits) + <int64_t>(b >> (64 - bits) if bits else 0)
        return -magnitude - 1 if a & 1 else magnitude

    cdef double log_exponential(self) noexcept nogil:
        """log E for a standard exponential E, with small relative error in E everywhere."""
        # -log(1 - V), V uniform in (0, 1); with V < 1/2 by symmetry both tails keep all their bits
        cdef uint64_t high = self.word()
        cdef double h = 2.0**-64 * <double>(high >> 1)
        if high >> 53 == 0:  # few leading bits are left: append another word
            h += 2.0**-128 * <double>self.word()
        h += 2.0**-193
        if high & 1:
            return log(-log(h))
        return log(-log1p(-h))

    # ---- undecided cases, about one in 2^45 draws, in exact arithmetic ----

    cdef int _exact_cell(self, uint64_t a) noexcept with gil:
        try:
            return _exact_gaussian.cell(a, self._python_word)
        except BaseException:
            self.failed = True  # the oracle refuses every further release
            return 0

    cdef bint _exact_accept(self, int k, uint64_t b, uint64_t c) noexcept with gil:
        try:
            return _exact_gaussian.accept(k, b, c, self._python_word)
        except BaseException:
            self.failed = True
            return False

    # ---- for tests and for rooms without a loop ----

    def _python_word(self):
        return self.word()

    def words(self, Py_ssize_t size):
        """A list of `size` words of 64 bits."""
        return [self.word() for _ in range(size)]

    def gaussians(self, Py_ssize_t size, int bits):
        """`size` draws of floor(2^bits N) as an int64 array; 0 <= bits <= 48."""
        import numpy as np

        if not 0 <= bits <= MAX_BITS:
            raise ValueError(f"bits must be in [0, {MAX_BITS}], got {bits}")
        out = np.empty(size, dtype=np.int64)
        cdef int64_t[::1] view = out
        cdef Py_ssize_t i
        with nogil:
            for i in range(size):
                view[i] = self.gaussian(bits)
        if self.failed:
            raise RuntimeError("the noise source failed; nothing was released")
        return out

    def log_exponentials(self, Py_ssize_t size):
        """`size` draws of log E, E standard exponential, as a float64 array."""
        import numpy as np

        out = np.empty(size, dtype=np.float64)
        cdef double[::1] view = out
        cdef Py_ssize_t i
        with nogil:
            for i in range(size):
                view[i] = self.log_exponential()
        return out


cdef int _cell(uint64_t a) noexcept nogil:
    """The k whose cell holds [a, a+1) 2^-63 entirely, or -1 if an edge runs through it."""
    cdef int k = 0
    while a > _CELLS[k]:
        k += 1
    return -1 if a == _CELLS[k] else k
