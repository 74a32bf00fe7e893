"""Coverage of private confidence intervals: how many contain the truth, and how long they are.

    nice python benchmarks/interval_coverage.py [--repeat 4000] [--epsilons 1 3 10]

A row a simulation: errors of one kind, n records of p features, and ε. "valid" is the share of
fits that do not abstain, "slopes" and "intercept" are shares of valid 95 % intervals that contain
the truth, "bias" is the largest mean distance of an estimated slope from it in standard errors, and
"length" the mean length over that of intervals without privacy. With skewed errors the intercept's
truth is that of the mean, which a clip that bites is not about: "own" is the share of its intervals
that contain where the valid fits are on average, which the clipped loss is about.
"""

import argparse
import warnings

import numpy as np

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor

ERRORS = ("homoscedastic", "heteroscedastic", "skewed", "logistic")
SIZES = ((250, 3), (1_000, 3), (4_000, 3), (10_000, 10))
EPSILONS = (1.0, 3.0)
REACH = 1.959964
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
    """Shares of valid fits and of intervals that contain the truth, bias, and lengths."""
    gaps, errors_of, lengths = [], [], []
    for _ in range(repeat):
        X, y, truth = simulated(errors, n, p, rng)
        model = model_of(errors, epsilon).fit(X, y)
        if model.inference_valid_:
            gaps.append(np.append(model.coef_, model.intercept_) - truth)
            errors_of.append(model.coef_std_)
            sampling = model.coef_std_**2 - model.privacy_std_**2
            lengths.append(np.mean(model.coef_std_ / np.sqrt(sampling)))
    if not gaps:
        return (0.0,) + 5 * (np.nan,)
    gaps, errors_of = np.array(gaps), np.array(errors_of)
    covered = np.mean(np.abs(gaps) < REACH * errors_of, axis=0)
    own = np.abs(gaps - gaps.mean(axis=0))[:, -1] < REACH * errors_of[:, -1]
    bias = np.abs(np.mean(gaps / errors_of, axis=0))[:-1].max()
    valid = len(gaps) / repeat
    return valid, covered[:-1].mean(), covered[-1], own.mean(), bias, np.mean(lengths)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=4000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--errors", nargs="+", default=ERRORS, choices=ERRORS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| errors | n | p | epsilon | valid | slopes | intercept | own | bias | length |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for errors in asked.errors:
        for n, p in SIZES:
            for epsilon in asked.epsilons:
                rng = np.random.default_rng([0, ERRORS.index(errors), n, p, int(epsilon)])
                valid, *shares, bias, length = row(errors, n, p, epsilon, asked.repeat, rng)
                shares = " | ".join(f"{share:.3f}" for share in shares)
                print(
                    f"| {errors} | {n} | {p} | {epsilon:g} | {valid:.3f} | {shares} | "
                    f"{bias:.2f} | {length:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
