"""Checks of public facts: what a user states about the data, never what the data says."""

import math
from numbers import Integral, Real

import numpy as np

MOST = 2**53  # of a count: what double precision counts exactly
MOST_COORDINATES = 2**31 - 1  # a vector of more of them is 16 GB


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


def check_bounds(bounds, n_features, name="feature_bounds"):
    """Return public bounds as two float arrays of shape (n_features,).

    Parameters
    ----------
    bounds : pair (lo, hi) of scalars or arrays of shape (n_features,)
    n_features : int
    name : str
        How the user calls it, for the messages.

    Raises
    ------
    TypeError
        If `bounds` is no pair of numbers or arrays of numbers.
    ValueError
        If a bound is not finite, of another length, or lo > hi somewhere.
    """
    if isinstance(bounds, str) or np.ndim(bounds) == 0 or len(bounds) != 2:
        raise TypeError(f"{name} must be a pair (lo, hi) of numbers or arrays, got {bounds!r}")
    arrays = []
    for side, bound in zip(("lo", "hi"), bounds, strict=True):
        array = np.asarray(bound)
        if array.dtype.kind not in "iuf":
            raise TypeError(f"{name}: {side} must hold numbers, got dtype {array.dtype}")
        if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != n_features):
            raise ValueError(
                f"{name}: {side} has shape {array.shape}, allowed are a scalar and "
                f"shape ({n_features},)"
            )
        array = np.array(np.broadcast_to(array, (n_features,)), dtype=np.float64)
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: {side} must be finite; state a bound that you know")
        arrays.append(array)
    lo, hi = arrays
    if (lo > hi).any():
        j = int(np.argmax(lo > hi))
        where = f"feature {j} has " if n_features > 1 else ""
        raise ValueError(
            f"{name}: lo must not exceed hi, but {where}lo={lo[j]:g} > hi={hi[j]:g}; swap them"
        )
    return lo, hi


def check_scales(scale, n_features, name="feature_scale"):
    """Return public root mean squares of the features as a float array of shape (n_features,).

    Raises
    ------
    TypeError
        If `scale` holds no numbers.
    ValueError
        If it is not positive and finite, or of another length.
    """
    array = np.asarray(scale)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number or an array of numbers, got {scale!r}")
    if array.ndim > 1 or (array.ndim == 1 and array.shape[0] != n_features):
        raise ValueError(
            f"{name} has shape {array.shape}, allowed are a scalar and shape ({n_features},)"
        )
    array = np.array(np.broadcast_to(array, (n_features,)), dtype=np.float64)
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{name} must be positive and finite everywhere")
    return array
