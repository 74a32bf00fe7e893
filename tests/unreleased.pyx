"""Numbers that never leave a mechanism, for tests and benchmarks: noiseless sums, draws, states.

Built in place only (``setup.py``), so that no wheel carries it. Questions are those that the
mechanisms ask (``CoordinateUnits.question``, ``MeanUnits.question``).
"""

import numpy as np

from dpcd_sklearn.losses._loss cimport Loss
from dpcd_sklearn.privacy.mechanisms._lazy_choice cimport LazyChoice
from dpcd_sklearn.privacy.mechanisms._oracle cimport SolverOracle
from dpcd_sklearn.privacy.mechanisms._units cimport CoordinateUnits, MeanUnits
from dpcd_sklearn.privacy.noise._noise cimport NoiseSource
from dpcd_sklearn.privacy.sums._sums cimport Place, Question, Sums, question_of


cdef object answer_of(Sums sums, const Question *question, Py_ssize_t size):
    cdef const double *found = sums.answer(question)
    if found == NULL:
        raise MemoryError
    return np.array(<const double[:size]>found)


def move(Sums sums, block, step):
    """The iterate moves by step[b] in coordinate block[b]; a step of all has all of them."""
    cdef Py_ssize_t[::1] columns = np.array(block, dtype=np.intp)
    cdef double[::1] moved = np.array(step, dtype=np.float64)
    if not sums.move(&columns[0], columns.shape[0], &moved[0]):
        raise MemoryError


def answers(Sums sums, block=None, *, bint joint, double clip, double limit, coef=None):
    """The sums of a block (None: all coordinates) of a LocalPlace's, at `coef` if it is stated."""
    size = sums.n_outputs * sums.n_coordinates if block is None else len(block)
    cdef Py_ssize_t[::1] columns = np.array(range(1) if block is None else block, dtype=np.intp)
    cdef const double[::1] stated
    cdef Question question = question_of(NULL if block is None else &columns[0], size, joint,
                                         clip, limit)
    if coef is not None:
        stated = np.array(coef, dtype=np.float64)
        question.coef = &stated[0]
    return answer_of(sums, &question, size)


cdef class MovingSums:
    """The sums that a RecordOracle would add noise to: of blocks, at an iterate that moves."""

    cdef Sums _sums
    cdef CoordinateUnits _units

    def __init__(self, CoordinateUnits units, Place place, *, Loss loss, bint fit_intercept=True):
        self._units = units
        self._sums = place.moving(loss, units.smoothness, fit_intercept=fit_intercept,
                                  n_outputs=units.n_outputs)

    def of(self, block, step=None, *, bint joint):
        """The sums of a block after a step of all coordinates, and their limit."""
        cdef Py_ssize_t[::1] columns = np.array(block, dtype=np.intp)
        cdef Py_ssize_t size = columns.shape[0], n = self._units.n_coordinates
        if step is not None:
            move(self._sums, range(n), step)
        cdef Question question = self._units.question(
            &columns[0] if size < n else NULL, size, joint)
        return answer_of(self._sums, &question, size), question.limit


cdef class StatedSums:
    """The sums that a BatchOracle would add noise to: of all records, at stated iterates."""

    cdef Sums _sums
    cdef MeanUnits _units

    def __init__(self, MeanUnits units, Place place, *, Loss loss, bint fit_intercept=True):
        self._units = units
        self._sums = place.stated(loss, units.smoothness, fit_intercept=fit_intercept,
                                  n_outputs=units.n_outputs)

    def of(self, coef, anchor=None, directions=None, *, bint sampled=False):
        """The sums of each output, and their limit: that of a sample, though all are in it."""
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
        cdef Question question = self._units.question(sampled, &w[0, 0], at, along, m)
        size = m or self._units.n_coordinates
        answer = answer_of(self._sums, &question, self._units.n_outputs * size)
        return answer.reshape(-1, size), question.limit


def released_mean(SolverOracle oracle, coef, *, bint sampled):
    """One release of an oracle of one output, as a solver sees it."""
    cdef const double[::1] w = np.array(coef, dtype=float)
    cdef double[::1] mean = np.empty(w.shape[0])
    if oracle.release_mean(sampled, &w[0], NULL, NULL, 0, &mean[0]) < 0:
        raise RuntimeError("the oracle refused a release")
    return np.asarray(mean)


def choices(LazyChoice choice, scores, Py_ssize_t size, NoiseSource noise, Py_ssize_t n_draws):
    """`n_draws` times `size` choices: candidates 2 j + (sign > 0), or None if there are few."""
    cdef double[::1] given = np.array(scores, dtype=np.float64)
    cdef Py_ssize_t[::1] chosen = np.empty(size, dtype=np.intp)
    cdef int[::1] directions = np.empty(size, dtype=np.intc)
    if given.shape[0] != choice._n:
        raise ValueError(f"expected {choice._n} scores, got {given.shape[0]}")
    choice._scores[:] = given
    drawn = np.empty((n_draws, size), dtype=np.intp)
    cdef Py_ssize_t[:, ::1] view = drawn
    cdef Py_ssize_t i, k, j
    for i in range(n_draws):
        if not choice.choose(noise, size, &chosen[0], &directions[0]):
            return None
        for k in range(size):
            j = chosen[k]
            view[i, k] = 2 * j + (directions[k] > 0)
            # what was taken out
            choice._scores[2 * j], choice._scores[2 * j + 1] = given[2 * j], given[2 * j + 1]
    return drawn


def go_on_with(NoiseSource source, words):
    """Make a stream go on with these words, to reach what is undecided once in 2^50 draws."""
    cdef int n_words = sizeof(source._buffer) // sizeof(source._buffer[0])
    if len(words) > n_words:
        raise ValueError(f"at most {n_words} words fit into the buffer")
    source._used = n_words - len(words)
    for i, word in enumerate(words):
        source._buffer[source._used + i] = word
    return source
