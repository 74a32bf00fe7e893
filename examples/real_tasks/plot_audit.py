"""
Try to break it: an audit
=========================

A claim that nobody could refute is worth little. :func:`~dpcd_sklearn.inspection.audit` draws what
a fit of your shape releases again and again, from records with and without somebody, and guesses.
"""

# %%
# Release by release
# ------------------
# Each kind of release of the fit gets a row: the μ that is claimed, the μ that guesses could show,
# and with which probability half of the noise would have been noticed. Where bounds are stated,
# fewer kinds of release are left to be guessed from.

import matplotlib.pyplot as plt

from dpcd_sklearn import DPRidgeSkGD
from dpcd_sklearn.inspection import AuditDisplay, audit

model = DPRidgeSkGD(
    epsilon=2.0,
    delta=1e-6,
    solver="skgd",
    max_iter=5,
    feature_bounds=(-1, 1),
    target_bounds=(-1, 1),
)
result = audit(model, n_samples=600, n_features=3)
print(result)

# %%
# What it can show
# ----------------
# A verdict of "passed" says that a fault as large as half of the noise would have been found, with
# the powers below; it is no proof, which each mechanism has beside its code.

print(result.verdict)
AuditDisplay(result).plot()
plt.show()
