"""Private encoders of categories and of their targets: what they put out, and what is charged."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.exceptions import UnknownScaleWarning
from dpcd_sklearn.inspection import CoefficientDisplay, PrivacyReport
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPStandardScaler,
    DPTargetEncoder,
)
from dpcd_sklearn.privacy.accounting import FitEvent

N = 6000


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], N),
            "size": rng.choice([1.0, 2.5, np.nan], N),
            "grade": pd.Categorical(rng.choice(["a", "b"], N)),
        }
    )


def test_without_noise_it_is_scikit_learns(frame):
    ours = DPOneHotEncoder(epsilon=math.inf, max_categories=3, handle_unknown="ignore")
    theirs = OneHotEncoder(sparse_output=False)
    Z = ours.fit_transform(frame)
    names = ours.get_feature_names_out()
    assert [str(n) for n in names[:6]] == [
        "colour_blue", "colour_green", "colour_red", "size_1", "size_2.5", "size_nan",
    ]  # fmt: skip
    np.testing.assert_array_equal(Z[:, :8], theirs.fit_transform(frame))
    assert names[8] == "grade_unused0" and not Z[:, 8].any()
    numbers = DPOrdinalEncoder(epsilon=math.inf).fit_transform(frame[["colour", "grade"]])
    expected = OrdinalEncoder().fit_transform(frame[["colour", "grade"]])
    np.testing.assert_array_equal(numbers, expected)


@table("drop", [None, "first"])
@table("how", ["infrequent", "ignore"])
@table("sparse", [False, True])
def test_what_is_dropped_and_found_again_is_scikit_learns(frame, drop, how, sparse):
    cells = frame.assign(size=frame["size"].fillna(0.5))
    options = {"drop": drop, "handle_unknown": how, "sparse_output": sparse}
    ours = DPOneHotEncoder(epsilon=math.inf, max_categories=5, **options).fit(cells)
    theirs = OneHotEncoder(drop=drop, sparse_output=False).fit(cells)
    Z, unused = ours.transform(cells), ours.is_unused_
    dense = Z.toarray() if sparse else Z
    names = ours.get_feature_names_out()
    is_theirs = ~unused & [not name.endswith("infrequent") for name in names]
    np.testing.assert_array_equal(dense[:, is_theirs], theirs.transform(cells))
    assert list(names[is_theirs]) == [
        name.removesuffix(".0") for name in theirs.get_feature_names_out()
    ]
    assert not dense[:, ~is_theirs].any() and all("unused" in name for name in names[unused])
    assert len(names) == 3 * (5 - (drop == "first"))
    np.testing.assert_array_equal(
        ours.inverse_transform(Z), theirs.inverse_transform(dense[:, is_theirs])
    )
    found = ours.inverse_transform(ours.transform([["violet", 1.0, "a"]]))[0]
    others = {"infrequent": "infrequent", "ignore": "blue" if drop else None}
    assert found.tolist() == [others[how], 1.0, "a"]
    with pytest.raises(ValueError, match="columns, but"):
        ours.inverse_transform(dense[:, :-1])


def test_a_feature_of_which_no_category_is_found_drops_the_column_of_all_others():
    encoder = DPOneHotEncoder(epsilon=0.01, max_categories=4, drop="first")
    with pytest.warns(UserWarning, match="only categories of more than"):
        Z = encoder.fit_transform(np.array([["a"], ["b"]] * 50))
    assert Z.shape == (100, 3) and not Z.any() and encoder.is_unused_.all()
    assert encoder.inverse_transform(Z)[0, 0] == "infrequent"


@table("drop", [None, "first"])
@table("share, has_records", [(0.0, False), (0.01, True)])
def test_a_column_of_infrequent_categories_without_records_has_no_coefficient(
    drop, share, has_records
):
    """Released counts tell it; the noise of such a coefficient was as large as the others are."""
    rng = np.random.default_rng(0)
    level = np.where(rng.random(20_000) < share, rng.integers(100, 130, 20_000), 0)
    level = np.where(level > 0, level, rng.integers(0, 4, 20_000)).astype(str).astype(object)
    encoder = DPOneHotEncoder(drop=drop)
    model = make_private_pipeline(encoder, DPLinearRegressor(target_bounds=(-1, 1)), epsilon=3.0)
    model.fit(level[:, None], rng.uniform(-1, 1, len(level)))
    names = model[0].get_feature_names_out()
    at = list(names).index("x0_infrequent")
    assert (model[-1].coef_[at] != 0) == has_records and not model[0].is_unused_[at]
    assert (model[-1].coef_[:at] != 0).sum() >= 3


@table(("library", "kind"), [("polars", "DataFrame"), ("pyarrow", "table")])
def test_tables_of_other_libraries_are_read_as_frames(library, kind, frame):
    other = getattr(pytest.importorskip(library), kind)(frame.to_dict("list"))
    encoder = DPOneHotEncoder(epsilon=5.0).fit(other)
    np.testing.assert_array_equal(encoder.transform(other), encoder.transform(frame))


@table("cells", [["infrequent", "b"], [1, "1"], ["unused0", "c"], ["", "_"]])
@table("library", ["pandas", "polars"])
def test_names_of_columns_are_there_once_whatever_is_released(cells, library):
    pytest.importorskip(library)
    X = np.array(cells * 2000, dtype=object)[:, None]
    encoder = DPOneHotEncoder(epsilon=1.0, max_categories=5).set_output(transform=library)
    assert len(set(encoder.fit_transform(X).columns)) == 5


def test_unknown_and_rare_categories_are_infrequent(frame):
    frame.loc[7, "colour"] = "one of a kind"
    for how in ("infrequent", "ignore"):
        encoder = DPOneHotEncoder(epsilon=5.0, handle_unknown=how).fit(frame)
        Z = encoder.transform(frame.iloc[[7]].assign(grade="never seen"))[0]
        names = encoder.get_feature_names_out()[Z > 0]
        expected = {"colour_infrequent", "grade_infrequent"} if how == "infrequent" else set()
        assert {n for n in names if not n.startswith("size")} == expected
    codes = DPOrdinalEncoder(epsilon=5.0).fit(frame).transform(frame.iloc[[7]])[0]
    assert codes[0] == 3  # after blue, green, red


def test_stated_categories_are_free_and_others_are_not(frame):
    accountant = PrivacyAccountant(1.0, 1e-6)
    stated = [["red", "green"], [1, 2.5, None], ["a", "b", "c"]]
    for kind in (DPOneHotEncoder, DPOrdinalEncoder):
        encoder = kind(stated, accountant=accountant).fit(frame)
        assert encoder.charges_nothing and accountant.entries() == []
        assert encoder.privacy_spent_ == (0.0, 0.0) and encoder.threshold_ is None
        assert encoder.planned_event(N, 3) == FitEvent(()) == encoder.privacy_event_
        assert encoder.transform(frame).shape == (N, 11 if kind is DPOneHotEncoder else 3)
    of_all = DPOneHotEncoder(dict(zip(frame, stated, strict=True)), accountant=accountant)
    of_all.fit(frame)
    assert accountant.entries() == []
    some = DPOneHotEncoder({"size": stated[1]}, accountant=accountant).fit(frame)
    assert not some.charges_nothing and len(accountant.entries()) == 1
    assert [str(c) for c in some.categories_[1]] == ["1", "2.5", "nan"]
    alike = DPOneHotEncoder(["auto", stated[1], "auto"]).fit(frame)
    assert alike.threshold_ == some.threshold_
    assert alike.threshold_ < DPOneHotEncoder().fit(frame).threshold_  # of fewer columns


def test_the_most_frequent_are_kept(frame):
    frame["colour"] = np.repeat(["red", "green", "blue", "grey"], [3000, 1500, 900, 600])
    encoder = DPOneHotEncoder(epsilon=5.0, max_categories=3).fit(frame)
    assert encoder.categories_[0].tolist() == ["green", "red"]
    assert np.abs(encoder.category_counts_[0] - [1500, 3000]).max() < 100
    for least in (1000, 1000 / N):
        encoder = DPOneHotEncoder(epsilon=5.0, min_frequency=least).fit(frame)
        assert encoder.categories_[0].tolist() == ["green", "red"]


# ---- what does not leak --------------------------------------------------------------------------


def test_what_is_no_category_and_no_column_is_said_before_the_charge(frame, uncharged):
    cells = frame.to_numpy(object)
    cells[5, 0] = b"secret"
    with pytest.raises(TypeError, match="strings, numbers"):
        DPOneHotEncoder(accountant=uncharged).fit(cells)
    with pytest.raises(ValueError, match="weight"):
        DPOneHotEncoder({"weight": [1, 2]}, accountant=uncharged).fit(frame)


# ---- in a pipeline -------------------------------------------------------------------------------


@table(
    "model",
    [
        DPLinearClassifier(classes=["a", "b"]),
        DPLinearClassifier(classes=["a", "b", "c"], penalty="l2"),
        DPLinearClassifier(classes=["a", "b"], inference=True, penalty=None),
        DPLinearClassifier(classes=["a", "b"], inference=True, penalty=None, fit_intercept=False),
        DPLogisticGCD(classes=["a", "b"], solver="gcd", max_iter=2),
        DPLinearRegressor(target_bounds=(0, 3), fit_intercept=False),
        DPLinearRegressor(loss="huber", solver="sgd", max_iter=2),
        DPRidgeSkGD(solver="skgd", max_iter=2),
        DPLassoCD(solver="cd", max_iter=2),
        DPLassoCD(solver="gcd", max_iter=2, fit_intercept=False),
    ],
)
def test_unused_columns_leave_the_model_and_every_report(frame, model):
    """They are released with the categories; the event was planned for all columns."""
    y = frame["grade"] if hasattr(model, "classes") else frame["size"].fillna(0.0)
    encoder = DPOneHotEncoder(max_categories=6)
    pipeline = make_private_pipeline(encoder, clone(model), epsilon=3.0).fit(frame[["colour"]], y)
    names, model = pipeline[0].get_feature_names_out(), pipeline[-1]
    unused = [j for j, name in enumerate(names) if "unused" in name or "infrequent" in name]
    assert len(unused) == 3 and not np.atleast_2d(model.coef_)[:, unused].any()
    assert pipeline.privacy_event_ == clone(pipeline).planned_event(N, frame[["colour"]])
    assert model.feature_bounds is None
    shown = {row["feature"] for row in PrivacyReport(pipeline).facts["coefficients"]["rows"]}
    assert shown == set(names) - set(names[unused])
    assert CoefficientDisplay.from_estimator(pipeline).feature_names == list(names[:3])
    if model.inference:
        rows = [name for name, _ in pipeline.summary().rows]
        assert rows == [*names[:3], *["intercept"] * model.fit_intercept]
        assert "Left out: 3 columns" in str(pipeline.summary())


def case_04(seed, drop, epsilon=5.0, n=20_000):
    """A dose, which is identified in any case, and arms, which are beside a reference."""
    rng = np.random.default_rng(seed)
    dose, arm = rng.normal(size=n).clip(-4, 4), rng.choice(["a", "b", "c"], n)
    y = 1 + dose + (arm == "b") + rng.normal(size=n)
    columns = make_private_column_transformer(
        (BoundsScaler((-4, 4)), ["dose"]), (DPOneHotEncoder(drop=drop), ["arm"])
    )
    model = DPLinearRegressor(inference=True, target_bounds=(-8, 10))
    pipeline = make_private_pipeline(columns, model, epsilon=epsilon)
    pipeline.fit(pd.DataFrame({"dose": dose, "arm": arm}), y)
    names = pipeline[:-1].get_feature_names_out()
    return dict(zip(names, pipeline[-1].confidence_interval(), strict=False)), pipeline


@pytest.mark.parametrize("drop", [None, "first"])
def test_what_is_identified_behind_an_encoder_has_an_interval(drop):
    intervals, pipeline = case_04(0, drop)
    finite = {name for name, ends in intervals.items() if np.isfinite(ends).all()}
    unused = {name for name in intervals if "unused" in name or "infrequent" in name}
    assert finite - unused == ({"dose"} if drop is None else {"dose", "arm_b", "arm_c"})
    assert 3.9 < intervals["dose"][0] < intervals["dose"][1] < 4.1
    if drop == "first":
        together = pipeline.wald_test(["arm_b", "arm_c"])
        index = [list(intervals).index(name) for name in ("arm_b", "arm_c")]
        size = len(pipeline[-1].coef_std_)
        assert together == pipeline[-1].wald_test(np.eye(size)[index]) and together[1] < 1e-9
        above, _ = pipeline.bic_difference(["arm_b", "arm_c"])
        assert above == pipeline[-1].bic_difference(np.eye(size)[index])[0] > 0
    text = str(pipeline.summary())
    assert ("No interval of arm_a, arm_b, arm_c, intercept: the released" in text) == (drop is None)
    assert "Left out: 13 columns" in text and "arm_infrequent" not in text


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_intervals_behind_an_encoder_cover_what_they_say(epsilon):
    """300 fits, 900 intervals of .95: within four standard deviations of it."""
    truth, covered = {"dose": 4.0, "arm_b": 1.0, "arm_c": 0.0}, []
    for seed in range(300):
        intervals, _ = case_04(seed, "first", epsilon, n=25_000)
        covered += [intervals[name][0] < true < intervals[name][1] for name, true in truth.items()]
    assert abs(np.mean(covered) - 0.95) < 4 * (0.95 * 0.05 / 900) ** 0.5


# ---- more than memory holds ---------------------------------------------------------------------


def many_rows(n_samples, n_features=1):
    """A table of one cell in memory."""
    return np.broadcast_to(np.zeros((1, 1)), (n_samples, n_features))


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    ("encoder", "n_rows"),
    [
        (DPOneHotEncoder(max_categories=2**20), 2**12),
        (DPOneHotEncoder([range(2**16)]), 2**16),
        (DPTargetEncoder(classes=range(256)), 2**24),
    ],
    ids=["learnt", "stated", "means of classes"],
)
def test_a_dense_result_that_memory_may_not_hold_is_refused_before_the_charge(
    encoder, n_rows, relation
):
    X, public = many_rows(n_rows), {"neighboring": relation}
    if relation == "add_remove":  # however many records there are
        X, public = many_rows(3), public | {"n_public": n_rows}
    with PrivacyAccountant(1.0, 1e-9, **public) as ledger:
        encoder = clone(encoder).set_params(accountant=ledger, delta=1e-9, **public)
        with pytest.raises(ValueError, match=r"^rows of \d.* more than memory holds"):
            encoder.fit_transform(X, X[:, 0])
        assert ledger.entries() == []


def test_it_is_refused_before_the_charge_of_columns_side_by_side(uncharged):
    X = many_rows(2**12, 2)
    columns = make_private_column_transformer(
        (DPStandardScaler(), [0]), (DPOneHotEncoder(max_categories=2**20), [1])
    )
    for method in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match="more than memory holds"):
            getattr(columns.set_params(accountant=uncharged), method)(X)


def test_sparse_results_and_parts_of_records_are_not_refused():
    X = many_rows(2**16)
    encoder = DPOneHotEncoder([range(2**16)])
    with pytest.raises(ValueError, match="sparse_output=True"):
        encoder.fit_transform(X)
    assert encoder.fit(X).transform(X[:2]).shape == (2, 2**16 + 1)
    assert encoder.set_params(sparse_output=True).fit_transform(X).shape == (2**16, 2**16 + 1)


# ---- means of the target -------------------------------------------------------------------------


MANY = 12_000
TOWNS = ["Lens", "Lille", "Roubaix", "Tourcoing"]


@pytest.fixture(name="flats")
def records():
    rng = np.random.default_rng(0)
    town = rng.choice([*TOWNS, None], MANY, p=[0.3, 0.3, 0.2, 0.1, 0.1]).astype(object)
    town[:3] = "a farm"
    return pd.DataFrame({"town": town, "rooms": rng.integers(1, 6, MANY)})


@pytest.fixture(name="rent")
def target(flats):
    level = flats["town"].map({"Lens": 300, "Lille": 700, "Roubaix": 500, "Tourcoing": 400})
    noise = np.random.default_rng(1).normal(0, 50, MANY)
    return (level.fillna(100) + 80 * flats["rooms"] + noise).to_numpy()


CLASSES = {2: ["cheap", "dear"], 3: ["cheap", "dear", "usual"]}


def labels_of(rent, n_classes):
    edges = {2: [600], 3: [500, 800]}[n_classes]
    return (
        np.array(["cheap", "usual", "dear"][: n_classes + 1])[np.digitize(rent, edges)]
        if (n_classes == 3)
        else np.where(rent > 600, "dear", "cheap")
    )


def means_of(encoder, j):
    return dict(zip(encoder.categories_[j], encoder.encodings_[j], strict=False))


@pytest.mark.parametrize("cv", [None, 2])
@pytest.mark.parametrize("categories", ["auto", [TOWNS, [1, 2, 3, 4, 5]]])
def test_means_of_a_number_are_those_of_the_categories(flats, rent, categories, cv):
    encoder = DPTargetEncoder(
        categories, epsilon=2.0, delta=1e-6, target_bounds=(0, 1500), cv=cv
    ).fit(flats, rent)
    assert "a farm" not in encoder.categories_[0]
    for j, name in enumerate(flats):
        for category, found in means_of(encoder, j).items():
            of_it = flats[name].isna() if category != category else flats[name] == category
            assert abs(found[0] - rent[of_it].mean()) < 25
    assert abs(encoder.target_mean_[0] - rent.mean()) < 10
    Z = encoder.transform(flats)
    assert Z.shape == (MANY, 2) and np.corrcoef(Z.sum(axis=1), rent)[0, 1] > 0.9
    unknown = encoder.transform(pd.DataFrame({"town": ["elsewhere"], "rooms": [77]}))
    np.testing.assert_array_equal(unknown[0], [e[-1, 0] for e in encoder.encodings_])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_become_their_shares(flats, rent, n_classes):
    classes, y = CLASSES[n_classes], labels_of(rent, n_classes)
    encoder = DPTargetEncoder(epsilon=2.0, delta=1e-6, classes=classes).fit(flats, y)
    kept = classes[1:] if n_classes == 2 else classes
    for category, found in means_of(encoder, 0).items():
        of_it = flats["town"].isna() if category != category else flats["town"] == category
        shares = [(y[of_it] == label).mean() for label in kept]
        np.testing.assert_allclose(found, shares, atol=0.05)
    names = encoder.get_feature_names_out().tolist()
    if n_classes == 2:
        assert names == ["town", "rooms"]
    else:
        assert names == [f"{c}_{label}" for c in ("town", "rooms") for label in classes]
    assert encoder.transform(flats).shape == (MANY, len(names))


def test_without_noise_means_are_scikit_learns(flats, rent):
    flats = flats[["rooms"]]
    ours = DPTargetEncoder(epsilon=math.inf, target_bounds=(0, 1500), smooth=7.0)
    theirs = TargetEncoder(target_type="continuous", smooth=7.0).fit(flats, rent)
    np.testing.assert_allclose(ours.fit(flats, rent).transform(flats), theirs.transform(flats))
    y = labels_of(rent, 3)
    ours = DPTargetEncoder(epsilon=math.inf, classes=CLASSES[3], smooth=7.0).fit(flats, y)
    theirs = TargetEncoder(smooth=7.0).fit(flats, y)
    np.testing.assert_allclose(ours.transform(flats), theirs.transform(flats))


def test_a_record_is_encoded_by_the_other_folds(flats, rent):
    options = {"epsilon": math.inf, "target_bounds": (0, 1500), "smooth": 0.0, "cv": 3}
    flats = flats[["rooms"]]
    Z = DPTargetEncoder(**options).fit_transform(flats, rent)
    rooms, fold = flats["rooms"].to_numpy(), np.arange(MANY) % 3
    for i in (0, 1, 2, 5000, MANY - 1):
        others = (rooms == rooms[i]) & (fold != fold[i])
        assert Z[i, 0] == pytest.approx(rent[others].mean(), rel=1e-6)
    moved = rent.copy()
    moved[7] += 300  # of its own target a record sees nothing
    other = DPTargetEncoder(**options).fit_transform(flats, moved)
    assert other[7, 0] == Z[7, 0] and other[8:].tolist() != Z[8:].tolist()


def test_columns_side_by_side_are_encoded_by_the_other_folds(flats, rent):
    options = {"target_bounds": (0, 1500), "smooth": 0.0, "cv": 2}
    rooms = [[1, 2, 3, 4, 5]]
    alone = DPTargetEncoder(rooms, epsilon=math.inf, **options).fit_transform(
        flats[["rooms"]], rent
    )
    columns = make_private_column_transformer(
        (DPTargetEncoder(rooms, **options), ["rooms"]), epsilon=math.inf
    )
    np.testing.assert_array_equal(columns.fit_transform(flats, rent), alone)
    assert not np.array_equal(columns.transform(flats), alone)
    named = columns.set_output(transform="pandas").fit_transform(flats, rent)
    assert list(named.columns) == ["rooms"]
    np.testing.assert_array_equal(named, alone)


def test_words_as_a_target_ask_for_classes():
    with pytest.raises(ValueError, match="state them as classes"):
        DPTargetEncoder().fit([["a"], ["b"]], ["no", "yes"])


def test_means_of_much_noise_are_drawn_to_that_of_all():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 200, (2000, 1)), rng.uniform(-1, 1, 2000)  # nothing to learn
    found = {}
    for smooth in ("auto", 0.0):
        encoder = DPTargetEncoder([list(range(200))], epsilon=0.5, smooth=smooth)
        with pytest.warns(UnknownScaleWarning, match="State target_bounds"):
            encoder.fit(codes, y)
        found[smooth] = np.abs(encoder.encodings_[0] - encoder.target_mean_).mean()
    assert found["auto"] < 0.5 * found[0.0]


# ---- what is charged -----------------------------------------------------------------------------


def test_folds_cost_nothing_more():
    events = [DPTargetEncoder(cv=cv, delta=1e-6).planned_event(MANY, 2) for cv in (None, 2, 5)]
    assert events[0] == events[1] == events[2]
