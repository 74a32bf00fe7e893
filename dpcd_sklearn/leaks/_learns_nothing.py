"""Steps that are known to learn nothing from records; whatever is not listed counts as learning.

A step learns nothing if what `fit` keeps follows parameters, shapes and column names alone, and
if it maps each record by itself, to the last bit, so that neighbouring data sets stay neighbours.
Names are exact, a subclass may do anything.
"""

import numpy as np


def full_name(kind):
    """Package, public rooms and name of a class: sklearn.preprocessing.Normalizer."""
    rooms = [part for part in str(kind.__module__).split(".") if not part.startswith("_")]
    return ".".join([*rooms, str(kind.__name__)])


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


# Each with what makes it learn after all: a function of its parameters, or None for nothing.
LEARNS_NOTHING = {
    # public bounds, and each record by itself
    "dpcd_sklearn.preprocessing.BoundsScaler": None,
    "dpcd_sklearn.preprocessing.RowNormClipper": None,
    # those that are told all that they would learn: others charge for it
    "dpcd_sklearn.preprocessing.DPOneHotEncoder": None,
    "dpcd_sklearn.preprocessing.DPOrdinalEncoder": None,
    "dpcd_sklearn.preprocessing.DPSimpleImputer": None,
    # formulas for one row (the user's own function gets a note)
    "sklearn.preprocessing.Binarizer": None,
    "sklearn.preprocessing.FunctionTransformer": None,
    "sklearn.preprocessing.Normalizer": None,
    "sklearn.preprocessing.PolynomialFeatures": None,
    "sklearn.kernel_approximation.AdditiveChi2Sampler": None,
    # hashes, no vocabulary
    "sklearn.feature_extraction.FeatureHasher": None,
    "sklearn.feature_extraction.text.HashingVectorizer": None,
    # random matrices of a public shape; a seed of theirs is harmless
    "sklearn.kernel_approximation.PolynomialCountSketch": None,
    "sklearn.random_projection.SparseRandomProjection": _projection,
    # what would be learnt may be stated
    "sklearn.feature_extraction.text.CountVectorizer": _vocabulary,
    "sklearn.feature_extraction.text.TfidfTransformer": _frequencies,
    "sklearn.feature_extraction.text.TfidfVectorizer": lambda params: (
        _vocabulary(params) or _frequencies(params)
    ),
    "sklearn.impute.MissingIndicator": _indicator,
    "sklearn.impute.SimpleImputer": _imputer,
    "sklearn.preprocessing.OneHotEncoder": _encoder,
    "sklearn.preprocessing.OrdinalEncoder": _encoder,
    "sklearn.preprocessing.SplineTransformer": _splines,
}

# They learn nothing, but multiply all rows by one matrix at once: BLAS chooses its kernels by the
# number of rows, so that one record more moves last bits of all, and those that tie flip together.
_BY_BATCH = (
    "sklearn.kernel_approximation.RBFSampler",
    "sklearn.kernel_approximation.SkewedChi2Sampler",
    "sklearn.random_projection.GaussianRandomProjection",
)

_BOUNDS = "dpcd_sklearn.preprocessing.DPStandardScaler, or BoundsScaler with public bounds"
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
_SELECT = "dpcd_sklearn.preprocessing.DPSelectKBest, or columns chosen by public knowledge"
_COMPONENTS = "dpcd_sklearn.preprocessing.DPPCA, or SparseRandomProjection(n_components=10)"
_PROJECT = "columns chosen by public knowledge, or SparseRandomProjection(n_components=10)"
_SKETCH = "PolynomialCountSketch or AdditiveChi2Sampler, which map each row by itself"
_HASH = "HashingVectorizer, or a public vocabulary= (and use_idf=False)"
_SPLINES = "SplineTransformer(knots=[...], extrapolation='constant') with public knots"
_IN_PLACE_OF = {
    _BOUNDS: "StandardScaler MinMaxScaler MaxAbsScaler",
    _ROBUST: "RobustScaler",
    _LAW: "QuantileTransformer PowerTransformer",
    _NUMBER: "OrdinalEncoder",
    _MEAN_OF_TARGET: "TargetEncoder",
    _ENCODE: "OneHotEncoder LabelEncoder LabelBinarizer MultiLabelBinarizer DictVectorizer",
    _IMPUTE: "SimpleImputer KNNImputer IterativeImputer",
    "MissingIndicator(features='all')": "MissingIndicator",
    _SELECT: "SelectKBest SelectPercentile GenericUnivariateSelect",
    _COMPONENTS: "PCA IncrementalPCA TruncatedSVD",
    _PROJECT: "KernelPCA SparsePCA MiniBatchSparsePCA FastICA NMF "
    "FactorAnalysis RFECV SelectFdr SelectFpr SelectFwe SequentialFeatureSelector "
    "VarianceThreshold",
    "SparseRandomProjection(n_components=10), a public number": "GaussianRandomProjection "
    "SparseRandomProjection",
    _SPLINES: "KBinsDiscretizer SplineTransformer",
    _SKETCH: "Nystroem RBFSampler SkewedChi2Sampler",
    _HASH: "CountVectorizer TfidfVectorizer TfidfTransformer",
}
_INSTEAD = {name: advice for advice, names in _IN_PLACE_OF.items() for name in names.split()}


def how_it_learns(name, params):
    """Why a step counts as one that learns from records, or None if it is known not to."""
    if name in _BY_BATCH:
        return "it multiplies all rows at once, and the last bits of each follow how many there are"
    if name not in LEARNS_NOTHING:
        return "it is not among the steps that are known to learn nothing"
    condition = LEARNS_NOTHING[name]
    return condition(params) if condition else None


def what_instead(name):
    """The step that does not learn, in place of one that does."""
    return _INSTEAD.get(
        name.rpartition(".")[2] if name.startswith("sklearn.") else "",
        f"a step that needs public facts only, such as {_BOUNDS}",
    )


def how_one_row_differs(name, params):
    """Why a step maps a table of one row in another way than longer ones, or None."""
    if name == "sklearn.preprocessing.SplineTransformer":
        return "it refuses a row that is alone, which tells one record from two"
    if name == "sklearn.preprocessing.Normalizer" and params.get("norm") != "max":
        return "a row that is alone is summed in another order, which tells one record from two"
    return None


def is_elementwise(function):
    """Whether a function is known to treat each cell by itself."""
    if function is None:
        return True
    of_numbers = isinstance(function, np.ufunc) and any("O" not in kind for kind in function.types)
    return of_numbers and function.signature is None
