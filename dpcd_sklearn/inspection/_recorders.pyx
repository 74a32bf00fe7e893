"""Oracles that keep what another one releases: the transcript of a fit, for audits.

A recorder stands between an oracle and a solver. It sees what the solver sees, released numbers
and public steps, so a transcript is post-processing: it costs nothing and holds no record.

With a `stand` (``_tape``) a fit follows another one: the stand says which releases are drawn, keeps
what was, and tells what the solver hears in their place.
"""

import numpy as np
from cpython.bytes cimport PyBytes_FromStringAndSize

from ..penalties._penalty cimport Penalty, Rule
from ..privacy.mechanisms._batch_oracle cimport IterateOracle
from ..privacy.mechanisms._oracle cimport Oracle


cdef bytes _doubles(const double *values, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char *>values, size * sizeof(double))


cdef bytes _indices(const Py_ssize_t *values, Py_ssize_t size):
    return PyBytes_FromStringAndSize(<const char *>values, size * sizeof(Py_ssize_t))


def _stacked(parts, dtype=np.float64):
    return np.frombuffer(b"".join(parts), dtype=dtype)


cdef class RecordingOracle(Oracle):
    """Records the releases of an oracle of coordinates.

    Parameters
    ----------
    oracle : Oracle
    n_coordinates : int
        Number of coordinates of all outputs.
    stand : object with ``draws`` and ``keep``, default=None
    """

    cdef Oracle _oracle
    cdef object _iterate, _penalty, _stand
    cdef double[::1] _w, _behind
    cdef Py_ssize_t _n_penalized
    cdef Rule _rule
    cdef list _of_sums, _blocks, _values, _of_choices, _chosen, _directions

    def __init__(self, Oracle oracle, Py_ssize_t n_coordinates, stand=None):
        self._oracle, self._iterate, self._stand = oracle, np.zeros(n_coordinates), stand
        self._w, self._behind = self._iterate, np.zeros(n_coordinates)
        self._of_sums, self._blocks, self._values = [], [], []
        self._of_choices, self._chosen, self._directions = [], [], []

    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil:
        cdef int status
        if self._stand is not None:
            return self._follow_sum(&j, 1, partial, True)
        status = self._oracle.release_partial(j, partial)
        if status >= 0:
            with gil:
                self._keep_sum(&j, 1, partial)
        return status

    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil:
        cdef int status
        if self._stand is not None:
            return self._follow_sum(block, size, gradient, False)
        status = self._oracle.release_gradient(block, size, gradient)
        if status >= 0:
            with gil:
                self._keep_sum(block, size, gradient)
        return status

    cdef int release_argmax(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                            int *directions) noexcept nogil:
        cdef int status
        if self._stand is not None:
            return self._follow_choice(penalty, n_penalized, rule, coef, size, chosen, directions)
        status = self._oracle.release_argmax(penalty, n_penalized, rule, coef, size, chosen,
                                             directions)
        if status >= 0:
            with gil:
                self._penalty, self._n_penalized, self._rule = penalty, n_penalized, rule
                self._of_choices.append(_doubles(&self._w[0], self._w.shape[0]))
                self._chosen.append([chosen[k] for k in range(size)])
                self._directions.append([directions[k] for k in range(size)])
        return status

    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(size):
            self._w[block[k]] += step[k]
        if self._stand is None:
            self._oracle.apply_step(block, size, step)
            return
        for k in range(size):  # what draws nothing need not know where the solver is
            self._behind[block[k]] += step[k]

    cdef void _catch_up(self) noexcept:
        """Let the oracle know of all steps since its latest draw."""
        cdef const Py_ssize_t[::1] block = np.flatnonzero(self._behind)
        cdef const double[::1] step = np.asarray(self._behind)[block]
        if block.shape[0] > 0:
            self._oracle.apply_step(&block[0], block.shape[0], &step[0])
            self._behind[:] = 0.0

    cdef int _follow_sum(self, const Py_ssize_t *block, Py_ssize_t size, double *values,
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
                mine = _stacked([_doubles(values, size)])
            heard = self._stand.keep(name, mine)
            for k in range(size):
                values[k] = heard[k]
        except Exception:  # the solver is told of a refusal
            return -1
        return status

    cdef int _follow_choice(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
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

    cdef _keep_sum(self, const Py_ssize_t *block, Py_ssize_t size, const double *values):
        self._of_sums.append(_doubles(&self._w[0], self._w.shape[0]))
        self._blocks.append(_indices(block, size))
        self._values.append(_doubles(values, size))

    # ---- the transcript ----

    def sums(self):
        """Iterates, blocks and values of all noisy sums.

        Returns
        -------
        iterates, in_block, values : ndarrays of shape (n_releases, n_coordinates)
            A value outside of its release's block is zero.
        """
        p = self._w.shape[0]
        iterates = _stacked(self._of_sums).reshape(-1, p)
        in_block, values = np.zeros(iterates.shape), np.zeros(iterates.shape)
        sizes = [len(block) // sizeof(Py_ssize_t) for block in self._blocks]
        rows, columns = np.repeat(np.arange(len(sizes)), sizes), _stacked(self._blocks, np.intp)
        in_block[rows, columns] = 1.0
        values[rows, columns] = _stacked(self._values)
        return iterates, in_block, values

    def choices(self):
        """All noisy choices: (penalty, n_penalized, rule), iterates, coordinates and directions.

        Returns
        -------
        problem : tuple
        iterates : ndarray of shape (n_choices, n_coordinates)
        chosen, directions : lists of n_choices lists
            In the order of the noisy scores.
        """
        iterates = _stacked(self._of_choices).reshape(-1, self._w.shape[0])
        return (self._penalty, self._n_penalized, self._rule), iterates, self._chosen, \
            self._directions


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
    cdef list _kinds

    def __init__(self, IterateOracle oracle, Py_ssize_t n_outputs, Py_ssize_t n_coordinates,
                 stand=None):
        self._oracle, self._n_outputs, self._n_coordinates = oracle, n_outputs, n_coordinates
        self._stand = stand
        self._kinds = [([], [], [], []), ([], [], [], [])]

    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil:
        cdef Py_ssize_t size = self._n_outputs * self._n_coordinates
        cdef int status
        if self._stand is not None:
            return self._follow(sampled, coef, anchor, directions, n_directions, mean)
        status = self._oracle.release_mean(sampled, coef, anchor, directions, n_directions, mean)
        if status >= 0:
            with gil:
                iterates, anchors, projections, values = self._kinds[sampled]
                iterates.append(_doubles(coef, size))
                if anchor != NULL:
                    anchors.append(_doubles(anchor, size))
                if directions != NULL:
                    projections.append(_doubles(directions, n_directions * self._n_coordinates))
                    size = self._n_outputs * n_directions
                values.append(_doubles(mean, size))
        return status

    cdef int _follow(self, bint sampled, const double *coef, const double *anchor,
                     const double *directions, Py_ssize_t n_directions,
                     double *mean) noexcept with gil:
        cdef Py_ssize_t k, size = self._n_outputs
        cdef int status = 0
        cdef object name = "release_sample" if sampled else "release_mean", mine = None, heard
        cdef object step = None  # from the anchor: which way differences pull
        if anchor != NULL:
            step = _stacked([_doubles(coef, size * self._n_coordinates)])
            step = step - _stacked([_doubles(anchor, size * self._n_coordinates)])
        size *= self._n_coordinates if directions == NULL else n_directions
        try:
            if self._stand.draws(name):
                status = self._oracle.release_mean(sampled, coef, anchor, directions,
                                                   n_directions, mean)
                if status < 0:
                    return status
                mine = _stacked([_doubles(mean, size)])
            heard = self._stand.keep(name, mine, asked=step)
            for k in range(size):
                mean[k] = heard[k]
        except Exception:  # the solver is told of a refusal
            return -1
        return status

    def means(self, bint sampled):
        """The noisy means over all records, or over samples.

        Returns
        -------
        iterates : ndarray of shape (n_releases, n_outputs, n_coordinates)
        anchors : the same, or None
        directions : ndarray of shape (n_releases, n_directions, n_coordinates), or None
        values : ndarray of shape (n_releases, n_outputs, n_directions or n_coordinates)
        """
        iterates, anchors, projections, values = self._kinds[sampled]
        K, p, T = self._n_outputs, self._n_coordinates, len(iterates)
        return (
            _stacked(iterates).reshape(T, K, p),
            _stacked(anchors).reshape(T, K, p) if anchors else None,
            _stacked(projections).reshape(T, -1, p) if projections else None,
            _stacked(values).reshape(T, K, -1) if T else np.zeros((0, K, p)),
        )
