"""A regression whose coefficients are known, so that intervals can be counted."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Uniform features in [0, 1], Gaussian errors, a target well within its public bounds."""

    name = "simulated"
    parameters = {"n_samples": [20_000], "n_features": [5]}
    requirements = ["numpy"]

    def get_data(self):
        rng = np.random.default_rng(0)
        n, p = self.n_samples, self.n_features
        truth = np.linspace(-1, 1, p)
        X = rng.uniform(size=(n + 10_000, p))
        y = X @ truth + 0.5 * rng.standard_normal(len(X))
        return {
            "X": X[:n],
            "y": y[:n],
            "X_test": X[n:],
            "y_test": y[n:],
            "feature_bounds": (np.zeros(p), np.ones(p)),
            "target_bounds": (-4.0, 4.0),
            "truth": truth,
        }
