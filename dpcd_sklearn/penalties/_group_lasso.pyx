"""Group lasso: lengths of groups of coefficients, each of which is zero or not as a whole."""

import numpy as np
from libc.math cimport fabs, sqrt

from ._penalty cimport Penalty


cdef class GroupLassoPenalty(Penalty):
    """Sum over groups of l1 sqrt(size) |w_group|; a coefficient in no group is free.

    Parameters
    ----------
    groups : sequence of sequences of int
        Disjoint.
    l1 : float, >= 0
    """

    name = "group_lasso"
    words = ("group_lasso",)
    is_separable = False

    cdef const Py_ssize_t[::1] _members, _starts
    cdef readonly double l1
    cdef readonly Py_ssize_t n_groups

    def __init__(self, groups, double l1):
        self._members = np.concatenate([(), *groups]).astype(np.intp)
        self._starts = np.cumsum([0, *map(len, groups)]).astype(np.intp)
        self.n_groups = len(groups)
        self.l1 = l1

    @classmethod
    def of(cls, word, strength, parameters, target_half_width):
        return cls(parameters.by_column, strength / target_half_width)

    cdef void prox_all(self, double *w, const double *smoothness, double step,
                       Py_ssize_t n_penalized) noexcept nogil:
        cdef Py_ssize_t g, first, last
        for g in range(self.n_groups):
            first, last = self._starts[g], self._starts[g + 1]
            _shrink(&self._members[first], last - first, w, smoothness,
                    self.l1 * sqrt(<double>(last - first)) * step)

    def value(self, coef):
        members = np.split(np.asarray(self._members), np.asarray(self._starts)[1:])
        return self.l1 * sum(len(one) ** 0.5 * np.linalg.norm(coef[one]) for one in members)


cdef void _shrink(const Py_ssize_t *group, Py_ssize_t size, double *w, const double *smoothness,
                  double strength) noexcept nogil:
    """argmin_u strength |u| + sum of M_j (u_j - w_j)^2 / 2 of one group.

    That is u_j = w_j t / (t + b_j) with b_j = strength / M_j, for the length t = |u|, hence the
    root of |w / (t + b)| = 1. Newton's method on 1 / |w / (t + b)| finds it from below, in units of
    the largest w_j: from where one term alone is 1, so that nothing overflows.
    """
    cdef double top = 0.0, t = 0.0, term, total, slope, b
    cdef Py_ssize_t k, j
    cdef int _step
    for k in range(size):
        top = max(top, fabs(w[group[k]]))
    if top == 0.0 or strength == 0.0:
        return
    for k in range(size):
        j = group[k]
        t = max(t, fabs(w[j]) / top - strength / smoothness[j] / top)
    for _step in range(100):
        total = slope = 0.0
        for k in range(size):
            j = group[k]
            if w[j] != 0.0:
                b = t + strength / smoothness[j] / top
                term = w[j] / top / b
                total += term * term
                slope += term * term / b
        if total <= 1.0 + 1e-15:
            break
        t += (sqrt(total) - 1.0) * total / slope
    for k in range(size):
        j = group[k]
        w[j] *= 0.0 if t == 0.0 else t / (t + strength / smoothness[j] / top)
