"""The estimators, by the names that they have on one machine."""

from .. import linear_model as local
from ._on_a_cluster import ClassifierOnACluster, OnACluster, on_a_cluster


@on_a_cluster
class DPLassoCD(OnACluster, local.DPLassoCD):
    pass


@on_a_cluster
class DPRidgeSkGD(OnACluster, local.DPRidgeSkGD):
    pass


@on_a_cluster
class DPLogisticGCD(ClassifierOnACluster, local.DPLogisticGCD):
    pass


@on_a_cluster
class DPLinearRegressor(OnACluster, local.DPLinearRegressor):
    pass


@on_a_cluster
class DPLinearClassifier(ClassifierOnACluster, local.DPLinearClassifier):
    pass
