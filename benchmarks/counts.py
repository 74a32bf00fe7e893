"""Counts and rates: deviance explained on held-out records, beside ways without noise or link.

    PYTHONPATH=path/of/statsmodels python benchmarks/counts.py [--repeat 3]

D² of "poisson" or "gamma" at several epsilons, nothing stated but the epsilon; of the same model by
scikit-learn without noise; and of `DPLinearRegressor` on log(1 + y), whose predictions go back by
exp(.) - 1. `coef` is the distance of coefficients, in units of the columns' deviations, from those
without noise, over the length of these. Doctor visits and affairs are sets of statsmodels, which
is no requirement of the package: sets that are not there are left out. Written to ``counts.csv``.
"""

import argparse
import csv
import os
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import train_test_split

from dpcd_sklearn import DPLinearRegressor

HERE = Path(__file__).resolve().parent
POWERS = {"poisson": 1, "gamma": 2}
PLAIN = {"poisson": PoissonRegressor, "gamma": GammaRegressor}


def rates(n_samples, overdispersion):
    """Counts of a mean near 1 over ten columns of three scales, with heavier tails."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 10)) * np.repeat([1.0, 10.0, 0.1], [4, 3, 3])
    X += np.linspace(-1, 1, 10)
    coef = np.array([0.4, -0.3, 0.2, 0, 0.02, 0, -0.03, 2, 0, 0])
    rate = np.exp(X @ coef - 0.3)
    if overdispersion:
        rate *= rng.gamma(1 / overdispersion, overdispersion, n_samples)
    return X, rng.poisson(rate).astype(float)


def problems():
    yield "made-up counts", "poisson", *rates(20_000, 0.0)
    yield "overdispersed counts", "poisson", *rates(20_000, 2.0)
    if find_spec("statsmodels"):
        from statsmodels.datasets import fair, randhie

        for name, data, target in (("visits", randhie, "mdvis"), ("affairs", fair, "affairs")):
            table = data.load_pandas().data
            X = table.drop(columns=target).to_numpy(float)
            yield name, "poisson", X, table[target].to_numpy(float)
    path = Path(os.environ.get("DPCD_DATA", ".")) / "diamonds.npz"
    if path.is_file():
        data = np.load(path)
        yield "diamonds", "gamma", data["X"].astype(float), data["y"].astype(float)


def rows(repeat):
    for name, loss, X, y in problems():
        power, spread = POWERS[loss], X.std(axis=0)

        def score(y, found, power=power):
            return d2_tweedie_score(y, np.maximum(found, 1e-9), power=power)

        for seed in range(repeat):
            train, test, y_train, y_test = train_test_split(X, y, random_state=seed)
            middle = train.mean(axis=0)
            plain = PLAIN[loss](alpha=0, solver="newton-cholesky", max_iter=1000)
            plain.fit((train - middle) / spread, y_train)
            found = score(y_test, plain.predict((test - middle) / spread))
            size = np.linalg.norm(plain.coef_)
            yield name, seed, "plain", np.inf, found, 0.0
            for epsilon in (0.3, 1.0, 3.0):
                model = DPLinearRegressor(loss, epsilon=epsilon).fit(train, y_train)
                far = np.linalg.norm(model.coef_ * spread - plain.coef_) / size
                yield name, seed, loss, epsilon, score(y_test, model.predict(test)), far
                model = DPLinearRegressor(epsilon=epsilon).fit(train, np.log1p(y_train))
                found = score(y_test, np.expm1(model.predict(test)))
                yield name, seed, "log(1 + y)", epsilon, found, np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with (HERE / "counts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["problem", "seed", "model", "epsilon", "d2", "coef"])
        for *which, d2, far in rows(arguments.repeat):
            writer.writerow([*which, f"{d2:.4f}", f"{far:.3f}"])
            print(*which, f"{d2:.3f}", f"{far:.2f}", flush=True)


if __name__ == "__main__":
    main()
