"""The only source of noise.

(a) *Key stream.* ChaCha20 under a fresh 256-bit key from the operating system for every fit. A
    source lives inside one fit of one thread: it is never copied, pickled or kept, so forks,
    workers and clones can't share a stream. Key and buffer are overwritten when it is freed.
(b) *Gaussian.* ``gaussian(bits)`` is floor(2^bits N) for an exact standard normal N (after Karney
    2016, in narrow cells): no rounding error, no truncated tail. Added to an integer sum it is the
    Gaussian mechanism followed by floor, which is post-processing; nothing has to be paid for the
    sampler. Proof: ``proofs/gaussian.md``.
(c) *Gumbel.* ``log_exponential()`` is log E for a standard exponential E whose relative error is
    below 2^-48 in both tails, so that argmin(log E_j - score_j / b) is the exponential mechanism
    up to a factor that the calibration has paid for. Proofs: ``proofs/log_exponential.md``,
    ``proofs/release_argmax.md``.
(d) *Sameness.* Integers, IEEE operations in a fixed order, and comparisons that are exact: a key
    gives the same noise on every machine, with AVX2 and without. Batches give what as many calls
    give.
"""

import os

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from . import _exact_gaussian

cdef extern from "_noise.h":
    bint dpcd_uses_avx2() noexcept nogil
    void dpcd_chacha20(bint avx2, const uint32_t *key, const uint32_t *nonce, uint32_t counter,
                       int n_blocks, uint64_t *out) noexcept nogil
    void dpcd_log_exponentials(bint avx2, Py_ssize_t n, double *h) noexcept nogil
    void dpcd_wipe(void *memory, size_t size) noexcept nogil

cdef enum:
    MAX_BITS = 48
    LOG_BLOCK = 256  # numbers that stay in cache
    N_BLOCKS = 32  # of the key stream at a time
    N_WORDS = 8 * N_BLOCKS  # as in _noise.pxd
    # cells [j, j+1) / 64 of the half line; as in _exact_gaussian.py
    N_CELLS = 600
    GUIDE_BITS = 11
    POSITION_BITS = 42
    V_BITS = 22

cdef bint _AVX2 = dpcd_uses_avx2()
USES_AVX2 = bool(_AVX2)

# floor(2^63 P(j' <= j)) for the cells' law P(j) ~ exp(-(j/64)^2 / 2), j = 0, 1, ...
cdef uint64_t[N_CELLS] _EDGES
# The first j that a number with these leading bits can fall into.
cdef uint16_t[1 << GUIDE_BITS] _GUIDE
# floor(2^22 q) for the least acceptance probability q of a cell
cdef uint32_t[N_CELLS] _SURE
cdef double[10] _INVERSE


def _fill_tables():
    cdef int j = 0
    for i, edge in enumerate(_exact_gaussian.cell_table(N_CELLS)):
        _EDGES[i] = edge
    for i, bound in enumerate(_exact_gaussian.sure_table(N_CELLS, V_BITS)):
        _SURE[i] = bound
    for i in range(1 << GUIDE_BITS):
        while _EDGES[j] < <uint64_t>i << (63 - GUIDE_BITS):
            j += 1
        _GUIDE[i] = j
    for i in range(10):
        _INVERSE[i] = 1.0 / (10 - i)


_fill_tables()


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
        self._used = N_WORDS
        self.failed = False

    def __dealloc__(self):
        dpcd_wipe(self._key, sizeof(self._key))
        dpcd_wipe(self._buffer, sizeof(self._buffer))

    def __reduce__(self):
        raise TypeError("a noise source is never copied or pickled: two users would share noise")

    cdef uint64_t word(self) noexcept nogil:
        """The next 64 bits."""
        if self._used == N_WORDS:
            self._refill()
        self._used += 1
        return self._buffer[self._used - 1]

    cdef void _refill(self) noexcept nogil:
        dpcd_chacha20(_AVX2, self._key, self._nonce, self._counter, N_BLOCKS, self._buffer)
        self._counter += N_BLOCKS
        if self._counter == 0:  # 2^32 blocks: the next stream of the same key
            self._nonce[0] += 1
        self._used = 0

    # ---- floor(2^bits N); numbers of steps as in proofs/gaussian.md ----

    cdef int64_t gaussian(self, int bits) noexcept nogil:
        """floor(2^bits N) for a standard normal N; 0 <= bits <= 48."""
        cdef uint64_t a, b, magnitude
        cdef int64_t j
        while True:
            # 1. a cell j with probability ~ exp(-(j/64)^2 / 2), from 63 bits; bit 0 is the sign
            a = self.word()
            j = _GUIDE[a >> (64 - GUIDE_BITS)]
            j += a >> 1 > _EDGES[j]
            while a >> 1 > _EDGES[j]:
                j += 1
            if a >> 1 == _EDGES[j]:  # an edge runs through [a, a+1) 2^-63
                j = self._exact_cell(a >> 1)
                if self.failed:
                    return 0
            # 2. x = (j + u) / 64: the first 42 bits of u are those of b
            b = self.word()
            # 3. accept with probability exp(-u (2j + u) / 8192): v begins with b's last 22 bits
            if j < N_CELLS and (b & ((1 << V_BITS) - 1)) < _SURE[j]:
                break
            if self._accepts(j, b):
                break
            if self.failed:
                return 0
        # floor(2^48 x), then fewer bits; floor(-y) = -floor(y) - 1 = ~floor(y)
        magnitude = (<uint64_t>j << POSITION_BITS | b >> V_BITS) >> (MAX_BITS - bits)
        return <int64_t>(magnitude ^ -(a & 1))

    cdef bint _accepts(self, int64_t j, uint64_t b) noexcept nogil:
        """v < exp(-u (2j + u) / 8192), u and v extended by another word each."""
        cdef uint64_t c = self.word(), d = self.word()
        cdef double u, v, y, q = 1.0
        cdef int i
        if j < N_CELLS:
            u = 2.0**-53 * <double>((b >> V_BITS) << 11 | c >> 53)
            v = 2.0**-53 * <double>((b & ((1 << V_BITS) - 1)) << 31 | d >> 33)
            y = 2.0**-13 * u * (2 * j + u)  # below 0.15
            for i in range(10):  # q = exp(-y): Taylor's polynomial of degree 10
                q = 1.0 - y * q * _INVERSE[i]
            if v < q - 2.0**-45:
                return True
            if v > q + 2.0**-45:
                return False
        return self._exact_accept(j, b, c, d)

    cdef void gaussians_into(self, Py_ssize_t n, int bits, int64_t *out) noexcept nogil:
        """n draws of gaussian(bits); out: n."""
        cdef Py_ssize_t i
        for i in range(n):
            out[i] = self.gaussian(bits)

    # ---- log E ----

    cdef double log_exponential(self) noexcept nogil:
        """log E for a standard exponential E, with small relative error in E everywhere."""
        cdef double h = self._small_uniform()
        dpcd_log_exponentials(_AVX2, 1, &h)
        return h

    cdef void log_exponentials_into(self, Py_ssize_t n, double *out) noexcept nogil:
        """n draws of log_exponential(); out: n."""
        cdef Py_ssize_t i, start = 0, size
        while start < n:
            size = min(n - start, LOG_BLOCK)
            for i in range(start, start + size):
                out[i] = self._small_uniform()
            dpcd_log_exponentials(_AVX2, size, out + start)
            start += size

    cdef double _small_uniform(self) noexcept nogil:
        """Uniform in (0, 1/2) to 52 significant bits, and a random sign.

        E = -log(1 - V) for V uniform in (0, 1): V is 1 - h where the sign is + and h where it is -,
        so both tails keep all their bits.
        """
        cdef uint64_t high = self.word()
        cdef double h = 2.0**-64 * <double><int64_t>(high >> 1)
        if high >> 53 == 0:
            h = self._more_bits(h)
        return h * <double>(<int64_t>(high << 1 & 2) - 1)  # no branch: it can't be predicted

    cdef double _more_bits(self, double h) noexcept nogil:
        """Append words to the number of few leading bits until it has 52."""
        cdef double unit = 2.0**-64
        while h < unit * 2.0**52 and unit > 2.0**-320:
            unit *= 2.0**-64
            h += unit * <double>self.word()
        return h + 2.0**-330  # never zero

    # ---- undecided cases, about one in 2^50 draws, in exact arithmetic ----

    cdef int64_t _exact_cell(self, uint64_t a) noexcept with gil:
        try:
            return _exact_gaussian.cell(a, self._python_word)
        except BaseException:
            self.failed = True  # the oracle refuses every further release
            return 0

    cdef bint _exact_accept(self, int64_t j, uint64_t b, uint64_t c, uint64_t d) noexcept with gil:
        try:
            u = int(b >> V_BITS) << 64 | c
            v = int(b & ((1 << V_BITS) - 1)) << 64 | d
            return _exact_gaussian.accept(j, u, v, self._python_word)
        except BaseException:
            self.failed = True
            return False

    # ---- for rooms without a loop ----

    def _python_word(self):
        return self.word()

    def words(self, Py_ssize_t size):
        """A list of `size` words of 64 bits."""
        return [self.word() for _ in range(size)]

    def sample(self, Py_ssize_t size, int halvings):
        """Which of `size` rows are in a sample, each with a probability of 2^-halvings of its own.

        A bit that is set in so many words in turn decides on a row, so a word serves 64 rows.
        """
        import numpy as np

        out = np.empty((size + 63) // 64, dtype=np.uint64)
        cdef uint64_t[::1] view = out
        cdef Py_ssize_t i
        cdef int _k
        for i in range(view.shape[0]):
            view[i] = self.word()
            for _k in range(halvings - 1):
                view[i] &= self.word()
        return np.flatnonzero(np.unpackbits(out.view(np.uint8), bitorder="little")[:size])

    def gaussians(self, Py_ssize_t size, int bits):
        """`size` draws of floor(2^bits N) as an int64 array; 0 <= bits <= 48."""
        import numpy as np

        if not 0 <= bits <= MAX_BITS:
            raise ValueError(f"bits must be in [0, {MAX_BITS}], got {bits}")
        out = np.empty(size, dtype=np.int64)
        cdef int64_t[::1] view = out
        if size:
            with nogil:
                self.gaussians_into(size, bits, &view[0])
        if self.failed:
            raise RuntimeError("the noise source failed; nothing was released")
        return out

    def log_exponentials(self, Py_ssize_t size):
        """`size` draws of log E, E standard exponential, as a float64 array."""
        import numpy as np

        out = np.empty(size, dtype=np.float64)
        cdef double[::1] view = out
        if size:
            with nogil:
                self.log_exponentials_into(size, &view[0])
        return out
