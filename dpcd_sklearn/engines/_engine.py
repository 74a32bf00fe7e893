"""Engines: what the fit recipe needs to know about a solver, and which problems it solves.

A new solver is one new engine: a subclass of ``Engine`` with a line in ``_engines.py``.
"""

import math
from abc import ABCMeta, abstractmethod

from ..losses import LOSSES
from ..penalties import PENALTIES
from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..privacy.mechanisms._batch_oracle import BatchOracle
from ..privacy.mechanisms._oracle import RecordOracle
from ..utils._threads import effective_n_threads
from ._plan import number_of_updates

EVERY_PENALTY = {None, *PENALTIES}
SINGLE_OUTPUT = {name for name, loss in LOSSES.items() if not loss.multi_output}


class Engine(metaclass=ABCMeta):
    """One solver. All methods are pure functions of parameters and public facts, but ``run``.

    Attributes
    ----------
    losses, penalties, constraints, averagings : set of str
        What it can solve.
    has_momentum : bool
    exact_max_iter : int
        Passes of a fit without noise.
    """

    losses = SINGLE_OUTPUT
    penalties = EVERY_PENALTY
    constraints = {None}
    averagings = {"auto", "last", "tail", "periodic"}
    has_momentum = False
    exact_max_iter = 10_000

    def needs(self, model, loss):
        """What the model must change for this solver to work, or None."""
        if loss not in self.losses:
            return f"loss in {_listed(self.losses)}, not {loss!r}"
        if model.penalty not in self.penalties:
            return f"penalty in {_listed(self.penalties)}, not {model.penalty!r}"
        if model.constraint not in self.constraints:
            return f"constraint in {_listed(self.constraints)}, not {model.constraint!r}"
        if model.averaging not in self.averagings:
            return f"averaging in {_listed(self.averagings)}, not {model.averaging!r}"
        if not self.has_momentum and model.momentum not in ("auto", 0):
            return f"momentum=0, not {model.momentum!r}"
        return None

    def solves(self, model, loss):
        """Whether loss, penalty and constraint suit the solver, whatever its other parameters."""
        return (
            loss in self.losses
            and model.penalty in self.penalties
            and model.constraint in self.constraints
        )

    # ---- the plan ----

    def geometry(self, model, geometry, loss):
        """The public geometry that the solver works in."""
        return geometry

    def sampling(self, model, n_coordinates, geometry):
        """The sampling of coordinates, or None where every update has all of them."""
        return None

    def n_updates(self, model, max_iter, n_coordinates, sampling):
        """T of so many passes."""
        if sampling is None:
            return number_of_updates(max_iter)
        return number_of_updates(max_iter, n_coordinates, sampling.block_size)

    def curvature(self, model, geometry, sampling):
        """How much steeper than its coordinates a move may be: steps are divided by it."""
        return geometry.spread(len(geometry.smoothness))

    @abstractmethod
    def recipe(self, model, facts, geometry, sampling):
        """Values for "auto": a dict of max_iter, step_size, momentum, averaging, and
        residual_clip, in units of the scaled target's derivative: C_j = residual_clip sqrt(M_j).
        """

    def fields(self, model, n_updates, n_coordinates, target_half_width):
        """More fields of the Problem, as a dict."""
        return {}

    @abstractmethod
    def event(self, model, delta, problem):
        """The FitEvent of the problem's updates at the model's epsilon and `delta`."""

    def clip(self, residual_clip, geometry):
        """C for "auto"."""
        return residual_clip * float(geometry.smoothness.sum()) ** 0.5

    # ---- the records ----

    @abstractmethod
    def check(self, plan, n_samples, fit_intercept):
        """Raise the ValueError that the oracle would raise, before anything is charged."""

    @abstractmethod
    def run(self, receipt, records, plan, fit_intercept, key, generator):
        """Make the oracle and run the solver on what it releases; returns a Solution."""


class CoordinateEngine(Engine):
    """A solver on coordinates or blocks of them, over a RecordOracle.

    Attributes
    ----------
    solve : callable
    """

    solve = None

    def check(self, plan, n_samples, fit_intercept):
        RecordOracle.check(
            plan.event,
            n_samples=n_samples,
            smoothness=plan.geometry.smoothness,
            clip=plan.finite_clip,
            n_normalizer=plan.n_normalizer,
            fit_intercept=fit_intercept,
            n_chosen=plan.problem.n_chosen,
            **self.known_scores(plan.problem),
        )

    def known_scores(self, problem):
        """What is known beforehand about the public part of greedy scores: see RecordOracle."""
        return {}

    def run(self, receipt, records, plan, fit_intercept, key, generator):
        X, target, sample_weight = records
        oracle = RecordOracle(
            receipt,
            X,
            target,
            loss=plan.loss,
            smoothness=plan.geometry.smoothness,
            clip=plan.finite_clip,
            n_normalizer=plan.n_normalizer,
            sample_weight=sample_weight,
            fit_intercept=fit_intercept,
            bounds=plan.geometry.bounds,
            key=key,
            n_threads=effective_n_threads(plan.n_threads),
            lazy=plan.lazy,
        )
        return self.solve(oracle, plan.problem, plan.sampling, generator)


class GradientEngine(Engine):
    """A solver on mean gradients at iterates that it states, over a BatchOracle.

    Attributes
    ----------
    solve : callable
    anchor_share : float
        Clip of differences of gradients over that of gradients.
    default_rate : float
        Of the records in one mini-batch, for sampling_rate="auto".
    """

    solve = None
    anchor_share = 1.0
    default_rate = 0.1
    losses = set(LOSSES)
    averagings = {"auto", "last", "tail", "weighted"}
    exact_max_iter = 100_000

    def rate(self, model):
        """Of the records in one mini-batch; without noise every batch is all of them."""
        if math.isinf(model.epsilon):
            return 1.0
        if model.sampling_rate == "auto":
            return 1.0 if model.solver == "auto" else self.default_rate
        return float(model.sampling_rate)

    def event(self, model, delta, problem):
        if problem.sampling_rate >= 1:
            return gaussian_fit_event(model.epsilon, delta, problem.n_updates, model.neighboring)
        return sampled_fit_event(
            model.epsilon, delta, problem.sampling_rate, problem.n_updates, model.neighboring
        )

    def _clips(self, plan):
        # the norm of M^(-1/2) g over all coordinates
        smoothness = plan.geometry.smoothness
        clip = plan.finite_clip * (len(smoothness) / float(smoothness.sum())) ** 0.5
        return {"clip": clip, "anchor_clip": self.anchor_share * clip}

    def check(self, plan, n_samples, fit_intercept):
        BatchOracle.check(
            plan.event,
            n_samples=n_samples,
            smoothness=plan.geometry.smoothness,
            n_normalizer=plan.n_normalizer,
            n_outputs=plan.problem.n_outputs,
            **self._clips(plan),
        )

    def run(self, receipt, records, plan, fit_intercept, key, generator):
        X, target, sample_weight = records
        oracle = BatchOracle(
            receipt,
            X,
            target,
            loss=plan.loss,
            smoothness=plan.geometry.smoothness,
            n_normalizer=plan.n_normalizer,
            fit_intercept=fit_intercept,
            n_outputs=plan.problem.n_outputs,
            sample_weight=sample_weight,
            bounds=plan.geometry.bounds,
            key=key,
            n_threads=effective_n_threads(plan.n_threads),
            **self._clips(plan),
        )
        return self.solve(oracle, plan.problem, plan.sampling, generator)


def _listed(names):
    return "{" + ", ".join(sorted(map(repr, names))) + "}"
