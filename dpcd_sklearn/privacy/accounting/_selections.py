"""δ(ε) of one fit that makes Gaussian releases and choices of one bounded range, in any order.

The choices are dominated by one distribution of loss (``_selection_curve``), the Gaussians by
their own; both orders and all interleavings are covered. Proof: ``proofs/selections.md``.
"""

from functools import lru_cache

from ._loss import Loss, composed, repeated
from ._selection_curve import loss_distribution

# Tables of about so many operations, and at least so fine: the noise multiplier is then above its
# least value by 0.02 % for 50 choices, 0.1 % for 200 and 0.5 % for more, which are several tables.
_TABLE = 2e7
_LONGEST = 512  # choices of one table
_FINEST, _COARSEST = 64, 8
# Beyond so many operations (half a second, a dozen times), or losses whose exponential leaves
# double precision, zCDP is used instead.
_MOST = 1e9
_WIDEST = 500.0
TAIL = 1e-12  # share of a delta that may be moved to an infinite loss


def _cells(eta, count):
    cells = int((_TABLE / (7 * count**1.5)) ** 0.5)
    cells = min(max(cells, _COARSEST), _FINEST)
    # a range of many units of ε needs cells by their absolute width
    return max(cells, min(int(eta * 20), 1000))


def _widest(eta, count):
    """The largest loss of a table, in ranges."""
    return min(2 * count, 7 * count**0.5 + count * eta / 8)


def is_tractable(eta, count):
    """Whether the tables of so many choices of this range are made in a few seconds."""
    if not 0 < eta <= _WIDEST or (_widest(eta, count) + 2) * eta > _WIDEST:
        return False
    longest = min(count, _LONGEST)
    return _widest(eta, longest) * _cells(eta, longest) ** 2 * longest <= _MOST


@lru_cache(maxsize=64)
def choices_loss(eta, count, tail):
    """The loss of `count` choices of range `eta`; a probability of up to `tail` may be infinite.

    Many choices are groups of `_LONGEST`, whose losses compose as those of several ranges do.
    """
    cells = _cells(eta, min(count, _LONGEST))
    groups, rest = divmod(count, _LONGEST)
    share = tail / (2 * (groups + 1)) if groups else tail
    losses = []
    if groups:
        losses.append(repeated(_table(eta, _LONGEST, cells, share), groups, tail / 2))
    if rest:
        losses.append(_table(eta, rest, cells, share))
    return composed(losses)


def _table(eta, count, cells, tail):
    losses, masses, infinite = loss_distribution(eta, count, cells, tail)
    return Loss(round(losses[0] / (eta / cells)), eta / cells, masses, infinite)
