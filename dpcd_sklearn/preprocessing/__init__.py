"""Preprocessing whose cost in privacy is known: nothing, or what it charges."""

from ._bounded_scalers import BoundsScaler, DPStandardScaler
from ._fewer_columns import DPPCA, DPSelectKBest
from ._one_hot_encoder import DPOneHotEncoder, DPOrdinalEncoder
from ._piecewise_exponential import PiecewiseExponential
from ._quantile_steps import DPQuantileTransformer, DPRobustScaler
from ._row_norm_clipper import RowNormClipper
from ._simple_imputer import DPSimpleImputer
from ._target_encoder import DPTargetEncoder

__all__ = ["DPPCA", "BoundsScaler", "DPOneHotEncoder", "DPOrdinalEncoder"]
__all__ += ["DPQuantileTransformer", "DPRobustScaler", "DPSelectKBest", "DPSimpleImputer"]
__all__ += ["DPStandardScaler", "DPTargetEncoder", "PiecewiseExponential", "RowNormClipper"]
