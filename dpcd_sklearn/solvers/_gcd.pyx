"""Differentially private greedy coordinate descent (Alg. 1 and 2 of Mangold et al. 2023).

    j <- noisy argmax of what each move promises (rule GS-r)
    w_j <- prox_{γ/M_j ψ_j}(w_j - γ/M_j (∇_j f(w) + noise))

The choice is over both directions of every coordinate, so the direction comes with it for free.
"""

import numpy as np

from ..penalties._base cimport Penalty
from ..privacy._oracle cimport Oracle

from ._problem import Solution, refused


def solve(Oracle oracle, problem, sampling=None, generator=None):
    """Run DP-GCD; it needs neither a sampling nor public randomness.

    Parameters
    ----------
    oracle : Oracle
    problem : Problem

    Returns
    -------
    Solution
    """
    cdef Py_ssize_t p = problem.n_coordinates, n_penalized = problem.n_penalized
    cdef Py_ssize_t n_updates = problem.n_updates, tail_start = problem.tail_start
    cdef Py_ssize_t t, j, k, n_done = 0
    cdef Penalty penalty = problem.penalty
    cdef const double[::1] smoothness = problem.smoothness
    cdef double step_size = problem.step_size, tol = problem.tol
    cdef double partial, step, moved, w, promised, recent = 0.0
    cdef int direction
    cdef bint paid = True
    coef, total = np.zeros(p), np.zeros(p)
    cdef double[::1] coef_view = coef, total_view = total
    with nogil:
        for t in range(n_updates):
            # 1. the coordinate that promises most
            j = oracle.release_argmax(penalty, &coef_view[0], &direction)
            # 2. its noisy partial derivative
            if j < 0 or oracle.release_partial(j, &partial) < 0:
                paid = False
                break
            # 3. a proximal step along it
            step = step_size / smoothness[j]
            w = coef_view[j] - step * partial
            if j < n_penalized:
                w = penalty.prox(w, step)
            moved = w - coef_view[j]
            if moved * direction < 0.0:
                # the choice said the other way: noise drowned the partial derivative
                moved = 0.0
                w = coef_view[j]
            coef_view[j] = w
            oracle.apply_step(&j, 1, &moved)
            n_done += 1
            # 4. the average of the last iterates
            if t >= tail_start:
                for k in range(p):
                    total_view[k] += coef_view[k]
            # 5. without noise, the largest promise left tells how far the optimum is
            if tol > 0.0:
                promised = moved * moved * smoothness[j]
                recent = max(promised, 0.99 * recent)
                w = 0.0
                for k in range(p):
                    w = max(w, coef_view[k] * coef_view[k] * smoothness[k])
                if recent <= tol * tol * w:
                    break
    if not paid:
        raise refused()
    return Solution(total / (n_done - tail_start) if n_done > tail_start else coef, n_done)
