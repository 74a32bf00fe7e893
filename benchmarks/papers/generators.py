"""log1, log2 and square: the synthetic data of the greedy coordinate descent paper.

No record is real: nothing is private. Where a paper leaves a law open, the docstring's Notes say
what was chosen and why. Checks and first draws are shared with ``scaled_generators``.
"""

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


def make_log1(
    n_samples: int = 1000,
    n_features: int = 100,
    *,
    noise: float = 1.0,
    coef: bool = False,
    random_state: RandomSeed = None,
) -> tuple[np.ndarray, ...]:
    r"""Make log1: two classes, and log-normal coefficients of which a few stand out.

    With independent standard normal :math:`x_{ij}` and :math:`e_i`,

    .. math::

        y_i = \mathrm{sign}(x_i^\top w + \mathtt{noise} \cdot e_i), \qquad
        \log w_j \sim \mathcal{N}(0, 1).

    Parameters
    ----------
    n_samples : int, default=1000
        Number of records, at least 1.
    n_features : int, default=100
        Number of features, at least 1.
    noise : float, default=1.0
        Standard deviation of the noise within the sign, 0 or more.
    coef : bool, default=False
        Whether to return w too.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; an int makes them the same at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The records.
    y : ndarray of shape (n_samples,)
        Their labels, -1 and 1, as integers.
    coef : ndarray of shape (n_features,)
        w; only if `coef` is true.

    Raises
    ------
    TypeError
        If a size is no integer, or `noise` no number.
    ValueError
        If a size or `noise` is out of its range.

    See Also
    --------
    make_log2 : The same with a heavier tail.
    make_square : Regression on ten features among a thousand.

    Notes
    -----
    From Section 5, "Datasets", of [1]_, which gives the sizes and the law of w. What it leaves
    open, and what we take:

    - It writes :math:`y = Xw + e`, but minimises the logistic loss (its Table 4). The sign is ours;
      -1 and 1 are the labels of that loss.
    - Its normal noise has no stated variance: 1, small against a signal near 25 (log2: near 200,
      most of it from very few coefficients).
    - "Unit-variance columns": the law of the entries has variance 1. The columns are not rescaled
      afterwards, so the records stay independent.
    - All coefficients are positive, as a log-normal law draws them.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "High-Dimensional Private Empirical Risk
       Minimization by Greedy Coordinate Descent", AISTATS 2023.

    Examples
    --------
    >>> from papers.generators import make_log1
    >>> X, y, coef = make_log1(coef=True, random_state=0)
    >>> X.shape, y.shape, coef.shape
    ((1000, 100), (1000,), (100,))
    >>> y[:5]
    array([-1,  1, -1, -1, -1])
    """
    return _make_log(n_samples, n_features, 1.0, noise, coef, random_state)


def make_log2(
    n_samples: int = 1000,
    n_features: int = 100,
    *,
    noise: float = 1.0,
    coef: bool = False,
    random_state: RandomSeed = None,
) -> tuple[np.ndarray, ...]:
    r"""Make log2: as log1, with a heavier tail of the coefficients.

    With independent standard normal :math:`x_{ij}` and :math:`e_i`,

    .. math::

        y_i = \mathrm{sign}(x_i^\top w + \mathtt{noise} \cdot e_i), \qquad
        \log w_j \sim \mathcal{N}(0, 2^2).

    Parameters
    ----------
    n_samples : int, default=1000
        Number of records, at least 1.
    n_features : int, default=100
        Number of features, at least 1.
    noise : float, default=1.0
        Standard deviation of the noise within the sign, 0 or more.
    coef : bool, default=False
        Whether to return w too.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; an int makes them the same at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The records; those of `make_log1` for the same seed.
    y : ndarray of shape (n_samples,)
        Their labels, -1 and 1, as integers.
    coef : ndarray of shape (n_features,)
        w; only if `coef` is true. For the same seed the squares of the coefficients of `make_log1`.

    Raises
    ------
    TypeError
        If a size is no integer, or `noise` no number.
    ValueError
        If a size or `noise` is out of its range.

    See Also
    --------
    make_log1 : The same with a lighter tail.
    make_square : Regression on ten features among a thousand.

    Notes
    -----
    From Section 5, "Datasets", of [1]_: a log-normal law with :math:`\mu = 0` and
    :math:`\sigma = 1` (log1) or 2 (log2), read as the mean and the standard deviation of the
    logarithm. What the paper leaves open is chosen as in `make_log1`, whose Notes say why.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "High-Dimensional Private Empirical Risk
       Minimization by Greedy Coordinate Descent", AISTATS 2023.

    Examples
    --------
    >>> from papers.generators import make_log2
    >>> X, y, coef = make_log2(coef=True, random_state=0)
    >>> X.shape, y.shape, coef.shape
    ((1000, 100), (1000,), (100,))
    >>> five = sorted(coef**2)[-5:]
    >>> print(f"the five largest have {sum(five) / sum(coef**2):.0%} of the signal's variance")
    the five largest have 78% of the signal's variance
    """
    return _make_log(n_samples, n_features, 2.0, noise, coef, random_state)


def _make_log(n_samples, n_features, coef_log_std, noise, coef, random_state):
    n_samples, n_features = check_sizes(n_samples, n_features)
    noise = check_number(noise, "noise", low=0.0)
    rng, X = normal_design(n_samples, n_features, random_state)
    w = rng.lognormal(0.0, coef_log_std, size=n_features)
    y = signs(X @ w + noise * rng.standard_normal(n_samples))
    return with_extras(X, y, (coef, w))


def make_square(
    n_samples: int = 1000,
    n_features: int = 1000,
    *,
    n_informative: int = 10,
    coef_log_std: float = 2.0,
    noise: float = 1.0,
    coef: bool = False,
    random_state: RandomSeed = None,
) -> tuple[np.ndarray, ...]:
    r"""Make square: a regression with as many features as records, ten of which matter.

    With independent standard normal :math:`x_{ij}` and :math:`e_i`,

    .. math::

        y_i = x_i^\top w + \mathtt{noise} \cdot e_i,

    where `n_informative` coefficients, at random places, are log-normal and the others zero.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of records, at least 1.
    n_features : int, default=1000
        Number of features, at least 1.
    n_informative : int, default=10
        Number of coefficients that are not zero, from 1 to `n_features`.
    coef_log_std : float, default=2.0
        Standard deviation of the logarithm of these coefficients, from 0 to 100.
    noise : float, default=1.0
        Standard deviation of the noise, 0 or more.
    coef : bool, default=False
        Whether to return w too.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; an int makes them the same at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The records.
    y : ndarray of shape (n_samples,)
        Their targets.
    coef : ndarray of shape (n_features,)
        w; only if `coef` is true.

    Raises
    ------
    TypeError
        If a size is no integer, or another parameter no number.
    ValueError
        If a parameter is out of its range.

    See Also
    --------
    make_log1 : Classification with quasi-sparse coefficients.
    make_scaled_regression : Fewer features, of very different scales.

    Notes
    -----
    From Section 5, "Datasets", of [1]_: "generated similarly" to log1 and log2, with ten values
    that are not zero. What it leaves open, and what we take:

    - Which of the two laws: that of log2. The clipping thresholds that the paper selects (its
      Table 4: 1e4 over all features, hence a few hundred for each) suit its signal of tens to
      hundreds; log1's law would give about 6. That the penalty removes three of the ten (its
      Table 3: seven remain) suits its heavy tail as well.
    - Where the ten stand: uniformly at random.
    - The variance of the noise: 1, as in `make_log1`.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "High-Dimensional Private Empirical Risk
       Minimization by Greedy Coordinate Descent", AISTATS 2023.

    Examples
    --------
    >>> from papers.generators import make_square
    >>> X, y, coef = make_square(coef=True, random_state=0)
    >>> X.shape, y.shape
    ((1000, 1000), (1000,))
    >>> int((coef != 0).sum())
    10
    """
    n_samples, n_features = check_sizes(n_samples, n_features)
    n_informative = check_informative(n_informative, n_features)
    coef_log_std = check_number(coef_log_std, "coef_log_std", low=0.0, high=MAX_LOG_STD)
    noise = check_number(noise, "noise", low=0.0)
    rng, X = normal_design(n_samples, n_features, random_state)
    w = embed(rng.lognormal(0.0, coef_log_std, size=n_informative), n_features, rng)
    y = X @ w + noise * rng.standard_normal(n_samples)
    return with_extras(X, y, (coef, w))
