"""Differentially private proximal coordinate descent (Alg. 1 of Mangold et al. 2022).

    w_j <- prox_{γ/M_j ψ_j}(w_j - γ/M_j (∇_j f(w) + noise)),  j drawn at random

The oracle adds the noise; everything here is post-processing of what it released.
"""

import numpy as np

from ..penalties._base cimport Penalty
from ..privacy._oracle cimport Oracle

from ._problem import Solution, refused

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
    cdef Py_ssize_t p = problem.n_coordinates, done = 0, size
    # Without noise a chunk is a sweep that touches nearly every coordinate, to test convergence.
    sweep = min(CHUNK, 4 * p + 16) if problem.tol else CHUNK
    path = _Path(problem)
    while done < problem.n_updates:
        size = min(sweep, problem.n_updates - done)
        before = path.coef.copy() if problem.tol else None
        path.run(oracle, sampling.draw(generator, size))
        done += size
        if problem.tol and not problem.sweep_moved(before, path.coef):
            break
    return Solution(path.result(done), done)


cdef class _Path:
    """The iterate, and its running average."""

    cdef readonly object coef
    cdef double[::1] _w, _total
    cdef const double[::1] _smoothness
    cdef Py_ssize_t[::1] _since
    cdef Penalty _penalty
    cdef Py_ssize_t _n_penalized, _t, _tail_start
    cdef double _step_size

    def __init__(self, problem):
        p = problem.n_coordinates
        self.coef = np.zeros(p)
        self._w = self.coef
        self._total = np.zeros(p)
        self._since = np.full(p, problem.tail_start, dtype=np.intp)
        self._smoothness = problem.smoothness
        self._penalty = problem.penalty
        self._n_penalized = problem.n_penalized
        self._tail_start = problem.tail_start
        self._step_size = problem.step_size

    def run(self, Oracle oracle, const Py_ssize_t[::1] coordinates):
        cdef Py_ssize_t t, j
        cdef double partial, step, w
        cdef bint paid = True
        with nogil:
            for t in range(coordinates.shape[0]):
                j = coordinates[t]
                # 1. a noisy partial derivative
                if oracle.release_partial(j, &partial) < 0:
                    paid = False
                    break
                # 2. a proximal step along it
                step = self._step_size / self._smoothness[j]
                w = self._w[j] - step * partial
                if j < self._n_penalized:
                    w = self._penalty.prox(w, step)
                # 3. the average of iterates gains w_j times the updates it stood still
                self._t += 1
                if self._t > self._tail_start:
                    self._total[j] += self._w[j] * (self._t - 1 - self._since[j])
                    self._since[j] = self._t - 1
                step = w - self._w[j]
                self._w[j] = w
                oracle.apply_step(&j, 1, &step)
        if not paid:
            raise refused()

    def result(self, Py_ssize_t n_updates):
        """The last iterate, or the average of the tail."""
        if n_updates <= self._tail_start:
            return self.coef
        total = np.asarray(self._total) + self.coef * (n_updates - np.asarray(self._since))
        return total / (n_updates - self._tail_start)
