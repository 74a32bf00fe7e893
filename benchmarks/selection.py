"""Which columns are found: choices by scores of all records, beside votes of blocks of them.

    python benchmarks/selection.py [--repeat 20]

The share of ten relevant columns among the ten that are chosen, at equal cost (choices of one
bounded range, as `DPSelectKBest` plans them):

- *DPSelectKBest*: by products of each column with the target, over all records;
- *votes*: the first stage of Kifer, Smith & Thakurta (2012): each of so many blocks of records
  selects ten columns by orthogonal matching pursuit without noise, and columns are chosen by how
  many blocks voted for them. A record is in one block, so a count moves by one at most.
"""

import argparse
import warnings

import numpy as np
from sklearn.linear_model import OrthogonalMatchingPursuit

from dpcd_sklearn.preprocessing import DPSelectKBest

N, P, K = 10_000, 200, 10
BLOCKS = (10, 30, 100)


def problem(generator, correlation):
    """Columns that are correlated with their neighbours, cut to [-1, 1], and a target of ten."""
    Z = generator.standard_normal((N, P))
    for j in range(1, P):
        Z[:, j] = correlation * Z[:, j - 1] + np.sqrt(1 - correlation**2) * Z[:, j]
    X = np.clip(Z / 3, -1, 1)
    relevant = generator.choice(P, K, replace=False)
    y = X[:, relevant] @ generator.choice([-1.0, 1.0], K) + 0.5 * generator.standard_normal(N)
    return X, np.clip(y / 4, -1, 1), set(relevant.tolist())


def voted(X, y, n_blocks, eta, generator):
    """The columns of the most votes: Gumbel noise for counts that move by one either way."""
    votes = np.zeros(P)
    for rows in np.array_split(np.arange(N), n_blocks):
        found = OrthogonalMatchingPursuit(n_nonzero_coefs=K).fit(X[rows], y[rows])
        votes[found.coef_ != 0] += 1
    noisy = votes + generator.gumbel(size=P) * 2 / eta
    return np.argsort(-noisy)[:K]


def shares(epsilon, correlation, repeat):
    """Mean shares of relevant columns that were found, by way."""
    found = {"DPSelectKBest": [], **{f"{m} blocks": [] for m in BLOCKS}}
    for seed in range(repeat):
        generator = np.random.default_rng(seed)
        X, y, relevant = problem(generator, correlation)
        selector = DPSelectKBest(K, epsilon=epsilon, delta=1e-6).fit(X, y)
        eta = selector.privacy_event_.releases[-1].eta
        chosen = {"DPSelectKBest": selector.ranking_}
        for m in BLOCKS:
            chosen[f"{m} blocks"] = voted(X, y, m, eta, generator)
        for way, columns in chosen.items():
            found[way].append(len(relevant & set(columns.tolist())) / K)
    return {way: float(np.mean(share)) for way, share in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = ["DPSelectKBest", *(f"{m} blocks" for m in BLOCKS)]
    print("| correlation | epsilon |", " | ".join(ways), "|")
    print("|---|---|" + "---|" * len(ways))
    for correlation in (0.0, 0.8):
        for epsilon in (0.2, 1.0, 5.0):
            found = shares(epsilon, correlation, arguments.repeat)
            numbers = " | ".join(f"{found[way]:.2f}" for way in ways)
            print(f"| {correlation} | {epsilon} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
