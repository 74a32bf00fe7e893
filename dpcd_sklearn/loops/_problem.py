"""The public problem that a solver knows (frozen), and the solution that it hands back."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import expit

from ..penalties._penalty import Penalty, Rule
from ..utils._interrupts import held


@dataclass(frozen=True, eq=False)
class Problem:
    """A composite problem as a solver sees it: no records.

    Parameters
    ----------
    penalty : Penalty
        Applies to the first `n_penalized` coordinates of every output; an intercept comes last
        and is free.
    smoothness : ndarray of shape (n_coordinates,)
        Coordinate-wise smoothness M_j of the mean loss, the same in every output.
    n_penalized : int
    n_updates : int
        T, fixed beforehand.
    step_size : float
        γ: coordinate j moves with the step γ / (curvature M_j).
    curvature : float, >= 1
        How much steeper than its coordinates a move of several may be.
    momentum : float in [0, 1)
        Normalised heavy ball, for full and block gradients.
    averaging : {"last", "tail", "periodic", "weighted"}
        The last iterate, the mean of the last iterates (half of them), a restart from the mean of
        every `n_inner` iterates, or the mean of all of them weighted by their step sizes.
    tol : float
        0 in a private fit. Without noise: stop when a sweep moves no coefficient by more than tol
        times the largest one, in the norm of sqrt(M_j).
    n_outputs : int
        Number of coefficient vectors.
    step_decay : float, >= 0
        The step of update t is γ t^(-step_decay), for the solvers on mean gradients.
    n_inner : int
        K: updates of a period of averaging, or after each full gradient (SVRG).
    path_every : int
        Updates between two iterates that are kept; 0 keeps none.
    rule : Rule
        Score of a greedy choice.
    n_chosen : int
        Coordinates of one greedy choice.
    sampling_rate : float in (0, 1]
        Share of the records in one mini-batch.
    n_directions : int
        m, dimensions of a compressed gradient (CompGD).
    constraint : object of `penalties` with ``project``, or None
        A convex set of the penalised coefficients (CompGD, Frank–Wolfe).
    start : ndarray of shape (n_outputs * n_coordinates,) or None
        Where the first update starts from; None is zero.
    watch : callable or None
        Is told the number of updates so far, after every `watch_every` and at the end.
    watch_every : int
    curvature_floor : float
        Least eigenvalue of a noisy curvature matrix (Newton).
    curvature_edge : float
        Spectral edge of its noise, where eigenvalues are to be cleaned of it (Newton).
    mean_square : float
        Mean square of a row's penalised coordinates, in the units of sqrt(M_j) and before any row
        was cut short: what it is beyond doubt, or 0 (Newton).
    unit_clips : pair of floats
        Clips of a derivative times a row of which each squared entry is one on average, of the
        first gradient and after the head (Newton).
    margin_trust : float in [0, 1]
        How far a loss of labels is taken to curve as little as at normal margins, as an exponent;
        with 0 its bound counts (Newton).
    longest_move : float
        The root mean square of margins that one update moves, at most (Newton).
    gradient_noise : float
        Standard deviation of a released gradient's noise over its clip; with inf nothing is learnt
        of the curvature from gradients (Newton).
    times : float, >= 1
        How many times the curvature of a row that of a person is (Newton).
    head : float in [0, 1)
        Share of the updates before those that "tail" averages.
    zero_sum : bool
        Whether gradients add up to zero over outputs (Newton).
    """

    penalty: Penalty
    smoothness: np.ndarray
    n_penalized: int
    n_updates: int
    step_size: float = 1.0
    curvature: float = 1.0
    momentum: float = 0.0
    averaging: str = "last"
    tol: float = 0.0
    n_outputs: int = 1
    step_decay: float = 0.0
    n_inner: int = 1
    path_every: int = 0
    rule: Rule = Rule.GS_R
    n_chosen: int = 1
    sampling_rate: float = 1.0
    n_directions: int = 1
    constraint: object = None
    start: np.ndarray | None = None
    watch: object = None
    watch_every: int = 1
    curvature_floor: float = 0.0
    curvature_edge: float = 0.0
    mean_square: float = 0.0
    unit_clips: tuple = (1.0, 1.0)
    margin_trust: float = 0.0
    longest_move: float = math.inf
    gradient_noise: float = math.inf
    times: float = 1.0
    head: float = 0.5
    zero_sum: bool = False

    @property
    def n_coordinates(self):
        """Number of coordinates, the intercept included."""
        return len(self.smoothness)

    @property
    def tail_start(self):
        """The update after which iterates enter the average; n_updates for the last one."""
        if self.averaging == "last":
            return self.n_updates
        return int(self.head * self.n_updates) if self.averaging == "tail" else 0

    def sweep_moved(self, before, after):
        """Whether a sweep without noise moved any coefficient by more than tol."""
        roots = np.sqrt(self.smoothness)
        return np.max(np.abs(after - before) * roots) > self.tol * np.max(np.abs(after) * roots)


@dataclass(frozen=True, eq=False)
class Tail:
    """Means over the models that the coefficients are made of, all in the units of sqrt(M_j).

    Attributes
    ----------
    point, gradient : ndarrays of shape (n_outputs, n_coordinates)
        Where gradients were released, and what was.
    second_moments : ndarray of shape (n_coordinates, n_coordinates)
        Second moments of rows, as they were released, times the curvature of the loss.
    """

    point: np.ndarray
    gradient: np.ndarray
    second_moments: np.ndarray


@dataclass(frozen=True, eq=False)
class Solution:
    """The released iterate, how many updates led to it, and iterates on the way if asked for.

    Attributes
    ----------
    coef : ndarray of shape (n_coordinates,) or (n_outputs, n_coordinates)
    n_updates : int
    path : ndarray of shape (n_kept, *coef.shape) or None
    converged : bool
        Without noise: whether a sweep moved nothing by more than tol.
    walk : object of `_covariance`, or None
        How the coefficients follow the noise, where that is known.
    inference : Inference or None
    noise : Inference or None
        Covariance by the noise alone, where it is known without an inference.
    tail : Tail or None
        Tail of Newton steps.
    log_of_mean : float or None
        Logarithm of the mean of exp(margin), where released moments tell it.
    strengths : tuple of StrengthPath or None
        For each target, models along strengths of the penalty where one of them was chosen.
    """

    coef: np.ndarray
    n_updates: int
    path: np.ndarray | None = None
    converged: bool = False
    walk: object = None
    inference: object = None
    noise: object = None
    tail: Tail | None = None
    log_of_mean: float | None = None
    strengths: tuple = (None,)


def refused():
    """The error of a solver that asked for more releases than were paid for, or was interrupted."""
    return held(
        RuntimeError(
            "the oracle refused a release: the fit's receipt is used up, or noise or memory ran "
            "out; what was charged stays charged"
        )
    )


# ---- Margins as released moments of rows tell them, and how far a softmax is from its bound there.
#
# A curvature of labels is bounded whatever the margins are, and where classes part it is a fraction
# of the bound. Margins of rows with known moments are taken to be normal: what follows is made of
# released numbers alone.

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
    return _normal_draws(len(mean)) * np.sqrt(values.clip(min=0.0)) @ vectors.T


@lru_cache(maxsize=8)  # steps ask for them again and again
def _normal_draws(n_outputs):
    draws = np.random.default_rng(0).standard_normal((_N_DRAWS, n_outputs))
    return np.vstack((draws, -draws))


def softmax(margins):
    """Chances of classes, a row for each row of margins, in less time than SciPy's."""
    of_classes = np.ascontiguousarray(margins.T)  # of few classes sums along rows are slow
    powers = np.exp(of_classes - of_classes.max(axis=0))
    return (powers / powers.sum(axis=0)).T


def moments_of_margins(moments, coef, has_constant):
    """Mean and covariance of margins.

    Parameters
    ----------
    moments : ndarray of shape (n_coordinates, n_coordinates)
        Second moments of rows.
    coef : ndarray of shape (n_outputs, n_coordinates)
    has_constant : bool
        Whether the last coordinate is a constant of all rows.
    """
    with np.errstate(all="ignore"):
        mean = np.zeros(len(coef))
        if has_constant:
            mean = coef @ moments[:, -1] / np.sqrt(moments[-1, -1])
        return mean, coef @ moments @ coef.T - np.outer(mean, mean)


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
    bound = _BOUND_OF_ONE if n_outputs == 1 else _BOUND
    mean, covariance = moments_of_margins(curvature / bound, coef, has_constant)
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        return np.ones(n_outputs), np.eye(n_outputs)  # noise left no moments
    if n_outputs == 1:
        moved = math.sqrt(max(covariance[0, 0], 0.0)) * _normal_draws(2)[:, 1]
        chances = expit(mean + moved)
        share = np.mean(chances * (1 - chances)) / bound
        return np.clip([share], _LEAST, 1.0), np.eye(1)
    chances = softmax(mean + normal_margins(mean, covariance))
    of_softmax = np.diag(chances.mean(axis=0)) - chances.T @ chances / len(chances)
    values, axes = np.linalg.eigh(of_softmax / bound)
    return np.clip(values, max(_LEAST, _FLATTEST * values[-1]), 1.0), axes
