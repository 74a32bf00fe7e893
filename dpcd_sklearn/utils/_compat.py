"""Differences between scikit-learn's versions, and the few private names that we need."""

# ruff: noqa: F401 (others import these names from here)

import sys
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from sklearn.base import _clone_parametrized as clone_parametrized
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, validate_parameter_constraints
from sklearn.utils._param_validation import StrOptions as _UnsortedStrOptions
from sklearn.utils._unique import attach_unique, cached_unique
from sklearn.utils.validation import _check_sample_weight
from sklearn.utils.validation import _num_samples as num_samples

from ._cells import on_host
from ._input import read_input

MYPY = False  # which mypy takes to be True
if MYPY:
    # it finds no types in scikit-learn, and lets a dataclass of unknown bases take any parameter
    class BaseEstimator:
        def __getattr__(self, name: str) -> Any: ...

    class CallbackSupportMixin: ...

    class ClassifierMixin: ...

    class ColumnTransformer(BaseEstimator): ...

    class MetaEstimatorMixin: ...

    class OneToOneFeatureMixin: ...

    class Pipeline(BaseEstimator): ...

    class RegressorMixin: ...

    class TransformerMixin: ...
else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
    )
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    try:
        from sklearn.callback import CallbackSupportMixin, ScoringMonitor
    except ImportError:  # before 1.9

        class CallbackSupportMixin:
            """Where scikit-learn has no callbacks none can be set."""

        ScoringMonitor = ()  # no object is an instance of it


if TYPE_CHECKING:  # a decorated method has the type that it was written with
    from collections.abc import Callable
    from typing import TypeVar

    _Method = TypeVar("_Method", bound=Callable[..., object])

    def available_if(check: Callable[..., object]) -> Callable[[_Method], _Method]: ...
    def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]: ...
else:
    from sklearn.base import _fit_context as fit_context
    from sklearn.utils.metaestimators import available_if


class StrOptions(_UnsortedStrOptions):
    """scikit-learn's constraint, whose error lists words in their order and not that of hashes."""

    def __init__(self, options):
        super().__init__(dict.fromkeys(sorted(options)).keys())


_SKLEARN = str(Path(sklearn.__file__).parent)


def held_by_callers(*names):
    """Values of local variables of scikit-learn's functions that are running, innermost first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        if frame.f_code.co_filename.startswith(_SKLEARN):
            found += [frame.f_locals.get(name) for name in names]
        frame = frame.f_back
    return [value for value in found if value is not None]


# Its versions before 1.9 admit weights that are all zero.
_ALL_ZERO = {"allow_all_zero_weights": True}
if not _ALL_ZERO.keys() <= signature(_check_sample_weight).parameters.keys():
    _ALL_ZERO = {}


def check_sample_weight(sample_weight, X, *, of_all=True):
    """Return weights as a float64 array of shape (n_samples,), or None for no weights.

    They are of all records, one of which must count, unless `of_all` is False.

    Raises
    ------
    TypeError, ValueError
        If a weight is no number, negative or not finite, if all are zero, or the shape is wrong:
        promises about the domain; the message quotes none. scikit-learn's checks ask for an error
        where all are zero; its versions before 1.9 have none.
    """
    if sample_weight is None:
        return None
    sample_weight = on_host(sample_weight)
    weights = read_input(
        _check_sample_weight,
        sample_weight,
        X,
        dtype=np.float64,
        ensure_non_negative=True,
        name="sample_weight",
        **({} if of_all else _ALL_ZERO),
    )
    if of_all and not weights.any():
        raise ValueError("sample_weight is zero for every record; at least one must be positive")
    return np.ascontiguousarray(weights)
