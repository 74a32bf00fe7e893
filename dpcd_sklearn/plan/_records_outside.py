"""How many records lie outside of found bounds.

Bounds that are found cut tails, and a cut tail is another question: in census wages bounds that cut
5 % of the records moved the coefficient of education by fifteen standard errors. An inference looks
for bounds twice as wide, counts who is outside, and stands by its intervals if hardly anybody is.
A regression within stated bounds of columns counts far records, and narrows less if many are.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..exceptions import UnknownScaleWarning
from ..privacy.mechanisms._cell_sums import CountUnits
from ..utils._warnings import warn
from ._release import Release

# A cut share c moves a coefficient by about c sqrt(n) standard errors, times how far out records
# lie. So many records, in units of sqrt(n), are few; the noise of the count is a quarter of it.
FEW, _NOISE = 1.2, 0.3
_LEAST_SHARE, _MOST_SHARE = 0.005, 0.1
# Standard deviations of the count that are added: what is not known to be few counts as many.
_DOUBT = 2.0
# The share that is warned of, if the count is sure of more.
_MANY = 0.05


def share_of_outside(request):
    """Share of μ² for the count; 0 where no bound is found or no interval is asked for."""
    has_found = request.scales.n_choices or request.target_search.n_choices
    if not (request.private and request.inference and has_found):
        return 0.0
    mu = request.budget.mu
    aimed = (1 / (_NOISE * math.sqrt(request.budget.n) * mu)) ** 2
    return min(max(aimed, _LEAST_SHARE), _MOST_SHARE)


def share_of_far(request):
    """Share of μ² for two counts of far records: of a regression's search within bounds."""
    return 0.03 * bool(request.private and request.n_targets and request.scales.is_within)


class Outside(Release):
    """How many records lie outside of each of so many bounds that were found."""

    def __init__(self, name, share_of, n_bounds):
        self.name, self._share_of, self._n_bounds = name, share_of, n_bounds

    def share(self, plan):
        return self._share_of(plan.request)

    def units(self, plan, n_samples):
        return CountUnits(**self.paid(plan, n_samples), n_classes=2, n_columns=self._n_bounds)

    def found(self, plan, receipt, place, bounds, key):
        """Noisy shares of records outside of (lo, hi), a pair a row, and the deviation of each."""
        units, oracle = self.opened(plan, receipt, place, key)
        (shares,) = oracle.release("outside", np.atleast_2d(*bounds)) / plan.request.budget.n
        return shares.tolist(), units.noise_std / plan.request.budget.n


OUTSIDE, FAR = Outside("outside", share_of_outside, 1), Outside("far", share_of_far, 2)


def found_share_outside(plan, receipt, records, key):
    """The share of records that lie outside of found bounds of a feature or the target.

    Parameters
    ----------
    plan : SolverPlan
        In the bounds that were found.
    receipt : Receipt
        What pays for the count is redeemed here.
    records : RecordsOfAFit
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.

    Returns
    -------
    share, noise_std : float
    """
    request = plan.request
    with_target = bool(request.target_search.n_choices)
    everywhere = np.full(request.n_features, np.inf)
    lo, hi = plan.geometry.clipped_to or (-everywhere, everywhere)
    if with_target:
        center, half_width = request.target_center, request.target_half_width
        lo, hi = np.append(lo, center - half_width), np.append(hi, center + half_width)
    (share,), noise_std = OUTSIDE.found(plan, receipt, records.unscaled(with_target), (lo, hi), key)
    return share, noise_std


@dataclass(frozen=True, eq=False)
class Cut:
    """A share of records that are far, its noise, and columns that were narrowed nevertheless.

    The column that was narrowed most comes first.
    """

    share: float = 0.0
    noise_std: float = 0.0
    columns: tuple | np.ndarray = ()

    def warn(self, names):
        """Warn of many far records; after the fit, by released numbers alone."""
        if not (len(self.columns) and are_many(self.share, self.noise_std, _MANY)):
            return
        named = ", ".join(str(k) if names is None else repr(names[k]) for k in self.columns[:3])
        if len(self.columns) > 3:
            named += f" and {len(self.columns) - 3} others"
        are = "feature {} is" if len(self.columns) == 1 else "features {} are"
        warn(
            f"by a noisy count {self.share:.0%} of the records lie twice as far out as the bounds "
            f"that were found for some feature, and {are.format(named)} cut to bounds less than "
            "four times as wide (feature_bounds_): coefficients are those of cut records. To keep "
            "the tails, state feature_scale beside feature_bounds, or transform the features by a "
            "public function such as a logarithm",
            UnknownScaleWarning,
        )


NOTHING_CUT = Cut()


def are_few(share, noise_std, n_records):
    """Whether a share that was found is small beside the standard errors of so many records."""
    return share + _DOUBT * noise_std <= FEW / math.sqrt(n_records)


def are_many(share, noise_std, least):
    """Whether the count is sure of more than this share."""
    return share - _DOUBT * noise_std > least


def warn_of_cut(request, share, noise_std):
    """Warn of many records outside of found bounds; after the fit, by released numbers alone."""
    if not are_many(share, noise_std, _MANY):
        return
    names = ["feature_bounds"] * bool(request.scales.n_choices)
    names += ["target_bounds"] * bool(request.target_search.n_choices)
    warn(
        f"by a noisy count {share:.0%} of the records lie outside of the bounds that were found "
        f"({' and '.join(f'{name}_' for name in names)}), and were cut to them: coefficients are "
        f"those of cut records. State {' and '.join(names)} that hold nearly all of them",
        UnknownScaleWarning,
    )
