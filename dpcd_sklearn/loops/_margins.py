"""Margins as released moments of rows tell them, and how far a softmax is from its bound there.

A curvature of labels is bounded whatever the margins are, and where classes part it is a fraction
of the bound. Margins of rows with known moments are taken to be normal: what follows is made of
released numbers alone.
"""

import numpy as np
from scipy.special import softmax

# Directions of margins, each with its opposite: more of them change little.
_N_DRAWS = 256
# Bounds of the largest curvature of a softmax, and of one margin that stands for two.
_BOUND, _BOUND_OF_ONE = 0.5, 0.25
# No curvature is taken to be a smaller share of its bound, or of the largest one: margins are not
# quite normal, and noise moves farther what is flat.
_LEAST, _FLATTEST = 0.1, 0.33


def normal_margins(mean, covariance):
    """Deviations of normal margins from their mean, the same draws for all fits.

    Parameters
    ----------
    mean : ndarray of shape (n_outputs,)
    covariance : ndarray of shape (n_outputs, n_outputs)

    Returns
    -------
    ndarray of shape (n_draws, n_outputs)
    """
    values, vectors = np.linalg.eigh(covariance)
    draws = np.random.default_rng(0).standard_normal((_N_DRAWS, len(mean)))
    return np.vstack((draws, -draws)) * np.sqrt(values.clip(min=0.0)) @ vectors.T


def of_two_classes(mean, covariance):
    """Margins of none and of one, of the margin of a single output."""
    return np.append(0.0, mean), np.pad(covariance, ((1, 0), (1, 0)))


def shares_of_bound(curvature, coef, has_constant):
    """The curvature of a softmax over its bound, along axes of the outputs.

    Parameters
    ----------
    curvature : ndarray of shape (n_coordinates, n_coordinates)
        Second moments of rows times the bound.
    coef : ndarray of shape (n_outputs, n_coordinates)
        One output for two classes.
    has_constant : bool
        Whether the last coordinate is a constant of all rows.

    Returns
    -------
    shares : ndarray of shape (n_outputs,)
    axes : ndarray of shape (n_outputs, n_outputs), orthogonal
        A column for each share.
    """
    n_outputs = len(coef)
    moments = curvature / (_BOUND_OF_ONE if n_outputs == 1 else _BOUND)
    with np.errstate(all="ignore"):
        mean = np.zeros(n_outputs)
        if has_constant:
            mean = coef @ moments[:, -1] / np.sqrt(moments[-1, -1])
        covariance = coef @ moments @ coef.T - np.outer(mean, mean)
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        return np.ones(n_outputs), np.eye(n_outputs)  # noise left no moments
    if n_outputs == 1:
        mean, covariance = of_two_classes(mean, covariance)
    chances = softmax(mean + normal_margins(mean, covariance), axis=1)
    of_softmax = np.diag(chances.mean(axis=0)) - chances.T @ chances / len(chances)
    values, axes = np.linalg.eigh(of_softmax / _BOUND)
    shares = np.clip(values, max(_LEAST, _FLATTEST * values[-1]), 1.0)
    return (shares[-1:], np.eye(1)) if n_outputs == 1 else (shares, axes)
