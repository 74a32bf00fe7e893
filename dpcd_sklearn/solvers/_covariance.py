"""Covariances of coefficients, from moments that were released: post-processing, and no records.

In the coordinates of the geometry, where gradients are released, J is the mean derivative of the
clipped gradients, Q their second moment and Λ the ridge. The coefficients scatter by

    sampling   (J + Λ)⁻¹ (Q - ḡ ḡᵀ) (J + Λ)⁻¹ / (n - p)
    privacy    the noise of all gradients, by the recursion of the solver's steps.

The recursion is exact for linear gradients (squared loss, no record at its clip) and the true J;
otherwise it is of first order.
"""

from dataclasses import dataclass

import numpy as np

# Least eigenvalue of J in spectral edges of its noise: below it inverses are far from linear in it.
_SAFE_JACOBIAN = 4.0
_SAFE_SCORES = 1.0


@dataclass(frozen=True, eq=False)
class Inference:
    """Covariances of the scaled problem's coefficients.

    Attributes
    ----------
    sampling, privacy : ndarrays of shape (n_coordinates, n_coordinates)
        NaN where the moments are not safely positive.
    valid : bool
    """

    sampling: np.ndarray
    privacy: np.ndarray
    valid: bool


@dataclass(frozen=True, eq=False)
class NewtonWalk:
    """Proximal Newton steps in their geometry, where the curvature that they go by is one.

    Parameters
    ----------
    root : ndarray of shape (n_coordinates, n_coordinates), lower triangular
        R, the geometry: records are seen as z = R M^(-1/2) x.
    filled : float
        The mean squared norm of z, nearly.
    clips : ndarray of shape (n_updates,)
        Of each gradient.
    """

    root: np.ndarray
    filled: float
    clips: np.ndarray

    def of_noise(self, problem, jacobian, penalty):
        """Covariance of the last iterate, for gradients whose noise is their clip times N(0, I).

        The noise of gradient s is in model s, and through iterates in those after it. The mean
        model b of the tail leads to the last iterate, (I / γ + Λ)⁻¹ b.
        """
        identity, n_updates = np.eye(len(jacobian)), len(self.clips)
        inverse = np.linalg.inv(identity / problem.step_size + penalty)
        moved = (identity / problem.step_size - jacobian) @ inverse
        start = min(problem.tail_start, n_updates - 1)
        all_models, before_tail = (_responses(moved, problem.momentum) for _ in range(2))
        found = np.zeros_like(jacobian)
        for s in reversed(range(n_updates)):
            response = next(all_models)
            if s < start:
                response = response - next(before_tail)
            found += self.clips[s] ** 2 * response @ response.T
        return inverse @ found @ inverse.T / (n_updates - start) ** 2


def _responses(moved, momentum):
    """By how much noise moves the sum of k = 1, 2, ... models, of which the first one has it.

    A model's minimiser is where the next one is made, but for momentum, which adds a share of the
    last move.
    """
    total, before, last = np.zeros_like(moved), np.zeros_like(moved), np.eye(len(moved))
    while True:
        total = total + last
        yield total
        before, last = last, moved @ ((1 + momentum) * last - momentum * before)


def inference_of(problem, walk, coef, moments, *, square, n_records, gradient_noise, moment_noise):
    """Covariances from released moments.

    Parameters
    ----------
    problem : Problem
    walk : NewtonWalk
    coef : ndarray
        The iterate that the moments are of.
    moments : pair of ndarrays
        J and Q.
    square : float
        The squared norm that the rows of J were clipped to.
    n_records : float
        Public number of records.
    gradient_noise, moment_noise : float
        Standard deviations of the noise: of a gradient over its clip, and of a matrix of moments
        over the squared norm that its rows are clipped to.

    Returns
    -------
    Inference
    """
    (jacobian, scores), size = moments, len(coef)
    edge = (2 * size) ** 0.5 * moment_noise
    least = [np.linalg.eigvalsh(matrix)[0] for matrix in moments]
    rounding = 1e-9 * np.trace(jacobian)
    valid = bool(
        least[0] > max(_SAFE_JACOBIAN * edge * square, rounding)
        and least[1] > _SAFE_SCORES * edge * walk.clips[-1] ** 2
        and n_records > size
    )
    if not valid:
        nothing = np.full((size, size), np.nan)
        return Inference(nothing, nothing, False)
    out = walk.root.T / np.sqrt(problem.smoothness)[:, None]  # from the geometry to coefficients
    ridge = np.zeros(size)
    ridge[: problem.n_penalized] = problem.penalty.l2
    penalty = out.T @ (ridge[:, None] * out)
    mean = out.T @ (ridge * coef)  # minus the mean gradient at the optimum
    inverse = np.linalg.inv(jacobian + penalty)
    sampling = inverse @ (scores - np.outer(mean, mean)) @ inverse / (n_records - size)
    privacy = gradient_noise**2 * walk.of_noise(problem, jacobian, penalty)
    return Inference(out @ sampling @ out.T, out @ privacy @ out.T, True)
