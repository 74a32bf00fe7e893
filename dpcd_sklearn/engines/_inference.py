"""Moments for inference: what an engine releases beside its updates, and what is made of it."""

from dataclasses import replace

from ..privacy.accounting._calibration import moments_event
from ..privacy.mechanisms._curvature_units import matrix_sensitivity
from ..privacy.mechanisms._gradient_moments import MomentOracle, MomentUnits
from ..solvers._covariance import inference_of
from ._release import Release


class GradientMoments(Release):
    """What covariances are made of: two matrices, and one number with five times the noise."""

    name = "moments"

    def share(self, plan):
        return plan.request.share_of_moments if plan.request.inference else 0.0

    def event(self, plan):
        request = plan.request
        return moments_event(request.epsilon, request.delta, self.share(plan), request.neighboring)

    def units(self, plan, n_samples):
        return MomentUnits(
            plan.part_of(self.name),
            n_samples=n_samples,
            smoothness=plan.geometry.smoothness,
            n_normalizer=plan.request.n_normalizer,
        )


MOMENTS = GradientMoments()


def gradient_noise(engine, units):
    """The standard deviation of a gradient's noise over its clip."""
    if not engine.request.private:
        return 0.0
    z = engine.part.releases[0].noise_multiplier
    return z * units.neighbors / engine.request.n_normalizer


def with_inference(engine, receipt, place, solution, key):
    """The solution with covariances of its coefficients, and with what these still lacked.

    Parameters
    ----------
    engine : Engine
        Planned with `inference`.
    receipt : Receipt
        What pays for the moments is redeemed here.
    place : Place
    solution : Solution
        With its walk.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.
    """
    request, walk, units = engine.request, solution.walk, MOMENTS.units(engine, place.n_samples)
    moment_noise = square_noise = 0.0
    if request.private:
        of_matrix = matrix_sensitivity(1.0, request.neighboring)
        moment_noise, square_noise = (
            release.noise_multiplier * of_matrix / request.n_normalizer
            for release in engine.part_of("moments").releases
        )
    edge = (2 * request.n_coordinates) ** 0.5 * moment_noise  # of the noise's spectrum, a unit
    square = walk.square(edge)
    oracle = MomentOracle(
        receipt,
        units,
        place,
        loss=request.loss,
        fit_intercept=request.fit_intercept,
        key=MOMENTS.key(key),
    )
    oracle = receipt.shown(oracle, units)
    at, clip = (walk.root, solution.coef), walk.clips[-1]
    # Gradients may be far within their clip. Their moments have a narrower one: five times the root
    # of the mean square, which is no less than three standard deviations of its noise, or as much
    # wider as leaves the noise an eighth of what an eigenvalue is on average.
    mean = max(oracle.release_mean_square(*at, clip), 0.0) + 3 * square_noise * clip**2
    wide = max(25.0, 1 / max(8 * request.n_coordinates * edge, 1e-300))
    score_norm = min(clip, (wide * mean) ** 0.5) if request.private else clip
    moments = oracle.release_moments(*at, clip, square**0.5, score_norm)
    found = inference_of(
        engine.attended,
        walk,
        solution.coef,
        moments,
        squares=(square, score_norm**2),
        n_records=request.n_normalizer,
        gradient_noise=gradient_noise(engine, units),
        moment_noise=moment_noise,
    )
    return replace(solution, coef=solution.coef + found.left, inference=found)
