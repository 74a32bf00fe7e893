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

        A model b leads to the iterate (I / γ + Λ)⁻¹ b, and the next model is (I / γ - J) v less the
        noise of its gradient, v being Nesterov's point. The last iterate is of the tail's mean.
        """
        identity, n_updates = np.eye(len(jacobian)), len(self.clips)
        inverse = np.linalg.inv(identity / problem.step_size + penalty)
        slope = identity / problem.step_size - jacobian
        # what the noise of one gradient does to its own model and to those after it, in all
        model, total, sums = -identity, np.zeros_like(jacobian), []
        before = now = np.zeros_like(jacobian)
        for _ in range(n_updates):
            total = total + model
            sums.append(total)
            before, now = now, inverse @ model
            model = slope @ (now + problem.momentum * (now - before))
        tail = n_updates - 1 if problem.averaging == "last" else problem.tail_start
        found = np.zeros_like(jacobian)
        for t, clip in enumerate(self.clips):
            answer = sums[n_updates - 1 - t] - (sums[tail - 1 - t] if t < tail else 0.0)
            found += (clip / (n_updates - tail)) ** 2 * (answer @ answer.T)
        return inverse @ found @ inverse.T


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
