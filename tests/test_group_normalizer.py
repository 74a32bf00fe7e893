"""GroupNormalizer: groups of mean zero and one norm within each row, for free."""

import numpy as np
import pytest
from scipy import sparse

from dpcd_sklearn import DPLinearClassifier
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import GroupNormalizer


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(2000, 12)) * np.repeat([1.0, 100.0, 1e-2], 4)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_have_mean_zero_and_one_norm_and_rows_norm_one(rows, order, dtype):
    X = np.asarray(rows, order=order, dtype=dtype)
    before = X.copy()
    Z = GroupNormalizer(3, smoothing=0.0).fit_transform(X)
    assert Z.dtype == dtype and (X == before).all()
    groups = Z.astype(float).reshape(len(Z), 3, 4)
    accuracy = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(groups.mean(axis=2), 0.0, atol=accuracy)
    np.testing.assert_allclose(np.linalg.norm(groups, axis=2), 3**-0.5, rtol=accuracy)
    assert GroupNormalizer(3, smoothing=0.0, copy=False).transform(X) is X
    np.testing.assert_array_equal(X, Z)


def test_smoothing_is_in_squared_units_of_the_features(rows):
    Z = GroupNormalizer(3, smoothing=1e-3).fit_transform(rows).reshape(len(rows), 3, 4)
    groups = rows.reshape(len(rows), 3, 4)
    centred = groups - groups.mean(axis=2, keepdims=True)
    twin = centred / np.sqrt(np.square(centred).mean(axis=2, keepdims=True) + 1e-3)
    twin /= np.linalg.norm(twin, axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(Z, twin, rtol=1e-9, atol=1e-12)


def test_constant_groups_are_zeros_and_huge_ones_do_not_overflow():
    X = np.array([[0.1] * 6, [1e300, -1e300, 0.0, 0.1, 0.1, 0.1], [1e-310] * 3 + [0.0] * 3])
    Z = GroupNormalizer(2, smoothing=0.0).fit_transform(X)
    np.testing.assert_allclose(Z, [[0] * 6, [0.5**0.5, -(0.5**0.5), 0, 0, 0, 0], [0] * 6])


def test_a_pipeline_tells_the_norm_on(rows):
    pipe = make_private_pipeline(GroupNormalizer(3), DPLinearClassifier(classes=[0, 1]))
    y = (rows[:, 0] > rows[:, 1]).astype(int)
    assert list(pipe.fit(rows, y).told_.values()) == [{"row_norm_bound": 1.0}]


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_groups": 5}, "n_groups=5 must divide the number of features, 12"),
        ({"n_groups": 0}, "n_groups"),
        ({"n_groups": 2.0}, "n_groups"),
        ({"smoothing": -1.0}, "smoothing"),
        ({"smoothing": np.nan}, "smoothing"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "transform"])
def test_a_wrong_parameter_is_refused(rows, parameters, match, method):
    with pytest.raises((TypeError, ValueError), match=match):
        getattr(GroupNormalizer(**parameters), method)(rows)


def test_sparse_records_and_nan_are_refused(rows):
    with pytest.raises(TypeError, match="takes no sparse X"):
        GroupNormalizer(3).fit(sparse.csr_array(rows))
    rows[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GroupNormalizer(3).fit(rows)
