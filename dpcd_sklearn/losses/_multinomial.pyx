"""Multinomial logistic loss, log sum_k exp(margin_k) - margin_target, targets 0, ..., K - 1."""

import numpy as np
from scipy.special import logsumexp

from ._base cimport Loss
from ._derivatives cimport DERIVATIVES


cdef class MultinomialLoss(Loss):
    """log sum_k exp(margin_k) - margin_target, for class numbers as targets."""

    name = "multinomial"
    task = "classification"
    curvature = 0.5  # the largest eigenvalue of diag(q) - q q', q the probabilities
    curvature_of_one = 0.25  # of its diagonal
    multi_output = True

    cdef void derivatives(self, Py_ssize_t n, Py_ssize_t n_outputs, const double *margins,
                          const double *target, double *out) noexcept nogil:
        DERIVATIVES.multinomial(n, n_outputs, margins, target, out)

    def value(self, margin, target):
        margin = np.asarray(margin)
        chosen = np.take_along_axis(margin, np.asarray(target, dtype=np.intp)[:, None], axis=1)
        return logsumexp(margin, axis=1) - chosen[:, 0]
