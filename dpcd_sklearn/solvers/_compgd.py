"""DP-CompGD: what is stated of it, its recipe and its plan."""

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

from ..loops import _compgd
from ..plan._solver import COUNT_OR_NONE, DECAY, RATE, WEIGHTED, Solver, parameters_of
from ..plan._solver_plan import SINGLE_OUTPUT
from ..utils._typing import Auto
from ._descent_recipe import GradientPlan, between, plain_steps


def compressed_recipe(signal, share, n_classes):
    """DP-CompGD in a share m / p of the dimensions: each step sees that share of the gradient."""
    if n_classes:
        # Clipped derivatives bound every step: it may be longer than what is stable of squares.
        n_iter, step_size = signal / share, 10.8
        clip = between(0.15 * (signal / 30) ** 0.25, 0.15, 0.75) * min(signal / 15, 1.0)
    else:
        # Many steps under a narrow clip, which vanishes with the signal: noise has nothing to fill.
        n_iter, step_size = 3.0 * signal / share, 1.8
        clip = min(0.01 * math.sqrt(signal) * min(signal / 20, 1.0), 0.75)
    return plain_steps(between(n_iter, 100.0, 2_000.0), step_size, clip)


class CompGDPlan(GradientPlan):
    """DP-CompGD: gradients in a few random directions; with a rate below one, DP-CompMiniBatch."""

    solve = staticmethod(_compgd.solve)
    losses = SINGLE_OUTPUT
    penalties = {None, "l2"}
    constraints = {None, "l1_ball", "l2_ball"}
    noiseless_max_iter = 20_000

    @cached_property
    def recipe(self):
        share = self._n_directions / self.request.n_coordinates
        chosen = compressed_recipe(self.request.signal, share, self.request.n_classes)
        return chosen | {"max_iter": chosen["max_iter"] * self.rate}

    @property
    def extra(self):
        own = {"n_directions": self._n_directions, "constraint": self._constraint()}
        return super().extra | own

    @cached_property
    def problem(self):
        is_stated = self.request.solver.step_size != "auto"
        return super().problem if is_stated else _with_shorter_steps(super().problem)

    @cached_property
    def alone(self):
        longest = _longest_step(self.problem)
        if self.problem.step_size > longest:
            raise ValueError(
                f"step_size={self.request.solver.step_size!r} with alpha={self.request.alpha!r} "
                f"diverges: it must be at most {longest:.6g} for solver='compgd'"
            )
        return super().alone

    def _located(self, found, loss):
        # the step was sound in unit scale
        other = super()._located(found, loss)
        return other.changed(problem=_with_shorter_steps(other.problem))

    @property
    def _n_directions(self):
        n_coordinates = self.request.n_coordinates
        if not self.request.private:
            return n_coordinates  # fewer would add a variance that only noise is worth
        auto = math.ceil(4 * math.log(n_coordinates + 1))
        return min(self.request.solver.n_directions or auto, n_coordinates)


def _longest_step(problem):
    # the ridge is part of the gradient, and no clip bounds it
    l2, least = problem.penalty.l2, problem.curvature * float(problem.smoothness.min())
    return 2 * (least / l2 + 1) if l2 else math.inf


def _with_shorter_steps(problem):
    # 0.9 leaves as much room as the 1.8 of a regression does
    return replace(problem, step_size=min(problem.step_size, 0.9 * _longest_step(problem)))


@dataclass(eq=False, repr=False)
class CompGD(Solver):
    """Gradients in a few random directions (DP-CompGD, DP-CompMiniBatch).

    Parameters
    ----------
    n_directions : int >= 1, default=None
        m, the number of random directions; None is 4 log(p' + 1), rounded up, for p' coordinates
        with the intercept. More than p' are p', and so is every number with epsilon = inf.
    sampling_rate : float in (0, 1], default=1.0
        Probability of a record to be in a mini-batch; 1 is all records in every update.
    step_size : float in (0, 1e15] or "auto", default="auto"
        See :class:`SkGD`.
    step_decay : float in [0, inf), default=0.0
        The step of update t = 1, 2, ... is multiplied by t^(-step_decay).
    averaging : {"auto", "last", "tail", "weighted"}, default="auto"
        What `coef_` is: the last iterate, the mean of the last half of them ("tail", "auto"), or of
        all, weighted by their steps ("weighted").

    References
    ----------
    Huang, Lei & Kabán (2023). Optimization and learning with randomly compressed gradient updates.
    Neural Computation. Mended: each record's projection is clipped.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import CompGD
    >>> CompGD(sampling_rate=0.1)
    CompGD(sampling_rate=0.1)
    """

    word = "compgd"
    planned_by = CompGDPlan
    _parameter_constraints = parameters_of(
        WEIGHTED, n_directions=COUNT_OR_NONE, sampling_rate=RATE[1:], step_decay=DECAY
    )

    n_directions: int | None = None
    _: KW_ONLY
    sampling_rate: Auto = 1.0
    step_size: Auto = "auto"
    step_decay: float = 0.0
    averaging: str = "auto"
