"""Balls that coefficients are projected onto."""

import numpy as np


class L2Ball:
    """Coefficients of euclidean norm at most `radius`."""

    name = "l2_ball"

    def __init__(self, radius):
        self.radius = radius

    def project(self, coef, smoothness):
        """The point u of the ball with the least sum of M_j (u_j - coef_j)^2.

        That is u_j = M_j coef_j / (M_j + s), with the s >= 0 that gives u the length `radius`:
        Newton's method on 1 / norm(u) from s = 0 finds it from below (Moré & Sorensen 1983).
        """
        s, u = 0.0, coef
        for _ in range(50):
            norm = np.linalg.norm(u)
            if norm <= self.radius * (1 + 1e-15):
                break
            s += (norm / self.radius - 1) * norm**2 / np.sum(u * u / (smoothness + s))
            u = smoothness * coef / (smoothness + s)
        return u


class L1Ball:
    """Coefficients whose absolute values sum to at most `radius`."""

    name = "l1_ball"

    def __init__(self, radius):
        self.radius = radius

    def project(self, coef, smoothness):
        """The point u of the ball with the least sum of M_j (u_j - coef_j)^2.

        By soft thresholding at s / M_j (Duchi et al. 2008, weighted): coordinates leave zero in
        the order of M_j abs(coef_j).
        """
        size = np.abs(coef)
        if size.sum() <= self.radius:
            return coef
        order = np.argsort(-smoothness * size)
        thresholds = (np.cumsum(size[order]) - self.radius) / np.cumsum(1 / smoothness[order])
        s = thresholds[np.flatnonzero((smoothness * size)[order] > thresholds)[-1]]
        return np.sign(coef) * np.maximum(size - s / smoothness, 0.0)
