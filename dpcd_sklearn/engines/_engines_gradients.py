"""Engines of the solvers on mean gradients: DP-SGD, DP-SVRG and DP-CompGD."""

import math

from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..solvers import _compgd, _sgd, _svrg
from ._engine import SINGLE_OUTPUT, GradientEngine
from ._plan import number_of_updates
from ._recipes import (
    compressed_recipe,
    descent_recipe,
    exact_descent_recipe,
    variance_reduced_recipe,
)


class SGDEngine(GradientEngine):
    """DP-SGD: Poisson mini-batches, or all records."""

    solve = staticmethod(_sgd.solve)
    has_momentum = True

    def n_updates(self, model, max_iter, n_coordinates, sampling):
        return number_of_updates(max_iter / self.rate(model))

    def recipe(self, model, facts, geometry, sampling):
        if not facts.private:
            return exact_descent_recipe(facts.n_coordinates, full=True)
        spread = geometry.spread(facts.n_coordinates)
        chosen = descent_recipe(facts.signal, spread, spread, full=True)
        chosen["max_iter"] *= self.rate(model)  # as many updates
        return chosen

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        return {"sampling_rate": self.rate(model), "step_decay": model.step_decay}


class SVRGEngine(GradientEngine):
    """DP-SVRG: full gradients now and then, and how mini-batches differ from them."""

    solve = staticmethod(_svrg.solve)
    anchor_share = 0.5

    def _inner(self, model, rate):
        return model.n_inner or math.ceil(1 / rate)

    def n_updates(self, model, max_iter, n_coordinates, sampling):
        # an outer loop is two passes: the full gradient, and mini-batches of 1 / rate updates
        return number_of_updates(max_iter / 2 * self._inner(model, self.rate(model)))

    def recipe(self, model, facts, geometry, sampling):
        if not facts.private:
            return {"max_iter": 1, "step_size": 1.0, "momentum": 0.0, "averaging": "last"}
        return variance_reduced_recipe(facts.signal, self.rate(model))

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        rate = self.rate(model)
        return {
            "sampling_rate": rate,
            "step_decay": model.step_decay,
            "n_inner": min(self._inner(model, rate), n_updates),
        }

    def event(self, model, delta, problem):
        rate, count = problem.sampling_rate, problem.n_updates
        n_full = math.ceil(count / problem.n_inner)
        if math.isinf(model.epsilon):
            return gaussian_fit_event(model.epsilon, delta, count + n_full, model.neighboring)
        # one standard deviation for both kinds, in the units of the mean gradient
        return sampled_fit_event(
            model.epsilon, delta, rate, count, model.neighboring, n_full, self.anchor_share / rate
        )


class CompGDEngine(GradientEngine):
    """DP-CompGD: gradients in a few random directions; with a rate below one, DP-CompMiniBatch."""

    solve = staticmethod(_compgd.solve)
    default_rate = 1.0
    losses = SINGLE_OUTPUT
    penalties = {None, "l2"}
    constraints = {None, "l1_ball", "l2_ball"}
    exact_max_iter = 20_000

    def n_updates(self, model, max_iter, n_coordinates, sampling):
        return number_of_updates(max_iter / self.rate(model))

    def recipe(self, model, facts, geometry, sampling):
        share = self._directions(model, facts.n_coordinates) / facts.n_coordinates
        if not facts.private:
            return {"max_iter": 1, "step_size": 1.0, "momentum": 0.0, "averaging": "last"}
        chosen = compressed_recipe(facts.signal, share)
        chosen["max_iter"] *= self.rate(model)
        return chosen

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        return {
            "sampling_rate": self.rate(model),
            "step_decay": model.step_decay,
            "n_directions": self._directions(model, n_coordinates),
            "constraint": model._constraint(target_half_width),
        }

    def event(self, model, delta, problem):
        # the ridge is part of the gradient, and no clip bounds it
        least = problem.curvature * float(problem.smoothness.min())
        if problem.step_size * problem.penalty.l2 > 2 * (least + problem.penalty.l2):
            longest = 2 * (least / problem.penalty.l2 + 1)
            raise ValueError(
                f"step_size={model.step_size!r} with alpha={model.alpha!r} diverges: it must be at "
                f"most {longest:.6g} for solver='compgd'"
            )
        return super().event(model, delta, problem)

    @staticmethod
    def _directions(model, n_coordinates):
        if math.isinf(model.epsilon):
            return n_coordinates  # fewer would add a variance that only noise is worth
        auto = math.ceil(4 * math.log(n_coordinates + 1))
        return min(model.n_directions or auto, n_coordinates)
