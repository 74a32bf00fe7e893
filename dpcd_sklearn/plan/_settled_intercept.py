"""A few whole derivatives of the intercept of a classifier, after a descent with a narrow clip.

Beyond the clip a residual counts by its sign alone. Where few are within it, an intercept follows
the larger class until nearly all records are on that side; whole residuals bring it back to where
as many records are expected in each class as there are.
"""

import math
from dataclasses import replace

import numpy as np
from scipy.special import expit

from ..loops import _cd
from ..privacy.mechanisms._record_oracle import RecordOracle
from ..samplings import SingleSampling
from ._target_mean import OfIntercept, reach

# Share of μ² for the derivatives, and their number.
_SHARE, _COUNT = 0.05, 3
# Share of the Newton step of a model that knows the classes' shares alone, and the least curvature.
_STEP, _LEAST_CURVATURE = 0.7, 0.05


def is_settled(request, residual_clip):
    """Whether derivatives of the intercept are worth their share, by public numbers.

    They are where a fit counts classes, and of two classes only.
    """
    if request.n_outputs > 1 or request.n_fits > 1:
        return False
    # from .25 on, as on a9a at ε = 1, nothing is gained
    if request.clip != "auto" or request.class_weight is not None or residual_clip >= 0.25:
        return False
    # more noise of a mean derivative moves the share of a class by as much as it mends
    return math.sqrt(_COUNT / _SHARE) * request.least_noise <= 0.025


SETTLING = OfIntercept("intercept", _COUNT, lambda plan: _SHARE * plan.settles, reach)


def settled(plan, receipt, place, key, start, coef):
    """The coefficients with another intercept.

    Parameters
    ----------
    plan : SolverPlan
    receipt : Receipt
    place : Place
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.
    start : float
        The intercept of the classes' shares.
    coef : ndarray of shape (n_coordinates,)
        Released.
    """
    stated = {"loss": plan.loss, "fit_intercept": True}
    _, oracle = SETTLING.opened(plan, receipt, place, key, RecordOracle, **stated)
    curvature = max(expit(start) * expit(-start), _LEAST_CURVATURE)
    problem = replace(
        plan.problem,
        start=coef,
        n_updates=_COUNT,
        step_size=_STEP / curvature * float(plan.geometry.smoothness[-1]),
        curvature=1.0,
        momentum=0.0,
        averaging="last",
        path_every=0,
    )
    last = np.zeros(len(coef))
    last[-1] = 1.0
    nothing_to_draw = np.random.default_rng(0)
    return _cd.solve(oracle, problem, SingleSampling(len(coef), last), nothing_to_draw).coef
