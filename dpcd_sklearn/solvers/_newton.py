"""Proximal Newton steps: one noisy curvature, and a few gradients in its geometry.

Stated bounds may be far wider than the records, and these far from their middle. The noise of a
curvature follows the norm that rows are clipped to, and steps by the curvature of rows that were
cut short are too long. So the mean of the rows and of their squared norms is released first, at a
small price, and rows are seen from there, within a norm that suits them.
"""

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property

import numpy as np

from ..loops import _newton
from ..loops._covariance import noise_of
from ..loops._problem import moments_of_margins
from ..losses import LOSSES
from ..plan._inference import gradient_noise, with_inference
from ..plan._solver import AUTO, MOMENTUM, SHARE, Solver, parameters_of
from ..plan._solver_plan import SolverPlan
from ..plan._strengths import chosen
from ..privacy.accounting._calibration import curvature_fit_event
from ..privacy.mechanisms._curvature import CurvatureOracle
from ..privacy.mechanisms._curvature_units import (
    CurvatureUnits,
    constant_of_rows,
    matrix_sensitivity,
)
from ..utils._threads import limited_blas
from ..utils._typing import Auto
from ._descent_recipe import between, clip_for_inference


def newton_recipe(
    signal, bounded_curvature, n_coordinates, *, looks_at_rows=True, found_target=False
):
    """Few steps, and as much of them as the signal is worth.

    Without a second derivative of its own the logistic loss is moved by the bound on it, which is
    far too large where classes part: more steps, with more momentum where the signal pays for the
    noise that this gathers. The louder it is the more they trust released moments to tell how large
    margins are (`margin_trust`), and the fewer are enough. Rows that are clipped make the noise of
    the curvature less and itself too small: steps for residuals are shorter than 1, or learn from a
    loud signal how long they may be.

    Beside what others have: the share of μ², the floor of eigenvalues in spectral edges of the
    noise, the clip of the first gradient, and to how many times their mean square rows are clipped
    (`room`): a lower number cuts what heavy rows tell, a higher one means noise, which is as large
    as the curvature itself where p is near s. Where rows are not looked at, their largest squared
    norm is taken to be `square` a feature.

    Found bounds suit the target, where residuals may fill a small part of stated ones: their clip
    is wider, and momentum higher.
    """
    room = min(max(0.5 * signal / n_coordinates, 0.7), 2.0)
    reach = min(max(signal / 40, 0.05), 1.0)  # below it noise would carry the model away
    shared = {"averaging": "tail", "head": 0.5, "curvature_share": 0.2, "room": room}
    shared["square"] = min(max(0.1 * (signal / 60) ** 0.5, 0.1), 1.0)
    if bounded_curvature:
        loud = min(math.log(max(signal, 120.0) / 120) / math.log(2000 / 120), 1.0)
        # a narrow clip costs few errors, but makes probabilities too sure of themselves
        clip = min(max(0.016 * signal**0.5, 0.1), 1.0)
        trust = between(math.log(signal / 300) / math.log(4), 0.0, 1.0)
        return shared | {
            "max_iter": math.ceil(24 - 14 * trust),
            "step_size": (0.7 + 0.3 * loud) * reach,
            "momentum": 0.4 + 0.35 * loud,
            "head": 0.5 + 0.1 * trust,
            "margin_trust": trust,
            "learns": trust > 0,
            "residual_clip": clip,
            "first_clip": max(clip, 0.5),
            "floor": 1.0,
        }
    growth = 0.5 if found_target else 0.33
    learns = signal >= 1000  # what moves meet is more than noise
    return shared | {
        "max_iter": 6 if learns else 10,
        "step_size": reach if learns else 0.8 * reach,
        "learns": learns,
        "momentum": (0.45 if found_target else 0.3) + 0.15 * learns,
        "head": 0.34 if learns else 0.5,
        "residual_clip": min(max(0.1 * (signal / 30) ** growth, 0.1), 0.5),
        "first_clip": min(max(0.5 * (signal / 60) ** 0.25, 0.5), 1.0),
        "floor": 0.7 / room if looks_at_rows else 0.5,
    }


def quantile_newton_recipe(recipe, signal, loss):
    """More and longer steps: of records only those near a quantile curve its loss.

    About their share is `width` over a tenth of the target's half-width, until released gradients
    tell more; below a signal of 300 noise pays for shorter steps. Derivatives are bounded, and a
    clip below the larger one would move the quantile.
    """
    return recipe | {
        "max_iter": 30,
        "step_size": max(0.1 / loss.width, 1.0) * min(signal / 300, 1.0),
        "learns": True,
        "momentum": 0.5,
        "head": 0.4,
        "residual_clip": loss.steepest,
        "first_clip": loss.steepest,
    }


def softmax_newton_recipe(signal, n_coordinates, n_classes):
    """More than two classes: one clip has to do for all, and noise is in the margins of each.

    What counts is the noise of margins beside the clip. The bound on the curvature is farther from
    the truth the more classes there are, so steps are longer than 1, by as little as is safe even
    where it is reached (below 2 (1 + β) / (1 + 2 β), 1.4 for β = 0.75), until margins are trusted
    to tell how far it is, and fewer are enough. Momentum grows as far as the noise leaves room.
    """
    # a clip over the noise that a gradient of this clip moves the margins of a row by
    clear = signal / math.sqrt(n_coordinates * n_classes)
    clip = min(max(0.03 * clear, 0.1), 1.0)
    trust = between(math.log(clear / 40) / math.log(5), 0.0, 1.0)
    shared = newton_recipe(signal, True, n_coordinates)
    return shared | {
        "max_iter": math.ceil(24 - 8 * trust),
        "step_size": (1.2 - 0.2 * trust) * min(max(signal / 40, 0.05), 1.0),
        "momentum": min(max(0.25 + 0.03 * clear, 0.4), 0.75) + 0.05 * trust,
        "head": 0.4 + 0.2 * trust,
        "margin_trust": trust,
        "learns": trust > 0,
        "curvature_share": 0.15,
        "residual_clip": clip,
        "first_clip": max(clip, 0.5),
        "floor": 0.5,
    }


def steps_for_inference(signal):
    """Newton steps of a bounded curvature: short and without momentum below a loud signal.

    The mean of noisy iterates lies farther out than what they circle, since derivatives flatten
    there: their noise is to stay small, and what short steps leave of the way is known.
    """
    loud = between(math.log(max(signal, 400.0) / 400) / math.log(5), 0.0, 1.0)
    reach = between(signal / 40, 0.05, 1.0)
    steps = {"step_size": (0.3 + 0.7 * loud) * reach, "momentum": 0.6 * loud}
    return steps | {"max_iter": 24, "head": 0.5, "margin_trust": 0.0}


def newton_recipe_for_inference(recipe, signal, bounded_curvature, *, found_target=False):
    """A recipe with what an inference changes of it.

    Steps for residuals are shorter, with a higher floor: where the noise made P too flat many
    would diverge. Found bounds of a target are twice as wide as without inference, and residuals
    fill less of them.
    """
    clip = clip_for_inference(signal, bounded_curvature) * (0.75 if found_target else 1.0)
    clips = {"residual_clip": clip, "first_clip": max(clip, recipe["first_clip"])}
    recipe = recipe | clips | {"learns": False}  # of steps that do it is not known how noise moves
    if bounded_curvature:
        return recipe | steps_for_inference(signal)
    steps = {"max_iter": 28, "head": 0.2, "step_size": 0.6 * between(signal / 40, 0.05, 1.0)}
    return recipe | steps | {"floor": 1.0, "momentum": 0.3}


# Share of the μ² that the curvature leaves for the mean square of rows, and for their mean: as
# much, and the less the louder they are.
_SHARE_OF_ROWS, _LOUD_ROWS = 0.025, 150.0
# To which square of their norm features are clipped at least beside the intercept's constant, whose
# square is 1: for less, hardly less noise would be had, and rare columns cut.
_LEAST_SQUARE = 0.3
# By so many standard deviations less are squares what they are beyond doubt: a curvature that is
# made whole where nothing was cut leaves the fit half way.
_DOUBT_OF_SQUARES = 4.0
# Weights above it count as it. Where many reach the clip steps overshoot (survey weights of 150: up
# to 30 times the descent's error), and the clipped logistic loss has another minimiser.
_HEAVIEST = 2.0
# Squares of a row with unbounded features are this much per feature, at most, when means are taken.
_WIDEST = 3.0


class NewtonPlan(SolverPlan):
    """Proximal Newton: memory of p² numbers, two of every record, and 16 bits a cell."""

    solve = staticmethod(_newton.solve)
    losses = set(LOSSES)
    has_inference = True
    curvature, rows_within, knows_weights, starts_at_medians = 1.0, 1.0, True, True
    mean_square = 0.0  # of rows as they were found to be

    @cached_property
    def recipe(self):
        request, bounded = self.request, self.request.n_classes > 0
        if request.n_outputs > 1:
            return softmax_newton_recipe(request.signal, request.n_coordinates, request.n_outputs)
        found_target = request.finds_target and bool(request.target_search.n_choices)
        recipe = newton_recipe(
            request.signal,
            bounded,
            request.n_coordinates,
            looks_at_rows=self._looks_at_rows,
            found_target=found_target,
        )
        if request.loss.name == "quantile":
            return quantile_newton_recipe(recipe, request.signal, request.loss)
        if not request.inference:
            return recipe
        return newton_recipe_for_inference(
            recipe, request.signal, bounded, found_target=found_target
        )

    @property
    def _share(self):
        share = self.request.solver.curvature_share
        return self.recipe["curvature_share"] if share == "auto" else float(share)

    @property
    def _centres(self):
        """Whether rows are seen from their mean, which a free intercept makes good."""
        request = self.request
        return request.fit_intercept and not request.penalize_intercept and not request.sparse

    @property
    def _looks_at_rows(self):
        """Whether their moments are worth a price: found quartiles tell where they lie already.

        An inference looks in any bounds: without it, coefficients of rare categories would ruin
        predictions (8 columns of .1, n = 8,000, ε = 1: R² -.15, and .42 with it).
        """
        request = self.request
        if request.inference or not request.private:
            return request.private
        return request.scales.features not in ("tails", "quartiles")

    @property
    def _n_of_rows(self):
        """How many means are released of rows, and of the numbers that persons have of them."""
        return self._looks_at_rows * (1 + self._centres) + self.request.by_id

    @property
    def _most_times(self):
        """Up to which number the root of a person's number of records counts; public."""
        return between(self.request.signal / 10, 4.0, 32.0) if self.request.by_id else 0.0

    @property
    def _share_of_rows(self):
        if not self._n_of_rows:
            return 0.0
        return _SHARE_OF_ROWS * min((_LOUD_ROWS / self.request.signal) ** 0.5, 1.0)

    @property
    def widest(self):
        """To which norm rows are clipped while their mean and its square are taken."""
        request = self.request
        if not request.private:
            return math.inf
        square = float(request.n_features)
        if not self._looks_at_rows:
            square *= self.recipe["square"]
        if request.feature_bounds is None or request.feature_scale is not None:
            square *= _WIDEST
        square = max(square, 1.0) + request.fit_intercept
        return math.sqrt(min(square, self.geometry.largest_square))

    @cached_property
    def row_norm(self):
        """To which rows are clipped when the curvature is released; public."""
        return self.widest

    @cached_property
    def alone(self):
        request, n_fits = self.request, self.request.n_fits
        share = self._share if request.private else 0.5
        return curvature_fit_event(
            request.budget,
            n_fits * self.n_updates,
            share,
            n_fits,
            (1 - share) * self._share_of_rows * self._n_of_rows,
            self._n_of_rows,
        )

    @property
    def _noise(self):
        """Noise of the curvature's diagonal."""
        noise = self.part.releases[1].noise_multiplier / self.request.budget.n
        return noise * matrix_sensitivity(self.row_norm, self.request.budget.neighboring)

    @property
    def curvature_noise(self):
        """The spectral edge of the curvature's noise."""
        return math.sqrt(2 * self.request.n_coordinates) * self._noise

    @property
    def extra(self):
        """The floor, in multiples of the spectral edge of the curvature's noise, and the clip."""
        if not self.request.private:
            return {"curvature_floor": 0.0, "unit_clips": (1.0, 1.0)}
        # two standard deviations of the trace that it is compared with
        doubt = 2 * math.sqrt(self.request.n_penalized) * self._noise
        return {
            "curvature_floor": self.recipe["floor"] * self.curvature_noise,
            # an inference, whose floor is higher, was measured without
            "curvature_edge": 0.0 if self.request.inference else self.curvature_noise,
            "mean_square": max(self.mean_square - doubt, 0.0),
            "unit_clips": self._unit_clips,
            "head": self.recipe["head"],
            "margin_trust": self.recipe.get("margin_trust", 0.0),
            # where means are exponentials a step too far ends at means of zero, or at their bound
            "longest_move": 1.0 if self.request.has_log_link else math.inf,
            "zero_sum": self.request.loss.zero_sum,
        }

    @property
    def _unit_clips(self):
        last = self.clip / self._largest_gradient / math.sqrt(self.request.loss.curvature)
        if self.request.clip != "auto":
            if not 1e-25 < last < 1e25:  # of the grid of gradients, with room for their geometry
                raise ValueError(
                    f"clip={self.request.clip!r} is too far from the scale of the features and the "
                    "target for Newton steps; change it, or ask for a descent (solver='skgd')"
                )
            return last, last
        return self.recipe["first_clip"] / self.recipe["residual_clip"] * last, last

    def units(self, n_samples):
        return CurvatureUnits(
            self.part,
            n_samples=n_samples,
            smoothness=self.geometry.smoothness,
            n_normalizer=self.request.budget.n,
            row_norm=self.widest,
            n_outputs=self.request.n_outputs,
            constant=constant_of_rows(
                self.request.loss, self.geometry.smoothness, self.request.fit_intercept
            ),
            most_times=self._most_times,
        )

    def run(self, receipt, records, key, generator):
        place = self.place(records)
        with limited_blas(1):  # with more, the last bits of a factorisation may differ
            units = self.units(place.n_samples)
            oracle = CurvatureOracle(
                receipt,
                units,
                place,
                loss=self.request.loss,
                fit_intercept=self.request.fit_intercept,
                max_weight=_HEAVIEST if self.request.private else math.inf,
                key=key,
            )
            within = self._within_rows(oracle, units, records) if self._looks_at_rows else self
            problem = within.attended
            if self.request.by_id:
                times = between(oracle.release_times(), 1.0, self._most_times)
                problem = replace(problem, times=times)
            if self.request.private and self.recipe["learns"]:
                problem = replace(problem, gradient_noise=gradient_noise(self, units))
            solution = within.solve(oracle, problem, within.sampling, generator)
            if self.request.chooses:
                noise = gradient_noise(self, units) * solution.walk.clips[-1]
                solution = chosen(within, solution, noise)
            elif self.request.inference:
                solution = with_inference(within, receipt, within.place(records), solution, key)
            else:
                solution = within._with_noise(within._with_log_of_mean(solution), units)
        return _seen_from(solution, within.geometry.center - self.geometry.center)

    def _with_log_of_mean(self, solution):
        """The solution with the mean of predictions, as released moments of rows tell it."""
        request = self.request
        if not (request.has_log_link and request.mean_share):
            return solution
        moments = solution.tail.second_moments / request.loss.curvature
        margins = solution.coef[np.newaxis] * np.sqrt(self.geometry.smoothness)
        mean, variance = moments_of_margins(moments, margins, True)
        # normal margins; noise may be most of a large variance
        return replace(solution, log_of_mean=float(mean[0] + between(variance[0, 0], 0.0, 2.0) / 2))

    def _with_noise(self, solution, units):
        """The solution with the noise's covariance, where the curvature tells how it is followed.

        That of other losses than the squared one is not the released one.
        """
        request = self.request
        known = request.loss.name == "squared" and request.has_smooth_penalty and not request.by_id
        if not (known and request.private):
            return solution
        noise = noise_of(
            self.attended,
            solution.walk,
            solution.coef,
            before=solution.tail.point.ravel() / np.sqrt(self.attended.smoothness),
            curvature_noise=self._noise,
            gradient_noise=gradient_noise(self, units),
            is_fixed=self.geometry.is_fixed,
        )
        return replace(solution, noise=noise)

    def _within_rows(self, oracle, units, records):
        """The plan for rows as they were found to be: around their mean, and as long as most.

        The oracle sees them so from here on.
        """
        n_features, geometry = self.request.n_features, self.geometry
        square, weight = oracle.release_mean_square(), 1.0
        noise = units.of_rows("mean square of rows").std
        if self._centres:
            row = oracle.release_mean_row()  # that of the intercept's constant comes last
            doubt = _DOUBT_OF_WEIGHT * units.mean_std
            weight = 1.0 if abs(row[-1] - 1) <= doubt else max(row[-1], doubt)
            mean = np.where(geometry.is_fixed, 0.0, np.clip(row[:-1] / weight, -1.0, 1.0))
            far = mean @ mean
            square += n_features * units.mean_std**2 / weight - weight * far
            # of weight |mean|², to first order: by the means, and by the weight if it was found
            moved = units.mean_std * math.sqrt(4 * far + far**2 * (weight != 1))
            noise = math.hypot(noise, moved)
            geometry = self._centred(mean)
        constant = self.request.n_penalized - n_features  # where the intercept is penalised
        mean_square = square - _DOUBT_OF_SQUARES * noise + constant
        # no less than the noise that it has; that of rows that count, if others weigh nothing
        square = self.recipe["room"] * max(square + noise, noise) / weight
        if self.request.fit_intercept:
            square = max(square, _LEAST_SQUARE) + 1
        row_norm = min(math.sqrt(square), 2 * self.widest)  # no row is longer than that
        within = self.over(geometry, parts=self.parts, mean_square=mean_square, row_norm=row_norm)
        within = within.attended_by(self._start, self._progress)
        oracle.see(within.place(records), within.row_norm)
        return within

    def _centred(self, mean):
        """The geometry around a mean in the units of sqrt(M_j)."""
        geometry, n_features = self.geometry, self.request.n_features
        scales = np.sqrt(geometry.smoothness[:n_features] / self.request.loss.curvature)
        lo, hi = geometry.lo, geometry.hi
        if lo is None:
            hi = np.full(n_features, np.inf)
            lo = -hi
        return replace(geometry, lo=lo, hi=hi, center=geometry.center + mean * scales)


# A mean weight within so many standard deviations of 1 is that of records without weights, and no
# mean weight is taken to be less than so many.
_DOUBT_OF_WEIGHT = 3.0


def _seen_from(solution, shift):
    """A solution in coordinates whose centre is at zero, of one whose centre is at `shift`."""
    if not shift.any():
        return solution
    back = np.eye(len(shift) + 1)
    back[-1, :-1] = -shift
    path = None if solution.path is None else solution.path @ back.T
    moved = {"path": path, "coef": solution.coef @ back.T}
    for name in ("noise", "inference"):
        found = getattr(solution, name)
        moved[name] = found and found.moved(back)
    strengths = tuple(one and one.moved(lambda w: w @ back.T) for one in solution.strengths)
    return replace(solution, strengths=strengths, **moved)


@dataclass(eq=False, repr=False)
class Newton(Solver):
    """Proximal Newton steps: a noisy curvature, and a few gradients in its geometry.

    Parameters
    ----------
    curvature_share : float in (0, 1) or "auto", default="auto"
        Share of the privacy loss (μ² of Gaussian DP) that goes to the matrix of second moments; up
        to 5 % of the rest go to the mean of rows and of their squared norms, all else to the
        gradients. "auto" is 0.2, and 0.15 of more than two classes.
    step_size : float in (0, 1e15] or "auto", default="auto"
        Steps are divided by the released curvature; by less of it where a loud signal tells that
        classes part, and by more where a move met more.
    momentum : float in [0, 1) or "auto", default="auto"
        Nesterov's: gradients are taken where this share of the last move would lead again.
    averaging : {"auto", "last", "tail"}, default="auto"
        The last model, or the mean of those of the last half of the steps ("tail", "auto"); with
        `inference` of a regression of all but the first fifth.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import Newton
    >>> Newton(curvature_share=0.3)
    Newton(curvature_share=0.3)
    """

    word = "newton"
    planned_by = NewtonPlan
    _parameter_constraints = parameters_of(
        {"auto", "last", "tail"}, curvature_share=[AUTO, SHARE], momentum=MOMENTUM
    )

    curvature_share: Auto = "auto"
    _: KW_ONLY
    step_size: Auto = "auto"
    momentum: Auto = "auto"
    averaging: str = "auto"
