"""Checks of public facts: what a user states about the data, never what the data says."""

import math
from numbers import Integral, Real

import numpy as np

MOST = 2**53  # of a count: what double precision counts exactly
MOST_COORDINATES = 2**31 - 1  # a vector of more of them is 16 GB


def width_of(rows):
    """Number of columns of an array, a data frame or a list of rows; a number is that itself."""
    if isinstance(rows, Integral):
        return int(rows)
    if hasattr(rows, "shape"):
        return rows.shape[1]
    if not hasattr(rows[0], "__len__"):
        raise ValueError("Expected 2D array, got a list of single cells instead")
    return len(rows[0])


def check_real(value, name, *, low=-math.inf, high=math.inf, closed="neither", advice=""):
    """Return `value` as a float, or raise when it is no number or outside the interval.

    Parameters
    ----------
    closed : {"neither", "left", "right", "both"}
        Which ends of the interval are allowed.
    advice : str
        What to do instead; ends the message.

    Raises
    ------
    TypeError
        If `value` is not a real number (booleans and strings are not).
    ValueError
        If it is NaN or outside the interval.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    try:
        value = float(value)
    except OverflowError:  # an integer or a fraction beyond every double; too long to be printed
        raise ValueError(f"{name} must be below 1.8e308 in absolute value") from None
    above = value >= low if closed in ("left", "both") else value > low
    below = value <= high if closed in ("right", "both") else value < high
    if not (above and below):  # also refuses NaN
        left = "[" if closed in ("left", "both") else "("
        right = "]" if closed in ("right", "both") else ")"
        message = f"{name} must be in {left}{low:g}, {high:g}{right}, got {value!r}"
        raise ValueError(f"{message}; {advice}" if advice else message)
    return value


def check_count(value, name, *, low=1, high=math.inf):
    """Return `value` as an int, or raise when it is no integer or outside [low, high].

    Raises
    ------
    TypeError
        If `value` is no integer (booleans and whole floats are none).
    ValueError
        If it is below `low` or above `high`.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    if not low <= value <= high:
        allowed = f"at least {low}" if high == math.inf else f"in [{low}, {high}]"
        got = repr(value) if abs(value) < 2**64 else "one of more than 64 bits"
        raise ValueError(f"{name} must be {allowed}, got {got}")
    return int(value)


def plain_number(value):
    """A number as a bool, int or float of Python; whatever is none as it is.

    NumPy's scalars compute in their own precision, and caches take them for the float that they
    equal: half a digit of float16 would be noise that is missing.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def check_interval(bounds, name):
    """Return a pair of numbers lo < hi, which may be infinite, as floats.

    Raises
    ------
    TypeError
        If `bounds` is no pair of numbers.
    ValueError
        If one is NaN, or lo >= hi.
    """
    if isinstance(bounds, str) or np.ndim(bounds) == 0 or len(bounds) != 2:
        raise TypeError(f"{name} must be a pair (lo, hi) of numbers, got {bounds!r}")
    lo, hi = (check_real(bound, name, closed="both") for bound in bounds)
    if not lo < hi:
        raise ValueError(f"{name}: lo must be below hi, got ({lo:g}, {hi:g})")
    return lo, hi


def check_bounds(bounds, n_features, name="feature_bounds", columns=None):
    """Return public bounds as two float arrays of shape (n_features,).

    Parameters
    ----------
    bounds : tuple (lo, hi), list of pairs or dict
        A tuple holds two scalars or arrays of shape (n_features,); a list one pair (lo, hi) of
        numbers for each feature; a dict such a pair for the name of each column.
    n_features : int
    name : str
        How the user calls it, for the messages.
    columns : sequence of str or None
        The names of the columns, in order; only a dict needs them.

    Raises
    ------
    TypeError
        If `bounds` is of another kind, or holds something other than numbers.
    ValueError
        If a bound is not finite, of another length, or lo > hi somewhere; if a dict does not name
        every column and no other one.
    """
    if isinstance(bounds, dict):
        return _named_bounds(bounds, n_features, name, columns)
    if isinstance(bounds, list):
        return _listed_bounds(bounds, n_features, name)
    if isinstance(bounds, np.ndarray):
        raise TypeError(
            f"{name} must not be an array, whose rows could be (lo, hi) or features; write "
            f"tuple(bounds) if they are lo and hi, bounds.tolist() if they are one pair a feature"
        )
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise TypeError(f"{name} must be a pair (lo, hi) of numbers or arrays, got {bounds!r}")
    lo, hi = (
        _side(bound, n_features, f"{name}: {side}")
        for side, bound in zip(("lo", "hi"), bounds, strict=True)
    )
    if (lo > hi).any():
        j = int(np.argmax(lo > hi))
        where = f"feature {j} has " if n_features > 1 else ""
        raise ValueError(
            f"{name}: lo must not exceed hi, but {where}lo={lo[j]:g} > hi={hi[j]:g}; swap them"
        )
    return lo, hi


def _side(bound, n_features, name):
    """All lower or all upper bounds, as an array of shape (n_features,)."""
    array = _per_feature(bound, n_features, name)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; state a bound that you know")
    return array


def _per_feature(stated, n_features, name):
    """A number, or one for each feature, as a float array of shape (n_features,)."""
    array = np.asarray(stated)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != n_features):
        raise ValueError(
            f"{name} has shape {array.shape}, allowed are a scalar and shape ({n_features},)"
        )
    return np.array(np.broadcast_to(array, (n_features,)), dtype=np.float64)


def _listed_bounds(bounds, n_features, name):
    """[(lo, hi), ...], one pair for each feature, as two arrays."""
    for pair in bounds:
        # an array might be all lower bounds: [lo_array, hi_array] of two features has this shape
        if not isinstance(pair, (tuple, list)):
            raise TypeError(
                f"{name}: a list must hold one pair (lo, hi) of numbers for each feature, and has "
                f"an entry of type {type(pair).__name__}; for bounds of all features write a tuple "
                "(lo, hi) of numbers or arrays"
            )
    if len(bounds) != n_features:
        raise ValueError(
            f"{name}: a list must hold one pair (lo, hi) for each feature, {n_features} in all, "
            f"got {len(bounds)}; for bounds of all features write a tuple (lo, hi) of numbers or "
            "arrays"
        )
    return _joined(check_bounds(tuple(pair), 1, f"{name}[{j}]") for j, pair in enumerate(bounds))


def _named_bounds(bounds, n_features, name, columns):
    """{column: (lo, hi)} as two arrays in the order of the columns."""
    if columns is None:
        raise ValueError(
            f"{name} is a dict, so columns must have names, but X has no column names (strings) "
            "that scikit-learn can read; pass a data frame, or a tuple (lo, hi) of arrays in the "
            "order of the columns"
        )
    known = set(columns)
    missing = [column for column in columns if column not in bounds]
    unknown = [column for column in bounds if column not in known]
    if missing or unknown:
        parts = [f"no bounds for column(s) {missing}"] if missing else []
        parts += [f"bounds for unknown column(s) {unknown}"] if unknown else []
        raise ValueError(f"{name} must name every column of X, once: {'; '.join(parts)}")
    if len(columns) != n_features:  # of a plan, which has no columns but those of the dict
        raise ValueError(f"{name} names {len(columns)} columns, but there are {n_features}")
    pairs = [(column, bounds[column]) for column in columns]
    return _joined(
        check_bounds(tuple(pair) if isinstance(pair, list) else pair, 1, f"{name}[{column!r}]")
        for column, pair in pairs
    )


def _joined(pairs):
    lo, hi = np.array(list(pairs))[:, :, 0].T
    return np.ascontiguousarray(lo), np.ascontiguousarray(hi)


def check_scales(scale, n_features, name="feature_scale"):
    """Return public root mean squares of the features as a float array of shape (n_features,).

    Raises
    ------
    TypeError
        If `scale` holds no numbers.
    ValueError
        If it is not positive and finite, or of another length.
    """
    array = _per_feature(scale, n_features, name)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{name} must be positive and finite everywhere")
    return array
