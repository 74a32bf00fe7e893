"""A penalty: a convex function with a proximal operator; greedy scores from it.

A score tells what a move of one coordinate in one direction promises. For the partial derivative g
and smoothness M of a coordinate at w, with the move α = prox(w - g / M) - w:

    GS-s  -(direction g + ψ'(w; direction)) / sqrt(M)        steepest descent
    GS-r  sqrt(M) |α|                                         longest proximal step
    GS-q  sqrt(2 q),  q = -min_α g α + M α² / 2 + ψ(w + α) - ψ(w)      largest decrease

Each is 1/sqrt(M)-Lipschitz in g, which its sensitivity rests on, and is continued below zero by
the first line where no move in that direction promises anything: useless rare coordinates then
score far below the others (proofs/release_argmax.md).
"""

import numpy as np
from libc.math cimport INFINITY, sqrt


cdef class Penalty:
    """Sum over coefficients of ψ_j(w_j), each ψ_j convex.

    A subclass gives ``prox``, ``slope`` and ``excess``, and in Python ``value`` (vectorised) and
    ``of``. One that is no such sum gives ``prox_all`` instead of these three.

    Attributes
    ----------
    name : str
    words : tuple of str
        What the estimators' parameter `penalty` calls it.
    is_separable : bool
        Whether it is a sum over coefficients. Only solvers that move all of them take another one.
    is_smooth : bool
        Whether it is a ridge, or nothing.
    """

    name = None
    words = ()
    is_separable = True
    is_smooth = False

    @classmethod
    def of(cls, word, strength, parameters, target_half_width):
        """The penalty for a word and an estimator's parameters.

        `strength` is alpha beside the mean loss of a target divided by `target_half_width`, which
        divides what is in units of the target.
        """
        raise NotImplementedError

    cdef double prox(self, Py_ssize_t j, double v, double step) noexcept nogil:
        """argmin_w ψ_j(w) + (w - v)^2 / (2 step)."""
        return v

    cdef void prox_all(self, double *w, const double *smoothness, double step,
                       Py_ssize_t n_penalized) noexcept nogil:
        """w <- argmin_u ψ(u) + sum of M_j (u_j - w_j)^2 / (2 step)."""
        cdef Py_ssize_t j
        for j in range(n_penalized):
            w[j] = self.prox(j, w[j], step / smoothness[j])

    cdef double slope(self, Py_ssize_t j, double w, int direction) noexcept nogil:
        """ψ_j'(w; direction), the derivative in a direction of +1 or -1; infinite at a wall."""
        return 0.0

    cdef double excess(self, double w, double v, double subgradient) noexcept nogil:
        """ψ(w) - ψ(v) - subgradient (w - v) >= 0, for a subgradient of ψ at v.

        Computed without cancellation: the error may be a few roundings of |w - v| times the
        subgradient, not of ψ.
        """
        return 0.0

    cdef double signed_score(self, Rule rule, Py_ssize_t j, double w, double gradient,
                             double smoothness, int direction) noexcept nogil:
        """The promise of a move in `direction`; -infinity when it leaves the domain of ψ."""
        cdef double root = sqrt(smoothness), slope = self.slope(j, w, direction)
        cdef double steepest = -(direction * gradient + slope) / root
        cdef double v, move
        if slope == INFINITY:
            return -INFINITY
        if rule == Rule.GS_S or steepest <= 0.0:
            return steepest
        v = self.prox(j, w - gradient / smoothness, 1.0 / smoothness)
        move = v - w
        if direction * move <= 0.0:  # a move lost to rounding
            return 0.0
        if rule == Rule.GS_R:
            return root * direction * move
        return sqrt(smoothness * move * move
                    + 2.0 * max(self.excess(w, v, -gradient - smoothness * move), 0.0))

    def value(self, coef):
        """The penalty of an array of coefficients; infinite outside its domain."""
        raise NotImplementedError

    # ---- for Python ----

    def proximal(self, double v, double step, Py_ssize_t j=0):
        """prox of `step` times the penalty of coefficient j at v."""
        return self.prox(j, v, step)

    def proximal_all(self, coef, const double[::1] smoothness, double step):
        """The minimiser that ``prox_all`` finds, of all coefficients."""
        cdef double[::1] w = np.array(coef, dtype=np.float64)
        self.prox_all(&w[0], &smoothness[0], step, w.shape[0])
        return np.asarray(w)

    def greedy_score(self, Rule rule, double w, double gradient, double smoothness, int direction,
                     Py_ssize_t j=0):
        """The signed score of a rule, as the greedy choice compares it."""
        return self.signed_score(rule, j, w, gradient, smoothness, direction)
