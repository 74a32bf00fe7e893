"""dpcd_sklearn with its defaults, in the units of the public bounds."""

import numpy as np
from benchmark_utils import to_units
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Ridge or logistic regression; "inference" for standard errors, of a regression."""

    name = "dpcd_sklearn"
    parameters = {"inference": [False, True], "neighbors": ["replace_one", "add_remove"]}
    requirements = ["pip::dpcd_sklearn"]
    environment = None  # where run.py runs
    neighbors = "replace_one"  # by default

    def skip(self, target_bounds, **objective):
        return self.inference and target_bounds is None, "standard errors of a regression only"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        from dpcd_sklearn import DPLinearRegressor, DPLogisticGCD, DPRidgeSkGD

        public = {"epsilon": epsilon, "delta": delta, "feature_bounds": (-1, 1)}
        if self.neighbors == "add_remove":
            public |= {"neighboring": "add_remove", "n_public": len(X)}
        # Penalties count coefficients in the units of X, and raw ones differ by magnitudes.
        self.X, self.y, self.back = to_units(X, y, feature_bounds, target_bounds)
        if target_bounds is None:
            self.model = DPLogisticGCD(classes=[-1, 1], **public)
        elif self.inference:
            self.model = DPLinearRegressor(
                penalty=None, inference=True, target_bounds=(-1, 1), **public
            )
        else:
            self.model = DPRidgeSkGD(target_bounds=(-1, 1), **public)

    def run(self, _):
        self.model.fit(self.X, self.y)

    def get_result(self):
        coef, intercept = self.back(self.model.coef_, np.ravel(self.model.intercept_)[0])
        found = {"coef": coef, "intercept": intercept}
        if self.inference:
            edges = self.model.confidence_interval()[: len(coef)].T
            found["interval"] = np.column_stack([self.back(edge, 0.0)[0] for edge in edges])
        return found
