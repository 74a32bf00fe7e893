"""Differentially private Frank–Wolfe on an l1 ball (Talwar, Thakurta & Zhang 2015).

    j, sign <- noisy argmax of the 2p signed partial derivatives
    w <- (1 - γ_t) w + γ_t radius sign e_j,  γ_t = 2 / (t + 2)

A vertex is all that a step needs: nothing but the choices is released.
"""

import numpy as np

from ..penalties._penalty cimport Rule
from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport OracleIterate

from ._problem import refused


def solve(SolverOracle oracle, problem, sampling=None, generator=None):
    """Run DP Frank–Wolfe.

    Parameters
    ----------
    oracle : SolverOracle
    problem : Problem
        Its constraint is an l1 ball of all coordinates, there is no penalty, and the smoothness is
        the same for all coordinates.

    Returns
    -------
    Solution
    """
    return _Path(oracle, problem).run(100 if problem.tol else problem.n_updates)


cdef class _Path(OracleIterate):

    cdef Py_ssize_t[::1] _everything
    cdef double[::1] _moves
    cdef double _radius

    def __init__(self, oracle, problem):
        super().__init__(oracle, problem)
        self._everything = np.arange(self.n_coordinates, dtype=np.intp)
        self._moves = np.empty(self.n_coordinates)
        self._radius = problem.constraint.radius

    def advance(self, count):
        cdef Py_ssize_t _t, k, j, n_updates = count
        cdef double gamma, w
        cdef int direction
        cdef bint paid = True
        with nogil:
            for _t in range(n_updates):
                # 1. the vertex that promises most
                if self.oracle.release_argmax(self._penalty, self._n_penalized, Rule.GS_S,
                                              &self.w[0], 1, &j, &direction) < 0:
                    paid = False
                    break
                # 2. a step towards it
                gamma = 2.0 / (self.t + 2.0)
                for k in range(self.n_coordinates):
                    w = (1.0 - gamma) * self.w[k]
                    if k == j:
                        w += gamma * self._radius * direction
                    self._moves[k] = w - self.w[k]
                    self.set(k, w)
                self.oracle.apply_step(&self._everything[0], self.n_coordinates, &self._moves[0])
                self.tick()
        if not paid:
            raise refused()
