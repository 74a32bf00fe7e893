"""Coverage of private confidence intervals: how many contain the truth, and how long they are.

    python benchmarks/interval_coverage.py [--repeat 400]

A row a simulation: errors of one kind, n records of p features, and ε. "valid" is the share of
fits that do not abstain, "slopes" and "intercept" are shares of valid 95 % intervals that contain
the truth, and "length" the mean length over that of intervals without privacy. With skewed errors
the truth for the intercept is that of the mean, which a clip that bites is not about.
"""

import argparse
import warnings

import numpy as np

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor

ERRORS = ("homoscedastic", "heteroscedastic", "skewed", "logistic")
SIZES = ((250, 3), (1_000, 3), (4_000, 3), (10_000, 10))
EPSILONS = (1.0, 3.0)
PARAMS = {"penalty": None, "inference": True, "feature_bounds": (-1, 1)}


def simulated(errors, n, p, rng):
    """Records, the target, and the truth, the intercept last."""
    truth = np.zeros(p + 1)
    truth[:3], truth[-1] = (0.3, -0.2, 0.1), 0.05
    X = rng.uniform(-1, 1, (n, p))
    margins = X @ truth[:-1] + truth[-1]
    if errors == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-3 * margins))).astype(int), 3 * truth
    noise = rng.standard_exponential(n) - 1 if errors == "skewed" else rng.standard_normal(n)
    if errors == "heteroscedastic":
        noise *= 0.5 + np.abs(X[:, 0])
    return X, margins + 0.15 * noise, truth


def model_of(errors, epsilon):
    """The estimator, with defaults but for what it must be told."""
    if errors == "logistic":
        return DPLinearClassifier(epsilon=epsilon, classes=[0, 1], **PARAMS)
    return DPLinearRegressor(epsilon=epsilon, target_bounds=(-1, 1), **PARAMS)


def row(errors, n, p, epsilon, repeat, rng):
    """Shares of valid fits and of intervals that contain the truth, and lengths."""
    covered, lengths = [], []
    for _ in range(repeat):
        X, y, truth = simulated(errors, n, p, rng)
        model = model_of(errors, epsilon).fit(X, y)
        if model.inference_valid_:
            low, high = model.confidence_interval().T
            covered.append((low < truth) & (truth < high))
            sampling = model.coef_std_**2 - model.privacy_std_**2
            lengths.append(np.mean(model.coef_std_ / np.sqrt(sampling)))
    if not covered:
        return 0.0, np.nan, np.nan, np.nan
    share = np.mean(covered, axis=0)
    return len(covered) / repeat, share[:-1].mean(), share[-1], np.mean(lengths)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=400)
    parser.add_argument("--errors", nargs="+", default=ERRORS, choices=ERRORS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| errors | n | p | epsilon | valid | slopes | intercept | length |")
    print("|---|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for errors in asked.errors:
        for n, p in SIZES:
            for epsilon in EPSILONS:
                valid, slopes, intercept, length = row(errors, n, p, epsilon, asked.repeat, rng)
                print(
                    f"| {errors} | {n} | {p} | {epsilon:g} | {valid:.3f} | {slopes:.3f} | "
                    f"{intercept:.3f} | {length:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
