"""Translation of events for the `dp_accounting` library (an extra): for checks, not for the ledger.

Its accountants assume, for a plain Gaussian, that replacing a record doubles the sensitivity (PLD)
or not (RDP). Here z is over the sensitivity under the event's own relation, which is what they
call the multiplier under adding or removing a record: use that relation with what this returns.

Events are known by the names of their classes, because they import this file and not the reverse.
"""

import math

from ._gaussian_dp import hidden_state_factor

_SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}


def translated(event, neighboring=None):
    """The `dp_accounting` event of an event of ours."""
    try:
        from dp_accounting import dp_event as peer
    except ImportError as error:
        raise ImportError(
            "to_dp_event needs dp_accounting: pip install 'dpcd_sklearn[accounting]'"
        ) from error

    def repeated(single, count):
        return single if count == 1 else peer.SelfComposedDpEvent(single, count)

    match type(event).__name__:
        case "FitEvent":
            parts = [translated(release, event.neighboring) for release in event.releases]
            return peer.ComposedDpEvent(parts)
        case "GaussianEvent":
            return repeated(peer.GaussianDpEvent(event.noise_multiplier), event.count)
        case "HiddenStateEvent":
            # Gaussian DP: one Gaussian release of the same loss
            factor = hidden_state_factor(event.count, event.contraction)
            return peer.GaussianDpEvent(event.noise_multiplier / math.sqrt(factor))
        case "LaplaceEvent":
            return repeated(peer.LaplaceDpEvent(event.noise_multiplier), event.count)
        case "SelectionEvent":
            return repeated(peer.ZCDpEvent(event.eta**2 / 8), event.count)
        case "PureEvent":
            # its randomised response knows no adding and removing of records
            return repeated(peer.ZCDpEvent(event.epsilon**2 / 2), event.count)
        case "PoissonSampledEvent":
            if neighboring != "add_remove":
                raise TypeError(
                    "dp_accounting has no samples under replace_one whose multiplier is over the "
                    "sensitivity; only add_remove can be translated"
                )
            one = peer.GaussianDpEvent(event.noise_multiplier)
            return repeated(peer.PoissonSampledDpEvent(event.sampling_rate, one), event.count)
        case "TuningEvent":
            shape = _SHAPES[event.distribution]
            return peer.RepeatAndSelectDpEvent(translated(event.base), event.mean, shape)
        case "NonPrivateEvent":
            return peer.NonPrivateDpEvent()
    raise TypeError(f"dp_accounting has no event like {event!r}")
