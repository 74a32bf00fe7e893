"""
A report to file
================

What the privacy officer gets: which (ε, δ) holds, what was released at which noise, who vouches for
the bounds, and what is not protected. It is made of what was released, so it costs nothing.
"""

# %%
# A model of tumours
# ------------------

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from dpcd_sklearn import DPLogisticGCD, PrivacyAccountant
from dpcd_sklearn.inspection import CoefficientDisplay, PrivacyReport

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[["mean radius", "mean texture", "mean smoothness", "mean symmetry"]]
bounds = {
    "mean radius": (5, 30),
    "mean texture": (0, 50),
    "mean smoothness": (0, 0.25),
    "mean symmetry": (0, 0.4),
}
folder = Path(mkdtemp())  # of real records: a folder that stays
PrivacyAccountant(epsilon=4.0, delta=1e-6, path=folder / "tumours.ledger")  # once
accountant = PrivacyAccountant.open(folder / "tumours.ledger")  # in every program that fits
model = DPLogisticGCD(
    epsilon=3.0, delta=1e-6, classes=[0, 1], feature_bounds=bounds, accountant=accountant
).fit(X, y)

# %%
# The report
# ----------
# A notebook shows it as a page; ``save`` writes .html, .md, .json or .yaml.

report = PrivacyReport(model, vouched_by="the clinic's data officer")
report.save(folder / "tumours.html")
print(report.to_markdown().split("## Leaks")[0])

# %%
# A report of the ledger lists everything that was charged to it:

print(PrivacyReport(accountant).to_markdown().split("## What is not")[0])

# %%
# For the registry of deployments
# -------------------------------
# The report fills tiers two and three. You supply what only the curator knows.

print(report.to_registry_yaml(name="Tumours", data_curators=["The clinic"])[:900], "...")

# %%
# A plot of the released coefficients:

CoefficientDisplay.from_estimator(model)
plt.show()
