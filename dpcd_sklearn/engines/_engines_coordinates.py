"""Engines of the solvers on coordinates: DP-CD, DP-GCD, DP-SkGD and DP Frank–Wolfe."""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..losses import LOSSES
from ..penalties import RULES
from ..privacy.accounting._calibration import gaussian_fit_event, greedy_fit_event
from ..privacy.mechanisms._oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits
from ..samplings import SAMPLING_WORDS, SingleSampling
from ..solvers import _cd, _frank_wolfe, _gcd, _skgd
from ..solvers._covariance import DescentWalk
from ._checked_sampling import CheckedSampling
from ._engine import SINGLE_OUTPUT, Engine
from ._inference import gradient_noise, with_inference
from ._recipes import (
    clip_for_inference,
    coordinate_recipe,
    descent_recipe,
    greedy_recipe,
    greedy_softmax_recipe,
    noiseless_descent_recipe,
    vertex_recipe,
)
from ._settled_intercept import is_settled, settled


class CoordinateEngine(Engine):
    """A solver on coordinates or blocks of them, over a RecordOracle.

    Attributes
    ----------
    solve : callable
    """

    solve = None
    losses = set(LOSSES)
    known_scores = {}  # of greedy choices, beforehand: what CoordinateUnits ask for

    @property
    def _clipped_together(self):
        return 1 if self.sampling is None else self.sampling.block_size

    @property
    def _n_inner(self):
        """K of the papers' T × K: a tenth of all updates unless the user says more."""
        return self.request.solver.n_inner or math.ceil(self.n_updates / 10)

    def units(self, n_samples):
        n_outputs = self.request.n_outputs
        return CoordinateUnits(
            self.part,
            n_samples=n_samples,
            smoothness=_repeated(self.geometry.smoothness, n_outputs),
            clip=self.finite_clip,
            n_normalizer=self.request.n_normalizer,
            n_chosen=self.problem.n_chosen,
            n_outputs=n_outputs,
            **self.known_scores,
        )

    def run(self, receipt, records, key, generator):
        place = self.place(records)
        units = self.units(place.n_samples)
        oracle = RecordOracle(
            receipt,
            units,
            place,
            loss=self.loss,
            fit_intercept=self.request.fit_intercept,
            key=key,
            lazy=self.request.solver.selection == "lazy",
        )
        oracle = receipt.shown(oracle, units)
        return self.solve(oracle, self.attended, self.sampling, generator)


def _repeated(smoothness, n_outputs):
    """M_j of every output, one after the other; of one output it is not copied."""
    if n_outputs == 1:
        return smoothness
    repeated = np.tile(smoothness, n_outputs)
    repeated.flags.writeable = False
    return repeated


class DrawnEngine(CoordinateEngine):
    """A solver that releases the coordinates that a sampling draws."""

    @property
    def extra(self):
        return {"n_inner": self._n_inner}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        return gaussian_fit_event(request.epsilon, request.delta, count, request.neighboring)


class CDEngine(DrawnEngine):
    """DP-CD: one coordinate at a time."""

    word = "cd"
    solve = staticmethod(_cd.solve)
    curvature = 1.0

    @cached_property
    def sampling(self):
        word, n_coordinates = self.request.solver.sampling, self.request.n_coordinates
        return SingleSampling.of(word, n_coordinates, 1, self.geometry.smoothness)

    @property
    def recipe(self):
        return coordinate_recipe(self.request.signal)

    def place(self, records):
        enough = self.n_updates >= self.request.n_coordinates  # for a copy to pay
        return super().place(records.in_columns() if enough else records)


class GCDEngine(CoordinateEngine):
    """DP-GCD: the coordinates that promise most."""

    word = "gcd"
    solve = staticmethod(_gcd.solve)
    noiseless_max_iter = 1_000_000

    @property
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
    def known_scores(self):
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
        return greedy_fit_event(request.epsilon, request.delta, count, share, request.neighboring)


class SkGDEngine(DrawnEngine):
    """DP-SkGD: a random block at a time, or all coordinates."""

    word = "skgd"
    solve = staticmethod(_skgd.solve)
    has_inference = True
    noiseless_max_iter = 100_000

    @classmethod
    def needs_for_inference(cls, request):
        if request.loss.name != "squared":
            return "loss='squared' with solver='skgd': others move the mean of its noisy iterates"
        solver = request.solver
        if not isinstance(solver.sampling, str) or solver.sampling not in ("auto", "full"):
            return 'SkGD(sampling="full")'
        if solver.averaging == "periodic":
            return "SkGD(averaging=...) in {'last', 'tail'}, not 'periodic'"
        return super().needs_for_inference(request)

    @cached_property
    def sampling(self):
        solver, n_coordinates = self.request.solver, self.request.n_coordinates
        word = solver.sampling
        if not isinstance(word, str):
            return CheckedSampling(word, n_coordinates)
        size = solver.block_size or math.ceil(math.sqrt(n_coordinates))
        return SAMPLING_WORDS[word].of(word, n_coordinates, size, self.geometry.smoothness)

    @property
    def _full(self):
        return self.sampling.block_size == self.request.n_coordinates

    @property
    def curvature(self):
        return self.sampling.curvature(self.geometry.spread)

    @property
    def noise_length(self):
        """Of as many steps as the fit takes, of all coordinates, were the loss nowhere curved."""
        request, problem = self.request, self.problem
        if not (request.private and self._full):
            return 0.0
        size = math.sqrt(request.n_outputs * request.n_features / self.curvature)
        noise = gradient_noise(self, self.units(request.n_normalizer))
        step = problem.step_size * noise * self.clip / self._largest_gradient * size
        return math.sqrt(self.n_updates) * step

    @property
    def recipe(self):
        spread = self.geometry.spread(self.request.n_coordinates)
        request = self.request
        recipe = descent_recipe(
            request.signal,
            spread,
            self.curvature,
            self._full,
            request.n_classes,
            request.n_coordinates,
            has_sparse_rows=request.has_sparse_rows,
        )
        if request.inference:
            recipe["residual_clip"] = clip_for_inference(request.signal, False)
        return recipe

    @cached_property
    def settles(self):
        if not (self.request.counts_classes and self._full):
            return False
        return is_settled(self.request, self.recipe["residual_clip"])

    def run(self, receipt, records, key, generator):
        solution = super().run(receipt, records, key, generator)
        if self.settles:
            start = 0.0 if self._start is None else float(self._start[1][0])
            coef = settled(self, receipt, self.place(records), key, start, solution.coef)
            return replace(solution, coef=coef)
        if not self.request.inference:
            return solution
        place, size = self.place(records), self.request.n_coordinates
        walk = DescentWalk(
            clip=self.units(place.n_samples).coordinate_clip * math.sqrt(size),
            n_updates=solution.n_updates,
            size=size,
            filled=self.geometry.spread(size),
        )
        return with_inference(self, receipt, place, replace(solution, walk=walk), key)

    @property
    def noiseless_recipe(self):
        return noiseless_descent_recipe(self._full, self.sampling.block_size)


class FrankWolfeEngine(CoordinateEngine):
    """DP Frank–Wolfe: nothing but vertices of an l1 ball is released."""

    word = "frank-wolfe"
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
    def known_scores(self):
        # iterates stay in the ball, up to rounding; sqrt(M_j) times them is public
        root = math.sqrt(float(np.max(self.problem.smoothness)))
        return {"largest_score": 1.001 * self.problem.constraint.radius * root}

    @property
    def recipe(self):
        return vertex_recipe(self.request.signal)

    @property
    def extra(self):
        return {"constraint": self._constraint()}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        return greedy_fit_event(request.epsilon, request.delta, count, 1.0, request.neighboring)
