"""Moments for inference: what an engine releases beside its updates, and what is made of it."""

from dataclasses import replace

from ..privacy.accounting._calibration import share_event
from ..privacy.mechanisms._curvature import matrix_sensitivity
from ..privacy.mechanisms._moments import MomentOracle, MomentUnits
from ..solvers._covariance import inference_of


def moments_event(request):
    """What pays for both matrices of moments."""
    return share_event(
        request.epsilon, request.delta, request.share_of_moments, 2, request.neighboring
    )


def moment_units(engine, n_samples):
    """Units of the moments.

    Raises
    ------
    ValueError
        If the mechanism can't carry them out.
    """
    return MomentUnits(
        engine.part_of_moments,
        n_samples=n_samples,
        smoothness=engine.geometry.smoothness,
        n_normalizer=engine.request.n_normalizer,
    )


def with_inference(engine, receipt, place, solution, key):
    """The solution with covariances of its coefficients.

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
    """
    request, walk, units = engine.request, solution.walk, moment_units(engine, place.n_samples)
    moment_noise = gradient_noise = 0.0
    if request.private:
        both = engine.part_of_moments, engine.part
        moments, updates = (part.releases[0].noise_multiplier for part in both)
        of_unit = matrix_sensitivity(1.0, request.neighboring)
        moment_noise = moments * of_unit / request.n_normalizer
        gradient_noise = updates * units.neighbors / request.n_normalizer
    # two standard deviations above the mean squared norm of a normal row, or wider, up to far
    # beyond it, where the noise's spectral edge stays below a tenth of the curvature
    edge = (2 * request.n_coordinates) ** 0.5 * moment_noise
    square = walk.filled + 2 * (2 * walk.filled) ** 0.5
    square = max(square, min(0.1 / max(edge, 1e-300), 10 * walk.filled))
    oracle = MomentOracle(
        receipt, units, place, loss=request.loss, fit_intercept=request.fit_intercept, key=key
    )
    moments = oracle.release_moments(walk.root, solution.coef, walk.clips[-1], square**0.5)
    found = inference_of(
        engine.problem,
        walk,
        solution.coef,
        moments,
        square=square,
        n_records=request.n_normalizer,
        gradient_noise=gradient_noise,
        moment_noise=moment_noise,
    )
    return replace(solution, inference=found)
