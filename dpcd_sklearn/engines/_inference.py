"""Moments for inference: what an engine releases beside its updates, and what is made of it."""

from dataclasses import replace

from ..privacy.mechanisms._curvature import matrix_sensitivity
from ..privacy.mechanisms._moments import MomentOracle, MomentUnits
from ..solvers._covariance import inference_of


def moment_units(engine, n_samples):
    """Units of the moments, which the part before the last pays for.

    Raises
    ------
    ValueError
        If the mechanism can't carry them out.
    """
    return MomentUnits(
        engine.parts[-2],
        n_samples=n_samples,
        smoothness=engine.geometry.smoothness,
        n_normalizer=engine.request.n_normalizer,
    )


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
    """
    request, walk, units = engine.request, solution.walk, moment_units(engine, place.n_samples)
    moment_noise = gradient_noise = 0.0
    if request.private:
        moments, updates = (part.releases[0].noise_multiplier for part in engine.parts[-2:])
        of_unit = matrix_sensitivity(1.0, request.neighboring)
        moment_noise = moments * of_unit / request.n_normalizer
        gradient_noise = updates * units.neighbors / request.n_normalizer
    square = walk.square((2 * request.n_coordinates) ** 0.5 * moment_noise)
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
    return replace(solution, coef=solution.coef + found.left, inference=found)
