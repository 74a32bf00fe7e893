"""
Try to break it: an audit
=========================

A claim that cannot be tested is worth little. :func:`~dpcd_sklearn.inspection.audit` draws what
a fit of your shape releases again and again, from records with and without somebody, and guesses.
"""

# %%
# Release by release
# ------------------
# Each kind of release of the fit has a row: the claimed μ, the μ that the attack could show, and
# the probability that the attack would have detected half of the noise. With stated bounds there
# are fewer kinds of release to attack.

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
# "passed" means that the audit would have detected half of the noise, with the power shown below.
# It is not a proof; each mechanism has one beside its code.

print(result.verdict)
AuditDisplay(result).plot()
plt.show()
