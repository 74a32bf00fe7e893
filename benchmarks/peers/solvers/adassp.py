"""AdaSSP, Wang (2018), Algorithm 2: noisy moments with a ridge that follows a noisy eigenvalue."""

import numpy as np
from benchmark_utils import to_units
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Its text in a dozen lines, with the norms' bounds public."""

    name = "AdaSSP"
    requirements = ["numpy"]
    environment = None
    neighbors = "add_remove"

    def skip(self, target_bounds, **objective):
        return target_bounds is None, "regression only"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        X, self.y, self.back = to_units(X, y, feature_bounds, target_bounds)
        self.X = np.column_stack([X, np.ones(len(X))]) / np.sqrt(X.shape[1] + 1)  # norms <= 1
        self.epsilon, self.delta = epsilon / 3, delta / 3

    def run(self, _, failure=0.05):
        X, p, rng = self.X, self.X.shape[1], np.random.default_rng()
        log = np.log(2 / self.delta)
        noise = np.sqrt(log) / self.epsilon
        moments = X.T @ X
        least = np.linalg.eigvalsh(moments)[0] + noise * rng.standard_normal() - log / self.epsilon
        least = max(least, 0.0)
        wanted = np.sqrt(p * log * np.log(2 * p**2 / failure)) / self.epsilon
        upper = np.triu(rng.standard_normal((p, p)))
        moments = moments + noise * (upper + np.triu(upper, 1).T)
        moments += max(wanted - least, 0.0) * np.eye(p)
        products = X.T @ self.y + noise * rng.standard_normal(p)
        self.coef = np.linalg.solve(moments, products) / np.sqrt(p)

    def get_result(self):
        coef, intercept = self.back(self.coef[:-1], self.coef[-1])
        return {"coef": coef, "intercept": intercept}
