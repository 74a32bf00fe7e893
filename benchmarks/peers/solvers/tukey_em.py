"""TukeyEM, Amin, Joseph, Ribero & Vassilvitskii (2023): a deep point among many small regressions.

The two halves of ε pay for the test that volumes are stable and for the choice of a depth. It is
told no bounds, for it needs none.
"""

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Up to a thousand regressions, as records allow; zeros if the test fails."""

    name = "TukeyEM"
    requirements = ["numpy"]
    environment = None
    neighbors = "add_remove"

    def skip(self, X, target_bounds, epsilon, delta, **objective):
        if target_bounds is None:
            return True, "regression only"
        few = self._n_models(X) < 16 * np.log(1 / (2 * delta)) / epsilon
        return few, "too few records for its test to pass"

    @staticmethod
    def _n_models(X):
        return min(1000, len(X) // (X.shape[1] + 1))

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        self.X, self.y = np.column_stack([X, np.ones(len(X))]), y
        self.epsilon, self.delta = epsilon / 2, delta

    def run(self, _):
        rng, m = np.random.default_rng(), self._n_models(self.X[:, :-1])
        parts = np.array_split(rng.permutation(len(self.X)), m)
        models = np.array([np.linalg.lstsq(self.X[i], self.y[i])[0] for i in parts])
        models = np.sort(models + 1e-10 * rng.random(models.shape), axis=0)
        # the box of depth d in each coordinate is [models[d - 1], models[m - d]]
        depths = np.arange(1, m // 2 + 1)
        log_sides = np.log(models[m - depths] - models[depths - 1])
        log_volumes = log_sides.sum(axis=1)
        start = m // 4
        stable = self._distance(log_volumes, start) + rng.laplace(scale=1 / self.epsilon)
        self.coef = np.zeros(self.X.shape[1])
        if stable <= np.log(1 / (2 * self.delta)) / self.epsilon:
            return
        log_volumes = log_volumes[start - 1 :]  # depths of at least start
        shells = log_volumes[:-1] + np.log1p(-np.exp(np.diff(log_volumes)))
        keys = np.append(shells, log_volumes[-1]) + self.epsilon * depths[start - 1 :]
        depth = start + int(np.argmax(keys + rng.gumbel(size=len(keys))))
        self.coef = self._of_depth(models, depth, rng)

    def _distance(self, log_volumes, start):
        """How many records away the nearest unstable data are, at least."""
        threshold = np.log(self.delta / 8) - self.epsilon
        for k in range(start - 1):
            inner = log_volumes[start + k + 1 : -1]
            steps = np.arange(1, len(inner) + 1)
            drop = log_volumes[start - k - 2] - inner - self.epsilon / 2 * steps
            if not len(drop) or drop.min() > threshold:
                return k - 1
        return start - 2

    def _of_depth(self, models, depth, rng):
        """A uniform point of the box of this depth that is not in the next one."""
        m = len(models)
        lo, hi = models[depth - 1], models[m - depth]
        is_deepest = 2 * depth + 1 > m
        inner_lo, inner_hi = (lo, lo) if is_deepest else (models[depth], models[m - depth - 1])
        while True:
            point = rng.uniform(lo, hi)
            if not ((inner_lo < point) & (point < inner_hi)).all():
                return point

    def get_result(self):
        return {"coef": self.coef[:-1], "intercept": float(self.coef[-1])}
