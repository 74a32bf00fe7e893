"""Does the installed wheel work with nothing but its core dependencies? Run outside a checkout."""

import importlib.util
import tempfile
from pathlib import Path

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import dpcd_sklearn
from dpcd_sklearn import DPLassoCD, DPLogisticGCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.preprocessing import BoundsScaler

for extra in ("matplotlib", "pandas", "rich", "pytest", "Cython"):
    assert importlib.util.find_spec(extra) is None, f"{extra} is here: not an empty environment"
package = Path(dpcd_sklearn.__file__).parent
assert "site-packages" in package.parts, f"imported from {package}, not from the wheel"

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, size=(2000, 5))
y = np.clip(X @ [0.1, 0.0, -0.05, 0.0, 0.02] + rng.normal(0, 0.05, 2000), -1, 1)

print("dpcd_sklearn", dpcd_sklearn.__version__, "scikit-learn", sklearn.__version__)
with tempfile.TemporaryDirectory() as folder:
    accountant = PrivacyAccountant(epsilon=5.0, delta=1e-5, path=Path(folder, "ledger.sqlite"))
    for model, target in (
        (DPLassoCD(alpha=0.01, accountant=accountant), y),
        (DPLogisticGCD(accountant=accountant), y > 0.2),
        (DPRidgeSkGD(accountant=accountant), y),
    ):
        pipeline = make_pipeline(BoundsScaler((0.0, 10.0)), clone(model)).fit(X, target)
        fitted = pipeline[-1]
        assert np.isfinite(fitted.coef_).all(), fitted
        assert pipeline.predict(X).shape == (2000,)
        print(f"{type(fitted).__name__:14} score {pipeline.score(X, target):6.3f}", end="  ")
        print(fitted.privacy_spent_, "|", fitted.privacy_event_)
    assert len(accountant.entries()) == 3
    print("spent of the budget:", accountant.spent())
