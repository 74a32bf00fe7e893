"""Translation of events for the `dp_accounting` library (an extra): for checks, not for the ledger.

Its accountants assume, for a plain Gaussian, that replacing a record doubles the sensitivity (PLD)
or not (RDP). Here z is over the sensitivity under the event's own relation, which is what they
call the multiplier under adding or removing a record: use that relation with what this returns.
"""

import math

from ._events import (
    FitEvent,
    GaussianEvent,
    HiddenStateEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    PureEvent,
    SelectionEvent,
    TuningEvent,
)
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

    match event:
        case FitEvent(releases=releases, neighboring=relation):
            return peer.ComposedDpEvent([translated(release, relation) for release in releases])
        case GaussianEvent(noise_multiplier=z, count=count):
            return repeated(peer.GaussianDpEvent(z), count)
        case HiddenStateEvent(noise_multiplier=z, count=count, contraction=c):
            # Gaussian DP: one Gaussian release of the same loss
            return peer.GaussianDpEvent(z / math.sqrt(hidden_state_factor(count, c)))
        case LaplaceEvent(noise_multiplier=b, count=count):
            return repeated(peer.LaplaceDpEvent(b), count)
        case SelectionEvent(eta=eta, count=count):
            return repeated(peer.ZCDpEvent(eta**2 / 8), count)
        case PureEvent(epsilon=epsilon, count=count):
            # its randomised response knows no adding and removing of records
            return repeated(peer.ZCDpEvent(epsilon**2 / 2), count)
        case PoissonSampledEvent(sampling_rate=rate, noise_multiplier=z, count=count):
            if neighboring != "add_remove":
                raise TypeError(
                    "dp_accounting has no samples under replace_one whose multiplier is over the "
                    "sensitivity; only add_remove can be translated"
                )
            return repeated(peer.PoissonSampledDpEvent(rate, peer.GaussianDpEvent(z)), count)
        case TuningEvent(base=base, distribution=distribution, mean=mean):
            return peer.RepeatAndSelectDpEvent(translated(base), mean, _SHAPES[distribution])
        case NonPrivateEvent():
            return peer.NonPrivateDpEvent()
    raise TypeError(f"dp_accounting has no event like {event!r}")
