"""Public facts about the output of a step, whatever the records: bounds, and norms of rows.

A table of steps; of what is not in it nothing is known. Only the parameters and shapes of a fitted
step are looked at, or what it has released.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse
from sklearn import preprocessing
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ..preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPQuantileTransformer,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    RowNormClipper,
)
from ..preprocessing._columns import stated_target
from ..preprocessing._quantile_steps import NORMAL_BOUND
from ..privacy.ledger._rehearsal import fit_up_to_charge
from ..privacy.sums._tables import category_of
from ..utils._cells import columns_in, is_frame
from ..utils._compat import safe_indexing
from ..utils._input import read_table
from ..utils._public import check_bounds, width_of
from ._budget_of_step import copy_of


class StandIn(TransformerMixin, BaseEstimator):
    """Takes the place of a private step while a pipeline is planned, and keeps what it was given.

    Its output has the width, layout, dtype and column names that the step's output will have. Its
    cells are constants, whatever the records are; where the step passes cells on as they are
    (imputers) it passes them too. Whether a next step takes the constants that the most
    frequent values fall back to must not depend on whether a cell is missing, so the first row is
    these. Given a list of those that were `fitted` before, all but the first of them refuse what
    their steps would before a charge; the first step charges for all, after its own refusals.
    """

    def __init__(self, name, of, fitted=None):
        says_width = isinstance(of, OneToOneFeatureMixin) or hasattr(of, "_keep_without_records")
        if hasattr(of, "transform") and not says_width:
            raise ValueError(
                f"step {name!r} does not say how many features it puts out before it is fitted, so "
                "what comes after it can't be planned; only private steps that keep the number of "
                "features (OneToOneFeatureMixin), or have a public one (_keep_without_records), "
                "may stand before others"
            )
        self.name, self.of, self.fitted = name, of, fitted
        self.sparse, self.n_features_in_, self.fills = False, None, None
        if hasattr(of, "_sklearn_output_config"):
            self.set_output(transform=of._sklearn_output_config["transform"])

    def fit(self, X, y=None, **params):
        self.sparse, step = issparse(X), copy_of(self.of)
        if self.fitted:
            fit_up_to_charge(step, step, X, y, **params)
        elif hasattr(step, "transform"):
            refuse_sparse(self.name, step, X)
            step._validate_params()
            step._read(X, reset=True)
        if self.fitted is not None:
            self.fitted.append(self)
        if hasattr(step, "_keep_without_records"):
            step._keep_without_records()
        if getattr(step, "strategy", None) == "most_frequent":
            self.fills = step.set_output(transform="default").statistics_
        self.step_, self.n_features_in_ = step, getattr(step, "n_features_in_", None)
        return self

    def transform(self, X):
        step = self.step_
        if isinstance(step, DPSimpleImputer):
            found = step.transform(X)  # of cells that are passed on
            if self.fills is not None:
                found[0, : len(self.fills)] = self.fills  # indicators are behind them
            return found
        X, n_samples = read_table(X)
        rows = first_rows(X, whole=False)
        if hasattr(step, "_refuse_large_output"):
            step._refuse_large_output(n_samples, self.n_features_in_)
        maps = hasattr(step, "_keep_without_records")  # else it puts out as many columns
        first = step.transform(rows) if maps else step._read(rows, reset=False)
        shape = n_samples, width_of(first)
        if issparse(first):
            return type(first)(shape, dtype=first.dtype)
        # of numbers a half, which roots, logarithms and quotients behind it take as well
        cell = 0.0 if hasattr(self.of, "categories") else 0.5
        return np.full(shape, cell, dtype=np.asarray(first).dtype)

    def get_feature_names_out(self, input_features=None):
        return self.step_.get_feature_names_out(input_features)

    def get_params(self, deep=True):
        return {}  # nothing in it is private

    def get_metadata_routing(self):
        return self.of.get_metadata_routing()  # whatever the step asks for is tried too

    def __sklearn_clone__(self):
        return self  # so that who clones its parts fits this very one


def refuse_sparse(name, step, X):
    """Refuse sparse records that a step does not take: it would do so after the charge."""
    if issparse(X) and not get_tags(step).input_tags.sparse:
        raise ValueError(
            f"step {name!r} takes no sparse records as its parameters are: pass X.toarray(), or "
            "with_centering=False to a scaler, whose centring makes them dense"
        )


def is_present(cell):
    """Whether a cell is not missing."""
    try:
        return category_of(cell) is not None
    except TypeError:  # no category, but something
        return True


def first_rows(X, whole):
    """The rows of a table, as `read_table` reads it, that copies of public steps are tried on.

    They are two, and one with a present cell for each column that lacks one there.
    """
    if whole:
        return X
    X = X.tocsr() if issparse(X) else X
    return safe_indexing(X, [*range(min(2, X.shape[0])), *_first_present(X)])


def _first_present(X):
    """Numbers of rows with the first present cell of each column, where cells may be words."""
    words = is_frame(X) or (isinstance(X, np.ndarray) and X.dtype.kind not in "biufc")
    if hasattr(X, "__dask_graph__") or not words:
        return []
    found = set()
    for cells in columns_in(X):
        found.add(next((i for i, cell in enumerate(cells) if is_present(cell)), 0))
    return sorted(found - {0, 1})


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Public facts about records of so many features.

    Attributes
    ----------
    n_features : int
    bounds : tuple (lo, hi) of ndarrays of shape (n_features,), or None
    row_norm : float or None
        No row is longer.
    fills_bounds : bool
        Whether the bounds are as wide as the records are, so that nothing narrower is looked for.
    """

    n_features: int
    bounds: tuple | None = None
    row_norm: float | None = None
    fills_bounds: bool = False

    @property
    def square(self):
        """Bound on the squared norm of a record, of which bounds are known."""
        lo, hi = self.bounds
        square = float((np.maximum(np.abs(lo), np.abs(hi)) ** 2).sum())
        return square if self.row_norm is None else min(square, self.row_norm**2)

    def stated(self):
        """As parameters of a model: those that say something."""
        stated = {}
        if self.bounds is not None:
            lo, hi = self.bounds
            same = (lo == lo[0]).all() and (hi == hi[0]).all()
            stated["feature_bounds"] = (float(lo[0]), float(hi[0])) if same else (lo, hi)
        if self.row_norm is not None:
            stated["row_norm_bound"] = self.row_norm
        if self.fills_bounds:
            stated["feature_scale"] = 1.0
        return stated


def _within(n_features, lo, hi):
    return PublicFacts(n_features, (np.full(n_features, lo), np.full(n_features, hi)))


def facts_after(step, before, n_features):
    """Facts about the output of a fitted step, which has `n_features`.

    Parameters
    ----------
    step : transformer, fitted; of private ones the parameters are enough
    before : PublicFacts
        About what it was given.
    n_features : int
    """
    for kind, rule in _RULES.items():
        if type(step) is kind:  # an heir may do anything
            return rule(step, before, n_features)
    if isinstance(step, ColumnTransformer) and hasattr(step, "shares_one_budget"):
        return _after_columns(step, before, n_features)  # that of this package, told all
    return PublicFacts(n_features)


def _after_bounds_scaler(step, before, n_features):
    divisor = np.where(step.half_width_ > 0, step.half_width_, 1.0)
    lo, hi = ((edge - step.center_) / divisor for edge in (step.lo_, step.hi_))
    return PublicFacts(n_features, (np.clip(lo, -1.0, 1.0), np.clip(hi, -1.0, 1.0)))


def _after_indicators(step, before, n_features):
    """Each column of categories becomes a one at most; columns without records are zero."""
    norm = math.sqrt(before.n_features) if before.n_features else None
    facts = replace(_within(n_features, 0.0, 1.0), row_norm=norm, fills_bounds=True)
    if len(without := getattr(step, "_has_no_records", ())) == n_features:  # it is fitted
        facts.bounds[1][without] = 0.0
    return facts


def _after_numbers_of_categories(step, before, n_features):
    stated = step.categories
    if isinstance(stated, dict):  # of which columns, names say
        return PublicFacts(n_features)
    stated = ["auto"] * n_features if isinstance(stated, str) else stated
    most = [step.max_categories - 1 if isinstance(c, str) else len(c) for c in stated]
    if len(most) != n_features:
        return PublicFacts(n_features)
    return PublicFacts(n_features, (np.zeros(n_features), np.array(most, dtype=float)))


def _after_quantiles(step, before, n_features):
    if step.output_distribution == "normal":
        return _within(n_features, -NORMAL_BOUND, NORMAL_BOUND)
    return replace(_within(n_features, 0.0, 1.0), fills_bounds=True)


def _after_imputer(step, before, n_features):
    """Bounds that are stated are kept; indicators lie in [0, 1]."""
    n_numbers = n_features // 2 if step.add_indicator else n_features
    stated = step.feature_bounds
    if stated is None or isinstance(stated, dict):
        return PublicFacts(n_features)
    lo, hi = check_bounds(stated, n_numbers)
    n_more = n_features - n_numbers
    return PublicFacts(n_features, (np.append(lo, [0.0] * n_more), np.append(hi, [1.0] * n_more)))


def _after_selection(step, before, n_features):
    """Some of the columns, nobody knows which before a fit."""
    if before.bounds is None:
        return replace(before, n_features=n_features)
    lo, hi = before.bounds
    return replace(
        before,
        n_features=n_features,
        bounds=(np.full(n_features, lo.min()), np.full(n_features, hi.max())),
    )


def _after_means_of_target(step, before, n_features):
    labels, bounds = stated_target(step)
    return _within(n_features, *((0.0, 1.0) if bounds is None else bounds))


def _after_row_norm_clipper(step, before, n_features):
    norm = float(step.norm) if before.row_norm is None else min(before.row_norm, float(step.norm))
    if before.bounds is None:
        return replace(before, row_norm=norm)
    lo, hi = before.bounds  # a shorter row lies between the longer one and zero
    inside = np.minimum(lo, 0.0), np.maximum(hi, 0.0)
    return PublicFacts(n_features, inside, norm, fills_bounds=True)


def _after_normalizer(step, before, n_features):
    if step.norm == "max":
        return _within(n_features, -1.0, 1.0)
    return PublicFacts(n_features, row_norm=1.0)  # euclidean, or the sum of magnitudes


def _after_polynomials(step, before, n_features):
    if before.bounds is None or max(np.abs(side).max() for side in before.bounds) > 1.0:
        return PublicFacts(n_features)
    return _within(n_features, -1.0, 1.0)


def _after_columns(step, before, n_features):
    if n_features == 0:  # then it has no output_indices_
        return PublicFacts(0)
    lo, hi = np.empty(n_features), np.empty(n_features)
    fills_bounds, square, has_norm = True, 0.0, False
    for name, inner, columns in step.transformers_:
        here = step.output_indices_[name]
        width = here.stop - here.start
        if width == 0:
            continue
        known = facts_after(inner, _of_columns(step, columns, before), width)
        if known.bounds is None:
            return PublicFacts(n_features)
        lo[here], hi[here] = known.bounds
        fills_bounds = fills_bounds and known.fills_bounds
        has_norm = has_norm or known.row_norm is not None
        square += known.square
    row_norm = math.sqrt(square) if has_norm else None
    return PublicFacts(n_features, (lo, hi), row_norm, fills_bounds)


def _of_columns(step, columns, before):
    """Facts about the columns that a part of a ColumnTransformer is given."""
    names = list(getattr(step, "feature_names_in_", ()))
    listed = [columns] if isinstance(columns, str) else columns
    try:
        if isinstance(listed, (list, np.ndarray)) and all(isinstance(one, str) for one in listed):
            listed = [names.index(name) for name in listed]
        at = np.atleast_1d(np.arange(before.n_features)[listed])
    except (IndexError, TypeError, ValueError):
        return PublicFacts(0)  # nothing is known of columns that are chosen in another way
    if before.bounds is None:
        return PublicFacts(len(at))
    lo, hi = before.bounds
    return PublicFacts(len(at), (lo[at], hi[at]), fills_bounds=before.fills_bounds)


def _after_pipeline(step, before, n_features):
    inner = [part for _, part in step.steps if part not in (None, "passthrough")]
    # what one puts out is what the next takes in
    widths = [getattr(part, "n_features_in_", None) for part in inner[1:]]
    facts = before
    for part, width in zip(inner, [*widths, n_features], strict=True):
        if width is None:
            return PublicFacts(n_features)
        facts = facts_after(part, facts, width)
    return facts


_RULES = {
    BoundsScaler: _after_bounds_scaler,
    DPOneHotEncoder: _after_indicators,
    DPOrdinalEncoder: _after_numbers_of_categories,
    DPQuantileTransformer: _after_quantiles,
    DPSelectKBest: _after_selection,
    DPSimpleImputer: _after_imputer,
    DPStandardScaler: lambda step, before, n: replace(_within(n, -1.0, 1.0), fills_bounds=True),
    DPTargetEncoder: _after_means_of_target,
    RowNormClipper: _after_row_norm_clipper,
    preprocessing.Normalizer: _after_normalizer,
    preprocessing.OneHotEncoder: _after_indicators,
    StandIn: lambda step, before, n: facts_after(step.of, before, n),
    MissingIndicator: lambda step, before, n: _within(n, 0.0, 1.0),
    preprocessing.Binarizer: lambda step, before, n: _within(n, 0.0, 1.0),
    preprocessing.PolynomialFeatures: _after_polynomials,
    preprocessing.FunctionTransformer: lambda step, before, n: (
        before if step.func is None else PublicFacts(n)
    ),
    FrozenEstimator: lambda step, before, n: facts_after(step.estimator, before, n),
    ColumnTransformer: _after_columns,
    Pipeline: _after_pipeline,
}
