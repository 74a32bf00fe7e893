"""Differentially private linear models for scikit-learn, solved by coordinate descent."""

from importlib.metadata import PackageNotFoundError, version

from .exceptions import BudgetExceededError, LedgerError, PrivacyLeakWarning

try:
    from . import linear_model
    from .linear_model import *  # noqa: F403
    from .privacy.ledger._accountant import PrivacyAccountant
    from .utils._persons import Persons
except ImportError as error:
    if not (error.name or "").startswith(__name__):  # something else is missing
        raise
    raise ImportError(
        f"{error.name} is not there: the kernels of dpcd_sklearn are not built for this Python. In "
        "the checkout write `pip install -e .`, or `make test`, which makes .venv for it too; "
        "elsewhere `pip install dpcd_sklearn`"
    ) from error

try:
    __version__ = version("dpcd_sklearn")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["BudgetExceededError", "LedgerError", "Persons"]
__all__ += ["PrivacyAccountant", "PrivacyLeakWarning"]
__all__ += linear_model.__all__
