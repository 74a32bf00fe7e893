"""Oracles that keep what another one releases, for audits.

A recorder stands between an oracle and a solver. It sees what the solver sees, released numbers
and public steps, so what it keeps is post-processing: it costs nothing and holds no record. Its
stand (``_released_answers``) says which releases are drawn, keeps what was, and tells what the
solver hears.
"""

import numpy as np

from ..penalties._penalty cimport Penalty, Rule
from ..privacy.mechanisms._batch_oracle cimport IterateOracle
from ..privacy.mechanisms._oracle cimport Oracle


cdef object _copy(const double *values, Py_ssize_t size):
    return np.array(<const double[:size]>values)


cdef class RecordingOracle(Oracle):
    """Records the releases of an oracle of coordinates.

    Parameters
    ----------
    oracle : Oracle
    n_coordinates : int
        Number of coordinates of all outputs.
    stand : object with ``draws`` and ``keep``
    """

    cdef Oracle _oracle
    cdef object _iterate, _stand
    cdef double[::1] _w, _behind

    def __init__(self, Oracle oracle, Py_ssize_t n_coordinates, stand):
        self._oracle, self._iterate, self._stand = oracle, np.zeros(n_coordinates), stand
        self._w, self._behind = self._iterate, np.zeros(n_coordinates)

    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil:
        return self._sum(&j, 1, partial, True)

    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil:
        return self._sum(block, size, gradient, False)

    cdef int release_argmax(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                            int *directions) noexcept nogil:
        return self._choice(penalty, n_penalized, rule, coef, size, chosen, directions)

    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(size):
            self._w[block[k]] += step[k]
            self._behind[block[k]] += step[k]  # what draws nothing need not know where it is

    cdef void _catch_up(self) noexcept:
        """Let the oracle know of all steps since its latest draw."""
        cdef const Py_ssize_t[::1] block = np.flatnonzero(self._behind)
        cdef const double[::1] step = np.asarray(self._behind)[block]
        if block.shape[0] > 0:
            self._oracle.apply_step(&block[0], block.shape[0], &step[0])
            self._behind[:] = 0.0

    cdef int _sum(self, const Py_ssize_t *block, Py_ssize_t size, double *values,
                  bint partial) noexcept with gil:
        cdef Py_ssize_t k
        cdef int status = 0
        cdef object name = "release_partial" if partial else "release_gradient", mine = None, heard
        try:
            if self._stand.draws(name):
                self._catch_up()
                if partial:
                    status = self._oracle.release_partial(block[0], values)
                else:
                    status = self._oracle.release_gradient(block, size, values)
                if status < 0:
                    return status
                mine = _copy(values, size)
            heard = self._stand.keep(name, mine)
            for k in range(size):
                values[k] = heard[k]
        except Exception:  # the solver is told of a refusal
            return -1
        return status

    cdef int _choice(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                     const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                     int *directions) noexcept with gil:
        cdef Py_ssize_t k
        cdef int status = 0
        cdef object name = "release_argmax", mine = None, heard, iterate
        try:
            if self._stand.draws(name):
                self._catch_up()
                status = self._oracle.release_argmax(penalty, n_penalized, rule, coef, size,
                                                     chosen, directions)
                if status < 0:
                    return status
                mine = ([chosen[k] for k in range(size)], [directions[k] for k in range(size)])
            iterate = np.array(self._iterate)
            heard = self._stand.keep(name, mine, size, ((penalty, n_penalized, rule), iterate))
            for k in range(size):
                chosen[k], directions[k] = heard[0][k], heard[1][k]
        except Exception:
            return -1
        return status


cdef class RecordingIterateOracle(IterateOracle):
    """Records the releases of an oracle of mean gradients.

    Parameters
    ----------
    oracle : IterateOracle
    n_outputs, n_coordinates : int
    stand : as of RecordingOracle
    """

    cdef IterateOracle _oracle
    cdef object _stand
    cdef Py_ssize_t _n_outputs, _n_coordinates

    def __init__(self, IterateOracle oracle, Py_ssize_t n_outputs, Py_ssize_t n_coordinates,
                 stand):
        self._oracle, self._n_outputs, self._n_coordinates = oracle, n_outputs, n_coordinates
        self._stand = stand

    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil:
        return self._mean(sampled, coef, anchor, directions, n_directions, mean)

    cdef int _mean(self, bint sampled, const double *coef, const double *anchor,
                   const double *directions, Py_ssize_t n_directions,
                   double *mean) noexcept with gil:
        cdef Py_ssize_t k, size = self._n_outputs
        cdef int status = 0
        cdef object name = "release_sample" if sampled else "release_mean", mine = None, heard
        cdef object step = None  # from the anchor: which way differences pull
        if anchor != NULL:
            step = _copy(coef, size * self._n_coordinates)
            step -= _copy(anchor, size * self._n_coordinates)
        size *= self._n_coordinates if directions == NULL else n_directions
        try:
            if self._stand.draws(name):
                status = self._oracle.release_mean(sampled, coef, anchor, directions,
                                                   n_directions, mean)
                if status < 0:
                    return status
                mine = _copy(mean, size)
            heard = self._stand.keep(name, mine, asked=step)
            for k in range(size):
                mean[k] = heard[k]
        except Exception:  # the solver is told of a refusal
            return -1
        return status
