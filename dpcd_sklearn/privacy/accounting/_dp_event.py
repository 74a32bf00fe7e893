"""Translation of events for the `dp_accounting` library (an extra): for checks, not for the ledger.

Its accountants assume, for a plain Gaussian, that replacing a record doubles the sensitivity (PLD)
or not (RDP). Here z is over the sensitivity under the event's own relation, which is what they
call the multiplier under adding or removing a record: use that relation with what this returns.

Events are known by the names of their classes, because they import this file and not the reverse.
"""

import math

from ._tuning import shape_of


def _tuning(peer, event, _):
    if event.distribution == "subset":
        raise TypeError("dp_accounting has no search that tries each candidate or not")
    poisson = event.distribution == "poisson"
    shape = math.inf if poisson else shape_of(event.distribution)
    return peer.RepeatAndSelectDpEvent(_translated(peer, event.base), event.mean, shape)


def _repeated(peer, single, count):
    return single if count == 1 else peer.SelfComposedDpEvent(single, count)


def _poisson_sampled(peer, event, neighboring):
    if neighboring != "add_remove":
        raise TypeError(
            "dp_accounting has no samples under replace_one whose multiplier is over the "
            "sensitivity; only add_remove can be translated"
        )
    one = peer.GaussianDpEvent(event.noise_multiplier)
    return _repeated(peer, peer.PoissonSampledDpEvent(event.sampling_rate, one), event.count)


def _covered(peer, event, neighboring):
    raise TypeError("dp_accounting has no release that tells everything with a small probability")


# A row for each kind of release.
_TRANSLATIONS = {
    "FitEvent": lambda peer, e, _: peer.ComposedDpEvent(
        [_translated(peer, release, e.neighboring) for release in e.releases]
    ),
    "GaussianEvent": lambda peer, e, _: _repeated(
        peer, peer.GaussianDpEvent(e.noise_multiplier), e.count
    ),
    "SelectionEvent": lambda peer, e, _: _repeated(peer, peer.ZCDpEvent(e.eta**2 / 8), e.count),
    "CoveredEvent": _covered,
    "PoissonSampledEvent": _poisson_sampled,
    "TuningEvent": _tuning,
    "NonPrivateEvent": lambda peer, e, _: peer.NonPrivateDpEvent(),
}


def _translated(peer, event, neighboring=None):
    row = _TRANSLATIONS.get(type(event).__name__)
    if row is None:
        raise TypeError(f"dp_accounting has no event like {event!r}")
    return row(peer, event, neighboring)


def translated(event):
    """The `dp_accounting` event of an event of ours."""
    try:
        from dp_accounting import dp_event as peer
    except ImportError as error:
        raise ImportError(
            "to_dp_event needs dp_accounting: pip install 'dpcd_sklearn[accounting]'"
        ) from error
    return _translated(peer, event)
