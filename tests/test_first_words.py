"""Words that a user reads first: `help`, an import that fails, names of columns in summaries."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import dpcd_sklearn
from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.inspection import CoefficientDisplay
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler

ESTIMATORS = [DPLassoCD, DPLinearClassifier, DPLinearRegressor, DPLogisticGCD, DPRidgeSkGD]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_help_starts_with_a_short_signature_and_the_constructor_has_all(estimator):
    shown = inspect.signature(estimator)
    assert len(f"{estimator.__name__}{shown}") <= 600
    names = list(shown.parameters.values())
    every = inspect.signature(estimator.__init__).parameters
    assert all(parameter.default == every[parameter.name].default for parameter in names)
    assert {"epsilon", "delta", "solver", "accountant"} <= {each.name for each in names}
    assert set(estimator().get_params()) == set(every) - {"self"}
    assert clone(estimator(epsilon=2.0)).epsilon == 2.0


def test_an_import_from_a_checkout_that_is_not_built_says_how_to_build_it(tmp_path):
    package = Path(dpcd_sklearn.__file__).parent
    built = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    shutil.copytree(package, tmp_path / "dpcd_sklearn", ignore=built)
    result = subprocess.run(
        [sys.executable, "-c", "import dpcd_sklearn"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: dpcd_sklearn.") and "not built" in last
    assert "pip install -e ." in last


def test_summaries_and_displays_name_the_columns_that_reached_the_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 1, (400, 2)), columns=["age", "income"])
    pipeline = make_private_pipeline(
        BoundsScaler((0, 1)),
        DPRidgeSkGD(inference=True, target_bounds=(-1, 2)),
        epsilon=20.0,
    ).fit(X, X["age"])
    assert [name for name, _ in pipeline.summary().rows] == ["age", "income", "intercept"]
    assert pipeline.summary(0.9).heads == pipeline[-1].summary(0.9).heads
    assert sorted(CoefficientDisplay.from_estimator(pipeline).feature_names) == ["age", "income"]
    plt.close("all")
    without = make_private_pipeline(BoundsScaler((0, 1)), DPRidgeSkGD(inference=True), epsilon=5.0)
    without.fit(X.to_numpy(), X["age"])
    assert [name for name, _ in without.summary().rows] == ["x0", "x1", "intercept"]


def test_no_default_of_a_generic_estimator_removes_narrow_columns():
    """A ridge in raw units would, in silence: alpha = 1e-4 takes a column of size 1e-3."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4))
    y = X @ [1.0, 2.0, -1.0, 1.0] + 0.3 * rng.standard_normal(len(X))
    X[:, 1] *= 1e-4
    for model, target in (
        (DPLinearRegressor(epsilon=3.0), y),
        (DPLinearClassifier(epsilon=3.0, classes=[0, 1]), (y > 0).astype(int)),
    ):
        assert model.fit(X, target).score(X, target) > 0.9
