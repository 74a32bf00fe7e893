"""dpcd_sklearn with its defaults, told the public bounds."""

import numpy as np
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

        public = {"epsilon": epsilon, "delta": delta, "feature_bounds": feature_bounds}
        if self.neighbors == "add_remove":
            public |= {"neighboring": "add_remove", "n_public": len(X)}
        self.X, self.y = X, y
        if target_bounds is None:
            self.model = DPLogisticGCD(classes=[0, 1], **public)
        elif self.inference:
            self.model = DPLinearRegressor(
                penalty=None, inference=True, target_bounds=target_bounds, **public
            )
        else:
            self.model = DPRidgeSkGD(target_bounds=target_bounds, **public)

    def run(self, _):
        self.model.fit(self.X, self.y)

    def get_result(self):
        found = {
            "coef": np.ravel(self.model.coef_),
            "intercept": float(np.ravel(self.model.intercept_)[0]),
        }
        if self.inference:
            found["interval"] = self.model.confidence_interval()[: len(found["coef"])]
        return found
