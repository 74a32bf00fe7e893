"""M_j of features whose bounds are stated, but loose: from released mean squares, if affordable.

Bounds far wider than the records make M_j too large: steps are too short, and clips, which follow
sqrt(M_j), are given to columns that do not need them.
"""

import hashlib

import numpy as np

from ..privacy.accounting._calibration import share_event
from ..privacy.accounting._gaussian_dp import gdp_mu
from ..privacy.mechanisms._smoothness import MOST_COLUMNS, SmoothnessOracle, SmoothnessUnits
from ._geometry import stated_scales

# The noise of a mean square that is aimed at, in squared half-widths, and the most that is worth
# a price: M_j are no less than it.
_NOISE, _MOST_NOISE = 0.005, 0.05
# Of μ².
_LEAST_SHARE, _MOST_SHARE = 0.01, 0.1
# Standard deviations of the noise that are added: M_j too small make steps too long.
_DOUBT = 2.0
# Of released mean squares, where next to no noise is a floor: bounds a thousand times too wide.
_LEAST = 1e-6


def smoothness_share(request):
    """Of μ², for mean squares of features; 0 where they are not asked for or not affordable.

    Raises
    ------
    ValueError
        If they are asked for and nothing bounds the features.
    """
    if not request.asks_for_smoothness:
        return 0.0
    if request.feature_bounds is None:
        raise ValueError(
            'feature_scale="private" needs feature_bounds, in whose units mean squares are '
            "released; without them leave it None: scales are then found in the records"
        )
    if not request.private or request.n_features > MOST_COLUMNS:
        return 0.0
    signal = request.n_normalizer * gdp_mu(request.epsilon, request.delta)
    least_root = request.n_features**0.5 / signal  # a noise of one, for the root of the share
    share = min(max((least_root / _NOISE) ** 2, _LEAST_SHARE), _MOST_SHARE)
    return share if least_root <= _MOST_NOISE * share**0.5 else 0.0


def smoothness_event(request):
    """What pays for mean squares."""
    share = request.smoothness_share
    return share_event(request.epsilon, request.delta, share, 1, request.neighboring)


def smoothness_units(request, part, n_samples):
    """Units of mean squares, which this part of the event pays for."""
    return SmoothnessUnits(
        part,
        n_columns=request.n_features,
        n_samples=n_samples,
        n_normalizer=request.n_normalizer,
    )


def found_mean_squares(request, receipt, part, place, key):
    """Mean squares of the features as a solver sees them: in their bounds, around its centre.

    Parameters
    ----------
    request : Request
    receipt : Receipt
    part : FitEvent
        What pays for them; it is redeemed here.
    place : Place
        Of records as they are.
    key : bytes of length 32, or None
        Reproducible noise; that of the updates is another one.

    Returns
    -------
    mean_squares : ndarray of shape (n_features,)
        In units of those that the bounds allow, positive and at most 1: rather too large.
    """
    if key is not None:
        key = hashlib.blake2b(key, digest_size=32, person=b"smoothness").digest()
    units = smoothness_units(request, part, place.n_samples)
    center, lo, hi, half_width = stated_scales(request)
    oracle = SmoothnessOracle(receipt, units, place, key=key)
    noisy = oracle.release_mean_squares(lo, hi, center, half_width)
    noise = units.noise_std
    return np.clip(noisy + _DOUBT * noise, max(noise, _LEAST), 1.0)
