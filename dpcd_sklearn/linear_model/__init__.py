"""Estimators."""

from ._cv import DPElasticNetCV, DPLassoCV, DPLogisticCV, DPRidgeCV
from ._lasso import DPLassoCD
from ._linear_classifier import DPLinearClassifier
from ._linear_regressor import DPLinearRegressor
from ._logistic import DPLogisticGCD
from ._ridge import DPRidgeSkGD

__all__ = [
    "DPElasticNetCV",
    "DPLassoCD",
    "DPLassoCV",
    "DPLinearClassifier",
    "DPLinearRegressor",
    "DPLogisticCV",
    "DPLogisticGCD",
    "DPRidgeCV",
    "DPRidgeSkGD",
]
