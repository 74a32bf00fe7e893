"""The estimators for records in the partitions of a Dask cluster; needs the extra ``dask``."""

from ._estimators import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)

__all__ = [
    "DPLassoCD",
    "DPLinearClassifier",
    "DPLinearRegressor",
    "DPLogisticGCD",
    "DPRidgeSkGD",
]
