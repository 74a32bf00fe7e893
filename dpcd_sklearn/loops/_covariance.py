"""Covariances of coefficients, from moments that were released: post-processing, and no records.

In the coordinates of the geometry, where gradients are released, J is the mean derivative of the
clipped gradients, Q their second moment and Λ the ridge. The coefficients scatter by

    sampling   (J + Λ)⁻¹ (Q - ḡ ḡᵀ) (J + Λ)⁻¹ / (n - p)
    privacy    the noise of all gradients, by the recursion of the solver's steps.

The recursion is exact for linear gradients (squared loss, no record at its clip) and the true J;
otherwise it is of first order. It also tells how much of the way from the start is left: what is
left of it, a share of known size, is added to the coefficients.
"""

from dataclasses import dataclass, replace
from functools import wraps

import numpy as np

# Least eigenvalue of J in spectral edges of its noise: below it inverses are far from linear in it.
# At 3 .94 to .96 of the slopes' intervals cover (200 and 400 fits of 1,000 x 3 a kind, ε = 3).
SAFE_JACOBIAN = 3.0
# Q is inverted nowhere: its mean eigenvalue is to be no less than an edge, and none is taken to be
# less than this share of one. Of one coefficient's variance the noise is far below the edge.
_LEAST_SCORES = 0.5
# The same for the released curvature, where nothing is inverted.
_SAFE_CURVATURE = 2.0
# By how many times safe directions curve more than unsafe ones at least. Of 30 fits of normal
# columns and rare categories (p = 8) .73 to 1 are valid, and .93 to .97 of their intervals cover;
# at 2 .13 to 1 are valid.
_GAP = 1.5
# The same `doubt` where moments have no noise.
_ROUNDING = 1e-3
# The most of it of a released curvature: what may be turned farther is not known.
_MOST_DOUBT = 0.2
# In standard errors: of which coefficient more is left, the steps did not arrive.
_MOST_LEFT = 1.0
# In standard deviations by the noise: a last step that was longer is no noise but a way that is
# not at its end where the curvature misses, as of few long rows. Fits of which 94 % of intervals of
# two deviations covered moved by 5 at most, of which 16 % did by 25 to 43.
_MOST_MOVED = 6.0


def normal_square(mean):
    """Two standard deviations above the mean of a normal row's squared norm."""
    return mean + 2 * (2 * mean) ** 0.5


@dataclass(frozen=True, eq=False)
class Inference:
    """Covariances of the scaled problem's coefficients.

    Attributes
    ----------
    sampling, privacy : ndarrays of shape (n_coordinates, n_coordinates)
        NaN where the moments are not safely positive.
    valid : bool
    left : ndarray of shape (n_coordinates,)
        What the coefficients still lack, to be added to them; zero where they are not valid.
    safe, unsafe : ndarrays of shape (n_coordinates, n_directions)
        Orthonormal directions of the geometry, as coefficients: those in which the moments are
        safely positive, and the others, which the records may not tell apart at all. Fixed
        features are in neither.
    doubt : float
        How far the noise of the moments turns a safe direction towards unsafe ones, at most.
    """

    sampling: np.ndarray
    privacy: np.ndarray
    valid: bool
    left: np.ndarray
    safe: np.ndarray
    unsafe: np.ndarray
    doubt: float = 0.0

    def moved(self, change):
        """The same of coefficients that a matrix changes."""
        both = {name: change @ getattr(self, name) @ change.T for name in ("sampling", "privacy")}
        one = {name: change @ getattr(self, name) for name in ("left", "safe", "unsafe")}
        return replace(self, **both, **one)


@dataclass(frozen=True, eq=False)
class NewtonWalk:
    """Proximal Newton steps in their geometry, where the curvature that they go by is c.

    Parameters
    ----------
    root : ndarray of shape (n_coordinates, n_coordinates), lower triangular
        R, the geometry: records are seen as z = R M^(-1/2) x.
    filled : float
        The mean squared norm of z, nearly.
    clips : ndarray of shape (n_updates,)
        Clips of each gradient.
    steepness : ndarray of shape (n_updates,)
        c of each step, 1 where no move met more than what was released.
    curvature : ndarray of shape (n_coordinates, n_coordinates)
        What was released, in the units of sqrt(M_j): without noise and records at their clip, J of
        a squared loss.
    factor : float
        By which it was made larger for rows that were cut short, the noise with it.
    """

    root: np.ndarray
    filled: float
    clips: np.ndarray
    steepness: np.ndarray
    curvature: np.ndarray
    factor: float

    def square(self, edge):
        """The squared norm that rows are clipped to for J, whose noise has this edge a unit of it.

        Two standard deviations above the mean of a normal row, or wider, up to far beyond it, where
        the noise's spectral edge stays below a tenth of the curvature.
        """
        return max(normal_square(self.filled), min(0.1 / max(edge, 1e-300), 10 * self.filled))

    def propagated(self, problem, jacobian, penalty):
        """How the last iterate follows the noise, and the start.

        Backwards, from the last iterate, (c / γ + Λ)⁻¹ b, b the mean model of the tail, to the
        points and gradients of the steps before it, which are divided by their own c.
        """
        n_updates, momentum = len(self.clips), problem.momentum
        start = min(problem.tail_start, n_updates - 1)
        identity, inverses = np.eye(len(jacobian)), {}
        of_point, of_iterate, found = np.zeros((3, *jacobian.shape))
        for t in reversed(range(n_updates)):
            steepness = self.steepness[t] / problem.step_size * identity
            if self.steepness[t] not in inverses:
                inverses[self.steepness[t]] = np.linalg.inv(steepness + penalty)
            of_model = of_iterate @ inverses[self.steepness[t]]
            of_later, of_point = of_point, of_model @ (steepness - jacobian)
            if t >= start:
                last = inverses[self.steepness[-1]] / (n_updates - start)
                of_model = of_model + last
                of_end = self.steepness[-1] / problem.step_size * identity
                of_point = of_point + last @ (of_end - jacobian)
            found += self.clips[t] ** 2 * of_model @ of_model.T
            of_iterate = (1 + momentum) * of_point - momentum * of_later
        return found, of_point - momentum * of_later  # the first point is the start


@dataclass(frozen=True, eq=False)
class DescentWalk:
    """Proximal descent along full gradients with a normalised heavy ball, in the units of sqrt(M).

    Parameters
    ----------
    clip : float
        Clip of each gradient.
    n_updates : int
    size : int
        Number of coordinates.
    filled : float
        Bound on the mean squared norm of z = x / sqrt(M), times the curvature of the loss.
    """

    clip: float
    n_updates: int
    size: int
    filled: float

    def square(self, edge):
        """As of Newton steps: of features with bounds this is the longest row's."""
        return self.filled

    @property
    def root(self):
        """R, the geometry."""
        return np.eye(self.size)

    @property
    def clips(self):
        """The clip of each gradient."""
        return np.full(self.n_updates, self.clip)

    def propagated(self, problem, jacobian, penalty):
        """As of Newton steps; backwards, from what is averaged to each gradient before it.

        v <- β v + (1 - β) (J u + noise),  u <- (u - γ v) / (1 + γ Λ),  Λ diagonal.
        """
        step, momentum = problem.step_size / problem.curvature, problem.momentum
        shrunk = 1 / (1 + step * np.diag(penalty))
        n_averaged = max(1, self.n_updates - problem.tail_start)
        of_iterate, of_velocity, found = np.zeros((3, self.size, self.size))
        for t in range(self.n_updates, 0, -1):
            if t > self.n_updates - n_averaged:
                of_iterate[np.diag_indices(self.size)] += 1 / n_averaged
            of_iterate = of_iterate * shrunk
            of_velocity = of_velocity - step * of_iterate
            of_noise = (1 - momentum) * of_velocity
            found += of_noise @ of_noise.T
            of_iterate = of_iterate + of_noise @ jacobian
            of_velocity = momentum * of_velocity
        return self.clip**2 * found, of_iterate


def _if_regular(found_of):
    """Where matrices that were released are not finite, or have no inverse, nothing is known."""

    @wraps(found_of)
    def found(problem, walk, coef, *args, **kwargs):
        try:
            return found_of(problem, walk, coef, *args, **kwargs)
        except np.linalg.LinAlgError:
            return _nothing(len(coef))

    return found


def _nothing(size):
    nothing = np.full((size, size), np.nan)
    return Inference(nothing, nothing, False, np.zeros(size), np.eye(size), np.zeros((size, 0)))


@_if_regular
def inference_of(
    problem, walk, coef, moments, *, squares, n_records, gradient_noise, moment_noise, is_fixed
):
    """Covariances from released moments, of what they identify.

    Directions in which J is not safely positive are taken to have none: the covariances are those
    of the minimiser in all others. Which coefficients these make up is left to whom knows the units
    of X.

    Parameters
    ----------
    problem : Problem
    walk : NewtonWalk or DescentWalk
    coef : ndarray
        The iterate that the moments are of.
    moments : pair of ndarrays
        J and Q.
    squares : pair of floats
        The squared norms that the rows of J and of Q were clipped to.
    n_records : float
        Public number of records.
    gradient_noise, moment_noise : float
        Standard deviations of the noise: of a gradient over its clip, and of a matrix of moments
        over the squared norm that its rows are clipped to.
    is_fixed : ndarray of bool, shape (n_features,)
        Features of which it is public that they do not vary.

    Returns
    -------
    Inference
    """
    (jacobian, scores), size = moments, len(coef)
    varying = _varying(walk.root, is_fixed)
    edge = (2 * varying.shape[1]) ** 0.5 * moment_noise
    values, vectors = np.linalg.eigh(varying.T @ jacobian @ varying)
    threshold = max(SAFE_JACOBIAN * edge * squares[0], 1e-9 * values.sum())
    is_safe = values > threshold
    if is_safe.any() and not is_safe.all():
        if not _GAP * values[~is_safe].max() < values[is_safe].min():
            return _nothing(size)  # by chance some are safe, and others are not
    safe, unsafe = varying @ vectors[:, is_safe], varying @ vectors[:, ~is_safe]
    if not (is_safe.any() and n_records > size):
        return _nothing(size)
    jacobian = _within(safe, safe.T @ jacobian @ safe)
    values_of_scores, directions = np.linalg.eigh(safe.T @ scores @ safe)
    if not values_of_scores.mean() > edge * squares[1]:
        return _nothing(size)
    values_of_scores = np.maximum(values_of_scores, _LEAST_SCORES * edge * squares[1])
    scores = _within(safe @ directions, np.diag(values_of_scores))
    out, ridge = _out_of(walk, problem), _ridge_of(problem)
    penalty = out.T @ (ridge[:, None] * out)
    mean = out.T @ (ridge * coef)  # minus the mean gradient at the optimum
    # a penalty has a minimum in every direction
    moved = np.eye(size) if ridge.any() else safe
    inverse = _inverse_within(moved, jacobian + penalty)
    sampling = inverse @ (scores - np.outer(mean, mean)) @ inverse / (n_records - size)
    privacy, kept = walk.propagated(problem, jacobian, penalty)
    to_end, left = _left(problem, out, kept, coef, moved)
    privacy = gradient_noise**2 * to_end @ privacy @ to_end.T
    sampling, privacy = (out @ found @ out.T for found in (sampling, privacy))
    variance = np.diag(sampling) + np.diag(privacy)
    if not np.all(left**2 <= _MOST_LEFT**2 * variance):
        return _nothing(size)
    noise = moment_noise * squares[0] * unsafe.shape[1] ** 0.5
    doubt = max(SAFE_JACOBIAN * noise / values[is_safe][0], _ROUNDING)
    return Inference(sampling, privacy, True, left, out @ safe, out @ unsafe, doubt)


@_if_regular
def noise_of(problem, walk, coef, *, before, curvature_noise, gradient_noise, is_fixed):
    """Covariance of the coefficients by the noise alone, of a squared loss without moments.

    It takes the released curvature for J, in the directions in which that is safely positive: to
    first order right where few gradients are at their clip, and too small where many are.

    Parameters
    ----------
    problem : Problem
    walk : NewtonWalk
    coef, before : ndarrays
        The coefficients, and those that the last step began at.
    curvature_noise : float
        Noise of the curvature's diagonal.
    gradient_noise, is_fixed
        As of `inference_of`.

    Returns
    -------
    Inference
        Without what is known of sampling; not valid where the curvature is safely positive in no
        direction, or the steps did not arrive.
    """
    size, varies = len(coef), np.ones(len(coef), dtype=bool)
    varies[: len(is_fixed)] = ~is_fixed
    values, vectors = np.linalg.eigh(walk.curvature[np.ix_(varies, varies)])
    noise = walk.factor * curvature_noise
    edge = (2 * varies.sum()) ** 0.5 * noise
    is_safe = values > _SAFE_CURVATURE * edge
    if not is_safe.any():
        return _nothing(size)
    images = walk.root[:, varies] @ vectors[:, is_safe]
    jacobian = (images * values[is_safe]) @ images.T
    safe, _ = np.linalg.qr(images)
    out = _out_of(walk, problem)
    penalty = out.T @ (_ridge_of(problem)[:, None] * out)
    privacy, kept = walk.propagated(problem, jacobian, penalty)
    privacy = gradient_noise**2 * out @ privacy @ out.T
    _, left = _left(problem, out, kept, coef, safe)
    variance, moved = np.diag(privacy), np.abs(coef - before)
    moved[len(is_fixed) :] = 0.0  # the intercept's step is that of the others
    if not np.all(np.maximum(np.abs(left) / _MOST_LEFT, moved / _MOST_MOVED) ** 2 <= variance):
        return _nothing(size)
    doubt = 2 * _SAFE_CURVATURE * noise * sum(~is_safe) ** 0.5 / values[is_safe][0]
    known = {"privacy": privacy, "valid": True, "doubt": min(max(doubt, _ROUNDING), _MOST_DOUBT)}
    directions = np.eye(size)[:, varies] @ vectors / np.sqrt(problem.smoothness)[:, None]
    known |= {"safe": directions[:, is_safe], "unsafe": directions[:, ~is_safe]}
    return replace(_nothing(size), **known)


def _out_of(walk, problem):
    """From the geometry to coefficients."""
    return walk.root.T / np.sqrt(problem.smoothness)[:, None]


def _ridge_of(problem):
    """The ridge of each coordinate."""
    ridge = np.zeros(problem.n_coordinates)
    ridge[: problem.n_penalized] = problem.penalty.l2
    return ridge


def _varying(root, is_fixed):
    """An orthonormal basis of the directions of the geometry that are not those of fixed features.

    A gradient has none along these.
    """
    fixed = np.linalg.inv(root).T[:, : len(is_fixed)][:, is_fixed]
    basis, _ = np.linalg.qr(fixed, mode="complete")
    return basis[:, fixed.shape[1] :]


def _within(basis, matrix):
    return basis @ matrix @ basis.T


def _inverse_within(basis, matrix):
    """The inverse of what a matrix is along the vectors of a basis; zero along all others."""
    return _within(basis, np.linalg.inv(basis.T @ matrix @ basis))


def _left(problem, out, kept, coef, moved):
    """(I - kept)⁻¹, from where the steps started to where they lead, and what is left of it."""
    to_end = _inverse_within(moved, np.eye(len(kept)) - kept)
    start = 0.0 if problem.start is None else problem.start
    return to_end, out @ (to_end @ kept) @ np.linalg.solve(out, coef - start)
