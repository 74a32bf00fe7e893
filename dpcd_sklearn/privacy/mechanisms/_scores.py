"""Scores of a public model on records: sums of whole numbers with exact Gaussian noise.

The sensitivities are written here, once. Proof: ``privacy/proofs/release_score.md``.
"""

import math

from ..accounting._events import GaussianEvent
from ..noise._noise import NoiseSource
from ..sums._score_sums import LEVELS

_BITS = 48  # of the noise: floor(2^48 N)
_UP = 1 + 2.0**-40
MOST_RECORDS = 2**30


def score_sensitivity(kind, size, n_samples, neighboring):
    """How far neighbours move the sums of a kind, in the l2 norm.

    Parameters
    ----------
    kind : {"right", "cells", "bounded", "pairs"}
        What ``_score_sums`` counts; pairs are weighted by `pair_weights`.
    size : int
        Number of sums.
    n_samples : int
        Number of records, which is public where it is used.
    neighboring : {"replace_one", "add_remove"}
    """
    replaced = neighboring == "replace_one"
    if kind == "right":
        return 1.0
    if kind == "cells":
        return math.sqrt(2) if replaced else 1.0
    if kind == "bounded":
        return (2.0 if replaced else 1.0) * LEVELS * math.sqrt(size)
    if kind == "pairs" and replaced:
        return 4.0 * max(1, n_samples - 1)
    raise ValueError(f"no sensitivity of {kind!r} is known under {neighboring!r}")


def pair_weights(n_samples):
    """Whole weights of the pairs and of the number of ones: the latter costs nothing."""
    # (2 w)² ≥ w² + v² for v = √3 w; in units of n - 1 pairs, w = 2
    return [2, math.isqrt(12 * max(1, n_samples - 1) ** 2)]


class ScoreUnits:
    """What one score is made of: from public numbers alone.

    Parameters
    ----------
    event : FitEvent
        One GaussianEvent of count 1.
    kind, size : as of `score_sensitivity`
    n_samples : int

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, there is no sensitivity, or the noise is out of range.
    """

    def __init__(self, event, kind, size, n_samples):
        if len(event.releases) != 1 or not isinstance(event.releases[0], GaussianEvent):
            raise TypeError(f"a score is paid for by one GaussianEvent, not by {event}")
        (gaussian,) = event.releases
        if gaussian.count != 1:
            raise ValueError(f"one score is one release, got {gaussian}")
        if n_samples > MOST_RECORDS:
            raise ValueError("more than 2^30 records have no exact score; score fewer")
        if n_samples < 0 or size < 1:
            raise ValueError(f"no score is of {size} sums over {n_samples} records")
        self.event, self.kind, self.size, self.n_samples = event, kind, size, n_samples
        self.weights = pair_weights(n_samples) if kind == "pairs" else [1] * size
        self.sensitivity = score_sensitivity(kind, size, n_samples, event.neighboring)
        needed = gaussian.noise_multiplier * self.sensitivity * _UP
        self.multiplier = math.floor(2.0**_BITS / needed) if needed > 2.0**-100 else 0
        if not self.multiplier >= 1:
            raise ValueError(
                f"noise multiplier {gaussian.noise_multiplier:g} is out of the range of scores of "
                f"{n_samples} records; change epsilon"
            )

    @property
    def noise_std(self):
        """Standard deviation of the noise of each sum."""
        return [2.0**_BITS / (self.multiplier * weight) for weight in self.weights]


class ScoreOracle:
    """Releases the sums of one score, once.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here.
    units : ScoreUnits
    key : bytes of length 32, default=None
        Reproducible noise, which protects nobody.
    """

    def __init__(self, receipt, units, *, key=None):
        receipt.redeem(units.event)
        self._units, self._noise = units, NoiseSource(key)

    def release_score(self, sums):
        """The sums with noise.

        Parameters
        ----------
        sums : list of int
            Of the units' kind and size, from ``_score_sums``.

        Returns
        -------
        noisy : list of float

        Raises
        ------
        RuntimeError
            If one was released before.
        """
        units, noise = self._units, self._noise
        if noise is None:
            raise RuntimeError("a score is released once; charge again for another")
        if len(sums) != units.size:
            raise ValueError(f"{units.size} sums were paid for, got {len(sums)}")
        self._noise = None
        drawn = noise.gaussians(units.size, _BITS).tolist()
        factors = [units.multiplier * weight for weight in units.weights]
        return [
            (factor * int(total) + error) / factor
            for factor, total, error in zip(factors, sums, drawn, strict=True)
        ]

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")
