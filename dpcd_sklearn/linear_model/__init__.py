"""Estimators."""

from ._cv import DPElasticNetCV, DPLassoCV, DPLogisticCV, DPRidgeCV
from ._lasso import DPLassoCD
from ._linear_classifier import DPLinearClassifier
from ._linear_regressor import DPLinearRegressor
from ._logistic import DPLogisticGCD
from ._means_and_quantiles import DPGammaRegressor, DPPoissonRegressor, DPQuantileRegressor
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
