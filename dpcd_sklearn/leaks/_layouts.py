"""Where the records may decide whether a result is sparse: plans depend on that, so nobody may.

A table of what steps put out; whatever is not in it may be sparse. A ColumnTransformer compares the
entries of all records with its threshold as soon as one step puts out something sparse, and
publishes the answer as `sparse_output_`, so that changing the layout afterwards would hide nothing.
"""

from scipy.sparse import issparse

from ._learns_nothing import is_elementwise

_AS_GIVEN = {
    "dpcd_sklearn.preprocessing.BoundsScaler",
    "dpcd_sklearn.preprocessing.DPRobustScaler",
    "dpcd_sklearn.preprocessing.DPSelectKBest",
    "dpcd_sklearn.preprocessing.DPSimpleImputer",
    "dpcd_sklearn.preprocessing.DPStandardScaler",
    "dpcd_sklearn.preprocessing.RowNormClipper",
    "sklearn.impute.SimpleImputer",
    "sklearn.kernel_approximation.AdditiveChi2Sampler",
    "sklearn.preprocessing.Binarizer",
    "sklearn.preprocessing.MaxAbsScaler",
    "sklearn.preprocessing.MinMaxScaler",
    "sklearn.preprocessing.Normalizer",
    "sklearn.preprocessing.PolynomialFeatures",
    "sklearn.preprocessing.RobustScaler",
    "sklearn.preprocessing.StandardScaler",
}
# A function each, of the parameters and of what is known of the input: is the result dense?
_IS_DENSE = dict.fromkeys(_AS_GIVEN, lambda params, given: given) | {
    "dpcd_sklearn.preprocessing.DPOneHotEncoder": lambda params, given: (
        params["sparse_output"] is False
    ),
    "dpcd_sklearn.preprocessing.DPOrdinalEncoder": lambda params, given: True,
    "dpcd_sklearn.preprocessing.DPQuantileTransformer": lambda params, given: True,
    "dpcd_sklearn.preprocessing.DPPCA": lambda params, given: True,
    "dpcd_sklearn.preprocessing.DPTargetEncoder": lambda params, given: True,
    "sklearn.impute.MissingIndicator": lambda params, given: (
        params.get("sparse") is False or (params.get("sparse") == "auto" and given)
    ),
    "sklearn.kernel_approximation.PolynomialCountSketch": lambda params, given: True,
    "sklearn.preprocessing.FunctionTransformer": lambda params, given: (
        given and not params.get("kw_args") and is_elementwise(params.get("func"))
    ),
    "sklearn.preprocessing.OneHotEncoder": lambda params, given: params["sparse_output"] is False,
    "sklearn.preprocessing.OrdinalEncoder": lambda params, given: True,
    "sklearn.preprocessing.SplineTransformer": lambda params, given: (
        params["sparse_output"] is False
    ),
    "sklearn.random_projection.SparseRandomProjection": lambda params, given: (
        given or params.get("dense_output") is True
    ),
}


def may_be_sparse(X):
    """Whether records are sparse as a whole, or columns of their frame are."""
    kinds = getattr(X, "dtypes", ()) if hasattr(X, "iloc") else ()
    return issparse(X) or any(type(kind).__name__ == "SparseDtype" for kind in kinds)


def density_decides(part, dense):
    """Whether a part of an object chooses its layout by the entries of all records.

    Parameters
    ----------
    part : Part
    dense : bool
        Whether X of the whole object is known to be dense.
    """
    if part.short != "ColumnTransformer" or part.get("sparse_threshold") == 0:
        return False
    return not _puts_out_dense(part, _given_dense(part, dense))


def _given_dense(part, dense):
    """Whether what a part is given is dense for sure."""
    if part.parent is None:
        return dense
    given = _given_dense(part.parent, dense)
    if _is_sequence(part.parent):
        for before in part.parent.parts:
            if before.key == part.key:  # itself, or as a candidate of a search
                break
            given = _puts_out_dense(before, given)
    return given


def _is_sequence(part):
    has_steps = part.shares and part.short != "DPColumnTransformer"
    return has_steps or part.name == "sklearn.pipeline.Pipeline"


def _puts_out_dense(part, given):
    if _is_sequence(part):
        for inner in part.parts:
            given = _puts_out_dense(inner, given)
        return given
    if part.name == "dpcd_sklearn.compose.DPColumnTransformer":
        return True
    if part.name in ("sklearn.compose.ColumnTransformer", "sklearn.pipeline.FeatureUnion"):
        stacked = all(_puts_out_dense(inner, given) for inner in part.parts)
        return part.get("sparse_threshold") == 0 or (stacked and (given or not _passes_on(part)))
    known = _IS_DENSE.get(part.name)
    return bool(known and known(part.params, given))


def _passes_on(part):
    """Whether some columns go through a ColumnTransformer or a FeatureUnion as they are."""
    steps = part.get("transformers") or part.get("transformer_list")
    return "passthrough" in (part.get("remainder"), *(step[1] for step in steps if len(step) > 1))
