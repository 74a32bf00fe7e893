"""Newton steps among the choices, and without, on problems that nobody chose: made up at random.

    nice python benchmarks/simulated_problems.py [--first 0] [--number 400] [--repeat 5]
        [--worst 10]

Records from 200 to 50,000, one to fifty columns of eight kinds, skewed, heavy-tailed, correlated,
scaled and shifted; no bounds, tight ones, loose ones, or ones that the records lie at one end of;
weights of four kinds; both neighbouring relations with a public number of records that is not the
true one; epsilon from .1 to 30. "with" is every default, "without" the descent
(``solver="skgd"``); errors are 1 - R², or the share of wrong labels, on
the records themselves: medians of fits. Problems where "auto" is the descent are left out.
"""

import argparse
import warnings

import numpy as np

from dpcd_sklearn import DPLassoCD, DPLinearClassifier, DPLogisticGCD, DPRidgeSkGD

KINDS = ("normal", "lognormal", "one-hot", "binary", "uniform", "low rank", "heavy", "mixed")
BOUNDS = ("none", "tight", "loose", "off")
WEIGHTS = ("none", "uniform", "zero or one", "exponential", "survey")


def columns(rng, kind, n, p):
    normal = rng.normal(size=(n, p))
    rank = max(1, p // 3)
    return {
        "normal": lambda: normal,
        "lognormal": lambda: np.exp(normal * rng.uniform(0.3, 1.5)),
        "one-hot": lambda: np.eye(p)[rng.choice(p, n, p=rng.dirichlet(np.ones(p)))],
        "binary": lambda: (rng.uniform(size=(n, p)) < rng.uniform(0.01, 0.6, p)).astype(float),
        "uniform": lambda: rng.uniform(-1, 1, (n, p)),
        "low rank": lambda: normal[:, :rank] @ rng.normal(size=(rank, p)) + 0.1 * normal,
        "heavy": lambda: rng.standard_t(2.5, size=(n, p)),
        "mixed": lambda: np.where(np.arange(p) % 3 == 1, normal > 1, np.exp(normal)),
    }[kind]()


def bounds_of(values, word):
    lo, hi = values.min(axis=0), values.max(axis=0)
    width = hi - lo + 1e-9
    return {
        "none": None,
        "tight": (lo, hi + 1e-9),
        "loose": (lo - 2 * width, hi + 2 * width),
        "off": (lo, hi + 4 * width),
    }[word]


def weights_of(rng, word, n):
    return {
        "none": None,
        "uniform": rng.uniform(size=n),
        "zero or one": (rng.uniform(size=n) < 0.3).astype(float),
        "exponential": rng.exponential(size=n),
        "survey": rng.lognormal(5, 1, n),
    }[word]


def problem(seed):
    """Its description, records, target, weights, the estimator and its parameters."""
    rng = np.random.default_rng(seed)
    n, p = int(10 ** rng.uniform(2.3, 4.7)), int(10 ** rng.uniform(0, 1.7))
    kind, bounds, weigh = rng.choice(KINDS), rng.choice(BOUNDS), rng.choice(WEIGHTS)
    X = columns(rng, kind, n, p) * 10.0 ** (rng.uniform(-2, 2, p) * rng.integers(2))
    X = X + rng.normal(size=p) * 5 * rng.integers(2)
    coef = rng.normal(size=p) / (X.std(axis=0) + 1e-12) * (rng.uniform(size=p) < 0.6)
    margins = (X - X.mean(axis=0)) @ coef
    margins /= margins.std() + 1e-12
    params = {"epsilon": 10 ** rng.uniform(-1, 1.5), "delta": 1 / n**2}
    params |= {"feature_bounds": bounds_of(X, bounds), "fit_intercept": rng.uniform() < 0.85}
    if rng.integers(2):
        params |= {"neighboring": "add_remove", "n_public": int(n * rng.choice([0.6, 1, 1.5, 3]))}
    task = rng.choice(["regression", "two classes", "four classes"], p=[0.5, 0.3, 0.2])
    if task == "regression":
        errors = [rng.normal(size=n), rng.standard_t(2.5, n), rng.exponential(size=n) - 1]
        y = margins + 10 ** rng.uniform(-1.5, 0.5) * errors[rng.integers(3)]
        y = y * 10 ** rng.uniform(-2, 3) + 10 * rng.integers(2) * params["fit_intercept"]
        params["target_bounds"] = bounds_of(y, bounds)
        params["alpha"] = 10 ** rng.uniform(-5, -2)
        estimator = (DPLassoCD, DPRidgeSkGD)[rng.integers(2)]
    elif task == "two classes":
        y = (rng.uniform(size=n) < 1 / (1 + np.exp(-margins * rng.uniform(0.5, 5)))).astype(int)
        params["classes"], estimator = [0, 1], DPLogisticGCD
    else:
        y = np.digitize(margins + 0.3 * rng.normal(size=n), [-0.7, 0.0, 0.7])
        params["classes"], estimator = [0, 1, 2, 3], DPLinearClassifier
    what = {"task": task, "columns": kind, "bounds": bounds, "weights": weigh, "n": n, "p": p}
    return what, (X, y, weights_of(rng, weigh, n)), estimator, params


def errors(found, estimator, params, repeat):
    """The median, and the number of steps."""
    X, y, weights = found
    models = [estimator(**params).fit(X, y, weights) for _ in range(repeat)]
    return np.median([1 - model.score(X, y) for model in models]), models[0].n_iter_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worst", type=int, default=10)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for seed in range(asked.first, asked.first + asked.number):
        what, found, estimator, params = problem(seed)
        ours, steps = errors(found, estimator, params, asked.repeat)
        descent, walked = errors(found, estimator, params | {"solver": "skgd"}, asked.repeat)
        if steps != walked:
            what |= {"epsilon": round(params["epsilon"], 2), "seed": seed}
            rows.append((ours / descent if ours != descent else 1.0, ours, descent, what))
    print("| problems | number | ratio, geometric mean | above 1.02 | above 1.1 | above 1.3 |")
    print("|---|---|---|---|---|---|")
    names = [(key, word) for key in ("task", "bounds", "weights")
             for word in dict.fromkeys(row[3][key] for row in rows)]  # fmt: skip
    for key, word in [("all", ""), *names]:
        ratios = np.array([row[0] for row in rows if key == "all" or row[3][key] == word])
        above = " | ".join(str((ratios > limit).sum()) for limit in (1.02, 1.1, 1.3))
        mean = np.exp(np.log(np.maximum(ratios, 1e-6)).mean())
        print(f"| {key} {word} | {len(ratios)} | {mean:.2f} | {above} |")
    for ratio, ours, descent, what in sorted(rows, key=lambda row: -row[0])[: asked.worst]:
        print(f"{ratio:.2f}: {ours:.3f} for {descent:.3f},", what)


if __name__ == "__main__":
    main()
