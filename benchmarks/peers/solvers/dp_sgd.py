"""DP-SGD, Abadi et al. (2016), in a dozen lines of NumPy, accounted by dp_accounting."""

import numpy as np
from benchmark_utils import to_units
from benchmark_utils.descent import RATE, STEP, STEPS, gradients
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Poisson batches of a tenth, a hundred steps, clip one: not tuned."""

    name = "DP-SGD"
    requirements = ["numpy", "pip::dp-accounting"]
    environment = None
    neighbors = "add_remove"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        import dp_accounting
        from dp_accounting import dp_event, pld

        X, self.y, self.back = to_units(X, y, feature_bounds, target_bounds)
        self.X, self.classify = np.column_stack([X, np.ones(len(X))]), target_bounds is None

        def event(multiplier):
            step = dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(multiplier))
            return dp_event.SelfComposedDpEvent(step, STEPS)

        bracket = dp_accounting.ExplicitBracketInterval(0.3, 500.0)
        self.multiplier = dp_accounting.calibrate_dp_mechanism(
            pld.PLDAccountant, event, epsilon, delta, bracket_interval=bracket, tol=1e-3
        )

    def run(self, _):
        rng = np.random.default_rng()
        self.coef = np.zeros(self.X.shape[1])
        for _ in range(STEPS):
            batch = rng.random(len(self.X)) < RATE
            G = gradients(self.X[batch], self.y[batch], self.coef, self.classify)
            G /= np.maximum(1.0, np.linalg.norm(G, axis=1))[:, np.newaxis]
            noisy = G.sum(axis=0) + self.multiplier * rng.standard_normal(len(self.coef))
            self.coef -= STEP * noisy / (RATE * len(self.X))

    def get_result(self):
        coef, intercept = self.back(self.coef[:-1], self.coef[-1])
        return {"coef": coef, "intercept": intercept}
