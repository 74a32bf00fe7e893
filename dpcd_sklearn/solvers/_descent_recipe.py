"""Recipes for "auto", and plans of descents.

Recipes are functions of public numbers, fitted by hand to a dozen real data sets. All of them
follow s = n μ / sqrt(p + 1), the public signal-to-noise number of a full-batch fit.
``residual_clip`` is in units of a target within [-1, 1].
"""

import math
from functools import cached_property

import numpy as np

from ..losses import LOSSES
from ..plan._solver_plan import SolverPlan
from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..privacy.mechanisms._record_oracle import BatchOracle, RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits, MeanUnits

# A log link is steeper where predictions are large, so it has so many times the steps. Its slopes
# are in units of a mean, a fraction of the bound: below this signal a shorter walk has less noise.
_STEPS_OF_LINK, _LOUD_OF_LINK = 2.0, 160.0


def between(value, low, high):
    return min(max(value, low), high)


def plain_steps(n_passes, step_size, residual_clip, averaging="tail"):
    """The recipe of steps without momentum."""
    steps = {"max_iter": n_passes, "step_size": step_size, "momentum": 0.0}
    return steps | {"averaging": averaging, "residual_clip": residual_clip}


def momentum_of(step_size):
    """The heavy ball of a step that is as stable with it as one of 30 with 0.9."""
    ratio = max(19.0 * step_size / 30, 1.0)  # (1 + β) / (1 - β)
    return (ratio - 1) / (ratio + 1)


def descent_recipe(
    signal,
    spread,
    curvature,
    full,
    n_classes,
    n_coordinates,
    *,
    has_sparse_rows=False,
    found_target=False,
    has_log_link=False,
):
    """DP-SkGD: the total time τ of the descent follows the signal, in few long steps.

    Steps are divided by the curvature of what moves. With the normalised heavy ball β, steps up to
    2 (1 + β) / (1 - β) over the largest curvature are stable for full gradients: 38 for β = 0.9.
    More than two classes have a recipe of their own. Blocks move without momentum, which is not
    known to be stable there, and with steps below 2.
    """
    chosen = {"averaging": "tail"}
    if not full:
        chosen["residual_clip"] = between(0.1 * (signal / 30) ** 0.25, 0.1, 0.5)
        total_time = between(20.0 * signal, 100.0, 20_000.0)
        n_iter = between(total_time * curvature / spread / 1.5, 20.0, 1_000.0)
        return chosen | {"max_iter": n_iter, "step_size": 1.5, "momentum": 0.0}
    if n_classes > 2:
        return _softmax_descent(signal, n_coordinates, has_sparse_rows)
    total_time, chosen["residual_clip"] = _full_descent(
        signal, n_classes, n_coordinates, found_target
    )
    n_iter = between(total_time / 30, 30.0, 800.0)
    if has_log_link:
        n_iter *= _STEPS_OF_LINK
        total_time *= between(math.sqrt(signal / _LOUD_OF_LINK), 0.5, 1.0)
    return chosen | {"max_iter": n_iter, "step_size": total_time / n_iter, "momentum": 0.9}


def _full_descent(signal, n_classes, n_coordinates, found_target):
    """The total time τ and the residual clip κ of a full descent of one output.

    Neither has a floor that noise alone would fill: with no signal nothing moves. Of a bounded
    curvature derivatives fade as residuals shrink, and what is far from the boundary is let go: a
    narrow clip costs little, if the time makes good what it takes of a step (τκ is stated). No
    class at all is a regression, of which the clip alone says how far it gets: `_reach`.
    """
    root = math.sqrt(signal)
    if n_classes:
        clip = between(0.02 * root, 0.05, 0.6)
        return min(max(10.0 * signal, 50.0 * min(signal, root)) / clip, 20_000.0), clip
    slow = (30 / signal) ** 0.25 if signal > 30 else 1.0
    reach = _reach(signal, n_coordinates, found_target)
    return min(40.0 * signal, 20_000.0), reach * between(0.013 * root * slow, 0.01, 0.35)


def _reach(signal, n_coordinates, found_target):
    """How far a regression gets, at most 1 with many features.

    With few of them half as far is enough for what they tell, and the rest is noise. Residuals fill
    a small part of a target's bounds if these are stated, and not found: at a middling signal about
    a third as far is enough there (93 cases of 28 tables in bounds twice too wide: mean R² .19 to
    .21, 35 better by .02 and 13 worse).
    """
    stated = max(min(5 / signal, 0.5), between(signal / 100, 0.35, 0.5))
    least = 0.5 if found_target else stated
    return between((n_coordinates / 800) ** 0.25, least, 1.0)


# Clips of classes are so many times as wide, up to what is wide enough.
_WIDER, _WIDE_ENOUGH = 1.6, 0.6
# Steps over the root of the time: of dense numbers, of which 1.1 times lost .005 of R²; of classes
# and sparse rows those to the last iterate, and those to a mean. And the signal from which clips of
# sparse rows are wider, and a longer walk does not drown.
OF_ROOT_OF_NUMBERS, _OF_ROOT, _OF_ROOT_TO_MEAN, _LOUD_ENOUGH = 1.4, 1.1, 1.8, 50.0


def long_descent(recipe, n_classes):
    """A full descent of one output in fewer and longer steps, for many features.

    Half the bound on the curvature is enough: records fill a small part of it, and where they fill
    all of it, as copies of one column do, clips bound every step. The last iterate is still on its
    way and ahead of a mean. Of classes, a wider clip makes up for a walk that is as much shorter.

    Parameters
    ----------
    recipe : dict
        What `descent_recipe` says of two classes or a regression.
    """
    if not n_classes:
        return recipe | {"averaging": "last"} | steps_of_root(recipe, OF_ROOT_OF_NUMBERS)
    wider = between(_WIDE_ENOUGH / recipe["residual_clip"], 1.0, _WIDER)
    steps = steps_of_root(recipe | {"max_iter": recipe["max_iter"] / wider}, _OF_ROOT)
    return {"averaging": "last", "residual_clip": wider * recipe["residual_clip"]} | steps


def steps_of_root(recipe, of_root):
    """Steps that follow the root of the time: at every signal momentum remembers a like share."""
    root = math.sqrt(recipe["max_iter"] * recipe["step_size"])
    n_iter, step_size = of_root * root, root / of_root
    return {"max_iter": n_iter, "step_size": step_size, "momentum": momentum_of(step_size / 2)}


def descent_of_rows(recipe, signal, n_classes, *, is_on_its_way):
    """A full descent of one output over sparse rows of a known norm.

    Its steps follow the root of the time, so that at every signal momentum remembers an eighth of
    them, or a twentieth where their mean is taken. Half the bound on the curvature is enough: it is
    that of an intercept, since rows share few columns. Where the last iterate is still on its way,
    and ahead of a mean, clips of classes are wider.

    Parameters
    ----------
    recipe : dict
        What `descent_recipe` says of two classes or a regression.
    """
    clip = recipe["residual_clip"]
    if is_on_its_way and n_classes:
        clip *= between(signal / _LOUD_ENOUGH, 1.0, _WIDER)
    averaging = "last" if is_on_its_way else "tail"
    steps = steps_of_root(recipe, _OF_ROOT if is_on_its_way else _OF_ROOT_TO_MEAN)
    return {"averaging": averaging, "residual_clip": clip} | steps


# Descents of more than two classes: their steps, and those of sparse rows; the most momentum,
# whose memory of 1 / (1 - β) steps is to be a fraction of them; and the signal from which a mean
# of iterates is not needed.
_STEPS_OF_MANY, _STEPS_OF_ROWS, _MOMENTUM_OF_MANY, _ON_ITS_WAY = 100.0, 150.0, 0.95, 60.0


def _softmax_descent(signal, n_coordinates, has_sparse_rows):
    """The descent of more than two classes: few steps, as long as the noise of margins allows.

    Margins part in more directions than those of two classes, which takes twice the time. Noise
    that nothing holds back moves them by τκ / (n μ) at most, whatever the number of features, and
    the more features there are the later most are learnt: so τκ follows n μ too, which is s √p',
    where there is a signal at all. Steps may be longer than what the bound on the curvature knows
    to be stable. Where many features share the length of a row the softmax is far flatter than
    that, and where they do not clipped derivatives bound every step. Of more features than s the
    last iterate is still on its way: unless it is noise mostly, it is ahead of a mean.

    Of sparse rows with a norm that is known, few columns are in many of them: long walks are mostly
    noise, and steps are as long as is stable.
    """
    root = math.sqrt(signal)
    reach, longest = max(20.0 * signal, 100.0 * min(signal, root)), 20_000.0
    clip, most_steps, most_momentum = between(0.02 * root, 0.05, 0.6), _STEPS_OF_ROWS, 1.0
    on_its_way = not has_sparse_rows and _ON_ITS_WAY <= signal < n_coordinates
    if not has_sparse_rows:
        reach = max(reach, min(0.15 * signal, 3.0) * signal * math.sqrt(n_coordinates))
        longest = max(longest, 125.0 * between(signal, n_coordinates, 3.0 * n_coordinates))
        clip, most_steps = between(0.01 * root, 0.02, 0.6), _STEPS_OF_MANY
        most_momentum = _MOMENTUM_OF_MANY
    total_time = min(reach / clip, longest)
    n_iter = between(total_time / 30, 30.0, most_steps)
    return {
        "averaging": "last" if on_its_way else "tail",
        "residual_clip": clip,
        "max_iter": n_iter,
        "step_size": total_time / n_iter,
        "momentum": min(momentum_of(max(total_time / n_iter, 30.0)), most_momentum),
    }


def clip_for_inference(signal, bounded_curvature):
    """Wider than for coefficients alone: a record at its clip tells nothing of the curvature.

    And wide enough, as the signal grows, for the bias of a clip to stay below the standard errors.
    """
    if bounded_curvature:
        return between((signal / 400) ** 0.25, 1.0, 2.0)
    factor = 1.5 * max(1.0, (signal / 1000) ** 0.25)
    return min(1.0, factor * between(0.1 * (signal / 30) ** 0.25, 0.1, 0.5))


def noiseless_descent_recipe(full, block_size=1):
    """DP-SkGD without noise: the trace, |S|, bounds the curvature of a block whatever the data."""
    if full:
        return {"step_size": 10.0, "momentum": 0.9}
    return {"step_size": min(float(block_size), 1.8), "momentum": 0.0}


# ---- Plans of the solvers on coordinates or blocks of them ---------------------------------------


class CoordinatePlan(SolverPlan):
    """A solver on coordinates or blocks of them, over a RecordOracle."""

    losses = set(LOSSES)
    known_of_questions = {}  # beforehand: what CoordinateUnits ask for

    @property
    def _clipped_together(self):
        return 1 if self.sampling is None else self.sampling.block_size

    @property
    def _n_inner(self):
        """K of the papers' T × K: a tenth of all updates unless the user says more."""
        return self.request.solver.n_inner or math.ceil(self.n_updates / 10)

    def units(self, n_samples):
        smoothness, n_outputs = self.geometry.smoothness, self.request.n_outputs
        return CoordinateUnits(
            self.part,
            n_samples=n_samples,
            smoothness=np.tile(smoothness, n_outputs) if n_outputs > 1 else smoothness,  # no copy
            clip=self.finite_clip,
            n_normalizer=self.request.budget.n,
            n_chosen=self.problem.n_chosen,
            n_outputs=n_outputs,
            **self.known_of_questions,
        )

    def oracle(self, *released, **stated):
        return RecordOracle(*released, **stated, lazy=self.request.solver.selection == "lazy")


class DrawnPlan(CoordinatePlan):
    """A solver that releases the coordinates that a sampling draws."""

    @property
    def extra(self):
        return {"n_inner": self._n_inner}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        return gaussian_fit_event(request.budget, count)


# ---- Plans of the solvers on mean gradients ------------------------------------------------------


class GradientPlan(SolverPlan):
    """A solver on mean gradients at iterates that it states, over a BatchOracle.

    Attributes
    ----------
    anchor_share : float
        Clip of differences of gradients over that of gradients.
    """

    anchor_share = 1.0
    losses = set(LOSSES)
    noiseless_max_iter = 100_000

    @property
    def rate(self):
        """Share of the records in one mini-batch; without noise every batch is all of them."""
        return float(self.request.solver.sampling_rate) if self.request.private else 1.0

    def updates(self, n_passes):
        return n_passes / self.rate

    @property
    def extra(self):
        return {"sampling_rate": self.rate, "step_decay": self.request.solver.step_decay}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        if self.rate >= 1:
            return gaussian_fit_event(request.budget, count)
        return sampled_fit_event(request.budget, self.rate, count)

    def units(self, n_samples):
        # the norm of M^(-1/2) g over all coordinates
        smoothness = self.geometry.smoothness
        clip = self.finite_clip * (len(smoothness) / float(smoothness.sum())) ** 0.5
        return MeanUnits(
            self.part,
            n_samples=n_samples,
            smoothness=smoothness,
            clip=clip,
            anchor_clip=self.anchor_share * clip,
            n_normalizer=self.request.budget.n,
            n_outputs=self.request.n_outputs,
        )

    def oracle(self, *released, **stated):
        return BatchOracle(*released, **stated)
