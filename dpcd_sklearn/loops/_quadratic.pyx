"""A quadratic model with a penalty, minimised: numbers that were released before, so it is free.

    argmin_w  wᵀ P w / 2 - bᵀ w + ψ(w)

Cyclic coordinate descent for any penalty, which needs its proximal operator alone.
"""

import numpy as np
from libc.math cimport fabs, sqrt

from ..penalties._penalty cimport Penalty
from ..utils._interrupts cimport Interrupts

# Share of the largest coefficient, in the norm of sqrt(P_jj): no more is no move of a sweep.
cdef double TOLERANCE = 1e-10
cdef Py_ssize_t MOST_SWEEPS = 2_000


def minimise(double[:, ::1] P, const double[::1] b, Penalty penalty, Py_ssize_t n_penalized, start):
    """Minimise the model from a start.

    Parameters
    ----------
    P : ndarray of shape (n_coordinates, n_coordinates), symmetric, positive definite
    b : ndarray of shape (n_coordinates,)
    penalty : Penalty
        Penalty of the first `n_penalized` coordinates.
    start : ndarray of shape (n_coordinates,)

    Returns
    -------
    ndarray of shape (n_coordinates,)
    """
    coef = np.array(start, dtype=np.float64)
    cdef double[::1] w = coef, rest = np.asarray(b) - np.asarray(P) @ coef
    cdef Py_ssize_t j, k, _sweep, d = w.shape[0]
    cdef double target, move, furthest, largest
    cdef Interrupts interrupts = Interrupts()
    with nogil:
        for _sweep in range(MOST_SWEEPS):
            furthest = largest = 0.0
            for j in range(d):
                target = w[j] + rest[j] / P[j, j]
                if j < n_penalized:
                    target = penalty.prox(j, target, 1.0 / P[j, j])
                move = target - w[j]
                if move != 0.0:
                    w[j] = target
                    for k in range(d):  # rest -= P[j] * move
                        rest[k] -= P[j, k] * move
                furthest = max(furthest, fabs(move) * sqrt(P[j, j]))
                largest = max(largest, fabs(target) * sqrt(P[j, j]))
            interrupts.look()
            if furthest <= TOLERANCE * largest:
                break
    return coef
