"""Several strengths of a penalty in one estimator: how they are stated, and which one was chosen.

With noise the choice is made of what one fit releases (``plan/_strengths.py``); without, it is that
of scikit-learn's own estimators with cross-validation.
"""

from itertools import compress

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import ElasticNetCV, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV

from ..penalties import GroupLasso
from ..plan._strengths import LEAST_SIGNAL, Strength, need_of_choice
from ..utils._public import check_real
from ..utils._texts import counted
from ..utils._warnings import warn
from ._parameters import stated_solver
from ._warm_start import EarlierFit

WITH_STRENGTH = ("l1", "l2", "elasticnet")
_L1_SHARES = {"l1": 1.0, "l2": 0.0}
_DEFAULT_ALPHA = 1e-4  # of the generic estimators
_MOST = 10_000  # candidates of one fit
# Attributes of a fit that chose.
_FITTED = ("alpha_", "C_", "l1_ratio_", "penalty_", "strength_path_")


class WithStrength:
    """The strength of a penalty: one, several among which a fit chooses, or "auto"."""

    # the parameter, in the words of objectives and as it is spelt, and a strength that is usual
    _strength_name = _strength_parameter = "alpha"
    _ratio_parameter = "l1_ratio"
    _usual_strength = _DEFAULT_ALPHA
    # A search sets both: lists of features among which a fit chooses too, and released scales.
    _designs = ()
    _known_scales = None

    def __sklearn_clone__(self):
        copy = super().__sklearn_clone__()
        for name in ("_designs", "_known_scales"):
            if name in vars(self):
                setattr(copy, name, getattr(self, name))
        return copy

    def _beside_mean_loss(self, value, n_normalizer):
        """A stated strength of the penalty, as it stands beside a mean loss."""
        return value

    def _as_stated(self, strength, n_normalizer):
        """The inverse of `_beside_mean_loss`."""
        return strength

    @property
    def _strength(self):
        """The strength that is stated; of several the one that was chosen, or a usual one.

        For several targets it is an array.
        """
        values = values_of(getattr(self, self._strength_name))
        if len(values) == 1 and values != ["auto"]:
            return float(values[0])
        return getattr(self, f"{self._strength_name}_", self._usual_strength)

    def _warn_of_unused_alpha(self):
        has_strength = self._penalty_word in (*WITH_STRENGTH, GroupLasso.word)
        if has_strength or self.alpha in (0, _DEFAULT_ALPHA):
            return
        warn(
            f"alpha={self.alpha!r} is not used: penalty={self.penalty!r} has no strength. Write "
            'penalty="l2" (or "l1", "elasticnet"), or leave alpha out'
        )

    def _warn_of_one_strength(self, request):
        """Say before the charge that the budget is too small for a choice."""
        if not request.strengths or request.chooses:
            return
        name, least = self._strength_name, max(LEAST_SIGNAL, request.n_features)
        value = self._as_stated(request.strength, request.budget.n)
        warn(
            f"n={request.budget.n:,}, {counted(request.n_features, 'feature')} and "
            f"epsilon={request.budget.epsilon:g} are too few for a choice among strengths of the "
            f"penalty: n mu / sqrt(p) is {request.signal:.3g}, below {least:.3g}. One is fitted, "
            f"{name}={value:.3g}; state it, or one of your own, and this warning is gone",
            UserWarning,
        )


def values_of(stated):
    """The values of a parameter that states one, or several, as a list."""
    return list(stated) if isinstance(stated, (list, tuple, np.ndarray)) else [stated]


def check_values(stated, name, **interval):
    """Refuse what is no number, or no list of different ones.

    Raises
    ------
    TypeError, ValueError
    """
    values = values_of(stated)
    if not values:
        raise ValueError(f"{name} is an empty list: state at least one strength")
    several = len(values) > 1
    for i, value in enumerate(values):
        check_real(value, f"{name}[{i}]" if several else name, **interval)
    if len(set(map(float, values))) < len(values):
        raise ValueError(f"{name} lists a value twice: {values!r}")


def candidates(model, n_normalizer):
    """The Strengths among which a fit is to choose; none where one is stated.

    Raises
    ------
    ValueError
        If a penalty among them has no strength, or they are too many.
    """
    words, name = values_of(model.penalty), model._strength_name
    ratios, strengths = values_of(model.l1_ratio), values_of(getattr(model, name))
    if not model._designs and not _chooses(words, strengths, ratios):
        return ()
    if words == [None] and not _chooses(words, strengths, ratios):
        strengths = [0.0]
    elif without := [word for word in words if word not in WITH_STRENGTH]:
        raise ValueError(
            f"penalty must be of {{{', '.join(WITH_STRENGTH)}}}, which have a strength, where "
            f"several are stated, got {without[0]!r}"
        )
    found = tuple(
        Strength(word, _beside_mean_loss(model, value, n_normalizer), float(ratio), columns, design)
        for design, columns in enumerate(model._designs or (None,))
        for word in words
        for ratio in ([_L1_SHARES[word]] if word in _L1_SHARES else ratios)
        for value in strengths
    )
    if len(found) > _MOST:
        raise ValueError(f"{len(found):,} candidates are too many; state at most {_MOST:,}")
    return found


def _chooses(words, strengths, ratios):
    """Whether these values of penalty, strength and l1_ratio are several candidates."""
    if len(words) > 1 or len(strengths) > 1 or strengths == ["auto"]:
        return True
    return len(ratios) > 1 and getattr(words[0], "word", words[0]) == "elasticnet"


def can_choose(model, *, columns=False):
    """Whether one fit of it can choose among penalties with strengths, whatever its budget is.

    With `columns`, whether it can choose among columns.
    """
    try:
        model._validate_params()
        solver, loss = stated_solver(model), model._loss(1, 1.0)
    except (TypeError, ValueError):  # a fit would refuse it, as some do a list of strengths
        return False
    if need_of_choice(model, solver, loss):
        return False
    words = values_of(model.penalty)
    if columns and words == [None]:
        return True
    return all(isinstance(word, str) and word in WITH_STRENGTH for word in words)


def _beside_mean_loss(model, value, n_normalizer):
    return None if isinstance(value, str) else model._beside_mean_loss(float(value), n_normalizer)


def keep_choice(model, plan, solution, dtype):
    """Set the fitted attributes of a choice, and remove those of an earlier one."""
    for name in _FITTED:
        vars(model).pop(name, None)
    if not plan.request.strengths:
        return
    name, found = model._strength_name, []
    for one, path in zip(plan.outputs, solution.strengths, strict=True):
        request, n = one.request, one.request.budget.n
        chosen = Strength(request.penalty, request.strength, request.l1_ratio)
        if path is not None:
            chosen = path.strengths[path.best]
        shown = _shown(model, one, path, dtype)
        found.append((model._as_stated(chosen.strength, n), chosen, shown))
    strengths, chosen, paths = zip(*found, strict=True)
    values = {
        f"{name}_": list(map(float, strengths)),
        "penalty_": [one.penalty for one in chosen],
        "l1_ratio_": [one.l1_ratio for one in chosen],
    }
    if paths[0] is not None:
        values["strength_path_"] = list(paths)
    for key, each in values.items():
        is_listed = len(each) > 1 and key == "strength_path_"
        value = each[0] if len(each) == 1 else each if is_listed else np.array(each)
        setattr(model, key, value)


def keep_columns(model, names):
    """Take the columns that were chosen for all that a fitted model has, under these names."""
    design = model.strength_path_["design"][np.argmin(model.strength_path_["excess_loss"])]
    columns = list(model._designs[design])
    del model._designs
    kept = model.strength_path_.pop("design") == design
    path = {key: _rows(values, kept) for key, values in model.strength_path_.items()}
    model.strength_path_ = path | {"coef": path["coef"][..., columns]}
    model.coef_ = model.coef_[..., columns]
    if model.feature_bounds_ is not None:
        model.feature_bounds_ = tuple(
            edge if np.ndim(edge) == 0 else edge[columns] for edge in model.feature_bounds_
        )
    model.n_features_in_ = len(columns)
    vars(model).pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = names
    model._earlier_fit = EarlierFit.of(model)


def _rows(values, kept):
    return values[kept] if hasattr(values, "shape") else [*compress(values, kept)]


def _shown(model, plan, path, dtype):
    """A StrengthPath in the units and words of a model, or None."""
    if path is None:
        return None
    coefs, intercepts = plan.to_original(path.coefs, dtype)
    # Python's squares raise where they overflow
    square, n = min(float(plan.request.target_half_width), 1e150) ** 2, plan.request.budget.n
    columns = {"design": np.array([each.design for each in path.strengths])}
    return (columns if model._designs else {}) | {
        "penalty": [each.penalty for each in path.strengths],
        model._strength_name: np.array(
            [model._as_stated(each.strength, n) for each in path.strengths]
        ),
        "l1_ratio": np.array([each.l1_ratio for each in path.strengths]),
        "coef": coefs,
        "intercept": intercepts,
        "excess_loss": path.excess * square,
        "excess_loss_std": path.excess_std * square,
    }


def fit_cross_validated(model, X, y, sample_weight):
    """Fit a model without noise at the strength that cross-validation chooses."""
    chosen = cross_validated(model, X, y, sample_weight)
    one = clone(model).set_params(**chosen).fit(X, y, sample_weight)
    parameters = model.get_params(deep=False)
    vars(model).update({k: v for k, v in vars(one).items() if k not in parameters})
    setattr(model, f"{model._strength_name}_", one._strength)
    model.penalty_, model.l1_ratio_ = one._penalty_word, float(values_of(one.l1_ratio)[0])
    return model


def cross_validated(model, X, y, sample_weight):
    """The parameters that cross-validation chooses, for a fit without noise.

    Where scikit-learn has an estimator with cross-validation for the problem, it is the one to ask.

    Returns
    -------
    dict of parameters of `model`
    """
    name, n = model._strength_name, len(y)
    words, ratios = values_of(model.penalty), values_of(model.l1_ratio)
    stated = values_of(getattr(model, name))
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    facts = {"cv": getattr(model, "cv", None), "fit_intercept": model.fit_intercept}
    shares = [_L1_SHARES[words[0]]] if words[0] in _L1_SHARES else ratios
    is_auto, is_squared = stated == ["auto"], model._loss_word == "squared"
    strengths = [model._beside_mean_loss(float(value), n) for value in stated if not is_auto]
    is_lasso = is_squared and (shares != [0.0] or model.positive)
    if len(words) > 1 or not (is_squared or model.loss == "auto") or (y.ndim > 1 and is_lasso):
        return _grid_searched(model, X, y, weights, stated, facts["cv"])
    if model.loss == "auto":
        Cs = 10 if is_auto else [1 / (n * strength) for strength in strengths]
        solver = {"solver": "saga" if any(shares) else "lbfgs", "max_iter": 10_000}
        logistic = {"scoring": "neg_log_loss", "use_legacy_attributes": False, "Cs": Cs}
        found = LogisticRegressionCV(l1_ratios=shares, **solver, **logistic, **facts)
        found = found.fit(X, y, **weights)
        strength = 1 / (n * float(np.ravel(found.C_)[0]))
        ratio = float(np.ravel(found.l1_ratio_)[0])
    elif not is_lasso:
        alphas = (0.1, 1.0, 10.0) if is_auto else [n * strength for strength in strengths]
        strength, ratio = float(RidgeCV(alphas, **facts).fit(X, y, **weights).alpha_) / n, 0.0
    else:
        alphas = {} if is_auto else {"alphas": strengths}
        found = ElasticNetCV(l1_ratio=shares, positive=model.positive, **alphas, **facts)
        found.fit(X, y, **weights)
        strength, ratio = float(found.alpha_), float(found.l1_ratio_)
    chosen = {model._strength_parameter: [model._as_stated(strength, n)]}
    return chosen | ({} if words[0] in _L1_SHARES else {model._ratio_parameter: [ratio]})


def _grid_searched(model, X, y, weights, stated, cv):
    """The same by scikit-learn's grid search, for losses that it has no such estimator for."""
    name = model._strength_parameter
    strengths = np.geomspace(1e-6, 1e2, 9).tolist() if stated == ["auto"] else stated
    grid = {name: strengths, model._ratio_parameter: values_of(model.l1_ratio)}
    grid = {key: [[value] for value in values] for key, values in grid.items()}
    grid["penalty"] = values_of(model.penalty)
    own = model.get_params(deep=False)
    grid = {key: values for key, values in grid.items() if key in own}
    score = "neg_mean_squared_error" if model._target_is_numeric else "neg_log_loss"
    one = clone(model).set_params(**{key: values[0] for key, values in grid.items()})
    return GridSearchCV(one, grid, cv=cv, scoring=score).fit(X, y, **weights).best_params_
