"""Balls that coefficients are projected onto."""

import numpy as np


class L2Ball:
    """Coefficients of euclidean norm at most `radius`."""

    name = "l2_ball"

    def __init__(self, radius):
        self.radius = radius

    def project(self, coef):
        """The nearest point of the ball."""
        largest = np.max(np.abs(coef), initial=0.0)
        if largest == 0.0:
            return coef
        direction = coef / largest  # whose norm can't overflow
        length = np.linalg.norm(direction)
        if largest <= self.radius / length:
            return coef
        return direction * (self.radius / length)


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
        # A common shift of the sizes changes nothing; this one keeps the digits of the radius.
        size = size - size.max() + self.radius
        largest = np.sort(size)[::-1]
        excess = np.cumsum(largest) - self.radius
        k = np.flatnonzero(largest * np.arange(1, len(coef) + 1) > excess)[-1]
        return np.sign(coef) * np.maximum(size - excess[k] / (k + 1), 0.0)
