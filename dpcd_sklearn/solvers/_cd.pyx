"""Differentially private proximal coordinate descent (Alg. 1 of Mangold et al. 2022).

    w_j <- prox_{γ/M_j ψ_j}(w_j - γ/M_j (∇_j f(w) + noise)),  j drawn at random

The oracle adds the noise; everything here is post-processing of what it released. With
averaging="periodic" every K updates are an inner loop, and the next one starts from their mean.
"""

from ..privacy.mechanisms._oracle cimport Oracle
from ._oracle_iterate cimport OracleIterate

from ._problem import refused

cdef Py_ssize_t CHUNK = 1 << 16


def solve(Oracle oracle, problem, sampling, generator):
    """Run DP-CD.

    Parameters
    ----------
    oracle : Oracle
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

    def __init__(self, oracle, problem, sampling, generator):
        super().__init__(oracle, problem)
        self._sampling, self._generator = sampling, generator

    def advance(self, count):
        cdef Py_ssize_t[:, :] coordinates = self._sampling.draw(self._generator, count)
        cdef Py_ssize_t t, j
        cdef double partial, w, move
        cdef bint paid = True
        with nogil:
            for t in range(coordinates.shape[0]):
                j = coordinates[t, 0]
                # 1. a noisy partial derivative
                if self.oracle.release_partial(j, &partial) < 0:
                    paid = False
                    break
                # 2. a proximal step along it
                w = self.moved(j, partial, self._step_size)
                move = w - self.w[j]
                self.set(j, w)
                self.oracle.apply_step(&j, 1, &move)
                self.tick()
        if not paid:
            raise refused()
