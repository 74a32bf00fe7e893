"""Events of what transformers of tables release, from a target (ε, δ): towards more noise."""

from ._events import CoveredEvent, FitEvent, NonPrivateEvent
from ._gaussian_dp import gdp_mu

_UP = 1 + 1e-12
# Share of δ that names categories of one record: several fits have it each, and a later charge of
# a ledger takes it from a reserve of a hundredth of δ. A 32nd would lower thresholds by a sixth.
_NAMED_ALONE = 2.0**-14


def partition_event(budget):
    """Counts of categories, of which a small part of δ names what one record alone has."""
    epsilon, delta, neighboring = budget[:3]
    if not budget.private:
        return FitEvent((NonPrivateEvent(),), neighboring)
    spare = _NAMED_ALONE * delta
    # accounting, rounded upwards, gives no more than epsilon
    mu = gdp_mu(epsilon / (1 + 1e-9), (delta - spare) / (1 - spare) * (1 - 1e-9))
    return FitEvent((CoveredEvent(_UP / mu, spare),), neighboring)
