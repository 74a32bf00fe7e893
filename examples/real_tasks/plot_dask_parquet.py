"""
From a folder of parquet files to a private model
=================================================

Records lie in files that need not fit into memory. Dask reads them where its workers are, and
:mod:`dpcd_sklearn.dask` fits them there: what travels are integers, and the model is, bit for bit,
that of one machine.
"""

# %%
# Files
# -----
# The records are simulated, one file for each day.

import tempfile
import warnings
from pathlib import Path
from tempfile import mkdtemp

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from dpcd_sklearn import DPLogisticGCD as OfOneMachine
from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.dask import DPLogisticGCD
from dpcd_sklearn.exceptions import PrivacyLeakWarning, ReproducibleNoiseWarning
from dpcd_sklearn.testing import ReproducibleNoise

# Scores have no noise, and say so; these records are made up.
warnings.simplefilter("ignore", PrivacyLeakWarning)

rng = np.random.default_rng(0)
names = [f"x{j}" for j in range(8)]
folder = tempfile.TemporaryDirectory()
for day in range(6):
    table = pd.DataFrame(rng.uniform(-1, 1, (4_000, len(names))), columns=names)
    odds = 4 * table["x0"] - 2 * table["x1"] + table["x2"]
    table["bought"] = (rng.random(len(table)) < 1 / (1 + np.exp(-odds))).astype(int)
    table.to_parquet(Path(folder.name, f"day{day}.parquet"))

# %%
# A cluster
# ---------
# Two workers in this process; for a real cluster use ``Client("tls://scheduler:8786",
# security=...)``.

cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
client = Client(cluster)
records = dd.read_parquet(folder.name)
X, y = records[names], records["bought"]
print(records.npartitions, "partitions")

# %%
# A private fit
# -------------
# The ledger gets one entry, before the workers compute any sum.

ledger = f"{mkdtemp()}/records.ledger"  # of real records: a file that stays
PrivacyAccountant(epsilon=2.0, delta=1e-5, path=ledger)  # once
accountant = PrivacyAccountant.open(ledger)  # in every program that fits
model = DPLogisticGCD(
    epsilon=1.0, delta=1e-6, classes=[0, 1], feature_bounds=(-1, 1), accountant=accountant
).fit(X, y)
print(accountant.spent())
print(f"accuracy {model.score(X, y):.3f}")
print(model.predict_proba(X))  # nothing is computed yet

# %%
# The same bits
# -------------
# With reproducible noise (never for a model that you publish) the model of the cluster equals that
# of one machine, to the last bit.

warnings.simplefilter("ignore", ReproducibleNoiseWarning)
params = {"classes": [0, 1], "feature_bounds": (-1, 1), "random_state": ReproducibleNoise(0)}
of_cluster = DPLogisticGCD(**params).fit(X, y)
everything = records.compute()
of_one = OfOneMachine(**params).fit(everything[names], everything["bought"])
print("same bits:", np.array_equal(of_cluster.coef_, of_one.coef_))

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.bar(np.arange(8) - 0.2, of_one.coef_[0], 0.4, label="one machine")
axes.bar(np.arange(8) + 0.2, of_cluster.coef_[0], 0.4, label="cluster")
axes.set(xticks=range(8), xticklabels=names, ylabel="coefficient", title="ε = 1")
axes.legend(frameon=False)
client.close()
cluster.close()
folder.cleanup()
plt.show()
