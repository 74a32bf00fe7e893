"""Differentially private proximal coordinate descent (Alg. 1 of Mangold et al. 2022).

    w_j <- prox_{γ/M_j ψ_j}(w_j - γ/M_j (∇_j f(w) + noise)),  j drawn at random

The oracle adds the noise; everything here is post-processing of what it released. With
averaging="periodic" every K updates are an inner loop, and the next one starts from their mean.

Of several outputs (classes) coordinate j is the vector of all their w_kj: it is released at once,
clipped by one norm, and moves at once.
"""

import numpy as np

from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport OracleIterate

from ._problem import refused

cdef Py_ssize_t CHUNK = 1 << 16


def solve(SolverOracle oracle, problem, sampling, generator):
    """Run DP-CD.

    Parameters
    ----------
    oracle : SolverOracle
    problem : Problem
    sampling : SingleSampling
    generator : numpy.random.Generator
        Draws the coordinates, which are public.

    Returns
    -------
    Solution
    """
    # Without noise a chunk is a sweep that touches nearly every coordinate, to test convergence.
    sweep = min(CHUNK, 4 * problem.n_coordinates + 16) if problem.tol else CHUNK
    return _Path(oracle, problem, sampling, generator).run(sweep)


cdef class _Path(OracleIterate):

    cdef object _sampling, _generator
    cdef Py_ssize_t _n_outputs
    cdef Py_ssize_t[::1] _block
    cdef double[::1] _gradient, _moves

    def __init__(self, oracle, problem, sampling, generator):
        super().__init__(oracle, problem)
        self._sampling, self._generator = sampling, generator
        self._n_outputs = problem.n_outputs
        self._block = np.empty(problem.n_outputs, dtype=np.intp)
        self._gradient, self._moves = np.empty(problem.n_outputs), np.empty(problem.n_outputs)

    def advance(self, count):
        cdef Py_ssize_t[:, :] coordinates = self._sampling.draw(self._generator, count)
        cdef Py_ssize_t t, k, c, K = self._n_outputs
        cdef double w
        cdef int status
        cdef bint paid = True
        with nogil:
            for t in range(coordinates.shape[0]):
                for k in range(K):
                    self._block[k] = k * self.n_coordinates + coordinates[t, 0]
                # 1. a noisy partial derivative, or those of all outputs
                if K == 1:
                    status = self.oracle.release_partial(self._block[0], &self._gradient[0])
                else:
                    status = self.oracle.release_gradient(&self._block[0], K, &self._gradient[0])
                if status < 0:
                    paid = False
                    break
                # 2. a proximal step along it
                for k in range(K):
                    c = self._block[k]
                    w = self.moved(c, self._gradient[k], self._step_size)
                    self._moves[k] = w - self.w[c]
                    self.set(c, w)
                self.oracle.apply_step(&self._block[0], K, &self._moves[0])
                self.tick()
        if not paid:
            raise refused()
