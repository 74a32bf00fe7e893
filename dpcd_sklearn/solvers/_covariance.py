"""Covariances of coefficients, from moments that were released: post-processing, and no records.

In the coordinates of the geometry, where gradients are released, J is the mean derivative of the
clipped gradients, Q their second moment and Λ the ridge. The coefficients scatter by

    sampling   (J + Λ)⁻¹ (Q - ḡ ḡᵀ) (J + Λ)⁻¹ / (n - p)
    privacy    Σ_k σ_k² B_k B_kᵀ,    B_k how the last iterate follows the noise of gradient k.

B_k is exact for linear gradients (squared loss, no record at its clip) and the true J; otherwise it
is of first order.
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


def inference_of(problem, root, coef, clips, moments, square):
    """Covariances from released moments.

    Parameters
    ----------
    problem : Problem
    root : ndarray
        R, the geometry: records are seen as R x / sqrt(M).
    coef : ndarray
        The iterate that the moments are of.
    clips : list of float
        Of each gradient.
    moments : pair of ndarrays
        J and Q.
    square : float
        The squared norm that the rows of J were clipped to.

    Returns
    -------
    Inference
    """
    (jacobian, scores), size = moments, len(coef)
    edge = (2 * size) ** 0.5 * problem.moment_noise
    out = root.T / np.sqrt(problem.smoothness)[:, None]  # from the geometry to coefficients
    least = [np.linalg.eigvalsh(matrix)[0] for matrix in moments]
    rounding = 1e-9 * np.trace(jacobian)
    valid = bool(
        least[0] > max(_SAFE_JACOBIAN * edge * square, rounding)
        and least[1] > _SAFE_SCORES * edge * clips[-1] ** 2
        and problem.n_records > size
    )
    if not valid:
        nothing = np.full((size, size), np.nan)
        return Inference(nothing, nothing, False)
    ridge = np.zeros(size)
    ridge[: problem.n_penalized] = problem.penalty.l2
    penalty = out.T @ (ridge[:, None] * out)
    mean = out.T @ (ridge * coef)  # minus the mean gradient at the optimum
    inverse = np.linalg.inv(jacobian + penalty)
    sampling = inverse @ (scores - np.outer(mean, mean)) @ inverse / (problem.n_records - size)
    privacy = _of_noise(problem, jacobian, penalty, clips)
    return Inference(out @ sampling @ out.T, out @ privacy @ out.T, True)


def _of_noise(problem, jacobian, penalty, clips):
    """Σ_k σ_k² B_k B_kᵀ, by the recursion of the steps with linear gradients."""
    size, n_steps = len(jacobian), len(clips)
    if problem.gradient_noise == 0:
        return np.zeros((size, size))
    inverse = np.linalg.inv(np.eye(size) / problem.step_size + penalty)
    kept = np.eye(size) / problem.step_size - jacobian
    follows = [np.zeros((n_steps, size, size))]  # of each iterate: on the noise of each gradient
    for t in range(n_steps):
        first = t if problem.averaging == "last" else min(t, problem.tail_start)
        n_models = t + 1 - first
        moved = kept @ (sum(follows[first : t + 1]) / n_models)
        moved[first : t + 1] -= np.eye(size) / n_models
        follows.append(inverse @ moved)
    scales = problem.gradient_noise * np.array(clips)
    return np.einsum("k,kij,klj->il", scales**2, follows[-1], follows[-1])
