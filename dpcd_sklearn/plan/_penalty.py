"""The penalty of a fit, and how much of it counts beside derivatives that are clipped."""

import math

import numpy as np

from ..penalties import PENALTIES, ElasticNet


def stated_penalty(request, share=1.0):
    """The Penalty of coefficients of the scaled target, or a share of it."""
    word = request.penalty
    if word is None:
        return ElasticNet()
    strength = share * request.strength / request.loss.unit
    return PENALTIES[word].of(word, strength, request, request.target_half_width)


def penalty_share(plan):
    """How much of a penalty counts, since clips leave less of the derivatives beside it.

    A guess by public numbers, for strong penalties, where it matters most. Residuals of numbers are
    normal, of a spread of .2 in half widths of the target's bounds, and of a clip κ they leave
    erf(κ / (√2 spread)). Those of classes are about one half: 2 κ are left, or κ where margins are
    shortened later. Beside a log link it follows the solver.
    """
    request = plan.request
    if not request.private or request.clip != "auto":
        return 1.0
    if request.has_log_link:
        return plan.log_link_share
    clip = plan.recipe["residual_clip"]
    if request.n_classes:
        return min(clip if request.length_share else 2 * clip, 1.0)
    unit, steepest = math.sqrt(2) * 0.2, request.loss.steepest
    return math.erf(min(plan.rows_within * clip, steepest) / unit) / math.erf(steepest / unit)


def slopes_in_length(request, coef, lengths):
    """Derivatives of the penalty of `length * coef` in the length, at each of several lengths."""
    value, coef = stated_penalty(request).value, coef[..., : request.n_penalized]
    slopes = [(value(1.01 * f * coef) - value(0.99 * f * coef)) / (0.02 * f) for f in lengths]
    return np.nan_to_num(slopes)  # NaN is that of a coefficient beyond a wall by a rounding
