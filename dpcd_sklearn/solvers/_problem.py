"""What a solver knows of a problem (frozen) and what it hands back; all of it public."""

from dataclasses import dataclass

import numpy as np

from ..penalties._base import Penalty


@dataclass(frozen=True, eq=False)
class Problem:
    """A composite problem as a solver sees it: no records.

    Parameters
    ----------
    penalty : Penalty
        Applies to the first `n_penalized` coordinates; an intercept comes last and is free.
    smoothness : ndarray of shape (n_coordinates,)
        Coordinate-wise smoothness M_j of the mean loss.
    n_penalized : int
    n_updates : int
        T, fixed beforehand.
    step_size : float
        γ: coordinate j moves with the step γ / M_j.
    momentum : float in [0, 1)
        Normalised heavy ball, for full and block gradients.
    averaging : {"last", "tail"}
        The last iterate, or the mean of the last half of the iterates.
    tol : float
        0 in a private fit. Without noise: stop when a sweep moves no coefficient by more than tol
        times the largest one, in the norm of sqrt(M_j).
    """

    penalty: Penalty
    smoothness: np.ndarray
    n_penalized: int
    n_updates: int
    step_size: float = 1.0
    momentum: float = 0.0
    averaging: str = "last"
    tol: float = 0.0

    @property
    def n_coordinates(self):
        """Number of coordinates, the intercept included."""
        return len(self.smoothness)

    @property
    def tail_start(self):
        """The update after which iterates enter the average; n_updates for the last one."""
        return self.n_updates // 2 if self.averaging == "tail" else self.n_updates

    def sweep_moved(self, before, after):
        """Whether a sweep without noise moved any coefficient by more than tol."""
        roots = np.sqrt(self.smoothness)
        return np.max(np.abs(after - before) * roots) > self.tol * np.max(np.abs(after) * roots)


@dataclass(frozen=True, eq=False)
class Solution:
    """The released iterate, and how many updates led to it."""

    coef: np.ndarray
    n_updates: int


def refused():
    """The error of a solver that asked for more releases than were paid for."""
    return RuntimeError(
        "the oracle refused a release: the fit's receipt is used up, or noise or memory ran out; "
        "what was charged stays charged"
    )
