"""Words that a user reads first: `help`, an import that fails, names of columns in summaries."""

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from tables import table

import dpcd_sklearn
from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.inspection import CoefficientDisplay, find_leaks, plan
from dpcd_sklearn.linear_model._summary import CoefSummary
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.privacy import accounting
from dpcd_sklearn.privacy.ledger import LedgerEntry
from dpcd_sklearn.samplings import FullSampling, Sampling
from dpcd_sklearn.solvers import GCD
from dpcd_sklearn.testing import ReproducibleNoise

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


# ---- every object looks like something, in text and in notebooks ---------------------------------


API = Path(__file__).resolve().parent.parent / "doc" / "api.rst"
INSTANCES = {  # of classes that do more than to keep what they are given
    "PrivacyAccountant": lambda cls: cls(epsilon=2.0, delta=1e-6),
    "PrivatePipeline": lambda cls: cls([("scale", BoundsScaler((0, 1))), ("fit", DPLassoCD())]),
    "DPColumnTransformer": lambda cls: cls([("scale", BoundsScaler((0, 1)), ["age"])]),
    "PrivateSearchCV": lambda cls: cls(DPLassoCD(), {"alpha": [0.1, 1.0]}),
    "DPLogisticGCD": lambda cls: cls(classes=["a", "b"], solver=GCD(rule="gs-s")),
    "DPLogisticCV": lambda cls: cls(classes=["a", "b"]),
    "DPLinearClassifier": lambda cls: cls(classes=["a", "b"], feature_bounds=(-1, 1)),
    "DPLinearRegressor": lambda cls: cls(loss=Huber(0.5), penalty=Box(0, 1)),
    "PrivacyReport": lambda cls: cls(FITTED),
    "LeakReport": lambda cls: find_leaks(DPLassoCD()),
    "FitPlan": lambda cls: plan(DPLassoCD(feature_bounds=(-1, 1), target_bounds=(0, 1)), 900, 2),
    "AuditResult": lambda cls: cls("passed", *[1.0] * 12, releases=()),
    "FitEvent": lambda cls: FITTED.privacy_event_,
    "CoefSummary": lambda cls: FITTED.summary(),
    "LedgerEntry": lambda cls: cls(1, datetime.now(), *["a"] * 11),
    "BlockSampling": lambda cls: cls(5, 2),
    "SingleSampling": lambda cls: cls(5),
    "Sampling": lambda cls: FullSampling(5),
}  # fmt: skip
FITTED = DPLinearRegressor(inference=True, feature_bounds=(-1, 1), target_bounds=(-1, 1)).fit(
    np.linspace(-1, 1, 4000).reshape(-1, 2), np.linspace(-1, 1, 2000)
)


def public_classes():
    """The classes that the reference lists, but for errors and warnings, and what they hand out."""
    pages = API.read_text(encoding="utf-8") if API.exists() else ""
    for path in re.findall(r"^   ([\w.]+)$", pages, re.MULTILINE):
        room, _, name = f"dpcd_sklearn.{path}".rpartition(".")
        if room != "dpcd_sklearn.dask":  # the same classes, with an extra
            found = getattr(importlib.import_module(room), name)
            if inspect.isclass(found) and not issubclass(found, Exception):
                yield found
    yield from (accounting.FitEvent, accounting.GaussianEvent, accounting.SelectionEvent)
    yield from (accounting.PrivacyCost, accounting.PrivacySpent, CoefSummary, LedgerEntry)


def instance(cls):
    """An object of a class, of ones where something has to be given."""
    if cls.__name__ in INSTANCES:
        return INSTANCES[cls.__name__](cls)
    needed = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    return cls(**{p.name: 1 for p in needed})


@pytest.mark.skipif(not API.exists(), reason="the documentation is not here")
@table("cls", list(public_classes()))
def test_every_public_object_is_readable_and_a_call_where_scikit_learns_is(cls):
    found = instance(cls)
    text = repr(found)
    assert text and " at 0x" not in text
    assert "<" in found._repr_html_()
    names = {each.__name__: each for each in public_classes()}
    names |= {"GCD": GCD, "Huber": Huber, "Box": Box}
    is_call = isinstance(found, (BaseEstimator, Sampling, ReproducibleNoise, tuple))
    if is_call or "Event" in text or cls.__name__ in ("PrivacyCost", "PrivacyAccountant"):
        again = eval(text, names)
        assert type(again) is type(found) and repr(again) == text
