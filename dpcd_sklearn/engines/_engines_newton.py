"""Engine of proximal Newton steps: one noisy curvature, and a few gradients in its geometry."""

import math
from dataclasses import replace
from functools import cached_property

from ..privacy.accounting._calibration import curvature_fit_event
from ..privacy.mechanisms._curvature import CurvatureOracle, CurvatureUnits, matrix_sensitivity
from ..solvers import _newton
from ..solvers._covariance import noise_of
from ..utils._threads import limited_blas
from ._engine import Engine
from ._inference import gradient_noise, with_inference
from ._recipes import clip_for_inference, steps_for_inference


def newton_recipe(signal, bounded_curvature):
    """Few steps, and as much of them as the signal is worth.

    Without a second derivative of its own the logistic loss is moved by the bound on it, which is
    far too large where classes part: more steps, with more momentum where the signal pays for the
    noise that this gathers. Rows that are clipped make the noise of the curvature less and itself
    too small, so steps for residuals are shorter than 1.

    Beside what others have: the shares of μ² and of the largest squared norm of a row, the floor of
    eigenvalues in spectral edges of the noise, and the clip of the first gradient.
    """
    reach = min(max(signal / 40, 0.05), 1.0)  # below it noise would carry the model away
    shared = {"averaging": "tail", "head": 0.5, "curvature_share": 0.2}
    shared["square"] = min(max(0.1 * (signal / 60) ** 0.5, 0.1), 1.0)
    if bounded_curvature:
        loud = min(math.log(max(signal, 120.0) / 120) / math.log(2000 / 120), 1.0)
        # a narrow clip costs few errors, but makes probabilities too sure of themselves
        clip = min(max(0.016 * signal**0.5, 0.1), 1.0)
        return shared | {
            "max_iter": 24,
            "step_size": (0.7 + 0.3 * loud) * reach,
            "momentum": 0.4 + 0.4 * loud,
            "residual_clip": clip,
            "first_clip": max(clip, 0.5),
            "floor": 1.0,
        }
    return shared | {
        "max_iter": 8 if signal > 1000 else 10,
        "step_size": 0.8 * reach,
        "momentum": 0.3,
        "residual_clip": min(max(0.1 * (signal / 30) ** 0.33, 0.1), 0.5),
        "first_clip": min(max(0.5 * (signal / 60) ** 0.25, 0.5), 1.0),
        "floor": 0.5,
    }


class NewtonEngine(Engine):
    """Proximal Newton: memory of p² numbers, one of every record, and a tile."""

    solve = staticmethod(_newton.solve)
    averagings = {"auto", "last", "tail"}
    has_inference = True
    has_momentum = True
    curvature = 1.0

    @property
    def recipe(self):
        bounded = self.request.n_classes > 0
        recipe = newton_recipe(self.request.signal, bounded)
        if self.request.inference:
            wide = clip_for_inference(self.request.signal, bounded)
            recipe |= {"residual_clip": wide, "first_clip": max(wide, recipe["first_clip"])}
            if bounded:
                recipe |= steps_for_inference(self.request.signal)
            else:
                # shorter, with a higher floor: where the noise made P too flat many would diverge
                recipe |= {"max_iter": 28, "head": 0.2, "step_size": 0.75 * recipe["step_size"]}
                recipe["floor"] = 1.0
        return recipe

    @property
    def _share(self):
        share = self.request.curvature_share
        return self.recipe["curvature_share"] if share == "auto" else float(share)

    @property
    def row_norm(self):
        """To which rows are clipped when the curvature is released; public."""
        request = self.request
        if not request.private:
            return math.inf
        square = self.recipe["square"] * request.n_features
        if request.feature_bounds is None or request.feature_scale is not None:
            square *= 3.0  # a root mean square is well below bounds
        square = max(square, 1.0) + request.fit_intercept
        return math.sqrt(min(square, self.geometry.largest_square))

    @cached_property
    def alone(self):
        request, n_fits = self.request, self.request.n_fits
        return curvature_fit_event(
            request.epsilon,
            request.delta,
            n_fits * self.n_updates,
            self._share if request.private else 0.5,
            request.neighboring,
            n_fits,
        )

    @property
    def _edge(self):
        """The spectral edge of the curvature's noise."""
        request = self.request
        noise = self.part.releases[1].noise_multiplier * matrix_sensitivity(
            self.row_norm, request.neighboring
        )
        return math.sqrt(2 * request.n_coordinates) * noise / request.n_normalizer

    @property
    def extra(self):
        """The floor, in multiples of the spectral edge of the curvature's noise, and the clip."""
        if not self.request.private:
            return {"curvature_floor": 0.0, "unit_clips": (1.0, 1.0)}
        return {
            "curvature_floor": self.recipe["floor"] * self._edge,
            "unit_clips": self._unit_clips,
            "head": self.recipe["head"],
        }

    @property
    def _unit_clips(self):
        last = self.clip / self._largest_gradient / math.sqrt(self.request.loss.curvature)
        if self.request.clip != "auto":
            return last, last
        return self.recipe["first_clip"] / self.recipe["residual_clip"] * last, last

    def units(self, n_samples):
        return CurvatureUnits(
            self.part,
            n_samples=n_samples,
            smoothness=self.geometry.smoothness,
            n_normalizer=self.request.n_normalizer,
            row_norm=self.row_norm,
        )

    def run(self, receipt, records, key, generator):
        place = self.place(records)
        with limited_blas(1):  # with more, the last bits of a factorisation may differ
            oracle = CurvatureOracle(
                receipt,
                self.units(place.n_samples),
                place,
                loss=self.request.loss,
                fit_intercept=self.request.fit_intercept,
                key=key,
            )
            solution = self.solve(oracle, self.attended, self.sampling, generator)
            if self.request.inference:
                return with_inference(self, receipt, place, solution, key)
            return self._with_noise(solution, place.n_samples)

    def _with_noise(self, solution, n_samples):
        """The solution with the noise's covariance, where the curvature tells how it is followed.

        That of other losses than the squared one is not the released one.
        """
        request = self.request
        known = request.loss.name == "squared" and request.has_smooth_penalty
        if not (known and request.private):
            return solution
        noise = noise_of(
            self.attended,
            solution.walk,
            solution.coef,
            edge=self._edge,
            gradient_noise=gradient_noise(self, self.units(n_samples)),
        )
        return replace(solution, noise=noise)
