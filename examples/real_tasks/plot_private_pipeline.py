"""
A mixed table, end to end
=========================

Numbers in their own units, words, and cells without a value: what usually stands before a model,
with nothing learnt for free. A :class:`~dpcd_sklearn.pipeline.PrivatePipeline` divides one budget
over the steps that do learn, charges it as one entry, and refuses what would learn in silence.
"""

# %%
# A table
# -------
# Prices of diamonds, from weight, grades and measures. The file is that of ggplot2, if the folder
# ``DPCD_DATA`` has it; otherwise the table below is made up, by a rough law of price. Grades are
# words again, and a length of zero means that it was not measured.

import os
import warnings
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpcd_sklearn import DPRidgeSkGD, PrivacyAccountant, PrivacyLeakWarning
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler

# Scores have no noise, and say so; these records are public anyway.
warnings.simplefilter("ignore", PrivacyLeakWarning)

grades = {  # scales of the trade, public
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": list("JIHGFED"),
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}


def diamonds():
    path = Path(os.environ.get("DPCD_DATA", "../../../shared/data")) / "diamonds.npz"
    if path.is_file():
        with np.load(path) as arrays:
            table = pd.DataFrame(arrays["X"], columns=arrays["feature_names"])
            price = arrays["y"]
    else:
        rng = np.random.default_rng(0)
        carat = np.exp(rng.normal(-0.4, 0.55, 20_000)).clip(0.2, 2.5)
        width = 6.4 * carat ** (1 / 3)
        table = pd.DataFrame({"carat": carat})
        for name, levels in grades.items():
            table[name] = rng.integers(len(levels), size=len(carat))
        table["depth"] = rng.normal(61.7, 1.4, len(carat))
        table["table"] = rng.normal(57.5, 2.2, len(carat))
        table["x"], table["y"], table["z"] = width, width, 0.62 * width
        worth = 1 + 0.06 * (table["clarity"] - 3) + 0.05 * (table["color"] - 3)
        price = (7_800 * carat - 1_300) * worth * np.exp(rng.normal(0, 0.2, len(carat)))
        price = price.clip(300, 20_000)  # dearer ones are not in the table
    for name, levels in grades.items():
        table[name] = np.array(levels)[table[name].astype(int)]
    lengths = ["x", "y", "z"]
    table[lengths] = table[lengths].where(table[lengths] > 0)
    order = np.random.default_rng(0).permutation(len(table))  # the file is sorted, nearly
    return table.iloc[order], np.asarray(price)[order]


X, price = (part[:10_000] for part in diamonds())
X_train, X_test, y_train, y_test = train_test_split(X, price, random_state=0)
print(X.head(3).to_string())

# %%
# What would go wrong
# -------------------
# The usual steps read means, levels and scales off the records, for free. The pipeline says so
# before it fits, as :func:`~dpcd_sklearn.inspection.find_leaks` does for any object.

numbers = ["carat", "depth", "table", "x", "y", "z"]
words = list(grades)
usual = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
    ]
)
model = DPRidgeSkGD(target_bounds=(0, 20_000))
for leak in find_leaks(make_private_pipeline(usual, model)):
    print(f"{leak.severity}: {leak.what}\n      use {leak.instead}")

# %%
# Everything public
# -----------------
# - ``SimpleImputer(strategy="constant")`` fills with a number that is stated;
#   ``keep_empty_features=True`` keeps a column that happens to be empty.
# - ``OneHotEncoder(categories=...)`` has the levels that exist, whoever is in the table;
#   ``handle_unknown="ignore"`` makes an unknown word all zeros, where an error would quote it.
# - :class:`~dpcd_sklearn.preprocessing.BoundsScaler` has the bounds by the name of the column. It
#   needs names, so the imputer before it gives out a data frame.
#
# The model is told what is public by then: numbers lie in [-1, 1], indicators in [0, 1].

bounds = {
    "carat": (0, 4),
    "depth": (50, 75),  # per cent
    "table": (45, 80),  # per cent
    "x": (2, 11),  # mm
    "y": (2, 11),
    "z": (1, 7),
}
fill = SimpleImputer(strategy="constant", fill_value=5.0, keep_empty_features=True)
levels = OneHotEncoder(
    categories=list(grades.values()), handle_unknown="ignore", sparse_output=False
)


def columns(scaler):
    filled = make_pipeline(fill, scaler).set_output(transform="pandas")
    return ColumnTransformer([("numbers", filled, numbers), ("words", levels, words)])


ledger = f"{mkdtemp()}/records.ledger"  # of real records: a file that stays
PrivacyAccountant(epsilon=4.0, delta=1e-9, path=ledger)  # once
accountant = PrivacyAccountant.open(ledger)  # in every program that fits
stated = make_private_pipeline(
    columns(BoundsScaler(bounds)), model, epsilon=1.0, accountant=accountant
).fit(X_train, y_train)
print(f"R² with bounds by name: {stated.score(X_test, y_test):.3f}")
print(stated.told_["dpridgeskgd"]["feature_bounds"])

# %%
# Bounds that nobody knows
# ------------------------
# A :class:`~dpcd_sklearn.preprocessing.DPStandardScaler` finds the scales of columns privately:
# here of numbers only, since indicators need none. Scaler and model share ε = 1, divided by shares
# of μ², and make one entry in the ledger.

found = make_private_pipeline(
    columns(DPStandardScaler()), model, epsilon=1.0, accountant=accountant
).fit(X_train, y_train)
print(f"R² with scales that are found: {found.score(X_test, y_test):.3f}")
print({name: round(share, 3) for name, share in found.shares_.items()})
print(found.privacy_event_)
print(accountant.report())

# %%
# Planning costs nothing. Columns chosen by name need a data frame to choose from; any row will do.

print(accountant.cost(found, n_samples=len(X_train), n_features=X_train.head(1)))

# %%
# The price of privacy
# --------------------
# Three fits each, without the ledger: on public data, as here, they may be repeated.

plain = make_pipeline(columns(BoundsScaler(bounds)), LinearRegression())
plain_score = plain.fit(X_train, y_train).score(X_test, y_test)
epsilons = [0.3, 1.0, 3.0]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for k, (name, scaler) in enumerate(
    {"bounds by name": BoundsScaler(bounds), "scales found": DPStandardScaler()}.items()
):
    scores = [
        [
            make_private_pipeline(columns(scaler), model, epsilon=epsilon)
            .fit(X_train, y_train)
            .score(X_test, y_test)
            for _ in range(3)
        ]
        for epsilon in epsilons
    ]
    middle = np.median(scores, axis=1)
    ax.plot(epsilons, middle, "o-", color=f"C{k}", label=f"{name}, median of 3")
    ax.fill_between(epsilons, np.min(scores, 1), np.max(scores, 1), color=f"C{k}", alpha=0.15, lw=0)
ax.axhline(plain_score, color="0.3", ls="--", label="LinearRegression, no privacy")
ax.set(xscale="log", xlabel="ε of the whole pipeline", ylabel="R² on held-out records")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend(loc="lower right")
plt.show()
