"""DP-EBM, Nori et al. (2021), of InterpretML: step functions of single features, boosted privately.

The only model here that is not linear.
"""

import numpy as np
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Its regressor and its classifier, with defaults, told the public bounds."""

    name = "DP-EBM"
    requirements = ["pip::interpret-core==0.7.*"]
    environment = "interpret"
    neighbors = "add_remove"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        from interpret.privacy import (
            DPExplainableBoostingClassifier,
            DPExplainableBoostingRegressor,
        )

        public = {
            "epsilon": epsilon,
            "delta": delta,
            "feature_types": ["continuous"] * X.shape[1],  # else it looks at the records
            "privacy_bounds": np.column_stack(feature_bounds),
            "n_jobs": 1,
        }
        self.X = np.clip(X, *feature_bounds)
        if target_bounds is None:
            self.y = (y == 1).astype(int)
            self.model = DPExplainableBoostingClassifier(**public)
        else:
            self.y, (least, most) = np.clip(y, *target_bounds), target_bounds
            self.model = DPExplainableBoostingRegressor(
                privacy_target_min=least, privacy_target_max=most, **public
            )

    def run(self, _):
        self.model.fit(self.X, self.y)

    def get_result(self):
        by_feature = sorted(zip(self.model.term_features_, self.model.term_scores_, strict=True))
        edges = [self.model.bins_[j][0] for (j,), _ in by_feature]
        most = max(len(e) for e in edges)
        cuts = [np.pad(e, (0, most - len(e)), constant_values=np.inf) for e in edges]
        # the first score is for missing values, the last one for unknown values
        scores = [s[1:-1] for _, s in by_feature]
        steps = [np.pad(s, (0, most + 1 - len(s)), mode="edge") for s in scores]
        intercept = float(np.ravel(self.model.intercept_)[0])
        return {"intercept": intercept, "cuts": np.array(cuts), "steps": np.array(steps)}
