"""
What is released: a picture of noise
====================================

A private model is random. Here we fit the same digits with four values of ε, and draw the released
weights of one class: this is all that anyone can see of them.
"""

# %%
# Models of one table
# -------------------
# The images show ten digits, with 64 pixels between 0 and 16. We state only these public facts.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPLogisticGCD

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
models = {
    f"ε = {epsilon}": DPLogisticGCD(
        epsilon=epsilon, delta=1e-6, classes=range(10), feature_bounds=(0, 16)
    ).fit(X_train, y_train)
    for epsilon in (0.3, 1, 3, 10)
}
models["no privacy"] = LogisticRegression(C=0.01, max_iter=2000).fit(X_train, y_train)
for name, model in models.items():
    print(f"{name:10} accuracy {model.score(X_test, y_test):.3f}")

# %%
# The weights of "3", pixel by pixel
# ----------------------------------
# The smaller ε, the more of the picture is noise. Each fit draws fresh noise, so the speckles
# differ from fit to fit; what all fits share comes from the records.

fig, axes = plt.subplots(1, len(models), figsize=(9, 2.3), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    weights = model.coef_[3].reshape(8, 8)
    most = np.abs(weights).max()
    ax.imshow(weights, cmap="PuOr", vmin=-most, vmax=most)
    ax.set(title=name, xticks=[], yticks=[])
plt.show()

# %%
# The event says how much noise there was, in units of what one record can move:

print(models["ε = 1"].privacy_event_)
