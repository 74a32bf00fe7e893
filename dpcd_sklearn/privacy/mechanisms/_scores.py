"""Scores of a public model on records: sums of whole numbers with exact Gaussian noise.

The sensitivities are written here, once. Proof: ``privacy/proofs/release_score.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..sums._score_sums import LEVELS
from ._gaussian_sum import UP, SumUnits, out_of_range
from ._questions import Question

_BITS = 48  # of the noise: floor(2^48 N)
MOST_RECORDS = 2**30


def score_sensitivity(kind, size, n_samples, neighboring, of_shares=False):
    """How far neighbours move the sums of a kind, in the l2 norm.

    Parameters
    ----------
    kind : {"right", "cells", "bounded", "pairs"}
        What ``_score_sums`` counts; pairs are weighted by `pair_weights`.
    size : int
        Number of sums.
    n_samples : int
        Public number of records.
    neighboring : {"replace_one", "add_remove"}
    of_shares : bool
        Whether counts are of persons' shares, in units of 1 / LEVELS.
    """
    one = LEVELS if of_shares else 1.0
    replaced = neighboring == "replace_one"
    if kind == "right":
        return one
    if kind == "cells":
        return math.sqrt(2) * one if replaced else one
    if kind == "bounded":
        return (2.0 if replaced else 1.0) * LEVELS * math.sqrt(size)
    if kind == "pairs" and replaced:
        return 4.0 * max(1, n_samples - 1)
    raise ValueError(f"no sensitivity of {kind!r} is known under {neighboring!r}")


def pair_weights(n_samples):
    """Whole weights of the pairs and of the number of ones: the latter costs nothing."""
    # (2 w)² ≥ w² + v² for v = √3 w; in units of n - 1 pairs, w = 2
    return [2, math.isqrt(12 * max(1, n_samples - 1) ** 2)]


@dataclass(frozen=True, eq=False)
class ScoreSums(Question):
    """Sums of a kind from ``_score_sums``, each in units of its own."""

    kind: str
    factors: tuple

    def answer(self, place):
        sums = place()
        if len(sums) != len(self.factors):
            raise ValueError(f"{len(self.factors)} sums were paid for, got {len(sums)}")
        exact = [factor * int(total) for factor, total in zip(self.factors, sums, strict=True)]
        return np.array(exact, dtype=object)


class ScoreUnits(SumUnits):
    """Units of one score.

    Parameters
    ----------
    event : as of SumUnits
    kind, size : as of `score_sensitivity`
    n_samples : int
        Number of records, or under add_remove the public one.
    of_shares : bool

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, there is no sensitivity, or the noise is out of range.
    """

    what = "scores"

    def __init__(self, event, kind, size, n_samples, of_shares=False):
        if n_samples > MOST_RECORDS:
            raise ValueError("more than 2^30 records have no exact score; score fewer")
        if n_samples < 0 or size < 1:
            raise ValueError(f"no score is of {size} sums over {n_samples} records")
        self.kind = kind
        sensitivity = score_sensitivity(kind, size, n_samples, event.neighboring, of_shares)
        super().__init__(event, sensitivity, n_samples=n_samples)
        weights = pair_weights(n_samples) if kind == "pairs" else [1] * size
        self.factors = tuple(self.units * weight for weight in weights)

    def _grid(self, noise_multiplier, slack):
        """The finest of all grids: few sums of few records, in integers of any length."""
        needed = noise_multiplier * self.sensitivity * UP
        units = math.floor(2.0**_BITS / needed) if needed > 2.0**-100 else 0
        if units < 1:
            raise out_of_range(noise_multiplier, f"of scores of {self.n_samples} records")
        return _BITS, units

    @property
    def noise_std(self):
        """Standard deviation of the noise of each sum."""
        return [2.0**self.bits / factor for factor in self.factors]

    def redeem(self, receipt, place=None, fit_intercept=False):
        """As of Units; sums come from a function, which knows no number of records."""
        super().redeem(receipt)
        return place

    def question(self):
        """About a function that gives a list of int, of the kind and size of the units."""
        return ScoreSums(self.kind, self.factors)

    def decode(self, noisy):
        """The sums with noise: a list of float."""
        return [int(total) / factor for total, factor in zip(noisy, self.factors, strict=True)]
