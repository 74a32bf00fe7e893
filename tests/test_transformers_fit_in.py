"""Private transformers where scikit-learn's objects put them: frames, clones, searches, routing."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import dpcd_sklearn.preprocessing as preprocessing
from dpcd_sklearn import DPLinearClassifier, PrivacyAccountant

N = 400
ALL = [getattr(preprocessing, name) for name in preprocessing.__all__]
PRIVATE = [kind for kind in ALL if hasattr(kind, "planned_event")]
SPARSE = {"DPSelectKBest": {}, "DPStandardScaler": {"with_centering": False}}
SPARSE |= {"DPSimpleImputer": {}, "DPRobustScaler": {"with_centering": False}}
pytestmark = pytest.mark.filterwarnings("ignore")
every_transformer = pytest.mark.parametrize("kind", PRIVATE, ids=lambda kind: kind.__name__)


@pytest.fixture(name="frame")
def numbers():
    return pd.DataFrame(np.random.default_rng(0).integers(0, 3, (N, 3)) * 1.0, columns=list("abc"))


def test_all_private_transformers_are_here():
    assert len(PRIVATE) == 9


@every_transformer
def test_frames_come_out_with_the_names_that_are_told(kind, frame):
    step = kind(epsilon=5.0).set_output(transform="pandas")
    found = step.fit_transform(frame, np.zeros(N))
    assert isinstance(found, pd.DataFrame) and found.index.equals(frame.index)
    assert list(found.columns) == list(step.get_feature_names_out())
    assert list(step.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="names"):
        step.transform(frame.rename(columns={"a": "other"}))


@every_transformer
def test_a_clone_has_the_parameters_and_charges_the_same_ledger(kind, frame):
    accountant = PrivacyAccountant(1.0, 1e-3)
    step = kind(epsilon=0.25, accountant=accountant).fit(frame, np.zeros(N))
    copy = clone(step)
    assert repr(copy.get_params()) == repr(step.get_params())
    assert not [name for name in vars(copy) if name.endswith("_")]
    copy.set_params(epsilon=0.125).fit(frame, np.zeros(N))
    assert [entry.estimator for entry in accountant.entries()] == [kind.__name__] * 2
    stored = pickle.loads(pickle.dumps(step.set_params(accountant=None)))
    np.testing.assert_array_equal(stored.transform(frame), step.transform(frame))


@every_transformer
def test_a_search_reaches_its_parameters_within_columns(kind, frame):
    columns = make_column_transformer((kind(), ["a", "b"]), remainder="passthrough")
    model = make_pipeline(columns, DPLinearClassifier(classes=[0, 1]))
    name = f"columntransformer__{kind.__name__.lower()}__epsilon"
    search = GridSearchCV(model, {name: [0.5, 2.0]}, cv=KFold(2), error_score="raise")
    search.fit(frame, (frame["a"] > 0).astype(int))
    assert search.best_params_[name] in (0.5, 2.0)
    assert search.best_estimator_[0].transformers_[0][1].privacy_spent_.epsilon in (0.5, 2.0)


@every_transformer
def test_routing_asks_nothing_of_it(kind, frame):
    y = (frame["a"] > 0).astype(int)
    with sklearn.config_context(enable_metadata_routing=True):
        model = DPLinearClassifier(classes=[0, 1]).set_fit_request(sample_weight=True)
        make_pipeline(kind(), model).fit(frame, y, sample_weight=np.ones(N))


@every_transformer
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_records_are_taken_or_refused_before_the_charge(kind, frame, layout):
    accountant = PrivacyAccountant(1.0, 1e-3)
    X, params = layout(frame.to_numpy()), SPARSE.get(kind.__name__)
    step = kind(accountant=accountant).set_params(**params or {})
    if params is None:
        with pytest.raises((TypeError, ValueError), match="sparse"):
            step.fit(X, np.zeros(N))
        assert accountant.entries() == []
    else:
        assert sparse.issparse(step.fit(X, np.zeros(N)).transform(X))
