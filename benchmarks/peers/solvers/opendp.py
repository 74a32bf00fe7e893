"""OpenDP: noisy sums of products by its Gaussian measurement, and ridge regression of them.

OpenDP has no estimator of this kind for several features; its parts give one in a few lines.
"""

import numpy as np
from benchmark_utils import to_units
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Sums of z zᵀ, where z = (x, 1, y) has norm at most one by public bounds."""

    name = "OpenDP, noisy moments"
    requirements = ["pip::opendp==0.16.*"]
    environment = "opendp"
    neighbors = "add_remove"

    def skip(self, target_bounds, **objective):
        return target_bounds is None, "regression only"

    def set_objective(self, X, y, feature_bounds, target_bounds, epsilon, delta):
        import opendp.prelude as dp

        dp.enable_features("contrib")

        def measurement(scale):
            vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False))
            gaussian = dp.m.make_gaussian(vectors, dp.l2_distance(T=float), scale)
            return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta)

        # a record moves the sums by |z|² in the norm that counts entries off the diagonal twice
        self.scale = dp.binary_search_param(measurement, d_in=1.0, d_out=(epsilon, delta))
        self.measurement = measurement(self.scale)
        self.X, self.y, self.back = to_units(X, y, feature_bounds, target_bounds)

    def run(self, _):
        n, p = self.X.shape
        Z = np.column_stack([self.X, np.ones(n), self.y]) / np.sqrt(p + 2)
        rows, columns = np.triu_indices(p + 2)
        weights = np.where(rows == columns, 1.0, np.sqrt(2))
        noisy = np.array(self.measurement(list((Z.T @ Z)[rows, columns] * weights))) / weights
        moments = np.zeros((p + 2, p + 2))
        moments[rows, columns] = moments[columns, rows] = noisy
        A, b = moments[:-1, :-1], moments[:-1, -1]
        ridge = self.scale * np.sqrt(p + 1)  # about as large as the noise is: public
        self.coef = np.linalg.solve(A + ridge * np.eye(p + 1), b)

    def get_result(self):
        coef, intercept = self.back(self.coef[:-1], self.coef[-1])
        return {"coef": coef, "intercept": intercept}
