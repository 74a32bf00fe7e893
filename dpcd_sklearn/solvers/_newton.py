"""Proximal Newton steps on one noisy curvature and a few noisy gradients in its geometry.

    w <- argmin_v  <g_t, v> + |v - w_t|²_P / (2 γ) + ψ(v)

P is the released curvature with its eigenvalues floored, g_t a gradient that was clipped and noised
in the geometry of P. All else is post-processing. Averages are of models, not of iterates: from the
middle on a step minimises the mean of all models since then, so that coefficients stay exactly
zero where the penalty makes them so.
"""

import numpy as np
from scipy.linalg import solve_triangular

from ..penalties import ElasticNet
from ._covariance import inference_of
from ._problem import Solution
from ._quadratic import minimise

# Least eigenvalue over the largest one: of what a grid of integers can hold, and without noise.
_LEAST = 1e-7
_LEAST_NOISELESS = 1e-13


def solve(oracle, problem, sampling=None, generator=None):
    """Run the steps.

    Parameters
    ----------
    oracle : CurvatureOracle
    problem : Problem

    Returns
    -------
    Solution
    """
    return _Path(oracle, problem).run()


class _Path:
    """Iterates in the units of sqrt(M_j), where the curvature is, and models that were released."""

    def __init__(self, oracle, problem):
        self._oracle, self._problem = oracle, problem
        self._roots = np.sqrt(problem.smoothness)
        self.coef = np.zeros(problem.n_coordinates)
        self.coef[: problem.n_penalized] = problem.penalty.proximal(0.0, 1.0)
        values, vectors = np.linalg.eigh(oracle.release_curvature())
        self._fix_geometry(values, vectors)
        self._linear, self._n_models = np.zeros(problem.n_coordinates), 0

    def _fix_geometry(self, values, vectors):
        """P, with directions that the noise may have made too flat raised to the floor."""
        problem = self._problem
        least = _LEAST_NOISELESS if problem.curvature_floor == 0 else _LEAST
        floored = np.maximum(values, max(problem.curvature_floor, least * values[-1], 1e-300))
        # how many directions the records fill: the squared norm of a row in this geometry
        filled = np.clip(values, 0.0, None) @ (1 / floored)
        factor = np.linalg.cholesky((vectors * floored) @ vectors.T)
        identity = np.eye(len(values))
        root = solve_triangular(factor, identity, lower=True)
        self._filled = max(filled, 1.0)
        self._root = root = self._oracle.fix_geometry(root)
        self._factor = solve_triangular(root, identity, lower=True)  # P = factor @ factor.T
        scaled = self._roots[:, None] * self._factor
        self._quadratic = np.ascontiguousarray(scaled @ scaled.T) / problem.step_size

    def _step(self):
        """The next iterate, from a released gradient and the models that count."""
        problem = self._problem
        gradient = self._oracle.release_preconditioned(self.coef, self._clip())
        linear = self._quadratic @ self.coef - self._roots * (self._factor @ gradient)
        if problem.averaging == "last" or self._t < problem.tail_start:
            mean = linear
        else:
            self._n_models += 1
            self._linear += (linear - self._linear) / self._n_models
            mean = self._linear
        return self._minimum(mean)

    def _clip(self):
        """Wide where residuals are still large; the models that are averaged have one clip."""
        first, last = self._problem.unit_clips
        left = max(0.0, 1 - self._t / max(self._problem.n_updates // 2, 1))
        return last * (first / last) ** left * self._filled**0.5

    def _minimum(self, linear):
        penalty, n = self._problem.penalty, self._problem.n_penalized
        if isinstance(penalty, ElasticNet) and penalty.l1 == 0 and not penalty.positive:
            quadratic = self._quadratic.copy()
            quadratic.flat[: n * (len(quadratic) + 1) : len(quadratic) + 1] += penalty.l2
            return np.linalg.solve(quadratic, linear)
        return minimise(self._quadratic, linear, penalty, n, self.coef)

    def run(self):
        problem, path, converged = self._problem, [self.coef], False
        for self._t in range(problem.n_updates):
            before, self.coef = self.coef, self._step()
            if problem.path_every:
                path.append(self.coef)
            converged = bool(problem.tol) and not problem.sweep_moved(before, self.coef)
            if converged:
                break
        kept = np.array(path) if problem.path_every else None
        inference = self._inference(self._t + 1) if problem.inference else None
        return Solution(self.coef, self._t + 1, kept, converged, inference)

    def _inference(self, n_steps):
        problem, clips = self._problem, []
        for self._t in range(n_steps):
            clips.append(self._clip())
        # two standard deviations above the mean squared norm of a normal row, or wider, up to far
        # beyond it, where the noise's spectral edge stays below a tenth of the curvature
        edge = (2 * problem.n_coordinates) ** 0.5 * problem.moment_noise
        square = self._filled + 2 * (2 * self._filled) ** 0.5
        square = max(square, min(0.1 / max(edge, 1e-300), 10 * self._filled))
        moments = self._oracle.release_moments(self.coef, clips[-1], square**0.5)
        return inference_of(problem, self._root, self.coef, clips, moments, square)
