"""Which values the estimators' parameters take: a table for scikit-learn's validation."""

import math
from numbers import Integral, Real

import numpy as np

from ..engines._engines import ENGINES
from ..engines._engines_coordinates import RULES
from ..penalties import CONSTRAINTS, PENALTIES
from ..privacy.accounting._events import NEIGHBORING
from ..samplings import SAMPLING_WORDS
from ..utils._compat import HasMethods, Interval, StrOptions
from ..utils._reproducible_noise import ReproducibleNoise

_POSITIVE = [Interval(Real, 0, None, closed="neither")]
_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
_AUTO_OR_POSITIVE = [StrOptions({"auto"}), *_POSITIVE]
_COUNT = [Interval(Integral, 1, None, closed="left")]
_COUNT_OR_NONE = [None, *_COUNT]

# Of every estimator.
COMMON = {
    "epsilon": [Interval(Real, 0, math.inf, closed="right")],  # infinity: no noise
    "delta": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
    "neighboring": [StrOptions(set(NEIGHBORING))],
    "n_public": _COUNT_OR_NONE,
    "clip": _AUTO_OR_POSITIVE,
    "max_iter": _AUTO_OR_POSITIVE,
    "step_size": _AUTO_OR_POSITIVE,
    "averaging": [StrOptions({"auto", "last", "tail"})],
    "fit_intercept": ["boolean"],
    "feature_bounds": [None, tuple, list, np.ndarray, dict],
    "feature_scale": [None, StrOptions({"private"}), Real, tuple, list, np.ndarray],
    "row_norm_bound": [None, *_POSITIVE],
    "tol": _POSITIVE,
    "coef_path": ["boolean"],
    "warm_start": ["boolean"],
    "verbose": ["boolean", Interval(Integral, 0, None, closed="left")],
    "accountant": [None, HasMethods(["charge", "cost", "spent"])],
    "random_state": ["random_state", ReproducibleNoise],
    "n_threads": _COUNT,
}

# Of the generic estimators; a preset has those of its own solver, some with fewer words.
GENERIC = {
    "penalty": [None, StrOptions(set(PENALTIES))],
    "alpha": _NOT_NEGATIVE,
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "coef_bounds": [None, tuple, list],
    "constraint": [None, StrOptions(set(CONSTRAINTS))],
    "radius": _POSITIVE,
    "solver": [StrOptions({"auto", *ENGINES})],
    "sampling": [StrOptions({"auto", *SAMPLING_WORDS}), HasMethods(["draw"])],
    "block_size": _COUNT_OR_NONE,
    "rule": [StrOptions(set(RULES))],
    "selection_share": [Interval(Real, 0, 1, closed="neither")],
    "selection": [StrOptions({"full", "lazy"})],
    "sampling_rate": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="right")],
    "n_directions": _COUNT_OR_NONE,
    "n_inner": _COUNT_OR_NONE,
    "curvature_share": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
    "step_decay": _NOT_NEGATIVE,
    "momentum": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
    "averaging": [StrOptions({"auto", "last", "tail", "periodic", "weighted"})],
    "accounting": [StrOptions({"composition", "hidden_state"})],
    "penalize_intercept": ["boolean"],
    "inference": ["boolean"],
    "inference_share": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
}

REGRESSION = {
    "target_bounds": [None, tuple, list, np.ndarray],
    "huber_threshold": _POSITIVE,
    "positive": ["boolean"],
}
CLASSIFICATION = {
    "classes": [None, "array-like"],
    "class_weight": [None, dict, StrOptions({"balanced"})],
    "multi_class": [StrOptions({"multinomial", "ovr"})],
    "unknown_label": [StrOptions({"first", "raise"})],
    "C": _POSITIVE,
}
# Of the presets: None is not stated.
PRESET = {name: [None, *GENERIC[name]] for name in ("rule", "selection_share", "selection")}
PERIODIC = {"averaging": [StrOptions({"auto", "last", "tail", "periodic"})]}


def of(table, *names):
    """The entries of a table with these names."""
    return {name: table[name] for name in names}
