"""The private target encoder: its means, its folds, what is charged, and what stays secret."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import TargetEncoder

from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.preprocessing import DPTargetEncoder

N = 12_000
TOWNS = ["Lens", "Lille", "Roubaix", "Tourcoing"]


@pytest.fixture(name="frame")
def records():
    rng = np.random.default_rng(0)
    town = rng.choice([*TOWNS, None], N, p=[0.3, 0.3, 0.2, 0.1, 0.1]).astype(object)
    town[:3] = "a farm"
    return pd.DataFrame({"town": town, "rooms": rng.integers(1, 6, N)})


@pytest.fixture(name="rent")
def target(frame):
    level = frame["town"].map({"Lens": 300, "Lille": 700, "Roubaix": 500, "Tourcoing": 400})
    noise = np.random.default_rng(1).normal(0, 50, N)
    return (level.fillna(100) + 80 * frame["rooms"] + noise).to_numpy()


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
def test_means_of_a_number_are_those_of_the_categories(frame, rent, categories, cv):
    encoder = DPTargetEncoder(
        categories, epsilon=2.0, delta=1e-6, target_bounds=(0, 1500), cv=cv
    ).fit(frame, rent)
    assert "a farm" not in encoder.categories_[0]
    for j, name in enumerate(frame):
        for category, found in means_of(encoder, j).items():
            of_it = frame[name].isna() if category != category else frame[name] == category
            assert abs(found[0] - rent[of_it].mean()) < 25
    assert abs(encoder.target_mean_[0] - rent.mean()) < 10
    Z = encoder.transform(frame)
    assert Z.shape == (N, 2) and np.corrcoef(Z.sum(axis=1), rent)[0, 1] > 0.9
    unknown = encoder.transform(pd.DataFrame({"town": ["elsewhere"], "rooms": [77]}))
    np.testing.assert_array_equal(unknown[0], [e[-1, 0] for e in encoder.encodings_])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_become_their_shares(frame, rent, n_classes):
    classes, y = CLASSES[n_classes], labels_of(rent, n_classes)
    encoder = DPTargetEncoder(epsilon=2.0, delta=1e-6, classes=classes).fit(frame, y)
    kept = classes[1:] if n_classes == 2 else classes
    for category, found in means_of(encoder, 0).items():
        of_it = frame["town"].isna() if category != category else frame["town"] == category
        shares = [(y[of_it] == label).mean() for label in kept]
        np.testing.assert_allclose(found, shares, atol=0.05)
    names = encoder.get_feature_names_out().tolist()
    if n_classes == 2:
        assert names == ["town", "rooms"]
    else:
        assert names == [f"{c}_{label}" for c in ("town", "rooms") for label in classes]
    assert encoder.transform(frame).shape == (N, len(names))


def test_without_noise_it_is_scikit_learns(frame, rent):
    frame = frame[["rooms"]]
    ours = DPTargetEncoder(epsilon=math.inf, target_bounds=(0, 1500), smooth=7.0)
    theirs = TargetEncoder(target_type="continuous", smooth=7.0).fit(frame, rent)
    np.testing.assert_allclose(ours.fit(frame, rent).transform(frame), theirs.transform(frame))
    y = labels_of(rent, 3)
    ours = DPTargetEncoder(epsilon=math.inf, classes=CLASSES[3], smooth=7.0).fit(frame, y)
    theirs = TargetEncoder(smooth=7.0).fit(frame, y)
    np.testing.assert_allclose(ours.transform(frame), theirs.transform(frame))


def test_a_record_is_encoded_by_the_other_folds(frame, rent):
    options = {"epsilon": math.inf, "target_bounds": (0, 1500), "smooth": 0.0, "cv": 3}
    frame = frame[["rooms"]]
    Z = DPTargetEncoder(**options).fit_transform(frame, rent)
    rooms, fold = frame["rooms"].to_numpy(), np.arange(N) % 3
    for i in (0, 1, 2, 5000, N - 1):
        others = (rooms == rooms[i]) & (fold != fold[i])
        assert Z[i, 0] == pytest.approx(rent[others].mean(), rel=1e-6)
    moved = rent.copy()
    moved[7] += 300  # of its own target a record sees nothing
    other = DPTargetEncoder(**options).fit_transform(frame, moved)
    assert other[7, 0] == Z[7, 0] and other[8:].tolist() != Z[8:].tolist()


def test_columns_side_by_side_are_encoded_by_the_other_folds(frame, rent):
    options = {"target_bounds": (0, 1500), "smooth": 0.0, "cv": 2}
    rooms = [[1, 2, 3, 4, 5]]
    alone = DPTargetEncoder(rooms, epsilon=math.inf, **options).fit_transform(
        frame[["rooms"]], rent
    )
    columns = make_private_column_transformer(
        (DPTargetEncoder(rooms, **options), ["rooms"]), epsilon=math.inf
    )
    np.testing.assert_array_equal(columns.fit_transform(frame, rent), alone)
    assert not np.array_equal(columns.transform(frame), alone)
    named = columns.set_output(transform="pandas").fit_transform(frame, rent)
    assert list(named.columns) == ["rooms"]
    np.testing.assert_array_equal(named, alone)


def test_means_of_much_noise_are_drawn_to_that_of_all():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 200, (2000, 1)), rng.uniform(-1, 1, 2000)  # nothing to learn
    found = {}
    for smooth in ("auto", 0.0):
        encoder = DPTargetEncoder([list(range(200))], epsilon=0.5, smooth=smooth).fit(codes, y)
        found[smooth] = np.abs(encoder.encodings_[0] - encoder.target_mean_).mean()
    assert found["auto"] < 0.5 * found[0.0]


# ---- what is charged -----------------------------------------------------------------------------


def test_folds_cost_nothing_more(frame):
    events = [DPTargetEncoder(cv=cv, delta=1e-6).planned_event(N, 2) for cv in (None, 2, 5)]
    assert events[0] == events[1] == events[2]
