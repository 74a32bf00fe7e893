"""The problem of all peers: records with public bounds, (ε, δ), and a model of them.

In benchopt's form. Every solver is told the same public facts and gives ``coef`` and ``intercept``
in the units of the records, and ``interval`` if it has one. A sum of step functions has ``cuts``
and ``steps`` instead of ``coef``.
"""

import numpy as np
from benchmark_utils import margins, plain_fit
from benchopt import BaseObjective


class Objective(BaseObjective):
    """Error on held-out records, excess over the model without privacy, coverage of intervals."""

    name = "Private linear models"
    parameters = {"epsilon": [1.0], "delta": [1e-6]}
    requirements = ["numpy", "scikit-learn"]
    sampling_strategy = "run_once"
    min_benchopt_version = "1.6"

    def set_data(self, X, y, X_test, y_test, feature_bounds, target_bounds, truth=None):
        self.X, self.y, self.X_test, self.y_test = X, y, X_test, y_test
        self.feature_bounds, self.target_bounds, self.truth = feature_bounds, target_bounds, truth
        coef, intercept = plain_fit(X, y, target_bounds is None)
        self.plain = self._risks(coef=coef, intercept=intercept)

    def get_objective(self):
        return {
            "X": self.X,
            "y": self.y,
            "feature_bounds": self.feature_bounds,  # arrays lo and hi
            "target_bounds": self.target_bounds,  # None: labels 0 and 1
            "epsilon": self.epsilon,
            "delta": self.delta,
        }

    def _risks(self, **model):
        """Error (1 - R², or share of wrong labels) and risk (that error, or log loss)."""
        found = margins(np.clip(self.X_test, *self.feature_bounds), **model)
        if self.target_bounds is None:
            loss = np.logaddexp(0, np.where(self.y_test == 1, -found, found)).mean()
            return float(((found > 0) != (self.y_test == 1)).mean()), float(loss)
        found = np.clip(found, *self.target_bounds)  # public, so for everybody
        error = float(((self.y_test - found) ** 2).mean() / self.y_test.var())
        return error, error

    def evaluate_result(self, coef=None, intercept=0.0, interval=None, cuts=None, steps=None):
        error, risk = self._risks(coef=coef, intercept=intercept, cuts=cuts, steps=steps)
        found = {"value": error, "error": error, "excess_risk": risk - self.plain[1]}
        if interval is not None and self.truth is not None:
            inside = (interval[:, 0] <= self.truth) & (self.truth <= interval[:, 1])
            found |= {"coverage": float(inside.mean())}
        return found

    def get_one_result(self):
        return {"coef": np.zeros(self.X.shape[1]), "intercept": 0.0}
