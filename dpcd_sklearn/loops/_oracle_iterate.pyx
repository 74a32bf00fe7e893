"""An iterate that an oracle follows step by step, so that records are read once a release."""

import numpy as np

from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport Iterate

from ._problem import refused


cdef class OracleIterate(Iterate):
    """Keep an oracle informed of every move."""

    def __init__(self, SolverOracle oracle, problem):
        super().__init__(problem)
        self.oracle = oracle
        if self.coef.any():  # the oracle starts from zero
            start = self.coef.copy()
            self.coef[:] = 0.0
            self.move_to(start)

    def move_to(self, coef):
        cdef Py_ssize_t[::1] everything = np.arange(len(coef), dtype=np.intp)
        cdef double[::1] step = coef - self.coef
        self.coef[:] = coef
        self.oracle.apply_step(&everything[0], everything.shape[0], &step[0])


def partials(SolverOracle oracle, const double[:, ::1] points, const Py_ssize_t[::1] coordinates):
    """Released derivatives at several public points, in their order, of a coordinate each.

    Parameters
    ----------
    oracle : SolverOracle
        At zero.
    points : ndarray of shape (n_points, n_coordinates)
    coordinates : ndarray of shape (n_points,), intp

    Returns
    -------
    ndarray of shape (n_points,)

    Raises
    ------
    RuntimeError
        If fewer of them were paid for.
    """
    cdef Py_ssize_t k
    cdef Py_ssize_t[::1] everything = np.arange(points.shape[1], dtype=np.intp)
    cdef double[:, ::1] steps = np.diff(points, axis=0, prepend=0.0)
    cdef double[::1] found = np.empty(points.shape[0])
    for k in range(points.shape[0]):
        oracle.apply_step(&everything[0], everything.shape[0], &steps[k, 0])
        if oracle.release_partial(coordinates[k], &found[k]) < 0:
            raise refused()
    return np.asarray(found)
