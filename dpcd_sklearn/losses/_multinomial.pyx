"""Multinomial logistic loss, log sum_k exp(margin_k) - margin_target, targets 0, ..., K - 1."""

import numpy as np
from libc.math cimport INFINITY, sqrt
from scipy.special import logsumexp

from ._loss cimport Loss
from ._derivatives cimport DERIVATIVES


cdef class MultinomialLoss(Loss):
    """log sum_k exp(margin_k) - margin_target, for class numbers as targets.

    Parameters
    ----------
    longest : float, default=inf
        A record's derivatives, of all classes together, are scaled down to this euclidean norm.
        They keep their ratios then, which coordinates that are clipped one by one do not: the one
        large derivative of a record, in its own class, is cut there, and the small ones of
        all others are not.
    """

    cdef readonly double longest

    name = "multinomial"
    task = "classification"
    twin = "logistic"
    curvature = 0.5  # the largest eigenvalue of diag(q) - q q', q the probabilities
    multi_output = zero_sum = True

    def __init__(self, double longest=INFINITY):
        self.longest = longest

    @classmethod
    def of(cls, stated, target_half_width):
        return cls()

    cdef void derivatives(self, Py_ssize_t n, Py_ssize_t n_outputs, const double *margins,
                          const double *target, double *out) noexcept nogil:
        cdef Py_ssize_t i, k
        cdef double square, factor
        DERIVATIVES.multinomial(n, n_outputs, margins, target, out)
        if self.longest == INFINITY:
            return
        for i in range(n):
            square = 0.0
            for k in range(n_outputs):
                square += out[k * n + i] * out[k * n + i]
            if square > self.longest * self.longest:
                factor = self.longest / sqrt(square)
                for k in range(n_outputs):
                    out[k * n + i] *= factor

    def value(self, margin, target):
        margin = np.asarray(margin)
        chosen = np.take_along_axis(margin, np.asarray(target, dtype=np.intp)[:, None], axis=1)
        return logsumexp(margin, axis=1) - chosen[:, 0]
