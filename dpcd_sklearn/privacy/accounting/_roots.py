"""The one root finder of calibrations: how much of a budget a plan may take, from the safe side."""

import math
from functools import cache

from ._gaussian_dp import inverse

TOLERANCE = 2e-7  # of a logarithm: noise above its least by less is nobody's loss
_MOST_STEPS = 100  # towards a change of sign; a few are enough
_WIDEST_STEP = 2.0


def largest_within(excess, start, highest=math.inf, tolerance=TOLERANCE):
    """The largest x with excess(x) ≤ 0, rounded downwards; None if there is none nearby.

    Parameters
    ----------
    excess : callable
        It grows with x, about as fast; a jump is no harm.
    start, highest : float
        The search begins at `start` and goes no farther than `highest`.
    tolerance : float, > 0
        An excess between -tolerance and 0 is near enough.
    """
    within = []

    @cache  # `inverse` asks for its ends again
    def aimed(x):
        value = excess(x)
        if value <= 0:
            within.append(x)
        return 0.0 if -tolerance <= value <= 0 else value + tolerance / 2

    here, at, step = start, aimed(start), tolerance
    for _ in range(_MOST_STEPS):
        if at == 0.0 or (at < 0 and here >= highest):
            break
        step = min(max(1.04 * abs(at), 1.5 * step), _WIDEST_STEP)
        there = min(here - math.copysign(step, at), highest)
        if at * (value := aimed(there)) < 0:
            inverse(aimed, here, there, within=tolerance / 4)
            break
        here, at = there, value
    return max(within, default=None)
