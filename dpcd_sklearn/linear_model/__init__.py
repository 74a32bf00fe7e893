"""Estimators."""

from ._lasso import DPLassoCD
from ._linear_classifier import DPLinearClassifier
from ._linear_regressor import DPLinearRegressor
from ._logistic import DPLogisticGCD
from ._ridge import DPRidgeSkGD

__all__ = [
    "DPLassoCD",
    "DPLinearClassifier",
    "DPLinearRegressor",
    "DPLogisticGCD",
    "DPRidgeSkGD",
]
