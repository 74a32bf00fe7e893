"""Pipelines whose private steps share one budget: claims, charges, refusals, what is handed on."""

import functools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from forks import at_once
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from tables import pass_checks, table

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPPoissonRegressor,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.exceptions import ReproducibleNoiseWarning, UnknownScaleWarning
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import PrivatePipeline, _private_pipeline, make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    RowNormClipper,
)
from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    Receipt,
    _joint,
    _loss,
    epsilon_of,
    joined,
    joint_budgets,
)
from dpcd_sklearn.privacy.ledger import Prepaid
from dpcd_sklearn.testing import ReproducibleNoise

N, P = 400, 3
X = np.random.default_rng(0).normal([30.0, 1e4, -5.0], [10.0, 2e3, 1.0], size=(N, P))
Y = (X - X.mean(0)) @ [0.5, 3e-3, 0.0]
LABELS = np.where(Y > 0, "yes", "no")
TARGET = {"target_bounds": (-50, 50)}

MODELS = {
    "ridge": (DPRidgeSkGD(**TARGET), Y),
    "lasso": (DPLassoCD(**TARGET), Y),
    "greedy": (DPLogisticGCD(classes=["no", "yes"], max_iter=20), LABELS),
    "sampled": (DPLinearRegressor(solver="sgd", max_iter=3, **TARGET), Y),
}


def pipeline(model=MODELS["ridge"][0], **params):
    return make_private_pipeline(DPStandardScaler(), clone(model), **params)


def ledger(epsilon=5.0, **params):
    return PrivacyAccountant(epsilon, 1e-5, **params)


# ---- the claim ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", MODELS)
def test_the_event_of_all_steps_costs_what_is_claimed_and_hardly_less(name, epsilon):
    model, _ = MODELS[name]
    event = pipeline(model, epsilon=epsilon, delta=1e-5).planned_event(N, P)
    cost = epsilon_of(event, 1e-5)
    assert epsilon * (1 - 1e-6) <= cost <= epsilon


def test_one_private_step_has_all_of_the_budget():
    alone = DPRidgeSkGD(epsilon=0.7, feature_bounds=(-1.0, 1.0), **TARGET)
    piped = make_private_pipeline(BoundsScaler((0, 1e5)), DPRidgeSkGD(**TARGET), epsilon=0.7)
    assert piped.planned_event(N, P) == alone.planned_event(N, P)


def test_shares_divide_the_squares_of_mu():
    ridges = {
        share: pipeline(shares={"dpstandardscaler": share, "dpridgeskgd": 1.0}, delta=1e-5)
        for share in (0.1, 1.0, 9.0)
    }
    squares = {}
    for share, model in ridges.items():
        fitted = model.fit(X, Y)
        assert fitted.shares_["dpridgeskgd"] == pytest.approx(1 / (1 + share))
        releases = fitted[1].privacy_event_.releases
        squares[share] = sum(one.count / one.noise_multiplier**2 for one in releases)
    # choices are a little dearer than their share: all parts are scaled by one factor near 1
    for share, found in squares.items():
        assert found / squares[0.1] == pytest.approx(1.1 / (1 + share), rel=0.1)


def test_a_target_at_a_jump_is_missed_on_the_safe_side():
    def jumps(budget):  # of a step that releases more once it can afford it
        noise = 8.0 if budget.epsilon < 0.5 else 1.0
        return FitEvent((GaussianEvent(noise),))

    def follows(budget):
        return FitEvent((GaussianEvent(4.0 / budget.epsilon),))

    budget = Budget(1.0, 1e-5)
    _, event = joint_budgets([jumps, follows], [0.5, 0.5], budget)
    assert epsilon_of(event, 1e-5) <= 1.0
    with pytest.raises(ValueError, match="must follow the epsilon"):
        joint_budgets([lambda *_: FitEvent((GaussianEvent(1.0),))] * 2, [1, 1], budget)


def test_what_was_planned_before_changes_no_plan():
    """A fit plans again what was asked for: the events must be the same to the bit."""
    models = [pipeline(epsilon=epsilon, delta=1e-5) for epsilon in (0.5, 2.0, 0.5)]
    models[2].set_params(dpridgeskgd__alpha=7.0)
    one, other, again = (model.planned_event(1000, P) for model in models)
    assert one == again != other
    for cached in (_joint._scale_of_all, _joint._scale_of_last, _joint._pair, _loss.cover):
        cached.cache_clear()
    assert models[2].planned_event(1000, P) == one
    assert models[0].planned_event(1000, P) == one


# ---- charges ------------------------------------------------------------------------------------


def test_a_refused_charge_lets_no_private_step_see_a_record():
    accountant = ledger(0.5)
    model = pipeline(accountant=accountant, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        model.fit(X, Y)
    assert not accountant.entries()
    assert not hasattr(model[0], "center_")


class Breaks(DPRidgeSkGD):
    """Fails after its charge, as a fit that is interrupted."""

    def _scale_target(self, y, request):
        raise RuntimeError("interrupted")


def test_a_fit_that_fails_in_a_later_step_stays_charged():
    accountant = ledger()
    model = make_private_pipeline(DPStandardScaler(), Breaks(**TARGET), accountant=accountant)
    with pytest.raises(RuntimeError, match="interrupted"):
        model.fit(X, Y)
    assert len(accountant.entries()) == 1
    assert model[1].get_params()["accountant"] is None  # and the steps are as they were


def test_what_a_later_step_refuses_takes_no_part_of_a_reserved_budget():
    model = make_private_pipeline(DPStandardScaler(), DPSelectKBest(k=2), delta=1e-5)
    event = model.planned_event(N, P)
    model.set_params(accountant=ledger().reserve([event]))
    with pytest.raises(ValueError, match="converted to numbers"):
        model.fit(X, np.where(Y > 0, "high", "low"))
    assert model.fit(X, Y).privacy_event_ == event


def test_a_mutant_whose_event_forgets_the_scaler_is_refused(monkeypatch):
    """The scaler finds that nobody paid for it, and releases nothing."""
    honest = _private_pipeline.joint_planner

    def forgets(*args):
        plan = honest(*args)
        return lambda budget: replace(p := plan(budget), event=FitEvent(p.event.releases[1:]))

    monkeypatch.setattr(_private_pipeline, "joint_planner", forgets)
    accountant = ledger()
    model = pipeline(accountant=accountant)
    with pytest.raises(RuntimeError, match="no part of what was charged"):
        model.fit(X, Y)
    assert not hasattr(model[0], "center_")
    assert not accountant.entries()


def test_a_mutant_that_splits_epsilon_by_halves_is_not_tight():
    halves = [
        step.set_params(epsilon=0.5, delta=1e-5).planned_event(N, P)
        for step in (DPStandardScaler(), DPRidgeSkGD(feature_bounds=(-1, 1), **TARGET))
    ]
    assert epsilon_of(joined(halves), 1e-5) < 0.8


def test_parts_are_taken_once_and_nothing_else_is():
    scaling, model = FitEvent((GaussianEvent(2.0, 3),)), FitEvent((GaussianEvent(5.0),))
    accountant = ledger(testing=True)
    account = Prepaid(accountant, joined([scaling, model]), estimator="both")
    with pytest.raises(RuntimeError, match="no part of what was charged"):
        account.charge(FitEvent((GaussianEvent(1.0),)))
    assert not accountant.entries()  # refused before the charge
    receipt = account.charge(scaling)
    assert isinstance(receipt, Receipt)
    assert receipt.event == scaling
    with pytest.raises(RuntimeError, match="redeemed before"):
        clone(account, safe=False).charge(scaling)
    with pytest.raises(ValueError, match="can be drawn again"):
        account.charge(model, reproducible=True)
    account.charge(model)
    assert [entry.estimator for entry in accountant.entries()] == ["both"]
    with pytest.raises(ValueError, match="one neighbouring relation"):
        joined([scaling, FitEvent((GaussianEvent(1.0),), "add_remove")])


@pytest.mark.filterwarnings("ignore:this PrivatePipeline was charged before")
def test_noise_that_is_known_is_refused_before_anything_is_charged():
    seeded = DPRidgeSkGD(random_state=ReproducibleNoise(0), **TARGET)
    accountant = ledger()
    model = make_private_pipeline(DPStandardScaler(), seeded, accountant=accountant)
    with pytest.raises(ValueError, match="random_state"):
        model.fit(X, Y)
    assert not accountant.entries()
    testing = ledger(testing=True)
    with pytest.warns(ReproducibleNoiseWarning):
        model.set_params(accountant=testing).fit(X, Y)
    assert testing.spent().epsilon == math.inf
    with pytest.warns(ReproducibleNoiseWarning):
        model.set_params(accountant=None).fit(X, Y)


# ---- which steps --------------------------------------------------------------------------------


class Shift(TransformerMixin, BaseEstimator):
    """A step of a user's own: nobody knows what it learns."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X) + 1.0


@table(
    ("steps", "match"),
    [
        ([StandardScaler(), DPLassoCD()], "BoundsScaler with public bounds"),
        ([Shift(), DPLassoCD()], "name it in public_steps"),
        ([DPStandardScaler(), Ridge()], "not known to be private"),
        ([FeatureUnion([("a", PCA(1))]), DPLassoCD()], "SparseRandomProjection"),
        ([FunctionTransformer(abs), DPLassoCD()], "map each|maps each row by itself"),
        ([BoundsScaler()], "no step is private"),
        ([DPStandardScaler(), DPLassoCD(epsilon=0.5)], "states epsilon"),
        ([DPStandardScaler(delta=1e-9), DPLassoCD()], "states delta"),
        ([DPStandardScaler(), DPLassoCD(accountant=ledger())], "states accountant"),
        ([DPLassoCD(neighboring="add_remove", n_public=9)], "states neighboring, n_public"),
    ],
)
def test_steps_that_are_not_covered_are_refused_before_the_charge(steps, match, uncharged):
    model = make_private_pipeline(*steps, accountant=uncharged)
    with pytest.raises(ValueError, match=match):
        model.fit(X, Y)
    with pytest.raises(ValueError, match=match):
        model.planned_event(N, P)


def test_you_may_vouch_for_a_step_by_name():
    model = make_private_pipeline(Shift(), DPRidgeSkGD(**TARGET), public_steps=["shift"])
    model.fit(X, Y)
    with pytest.raises(ValueError, match="public_steps names"):
        clone(model).set_params(public_steps=["shif"]).fit(X, Y)
    with pytest.raises(ValueError, match="is private, so it is charged"):
        clone(model).set_params(public_steps=["shift", "dpridgeskgd"]).fit(X, Y)
    # one that was fitted to public records, and needs more than a few to be copied
    public = FrozenEstimator(PCA(2).fit(X + 1.0))
    model = make_private_pipeline(public, DPRidgeSkGD(**TARGET), public_steps=["frozenestimator"])
    assert model.fit(X, Y)[1].n_features_in_ == 2


@pytest.mark.parametrize(
    ("shares", "kind", "match"),
    [
        ({"dpstandardscaler": 1.0}, ValueError, "a number for each private step"),
        ({"dpstandardscaler": 0.0, "dpridgeskgd": 1.0}, ValueError, "shares"),
        ({"dpstandardscaler": "much", "dpridgeskgd": 1.0}, TypeError, "shares"),
        ("half", ValueError, "shares"),
    ],
)
def test_shares_that_say_nothing_are_refused(shares, kind, match):
    with pytest.raises(kind, match=match):
        pipeline(shares=shares).fit(X, Y)


# ---- as any pipeline ----------------------------------------------------------------------------


STEPS = [
    (BoundsScaler((-9, 9)), DPRidgeSkGD(**TARGET)),
    (DPStandardScaler(), DPLinearClassifier(tol=1e-2)),  # records of checks are separable
]


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_scikit_learns_checks_hold(steps):
    reason = "fitted steps take the place of those that were passed, as in scikit-learn's Pipeline"
    model = make_private_pipeline(*steps, epsilon=math.inf)
    checks = "check_estimators_overwrite_params", "check_dont_overwrite_parameters"
    pass_checks(model, dict.fromkeys(checks, reason))


def test_clone_params_and_a_search():
    accountant = ledger(20.0)
    model = pipeline(accountant=accountant, delta=1e-5)
    fitted = clone(model).fit(X, Y)
    assert repr(clone(fitted)) == repr(model)  # nothing that was set while fitting stays
    assert fitted.get_params()["dpridgeskgd__epsilon"] == 1.0
    assert fitted[1].get_params()["feature_bounds"] is None
    grid = {"dpridgeskgd__alpha": [0.1, 1.0], "epsilon": [0.5]}
    search = GridSearchCV(model, grid, cv=KFold(2), error_score="raise").fit(X, Y)
    assert len(accountant.entries()) == 1 + 2 * 2 + 1
    assert search.best_estimator_.privacy_spent_.epsilon == 0.5
    assert type(fitted[:-1]) is Pipeline
    assert np.abs(fitted[:-1].transform(X)).max() <= 1.0


def test_fit_transform_of_scalers_alone_is_charged_once():
    accountant = ledger()
    model = make_private_pipeline(BoundsScaler((-1e5, 1e5)), DPStandardScaler())
    scaled = model.set_params(accountant=accountant).fit_transform(X)
    assert np.abs(scaled).max() <= 1.0
    assert len(accountant.entries()) == 1


def test_parameters_of_single_steps_reach_them():
    weights = np.r_[np.ones(N // 2), np.zeros(N - N // 2)]
    labels = np.where(np.arange(N) < N // 2, LABELS, "third")
    model = make_private_pipeline(DPStandardScaler(), DPLinearClassifier("multinomial"))
    model.fit(X, labels, dplinearclassifier__sample_weight=weights)
    assert list(model.classes_) == ["no", "yes"]
    assert list(clone(model).fit(X, labels).classes_) == ["no", "third", "yes"]


def test_a_sparse_table_is_planned_as_such():
    model = make_private_pipeline(DPStandardScaler(with_centering=False), DPRidgeSkGD())
    fitted = clone(model).fit(sparse.csr_array(X), Y)
    assert fitted.privacy_event_ == model.planned_event(N, P, sparse=True)
    unscaled = make_private_pipeline(RowNormClipper(1e5), DPRidgeSkGD())
    fitted = clone(unscaled).fit(sparse.csr_array(X), Y)
    assert fitted.privacy_event_ == unscaled.planned_event(N, P, sparse=True)


def test_a_pipeline_in_a_pipeline_takes_its_part():
    accountant = ledger()
    outer = make_private_pipeline(DPStandardScaler(), pipeline(), accountant=accountant, delta=1e-5)
    outer.fit(X, Y)
    (entry,) = accountant.entries()
    assert len(entry.releases) == 3
    assert epsilon_of(outer.privacy_event_, 1e-5) <= 1.0


# ---- what is handed on --------------------------------------------------------------------------


def told(*steps, records=X, **params):
    model = make_private_pipeline(*steps, DPRidgeSkGD(**TARGET), **params)
    return model.fit(records, Y).told_.get("dpridgeskgd", {})


def test_what_a_step_made_public_is_told_to_the_next_one():
    unit = {"feature_bounds": (-1.0, 1.0)}
    assert told(DPStandardScaler()) == unit | {"feature_scale": 1.0}  # they fill it
    assert told(BoundsScaler((-1e5, 1e5))) == unit
    clipped = RowNormClipper(norm=2.0)
    assert told(clipped) == {"row_norm_bound": 2.0}
    clipped = told(BoundsScaler((-1e5, 1e5)), clipped)
    assert clipped == unit | {"row_norm_bound": 2.0, "feature_scale": 1.0}
    assert told(DPStandardScaler(), PolynomialFeatures(2)) == unit
    assert told(DPStandardScaler(), FunctionTransformer(np.exp)) == {}
    lo, hi = told(BoundsScaler((0.0, 1e5), with_centering=False))["feature_bounds"]
    assert (lo, hi) == (0.0, 1.0)
    assert told(BoundsScaler((-1e5, 1e5)), records=sparse.csr_array(X)) == unit


TOWNS = np.array([["east"], ["west"]], dtype=object)[(Y > 0).astype(int)]
TOWN_ENCODER = DPTargetEncoder(categories=[["east", "west"]])


@table("searched", [False, True])
def test_an_encoder_has_the_target_bounds_that_the_model_states(searched):
    """Targets were clipped to (-1, 1) behind a warning; what the encoder states itself stays."""
    columns = make_private_column_transformer((TOWN_ENCODER, [0]))
    piped = make_private_pipeline(columns, DPRidgeSkGD(**TARGET), epsilon=20.0, delta=1e-5)
    if searched:  # behind steps that are fitted once
        grid = {"dpridgeskgd__alpha": [1.0, 1e3], "dpridgeskgd__solver": ["skgd", "newton"]}
        search = PrivateSearchCV(clone(piped).set_params(epsilon=1.0, delta="auto"), grid)
        piped = search.set_params(epsilon=20.0, delta=1e-5).fit(TOWNS, Y).best_estimator_
    else:
        piped.fit(TOWNS, Y)
        assert piped.privacy_event_ == piped.planned_event(N, TOWNS)
        assert piped.told_["dpridgeskgd"]["feature_bounds"] == (-50.0, 50.0)
    means = [Y[(TOWNS == name).ravel()].mean() for name in ("east", "west")]
    (encoded,) = piped[0].named_transformers_["dptargetencoder"].encodings_
    assert encoded[:2].ravel() == pytest.approx(means, abs=1.5)
    assert clone(piped)[0].transformers[0][1].target_bounds is None

    stated = clone(TOWN_ENCODER).set_params(target_bounds=(-2, 2))
    fitted = make_private_pipeline(stated, DPRidgeSkGD(**TARGET), epsilon=20.0).fit(TOWNS, Y)
    assert np.abs(fitted[0].encodings_[0]).max() <= 2


def test_a_winner_behind_shared_steps_keeps_the_facts_that_its_candidate_states():
    grid = {"dpridgeskgd__feature_bounds": [(-1.0, 1.0), (-0.5, 0.5)]}
    search = PrivateSearchCV(pipeline(), grid, epsilon=20.0, delta=1e-5).fit(X, Y)
    stated = search.best_params_["dpridgeskgd__feature_bounds"]
    assert search.best_estimator_[-1].feature_bounds == stated


def test_bounds_of_a_rate_are_no_bounds_of_the_target_of_an_encoder():
    model = make_private_pipeline(
        TOWN_ENCODER, DPPoissonRegressor(target_bounds=(0, 0.01)), epsilon=20.0, delta=1e-5
    )
    counts = (Y > 0).astype(float)
    with pytest.warns(UnknownScaleWarning, match="State target_bounds"):
        model.fit(TOWNS, counts, dppoissonregressor__offset=np.full(N, math.log(1e3)))
    assert model[0].encodings_[0][1, 0] > 0.5


def test_columns_that_are_passed_on_keep_what_is_public_of_them():
    bounds = BoundsScaler(([0.0, -1.0, 0.0], [1.0, 1.0, 1e5]), with_centering=False)

    def selected(*parts, before=bounds, **params):
        parts = [(str(i), *part) for i, part in enumerate(parts)]
        return told(before, ColumnTransformer(parts, sparse_threshold=0, **params))

    unit = {"feature_bounds": (0.0, 1.0)}
    for columns in ([0, 2], slice(0, 3, 2), [True, False, True], np.array([2, 0])):
        assert selected(("passthrough", columns)) == unit
    lo, hi = selected(("passthrough", [1]), remainder="passthrough")["feature_bounds"]
    assert [*lo] == [-1.0, 0.0, 0.0] and [*hi] == [1.0, 1.0, 1.0]
    scaled = {"feature_bounds": (-1.0, 1.0), "feature_scale": 1.0}
    assert selected(("passthrough", [0, 1]), before=DPStandardScaler()) == scaled
    assert selected(("passthrough", [0]), (FunctionTransformer(np.exp), [1])) == {}
    products = selected(("passthrough", [0]), (PolynomialFeatures(2), [0, 2]))
    assert products["feature_bounds"][1][0] == 1.0
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    by_name = ColumnTransformer([("kept", "passthrough", ["c", "a"])], sparse_threshold=0)
    assert told(bounds.set_output(transform="pandas"), by_name, records=frame) == unit


def test_what_a_step_states_itself_stays():
    model = make_private_pipeline(
        BoundsScaler((-1e5, 1e5)), DPRidgeSkGD(feature_bounds=(-0.5, 0.5), **TARGET)
    ).fit(X, Y)
    assert model.told_ == {}
    assert np.all(model[1].feature_bounds_[1] == 0.5)


# ---- mixed tables -------------------------------------------------------------------------------


FRAME = pd.DataFrame(
    {
        "age": np.where(np.arange(N) % 9, X[:, 0], np.nan),
        "pay": X[:, 1],
        "town": np.where(np.arange(N) % 2, "north", "south"),
    }
)
WORDS = OneHotEncoder(categories=[["north", "south"]], handle_unknown="ignore", sparse_output=False)
FILL = SimpleImputer(strategy="constant", fill_value=30.0, keep_empty_features=True)


def columns(numbers):
    filled = make_pipeline(clone(FILL), numbers).set_output(transform="pandas")
    table = [("numbers", filled, ["age", "pay"]), ("words", clone(WORDS), ["town"])]
    return ColumnTransformer(table)


def test_a_mixed_table_with_bounds_by_name_tells_the_model_the_bounds_of_every_column():
    scaler = BoundsScaler({"age": (0, 100), "pay": (0, 30_000)})
    accountant = ledger()
    model = make_private_pipeline(
        columns(scaler), DPRidgeSkGD(**TARGET), accountant=accountant, delta=1e-5
    ).fit(FRAME, Y)
    lo, hi = model.told_["dpridgeskgd"]["feature_bounds"]
    np.testing.assert_array_equal(lo, [-1, -1, 0, 0])
    np.testing.assert_array_equal(hi, [1, 1, 1, 1])
    assert model.planned_event(N, FRAME.head(1)) == model.privacy_event_
    assert ledger().cost(model, N, FRAME.head(1)).amount == accountant.entries()[0].amount
    unseen = FRAME.assign(town="elsewhere", age=1e9)
    assert np.isfinite(model.predict(unseen)).all()


def test_private_steps_for_some_columns_share_the_budget_too():
    accountant = ledger()
    model = make_private_pipeline(
        columns(DPStandardScaler()), DPRidgeSkGD(**TARGET), accountant=accountant, delta=1e-5
    ).fit(FRAME, Y)
    name = "columntransformer__numbers__dpstandardscaler"
    assert model.shares_ == pytest.approx({name: 0.3, "dpridgeskgd": 0.7})  # so few records
    many = model._planner(10**5, FRAME.head(1))(model._budget(10**5))
    assert many.shares == pytest.approx({name: 0.1, "dpridgeskgd": 0.9})
    (entry,) = accountant.entries()
    fitted = model[0].named_transformers_["numbers"][-1]
    assert joined([fitted.privacy_event_, model[-1].privacy_event_]) == model.privacy_event_
    assert fitted.privacy_event_.releases[0].count == 4 * 2
    assert epsilon_of(model.privacy_event_, 1e-5) <= 1.0
    assert model.get_params()[f"{name}__epsilon"] == 0.2  # as it was
    told = model.told_["dpridgeskgd"]
    assert np.all(told["feature_bounds"][0] == [-1, -1, 0, 0]) and told["feature_scale"] == 1.0
    # of two numbers and the indicators of one column
    assert told["row_norm_bound"] == pytest.approx(3**0.5)
    longest = np.linalg.norm(model[:-1].transform(FRAME.assign(age=1e9)), axis=1).max()
    assert longest == pytest.approx(told["row_norm_bound"])
    half = clone(model).set_params(shares={name: 1.0, "dpridgeskgd": 1.0})
    assert half.fit(FRAME, Y).shares_[name] == 0.5


@pytest.mark.parametrize(
    ("step", "match"),
    [
        (columns(DPStandardScaler(epsilon=0.1)), "states epsilon"),
        (columns(StandardScaler()), "BoundsScaler"),
        (ColumnTransformer([("a", WORDS, lambda X: ["town"])]), "names or positions"),
        (columns(BoundsScaler((0, 1))).set_params(words__sparse_output=True), "sparse_threshold=0"),
        (SelectFromModel(DPLassoCD()), "may be in ColumnTransformer"),
        (FeatureUnion([("a", DPStandardScaler())], n_jobs=2), "leave n_jobs=None"),
        (FeatureUnion([("a", Pipeline([("m", DPLassoCD())]))]), "the last step"),
    ],
)
def test_what_is_within_a_step_is_looked_at(step, match):
    with pytest.raises(ValueError, match=match):
        make_private_pipeline(step, DPRidgeSkGD(**TARGET)).fit(FRAME, Y)


# ---- budgets in flight --------------------------------------------------------------------------


@pytest.mark.parametrize("share", ["pipeline", "steps"])
def test_fifty_threads_fit_one_pipeline_or_steps_that_are_shared_and_each_is_charged(share):
    accountant = ledger(500.0)
    steps = DPStandardScaler(), DPRidgeSkGD(**TARGET)
    before = repr(steps), [step.get_params() for step in steps]
    made = [make_private_pipeline(*steps, accountant=accountant, delta=1e-9) for _ in range(50)]
    models = made if share == "steps" else made[:1] * 50
    assert not at_once(*[functools.partial(model.fit, X, Y) for model in models])
    assert len(accountant.entries()) == 50
    assert (repr(steps), [step.get_params() for step in steps]) == before
    assert not any(hasattr(step, "privacy_event_") for step in steps)
    for model in models:
        assert joined([step.privacy_event_ for _, step in model.steps]) == model.privacy_event_
        assert model[1].accountant is None and model[1].epsilon == 1.0


class ChargesNobody(DPRidgeSkGD):
    """A mutant that is fitted without its charge."""

    def fit(self, X, y):
        self.set_params(accountant=None)
        return super().fit(X, y)


def test_a_part_that_was_planned_and_not_released_is_no_fit():
    accountant = ledger()
    model = make_private_pipeline(DPStandardScaler(), ChargesNobody(**TARGET))
    with pytest.raises(RuntimeError, match="never released"):
        model.set_params(accountant=accountant).fit(X, Y)
    assert len(accountant.entries()) == 1
    assert not hasattr(model[0], "center_") and not hasattr(model, "privacy_event_")


@table(
    "steps",
    [
        (BoundsScaler((0, 1e5), copy=False), DPRidgeSkGD(**TARGET)),
        (RowNormClipper(1.0, copy=False), DPStandardScaler(), DPRidgeSkGD(**TARGET)),
        (FunctionTransformer(lambda Z: np.add(Z, 1.0, out=Z)), DPStandardScaler()),
    ],
)
def test_plans_and_rehearsals_map_copies_of_the_records(steps):
    given = X.copy()
    model = make_private_pipeline(*steps)
    model.set_params(public_steps=[n for n, _ in model.steps if n == "functiontransformer"])
    model.planned_event(N, given)
    if isinstance(steps[-1], DPRidgeSkGD):
        ledger().cost(make_pipeline(*map(clone, steps)), N, given)
    np.testing.assert_array_equal(given, X)
    once = steps[0].fit(X).transform(X.copy())
    model.fit(given, Y)  # in place, as it was asked to, and once
    np.testing.assert_array_equal(given, once)


def one_hot(*categories):
    return OneHotEncoder(categories=[categories], sparse_output=False, handle_unknown="error")


UNSORTED = {"categories": [[2, 1]], "handle_unknown": "use_encoded_value", "unknown_value": -1}


@table(
    ("step", "cell"),
    [
        (FunctionTransformer(np.reciprocal), 2.0),  # which is 0 of the integer 2
        (OrdinalEncoder(**UNSORTED), "x"),  # scikit-learn refuses it of numbers
        (clone(WORDS), "x"),
        (make_pipeline(clone(FILL).set_params(fill_value="x"), OrdinalEncoder(**UNSORTED)), None),
    ],
)
def test_no_cell_of_a_list_decides_how_a_public_step_reads_the_others(step, cell):
    mapped, rows = [], [[1 + i % 2] for i in range(N)]
    spy = FunctionTransformer(lambda Z: mapped.append(Z.tolist()) or np.zeros(Z.shape))
    for changed in (rows[7], [cell]):
        steps = [("step", step), ("spy", spy), ("model", DPRidgeSkGD(**TARGET))]
        PrivatePipeline(steps, public_steps=["spy"]).fit([*rows[:7], changed, *rows[8:]], Y)
    assert [i for i in range(N) if i != 7 and mapped[0][i] != mapped[-1][i]] == []


@table("container", [list, np.array])
def test_answers_read_tables_as_the_fit_did(container):
    """Lists are read as objects, and scikit-learn's encoder compares no numbers with these."""
    rows = [[i % 3] for i in range(N)]
    encoder = OneHotEncoder(categories=[[0, 1, 2]])
    model = make_private_pipeline(encoder, DPLinearRegressor(**TARGET), epsilon=5.0).fit(rows, Y)
    expected = model[-1].predict(np.eye(3)[np.arange(N) % 3])
    np.testing.assert_array_equal(model.predict(container(rows)), expected)
    assert model.score(container(rows), Y) == model[-1].score(np.eye(3)[np.arange(N) % 3], Y)


@pytest.mark.filterwarnings("ignore:400 records", "ignore:n=400")  # of the smaller ε
@table("outer", [lambda step: step, lambda step: ColumnTransformer([("all", step, [0])])])
@table("container", [pd.DataFrame, list])
@table("missing", [[], [0, 77]])
@table(
    ("output", "following", "present", "fill"),
    [
        ("default", one_hot("north", "south"), ("north", "south"), "north"),
        ("pandas", one_hot(1.0, 2.0), (1.0, 2.0), 1.0),
        ("default", DPStandardScaler(), ("1", "2"), "1"),
    ],
)
def test_missing_cells_decide_no_exception(
    output, following, present, fill, missing, container, outer
):
    """Even where nothing is frequent, so that the constant fills missing cells."""
    imputer = DPSimpleImputer("most_frequent").set_output(transform=output)
    cells = [[None if i in missing else present[i % 2]] for i in range(N)]
    given = container(cells)
    for epsilon in (5.0, 0.01):
        accountant = ledger(50.0)
        model = make_private_pipeline(
            outer(clone(imputer)),
            clone(following),
            DPLinearClassifier(classes=["no", "yes"]),
            epsilon=epsilon,
            accountant=accountant,
        )
        with pytest.raises(ValueError, match="fills with .* where .* state a fill_value"):
            model.fit(given, LABELS)
        assert not accountant.entries()
        stated = outer(clone(imputer).set_params(fill_value=fill))
        model.set_params(steps=[(model.steps[0][0], stated), *model.steps[1:]])
        model.fit(given, LABELS)
        assert len(accountant.entries()) == 1
    assert pd.DataFrame(given).equals(pd.DataFrame(container(cells)))  # no fill is written into it
