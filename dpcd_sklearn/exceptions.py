"""Exceptions and warnings that a user may want to catch."""


class BudgetExceededError(RuntimeError):
    """A charge was refused because it would exceed the accountant's budget.

    Nothing was drawn and no record was used when this is raised.
    """


class LedgerError(RuntimeError):
    """The ledger can't be read or written, so nothing may be released (fail closed)."""


class PrivacyLeakWarning(UserWarning):
    """A request that runs, but whose result is not private, or is released beside the budget."""


class ReproducibleNoiseWarning(PrivacyLeakWarning):
    """Noise was asked for that can be drawn again, so the fit is not private."""


class UnknownScaleWarning(UserWarning):
    """Nobody stated the scale of the data, and there are too few records to find it, or bounds that
    were found cut many of them."""


class FewRecordsWarning(UserWarning):
    """Records and budget are too small for a model that is better than none, for the standard
    errors that are asked for, or to find where columns lie, by public numbers."""
