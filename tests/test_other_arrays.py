"""Tensors and arrays of other libraries: read on the host, and predictions given back in kind.

scikit-learn's ``array_api_dispatch`` asks SciPy for its own switch when it is imported, so what
runs under it runs in a process of its own.
"""

import warnings

import numpy as np
import pytest
import sklearn
from forks import in_a_new_process
from numpy.testing import assert_array_equal

from dpcd_sklearn import DPLassoCD, DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, RowNormClipper
from dpcd_sklearn.testing import ReproducibleNoise
from dpcd_sklearn.utils import _warnings

rng = np.random.default_rng(0)
X = rng.uniform(size=(500, 3))
y = X.sum(axis=1)
label = (y > 1.5).astype(int)
BOUNDS = {"feature_bounds": (0, 1), "random_state": ReproducibleNoise(0)}
RIDGE = DPRidgeSkGD(epsilon=5.0, target_bounds=(0, 3), **BOUNDS)
LOGISTIC = DPLogisticGCD(epsilon=5.0, classes=[0, 1], **BOUNDS)


class Tensor:
    """A tensor that, as torch's, gives its values only once it is detached and on the host."""

    def __init__(self, values, tracked=True, device="gpu:0", broken=False):
        self.values, self.tracked, self.device = np.asarray(values), tracked, device
        self.shape, self.dtype, self.broken = self.values.shape, self.values.dtype, broken

    def __dlpack__(self, **options):
        raise BufferError("not on the host")

    def __len__(self):
        return len(self.values)

    def __array__(self, dtype=None, copy=None):
        if self.tracked or self.device != "cpu" or self.broken:
            raise TypeError(f"no values of {self.values[0, 0]}")
        return self.values

    def detach(self):
        return Tensor(self.values, False, self.device, self.broken)

    def cpu(self):
        return Tensor(self.values, self.tracked, "cpu", self.broken)


@pytest.fixture(autouse=True)
def nothing_was_said(monkeypatch):
    monkeypatch.setattr(_warnings, "said", set())


@pytest.mark.filterwarnings("ignore:arrays of")
@pytest.mark.parametrize(("model", "target"), [(RIDGE, y), (LOGISTIC, label)])
def test_a_fit_of_a_tensor_has_the_bits_of_a_fit_of_its_values(model, target):
    expected = sklearn.clone(model).fit(X, target)
    found = sklearn.clone(model).fit(Tensor(X), Tensor(target), sample_weight=Tensor(np.ones(500)))
    weighted = sklearn.clone(model).fit(X, target, sample_weight=np.ones(500))
    assert_array_equal(found.coef_, weighted.coef_)
    assert type(found.coef_) is np.ndarray
    assert_array_equal(expected.predict(Tensor(X)), expected.predict(X))
    assert expected.score(Tensor(X), Tensor(target)) == expected.score(X, target)


def test_that_records_are_moved_is_said_once_a_process():
    with warnings.catch_warnings(record=True, action="always") as said:
        model = sklearn.clone(RIDGE).fit(Tensor(X), Tensor(y))
        model.predict(Tensor(X))
    moved = [w for w in said if "are read on the host" in str(w.message)]
    assert len(moved) == 1 and moved[0].category is UserWarning


def test_nothing_is_said_of_arrays_and_tables_that_are_read_as_they_are():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="arrays of")
        for records in (X, X.tolist(), pandas.DataFrame(X), polars.DataFrame(X), X[:, :1]):
            sklearn.clone(RIDGE).fit(records, y).predict(records)


def test_a_tensor_whose_values_cannot_be_had_is_refused_without_quoting_them():
    with pytest.warns(UserWarning, match="arrays of"), pytest.raises(TypeError) as error:
        sklearn.clone(RIDGE).fit(Tensor(X, broken=True), y)
    assert "can't be read on the host" in str(error.value)
    assert str(X[0, 0]) not in str(error.value) and error.value.__context__ is None


@pytest.mark.filterwarnings("ignore:arrays of")
def test_pipelines_searches_and_scalers_take_tensors():
    scaler = BoundsScaler((0, 1)).fit(Tensor(X))
    assert_array_equal(scaler.transform(Tensor(X)), scaler.transform(X))
    before = X.copy()
    RowNormClipper(0.1, copy=False).fit(Tensor(X)).transform(Tensor(X))
    assert_array_equal(X, before)  # a tensor's memory is the user's
    steps = BoundsScaler((0, 1)), DPRidgeSkGD(target_bounds=(0, 3))
    model = make_private_pipeline(*steps, epsilon=5.0).fit(Tensor(X), Tensor(y))
    assert_array_equal(model.predict(Tensor(X)), model.predict(X))
    search = PrivateSearchCV(DPLassoCD(target_bounds=(0, 3)), {"alpha": [0.01]}, epsilon=5.0)
    assert hasattr(search.fit(Tensor(X), Tensor(y)), "privacy_spent_")


DISPATCHED = """
import warnings
import array_api_strict as xp
import numpy as np
import sklearn
from numpy.testing import assert_array_equal
from dpcd_sklearn import DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.testing import ReproducibleNoise

warnings.filterwarnings("ignore", message="ReproducibleNoise|arrays of")
rng = np.random.default_rng(0)
X = rng.uniform(size=(500, 3))
y = X.sum(axis=1)
bounds = {"feature_bounds": (0, 1), "random_state": ReproducibleNoise(0)}
device = xp.Device("device1")
kept = xp.asarray(X, device=device)


def same(found, expected, space=xp):
    assert found.__array_namespace__() is space, type(found)
    assert found.device == device and found.shape == expected.shape
    assert_array_equal(np.from_dlpack(found), expected)


for model, target, methods in (
    (DPRidgeSkGD(epsilon=5.0, target_bounds=(0, 3), **bounds), y, ["predict"]),
    (
        DPLogisticGCD(epsilon=5.0, classes=[0, 1], **bounds),
        (y > 1.5).astype(int),
        ["predict", "decision_function", "predict_proba", "predict_log_proba"],
    ),
    (
        DPLogisticGCD(epsilon=5.0, classes=[0, 1, 2], **bounds),
        np.floor(y).astype(int),
        ["predict", "decision_function", "predict_proba", "predict_log_proba"],
    ),
):
    model.fit(X, target)
    plain = {name: getattr(model, name)(X) for name in methods}
    score = model.score(X, target)
    coef = model.coef_
    with sklearn.config_context(array_api_dispatch=True):
        model.fit(kept, xp.asarray(target, device=device))
        assert_array_equal(model.coef_, coef)
        for name in methods:
            same(getattr(model, name)(kept), plain[name])
            assert type(getattr(model, name)(X)) is np.ndarray
        assert model.score(kept, xp.asarray(target, device=device)) == score
    assert type(model.predict(kept)) is np.ndarray

words = DPLogisticGCD(epsilon=5.0, classes=["few", "many"], **bounds)
words.fit(X, np.where(y > 1.5, "many", "few"))
scaler = BoundsScaler((0, 1)).fit(X)
with sklearn.config_context(array_api_dispatch=True):
    assert words.predict(kept).dtype.kind == "U"
    same(words.predict_proba(kept), words.predict_proba(X))
    same(scaler.transform(kept), scaler.transform(X))
    same(scaler.inverse_transform(kept), scaler.inverse_transform(X))
print("given back")
"""


def test_under_dispatch_predictions_are_arrays_of_the_library_and_device_of_x():
    pytest.importorskip("array_api_strict", minversion="2.1", reason="it is of the extra test")
    pytest.importorskip("scipy", minversion="1.14", reason="scikit-learn dispatches from it on")
    assert in_a_new_process(DISPATCHED, SCIPY_ARRAY_API="1").strip() == "given back"
