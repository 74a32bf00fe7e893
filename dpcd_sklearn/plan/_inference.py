"""Moments for inference: what a fit releases beside its updates, and what is made of it."""

from dataclasses import replace

from ..loops._covariance import SAFE_JACOBIAN, inference_of, normal_square
from ..privacy.accounting._calibration import moments_event
from ..privacy.mechanisms._curvature import MomentOracle, MomentUnits
from ..privacy.mechanisms._curvature_units import matrix_sensitivity
from ._release import Release


def share_for_inference(signal, n_coordinates):
    """Share of μ² for the moments.

    Their noise grows with the number of coordinates: records that are many beside it leave more to
    the gradients. The signal is that of all of μ².
    """
    return min(max(0.2 * (500 * n_coordinates / max(signal, 1e-300)) ** 0.5, 0.05), 0.2)


class GradientMoments(Release):
    """Moments for covariances: two matrices, and one number with twice the noise."""

    name = "moments"

    def share(self, plan):
        return plan.request.share_of_moments if plan.request.inference else 0.0

    def event(self, plan):
        request = plan.request
        return moments_event(request.budget, self.share(plan))

    def units(self, plan, n_samples):
        return MomentUnits(**self.paid(plan, n_samples), smoothness=plan.geometry.smoothness)


MOMENTS = GradientMoments()
# The least safe eigenvalue up to which an inference is expected to be valid. Of 30 fits of even
# columns in stated bounds (p = 3, 8, 20) 28 were valid at .6 and 17 at .65; in found ones 25
# at .45, 21 at .5 and 12 at .6. Of 800 fits of 1,000 records of 3 columns (.6, ε = 3) .95 were.
_MOST_SAFE, _MOST_SAFE_FOUND = 0.62, 0.45


def has_too_few_for_intervals(request):
    """Whether the moments of rows would be unsafe, by public numbers.

    In the geometry of Newton steps the moments are about the identity.
    """
    if not (request.private and request.inference):
        return False
    most = _MOST_SAFE_FOUND if request.scales.n_choices else _MOST_SAFE
    budget, size = request.budget, request.n_coordinates
    noise = moments_event(budget, request.share_of_moments).releases[0].noise_multiplier
    noise *= matrix_sensitivity(1.0, budget.neighboring) / budget.n
    return SAFE_JACOBIAN * (2 * size) ** 0.5 * noise * normal_square(size) > most


def gradient_noise(plan, units):
    """The standard deviation of a gradient's noise over its clip."""
    if not plan.request.private:
        return 0.0
    z = plan.part.releases[0].noise_multiplier
    return z * units.neighbors / plan.request.budget.n


def with_inference(plan, receipt, place, solution, key):
    """The solution with covariances of its coefficients, and with what these still lacked.

    Parameters
    ----------
    plan : SolverPlan
        Planned with `inference`.
    receipt : Receipt
        What pays for the moments is redeemed here.
    place : Place
    solution : Solution
        With its walk.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.
    """
    request, walk = plan.request, solution.walk
    moment_noise = square_noise = 0.0
    if request.private:
        of_matrix = matrix_sensitivity(1.0, request.budget.neighboring)
        moment_noise, square_noise = (
            release.noise_multiplier * of_matrix / request.budget.n
            for release in plan.part_of("moments").releases
        )
    edge = (2 * request.n_coordinates) ** 0.5 * moment_noise  # of the noise's spectrum, a unit
    square = walk.square(edge)
    stated = {"loss": request.loss, "fit_intercept": request.fit_intercept}
    units, oracle = MOMENTS.opened(plan, receipt, place, key, MomentOracle, **stated)
    at, clip = (walk.root, solution.coef), walk.clips[-1]
    # Gradients may be far within their clip. Their moments have a narrower one: 12 times the mean
    # square, which is no less than two standard deviations of its noise, or as much wider as
    # leaves the noise an eighth of what an eigenvalue is on average.
    mean = max(oracle.release_mean_square(*at, clip), 0.0) + 2 * square_noise * clip**2
    wide = max(12.0, 1 / max(8 * request.n_coordinates * edge, 1e-300))
    score_norm = min(clip, (wide * mean) ** 0.5) if request.private else clip
    moments = oracle.release_moments(*at, clip, square**0.5, score_norm)
    found = inference_of(
        plan.attended,
        walk,
        solution.coef,
        moments,
        squares=(square, score_norm**2),
        n_records=request.budget.n,
        gradient_noise=gradient_noise(plan, units),
        moment_noise=moment_noise,
        is_fixed=plan.geometry.is_fixed,
    )
    return replace(solution, coef=solution.coef + found.left, inference=found)
