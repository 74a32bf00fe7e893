"""Lengths of private confidence intervals beside those of two published methods, made again.

    nice python benchmarks/interval_lengths.py [--repeat 200]

A row a simulation of linear regression, as in `interval_coverage.py`, and a method, all of them
(ε, 1e-6)-private where neighbours differ in one record. "length" is the median length of the 95 %
intervals of the slopes over that of least squares, "cover" the share that contain the truth. The
parameters of the other methods are the best of a grid on data of another seed: the shortest that
cover 90 %, which no private user can know. Their noise is NumPy's, and protects nobody.

- NOISY DESCENT, NOISY NEWTON: Avella-Medina, Bradshaw & Loh (2021). Huber's loss with weights for
  long rows; K noisy gradients, or K noisy gradients and curvatures; then a noisy curvature and a
  noisy second moment of gradients at the end, for the sandwich, to which the covariance of the
  noise of the steps is added. Sensitivities of matrices are ours, which are no larger; eigenvalues
  are floored.
- DP BOOTSTRAP: Wang, Cheng & al. (arXiv 2210.06140). B bootstrap samples, each released with
  μ / sqrt((2 - 2 / e) B); the variance between them less that of their noise is that of sampling,
  which is the normal form of their deconvolution. What is released of a sample is one Newton step
  from where two of NOISY NEWTON ended, by its curvature: that noise is Gaussian and known, which it
  is not of a whole fit.
"""

import argparse
import warnings
from itertools import product

import numpy as np
from interval_coverage import REACH, model_of, simulated

from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_mu

DELTA = 1e-6
SETTINGS = (
    ("homoscedastic", 4_000, 3, 1.0),
    ("homoscedastic", 4_000, 3, 3.0),
    ("heteroscedastic", 4_000, 3, 1.0),
    ("heteroscedastic", 4_000, 3, 3.0),
    ("homoscedastic", 10_000, 10, 3.0),
)
FLOOR = 0.05  # of eigenvalues of a curvature
LENGTHS = (0.8, 1.0)  # to which rows are weighted down, over the longest
GRIDS = {
    "noisy descent": {
        "K": (10, 20, 40),
        "clip": (0.06, 0.1, 0.15, 0.25),
        "length": LENGTHS,
        "share": (0.02, 0.05, 0.2),
    },
    "noisy Newton": {
        "K": (1, 2, 3),
        "clip": (0.15, 0.25, 0.4),
        "length": LENGTHS,
        "share": (0.05, 0.2),
    },
    "DP bootstrap": {
        "B": (20, 50, 100),
        "clip": (0.15, 0.25, 0.4),
        "length": LENGTHS,
        "share": (0.3, 0.6),
    },
}


class Moments:
    """Noisy means over weighted rows of one data set."""

    def __init__(self, X, y, clip, length, rng):
        rows = np.column_stack([X, np.ones(len(X))])
        self.longest = length * rows.shape[1] ** 0.5
        square = np.einsum("ij,ij->i", rows, rows)
        self.weights = np.minimum(1.0, self.longest**2 / square)
        self.rows, self.y, self.clip, self.rng = rows, y, clip, rng

    def clipped(self, coef):
        """Gradients, none longer than clip times the longest row, and who is within the clip."""
        residuals = self.rows @ coef - self.y
        inside = np.abs(residuals) <= self.clip
        derivatives = np.clip(residuals, -self.clip, self.clip) * self.weights
        return derivatives[:, None] * self.rows, inside

    def gradient_noise(self, mu):
        return 2 * self.clip * self.longest / (len(self.y) * mu)

    def gradient(self, coef, mu):
        mean = self.clipped(coef)[0].mean(axis=0)
        return mean + self.gradient_noise(mu) * self.rng.standard_normal(len(mean))

    def curvature(self, coef, mu):
        weights = self.weights * self.clipped(coef)[1]
        mean = (weights[:, None] * self.rows).T @ self.rows / len(self.y)
        return floored(self._noisy(mean, self.longest**2, mu))

    def scores(self, coef, mu):
        gradients, _ = self.clipped(coef)
        mean = gradients.T @ gradients / len(self.y)
        return floored(self._noisy(mean, (self.clip * self.longest) ** 2, mu), 0.0)

    def _noisy(self, mean, square, mu):
        """With noise of the mean of squares of rows whose squared norm is bounded."""
        noise = np.triu(self.rng.standard_normal(mean.shape)) / 2**0.5
        return mean + 2**0.5 * square / (len(self.y) * mu) * (noise + noise.T)


def floored(matrix, least=FLOOR):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, least)) @ vectors.T


def with_sandwich(moments, coef, of_steps, mu):
    """Estimates and standard errors, from moments at the end and a covariance of the noise."""
    inverse = np.linalg.inv(moments.curvature(coef, mu / 2**0.5))
    sampling = inverse @ moments.scores(coef, mu / 2**0.5) @ inverse / len(moments.y)
    return coef, np.sqrt(np.diag(sampling + of_steps(inverse)))


def noisy_descent(X, y, mu, rng, *, K, clip, length, share):
    moments = Moments(X, y, clip, length, rng)
    of_step, coef = mu * ((1 - share) / K) ** 0.5, np.zeros(X.shape[1] + 1)
    for _ in range(K):
        coef = coef - moments.gradient(coef, of_step)  # no curvature is above 1 in these data

    def of_steps(inverse):
        kept = np.eye(len(coef)) - np.linalg.inv(inverse)
        powers = [np.linalg.matrix_power(kept, k) for k in range(K)]
        return moments.gradient_noise(of_step) ** 2 * sum(power @ power.T for power in powers)

    return with_sandwich(moments, coef, of_steps, mu * share**0.5)


def newton_steps(moments, mu, K):
    """The last iterate, and the inverse of the last curvature."""
    coef = np.zeros(moments.rows.shape[1])
    for _ in range(K):
        inverse = np.linalg.inv(moments.curvature(coef, mu / (2 * K) ** 0.5))
        coef = coef - inverse @ moments.gradient(coef, mu / (2 * K) ** 0.5)
    return coef, inverse


def noisy_newton(X, y, mu, rng, *, K, clip, length, share):
    moments = Moments(X, y, clip, length, rng)
    of_steps = mu * (1 - share) ** 0.5
    coef, last = newton_steps(moments, of_steps, K)
    noise = moments.gradient_noise(of_steps / (2 * K) ** 0.5)
    return with_sandwich(moments, coef, lambda _: noise**2 * last @ last.T, mu * share**0.5)


def dp_bootstrap(X, y, mu, rng, *, B, clip, length, share):
    moments = Moments(X, y, clip, length, rng)
    start, inverse = newton_steps(moments, mu * (1 - share) ** 0.5, 2)
    noise = moments.gradient_noise(mu * (share / ((2 - 2 / np.e) * B)) ** 0.5)
    counts = rng.multinomial(len(y), np.full(len(y), 1 / len(y)), size=B)
    means = counts @ moments.clipped(start)[0] / len(y)
    found = start - (means + noise * rng.standard_normal(means.shape)) @ inverse
    of_noise = noise**2 * np.diag(inverse @ inverse.T)
    sampling = np.maximum(found.var(axis=0, ddof=1) - of_noise, 0.0)
    return found.mean(axis=0), np.sqrt(sampling + (sampling + of_noise) / B)


METHODS = {
    "noisy descent": noisy_descent,
    "noisy Newton": noisy_newton,
    "DP bootstrap": dp_bootstrap,
}


def ours(errors, epsilon):
    """The estimator with defaults; NaN where it abstains."""

    def run(X, y, mu, rng):
        model = model_of(errors, epsilon).set_params(delta=DELTA).fit(X, y)
        return np.append(model.coef_, model.intercept_), model.coef_std_

    return run


def measured(method, setting, repeat, seed, **params):
    """Median length over that of least squares, and coverage, of valid intervals of slopes."""
    errors, n, p, epsilon = setting
    rng, mu, lengths, covered = np.random.default_rng(seed), gdp_mu(epsilon, DELTA), [], []
    for _ in range(repeat):
        X, y, truth = simulated(errors, n, p, rng)
        rows = np.column_stack([X, np.ones(n)])
        inverse = np.linalg.inv(rows.T @ rows)
        residuals = y - rows @ (inverse @ (rows.T @ y))
        plain = inverse @ ((rows * residuals[:, None] ** 2).T @ rows) @ inverse
        coef, std = method(X, y, mu, rng, **params)
        if np.isfinite(std).all():
            lengths.append((std / np.sqrt(np.diag(plain)))[:-1])
            covered.append((np.abs(coef - truth) <= REACH * std)[:-1])
    if not covered:
        return np.inf, 0.0, 0.0
    return np.median(lengths), np.mean(covered), len(covered) / repeat


def best_of(name, setting, repeat):
    """Parameters of the shortest intervals that cover 90 %, on data of another seed."""
    grid = GRIDS[name]
    tried = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    found = [measured(METHODS[name], setting, repeat, 1, **params)[:2] for params in tried]
    lengths = [length if cover >= 0.9 else np.inf for length, cover in found]
    if min(lengths) < np.inf:
        return tried[int(np.argmin(lengths))]
    return tried[int(np.argmax([cover for _, cover in found]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="of the settings")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| errors | n | p | epsilon | method | length | cover | valid | parameters |")
    print("|---|---|---|---|---|---|---|---|---|")
    for setting in SETTINGS[asked.first :]:
        errors, n, p, epsilon = setting
        rows = [("ours", ours(errors, epsilon), {})]
        rows += [
            (name, method, best_of(name, setting, asked.repeat // 5))
            for name, method in METHODS.items()
        ]
        for name, method, params in rows:
            length, cover, valid = measured(method, setting, asked.repeat, 2, **params)
            words = ", ".join(f"{key}={value:g}" for key, value in params.items())
            print(
                f"| {errors} | {n} | {p} | {epsilon:g} | {name} | {length:.2f} | {cover:.3f} | "
                f"{valid:.2f} | {words} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
