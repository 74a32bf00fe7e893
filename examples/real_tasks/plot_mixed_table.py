"""
A table with gaps and categories
================================

Numbers in their own units, words of which nobody has a list, and cells without a value: every step
that learns from such a table voids a guarantee, unless it pays. Here all of them do, from one
budget, in six lines.
"""

# %%
# A table
# -------
# The simulated table says who answers an offer. Salaries have gaps, there are many towns, and one
# person lives in a town where nobody else does.

import warnings
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpcd_sklearn import DPLinearClassifier, PrivacyAccountant, PrivacyLeakWarning
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPOneHotEncoder, DPSimpleImputer, DPStandardScaler

# Scores have no noise, and say so; these records are made up anyway.
warnings.simplefilter("ignore", PrivacyLeakWarning)

rng = np.random.default_rng(0)
n = 20_000
towns = np.array(["Lille", "Roubaix", "Tourcoing", "Dunkerque", "Calais", "Arras", "Lens", "Douai"])
often = 0.5 ** np.arange(1, 9)
table = pd.DataFrame(
    {
        "age": rng.normal(43.0, 13.0, n).clip(18, 95).round(),
        "salary": np.exp(rng.normal(10.3, 0.4, n)),
        "town": rng.choice(towns, n, p=often / often.sum()),
        "contract": rng.choice(["permanent", "fixed-term", "none"], n, p=[0.7, 0.2, 0.1]),
    }
)
liking = 0.03 * (table["age"] - 43) - (table["town"] == "Lille")
liking += table["contract"] == "permanent"
liking += 0.8 * np.log(table["salary"] / 3e4)
answers = (liking + rng.logistic(size=n) > 0.3).astype(int)
table.loc[rng.random(n) < 0.25, "salary"] = np.nan
table.loc[rng.random(n) < 0.05, "contract"] = None
table.loc[7, "town"] = "a farm beyond the dunes"
train, test = table[:15_000], table[15_000:]
y_train, y_test = answers[:15_000], answers[15_000:]
print(train.head(3).to_string())

# %%
# What would go wrong
# -------------------
# The usual steps read medians, scales and categories off the records, for free, and the farm would
# be a column of its own. :func:`~dpcd_sklearn.inspection.find_leaks` says what to use instead.

numbers, words = ["age", "salary"], ["town", "contract"]
usual = make_pipeline(
    make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), words),
    ),
    DPLinearClassifier(classes=[0, 1]),
)
for leak in find_leaks(usual):
    if leak.severity == "void":
        print(f"{leak.what}\n      use {leak.instead}")

# %%
# Six lines
# ---------

columns = make_private_column_transformer(
    (make_pipeline(DPSimpleImputer(), DPStandardScaler()), numbers),
    (DPOneHotEncoder(max_categories=8), words),
)
ledger = f"{mkdtemp()}/records.ledger"  # of real records: a file that stays
PrivacyAccountant(epsilon=1.0, delta=1e-6, path=ledger)  # once
accountant = PrivacyAccountant.open(ledger)  # in every program that fits
model = make_private_pipeline(
    columns, DPLinearClassifier(classes=[0, 1]), epsilon=1.0, delta=1e-6, accountant=accountant
).fit(train, y_train)

# %%
# One entry in the ledger pays for the imputer, the scaler, the encoder and the model.

print(f"AUC: {roc_auc_score(y_test, model.decision_function(test)):.3f}")
print(f"{len(accountant.entries())} entry: {model.privacy_event_}")
print(len(find_leaks(model)), "leaks")

# %%
# What was learnt
# ---------------
# Towns with few people are "infrequent", and the farm stays secret: a category that only one person
# has is released with a probability below δ / 10,000. The width of the table is public, so columns
# without a category stay zero.

encoder = model[0].named_transformers_["dponehotencoder"]
print(f"named from about {encoder.threshold_:.0f} records on:")
for name, categories, counts in zip(
    words, encoder.categories_, encoder.category_counts_, strict=True
):
    print(f"  {name}:", {str(c): round(k) for c, k in zip(categories, counts, strict=True)})
imputer = model[0].named_transformers_["pipeline"][0]
print("filled with:", dict(zip(numbers, imputer.statistics_.round().tolist(), strict=True)))

# %%
# Categories that are public cost nothing, such as those of contracts. The encoder then finds
# smaller towns at the same price.

contracts = {"contract": ["permanent", "fixed-term", "none", None]}
for stated in ("auto", contracts):
    alone = DPOneHotEncoder(stated, epsilon=0.3, delta=1e-6).fit(train[words])
    print(f"named from about {alone.threshold_:.0f} records on: {len(alone.categories_[0])} towns")

# %%
# The price of privacy
# --------------------

plain = make_pipeline(usual[0], LogisticRegression()).fit(train, y_train)
plain_auc = roc_auc_score(y_test, plain.decision_function(test))
epsilons = [0.1, 0.3, 1.0, 3.0]
scores = []
for epsilon in epsilons:
    fits = (
        make_private_pipeline(
            columns, DPLinearClassifier(classes=[0, 1]), epsilon=epsilon, delta=1e-6
        ).fit(train, y_train)
        for _ in range(5)
    )
    scores.append([roc_auc_score(y_test, fit.decision_function(test)) for fit in fits])
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(epsilons, np.median(scores, axis=1), "o-", label="all steps private, median of 5")
ax.fill_between(epsilons, np.min(scores, axis=1), np.max(scores, axis=1), alpha=0.15, lw=0)
ax.axhline(plain_auc, color="0.3", ls="--", label="scikit-learn, no privacy")
ax.set(xscale="log", xlabel="ε of the whole pipeline", ylabel="AUC on held-out records")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.legend(loc="lower right")
plt.show()
