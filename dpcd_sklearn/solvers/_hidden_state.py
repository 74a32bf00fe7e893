"""Full-batch DP-SkGD of which nothing but the last iterate is released."""

import math
from functools import cached_property

from ..loops._problem import Solution
from ..plan._geometry import isotropic
from ..privacy.accounting._calibration import (
    hidden_state_fit_event,
)
from ..privacy.mechanisms import _hidden_state
from ..privacy.mechanisms._hidden_state import Descent, contraction
from ._descent_recipe import between
from ._skgd import SkGDPlan


def hidden_state_recipe(signal, ratio):
    """DP-SkGD of which only the last iterate is released: the noise of early steps fades.

    The longest safe step, 2 / (m + M), and steps enough to forget the start; `ratio` is that of the
    smoothness to the ridge.
    """
    return {
        "max_iter": math.ceil(between(2.0 * (1.0 + ratio), 20.0, max(100.0, 2.0 * signal))),
        "step_size": 2.0 / (1.0 + 2.0 / max(ratio, 1e-300)),
        "momentum": 0.0,
        "averaging": "last",
        "residual_clip": between(0.1 * (signal / 30) ** 0.25, 0.1, 0.5),
    }


class HiddenStatePlan(SkGDPlan):
    """A plan that refuses what its proof (proofs/release_last_iterate.md) does not assume."""

    losses = {"squared", "huber"}
    penalties = {"l2"}
    curvature = 1.0
    has_inference = False  # nothing but the last state is released
    forgets_its_start = hides_updates = True  # its proof starts at zero

    @classmethod
    def needs(cls, request):
        if request.fit_intercept and not request.penalize_intercept:
            return "fit_intercept=False or penalize_intercept=True: the ridge is on everything"
        if request.positive:
            return "positive=False: its proof is of the ridge alone"
        if request.alpha <= 0:
            return "alpha > 0: without a ridge nothing is forgotten"
        solver = request.solver
        if not isinstance(solver.sampling, str) or solver.sampling != "full":
            return 'sampling="full"'
        if solver.momentum not in ("auto", 0):
            return "momentum=0: a velocity would carry earlier iterates out"
        if solver.averaging not in ("auto", "last"):
            return 'averaging="last": an average shows earlier iterates'
        if request.coef_path:
            return "coef_path=False: a path shows earlier iterates"
        if (needs := super().needs(request)) is None and request.n_fits > 1:
            return "one target: its calibration is of the whole budget"
        return needs

    def _in_its_terms(self, geometry):
        return isotropic(geometry, self.request)

    @property
    def recipe(self):
        l2 = max(self.request.strength, 1e-300)
        return hidden_state_recipe(self.request.signal, self._smoothness / l2)

    @property
    def _largest_gradient(self):
        # of all coordinates together, whose M is that of the longest row
        return self._smoothness**0.5

    @property
    def _smoothness(self):
        return float(self.geometry.smoothness[0])

    @property
    def _step(self):
        return self.problem.step_size / self._smoothness

    @cached_property
    def alone(self):
        request, l2 = self.request, self.problem.penalty.l2
        c = contraction(self._step, l2, self._smoothness)
        if c >= 1:
            raise ValueError(
                f"step_size={request.solver.step_size!r} with alpha={request.alpha!r} does not "
                f'contract: accounting="hidden_state" needs alpha > 0 and a step below '
                f"{2 / (1 + l2 / self._smoothness):.6g}"
            )
        return hidden_state_fit_event(request.budget, self.n_updates, c)

    def units(self, n_samples):
        return Descent(
            self.part,
            n_samples=n_samples,
            n_coordinates=self.request.n_coordinates,
            curvature=self.request.loss.curvature,
            squared_norm=self.geometry.row_norm**2 + self.request.fit_intercept,
            clip=self.clip,
            step=self._step,
            l2=self.problem.penalty.l2,
            n_normalizer=self.request.budget.n,
        )

    def run(self, receipt, records, key, generator):
        place = self.place(records)
        units = self.units(place.n_samples)
        coef = receipt.shown(_hidden_state, units).release_last_iterate(
            receipt,
            units,
            place,
            loss=self.request.loss,
            row_norm=self.geometry.row_norm,
            fit_intercept=self.request.fit_intercept,
            key=key,
        )
        return Solution(coef, self.n_updates)
