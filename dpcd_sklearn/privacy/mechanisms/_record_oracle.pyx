"""Releases that were paid for: noise on sums over records, or a noisy choice between them.

(a) Solvers see the abstract ``SolverOracle``.
(b) A ``PaidOracle`` is made from a redeemed receipt, that is, after the charge is durable, and
    releases no more often than the receipt's event says. ``RecordOracle`` follows one iterate;
    ``BatchOracle`` takes any.
(c) Records are read, clipped and summed in the room ``sums`` alone, in the geometry of M^(-1/2);
    integer contributions of one release share one unit, so the noise is isotropic there.
(d) Coordinate j of output k is k * n_coordinates + j: a coordinate like any other, and a block of
    several outputs is clipped by one norm.
(e) Who is in a sample is drawn here, by words of the noise source, and never leaves.
(f) Sensitivity is written once, in ``_units``.
    Proofs: ``proofs/release_partial.md``, ``release_gradient.md``, ``release_argmax.md``,
    ``lazy_argmax.md``, ``release_mean.md``.
"""

import functools

import numpy as np
from libc.math cimport INFINITY, fabs, rint, sqrt
from libc.stdint cimport int64_t

from ...losses._loss cimport Loss
from ...penalties._penalty cimport Penalty, Rule
from ..noise._noise cimport NoiseSource
from ..sums._sums cimport Place, Question, Sums
from ._lazy_choice cimport LazyChoice, is_worth_it
from ._oracle cimport SolverOracle
from ._units cimport CoordinateUnits, MeanUnits, Paid

from ._questions import GaussianNoise, GradientSums, GreedyChoices, is_tape

cdef enum:
    RELEASED = 0
    REFUSED = -1
    DRAWN = 128  # coordinates whose noise is drawn at a time

# Steps of a score in one sensitivity; rounded to whole steps, neighbours move it by one more.
cdef double STEPS = 2.0**13


cdef class PaidOracle(SolverOracle):
    """The base of oracles over records: it has the receipt, the sums, the noise and the tape.

    Parameters
    ----------
    receipt : Receipt
        Proof that what the units are for was charged; it is redeemed here, once.
    units : Units
        Units of the public plan.
    place : Place
        Where the records lie; it is opened once the receipt is redeemed.
    fit_intercept : bool
        The intercept is the last coordinate of every output.
    key : bytes of length 32, or None
        Reproducible noise, which protects nobody.
    """

    cdef Sums _sums
    cdef NoiseSource _noise
    cdef bint _noiseless
    cdef double[::1] _noisy
    cdef object _tape

    def __init__(self, receipt, units, Place place, bint fit_intercept, key):
        if self._sums is not None:
            raise RuntimeError("an oracle is made once; make another one with another receipt")
        units.redeem(receipt, place, fit_intercept)
        self._noiseless = units.noiseless
        self._tape = key if is_tape(key) and not units.noiseless else None
        self._noise = NoiseSource(None if is_tape(key) else key)

    def __reduce__(self):
        raise TypeError("an oracle holds records and noise: it is never copied or pickled")

    cdef bint _spend(self, Paid *paid) noexcept nogil:
        """Count a release down; False if none is left, or after a failure."""
        if self._noiseless:
            return self._sums is not None
        if paid.count <= 0 or self._noise.failed:
            return False
        paid.count -= 1
        return True

    cdef const double *_ask(self, const Question *question) noexcept nogil:
        """The sums, plain ones without noise alone.

        NULL when out of memory: this release is refused, and all that follow.
        """
        cdef const double *sums = NULL
        cdef bint suits = question.limit == 0 if self._noiseless else question.limit > 0
        if suits:
            sums = self._sums.answer(question)
        self._noise.failed = self._noise.failed or sums == NULL
        return sums

    cdef bint _release(self, const Question *question, Py_ssize_t size,
                       const Paid *paid) noexcept nogil:
        """Fill _noisy with the sums and their noise, or with what a tape tells; False if it fails.

        The release was counted down, and no solver sees a part of it.
        """
        cdef Py_ssize_t k
        cdef const double *sums = self._ask(question)
        if sums == NULL:
            return False
        for k in range(size):
            self._noisy[k] = sums[k]
            if not self._noiseless:
                self._noisy[k] = <double>(<int64_t>sums[k] + self._noise.gaussian(paid.bits))
        if self._tape is not None and not self._noise.failed:
            self._release_on_tape(question, sums, size, paid)
        return not self._noise.failed

    cdef double _mean(self, Py_ssize_t k, double root, const Question *question,
                      double n_normalizer) noexcept nogil:
        """The released value of sum k, (sum + floor(N) + 1/2) units over n; `root` is sqrt(M_j)."""
        if self._noiseless:
            return self._noisy[k] / n_normalizer
        return (self._noisy[k] + 0.5) * (question.clip * root / question.limit) / n_normalizer

    # ---- what a tape hears: what is asked, and what comes out ----

    cdef object _exact(self, const double *sums, Py_ssize_t size):
        return np.array(<const double[:size]>sums, dtype=np.int64)

    cdef object _asked(self, const Question *question, Py_ssize_t size, const Paid *paid):
        raise NotImplementedError

    cdef void _release_on_tape(self, const Question *question, const double *sums,
                               Py_ssize_t size, const Paid *paid) noexcept with gil:
        cdef Py_ssize_t k
        try:
            noise = GaussianNoise(paid.bits, paid.noise_multiplier)
            drawn = np.asarray(self._noisy[:size]).astype(np.int64)
            noisy = self._tape.release(self._exact(sums, size),
                                       self._asked(question, size, paid), noise, drawn)
            for k in range(size):
                self._noisy[k] = noisy[k]
        except Exception:  # the tape keeps it
            self._noise.failed = True


cdef class RecordOracle(PaidOracle):
    """Oracle over records, at an iterate that moves.

    Parameters
    ----------
    receipt, place, fit_intercept, key : as of PaidOracle
    units : CoordinateUnits
    loss : Loss
    lazy : bool
        Whether choices are drawn in a time that depends on scores: see ``_lazy_choice``.
    """

    cdef CoordinateUnits _units
    cdef LazyChoice _lazy
    cdef Py_ssize_t _n_coordinates, _selections_left
    cdef Paid _gaussians
    cdef const double[::1] _smoothness
    cdef double[::1] _keys
    cdef object _iterate

    def __init__(self, receipt, CoordinateUnits units, Place place, *, Loss loss,
                 bint fit_intercept=True, key=None, bint lazy=False):
        super().__init__(receipt, units, place, fit_intercept, key)
        self._units, self._smoothness = units, units.smoothness
        self._n_coordinates, self._selections_left = units.n_coordinates, units.n_selections
        self._gaussians = Paid(units.n_gaussians, units.noise_multiplier, units.bits)
        self._noisy = np.empty(self._n_coordinates)
        self._iterate = np.zeros(self._n_coordinates if self._tape is not None else 0)
        self._sums = place.moving(loss, units.smoothness, fit_intercept=fit_intercept,
                                  n_outputs=units.n_outputs, whole=units.whole)
        # of one choice, which is never of more coordinates than are paid for
        self._keys = np.empty(self._n_coordinates if self._noiseless else
                              min(self._n_coordinates, self._selections_left))
        if lazy and self._selections_left:
            self._lazy = LazyChoice(self._n_coordinates)

    # ---- what a tape hears of choices ----

    cdef object _asked(self, const Question *question, Py_ssize_t size, const Paid *paid):
        block = None if question.block == NULL else tuple([question.block[k] for k in range(size)])
        return GradientSums(block, question.joint, False, question.clip, question.limit,
                            self._iterate.copy())

    cdef bint _choose_on_tape(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                              const double *coef, double most, const Question *question,
                              const double *sums, Py_ssize_t size, Py_ssize_t *chosen,
                              int *directions) noexcept with gil:
        cdef Py_ssize_t k
        try:
            w = np.array([coef[k] for k in range(self._n_coordinates)])
            scores_of = functools.partial(self._scores_on_tape, penalty, n_penalized, <int>rule, w,
                                          most)
            public = type(penalty).__name__, n_penalized, <int>rule, w
            choice = GreedyChoices(self._units.eta, scores_of, public, size)
            drawn = np.array([[2 * chosen[k] + (directions[k] > 0) for k in range(size)]])
            found = self._tape.release(self._exact(sums, self._n_coordinates),
                                       self._asked(question, self._n_coordinates, NULL), choice,
                                       drawn)
            for k in range(size):
                chosen[k], directions[k] = found[0, k] // 2, 2 * (found[0, k] % 2) - 1
        except Exception:
            self._noise.failed = True
            return False
        return True

    def _scores_on_tape(self, Penalty penalty, Py_ssize_t n_penalized, int rule,
                        const double[::1] w, double most, const int64_t[::1] exact):
        """Scores of moves down and up of all coordinates, in scales of the noise."""
        cdef Py_ssize_t j
        cdef double[:, ::1] scores = np.empty((self._n_coordinates, 2))
        for j in range(self._n_coordinates):
            if not self._score(penalty, j % self._units.width < n_penalized, <Rule>rule, w[j],
                               most, j, <double>exact[j], &scores[j, 0]):
                raise ValueError("the public part of a score exceeds what is proved")
        return np.asarray(scores)

    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil:
        if not 0 <= j < self._n_coordinates or not self._spend(&self._gaussians):
            return REFUSED
        cdef Question question = self._units.question(&j, 1, False)
        if not self._release(&question, 1, &self._gaussians):
            return REFUSED
        partial[0] = self._mean(0, sqrt(self._smoothness[j]), &question, self._units.n_normalizer)
        return RELEASED

    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(size):  # the kernels count on ascending coordinates, the intercept last
            if not (block[k - 1] if k else -1) < block[k] < self._n_coordinates:
                return REFUSED
        if size < 1 or not self._spend(&self._gaussians):
            return REFUSED
        cdef Question question = self._units.question(
            block if size < self._n_coordinates else NULL, size, True)
        if not self._release(&question, size, &self._gaussians):
            return REFUSED
        for k in range(size):
            gradient[k] = self._mean(k, sqrt(self._smoothness[block[k]]), &question,
                                     self._units.n_normalizer)
        return RELEASED

    cdef int release_argmax(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                            int *directions) noexcept nogil:
        cdef Question question = self._units.question(NULL, self._n_coordinates, False)
        cdef const double *sums
        cdef double most = self._units.most_public_score(size)
        cdef int status
        if not 1 <= size <= self._n_coordinates:
            return REFUSED
        if not self._noiseless:
            if self._selections_left < size or self._noise.failed:
                return REFUSED
            self._selections_left -= size
        sums = self._ask(&question)
        if sums == NULL:
            return REFUSED
        if self._lazy is not None and is_worth_it(size):
            status = self._choose_lazily(penalty, n_penalized, rule, coef, most, sums, size,
                                         chosen, directions)
        else:
            status = self._choose(penalty, n_penalized, rule, coef, most, sums, size, chosen,
                                  directions)
        if status == RELEASED and self._tape is not None and not self._choose_on_tape(
                penalty, n_penalized, rule, coef, most, &question, sums, size, chosen,
                directions):
            return REFUSED
        return status

    cdef int _choose(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                     const double *coef, double most, const double *sums, Py_ssize_t size,
                     Py_ssize_t *chosen, int *directions) noexcept nogil:
        """Choices by a random word for each move."""
        cdef Py_ssize_t j, n_chosen = 0
        cdef int sign, direction
        cdef double key, least
        cdef double[2 * DRAWN] noise
        cdef double[2] scores
        for j in range(self._n_coordinates):
            if j % DRAWN == 0 and not self._noiseless:
                self._noise.log_exponentials_into(2 * min(<Py_ssize_t>DRAWN,
                                                          self._n_coordinates - j), noise)
            if not self._score(penalty, j % self._units.width < n_penalized, rule, coef[j], most, j,
                               sums[j], scores):
                return REFUSED
            least = INFINITY
            for sign in range(-1, 2, 2):
                if scores[sign > 0] == -INFINITY:
                    continue
                key = -scores[sign > 0]
                if not self._noiseless:
                    key += noise[2 * (j % DRAWN) + (sign > 0)]
                if key < least:
                    least, direction = key, sign
            if least < INFINITY:
                n_chosen = _insert(least, j, direction, n_chosen, size, &self._keys[0], chosen,
                                   directions)
        return REFUSED if self._noise.failed or n_chosen < size else RELEASED

    cdef int _choose_lazily(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, double most, const double *sums,
                            Py_ssize_t size, Py_ssize_t *chosen, int *directions) noexcept nogil:
        """The same choices by fewer random words (proofs/lazy_argmax.md)."""
        cdef Py_ssize_t j
        self._lazy.begin(penalty, n_penalized, rule, size)
        for j in range(self._n_coordinates):
            if self._lazy.knows(j, sums[j], coef[j]):
                continue
            if not self._score(penalty, j % self._units.width < n_penalized, rule, coef[j], most, j,
                               sums[j], self._lazy.scores + 2 * j):
                self._lazy.forget(j)
                return REFUSED
            self._lazy.learn(j, sums[j], coef[j])
        if self._noise.failed or not self._lazy.choose(self._noise, size, chosen, directions):
            return REFUSED
        return RELEASED

    cdef bint _score(self, Penalty penalty, bint penalised, Rule rule, double w, double most,
                     Py_ssize_t j, double total, double *scores) noexcept nogil:
        """Scores of moves down and up, in scales of the noise; -infinity is no candidate.

        False when the public part of a score exceeds `most`, which is a public fact.
        """
        cdef double score, known, root = sqrt(self._smoothness[j])
        cdef double gradient = self._mean_gradient(total, j)
        cdef int sign
        for sign in range(-1, 2, 2):
            if not penalised:
                score = -sign * gradient / root
            else:
                score = penalty.signed_score(rule, j % self._units.width, w, gradient,
                                             self._smoothness[j], sign)
                known = (fabs(penalty.signed_score(rule, j % self._units.width, w, 0.0,
                                                   self._smoothness[j], sign))
                         + fabs(w) * root)
                if not (score == -INFINITY or self._noiseless or known < most):
                    return False
            if not self._noiseless:
                score = self._in_noise_scales(score)
            scores[sign > 0] = score
        return True

    cdef double _mean_gradient(self, double total, Py_ssize_t j) noexcept nogil:
        """Mean gradient of a score, cut to what n records can make it: it has a public bound."""
        if self._noiseless:
            return total / self._units.n_normalizer
        cdef double limit = self._units.limit(1), most = limit * self._units.n_normalizer
        cdef double unit = self._units.coordinate_clip * sqrt(self._smoothness[j]) / limit
        return min(max(total, -most), most) * unit / self._units.n_normalizer

    cdef double _in_noise_scales(self, double score) noexcept nogil:
        """A score, rounded to whole units, over the scale of its Gumbel noise."""
        cdef double units = rint(score * (STEPS / self._units.score_sensitivity()))
        return units * (1 / self._units.units_per_noise)

    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil:
        cdef Py_ssize_t k
        if not self._sums.move(block, size, step):
            self._noise.failed = True
        if self._tape is not None:
            with gil:
                for k in range(size):
                    self._iterate[block[k]] += step[k]


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


cdef class BatchOracle(PaidOracle):
    """Oracle over records at stated iterates.

    Parameters
    ----------
    receipt, place, fit_intercept, key : as of PaidOracle
    units : MeanUnits
        Norms are in the geometry of M^(-1/2), those of products euclidean.
    loss : Loss
    """

    cdef MeanUnits _units
    cdef Paid _full, _sampled
    cdef const double[::1] _roots
    cdef Py_ssize_t[::1] _rows

    def __init__(self, receipt, MeanUnits units, Place place, *, Loss loss,
                 bint fit_intercept=True, key=None):
        super().__init__(receipt, units, place, fit_intercept, key)
        self._units, self._full, self._sampled = units, units.full, units.sampled
        self._roots = np.sqrt(units.smoothness)
        self._noisy = np.empty(units.n_outputs * units.n_coordinates)
        self._rows = np.empty(units.n_samples if units.threshold else 0, dtype=np.intp)
        self._sums = place.stated(loss, units.smoothness, fit_intercept=fit_intercept,
                                  n_outputs=units.n_outputs)

    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil:
        cdef Paid *paid = &self._sampled if sampled else &self._full
        cdef Py_ssize_t k, size
        cdef double root, n_normalizer
        if self._sums is None:
            return REFUSED
        size = n_directions if directions != NULL else self._units.n_coordinates
        if not 1 <= size <= self._units.n_coordinates or not self._spend(paid):
            return REFUSED
        cdef Question question = self._units.question(sampled, coef, anchor, directions,
                                                      n_directions)
        if sampled and self._units.threshold:
            self._draw(&question)
        if not self._release(&question, self._units.n_outputs * size, paid):
            return REFUSED
        n_normalizer = self._units.n_normalizer * (self._units.rate if sampled else 1.0)
        for k in range(self._units.n_outputs * size):
            root = self._roots[k % size] if directions == NULL else 1.0
            mean[k] = self._mean(k, root, &question, n_normalizer)
        return RELEASED

    cdef object _asked(self, const Question *question, Py_ssize_t size, const Paid *paid):
        cdef Py_ssize_t k, n = self._units.n_coordinates, of_iterate = self._units.n_outputs * n
        iterate = np.array([question.coef[k] for k in range(of_iterate)])
        anchor = directions = None
        if question.anchor != NULL:
            anchor = np.array([question.anchor[k] for k in range(of_iterate)])
        if question.directions != NULL:
            directions = np.array(
                [question.directions[k] for k in range(question.n_directions * n)])
        return GradientSums(None, True, paid == &self._sampled, question.clip, question.limit,
                            iterate, anchor, directions)

    cdef void _draw(self, Question *question) noexcept nogil:
        """Each record is in the sample with the rate that was paid for, or a little less."""
        cdef Py_ssize_t i, n_rows = 0
        if self._tape is not None:
            with gil:
                for i in self._tape.members(self._units.n_samples, self._units.threshold):
                    self._rows[n_rows] = i
                    n_rows += 1
            question.rows, question.n_rows = &self._rows[0], n_rows
            return
        for i in range(self._units.n_samples):
            self._rows[n_rows] = i
            n_rows += self._noise.word() < self._units.threshold
        question.rows, question.n_rows = &self._rows[0], n_rows
