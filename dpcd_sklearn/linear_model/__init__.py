"""Estimators: parameters, documentation and predictions around one fit recipe."""

from ._lasso import DPLassoCD
from ._logistic import DPLogisticGCD
from ._ridge import DPRidgeSkGD

__all__ = ["DPLassoCD", "DPLogisticGCD", "DPRidgeSkGD"]
