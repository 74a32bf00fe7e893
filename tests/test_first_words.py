"""Words that a user reads first: `help`, an import that fails, names of columns in summaries."""

import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import warnings
from datetime import datetime
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.pipeline import make_pipeline
from tables import table

import dpcd_sklearn
from dpcd_sklearn import (
    DPElasticNetCV,
    DPLassoCD,
    DPLassoCV,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticCV,
    DPLogisticGCD,
    DPRidgeCV,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import CoefficientDisplay, find_leaks, plan
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.penalties import Box
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPStandardScaler,
    DPTargetEncoder,
)
from dpcd_sklearn.privacy import accounting
from dpcd_sklearn.privacy.ledger import LedgerEntry
from dpcd_sklearn.samplings import FullSampling, Sampling
from dpcd_sklearn.solvers import GCD
from dpcd_sklearn.testing import Recording, ReproducibleNoise

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


GUIDE = Path(__file__).resolve().parent.parent / "doc" / "guide"
OF_CHOICES = [DPElasticNetCV, DPLassoCV, DPLogisticCV, DPRidgeCV]
# Parameters that their chapters do not name: plurals, and two that are for the console or no noise.
NOT_NAMED = {"alphas", "Cs", "l1_ratios", "tol", "verbose"}


@table("estimator", [*ESTIMATORS, *OF_CHOICES])
def test_help_has_parameters_by_theme_with_what_growth_does_and_their_chapters(estimator):
    doc = estimator.__doc__
    head, _, listed = doc.partition("\n    Parameters\n    ----------\n")
    listed = listed.partition("\n    Attributes\n")[0]
    texts = re.split(r"\n(?=    \S)", listed)
    names = [re.match(r"\s*(\w+) : ", text)[1] for text in texts]
    assert sorted(names) == sorted(estimator._get_param_names())
    themes = re.findall(r"`(\w+)`", re.sub(r"\s+", " ", head.partition("by theme**")[2]))
    assert themes == names
    start = {"alpha", "alphas", "C", "Cs", "epsilon", "feature_bounds", "target_bounds", "classes"}
    assert set(names[:5]) <= start | {"accountant"} and names[4] == "accountant"
    for name, text in zip(names, texts, strict=True):
        (chapter,) = re.findall(r"See :doc:`/guide/(\w+)`\.", text)
        page = GUIDE / f"{chapter}.rst"
        if page.exists() and name not in NOT_NAMED:
            assert re.search(rf"\b{name}\b", page.read_text(encoding="utf-8")), (name, chapter)
        if re.search(r"\b(float|int)\b", text.partition("\n")[0]) and name not in (
            "cv",
            "random_state",
        ):
            assert re.search("A larger one|Wider ones", text), name
    for symbol in ("M_j", "mu)", "η", "A choice", " z ", " g "):
        assert symbol in head.partition("**Symbols**")[2]
        assert symbol not in head.partition("**Symbols**")[0]


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


EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "real_tasks"


@pytest.mark.skipif(not EXAMPLES.exists(), reason="the examples are not here")
def test_ledgers_are_opened_and_not_made_by_the_programs_of_real_tasks():
    texts = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")}
    kept = [
        text
        for text in texts.values()
        if "path=" in "".join(re.findall(r"PrivacyAccountant\(.*", text))
    ]
    assert len(kept) == 6
    for text in kept:
        assert "= PrivacyAccountant(" not in text
        assert "accountant = PrivacyAccountant.open(" in text


# ---- dead ends: what is wrong, and what to write -------------------------------------------------


RECORDS = np.random.default_rng(0).uniform(-1, 1, (40, 2))
LABELS = (RECORDS[:, 0] > 0).astype(int)
TABLE = pd.DataFrame(RECORDS, columns=["age", "income"]).assign(visit_date="2020-01-01", ward="A")
TWO = DPLinearClassifier(classes=[0, 1])
BY_NAME = make_private_pipeline(
    make_private_column_transformer((DPOneHotEncoder(), ["ward"]), (DPStandardScaler(), ["age"])),
    TWO,
)
PLAIN = make_pipeline(make_column_transformer((BoundsScaler((-1, 1)), ["age"])), TWO)
LEDGER = PrivacyAccountant(50.0, 1e-3)
SEARCH = PrivateSearchCV(TWO, {"alpha": [0.1, 1.0]})
FITS = [DPLassoCD(), TWO, make_private_pipeline(TWO)]
OWNERS = {"DPLassoCD": DPLassoCD, "DPLogisticGCD": DPLogisticGCD, "DPRidgeCV": DPRidgeCV}
OWNERS |= {"DPLinearClassifier": DPLinearClassifier}
ELSEWHERE = [
    ("DPLogisticGCD", "penalty", "l1_ratio of DPLogisticGCD"),
    ("DPLassoCD", "l1_ratio", "penalty='elasticnet'"),
    ("DPLassoCD", "n_jobs", "n_threads"),
    ("DPLogisticGCD", "multi_class", "softmax"),
    ("DPLogisticGCD", "alpha", "C of DPLogisticGCD"),
    ("DPLinearClassifier", "C", "alpha = 1 / "),
    ("DPLassoCD", "sampling_rate", r"solver=SGD\(sampling_rate=...\)"),
    ("DPRidgeCV", "groups", r"fit\(X, y, groups=ids\)"),
    ("DPLinearClassifier", "early_stopping", "max_iter is public"),
    ("DPLinearClassifier", "max_grad_norm", "here it is clip"),
]
DEAD_ENDS = [
    *((lambda m=model: clone(m).fit(RECORDS, None), "requires y to be passed") for model in FITS),
    (lambda: clone(TWO).fit(RECORDS, np.where(LABELS, 1, np.nan)), "no missing targets"),
    *(
        (lambda m=model, p=shape: LEDGER.cost(m, 40, p), "data frame of made-up rows in its place")
        for model, shape in [(BY_NAME, 4), (BY_NAME, list(TABLE)), (PLAIN, 4)]
    ),
    (lambda: plan(BY_NAME, 40, 4), "data frame of made-up rows in its place"),
    (lambda: plan(BY_NAME, 40, TABLE, sizes=[], n_repeats=1), r"make_data\(n_samples, rng\)"),
    (lambda: plan(PLAIN, 40, TABLE), r"make_data\(n_samples, rng\)"),
    *(
        (lambda m=model: clone(m).fit(RECORDS, LABELS, groups=LABELS), r"Persons\(")
        for model in [make_private_pipeline(TWO), SEARCH, DPStandardScaler()]
    ),
    (lambda: clone(TWO).fit(RECORDS, LABELS, groups=LABELS), r"Persons\(\)"),
    *(
        (lambda s=solver: DPLogisticGCD(solver=s).fit(RECORDS, LABELS), "Here it is solver='auto'")
        for solver in ("lbfgs", "saga", "cholesky")
    ),
    (lambda: clone(TWO).set_params(class_weight={1: 11.0}).fit(RECORDS, LABELS), "sample_weight"),
    (lambda: clone(TWO).set_params(class_weight="balanced").fit(RECORDS, LABELS), "min.shares"),
]  # fmt: skip


@table("ask, match", DEAD_ENDS)
def test_a_dead_end_says_what_to_write(ask, match):
    with pytest.raises((TypeError, ValueError), match=match):
        ask()


@table("owner, name, match", ELSEWHERE)
def test_parameters_of_other_packages_are_told_by_their_name_here(owner, name, match):
    with pytest.raises(TypeError, match=f"{owner} has no parameter {name}: .*{match}"):
        OWNERS[owner](**{name: 1})
    with pytest.raises(ValueError, match=f"{owner} has no parameter {name}: .*{match}"):
        OWNERS[owner]().set_params(**{name: 1})


@pytest.mark.parametrize("encoder", [DPOneHotEncoder, DPOrdinalEncoder, DPTargetEncoder])
def test_dates_among_categories_are_named_before_the_charge(encoder):
    whens = TABLE.assign(when=pd.Timestamp("2020-01-01"))
    accountant = PrivacyAccountant(50.0, 1e-3)
    model = encoder(accountant=accountant)
    for columns, named in (["visit_date", "ward"], "visit_date"), (["when"], "when"):
        words = rf"\['{named}'\] seem .* of its own: .*date_parts"
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*seem to be dates")
            with pytest.raises(UserWarning, match=words):
                model.fit(whens[columns], LABELS)
    assert not accountant.entries()
    encoded = make_private_column_transformer(
        (encoder(), ["visit_date"]), (DPStandardScaler(), ["age"])
    )
    with pytest.warns(UserWarning, match="seem to be dates") as heard:
        make_private_pipeline(encoded, TWO, epsilon=5.0).fit(TABLE, LABELS)
    assert sum("seem to be dates" in str(one.message) for one in heard) == 1  # though it is planned
    stated = encoder(categories={"visit_date": ["2020-01-01"]})
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*seem to be dates")
        stated.fit(whens[["visit_date", "ward"]], LABELS)
        model.fit(whens[["ward"]], LABELS)


def test_a_model_in_memory_names_the_model_of_dask_collections(uncharged):
    arrays = pytest.importorskip("dask.array")
    frames = pytest.importorskip("dask.dataframe")
    X, y = frames.from_pandas(TABLE[["age"]], npartitions=2), arrays.from_array(LABELS, chunks=20)
    model = clone(TWO).set_params(accountant=uncharged)
    pipeline = make_private_pipeline(DPStandardScaler(), TWO, accountant=uncharged)
    for ask in (model, pipeline):
        with pytest.raises(TypeError, match=r"dpcd_sklearn.dask.DPLinearClassifier .*compute\(\)"):
            ask.fit(X, y)


def test_weights_of_public_shares_find_a_rare_class_nearly_as_often_as_balanced_ones():
    X, y = make_classification(20_000, 10, n_informative=5, weights=[0.95], random_state=1)
    seen, new = slice(0, 10_000), slice(10_000, None)
    plain = LogisticRegression(class_weight="balanced").fit(X[seen], y[seen])
    weights = {0: 0.05 / (4 * 0.95), 1: 0.25}  # min(shares) / (4 * share)
    model = DPLinearClassifier(classes=[0, 1], class_weight=weights, epsilon=3.0)
    found = model.fit(X[seen], y[seen]).predict(X[new])
    recall = recall_score(y[new], plain.predict(X[new]))
    unweighted = model.set_params(class_weight=None).fit(X[seen], y[seen]).predict(X[new])
    assert recall_score(y[new], found) > recall - 0.12 > recall_score(y[new], unweighted) + 0.2


# ---- every object looks like something, in text and in notebooks ---------------------------------


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
    "LedgerEntry": lambda cls: cls(1, datetime.now(), *["a"] * 14),
    "BlockSampling": lambda cls: cls(5, 2),
    "SingleSampling": lambda cls: cls(5),
    "Sampling": lambda cls: FullSampling(5),
    "PrivateScorer": lambda cls: make_private_scorer("accuracy", epsilon=0.5),
    "Replay": lambda cls: cls(Recording()),
}  # fmt: skip
FITTED = DPLinearRegressor(inference=True, feature_bounds=(-1, 1), target_bounds=(-1, 1)).fit(
    np.linspace(-1, 1, 4000).reshape(-1, 2), np.linspace(-1, 1, 2000)
)


def public_classes():
    """The classes of every `__all__`, but for errors, warnings and kernels, and what they give."""
    rooms = [each.name for each in pkgutil.iter_modules(dpcd_sklearn.__path__) if each.ispkg]
    rooms = [f"dpcd_sklearn.{name}" for name in rooms if name != "dask"]  # the same, with an extra
    for room in map(importlib.import_module, ["dpcd_sklearn", *rooms]):
        for found in (getattr(room, name) for name in getattr(room, "__all__", ())):
            is_class = inspect.isclass(found) and not issubclass(found, Exception)
            if is_class and found.__flags__ & 1 << 9:  # a class of Python; others are compiled
                yield found
    yield from (Huber, accounting.FitEvent, accounting.GaussianEvent, accounting.SelectionEvent)
    yield from (accounting.PrivacyCost, accounting.PrivacySpent, LedgerEntry)
    yield type(FITTED.summary())


def instance(cls):
    """An object of a class, of ones where something has to be given."""
    if cls.__name__ in INSTANCES:
        return INSTANCES[cls.__name__](cls)
    needed = [p for p in inspect.signature(cls).parameters.values() if p.default is p.empty]
    return cls(**{p.name: 1 for p in needed})


@table("cls", dict.fromkeys(public_classes()))
def test_every_public_object_is_readable_and_a_call_where_scikit_learns_is(cls):
    found = instance(cls)
    text = repr(found)
    assert text and " at 0x" not in text
    assert "<" in found._repr_html_()
    names = {each.__name__: each for each in public_classes()}
    names |= {"GCD": GCD, "Huber": Huber, "Box": Box}
    is_call = isinstance(found, (BaseEstimator, Sampling, ReproducibleNoise, tuple))
    is_call = is_call and not isinstance(found, Recording)
    if is_call or "Event" in text or cls.__name__ in ("PrivacyCost", "PrivacyAccountant"):
        again = eval(text, names)
        assert type(again) is type(found) and repr(again) == text
