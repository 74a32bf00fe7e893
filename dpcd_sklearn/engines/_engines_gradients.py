"""Engines of the solvers on mean gradients: DP-SGD, DP-SVRG and DP-CompGD."""

import math
from dataclasses import replace
from functools import cached_property

from ..losses import LOSSES
from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..privacy.mechanisms._batch_oracle import BatchOracle
from ..privacy.mechanisms._units import MeanUnits
from ..solvers import _compgd, _sgd, _svrg
from ._engine import SINGLE_OUTPUT, Engine
from ._recipes import (
    compressed_recipe,
    descent_recipe,
    noiseless_descent_recipe,
    variance_reduced_recipe,
)


class GradientEngine(Engine):
    """A solver on mean gradients at iterates that it states, over a BatchOracle.

    Attributes
    ----------
    solve : callable
    anchor_share : float
        Clip of differences of gradients over that of gradients.
    """

    solve = None
    anchor_share = 1.0
    losses = set(LOSSES)
    noiseless_max_iter = 100_000

    @property
    def rate(self):
        """Of the records in one mini-batch; without noise every batch is all of them."""
        if not self.request.private:
            return 1.0
        return float(self.request.solver.sampling_rate)

    def updates(self, n_passes):
        return n_passes / self.rate

    @property
    def extra(self):
        return {"sampling_rate": self.rate, "step_decay": self.request.solver.step_decay}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        if self.rate >= 1:
            return gaussian_fit_event(request.epsilon, request.delta, count, request.neighboring)
        return sampled_fit_event(
            request.epsilon, request.delta, self.rate, count, request.neighboring
        )

    @property
    def _clips(self):
        # the norm of M^(-1/2) g over all coordinates
        smoothness = self.geometry.smoothness
        clip = self.finite_clip * (len(smoothness) / float(smoothness.sum())) ** 0.5
        return {"clip": clip, "anchor_clip": self.anchor_share * clip}

    def units(self, n_samples):
        return MeanUnits(
            self.part,
            n_samples=n_samples,
            smoothness=self.geometry.smoothness,
            n_normalizer=self.request.n_normalizer,
            n_outputs=self.request.n_outputs,
            **self._clips,
        )

    def run(self, receipt, records, key, generator):
        place = self.place(records)
        units = self.units(place.n_samples)
        oracle = BatchOracle(
            receipt,
            units,
            place,
            loss=self.loss,
            fit_intercept=self.request.fit_intercept,
            key=key,
        )
        oracle = receipt.shown(oracle, units)
        return self.solve(oracle, self.attended, self.sampling, generator)


class SGDEngine(GradientEngine):
    """DP-SGD: Poisson mini-batches, or all records."""

    word = "sgd"
    solve = staticmethod(_sgd.solve)
    noiseless_recipe = noiseless_descent_recipe(full=True)

    @property
    def recipe(self):
        request, curvature = self.request, self.curvature
        chosen = descent_recipe(
            request.signal,
            curvature,
            curvature,
            True,
            request.n_classes,
            request.n_coordinates,
            has_sparse_rows=request.has_sparse_rows,
        )
        return chosen | {"max_iter": chosen["max_iter"] * self.rate}  # as many updates


class SVRGEngine(GradientEngine):
    """DP-SVRG: full gradients now and then, and how mini-batches differ from them."""

    word = "svrg"
    solve = staticmethod(_svrg.solve)
    anchor_share = 0.5

    @property
    def recipe(self):
        return variance_reduced_recipe(self.request.signal, self.rate)

    @property
    def _n_inner(self):
        return self.request.solver.n_inner or math.ceil(1 / self.rate)

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

    word = "compgd"
    solve = staticmethod(_compgd.solve)
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
        if self.problem.step_size > self._longest_step:
            raise ValueError(
                f"step_size={self.request.solver.step_size!r} with alpha={self.request.alpha!r} "
                f"diverges: it must be at most {self._longest_step:.6g} for solver='compgd'"
            )
        return super().alone

    @property
    def _longest_step(self):
        # the ridge is part of the gradient, and no clip bounds it
        problem, l2 = self.problem, self.problem.penalty.l2
        least = problem.curvature * float(problem.smoothness.min())
        return 2 * (least / l2 + 1) if l2 else math.inf

    def _located(self, found, loss):
        # the step was sound in unit scale; 0.9 leaves as much room as the recipe's 1.8 does
        other = super()._located(found, loss)
        step_size = min(other.problem.step_size, 0.9 * other._longest_step)
        return other.changed(problem=replace(other.problem, step_size=step_size))

    @property
    def _n_directions(self):
        n_coordinates = self.request.n_coordinates
        if not self.request.private:
            return n_coordinates  # fewer would add a variance that only noise is worth
        auto = math.ceil(4 * math.log(n_coordinates + 1))
        return min(self.request.solver.n_directions or auto, n_coordinates)
