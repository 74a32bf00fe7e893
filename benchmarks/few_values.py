"""Coefficients of columns of few values within stated bounds, whose scales are looked for.

    python benchmarks/few_values.py [--only ones] [--repeat 20] [--store]

Five columns of a kind have coefficients of .5, -.5, .25, 0 and 1, and the noise of the target is
.5. No record is cut and hardly any derivative is clipped, so the optimum is that of least squares.
Printed for each cell are, over its fits:

- *deviations*: the largest distance of a coefficient from the optimum, in its `privacy_std_`;
- *ratio*: the RMSE of coefficients over that of fits that look for no scales and have the same
  budget, and the standard deviation of that ratio by the bootstrap of fits;
- *largest*: the largest error of a coefficient, and that of the fits that look for no scales;
- *without*: the share of fits that have no `privacy_std_`.
"""

import argparse
import warnings
from unittest import mock

import numpy as np
from papers.problems import store
from sklearn.linear_model import LinearRegression

from dpcd_sklearn import DPLinearRegressor
from dpcd_sklearn.plan import _request
from dpcd_sklearn.plan._scales import NOTHING

SLOPES = np.array([0.5, -0.5, 0.25, 0.0, 1.0])
N_RECORDS, EPSILONS = (1_000, 12_000, 100_000), (0.3, 1.0, 3.0, 10.0)
SHARES = (0.01, 0.05, 0.2, 0.5, 0.8, 0.99)


def rare(rng, shape):
    """Numbers below 1, and one in two hundred that is at 20."""
    return np.where(rng.random(shape) < 0.005, 20.0, rng.random(shape))


# The records of a kind, and their bounds.
KINDS = {f"ones {q:g}": (lambda rng, shape, q=q: rng.random(shape) < q, (0, 1)) for q in SHARES}
KINDS |= {
    "three": (lambda rng, shape: rng.choice([-1, 0, 1], shape, p=[0.1, 0.8, 0.1]), (-1, 1)),
    "counts": (lambda rng, shape: rng.poisson(0.7, shape).clip(max=5), (0, 5)),
    "halves": (lambda rng, shape: rng.integers(0, 11, shape) / 2, (0, 5)),
    "rare": (rare, (0, 20)),
}


def errors_of(kind, n, epsilon, seed):
    """Errors of coefficients, and the standard deviations that the fit states of its noise."""
    records, bounds = KINDS[kind]
    rng = np.random.default_rng(seed)
    X = records(rng, (n, len(SLOPES))).astype(float)
    y = X @ SLOPES + 0.5 * rng.normal(size=n)
    half_width = 0.5 * 4 + np.abs(SLOPES).sum() * max(np.abs(bounds))
    model = DPLinearRegressor(
        feature_bounds=bounds, target_bounds=(-half_width, half_width), epsilon=epsilon
    ).fit(X, y)
    error = model.coef_ - LinearRegression().fit(X, y).coef_
    return error, getattr(model, "privacy_std_", np.full(n, np.nan))[: len(error)]


def cell(kind, n, epsilon, repeat):
    """Deviations, ratio and its standard deviation, largest errors, share without."""
    found = [errors_of(kind, n, epsilon, seed) for seed in range(repeat)]
    error, std = (np.array(part) for part in zip(*found, strict=True))
    with mock.patch.dict(_request._SEARCHES, scales=lambda request: NOTHING):
        stated = [errors_of(kind, n, epsilon, seed)[0] for seed in range(repeat)]
    drawn = np.random.default_rng(0).integers(repeat, size=(200, repeat))
    squares, others = (np.mean(np.square(e), axis=1) for e in (error, stated))
    ratios = np.sqrt(squares[drawn].mean(axis=1) / others[drawn].mean(axis=1))
    known = np.isfinite(std).all(axis=1)
    deviations = np.abs(error[known] / std[known]).max(initial=0.0)
    ratio = np.sqrt(squares.mean() / others.mean())
    largest = np.abs(error).max(), np.abs(stated).max()
    return deviations, ratio, ratios.std(), *largest, 1 - known.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of kinds")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--store", action="store_true", help="replace the stored rows")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ["deviations", "ratio", "ratio std", "largest", "largest stated", "without"]
    print(f"| kind | n | ε | {' | '.join(names)} |\n{'|---' * 9}|")
    kept = []
    for kind in filter(lambda kind: kind.startswith(tuple(asked.only)), KINDS):
        for n in N_RECORDS:
            for epsilon in EPSILONS:
                row = [float(one) for one in cell(kind, n, epsilon, asked.repeat)]
                cells = " | ".join(f"{one:.3f}" for one in row)
                print(f"| {kind} | {n} | {epsilon:g} | {cells} |", flush=True)
                kept.append([kind, str(n), f"{epsilon:g}", *row])
    if asked.store:
        store("few_values", ["kind", "n", "epsilon", *names], kept)


if __name__ == "__main__":
    main()
