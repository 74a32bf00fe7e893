"""Estimators."""

from ._lasso import DPLassoCD
from ._linear_classifier import DPLinearClassifier
from ._linear_regressor import DPLinearRegressor
from ._logistic import DPLogisticGCD
from ._presets import (
    DPElasticNetCV,
    DPGammaRegressor,
    DPLassoCV,
    DPLogisticCV,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidgeCV,
)
from ._ridge import DPRidgeSkGD

__all__ = [
    "DPElasticNetCV",
    "DPGammaRegressor",
    "DPLassoCD",
    "DPLassoCV",
    "DPLinearClassifier",
    "DPLinearRegressor",
    "DPLogisticCV",
    "DPLogisticGCD",
    "DPPoissonRegressor",
    "DPQuantileRegressor",
    "DPRidgeCV",
    "DPRidgeSkGD",
]
