"""Proximal Newton steps on one noisy curvature and a few noisy gradients in its geometry.

    v_t = w_t + β (w_t - w_(t-1))
    w_(t+1) <- argmin_w  <g_t, w> + |w - v_t|²_P / (2 γ) + ψ(w)

P is the released curvature, its eigenvalues cleaned of the noise's spread and floored, g_t a
gradient at v_t that was clipped and noised in the geometry of P, β Nesterov's momentum. Losses of
labels curve less the farther classes part: steps are longer by what that is worth if margins are
normal. They are shorter where the last move met more curvature. Of several classes P is the same in
each: half of the rows' second moments bounds a softmax' curvature in every one (Böhning 1992), so a
step is one problem a class, or one a direction of margins. All else is post-processing. Averages
are of models, not of iterates: the last step minimises the mean of all models after the head, so
that coefficients are exactly zero where the penalty makes them so.
"""

import math

import numpy as np
from scipy.linalg import solve_triangular

from ._covariance import NewtonWalk
from ._problem import Solution, Tail, shares_of_bound
from ._quadratic import minimise

# Least eigenvalue over the largest one: of what a grid of integers can hold, and without noise.
_LEAST = 1e-7
_LEAST_NOISELESS = 1e-13
_ROUNDER = (1e-5, 1e-3, 0.1, 1.0)
# By which a curvature is made larger at most: what exceeds it is noise.
_MOST_CUT = 10.0
# No move is taken to have met so many times P.
_STEEPEST = 2.0


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


def denoised(values, edge):
    """How large a matrix is along the eigenvectors of its noisy copy, whose eigenvalues these are.

    Noise parts eigenvalues that are equal: of a multiple of the identity they fill an interval, and
    steps by the least of them are many times too long. Bun, Allez, Bouchaud & Potters (2016), for
    additive noise: λ_k - (edge² / 2) mean_j 1 / (λ_k - λ_j), seen from a little beside the axis.

    Parameters
    ----------
    values : ndarray of shape (n_coordinates,)
    edge : float
        The spectral edge of the noise; 0 for none.
    """
    if edge == 0:
        return values
    gaps = values[:, None] - values
    beside = edge**2 / len(values)
    return values - 0.5 * edge**2 * np.mean(gaps / (gaps**2 + beside), axis=1)


class _Path:
    """Iterates, a row for each output, and models that were released.

    The curvature, and what is made of it, is in the units of sqrt(M_j).
    """

    def __init__(self, oracle, problem):
        self._oracle, self._problem = oracle, problem
        self._roots = np.sqrt(problem.smoothness)
        self.coef = self._before = self._first()
        self._log_odds = max(abs(self.coef[0, -1]), 1.0)  # of classes, whose shares were released
        self._curvature, self._enlarged = self._whole(oracle.release_curvature())
        values, vectors = np.linalg.eigh(self._curvature)
        values = denoised(values, self._enlarged * problem.curvature_edge)
        self._fix_geometry(values, vectors, self._enlarged * problem.curvature_floor)
        # means over the models that count: of where gradients were released, and of these
        self._means, self._n_models = [np.zeros_like(self.coef) for _ in range(2)], 0
        self._clips, self._steepness, self._last = [], [], None

    def _first(self):
        """The start, or zero, in the penalty's domain."""
        problem, n = self._problem, self._problem.n_penalized
        start, step = (0.0, 1.0) if problem.start is None else (problem.start, 0.0)
        coef = np.zeros((problem.n_outputs, problem.n_coordinates))
        coef.flat[:] = start
        for row in coef[:, :n]:
            row[:] = problem.penalty.proximal_all(row, np.ones(n), step)
        return coef

    def _whole(self, curvature):
        """A curvature as large as that of rows that were not cut short, if it is known.

        And by which factor it was made larger, the noise with it.
        """
        n, times = self._problem.n_penalized, self._problem.times
        trace = np.trace(curvature[:n, :n])
        if not 0 < trace < self._problem.mean_square:
            return times * curvature, times
        factor = min(self._problem.mean_square / trace, _MOST_CUT)
        scales = np.ones(len(curvature))
        scales[:n] = factor**0.5
        return times * scales[:, None] * curvature * scales, times * factor

    def _fix_geometry(self, values, vectors, floor):
        """P, with directions that the noise may have made too flat raised to the floor."""
        least = _LEAST_NOISELESS if floor == 0 else _LEAST
        floor = max(floor, 1e-300)
        # the noise may leave it too steep for the grid: then a rounder one, or none of it
        shares = (least, *_ROUNDER)
        rounder = [np.maximum(values, max(floor, share * values[-1])) for share in shares]
        for floored in (*rounder, np.ones_like(values)):
            try:
                return self._fix_floored(values, floored, vectors)
            except ValueError as error:
                refusal = error
        raise refusal

    def _fix_floored(self, values, floored, vectors):
        problem = self._problem
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
        """The next iterate, from a released gradient; the last one from the models that count."""
        problem = self._problem
        point = self.coef + problem.momentum * (self.coef - self._before)
        self._clips.append(self._clip())
        gradient = self._oracle.release_preconditioned(point.ravel(), self._clips[-1])
        gradient = gradient.reshape(point.shape)
        if problem.zero_sum:  # clipped or not: the rest of the sum is noise
            gradient = gradient - gradient.mean(axis=0)
        shares, axes = self._curvatures(point * self._roots, gradient)
        gradient = gradient @ self._factor.T
        if self._t >= min(problem.tail_start, problem.n_updates - 1):
            self._n_models += 1
            for mean, one in zip(self._means, (point * self._roots, gradient), strict=True):
                mean += (one - mean) / self._n_models
            if self._t + 1 == problem.n_updates:
                point, gradient = self._means[0] / self._roots, self._means[1]
        coef = self._minimum(shares, axes, point, self._roots * gradient)
        move = coef - self.coef
        too_far = np.linalg.norm((move * self._roots) @ self._factor) / problem.longest_move
        return coef if too_far <= 1 else self.coef + move / too_far

    def _curvatures(self, point, gradient):
        """The curvature over P where a gradient was released, along axes of the outputs.

        Of labels it is what margins tell. Where the last move met more, beyond the noise, it is as
        much larger everywhere: as of rows that were cut short.
        """
        problem, before = self._problem, self._last
        shares, axes = np.ones(len(point)), np.eye(len(point))
        if problem.margin_trust > 0:
            has_constant = problem.n_penalized < len(self._roots)
            of_rows = self._curvature / problem.times
            shares, axes = shares_of_bound(of_rows, point, has_constant)
            shares = shares**problem.margin_trust
            if len(shares) == 1 and self._steepness:
                # flat where few are likely of a class, and steeper on the way: steps would swing,
                # the more the rarer one is
                shares = np.maximum(shares, (1 - 0.4 / self._log_odds) * self._steepness[-1])
        self._last = point, gradient = point @ self._factor, gradient
        if before is not None and math.isfinite(problem.gradient_noise):
            move = point - before[0]
            if 0 < (square := np.vdot(move, move)) < math.inf:
                noise = problem.gradient_noise * math.hypot(*self._clips[-2:]) * math.sqrt(square)
                met = np.vdot(move, gradient - before[1]) - noise
                told = shares @ np.sum((axes.T @ move) ** 2, axis=1)
                shares = np.minimum(shares * max(met / told, 1.0), _STEEPEST)
        self._steepness.append(shares.max())
        return shares, axes

    def _clip(self):
        """Wide where residuals are still large; the models that are averaged have one clip."""
        first, last = self._problem.unit_clips
        head = int(self._problem.head * self._problem.n_updates)
        left = max(0.0, 1 - self._t / max(head, 1))
        return last * (first / last) ** left * (self._filled / self._problem.times) ** 0.5

    def _minimum(self, shares, axes, point, gradient):
        """Minimum of the quadratic model and the penalty, for each axis of the outputs by itself.

        Other penalties than squares know outputs alone, which share the steepest curvature then.
        """
        penalty, n = self._problem.penalty, self._problem.n_penalized
        if penalty.is_smooth:
            models = []
            for share, start, slope in zip(shares, axes.T @ point, axes.T @ gradient, strict=True):
                quadratic = share * self._quadratic
                linear = start @ quadratic - slope
                quadratic.flat[: n * (len(quadratic) + 1) : len(quadratic) + 1] += penalty.l2
                models.append(np.linalg.solve(quadratic, linear))
            return axes @ np.array(models)
        quadratic = shares.max() * self._quadratic
        models = zip(point @ quadratic - gradient, self.coef, strict=True)
        return np.array([minimise(quadratic, b, penalty, n, w) for b, w in models])

    def run(self):
        problem, path, converged = self._problem, [self.coef], False
        shape = np.shape(self.coef if problem.n_outputs > 1 else self.coef[0])
        for self._t in range(problem.n_updates):
            before = self.coef
            self.coef, self._before = self._step(), before
            if problem.path_every:
                path.append(self.coef)
            if problem.watch is not None:
                problem.watch(self._t + 1)
            converged = bool(problem.tol) and not problem.sweep_moved(before, self.coef)
            if converged:
                break
        kept = np.reshape(path, (-1, *shape)) if problem.path_every else None
        of_steps = np.array(self._clips), np.array(self._steepness)
        walk = NewtonWalk(self._root, self._filled, *of_steps, self._curvature, self._enlarged)
        tail = Tail(*self._means, self._curvature) if self._n_models else None
        return Solution(self.coef.reshape(shape), self._t + 1, kept, converged, walk, tail=tail)
