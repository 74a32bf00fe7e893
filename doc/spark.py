"""A private model of records in a Spark cluster, with the bits of a fit on one machine."""

import numpy as np
from pyspark.sql import SparkSession

from dpcd_sklearn import DPLinearClassifier, PrivacyAccountant
from dpcd_sklearn.partitions import fit_partitions

spark = SparkSession.builder.getOrCreate()
table = spark.read.parquet("records/")
features = [name for name in table.columns if name != "label"]


def as_arrays(number, rows):
    """One partition as (number, X, y); kept by the executor between rounds."""
    rows = list(rows)
    X = np.array([[row[name] for name in features] for row in rows], dtype=np.float64)
    yield number, X.reshape(-1, len(features)), np.array([row["label"] for row in rows], dtype=int)


partitions = table.rdd.mapPartitionsWithIndex(as_arrays).cache()


def run(task):
    """Run a task on every partition; what comes back is as secret as the records."""
    return partitions.map(lambda partition: task(*partition)).collect()


accountant = PrivacyAccountant.open("records.ledger")  # made once: see Deployment
model = DPLinearClassifier(
    solver="newton",
    classes=[0, 1],
    feature_bounds=(-1, 1),
    epsilon=1.0,
    delta=1e-8,
    accountant=accountant,
)
fit_partitions(model, run)
print(model.coef_, model.privacy_spent_)
