"""The estimators for records in the partitions of a Dask cluster; needs the extra ``dask``."""

from ._on_a_cluster import (
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
