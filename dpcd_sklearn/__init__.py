"""Differentially private linear models for scikit-learn, solved by coordinate descent."""

from importlib.metadata import PackageNotFoundError, version

from .exceptions import BudgetExceededError, LedgerError, PrivacyLeakWarning
from .linear_model import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from .privacy.ledger._accountant import PrivacyAccountant

try:
    __version__ = version("dpcd_sklearn")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "BudgetExceededError",
    "DPLassoCD",
    "DPLinearClassifier",
    "DPLinearRegressor",
    "DPLogisticGCD",
    "DPRidgeSkGD",
    "LedgerError",
    "PrivacyAccountant",
    "PrivacyLeakWarning",
]
