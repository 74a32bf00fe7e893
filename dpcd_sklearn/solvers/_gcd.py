"""DP-GCD: what is stated of it, its recipes and its plan."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from ..loops import _gcd
from ..penalties import RULES
from ..plan._solver import COUNT_OR_NONE, INNER, SHARE, Solver, parameters_of
from ..privacy.accounting._calibration import greedy_fit_event
from ..utils._compat import StrOptions
from ..utils._typing import Auto
from ._descent_recipe import CoordinatePlan, between, plain_steps


def greedy_recipe(signal, bounded_curvature):
    """DP-GCD: few long steps where noise dominates, more and shorter ones where it does not.

    Steps longer than 2 / M_j are safe in practice only, for the logistic loss: M_j from bounds is
    several times the true curvature, and a clipped derivative bounds every move. The curvature of
    residuals does not fade, so their steps are 1.5 / M_j, which are safe.
    """
    n_steps = between(max(min(signal, 150.0), signal / 10), 10.0, 600.0)
    step_size = between(12.0 * (200 / signal) ** 0.5, 8.0, 12.0) if bounded_curvature else 1.5
    # a clip that vanishes with the signal: noise has nothing to fill then
    clip = between(0.2 * (signal / 100) ** 0.4, 0.2, 0.5) * min(signal / 15, 1.0)
    return plain_steps(n_steps, step_size, clip, "last")


def greedy_softmax_recipe(signal):
    """DP-GCD over more than two classes: a feature moves in all of them.

    Few updates reach every feature, so many with short clips do better than a few long ones.
    """
    clip = between(0.01 * math.sqrt(signal), 0.03, 0.5)
    return plain_steps(between(2.0 * signal, 30.0, 600.0), 16.0, clip, "last")


class GCDPlan(CoordinatePlan):
    """DP-GCD: the coordinates that promise most."""

    solve = staticmethod(_gcd.solve)
    noiseless_max_iter = 1_000_000

    @cached_property
    def recipe(self):
        if self.request.n_outputs > 1:
            return greedy_softmax_recipe(self.request.signal)
        return greedy_recipe(self.request.signal, self.request.n_classes > 0)

    @property
    def loss(self):
        loss = self.request.loss
        if self.request.n_outputs == 1 or not self.request.private:
            return loss
        # at C_kj for a feature at its scale: within its bounds no coordinate is clipped by itself
        share = self.clip / self._largest_gradient
        return type(loss)(share * loss.curvature**0.5)

    @property
    def known_of_questions(self):
        # of the start, at zero; where it goes from there is up to the noise
        problem = self.problem
        smoothness = float(np.min(problem.smoothness))
        scores = (problem.penalty.greedy_score(problem.rule, 0, 0, smoothness, d) for d in (-1, 1))
        largest = max(abs(score) if math.isfinite(score) else 0.0 for score in scores)
        return {"largest_score": largest, "step": problem.step_size / problem.curvature}

    @property
    def _n_chosen(self):
        n_candidates = self.request.n_outputs * self.request.n_coordinates
        return min(self.request.solver.block_size, n_candidates)

    @property
    def curvature(self):
        return self.geometry.spread(self._n_chosen)

    @property
    def extra(self):
        rule = RULES[self.request.solver.rule]
        return {"rule": rule, "n_chosen": self._n_chosen, "n_inner": self._n_inner}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates * self._n_chosen
        share = request.solver.selection_share
        return greedy_fit_event(request.budget, count, share)


@dataclass(eq=False, repr=False)
class GCD(Solver):
    """Greedy coordinate descent (DP-GCD): the coordinates that promise most.

    Parameters
    ----------
    rule : {"gs-s", "gs-r", "gs-q"}, default="gs-r"
        Score of a coordinate: the slope of the objective ("gs-s"), the length of the proximal step
        ("gs-r"), or the root of twice the decrease that it promises ("gs-q"); each in the norm of
        M_j.
    block_size : int >= 1, default=1
        Number of coordinates that an update chooses and moves.
    selection : {"full", "lazy"}, default="full"
        How coordinates are chosen: by one random draw for each candidate, or by a few in all
        ("lazy"), with the same law at the same privacy loss and many times faster where features
        are many. Its **running time depends on records**: use it only where nobody who must not
        learn about them can time the fit. More than 6 coordinates at once are drawn in full.
    selection_share : float in (0, 1), default=0.8
        Share of the privacy loss (η²/8 against 1/(2 z²)) that goes to choosing coordinates; the
        rest goes to the partial derivatives.
    step_size : float in (0, 1e15] or "auto", default="auto"
        γ: coordinate j moves with the step γ / (λ M_j), λ a public bound on how much steeper than
        coordinates a set of `block_size` of them is.
    averaging : {"auto", "last", "tail", "periodic"}, default="auto"
        See :class:`CD`; "auto" is "last".
    n_inner : int >= 1, default=None
        See :class:`CD`.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2023). High-dimensional private empirical risk minimization
    by greedy coordinate descent. AISTATS. Algorithm 1, mended.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearClassifier
    >>> from dpcd_sklearn.solvers import GCD
    >>> DPLinearClassifier(solver=GCD("gs-s", block_size=4)).get_params()["solver__rule"]
    'gs-s'
    """

    word = "gcd"
    steps_by_coordinate = True
    planned_by = GCDPlan
    _parameter_constraints = parameters_of(
        **INNER
        | {
            "rule": [StrOptions(set(RULES))],
            "block_size": COUNT_OR_NONE[1:],
            "selection": [StrOptions({"full", "lazy"})],
            "selection_share": [SHARE],
        }
    )

    rule: str = "gs-r"
    _: KW_ONLY
    block_size: int | None = 1
    selection: str = "full"
    selection_share: float = 0.8
    step_size: Auto = "auto"
    averaging: str = "auto"
    n_inner: int | None = None
