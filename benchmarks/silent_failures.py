"""Fits that look like success and are none: made-up tables that resemble where they were seen.

    python benchmarks/silent_failures.py [--seeds 5]

Nothing is stated but epsilon and the classes. Columns: what it is, n, p, epsilon, the score without
privacy, and ours: median of seeds and the worst one. Scores are R², accuracy, AUC, or the log loss
over that of the classes' shares (less is better). `warned` says whether a FewRecordsWarning came.

- indicators: standardised ones and zeros of all frequencies, accuracy;
- heavy tails: what parts the classes lies beyond the quartiles, accuracy;
- far columns: integers two hundred deviations from zero, accuracy;
- positive columns: rows with one scale and no centre, AUC;
- narrow targets: far from zero, few records, R²;
- loud margins: few records, log loss over the shares'.
"""

import argparse
import warnings

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.exceptions import FewRecordsWarning


def accuracy(model, X, y, shares):
    return model.score(X, y)


def auc(model, X, y, shares):
    return roc_auc_score(y, model.decision_function(X))


def loss_over_shares(model, X, y, shares):
    return log_loss(y, model.predict_proba(X)) / log_loss(y, np.tile(shares, (len(y), 1)))


def labels(scores, rng, noise=1.0):
    return (scores + noise * rng.logistic(size=scores.shape) > 0).astype(int)


def indicators(rng, n=3000, p=36):
    X = (rng.random((n, p)) < rng.beta(0.5, 0.5, p)).astype(float)
    X = X[:, X.std(axis=0) > 0]
    y = labels((X - X.mean(axis=0)) @ rng.standard_normal(X.shape[1]) * 3, rng)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def heavy_tails(rng, n=20_000, p=7):
    X = rng.standard_normal((n, p))
    y = (rng.random(n) < 0.2).astype(int)
    X[y == 1, 0] += rng.choice([30, 60, 90], (y == 1).sum())
    X[:, 1:] *= np.exp(rng.standard_normal((n, p - 1)))
    return X + 50, y


def far_columns(rng, n=10_000, p=16):
    X = rng.integers(0, 16, (n, p)).astype(float)
    return X + 200 * X.std(axis=0), labels((X - 7.5) @ rng.standard_normal(p), rng)


def positive_columns(rng, n=500, p=30):
    size = rng.lognormal(0, 0.3, (n, 1))
    X = size * rng.lognormal(0, 0.1, (n, p)) * 10.0 ** rng.uniform(-2, 3, p)
    return X, labels(-8 * np.log(size[:, 0]), rng)


def narrow_target(rng, n=400, p=8):
    X = rng.lognormal(0, 1, (n, p)) * 10.0 ** rng.integers(-2, 3, p)
    return X, 1990 + 10 * (X[:, 0] / X[:, 0].std() + rng.standard_normal(n))


def few_records(rng, n=400, p=12):
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p) + 3
    return X, labels((X - 3) / X.std(axis=0) @ rng.standard_normal(p), rng, 2.0)


CASES = [
    ("indicators", indicators, accuracy, (1.0, 3.0, 10.0)),
    ("heavy tails", heavy_tails, accuracy, (1.0, 10.0)),
    ("far columns", far_columns, accuracy, (1.0, 10.0)),
    ("positive columns", positive_columns, auc, (1.0, 3.0)),
    ("narrow target", narrow_target, None, (0.5, 1.0, 3.0)),
    ("loud margins", few_records, loss_over_shares, (0.1, 0.3, 1.0)),
]


def fitted(X, y, score, epsilon):
    """Scores without privacy and ours, and whether the fit warned."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    if score is None:
        plain, ours = LinearRegression(), DPLinearRegressor(epsilon=epsilon)
        shares, score = None, accuracy  # of a regressor `score` is R²
    else:
        plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
        ours = DPLinearClassifier(epsilon=epsilon, classes=[0, 1])
        shares = np.bincount(y) / len(y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours.fit(X, y)
    warned = any(issubclass(one.category, FewRecordsWarning) for one in caught)
    scores = [score(model, X_test, y_test, shares) for model in (plain.fit(X, y), ours)]
    return [*scores, warned]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    seeds = parser.parse_args().seeds
    print("| what | n | p | epsilon | no privacy | ours | worst | warned |")
    print("|---|---|---|---|---|---|---|---|")
    for name, make, score, epsilons in CASES:
        tables = [make(np.random.default_rng(seed)) for seed in range(seeds)]
        n, p = tables[0][0].shape
        for epsilon in epsilons:
            found = np.array([fitted(X, y, score, epsilon) for X, y in tables])
            worst = found[:, 1].max() if score is loss_over_shares else found[:, 1].min()
            plain, ours, warned = np.median(found, axis=0)
            print(
                f"| {name} | {n} | {p} | {epsilon:g} | {plain:.3f} | {ours:.3f} | {worst:.3f} | "
                f"{'yes' if warned else 'no'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
