"""DP Frank–Wolfe: what is stated of it, its recipe and its plan."""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..loops import _frank_wolfe
from ..plan._solver import Solver
from ..plan._solver_plan import SINGLE_OUTPUT
from ..privacy.accounting._calibration import greedy_fit_event
from ..utils._compat import StrOptions
from ._descent_recipe import CoordinatePlan, between, plain_steps


def vertex_recipe(signal):
    """DP Frank–Wolfe: a few vertices, each found with less noise than many would be."""
    clip = between(0.2 * (signal / 100) ** 0.4, 0.2, 0.5)
    return plain_steps(between(0.3 * signal, 10.0, 100.0), 1.0, clip, "last")


class FrankWolfePlan(CoordinatePlan):
    """DP Frank–Wolfe: nothing but vertices of an l1 ball is released."""

    solve = staticmethod(_frank_wolfe.solve)
    losses = SINGLE_OUTPUT
    penalties = {None}
    constraints = {"l1_ball"}
    forgets_its_start = True
    noiseless_max_iter = 10_000

    @classmethod
    def needs(cls, request):
        if (needs := super().needs(request)) is not None:
            return needs
        if request.fit_intercept and not request.penalize_intercept:
            return "fit_intercept=False or penalize_intercept=True: its steps need a bounded set"
        return None

    def _in_its_terms(self, geometry):
        # a vertex is chosen by unscaled derivatives: one M for all makes their noise alike
        widest = float(np.max(geometry.smoothness))
        return replace(geometry, smoothness=np.full_like(geometry.smoothness, widest))

    @property
    def known_of_questions(self):
        # iterates stay in the ball, up to rounding; sqrt(M_j) times them is public
        root = math.sqrt(float(np.max(self.problem.smoothness)))
        return {"largest_score": 1.001 * self.problem.constraint.radius * root}

    @cached_property
    def recipe(self):
        return vertex_recipe(self.request.signal)

    @property
    def extra(self):
        return {"constraint": self._constraint()}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        return greedy_fit_event(request.budget, count, 1.0)


class FrankWolfe(Solver):
    """Frank–Wolfe steps: nothing but vertices of an l1 ball is released.

    Its steps are its own, and `coef_` is the last iterate.

    Parameters
    ----------
    selection : {"full", "lazy"}, default="full"
        See :class:`GCD`.

    References
    ----------
    Talwar, Guha Thakurta & Zhang (2015). Nearly optimal private LASSO. NIPS.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import FrankWolfe
    >>> FrankWolfe(selection="lazy")
    FrankWolfe(selection='lazy')
    """

    word = "frank-wolfe"
    planned_by = FrankWolfePlan
    _parameter_constraints = {"selection": [StrOptions({"full", "lazy"})]}

    def __init__(self, selection: str = "full"):
        self.selection = selection
