"""Multinomial logistic loss, log sum_k exp(margin_k) - margin_target, targets 0, ..., K - 1."""

import numpy as np
from libc.math cimport exp
from scipy.special import logsumexp

from ._base cimport Loss


cdef class MultinomialLoss(Loss):
    """log sum_k exp(margin_k) - margin_target, for class numbers as targets."""

    name = "multinomial"
    task = "classification"
    curvature = 0.5  # the largest eigenvalue of diag(q) - q q', q the probabilities
    multi_output = True

    cdef void derivatives(self, Py_ssize_t n, Py_ssize_t n_outputs, const double *margins,
                          const double *target, double *out) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef double largest, total
        for i in range(n):
            largest = margins[i]
            for k in range(1, n_outputs):
                largest = max(largest, margins[k * n + i])
            total = 0.0
            for k in range(n_outputs):
                out[k * n + i] = exp(margins[k * n + i] - largest)
                total += out[k * n + i]
            for k in range(n_outputs):
                out[k * n + i] = out[k * n + i] / total - (target[i] == k)

    def value(self, margin, target):
        margin = np.asarray(margin)
        chosen = np.take_along_axis(margin, np.asarray(target, dtype=np.intp)[:, None], axis=1)
        return logsumexp(margin, axis=1) - chosen[:, 0]
