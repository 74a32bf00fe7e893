"""Tables and tests of a fitted private pipeline, and the pipeline as scikit-learn's own steps.

Indicators of an encoder are other columns in those: none for what is unused or infrequent. A
category that is not known is a row of zeros, so the model that follows has the infrequent
category's coefficient in its intercept, and those of the others less by it.
"""

from copy import copy, deepcopy

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..preprocessing import DPOneHotEncoder, DPSimpleImputer
from ..preprocessing._bounded_scalers import BoundedMap
from ..utils._compat import available_if
from ..utils._typing import ArrayLike
from ._budget_of_step import is_private
from ._joint_plan import names_at_the_end
from ._public_facts import is_present


class InferenceOfModel:
    """Tables and tests of the last step, of a pipeline that has one."""

    @available_if(lambda self: hasattr(self.steps[-1][1], "summary"))
    def summary(self, level: float = 0.95, method: str | None = None):
        """The table of the last step's coefficients, by the names of the columns that reached it.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Level of the intervals.
        method : {"fdr_bh", "fdr_by"}, default=None
            By which p-values are adjusted for their number.

        Returns
        -------
        summary : object
            As of the last step, which was fitted with ``inference=True``.

        Raises
        ------
        TypeError, ValueError
            If the level is not in (0, 1), there is no such method, or the fit was made without
            `inference`.
        """
        return self._named_model().summary(level, method)

    @available_if(lambda self: hasattr(self.steps[-1][1], "wald_test"))
    def wald_test(self, R: ArrayLike, r: ArrayLike | None = None) -> tuple[float, float]:
        """Wald test of the last step's coefficients, by the names of the columns that reached it.

        Parameters
        ----------
        R, r : as of the last step

        Returns
        -------
        statistic, p_value : float

        Raises
        ------
        ValueError
            As of the last step.
        """
        return self._named_model().wald_test(R, r)

    @available_if(lambda self: hasattr(self.steps[-1][1], "bic_difference"))
    def bic_difference(self, R: ArrayLike) -> tuple[float, float]:
        """As of the last step, by the names of the columns that reached it.

        Parameters
        ----------
        R : as of the last step

        Returns
        -------
        difference, std : float

        Raises
        ------
        ValueError
            As of the last step.
        """
        return self._named_model().bic_difference(R)

    def _named_model(self):
        """The last step, which knows the names of the columns that reached it."""
        model = copy(self.steps[-1][1])
        if not hasattr(model, "feature_names_in_") and (names := names_at_the_end(self)):
            model.feature_names_in_ = names
        return model


# ---- A fitted private pipeline as scikit-learn's own steps ---------------------------------------


class LeavesAsPlain:
    """How a private pipeline leaves the package."""

    @available_if(lambda self: hasattr(self.steps[-1][1], "to_sklearn"))
    def to_sklearn(self, *, clip: bool = True) -> Pipeline:
        """Return this pipeline as a fitted Pipeline of scikit-learn's own steps.

        It is for tools that take scikit-learn's classes and ask for the whole. It is made of what
        was released, so it costs nothing; a new fit of it is not private. Predictions are the same
        up to rounding. Scalers clip there too, and the columns of encoders are those of known
        categories alone: coefficients are beside that of the infrequent category.

        Parameters
        ----------
        clip : bool, default=True
            As of the model's `to_sklearn`: False gives scikit-learn's class itself, and
            `clip_reach` says how far a prediction may move by that.

        Returns
        -------
        pipeline : Pipeline
            Of MinMaxScaler, SimpleImputer, OneHotEncoder, ColumnTransformer, steps of scikit-learn
            as they are, and the model's `to_sklearn`.

        Raises
        ------
        TypeError, ValueError
            If a step has no counterpart: of this package all but BoundsScaler, DPStandardScaler,
            DPSimpleImputer, DPOneHotEncoder and column transformers of these.
        """
        *steps, (last, model) = self.steps
        check_is_fitted(model, "coef_")
        plain, columns = _plain_steps(steps)
        return Pipeline([*plain, (last, _plain_model(model, columns, clip))])

    @available_if(lambda self: hasattr(self.steps[-1][1], "clip_reach"))
    def clip_reach(self) -> float | np.ndarray:
        """How far ``to_sklearn(clip=False)`` may move a prediction.

        Returns
        -------
        reach : float, or ndarray of shape (n_outputs,)
            As of the last step, within the bounds that the steps before it made public: scalers
            clip to them in both pipelines. Infinite where they made none public.
        """
        name, last = self.steps[-1]
        check_is_fitted(last, "coef_")
        bounds = self.told_.get(name, {}).get("feature_bounds", last.feature_bounds)
        return last._reach(None) if bounds is None else last.clip_reach(bounds)


class _Columns:
    """How the columns of a private step follow from those of its plain one.

    Parameters
    ----------
    matrix : ndarray of shape (n_plain, n_private)
    offset : ndarray of shape (n_private,)
        Private columns are plain ones times the matrix, and this.
    is_indicator : ndarray of bool, shape (n_private,)
    """

    def __init__(self, matrix, offset, is_indicator):
        self.matrix, self.offset, self.is_indicator = matrix, offset, is_indicator

    @classmethod
    def same(cls, width):
        return cls(np.eye(width), np.zeros(width), np.zeros(width, dtype=bool))

    @classmethod
    def of(cls, parts, width):
        """Those of several steps beside each other; of each the slice of private columns."""
        sizes = [len(part.matrix) for part, _ in parts]
        found = cls(np.zeros((sum(sizes), width)), np.zeros(width), np.zeros(width, dtype=bool))
        for (part, place), end in zip(parts, np.cumsum(sizes), strict=True):
            found.matrix[end - len(part.matrix) : end, place] = part.matrix
            found.offset[place], found.is_indicator[place] = part.offset, part.is_indicator
        return found


def _plain_steps(steps):
    plain, columns = [], None
    for name, step in steps:
        if columns is not None:
            raise ValueError(
                f"step {name!r} comes after an encoder, whose columns are others in scikit-learn's "
                "own; only a linear model may follow it"
            )
        found, columns = _plain(name, step)
        plain.append((name, found))
    return plain, columns


def _plain(name, step):
    """scikit-learn's step, and its _Columns where they are others."""
    if isinstance(step, DPOneHotEncoder):
        return _plain_encoder(name, step)
    if isinstance(step, ColumnTransformer):
        return _plain_transformer(step)
    if isinstance(step, Pipeline):
        plain, columns = _plain_steps(step.steps)
        return Pipeline(plain), columns
    if isinstance(step, BoundedMap):
        return _named(_scaler(name, *step._map()), step), None
    if isinstance(step, DPSimpleImputer):
        return _plain_imputer(name, step), None
    if is_private(step) or type(step).__module__.startswith("dpcd_sklearn."):
        raise TypeError(f"step {name!r}, a {type(step).__name__}, has no plain counterpart")
    return deepcopy(step), None


def _named(plain, step):
    if hasattr(step, "feature_names_in_"):
        plain.feature_names_in_ = deepcopy(step.feature_names_in_)
    return plain


def _scaler(name, lo, hi, center, half_width):
    """A MinMaxScaler that clips to bounds."""
    varies = half_width > 0
    divisor = np.where(varies, half_width, 1.0)
    if not np.array_equal(np.where(varies, (lo - center) / divisor, -1.0), -np.ones(len(lo))):
        raise ValueError(f"step {name!r} has with_centering=False: no plain step clips like that")
    plain = MinMaxScaler((-1, 1), clip=True).fit(np.stack([lo, hi]))
    plain.scale_ = np.where(varies, 1 / divisor, 0.0)
    plain.min_ = np.where(varies, -center / divisor, 0.0)
    return plain


def _plain_imputer(name, step):
    if step.add_indicator:
        raise ValueError(f"step {name!r} has add_indicator=True, which no plain step repeats")
    if step._of_words:
        row = np.array([*step.statistics_, None], dtype=object)[:-1]
        return _named(SimpleImputer(strategy="most_frequent").fit(row[np.newaxis]), step)
    plain = SimpleImputer().fit(step.statistics_[np.newaxis])
    bounds = step._stated_bounds()
    if bounds is None:
        return _named(plain, step)
    lo, hi = bounds
    center, half_width = lo / 2 + hi / 2, hi / 2 - lo / 2
    back = StandardScaler().fit(np.stack([lo, hi]))
    back.scale_ = np.where(half_width > 0, 1 / np.where(half_width > 0, half_width, 1.0), 1.0)
    back.mean_ = -center * back.scale_
    steps = [("fill", _named(plain, step)), ("clip", _scaler(name, lo, hi, center, half_width))]
    return Pipeline([*steps, ("back", back)])


def _plain_encoder(name, step):
    check_is_fitted(step, "categories_")
    categories, parts, start = [], [], 0
    for known, width in zip(step.categories_, step._widths, strict=True):
        if not len(known):
            raise ValueError(f"step {name!r} has a column of which it learnt no category")
        codes = {code: word for code, word in enumerate(known) if is_present(word)}
        numbers = not any(isinstance(word, str) for word in codes.values())
        order = sorted(codes, key=codes.get) if numbers else [*codes]
        words = [codes[code] for code in order]
        if gap := [code for code in range(len(known)) if code not in codes]:
            missing = [np.nan] if numbers else [None, np.nan]  # of both kinds, the last ones
            words, order = words + missing, order + gap * len(missing)
        categories.append(np.array(words, dtype=None if numbers else object))
        columns = _Columns(np.zeros((len(words), width)), np.zeros(width), np.ones(width, bool))
        for k, code in enumerate(order):
            if code >= step._n_dropped:
                columns.matrix[k, code - step._n_dropped] = 1.0
        if step._has_infrequent:
            columns.matrix[:, len(known) - step._n_dropped] -= 1.0
            columns.offset[len(known) - step._n_dropped] = 1.0
        parts.append((columns, slice(start, start + width)))
        start += width
    plain = OneHotEncoder(
        categories=categories, handle_unknown="ignore", sparse_output=step.sparse_output
    )
    row = np.array([[*(known[0] for known in categories), None]], dtype=object)[:, :-1]
    plain.fit(row).categories_ = categories  # each in its own dtype
    return _named(plain, step), _Columns.of(parts, start)


def _plain_transformer(step):
    plain = ColumnTransformer(
        step.transformers,
        remainder=step.remainder,
        sparse_threshold=step.sparse_threshold,
        verbose_feature_names_out=step.verbose_feature_names_out,
    )
    fitted = {name: value for name, value in vars(step).items() if name.startswith("_")}
    fitted |= {name: value for name, value in vars(step).items() if name.endswith("_")}
    own = ("privacy_", "shares_", "told_")
    fitted = {name: value for name, value in fitted.items() if not name.startswith(own)}
    vars(plain).update(deepcopy(fitted))
    converted, parts, start = [], [], 0
    for name, one, columns in step.transformers_:
        place = step.output_indices_[name]
        width = place.stop - place.start
        found, own = (one, None) if isinstance(one, str) else _plain(name, one)
        own = own or _Columns.same(width)
        converted.append((name, found, columns))
        parts.append((own, place))
        if width:
            plain.output_indices_[name] = slice(start, start + len(own.matrix))
        start += len(own.matrix)
    plain.transformers_ = converted
    plain.transformers = [one for one in converted if one[0] != "remainder"]
    width = max(place.stop for place in step.output_indices_.values())
    parts = [(own, place) for own, place in parts if place.stop > place.start]
    return plain, _Columns.of(parts, width)


def _plain_model(model, columns, clip):
    plain = model.to_sklearn(clip=clip)
    if columns is None:
        return plain
    coef = np.atleast_2d(plain.coef_).astype(np.float64)
    shape = np.shape(plain.coef_)[:-1]
    bounds, kept = model.feature_bounds_, columns.is_indicator
    intercept = plain.intercept_
    if bounds is not None:  # an indicator has two values, whatever they are clipped to
        low, high = (np.clip(np.full(len(kept), value), *bounds) for value in (0.0, 1.0))
        intercept = intercept + (coef[:, kept] @ low[kept]).reshape(shape)
        coef[:, kept] *= (high - low)[kept]
    plain.intercept_ = intercept + (coef @ columns.offset).reshape(shape)
    plain.coef_ = (coef @ columns.matrix.T).reshape(*shape, -1)
    plain.n_features_in_ = len(columns.matrix)
    vars(plain).pop("feature_names_in_", None)
    if getattr(plain, "feature_bounds_", None) is not None:
        is_new = ~columns.matrix[:, ~kept].any(axis=1)
        plain.feature_bounds_ = tuple(
            np.where(is_new, value, columns.matrix @ np.where(kept, 0.0, bound))
            for value, bound in zip((0.0, 1.0), bounds, strict=True)
        )
    return plain
