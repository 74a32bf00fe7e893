"""What accountants answer: what was spent, and what a fit would cost."""

import dataclasses
from typing import NamedTuple


class PrivacySpent(NamedTuple):
    """What was spent: (epsilon, delta)-DP, delta being the ledger's."""

    epsilon: float
    delta: float

    def __str__(self):
        return f"epsilon={self.epsilon:.4g} at delta={self.delta:.4g}"


@dataclasses.dataclass(frozen=True)
class PrivacyCost:
    """What a fit, or a search of many, would cost.

    Attributes
    ----------
    epsilon, delta : float
        The loss at the ledger's delta: of one fit by the tightest curve known, of several by their
        sum in the ledger.
    amount : float
        What it would count in the ledger's currency.
    currency : {"rdp", "gdp"}
    fits_left : int
        How many times what is left of the budget admits it (``inf`` when it counts nothing).
    n_fits : int
        How many fits it is, each an entry of the ledger.
    sizes : tuple of (n_fits, n_samples, epsilon)
        How many of them are of how many records, and the loss of the dearest of these by itself;
        the smallest first.
    """

    epsilon: float
    delta: float
    amount: float
    currency: str
    fits_left: int
    n_fits: int = 1
    sizes: tuple = ()

    def __str__(self):
        several = self.n_fits > 1
        left = "time is" if self.fits_left == 1 else "times are"
        if not several:
            left = "such fit is" if self.fits_left == 1 else "such fits are"
        text = (
            f"epsilon={self.epsilon:.4g} at delta={self.delta:.4g} ({self.amount:.4g} in the "
            f"ledger's {self.currency} currency); {self.fits_left} {left} left"
        )
        if not several:
            return text
        sizes = ", ".join(
            f"{count} of {n:,} records at epsilon={epsilon:.4g}" for count, n, epsilon in self.sizes
        )
        return f"{self.n_fits} fits ({sizes}): {text}"
