"""Engines of the solvers on coordinates: DP-CD, DP-GCD, DP-SkGD and DP Frank–Wolfe."""

import math
from dataclasses import replace

import numpy as np

from ..penalties._base import Rule
from ..privacy.accounting._calibration import gaussian_fit_event, greedy_fit_event
from ..samplings import SAMPLING_WORDS, SingleSampling
from ..solvers import _cd, _frank_wolfe, _gcd, _skgd
from ._checked_sampling import CheckedSampling
from ._engine import CoordinateEngine
from ._recipes import (
    coordinate_recipe,
    descent_recipe,
    exact_descent_recipe,
    greedy_recipe,
    vertex_recipe,
)

RULES = {"gs-s": Rule.GS_S, "gs-r": Rule.GS_R, "gs-q": Rule.GS_Q}


class CDEngine(CoordinateEngine):
    """DP-CD: one coordinate at a time."""

    solve = staticmethod(_cd.solve)

    def needs(self, model, loss):
        if (needs := super().needs(model, loss)) is not None:
            return needs
        if model.sampling not in ("auto", "uniform", "importance"):
            return f"sampling in {{'uniform', 'importance'}}, not {model.sampling!r}"
        return None

    def sampling(self, model, n_coordinates, geometry):
        return SingleSampling.of(model.sampling, n_coordinates, 1, geometry.smoothness)

    def curvature(self, model, geometry, sampling):
        return 1.0

    def recipe(self, model, facts, geometry, sampling):
        return coordinate_recipe(facts.signal)

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        return periods(model, n_updates)

    def event(self, model, delta, problem):
        return gaussian_fit_event(model.epsilon, delta, problem.n_updates, model.neighboring)


class GCDEngine(CoordinateEngine):
    """DP-GCD: the coordinates that promise most."""

    solve = staticmethod(_gcd.solve)
    exact_max_iter = 1_000_000

    def curvature(self, model, geometry, sampling):
        return geometry.spread(_chosen(model, len(geometry.smoothness)))

    def known_scores(self, problem):
        # of the start, at zero; where it goes from there is up to the noise
        smoothness = float(np.min(problem.smoothness))
        scores = (problem.penalty.greedy_score(problem.rule, 0, 0, smoothness, d) for d in (-1, 1))
        largest = max(abs(score) if math.isfinite(score) else 0.0 for score in scores)
        return {"largest_score": largest, "step": problem.step_size / problem.curvature}

    def recipe(self, model, facts, geometry, sampling):
        return greedy_recipe(facts.signal, model.loss == "logistic")

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        chosen = {"rule": RULES[model.rule], "n_chosen": _chosen(model, n_coordinates)}
        return chosen | periods(model, n_updates)

    def event(self, model, delta, problem):
        count = problem.n_updates * problem.n_chosen
        return greedy_fit_event(
            model.epsilon, delta, count, model.selection_share, model.neighboring
        )


class SkGDEngine(CoordinateEngine):
    """DP-SkGD: a random block at a time, or all coordinates."""

    solve = staticmethod(_skgd.solve)
    has_momentum = True
    exact_max_iter = 100_000

    def sampling(self, model, n_coordinates, geometry):
        word = "full" if model.sampling == "auto" else model.sampling
        if not isinstance(word, str):
            return CheckedSampling(word, n_coordinates)
        size = model.block_size or math.ceil(math.sqrt(n_coordinates))
        return SAMPLING_WORDS[word].of(word, n_coordinates, size, geometry.smoothness)

    def curvature(self, model, geometry, sampling):
        if hasattr(sampling, "curvature"):
            return sampling.curvature(geometry.spread)
        return geometry.spread(sampling.block_size)

    def recipe(self, model, facts, geometry, sampling):
        full = sampling.block_size == facts.n_coordinates
        if not facts.private:
            return exact_descent_recipe(sampling.block_size, full)
        return descent_recipe(
            facts.signal,
            geometry.spread(facts.n_coordinates),
            self.curvature(model, geometry, sampling),
            full,
        )

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        return periods(model, n_updates)

    def event(self, model, delta, problem):
        return gaussian_fit_event(model.epsilon, delta, problem.n_updates, model.neighboring)


class FrankWolfeEngine(CoordinateEngine):
    """DP Frank–Wolfe: nothing but vertices of an l1 ball is released."""

    solve = staticmethod(_frank_wolfe.solve)
    penalties = {None}
    constraints = {"l1_ball"}
    averagings = {"auto", "last"}
    exact_max_iter = 10_000

    def needs(self, model, loss):
        if (needs := super().needs(model, loss)) is not None:
            return needs
        if model.fit_intercept and not model.penalize_intercept:
            return "fit_intercept=False or penalize_intercept=True: its steps need a bounded set"
        return None

    def geometry(self, model, geometry, loss):
        # a vertex is chosen by unscaled derivatives: one M for all makes their noise alike
        widest = float(np.max(geometry.smoothness))
        return replace(geometry, smoothness=np.full_like(geometry.smoothness, widest))

    def known_scores(self, problem):
        # iterates stay in the ball, up to rounding; sqrt(M_j) times them is public
        root = math.sqrt(float(np.max(problem.smoothness)))
        return {"largest_score": 1.001 * problem.constraint.radius * root}

    def recipe(self, model, facts, geometry, sampling):
        return vertex_recipe(facts.signal)

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        return {"constraint": model._constraint(target_half_width)}

    def event(self, model, delta, problem):
        return greedy_fit_event(model.epsilon, delta, problem.n_updates, 1.0, model.neighboring)


def periods(model, n_updates):
    """K of the papers' T × K: a tenth of all updates unless the user says more."""
    return {"n_inner": model.n_inner or math.ceil(n_updates / 10)}


def _chosen(model, n_coordinates):
    return min(model.block_size or 1, n_coordinates)
