"""Public data with public bounds, both of many_fits.py; California where it is found."""

import runpy
from pathlib import Path

import numpy as np
from benchopt import BaseDataset

DEMO = Path(__file__).resolve().parents[2] / "many_fits.py"


class Dataset(BaseDataset):
    """One split of one data set; no bound is read off the records."""

    name = "bundled"
    parameters = {"data": ["diabetes", "breast_cancer", "california_housing"]}
    requirements = ["numpy", "scikit-learn", "pip::dpcd_sklearn"]

    def get_data(self):
        demo = runpy.run_path(str(DEMO))
        if self.data == "california_housing":
            found = demo["california_housing"]()
            if found is None:
                raise FileNotFoundError("California housing is not here")
        else:
            found = next(data for data in demo["bundled_data"]() if data.name == self.data)
        target = f"{self.data.partition('_')[0].upper()}_TARGET"
        lo, hi = np.array(found.bounds, dtype=float).T
        return {
            "X": np.asarray(found.X_train, dtype=float),
            "y": np.asarray(found.y_train, dtype=float),
            "X_test": np.asarray(found.X_test, dtype=float),
            "y_test": np.asarray(found.y_test, dtype=float),
            "feature_bounds": (lo, hi),
            "target_bounds": demo.get(target),
        }
