"""What was paid for is released: noise on sums over records, or a noisy choice between them.

(a) Solvers see the abstract ``Oracle``: released numbers come out, public steps go in. Its
    declaration (``_oracle.pxd``) has no field, so a solver can't reach X or y.
(b) ``RecordOracle`` is made from a redeemed receipt, that is, after the charge is durable, and
    releases no more often than the receipt's event says.
(c) Records are read, clipped and summed in ``_coordinate_sums`` alone, in the geometry of M^(-1/2);
    integer contributions of one release share one unit, so the noise is isotropic there.
(d) Sensitivity is written once, in ``_grid.record_limit`` and ``_score_sensitivity``.
    Proofs: ``proofs/release_partial.md``, ``release_gradient.md``, ``release_argmax.md``,
    ``lazy_argmax.md``.
"""

import math

import numpy as np
from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t

from ...losses._base cimport Loss
from ...penalties._base cimport Penalty, Rule
from ..sums._coordinate_sums cimport CoordinateSums
from ._grid cimport noise_bits, record_limit
from ._lazy_choice cimport LazyChoice, is_worth_it
from ..noise._noise cimport NoiseSource
from ..sums._records cimport Records
from ..sums._sparse_sums cimport coordinate_sums

from ..accounting._events import GaussianEvent, NonPrivateEvent, SelectionEvent

cdef enum:
    RELEASED = 0
    REFUSED = -1
    DRAWN = 128  # coordinates whose noise is drawn at a time

# Floating-point Gumbel selection is the exact one at a range wider by this factor, at most, while
# the public part of the scores stays below `_most_public_score` (proofs/release_argmax.md).
cdef double GUMBEL_ROUNDING = 1 + 2.0**-12


cdef class Oracle:
    """What a solver sees of the records: releases that are paid for.

    Every method returns a negative number when the receipt admits no further release.
    """

    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil:
        """One noisy coordinate of the mean gradient at the current iterate."""
        return REFUSED

    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil:
        """A noisy block (ascending) of the mean gradient: gradient[k] is of coordinate block[k]."""
        return REFUSED

    cdef int release_argmax(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                            int *directions) noexcept nogil:
        """The `size` coordinates that promise most, by noisy argmax, and directions of their moves.

        In the order of the noisy scores; each of them is a choice that is paid for. The penalty is
        of the first `n_penalized` coordinates.
        """
        return REFUSED

    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil:
        """Tell the oracle that the iterate moved by step[k] in coordinate block[k]."""
        pass


cdef class RecordOracle(Oracle):
    """Oracle over records.

    Parameters
    ----------
    receipt : Receipt
        Proof that the event was charged; it is redeemed here, once.
    X : ndarray or sparse matrix of shape (n_samples, n_features), float32 or float64
        Read in place; rows or columns of an array must be contiguous. See Records.
    y : ndarray of shape (n_samples,), float64
    loss : Loss
    smoothness : ndarray of shape (n_coordinates,)
        M_j, public. The intercept is the last coordinate when `fit_intercept`.
    clip : float
        C, public.
    n_normalizer : int
        Public number of records: n, or n_public under add_remove.
    sample_weight : ndarray of shape (n_samples,), float64, or None
    fit_intercept : bool
    bounds : tuple (lo, hi, center) of float64 arrays of shape (n_features,), or None
        Records are clipped to [lo, hi] and centred while they are read.
    key : bytes of length 32, or None
        Reproducible noise, which protects nobody.
    n_threads : int
        Of passes over dense records; no release depends on it.
    lazy : bool
        Whether choices are drawn in a time that depends on scores: see ``_lazy_choice``.
    """

    cdef CoordinateSums _sums
    cdef LazyChoice _lazy
    cdef Py_ssize_t _n, _n_coordinates
    cdef bint _exact, _fresh
    cdef double _n_normalizer, _noise_multiplier, _neighbors, _gumbel_scale, _eta
    cdef double _coordinate_clip
    cdef int _bits
    cdef Py_ssize_t _gaussians_left, _selections_left
    cdef NoiseSource _noise
    cdef double[::1] _smoothness, _roots, _keys

    def __init__(self, receipt, X, y, *, Loss loss, smoothness, double clip, n_normalizer,
                 sample_weight=None, bint fit_intercept=True, bounds=None, key=None,
                 n_threads=1, bint lazy=False):
        if self._sums is not None:
            raise RuntimeError("an oracle is made once; make another one with another receipt")
        self._n, p = X.shape
        self._n_coordinates = p + fit_intercept
        self._n_normalizer = n_normalizer
        self._set_geometry(smoothness, clip)
        self._read_event(receipt.redeem())
        self._noise = NoiseSource(key)
        records = Records(X, y, sample_weight, bounds, by_row=self._selections_left > 0,
                          n_threads=n_threads)
        self._sums = coordinate_sums(records, loss, np.asarray(self._smoothness),
                                     self._coordinate_clip, fit_intercept, self._exact)
        self._roots = self._sums.roots
        # of one choice, which is never of more coordinates than are paid for
        self._keys = np.empty(self._n_coordinates if self._exact else
                              min(self._n_coordinates, self._selections_left))
        if lazy and self._selections_left:
            self._lazy = LazyChoice(self._n_coordinates)

    @staticmethod
    def check(event, *, n_samples, smoothness, double clip, n_normalizer, bint fit_intercept,
              Py_ssize_t n_chosen=1, double largest_score=0.0, double step=0.0):
        """Raise the ValueError that a fit with these public numbers would raise, before it pays.

        `n_chosen` is the number of coordinates of one greedy choice, `largest_score` a bound on
        the public part of its scores at the start, and `step` over M_j the step of a move.
        """
        cdef RecordOracle dry = RecordOracle.__new__(RecordOracle)
        dry._n, dry._n_normalizer = n_samples, n_normalizer
        dry._n_coordinates = len(smoothness)
        dry._set_geometry(smoothness, clip)
        dry._read_event(event, n_chosen)
        if not dry._selections_left:
            return
        # four moves by the longest gradient and sixty standard deviations: iterates that go
        # farther make no model, and would be refused when they are paid for
        largest_score += 4 * step * (dry._coordinate_clip
                                     + 60 * dry._noise_multiplier * dry._score_sensitivity())
        if not largest_score < dry._most_public_score(n_chosen):
            raise ValueError(
                f"the penalty, the radius or the step makes greedy scores of {largest_score:.3g} "
                f"in the scaled problem, and they must stay below "
                f"{dry._most_public_score(n_chosen):.3g}; lower alpha, radius or step_size, or "
                "raise clip"
            )

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")

    # ---- set-up ----

    def _set_geometry(self, smoothness, clip):
        smoothness = np.ascontiguousarray(smoothness, dtype=np.float64)
        if smoothness.shape != (self._n_coordinates,):
            raise ValueError(f"smoothness has shape {smoothness.shape}, "
                             f"expected ({self._n_coordinates},)")
        # The kernels' guards against overflow are proved for this range.
        if not ((smoothness >= 1e-20) & (smoothness <= 1e20)).all():
            raise ValueError("smoothness must lie in [1e-20, 1e20]; rescale the features")
        if not 1e-30 < clip / math.sqrt(smoothness.sum()) < 1e30:
            raise ValueError("clip over the root of the summed smoothness must lie in "
                             "(1e-30, 1e30); rescale the target or the features")
        self._smoothness = smoothness
        self._coordinate_clip = clip / math.sqrt(smoothness.sum())

    def _read_event(self, event, n_chosen=1):
        """Take noise and the number of releases from what was paid for."""
        self._neighbors = {"replace_one": 2.0, "add_remove": 1.0}[event.neighboring]
        self._exact = event.releases == (NonPrivateEvent(),)
        if self._exact:
            return
        for release in event.releases:
            if not isinstance(release, (GaussianEvent, SelectionEvent)):
                raise TypeError(f"this oracle can't carry out {release!r}")
            if not release.count >= 1:
                raise ValueError(f"an event counts at least one release, got {release!r}")
            if isinstance(release, GaussianEvent) and not self._gaussians_left:
                self._noise_multiplier = release.noise_multiplier
                self._gaussians_left = release.count
            elif isinstance(release, SelectionEvent) and not self._selections_left:
                self._eta = release.eta
                self._selections_left = release.count
            else:
                raise TypeError(f"an oracle carries out a kind of release once, not {release!r}")
        if not self._gaussians_left:  # a grid that is fine enough for choices
            self._noise_multiplier = 1.0
        self._bits = noise_bits(self._noise_multiplier, self._neighbors, self._n_normalizer,
                                self._n, self._n_coordinates)
        if self._selections_left:
            if self._eta > 0:
                self._gumbel_scale = 2 * self._score_sensitivity() / self._eta * GUMBEL_ROUNDING
            if not 0 < self._eta <= 2.0**10 or not self._most_public_score(n_chosen) > 0:
                raise ValueError(
                    f"{n_chosen} choices of bounded range {self._eta:g} at once among "
                    f"{self._n_normalizer:g} records are outside what is proved; change epsilon, "
                    "max_iter or block_size"
                )

    cdef double _limit(self, Py_ssize_t size) noexcept nogil:
        """K, the norm bound of one record's integers in a release of `size` entries."""
        return record_limit(self._bits, self._noise_multiplier, self._neighbors, size)

    cdef double _score_sensitivity(self) noexcept nogil:
        """Largest change of a greedy score between neighbours, equal for all coordinates.

        The mean partial derivative changes by neighbors * C_j / n with C_j = sqrt(M_j) *
        coordinate_clip, and a score is 1/sqrt(M_j)-Lipschitz in it.
        """
        return self._neighbors * self._coordinate_clip / self._n_normalizer

    cdef double _most_public_score(self, Py_ssize_t size) noexcept nogil:
        """Bound on the public part of a score in a choice of `size`, such that 8 k² τ is paid for.

        τ = 2^-44 + 2^-48 B bounds the error of a key, B <= n η / 2 + this bound / b.
        """
        cdef double n = max(self._n_normalizer, <double>self._n)
        return (2.0**33 / (<double>size * size) * self._eta * (1 - 2.0**-10)
                - 0.5 * n * self._eta - 2.0**4) * self._gumbel_scale

    # ---- releases ----

    cdef bint _spend_gaussian(self) noexcept nogil:
        if self._exact:
            return True
        if self._gaussians_left <= 0 or self._noise.failed:
            return False
        self._gaussians_left -= 1
        return True

    cdef double _noisy_mean(self, double total, Py_ssize_t j, double clip,
                            double limit) noexcept nogil:
        """The released value of a sum: (sum + floor(N) + 1/2) units, over n."""
        if self._exact:
            return total / self._n_normalizer
        cdef int64_t noisy = <int64_t>total + self._noise.gaussian(self._bits)
        return (<double>noisy + 0.5) * (clip * self._roots[j] / limit) / self._n_normalizer

    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil:
        cdef double limit = self._limit(1) if not self._exact else 1.0
        cdef double total
        if not 0 <= j < self._n_coordinates or not self._spend_gaussian():
            return REFUSED
        if self._fresh and not self._sums.has_step:
            total = self._sums.sums[j]  # the argmax has just summed all of them here
        else:
            self._fresh = False
            self._sum(&j, 1, limit, False)
            total = self._sums.sums[0]
        total = self._noisy_mean(total, j, self._coordinate_clip, limit)
        if self._noise.failed:
            return REFUSED
        partial[0] = total
        return RELEASED

    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil:
        cdef Py_ssize_t k
        cdef double limit = self._limit(size) if not self._exact else 1.0
        cdef double clip = self._coordinate_clip * sqrt(<double>size)
        for k in range(size):  # the kernels count on ascending coordinates, the intercept last
            if not (block[k - 1] if k else -1) < block[k] < self._n_coordinates:
                return REFUSED
        if size < 1 or not self._spend_gaussian():
            return REFUSED
        self._fresh = False
        self._sum(NULL if size == self._n_coordinates else block, size, limit, True)
        for k in range(size):
            self._sums.sums[k] = self._noisy_mean(self._sums.sums[k], block[k], clip, limit)
        if self._noise.failed:
            return REFUSED
        for k in range(size):
            gradient[k] = self._sums.sums[k]
        return RELEASED

    cdef int release_argmax(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                            int *directions) noexcept nogil:
        cdef Py_ssize_t j, n_chosen = 0
        cdef int sign, direction
        cdef double gradient, score, key, least, most = self._most_public_score(size)
        cdef double[2 * DRAWN] noise
        cdef double limit = self._limit(1) if not self._exact else 1.0
        if not 1 <= size <= self._n_coordinates:
            return REFUSED
        if not self._exact:
            if self._selections_left < size or self._noise.failed:
                return REFUSED
            self._selections_left -= size
        if not self._fresh or self._sums.has_step:
            self._fresh = True
            self._sum(NULL, self._n_coordinates, limit, False)
        if self._lazy is not None and is_worth_it(size):
            return self._choose_lazily(penalty, n_penalized, rule, coef, limit, size, chosen,
                                       directions)
        for j in range(self._n_coordinates):
            if j % DRAWN == 0 and not self._exact:
                self._noise.log_exponentials_into(2 * min(<Py_ssize_t>DRAWN,
                                                          self._n_coordinates - j), noise)
            gradient = self._mean_gradient(j, limit)
            least = INFINITY
            for sign in range(-1, 2, 2):
                score = self._score(penalty, j < n_penalized, rule, coef[j], gradient, most, j,
                                    sign)
                if score == INFINITY:
                    return REFUSED
                if score == -INFINITY:
                    continue
                key = -score if self._exact else (noise[2 * (j % DRAWN) + (sign > 0)]
                                                  - score / self._gumbel_scale)
                if key < least:
                    least, direction = key, sign
            if least < INFINITY:
                n_chosen = _insert(least, j, direction, n_chosen, size, &self._keys[0], chosen,
                                   directions)
        return REFUSED if self._noise.failed or n_chosen < size else RELEASED

    cdef int _choose_lazily(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, double limit, Py_ssize_t size,
                            Py_ssize_t *chosen, int *directions) noexcept nogil:
        """The same choices by fewer random words (proofs/lazy_argmax.md)."""
        cdef Py_ssize_t j
        cdef int sign
        cdef double gradient, score, most = self._most_public_score(size)
        self._lazy.be_for(penalty, n_penalized, rule, size)
        for j in range(self._n_coordinates):
            if self._lazy.knows(j, self._sums.sums[j], coef[j]):
                continue
            gradient = self._mean_gradient(j, limit)
            for sign in range(-1, 2, 2):
                score = self._score(penalty, j < n_penalized, rule, coef[j], gradient, most, j,
                                    sign)
                if score == INFINITY:
                    self._lazy.forget()
                    return REFUSED
                self._lazy.scores[2 * j + (sign > 0)] = score / self._gumbel_scale
            self._lazy.learn(j, self._sums.sums[j], coef[j])
        if self._noise.failed or not self._lazy.choose(self._noise, size, chosen, directions):
            return REFUSED
        return RELEASED

    cdef double _mean_gradient(self, Py_ssize_t j, double limit) noexcept nogil:
        cdef double unit = 1.0 if self._exact else self._coordinate_clip * self._roots[j] / limit
        return self._sums.sums[j] * unit / self._n_normalizer

    cdef double _score(self, Penalty penalty, bint penalised, Rule rule, double w, double gradient,
                       double most, Py_ssize_t j, int sign) noexcept nogil:
        """What a move promises; -infinity for a move out of the domain, no candidate.

        +infinity when the public part of the score exceeds `most`, which is a public fact.
        """
        cdef double score, known
        if not penalised:
            return -sign * gradient / self._roots[j]
        score = penalty.signed_score(rule, w, gradient, self._smoothness[j], sign)
        if score == -INFINITY or self._exact:
            return score
        known = (fabs(penalty.signed_score(rule, w, 0.0, self._smoothness[j], sign))
                 + fabs(w) * self._roots[j])
        return score if known < most else INFINITY

    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil:
        if not self._sums.move(block, size, step):
            self._noise.failed = True

    cdef void _sum(self, const Py_ssize_t *block, Py_ssize_t size, double limit,
                   bint joint) noexcept nogil:
        if not self._sums.sum(block, size, limit, joint):
            self._noise.failed = True  # out of memory: refuse this release and all that follow

    # ---- for the tests of this room only ----

    def _unreleased_sums(self, block, step=None, *, bint joint):
        """The noiseless integer sums of a block, and its limit: never to leave a test."""
        cdef Py_ssize_t[::1] columns = np.asarray(block, dtype=np.intp)
        cdef Py_ssize_t size = columns.shape[0]
        cdef Py_ssize_t[::1] everything = np.arange(self._n_coordinates, dtype=np.intp)
        cdef double[::1] move
        if step is not None:
            move = np.ascontiguousarray(step, dtype=np.float64)
            self.apply_step(&everything[0], self._n_coordinates, &move[0])
        cdef double limit = self._limit(size if joint else 1)
        self._fresh = False
        self._sum(NULL if size == self._n_coordinates else &columns[0], size, limit, joint)
        return np.array(self._sums.sums[:size]), limit


cdef Py_ssize_t _insert(double key, Py_ssize_t j, int direction, Py_ssize_t n, Py_ssize_t size,
                        double *keys, Py_ssize_t *chosen, int *directions) noexcept nogil:
    """Keep the `size` smallest keys in ascending order; returns how many there are now."""
    cdef Py_ssize_t at = n
    if n == size:
        if not key < keys[n - 1]:
            return n
        at -= 1
    while at > 0 and keys[at - 1] > key:
        keys[at], chosen[at], directions[at] = keys[at - 1], chosen[at - 1], directions[at - 1]
        at -= 1
    keys[at], chosen[at], directions[at] = key, j, direction
    return min(n + 1, size)
