"""The table of classes: what each learns, its layout, advice, and whether one row differs.

Deny by default: a class that is not in the table counts as one that learns, and that may put out
sparse arrays. Names are exact, because a subclass may do anything.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


def full_name(kind):
    """Package, public rooms and name of a class: sklearn.preprocessing.Normalizer."""
    rooms = [part for part in str(kind.__module__).split(".") if not part.startswith("_")]
    return ".".join([*rooms, str(kind.__name__)])


def is_elementwise(function):
    """Whether a function is known to treat each cell by itself."""
    if function is None:
        return True
    of_numbers = isinstance(function, np.ufunc) and any("O" not in kind for kind in function.types)
    return of_numbers and function.signature is None


# ---- why a class learns: functions of its parameters that return a reason or None ---------------


def _nothing(params):
    """Return None: `fit` keeps what depends on parameters, shapes and column names alone."""


def _always(reason):
    return lambda params: reason


_learns = _always("it learns from your records")
_unlisted = _always("it is not known to be private, or to learn nothing from your records")
# BLAS chooses its kernels by the number of rows, so one more record moves last bits of all
_by_batch = _always(
    "it multiplies all rows at once, and the last bits of each depend on how many there are"
)
_calibrates = _always("its calibrator is fitted to records without noise")
_tunes = _always("its threshold and its score are computed from records without noise")
_boosts = _always("it weights records and members by errors on records without noise")
_by_labels = _always(
    "the labels in y decide which fits there are, and of which records; each fit is given 0 and 1 "
    "in place of them, so members with three or more classes fail in predict with an error about "
    "shapes, or give several answers for each record"
)


def _meta(params):
    """A meta-estimator that learns nothing beside what its parts learn and what rules name."""
    for name in ("estimator", "regressor", "final_estimator"):
        if name in params and params[name] is None:
            return f"{name}=None is a model of scikit-learn's without noise"
    return None


def _bagging(params):
    if params.get("bootstrap") is True:
        return "bootstrap=True: a record that is drawn k times has k times the loss"
    return _meta(params)


def _is_given(params, name):
    """Whether a list or array was stated, not the name of a rule that looks at the records."""
    return params.get(name) is not None and not isinstance(params[name], str)


def _encoder(params):
    if not _is_given(params, "categories"):
        return "categories are read from the records"
    for name in ("min_frequency", "max_categories"):
        if params.get(name) is not None:
            return f"{name} counts the records of each category"
    return None


def _imputer(params):
    if params.get("strategy") != "constant":
        return "statistics of the columns are read from the records"
    if params.get("add_indicator"):
        return "add_indicator adds the columns in which a value is missing"
    # since scikit-learn 1.8: a column is dropped if it is empty, and one record decides that
    return None if params.get("keep_empty_features") else "columns without any value are dropped"


def _indicator(params):
    return None if params.get("features") == "all" else "columns are chosen by what is missing"


def _splines(params):
    if not _is_given(params, "knots"):
        return "knots are placed by the records"
    return "extrapolation='error' tells" if params.get("extrapolation") == "error" else None


def _vocabulary(params):
    return None if _is_given(params, "vocabulary") else "the vocabulary is read from the records"


def _frequencies(params):
    return "use_idf=True counts documents" if params.get("use_idf", True) else None


def _projection(params):
    if not isinstance(params.get("n_components"), str):
        return None
    return "n_components='auto' follows the number of records, not public under add_remove"


# ---- why a step maps a table of one row in another way than longer ones -------------------------


_refuses_one_row = _always("it refuses a row that is alone, which tells one record from two")


def _sums_one_row(params):
    if params.get("norm") == "max":
        return None
    return "a row that is alone is summed in another order, which tells one record from two"


# ---- whether the output of a part is dense, by its parameters and whether the input is ----------


def _unknown(part, given):
    return False


def _dense(part, given):
    return True


def _as_given(part, given):
    return given


def _if_stated(part, given):
    return part.params["sparse_output"] is False


def _indicator_is_dense(part, given):
    sparse = part.params.get("sparse")
    return sparse is False or (sparse == "auto" and given)


def _function_is_dense(part, given):
    return given and not part.params.get("kw_args") and is_elementwise(part.params.get("func"))


def _projection_is_dense(part, given):
    return given or part.params.get("dense_output") is True


def _side_by_side(part, given):
    stacked = all(inner.is_dense(given) for inner in part.parts)
    return part.get("sparse_threshold") == 0 or (stacked and (given or not _passes_on(part)))


def _passes_on(part):
    """Whether some columns go through a ColumnTransformer or a FeatureUnion as they are."""
    steps = part.get("transformers") or part.get("transformer_list")
    return "passthrough" in (part.get("remainder"), *(step[1] for step in steps if len(step) > 1))


# ---- the table ----------------------------------------------------------------------------------

BOUNDS = "dpcd_sklearn.preprocessing.DPStandardScaler, or BoundsScaler with public bounds"
_ROBUST = "dpcd_sklearn.preprocessing.DPRobustScaler, or BoundsScaler with public bounds"
_LAW = "dpcd_sklearn.preprocessing.DPQuantileTransformer, DPStandardScaler, or public bounds"
_ENCODE = (
    "dpcd_sklearn.preprocessing.DPOneHotEncoder, or OneHotEncoder(categories=[...], "
    "handle_unknown='ignore') with public categories"
)
_NUMBER = (
    "dpcd_sklearn.preprocessing.DPOrdinalEncoder, or OrdinalEncoder(categories=[...], "
    "handle_unknown='use_encoded_value') with public categories"
)
_MEAN_OF_TARGET = "dpcd_sklearn.preprocessing.DPTargetEncoder, or DPOneHotEncoder"
_IMPUTE = (
    "dpcd_sklearn.preprocessing.DPSimpleImputer, or SimpleImputer(strategy='constant', "
    "keep_empty_features=True)"
)
_INDICATE = "MissingIndicator(features='all')"
_SELECT = "dpcd_sklearn.preprocessing.DPSelectKBest, or columns chosen by public knowledge"
_COMPONENTS = "dpcd_sklearn.preprocessing.DPPCA, or SparseRandomProjection(n_components=10)"
_PROJECT = "columns chosen by public knowledge, or SparseRandomProjection(n_components=10)"
_STATE = "SparseRandomProjection(n_components=10), a public number"
_SKETCH = "PolynomialCountSketch or AdditiveChi2Sampler, which map each row by itself"
_HASH = "HashingVectorizer, or a public vocabulary= (and use_idf=False)"
_ONCE = "bootstrap=False, with a private estimator"
_VOTES = "VotingRegressor or VotingClassifier of private models"
_ALL = "DPLinearClassifier(classes=[...]) by itself, one model of all classes"
_UNCALIBRATED = "predict_proba of the private model as it is, or calibrate on public records"
_FIXED = "FixedThresholdClassifier(threshold=0.3), a threshold known beforehand"
_SPLINES = "SplineTransformer(knots=[...], extrapolation='constant') with public knots"

_OURS, _THEIRS = "dpcd_sklearn.preprocessing", "sklearn.preprocessing"
_SELECTION, _KERNEL = "sklearn.feature_selection", "sklearn.kernel_approximation"
_ENSEMBLE = "sklearn.ensemble"
_TEXT, _PROJECTION = "sklearn.feature_extraction.text", "sklearn.random_projection"


@dataclass(frozen=True)
class KnownClass:
    """A row of the table: functions of the parameters and of a part, and advice."""

    learns: Callable = _unlisted
    is_dense: Callable = _unknown
    instead: str | None = None
    one_row_differs: Callable = _nothing


_ROWS = (
    (_OURS, "BoundsScaler RowNormClipper DPSimpleImputer", _nothing, _as_given),
    (_OURS, "DPOneHotEncoder", _nothing, _if_stated),  # without a charge only if told everything
    (_OURS, "DPOrdinalEncoder", _nothing, _dense),
    (_OURS, "DPRobustScaler DPSelectKBest DPStandardScaler", _learns, _as_given),
    (_OURS, "DPPCA DPQuantileTransformer DPTargetEncoder", _learns, _dense),
    (_THEIRS, "Binarizer PolynomialFeatures", _nothing, _as_given),
    (_THEIRS, "Normalizer", _nothing, _as_given, BOUNDS, _sums_one_row),
    (_THEIRS, "FunctionTransformer", _nothing, _function_is_dense),  # a rule looks at the function
    (_THEIRS, "StandardScaler MinMaxScaler MaxAbsScaler", _learns, _as_given, BOUNDS),
    (_THEIRS, "RobustScaler", _learns, _as_given, _ROBUST),
    (_THEIRS, "QuantileTransformer PowerTransformer", _learns, _unknown, _LAW),
    (_THEIRS, "OneHotEncoder", _encoder, _if_stated, _ENCODE),
    (_THEIRS, "LabelEncoder LabelBinarizer MultiLabelBinarizer", _learns, _unknown, _ENCODE),
    (_THEIRS, "OrdinalEncoder", _encoder, _dense, _NUMBER),
    (_THEIRS, "TargetEncoder", _learns, _unknown, _MEAN_OF_TARGET),
    (_THEIRS, "SplineTransformer", _splines, _if_stated, _SPLINES, _refuses_one_row),
    (_THEIRS, "KBinsDiscretizer", _learns, _unknown, _SPLINES),
    ("sklearn.impute", "SimpleImputer", _imputer, _as_given, _IMPUTE),
    ("sklearn.impute", "KNNImputer IterativeImputer", _learns, _unknown, _IMPUTE),
    ("sklearn.impute", "MissingIndicator", _indicator, _indicator_is_dense, _INDICATE),
    ("sklearn.feature_extraction", "FeatureHasher", _nothing),
    ("sklearn.feature_extraction", "DictVectorizer", _learns, _unknown, _ENCODE),
    (_TEXT, "HashingVectorizer", _nothing),
    (_TEXT, "CountVectorizer", _vocabulary, _unknown, _HASH),
    (_TEXT, "TfidfTransformer", _frequencies, _unknown, _HASH),
    (_TEXT, "TfidfVectorizer", lambda p: _vocabulary(p) or _frequencies(p), _unknown, _HASH),
    (_KERNEL, "AdditiveChi2Sampler", _nothing, _as_given),
    (_KERNEL, "PolynomialCountSketch", _nothing, _dense),
    (_KERNEL, "RBFSampler SkewedChi2Sampler", _by_batch, _unknown, _SKETCH),
    (_KERNEL, "Nystroem", _learns, _unknown, _SKETCH),
    (_PROJECTION, "SparseRandomProjection", _projection, _projection_is_dense, _STATE),
    (_PROJECTION, "GaussianRandomProjection", _by_batch, _unknown, _STATE),
    ("sklearn.decomposition", "PCA IncrementalPCA TruncatedSVD", _learns, _unknown, _COMPONENTS),
    ("sklearn.decomposition", "KernelPCA SparsePCA FastICA NMF", _learns, _unknown, _PROJECT),
    ("sklearn.decomposition", "MiniBatchSparsePCA FactorAnalysis", _learns, _unknown, _PROJECT),
    (_SELECTION, "RFECV SequentialFeatureSelector", _learns, _unknown, _PROJECT),
    (_SELECTION, "SelectFdr SelectFpr SelectFwe VarianceThreshold", _learns, _unknown, _PROJECT),
    (_SELECTION, "GenericUnivariateSelect SelectKBest", _learns, _unknown, _SELECT),
    (_SELECTION, "SelectPercentile", _learns, _unknown, _SELECT),
    (_SELECTION, "RFE SelectFromModel", _meta),  # RFE ranks by coefficients of a private part
    ("sklearn.calibration", "CalibratedClassifierCV", _calibrates, _unknown, _UNCALIBRATED),
    ("dpcd_sklearn.compose", "DPColumnTransformer", _learns, _dense),
    ("dpcd_sklearn.pipeline", "StandIn", _nothing, _as_given),  # while a pipeline is planned
    ("sklearn.compose", "ColumnTransformer", _meta, _side_by_side),
    ("sklearn.compose", "TransformedTargetRegressor", _meta),
    (_ENSEMBLE, "AdaBoostClassifier AdaBoostRegressor", _boosts, _unknown, _VOTES),
    (_ENSEMBLE, "BaggingClassifier BaggingRegressor", _bagging, _unknown, _ONCE),
    (_ENSEMBLE, "StackingClassifier StackingRegressor", _meta),
    (_ENSEMBLE, "VotingClassifier VotingRegressor", _meta),
    ("sklearn.frozen", "FrozenEstimator", _meta),
    ("sklearn.model_selection", "FixedThresholdClassifier", _meta),
    ("sklearn.model_selection", "TunedThresholdClassifierCV", _tunes, _unknown, _FIXED),
    ("sklearn.model_selection", "GridSearchCV HalvingGridSearchCV", _meta),
    ("sklearn.model_selection", "RandomizedSearchCV HalvingRandomSearchCV", _meta),
    ("sklearn.multiclass", "OneVsOneClassifier OneVsRestClassifier", _by_labels, _unknown, _ALL),
    ("sklearn.multiclass", "OutputCodeClassifier", _by_labels, _unknown, _ALL),
    ("sklearn.multioutput", "ClassifierChain RegressorChain", _meta),
    ("sklearn.multioutput", "MultiOutputClassifier MultiOutputRegressor", _meta),
    ("sklearn.pipeline", "FeatureUnion", _meta, _side_by_side),
    ("sklearn.pipeline", "Pipeline", _meta),  # is as dense as its last step
)
_CLASSES = {
    f"{module}.{name}": KnownClass(*known)
    for module, names, *known in _ROWS
    for name in names.split()
}


def class_of(name):
    """The row of a class by its full name; a row that denies everything if there is none."""
    return _CLASSES.get(name, KnownClass())


def _names_where(*learns):
    return tuple(name for name, known in _CLASSES.items() if known.learns in learns)


META_ESTIMATORS, BY_BATCH = _names_where(_meta, _bagging), _names_where(_by_batch)
_THAT_LEARN = _names_where(_learns, _by_batch, _by_labels, _calibrates, _tunes, _boosts)
LEARNS_NOTHING = frozenset(_CLASSES).difference(META_ESTIMATORS, _THAT_LEARN)
