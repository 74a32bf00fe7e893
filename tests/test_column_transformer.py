"""Private steps side by side: one budget, one entry, a public layout, bounds that are told on."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import DPColumnTransformer, make_private_column_transformer
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
    RowNormClipper,
)
from dpcd_sklearn.privacy.accounting import FitEvent, epsilon_of
from dpcd_sklearn.testing import ReproducibleNoise

N = 5000
DELTA = 1e-6


@pytest.fixture(name="frame")
def mixed_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": rng.choice(["Lille", "Roubaix", None], N),
            "rooms": rng.choice([1.0, 2.0, np.nan], N),
            "rent": rng.normal(700.0, 90.0, N),
        }
    )
    frame.loc[rng.random(N) < 0.2, "rent"] = np.nan
    return frame


@pytest.fixture(name="y")
def target(frame):
    return (frame["town"] == "Lille").astype(int)


def columns(**options):
    return make_private_column_transformer(
        (make_pipeline(DPSimpleImputer(), DPStandardScaler()), ["rent"]),
        (DPOneHotEncoder(max_categories=4), ["town", "rooms"]),
        **options,
    )


NAMES = ["pipeline__dpsimpleimputer", "pipeline__dpstandardscaler", "dponehotencoder"]


def test_the_result_is_dense_named_and_of_public_width(frame):
    transformer = columns(epsilon=5.0, delta=DELTA).fit(frame)
    Z = transformer.transform(frame)
    names = transformer.get_feature_names_out()
    assert isinstance(Z, np.ndarray) and Z.shape == (N, 9) == (N, len(names))
    assert names[0] == "rent" and {"town_Lille", "rooms_1", "rooms_nan"} <= set(names)
    as_frame = columns(epsilon=5.0, delta=DELTA).set_output(transform="pandas").fit_transform(frame)
    assert as_frame.shape == (N, 9) and "town_Lille" in as_frame
    sparse = make_private_column_transformer((DPOneHotEncoder(sparse_output=True), ["town"]))
    assert isinstance(sparse.fit_transform(frame), np.ndarray)
    same = frame.assign(town="Lille", rooms=1.0)
    assert columns(epsilon=5.0, delta=DELTA).fit_transform(same).shape == (N, 9)


def test_shares_divide_its_budget(frame):
    shares = dict(zip(NAMES, (1.0, 1.0, 6.0), strict=True))
    transformer = columns(epsilon=1.0, delta=DELTA, shares=shares).fit(frame)
    assert transformer.shares_["dponehotencoder"] == 0.75
    (covered,) = (r for r in transformer.privacy_event_.releases if type(r).__name__[0] == "C")
    less = columns(epsilon=1.0, delta=DELTA).planned_event(N, frame[:2])
    (other,) = (r for r in less.releases if type(r).__name__[0] == "C")
    assert covered.noise_multiplier < other.noise_multiplier
    for wrong in ({"dponehotencoder": 1.0}, {**shares, "other": 1.0}):
        with pytest.raises(ValueError, match="shares"):
            columns(shares=wrong).fit(frame)


def test_it_works_within_a_column_transformer_and_searches_reach_its_steps(frame, y):
    outer = ColumnTransformer([("all", columns(), list(frame))], sparse_threshold=0)
    pipeline = make_private_pipeline(outer, DPLinearClassifier(classes=[0, 1]), epsilon=1.0)
    assert pipeline.fit(frame, y).score(frame, y) > 0.9
    transformer = columns().set_params(dponehotencoder__max_categories=3)
    assert transformer.fit(frame).transform(frame).shape == (N, 7)
    seeded = transformer.set_params(dponehotencoder__random_state=ReproducibleNoise(0))
    with pytest.warns(match="makes the noise of this fit known"):  # of the last part alone
        seeded.fit(frame)


def test_what_is_told_all_is_free_and_tells_bounds(frame, y, uncharged):
    transformer = make_private_column_transformer(
        (DPOneHotEncoder([["Lille", "Roubaix"]]), ["town"]),
        (DPSimpleImputer("constant", feature_bounds=(0, 9)), ["rooms"]),
        accountant=uncharged,
    )
    assert transformer.charges_nothing
    assert transformer.planned_event(N, frame[:2]) == FitEvent(())
    transformer.fit(frame)
    assert transformer.privacy_spent_ == (0.0, 0.0)
    pipeline = make_private_pipeline(
        transformer.set_params(accountant=None), DPLinearClassifier(classes=[0, 1])
    ).fit(frame, y)
    assert pipeline.shares_ == {"dplinearclassifier": 1.0}
    assert pipeline.told_["dplinearclassifier"]["feature_bounds"][1].tolist() == [1, 1, 1, 9]


@pytest.mark.parametrize("step", [StandardScaler(), OneHotEncoder()])
def test_steps_that_learn_for_free_are_refused_before_the_charge(frame, y, step, uncharged):
    beside = (step, ["rooms"])
    private = (DPOneHotEncoder(), ["town"])
    free = (DPOneHotEncoder([["Lille"]]), ["town"])
    for first in (private, free):
        transformer = make_private_column_transformer(first, beside, accountant=uncharged)
        with pytest.raises(ValueError, match="learn"):
            transformer.fit(frame)
        assert find_leaks(transformer)[0].severity == "void"
        transformer.set_params(accountant=None)
        with pytest.raises(ValueError, match="learn"):
            make_private_pipeline(
                transformer, DPLinearClassifier(classes=[0, 1]), accountant=uncharged
            ).fit(frame, y)


def test_columns_by_a_function_of_the_records_are_refused(frame, y):
    for step in (DPOneHotEncoder(), DPOneHotEncoder([["Lille"], [1.0, 2.0], [0.0]])):
        transformer = make_private_column_transformer((step, lambda X: list(X)[len(X) > 9 :]))
        for model in (transformer, make_private_pipeline(transformer, DPLinearClassifier())):
            with pytest.raises(ValueError, match="function chooses columns"):
                model.fit(frame, y)


def test_steps_with_budgets_of_their_own_are_refused(frame):
    with pytest.raises(ValueError, match="states epsilon"):
        make_private_column_transformer((DPOneHotEncoder(epsilon=1.0), ["town"])).fit(frame)


def test_what_a_later_column_refuses_is_refused_before_the_charge(frame, uncharged):
    frame["rent"] = frame["rent"].astype(object)
    frame.loc[N - 1, "rent"] = "secret"
    transformer = make_private_column_transformer(
        (DPOneHotEncoder(), ["town"]), (DPSimpleImputer(), ["rent"]), accountant=uncharged
    )
    with pytest.raises(ValueError, match="numbers") as raised:
        transformer.fit(frame)
    assert "secret" not in str(raised.value)


def test_bounds_of_all_kinds_of_steps_are_told(frame, y):
    transformer = make_private_column_transformer(
        (DPOrdinalEncoder(max_categories=5), ["town"]),
        (DPOrdinalEncoder([["Lille", "Roubaix"]]), ["town"]),
        (DPSimpleImputer(feature_bounds=(0, 9), add_indicator=True), ["rooms"]),
        (make_pipeline(DPSimpleImputer(), BoundsScaler((0, 2000))), ["rent"]),
    )
    pipeline = make_private_pipeline(transformer, DPLinearClassifier(classes=[0, 1]), epsilon=1.0)
    lo, hi = pipeline.fit(frame, y).told_["dplinearclassifier"]["feature_bounds"]
    assert lo.tolist() == [0, 0, 0, 0, -1] and hi.tolist() == [4, 2, 9, 1, 1]


def test_without_noise_it_is_the_column_transformer_of_scikit_learn(frame):
    ours = columns(epsilon=math.inf)
    parts = [(name, clone(step).set_params(**_noiseless(step)), where)
             for name, step, where in ours.transformers]  # fmt: skip
    theirs = ColumnTransformer(parts, sparse_threshold=0).fit_transform(frame)
    np.testing.assert_array_equal(ours.fit_transform(frame), theirs)


def _noiseless(step):
    return {name: math.inf for name in step.get_params() if name.rpartition("__")[2] == "epsilon"}


def test_a_private_search_tries_its_steps_and_a_private_score_takes_its_frames(frame, y):
    model = DPLinearClassifier(classes=[0, 1])
    grid = {
        "dplinearclassifier__alpha": [1e-4, 1e-3],
        "dpcolumntransformer__dponehotencoder__max_categories": [3, 4],
    }
    accountant = PrivacyAccountant(4.0, DELTA)
    search = PrivateSearchCV(
        make_private_pipeline(columns(), model),
        grid, epsilon=4.0, delta=DELTA, n_iter=3, accountant=accountant,
    ).fit(frame, y)  # fmt: skip
    assert len(accountant.entries()) == 1
    assert set(search.best_params_) == set(grid) and search.best_score_ > 0.8
    score = make_private_scorer("accuracy", epsilon=2.0, delta=DELTA)
    assert score(search.best_estimator_, frame, y) > 0.8
    only_rooms = make_private_column_transformer((DPSimpleImputer(), ["rooms"]))
    numbers = make_private_pipeline(only_rooms, model).fit(frame[["rooms"]], y)
    with pytest.raises(ValueError, match="no number"):
        score(numbers, frame[["town"]].rename(columns={"town": "rooms"}), y)


SCALED = BoundsScaler((-1, 1))


@table("kind", [DPColumnTransformer, partial(ColumnTransformer, sparse_threshold=0)])
@table(
    ("transformers", "remainder", "n_left"),
    [
        ([("a", DPStandardScaler(), []), ("b", SCALED, [0, 1])], "drop", 2),
        ([("a", DPStandardScaler(), [False, False])], "passthrough", 2),
        ([("a", "drop", [0])], "passthrough", 1),
        ([], "passthrough", 2),
        ([("a", "drop", [0, 1])], "drop", 0),
        ([("a", DPStandardScaler(), [])], "drop", 0),
        ([], "drop", 0),
    ],
)
def test_no_columns_all_dropped_and_no_transformers_are_taken_as_scikit_learn_takes_them(
    kind, transformers, remainder, n_left
):
    X = np.random.default_rng(0).uniform(-1, 1, (N, 2))
    accountant = PrivacyAccountant(2.0, DELTA)
    columns = kind(transformers, remainder=remainder)
    assert clone(columns).fit(X).transform(X).shape == (N, n_left)
    model = make_private_pipeline(
        columns, DPLinearClassifier(classes=[0, 1]), epsilon=1.0, accountant=accountant
    )
    if n_left:
        model.fit(X, X[:, 1] > 0)
        assert sum(model.shares_.values()) == pytest.approx(1.0)
        assert epsilon_of(model.privacy_event_, model.privacy_spent_.delta) > 0.999
    else:
        with pytest.raises(ValueError, match="leaves no column"):
            model.fit(X, X[:, 1] > 0)
    assert len(accountant.entries()) == (n_left > 0)


@table("container", [np.asarray, list, pd.DataFrame])
@table(
    ("step", "match"),
    [
        (DPStandardScaler(), "X has no columns|0 feature.*required by DPStandardScaler"),
        (BoundsScaler((0, 1)), "X has no columns|required by BoundsScaler"),
    ],
)
def test_an_empty_slice_is_refused_by_its_cause(container, step, match):
    columns = DPColumnTransformer([("none", step, slice(0, 0))], remainder="passthrough")
    X = container([[0.0, 1.0], [1.0, 0.0]])
    for model in (columns, make_private_pipeline(columns, DPLinearClassifier(classes=[0, 1]))):
        with pytest.raises(ValueError, match=match):  # scikit-learn refuses it as well
            model.fit(X, [0, 1])
    assert make_private_column_transformer(remainder="passthrough").fit(X).transform(X).shape


WORDS = pd.DataFrame({"a": ["u", "v"] * 4, "b": 1.0})


@table(
    ("step", "X", "match"),
    [
        (DPStandardScaler(), WORDS, r"(?s)'a' \(.*        DPStandardScaler\(\),"),
        (DPStandardScaler(), np.ones((8, 0)), "0 feature.* a minimum of 1 is required"),
        (DPSimpleImputer(), [[1, 2], [3]] * 4, "rows of several lengths"),
        (DPOneHotEncoder(), csr_array(np.ones((8, 2))), r"pass X\.toarray\(\)"),
        (DPRobustScaler(), WORDS.set_axis(["a", "a"], axis=1), "names .'a'.: rename"),
    ],
)
def test_what_is_planned_refuses_by_the_name_of_the_step_and_quotes_no_cell(step, X, match):
    columns = DPColumnTransformer([("step", step, slice(None))])
    for first in (step, columns):
        with pytest.raises((TypeError, ValueError), match=match) as refused:
            make_private_pipeline(first, DPLinearClassifier(classes=[0, 1])).fit(X, [0, 1] * 4)
        assert "StandIn" not in str(refused.value) and "[1, 2]" not in str(refused.value)


def plain_cases(frame):
    """Pipelines with a scikit-learn twin, and the target of each."""
    filled = frame.fillna({"rooms": 0.0, "rent": 700.0})
    number = filled["rooms"] + (frame["town"] == "Lille") + filled["rent"] / 90
    of_three = np.array(["a", "b", "c"])[np.digitize(number, [8.5, 9.5])]
    stated = {"target_bounds": (5, 12)}
    yield from (
        (DPLinearRegressor(**stated), number),
        (DPRidgeSkGD(fit_intercept=False, **stated), number),
        (DPLassoCD(alpha=0.01), number),
        (DPLogisticGCD(classes=["a", "b"]), np.where(number < 9, "a", "b")),
        (DPLinearClassifier(classes=["a", "b", "c"]), of_three),
    )


@table("drop, handle_unknown", [(None, "infrequent"), ("first", "ignore")])
def test_as_scikit_learn_s_own_steps_it_predicts_alike(frame, drop, handle_unknown):
    """Unknown and missing categories, numbers outside of all bounds; up to rounding."""
    encoder = DPOneHotEncoder(max_categories=4, drop=drop, handle_unknown=handle_unknown)
    fill = DPSimpleImputer(feature_bounds=(400, 1000))
    parts = make_private_column_transformer(
        (make_pipeline(fill, DPStandardScaler()), ["rent"]),
        (encoder, ["town", "rooms"]),
        (BoundsScaler((0, 1)), ["area"]),
    )
    frame["area"] = np.random.default_rng(1).uniform(size=N)
    far = frame.head(300).copy()
    far.loc[:60, "town"], far.loc[40:90, "rooms"], far.loc[80:120, "rent"] = "Paris", 7.0, 1e6
    far.loc[100:140, "area"] = -3.0
    for model, y in plain_cases(frame):
        pipeline = make_private_pipeline(parts, model, epsilon=8.0).fit(frame, y)
        method = "decision_function" if hasattr(model, "classes") else "predict"
        expected = getattr(pipeline, method)(far)
        plain = pipeline.to_sklearn()
        np.testing.assert_allclose(getattr(plain, method)(far), expected, atol=1e-9)
        assert isinstance(plain, Pipeline) and isinstance(plain[0], ColumnTransformer)
        free = pipeline.to_sklearn(clip=False)
        modules = {type(step).__module__.split(".")[0] for step in (free[0], free[-1])}
        modules |= {type(step).__module__.split(".")[0] for _, step, _ in free[0].transformers_}
        assert modules == {"sklearn"}
        moved = np.abs(getattr(free, method)(far) - expected).max(axis=0)
        assert (moved <= pipeline.clip_reach() + 1e-9).all() and np.all(pipeline.clip_reach() < 50)


def test_what_has_no_twin_in_scikit_learn_is_named(frame, y):
    numbers = frame[["rent"]].fillna(700.0)
    model = DPLinearClassifier(classes=[0, 1])
    for step, error, match in (
        (RowNormClipper(1.0), TypeError, "'rownormclipper', a RowNormClipper, has no plain"),
        (BoundsScaler((0, 900), with_centering=False), ValueError, "with_centering=False"),
    ):
        pipeline = make_private_pipeline(step, model, epsilon=3.0).fit(numbers, y)
        with pytest.raises(error, match=match):
            pipeline.to_sklearn()
    for method in ("to_sklearn", "clip_reach"):
        with pytest.raises(NotFittedError):
            getattr(make_private_pipeline(BoundsScaler((0, 900)), model), method)()


def test_how_far_a_prediction_may_move_without_clips_is_reached_at_the_bounds():
    """By what features are cut to, and by the bounds of the target; no record is asked."""
    model = DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-1, 1))
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.1, 0.1, (4000, 2))
    model.fit(X, (5 * X[:, 0] - 5 * X[:, 1]).clip(-1, 1))
    corners = np.array([[a, b] for a in (-1, 1) for b in (-1, 1)], dtype=float)
    moved = model.to_sklearn(clip=False).predict(corners) - model.predict(corners)
    assert 0.95 * model.clip_reach() < np.abs(moved).max() <= model.clip_reach() * (1 + 1e-9)
    assert model.clip_reach((-2, 2)) > model.clip_reach() > 1
    assert model.clip_reach((-0.01, 0.01)) == 0
    with pytest.raises(ValueError, match="feature_bounds"):
        model.clip_reach((1, -1))
    assert DPLinearRegressor(epsilon=math.inf).fit(X, X[:, 0]).clip_reach() == math.inf
