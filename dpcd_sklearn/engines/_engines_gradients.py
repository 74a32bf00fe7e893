"""Engines of the solvers on mean gradients: DP-SGD, DP-SVRG and DP-CompGD."""

import math
from functools import cached_property

from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..solvers import _compgd, _sgd, _svrg
from ._engine import SINGLE_OUTPUT, GradientEngine
from ._recipes import (
    compressed_recipe,
    descent_recipe,
    noiseless_descent_recipe,
    variance_reduced_recipe,
)


class SGDEngine(GradientEngine):
    """DP-SGD: Poisson mini-batches, or all records."""

    solve = staticmethod(_sgd.solve)
    has_momentum = True
    noiseless_recipe = noiseless_descent_recipe(full=True)

    @property
    def recipe(self):
        request, curvature = self.request, self.curvature
        chosen = descent_recipe(request.signal, curvature, curvature, True, request.n_classes)
        return chosen | {"max_iter": chosen["max_iter"] * self.rate}  # as many updates


class SVRGEngine(GradientEngine):
    """DP-SVRG: full gradients now and then, and how mini-batches differ from them."""

    solve = staticmethod(_svrg.solve)
    anchor_share = 0.5

    @property
    def recipe(self):
        return variance_reduced_recipe(self.request.signal, self.rate)

    @property
    def _n_inner(self):
        return self.request.n_inner or math.ceil(1 / self.rate)

    def updates(self, n_passes):
        # an outer loop is two passes: the full gradient, and mini-batches of 1 / rate updates
        return n_passes / 2 * self._n_inner

    @property
    def extra(self):
        return super().extra | {"n_inner": min(self._n_inner, self.n_updates)}

    @cached_property
    def alone(self):
        request, count = self.request, self.n_updates
        n_full = math.ceil(count / min(self._n_inner, count))
        if not request.private:
            return gaussian_fit_event(
                request.epsilon, request.delta, count + n_full, request.neighboring
            )
        # one standard deviation for both kinds, in the units of the mean gradient
        ratio = self.anchor_share / self.rate
        return sampled_fit_event(
            request.epsilon,
            request.delta,
            self.rate,
            request.n_fits * count,
            request.neighboring,
            request.n_fits * n_full,
            ratio,
        )


class CompGDEngine(GradientEngine):
    """DP-CompGD: gradients in a few random directions; with a rate below one, DP-CompMiniBatch."""

    solve = staticmethod(_compgd.solve)
    default_rate = 1.0
    losses = SINGLE_OUTPUT
    penalties = {None, "l2"}
    constraints = {None, "l1_ball", "l2_ball"}
    noiseless_max_iter = 20_000

    @property
    def recipe(self):
        share = self._n_directions / self.request.n_coordinates
        chosen = compressed_recipe(self.request.signal, share)
        return chosen | {"max_iter": chosen["max_iter"] * self.rate}

    @property
    def extra(self):
        own = {"n_directions": self._n_directions, "constraint": self._constraint()}
        return super().extra | own

    @cached_property
    def alone(self):
        # the ridge is part of the gradient, and no clip bounds it
        problem, l2 = self.problem, self.problem.penalty.l2
        least = problem.curvature * float(problem.smoothness.min())
        if problem.step_size * l2 > 2 * (least + l2):
            longest = 2 * (least / l2 + 1)
            raise ValueError(
                f"step_size={self.request.step_size!r} with alpha={self.request.alpha!r} diverges: "
                f"it must be at most {longest:.6g} for solver='compgd'"
            )
        return super().alone

    @property
    def _n_directions(self):
        n_coordinates = self.request.n_coordinates
        if not self.request.private:
            return n_coordinates  # fewer would add a variance that only noise is worth
        auto = math.ceil(4 * math.log(n_coordinates + 1))
        return min(self.request.n_directions or auto, n_coordinates)
