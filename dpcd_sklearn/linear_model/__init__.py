"""Estimators."""

from ._classifiers import DPLinearClassifier, DPLogisticGCD
from ._presets import (
    DPElasticNetCV,
    DPGammaRegressor,
    DPLassoCV,
    DPLogisticCV,
    DPPoissonRegressor,
    DPQuantileRegressor,
    DPRidgeCV,
)
from ._regressors import DPLassoCD, DPLinearRegressor, DPRidgeSkGD

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
