"""Whether records are too few for what is asked for: a warning from public numbers."""

import math
from bisect import bisect_left

from ..exceptions import FewRecordsWarning
from ..utils._texts import counted
from ..utils._warnings import warn
from ._inference import has_too_few_for_intervals
from ._shrinkage import lacks_scale, signal_of_rows

# Medians of 83 regressions and 73 classifications that no recipe was tuned on are no better
# than no model below these signals, where a scale is found for each column or stated, and where
# one has to do for all.
_LEAST_SIGNAL, _LEAST_OF_ONE_SCALE = 8.0, 30.0


def warn_of_few_records(request):
    """Warn once a fit, before the charge: of noise, or of no intervals, or of no centres."""
    if not request.private:
        return
    nothing = "the shares of the classes" if request.n_classes else "the mean of the target"
    knows_mean = request.has_log_link or request.mean_share
    if request.finds_target and not request.target_search.n_choices:
        nothing = "predictions near 0, since target_bounds are neither stated nor found"
    elif not (request.n_classes or request.finds_target or knows_mean):
        nothing += ", and predictions near the middle of target_bounds: state them around that mean"
    cases = {
        _are_few: f"leave little but noise: expect no better than {nothing}",
        _lacks_intervals: "leave too much noise in the moments of inference=True: standard errors "
        "are NaN, and all else is as with inference=False",
        _takes_columns_around_zero: "tell how large numbers are, not where: columns far from zero "
        "have little effect, and amounts among many zeros are cut: state feature_bounds",
    }
    what = next((text for is_so, text in cases.items() if is_so(request)), None)
    if what is None:
        return
    records = _least(request, "n", cases, integer=True)
    epsilon = _least(request, "epsilon", cases)
    ways = [f"n of about {records:,}"] if records else []
    ways += [f"epsilon of about {epsilon:g}"] if epsilon else []
    would = f"; {' or '.join(ways)} would do" if ways else ""
    warn(
        f"n={request.budget.n:,}, {counted(request.n_features, 'feature')} and "
        f"epsilon={request.budget.epsilon:g} {what}{would}",
        FewRecordsWarning,
    )


def _are_few(request):
    """Whether nothing better than the mean is to be expected, by public numbers."""
    if lacks_scale(request):
        return True
    is_one = request.scales.features == "rows" and not (request.sparse or request.n_classes)
    return signal_of_rows(request) < (_LEAST_OF_ONE_SCALE if is_one else _LEAST_SIGNAL)


def _takes_columns_around_zero(request):
    """Whether the search finds no centres, and a fit may have some."""
    has_centre = request.fit_intercept and not request.sparse
    return has_centre and request.scales.features in ("octaves", "rows")


def _lacks_intervals(request):
    """Whether intervals were asked for and are ruled out by public numbers."""
    if request.lacks_intervals:
        request = request.changed(inference=True)
    return has_too_few_for_intervals(request)


def _least(request, name, cases, integer=False):
    """The least number of a Budget for which no case holds; None if there is none."""

    def value_of(power):
        value = float(f"{getattr(request.budget, name) * 1.1**power:.2g}")
        return math.ceil(value) if integer else value

    def is_enough(power):
        budget = request.budget._replace(**{name: value_of(power)})
        _ = budget.mu
        other = request.changed(budget=budget)
        return not any(is_so(other) for is_so in cases)

    # Powers of 1.1 are tried. Where more evidence pays for other searches on the way, what is found
    # may not be the very least.
    try:
        last = next(filter(is_enough, [3**k for k in range(6)]), None)
    except ValueError:  # beyond what is accounted for
        return None
    return last and value_of(bisect_left(range(last), True, lo=last // 3 + 1, key=is_enough))
