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
    """What one fit would cost.

    Attributes
    ----------
    epsilon, delta : float
        The loss of this fit alone, by the tightest curve known, at the ledger's delta.
    amount : float
        What it would count in the ledger's currency.
    currency : {"rdp", "gdp"}
    fits_left : int
        How many such fits what is left of the budget admits (``inf`` when one counts nothing).
    """

    epsilon: float
    delta: float
    amount: float
    currency: str
    fits_left: int

    def __str__(self):
        fits = "fit is" if self.fits_left == 1 else "fits are"
        return (
            f"epsilon={self.epsilon:.4g} at delta={self.delta:.4g} ({self.amount:.4g} in the "
            f"ledger's {self.currency} currency); {self.fits_left} such {fits} left"
        )
