"""
Messages, by hashed words
=========================

A vocabulary that is learnt from messages publishes words that somebody wrote. Hashing needs none:
each word has its column by a public function, so the only secret left is in the counts.
"""

# %%
# Made-up messages
# ----------------
# 6,000 short ones about repairs and about bills, with words in common.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPLogisticGCD
from dpcd_sklearn.inspection import find_leaks

rng = np.random.default_rng(0)
common = "please could you the my last week call again number account".split()
repair = "heater leak tap broken door plumber water window cold noise".split()
bill = "invoice refund charge paid card late fee balance price twice".split()
topic = rng.integers(2, size=6_000)
messages = [
    " ".join([*rng.choice(common, 8), *rng.choice(bill if about else repair, rng.integers(1, 4))])
    for about in topic
]
print(messages[:2])

# %%
# Hashing, and a bound on rows
# ----------------------------
# The vectorizer divides each row by its norm, so ``row_norm_bound=1`` is a public fact.
# ``find_leaks`` accepts it, and refuses a ``TfidfVectorizer``.

words = HashingVectorizer(n_features=512, alternate_sign=False)
print(len(find_leaks(words)), "leaks")
X_train, X_test, y_train, y_test = train_test_split(
    words.transform(messages), topic, random_state=0
)  # sparse: entries are never densified

epsilons = [0.3, 1, 3, 10]
ways = {"dense in effect: skgd": "skgd", "few words matter: gcd": "gcd"}
scores = {
    name: [
        [
            DPLogisticGCD(
                epsilon=epsilon,
                delta=1e-7,
                classes=[0, 1],
                row_norm_bound=1.0,
                solver=solver,
            )
            .fit(X_train, y_train)
            .score(X_test, y_test)
            for _ in range(3)
        ]
        for epsilon in epsilons
    ]
    for name, solver in ways.items()
}
plain = LogisticRegression().fit(X_train, y_train).score(X_test, y_test)

# %%
# What it costs
# -------------

fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for (name, found), colour in zip(scores.items(), ["#0072B2", "#D55E00"], strict=True):
    ax.plot(epsilons, np.median(found, axis=1), "o-", color=colour, label=name)
    print(f"{name}: {np.round(np.median(found, axis=1), 3)}")
ax.axhline(plain, color="#444444", linestyle="--", label="no privacy")
ax.set(xscale="log", xlabel="ε, at δ = 1e-7", ylabel="accuracy on held-out messages")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
