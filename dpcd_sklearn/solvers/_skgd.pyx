"""Differentially private sketched gradient descent (Alg. 1 of Maranjyan, Sadiev & Richtárik 2024).

    w <- w - Γ C_S (∇f(w) + noise),  Γ = γ P M⁻¹,  C_S = I_S P⁻¹,  S drawn at random

so that coordinate j of a drawn block moves with the step γ / M_j whatever its probability. The
penalty acts by its proximal operator, and momentum is a normalised heavy ball.
"""

import numpy as np

from ..penalties._base cimport Penalty
from ..privacy._oracle cimport Oracle

from ._problem import Solution, refused

cdef Py_ssize_t CHUNK = 1 << 12


def solve(Oracle oracle, problem, sampling, generator):
    """Run DP-SkGD.

    Parameters
    ----------
    oracle : Oracle
    problem : Problem
    sampling : BlockSampling or FullSampling
    generator : numpy.random.Generator
        Draws the blocks, which are public.

    Returns
    -------
    Solution
    """
    cdef Py_ssize_t done = 0, size
    # Without noise a chunk is a test of convergence: long enough to see that blocks move slowly.
    n_blocks = len(sampling.blocks)
    chunk = (20 if n_blocks == 1 else 100 * n_blocks) if problem.tol else CHUNK
    path = _Path(problem)
    while done < problem.n_updates:
        size = min(chunk, problem.n_updates - done)
        before = path.coef.copy() if problem.tol else None
        for index in sampling.draw(generator, size):
            path.step(oracle, sampling.blocks[index])
        done += size
        if problem.tol and not problem.sweep_moved(before, path.coef):
            break
    return Solution(path.result(done), done)


cdef class _Path:
    """The iterate, its velocity and its running average."""

    cdef readonly object coef
    cdef object _total
    cdef double[::1] _w, _velocity, _gradient, _move, _sum
    cdef const double[::1] _smoothness
    cdef Penalty _penalty
    cdef Py_ssize_t _n_penalized, _t, _tail_start
    cdef double _step_size, _momentum

    def __init__(self, problem):
        p = problem.n_coordinates
        self.coef = np.zeros(p)
        self._total = np.zeros(p)
        self._w, self._sum = self.coef, self._total
        self._velocity, self._gradient, self._move = np.zeros(p), np.empty(p), np.empty(p)
        self._smoothness = problem.smoothness
        self._penalty = problem.penalty
        self._n_penalized = problem.n_penalized
        self._tail_start = problem.tail_start
        self._step_size = problem.step_size
        self._momentum = problem.momentum

    cpdef step(self, Oracle oracle, const Py_ssize_t[::1] block):
        cdef Py_ssize_t k, j, size = block.shape[0]
        cdef double step, w, momentum = self._momentum
        cdef int status
        with nogil:
            # 1. the noisy gradient of the block
            status = oracle.release_gradient(&block[0], size, &self._gradient[0])
            if status >= 0:
                for k in range(size):
                    j = block[k]
                    # 2. v_j = momentum * v_j + (1 - momentum) * gradient_j
                    self._velocity[j] = (momentum * self._velocity[j]
                                         + (1.0 - momentum) * self._gradient[k])
                    # 3. a proximal step along it
                    step = self._step_size / self._smoothness[j]
                    w = self._w[j] - step * self._velocity[j]
                    if j < self._n_penalized:
                        w = self._penalty.prox(w, step)
                    self._move[k] = w - self._w[j]
                    self._w[j] = w
                oracle.apply_step(&block[0], size, &self._move[0])
                # 4. the average of the last iterates
                self._t += 1
                if self._t > self._tail_start:
                    for j in range(self._w.shape[0]):
                        self._sum[j] += self._w[j]
        if status < 0:
            raise refused()

    def result(self, Py_ssize_t n_updates):
        """The last iterate, or the average of the tail."""
        if n_updates <= self._tail_start:
            return self.coef
        return self._total / (n_updates - self._tail_start)
