"""Balls that coefficients are projected onto."""

import numpy as np


class L2Ball:
    """Coefficients of euclidean norm at most `radius`."""

    name = "l2_ball"

    def __init__(self, radius):
        self.radius = radius

    def project(self, coef):
        """The nearest point of the ball."""
        norm = np.linalg.norm(coef)
        return coef if norm <= self.radius else coef * (self.radius / norm)


class L1Ball:
    """Coefficients whose absolute values sum to at most `radius`."""

    name = "l1_ball"

    def __init__(self, radius):
        self.radius = radius

    def project(self, coef):
        """The nearest point of the ball, by soft thresholding (Duchi et al. 2008)."""
        size = np.abs(coef)
        if size.sum() <= self.radius:
            return coef
        largest = np.sort(size)[::-1]
        excess = np.cumsum(largest) - self.radius
        k = np.flatnonzero(largest * np.arange(1, len(coef) + 1) > excess)[-1]
        return np.sign(coef) * np.maximum(size - excess[k] / (k + 1), 0.0)
