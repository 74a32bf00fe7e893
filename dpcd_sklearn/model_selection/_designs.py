"""Candidates whose columns are of one union: a fit of the union is enough to choose among them.

The steps in which they differ select columns, or multiply them: each column that they put out is a
product of columns that go in, which parameters alone tell.
"""

from dataclasses import dataclass
from itertools import chain
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from ..linear_model._private_linear_model import PrivateLinearModel
from ..linear_model._strengths import can_choose, keep_columns
from ..pipeline._joint_plan import walked
from ..pipeline._public_facts import first_rows, width_of

_PASSES_ON = (None, "passthrough")
_MOST = 2_000  # columns of all products that are made on the way to those of the union


@dataclass(frozen=True)
class Union:
    """All columns that several candidates have.

    Attributes
    ----------
    pipeline : Pipeline or None
        It chooses among them; None where they are more than are made.
    start : int
        Number of the first step in which they differ.
    designs : list of list of tuple
        For each candidate its columns: the numbers of those of which one is the product.
    """

    pipeline: object
    start: int
    designs: list

    @property
    def is_one(self):
        """Whether they all have the same columns."""
        return len(set(map(frozenset, self.designs))) == 1

    @property
    def degrees(self):
        """How many columns the longest product of each candidate has."""
        return [max(map(len, one), default=0) for one in self.designs]


def union_of(models, differ, columns):
    """The union of the columns of candidates that differ in these parameters, or None."""
    model = models[0]
    if not isinstance(model, Pipeline) or issparse(columns):
        return None
    names, last = [name for name, _ in model.steps], model.steps[-1][1]
    heads = {name.partition("__")[0] for name in differ}
    if not heads <= set(names[:-1]) or not isinstance(last, PrivateLinearModel):
        return None
    bounds = np.ndim(last.feature_bounds) if last.feature_bounds is not None else 1
    if not can_choose(last, columns=True) or last.row_norm_bound is not None or bounds != 1:
        return None
    start = min(map(names.index, heads))
    try:
        rows = _rows_before(model, start, columns)
        designs = [_products(one.steps[start:-1], rows) for one in models]
    except (TypeError, ValueError, KeyError, IndexError):  # a step says what is wrong of it
        return None
    if None in designs or any(len(set(one)) < len(one) for one in designs):
        return None
    steps, found = _made_of(list(dict.fromkeys(chain(*designs))), width_of(rows))
    if steps is None:
        return Union(None, start, designs)
    union = clone(model)
    union.steps = [*union.steps[:start], *steps, union.steps[-1]]
    union.steps[-1][1]._designs = tuple(tuple(map(found.index, one)) for one in designs)
    return Union(union, start, designs)


def _rows_before(model, start, columns):
    """Made-up rows with the columns that go into a step: their numbers, by which they are known."""
    if start:
        made_up = np.zeros((2, columns)) if isinstance(columns, Integral) else columns
        steps = [*model.steps[:start], model.steps[-1]]
        steps = [(name, step) for name, step in steps if step not in _PASSES_ON]
        given = walked(steps, made_up, dict.fromkeys((n for n, _ in steps), 1.0))[-1].columns
        return np.arange(width_of(given))[np.newaxis]
    if hasattr(columns, "columns"):
        return _frame_like(columns, range(width_of(columns)))
    return np.arange(width_of(columns))[np.newaxis]


def _products(steps, rows):
    """For each column that steps put out the columns of which it is the product; None if it isn't.

    `rows` is one row of the numbers of columns.
    """
    found = [(j,) for j in range(width_of(rows))]
    for _, step in steps:
        if step in _PASSES_ON:
            continue
        if type(step) is ColumnTransformer:
            if not _selects(step):
                return None
            routed = clone(step).fit_transform(rows)
            found = [found[int(j)] for j in np.ravel(np.asarray(routed))]
        elif type(step) is PolynomialFeatures:
            powers = clone(step).fit(np.zeros((1, len(found)))).powers_
            found = [_product(found, one) for one in powers]
        else:
            return None
        rows = np.arange(len(found))[np.newaxis]
    return found


def _selects(step):
    """Whether a ColumnTransformer passes columns on by name or number, and does nothing else."""
    parts = [part for _, part, _ in step.transformers] + [step.remainder]
    known = all(isinstance(part, str) and part in ("passthrough", "drop") for part in parts)
    return known and not any(callable(columns) for *_, columns in step.transformers)


def _product(factors, powers):
    return tuple(sorted(chain(*(one * int(k) for one, k in zip(factors, powers, strict=True)))))


def _made_of(products, n_columns):
    """Steps of scikit-learn that make these products of columns, and their order then."""
    base = sorted(set(chain(*products)))
    if not base:  # nothing but a constant
        return None, None
    steps, made = [], [(j,) for j in base]
    if len(base) < n_columns:
        steps.append(("columns", _selection(base)))
    degree = max(map(len, products))
    if degree > 1 or () in products:
        only = all(len(set(one)) == len(one) for one in products)
        products_of = PolynomialFeatures(degree, interaction_only=only, include_bias=() in products)
        products_of.fit(np.zeros((1, len(base))))
        if products_of.n_output_features_ > _MOST:
            return None, None
        steps.append(("products", products_of))
        made = [_product(made, one) for one in products_of.powers_]
    if len(made) > len(products):
        kept = [j for j, one in enumerate(made) if one in set(products)]
        steps.append(("union", _selection(kept)))
        made = [made[j] for j in kept]
    return steps, made


def _selection(columns):
    return ColumnTransformer([("kept", "passthrough", columns)], sparse_threshold=0)


def take_columns(union, start, candidate, X):
    """Make a fitted pipeline of a union the candidate whose columns were chosen, in place.

    `start` is the first step in which candidates differ; two rows of X tell what columns reach it.
    """
    shared, last = union.steps[:start], union.steps[-1]
    rows, _ = first_rows(X, whole=False)
    for _, step in shared:
        rows = rows if step in _PASSES_ON else step.transform(rows)
    zeros = np.zeros(width_of(rows))
    rows = _frame_like(rows, zeros) if hasattr(rows, "columns") else zeros[np.newaxis]
    own = clone(candidate).steps[start:-1]
    for _, step in own:
        rows = rows if step in _PASSES_ON else step.fit_transform(rows)
    names = np.asarray(rows.columns, dtype=object) if hasattr(rows, "columns") else None
    keep_columns(last[1], names)
    union.steps = [*shared, *own, last]


def _frame_like(rows, cells):
    """A data frame of one row with the same columns."""
    return type(rows)({name: [float(cell)] for name, cell in zip(rows.columns, cells, strict=True)})
