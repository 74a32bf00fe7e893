"""Differentially private sketched gradient descent (Alg. 1 of Maranjyan, Sadiev & Richtárik 2024).

    w <- w - Γ C_S (∇f(w) + noise),  Γ = γ P M⁻¹,  C_S = I_S P⁻¹,  S drawn at random

so that coordinate j of a drawn block moves with the step γ / M_j whatever its probability, divided
by the block's curvature, which makes it safe. The penalty acts by its proximal operator, and
momentum is a normalised heavy ball. Of several outputs (classes) a block is its coordinates in all
of them, clipped by one norm.
"""

import numpy as np

from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport OracleIterate

from ._problem import refused

cdef Py_ssize_t CHUNK = 1 << 12


def solve(SolverOracle oracle, problem, sampling, generator):
    """Run DP-SkGD.

    Parameters
    ----------
    oracle : SolverOracle
    problem : Problem
    sampling : Sampling, or an object with its face
    generator : numpy.random.Generator
        Draws the blocks, which are public.

    Returns
    -------
    Solution
    """
    # Without noise a chunk is a test of convergence: long enough to see that blocks move slowly.
    n_blocks = -(-problem.n_coordinates // sampling.block_size)
    chunk = (20 if n_blocks == 1 else 100 * n_blocks) if problem.tol else CHUNK
    return _Path(oracle, problem, sampling, generator).run(chunk)


cdef class _Path(OracleIterate):
    """The iterate and its velocity."""

    cdef object _sampling, _generator
    cdef double[::1] _velocity, _gradient, _move
    cdef double _momentum
    cdef object _first_of_outputs

    def __init__(self, oracle, problem, sampling, generator):
        super().__init__(oracle, problem)
        self._sampling, self._generator = sampling, generator
        size, p = len(self.coef), problem.n_coordinates
        self._velocity, self._gradient, self._move = np.zeros(size), np.empty(size), np.empty(size)
        self._momentum = problem.momentum
        self._first_of_outputs = np.arange(0, size, p, dtype=np.intp)[:, np.newaxis]

    def advance(self, count):
        for block in self._sampling.draw(self._generator, count):
            if len(self._first_of_outputs) > 1:
                block = (self._first_of_outputs + block).ravel()
            self._step(block)

    cdef _step(self, const Py_ssize_t[::1] block):
        cdef Py_ssize_t k, j, size = block.shape[0]
        cdef double w, momentum = self._momentum
        cdef int status
        with nogil:
            # 1. the noisy gradient of the block
            status = self.oracle.release_gradient(&block[0], size, &self._gradient[0])
            if status >= 0:
                for k in range(size):
                    j = block[k]
                    # 2. v_j = momentum * v_j + (1 - momentum) * gradient_j
                    self._velocity[j] = (momentum * self._velocity[j]
                                         + (1.0 - momentum) * self._gradient[k])
                    # 3. a proximal step along it
                    w = self.moved(j, self._velocity[j], self._step_size)
                    self._move[k] = w - self.w[j]
                    self.set(j, w)
                self.oracle.apply_step(&block[0], size, &self._move[0])
                self.tick()
        if status < 0:
            raise refused()
