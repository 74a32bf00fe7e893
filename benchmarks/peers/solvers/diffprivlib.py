"""diffprivlib: the functional mechanism, and a perturbed objective; pure ε."""

import numpy as np
from benchmark_utils import to_units
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Its LinearRegression and LogisticRegression, with defaults, told the public bounds."""

    name = "diffprivlib"
    requirements = ["pip::diffprivlib==0.6.6", "pip::scikit-learn==1.6.*"]
    environment = "diffprivlib"
    neighbors = "replace_one"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        from diffprivlib.models import LinearRegression, LogisticRegression

        self.target_bounds = target_bounds
        if target_bounds is None:
            self.X, _, self.back = to_units(X, y, feature_bounds, None)
            self.y = (y == 1).astype(int)
            norm = float(np.sqrt(X.shape[1]))
            self.model = LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=1000)
        else:
            self.X, self.y = np.clip(X, *feature_bounds), np.clip(y, *target_bounds)
            self.model = LinearRegression(
                epsilon=epsilon, bounds_X=feature_bounds, bounds_y=target_bounds
            )

    def run(self, _):
        self.model.fit(self.X, self.y)

    def get_result(self):
        coef, intercept = np.ravel(self.model.coef_), float(np.ravel(self.model.intercept_)[0])
        if self.target_bounds is None:
            coef, intercept = self.back(coef, intercept)
        return {"coef": coef, "intercept": intercept}
