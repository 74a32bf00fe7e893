"""Checks of the generators' parameters, and the first draws of each."""

import math
from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

RandomSeed = int | np.random.RandomState | None

# Past this log-standard-deviation a drawn value could leave the range of a double.
MAX_LOG_STD = 100.0


def check_count(value, name, *, low=1, high=math.inf, high_name=""):
    """Return `value` as an int; TypeError if it is no integer, ValueError outside [low, high]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    if value > high:
        raise ValueError(f"{name} must be at most {high_name}{high}, got {value}")
    return int(value)


def check_number(value, name, *, low=-math.inf, high=math.inf):
    """Return `value` as a finite float; TypeError if it is none, ValueError outside [low, high]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    value = float(value)
    if not (math.isfinite(value) and low <= value <= high):
        raise ValueError(f"{name} must be finite and in [{low:g}, {high:g}], got {value!r}")
    return value


def check_sizes(n_samples, n_features, *, min_features=1):
    """Return both as ints."""
    return check_count(n_samples, "n_samples"), check_count(
        n_features, "n_features", low=min_features
    )


def check_informative(n_informative, n_features):
    """Return the number of coefficients that are not zero, at most one for each feature."""
    return check_count(n_informative, "n_informative", high=n_features, high_name="n_features = ")


def normal_design(n_samples, n_features, random_state):
    """Return the generator and a design of independent standard normal entries.

    Every data set draws the design first and its coefficients second, so a seed gives the same
    records to sets that differ in their labels only. All checks come before: a call that fails
    leaves the state of a RandomState instance as it was.
    """
    rng = check_random_state(random_state)
    return rng, rng.standard_normal((n_samples, n_features))


def embed(values, n_features, rng):
    """Return zeros of shape (n_features,) with `values` at places drawn at random."""
    coef = np.zeros(n_features)
    coef[rng.choice(n_features, size=len(values), replace=False)] = values
    return coef


def signs(margins):
    """Return the labels -1 and 1 of the losses in the papers; 1 where the margin is positive."""
    return np.where(margins > 0, 1, -1)


def with_extras(X, y, *extras):
    """Return X, y and the value of each pair (wanted, value) that is wanted."""
    return (X, y, *(value for wanted, value in extras if wanted))
