"""Features of very different scales: the synthetic data of the coordinate descent paper.

(a) Feature j is s_j times a standard normal, so the j-th smoothness constant of the squared loss,
    M_j = mean of x_ij² over the records, is s_j² up to sampling; of the logistic loss, s_j² / 4.
(b) The labels are drawn before the features are scaled: a data set and its scaled sibling hold the
    same facts in other units, and the coefficients are w_j = u_j / s_j.
"""

import numpy as np

from .generators import (
    MAX_LOG_STD,
    RandomSeed,
    check_count,
    check_informative,
    check_number,
    check_sizes,
    embed,
    normal_design,
    signs,
    with_extras,
)


def make_scaled_regression(
    n_samples: int = 10_000,
    n_features: int = 100,
    *,
    n_informative: int = 10,
    smoothness_log_std: float = 2.0,
    noise: float = 0.1,
    coef: bool = False,
    feature_scale: bool = False,
    random_state: RandomSeed = None,
) -> tuple[np.ndarray, ...]:
    r"""Make a sparse regression whose coordinate-wise smoothness is log-normal, or balanced.

    With independent standard normal :math:`z_{ij}`, :math:`e_i` and :math:`t_j`,

    .. math::

        x_{ij} = s_j z_{ij}, \qquad s_j^2 = \exp(\mathtt{smoothness\_log\_std} \cdot t_j), \qquad
        y_i = x_i^\top w + \mathtt{noise} \cdot e_i,

    so that the smoothness constants :math:`M_j = \frac{1}{n} \sum_i x_{ij}^2 \approx s_j^2` of the
    squared loss are log-normal; ``smoothness_log_std=0`` makes them all equal. The products
    :math:`s_j w_j` are standard normal at `n_informative` random places and zero elsewhere.

    Parameters
    ----------
    n_samples : int, default=10_000
        Number of records, at least 1.
    n_features : int, default=100
        Number of features, at least 1.
    n_informative : int, default=10
        Number of coefficients that are not zero, from 1 to `n_features`.
    smoothness_log_std : float, default=2.0
        Standard deviation of the logarithm of the smoothness constants, from 0 (the paper's
        balanced data) to 100.
    noise : float, default=0.1
        Standard deviation of the noise, 0 or more.
    coef : bool, default=False
        Whether to return w too.
    feature_scale : bool, default=False
        Whether to return s too: what the parameter `feature_scale` of the estimators may know.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; an int makes them the same at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The records.
    y : ndarray of shape (n_samples,)
        Their targets; for a seed the same whatever `smoothness_log_std` is.
    coef : ndarray of shape (n_features,)
        w, for the features as they are returned; only if `coef` is true.
    feature_scale : ndarray of shape (n_features,)
        s, the standard deviation of each feature's law; only if `feature_scale` is true.

    Raises
    ------
    TypeError
        If a size is no integer, or another parameter no number.
    ValueError
        If a parameter is out of its range.

    See Also
    --------
    make_scaled_classification : The same records, with two classes.
    make_dominated_regression : One large smoothness constant, all others equal.

    Notes
    -----
    From Section 5, "LASSO", of [1]_ (Figures 1a and 1b), which gives the sizes, the normal features
    and the log-normal smoothness. What it leaves open, and what we take:

    - The parameters of the log-normal law: 0 and 2. Of 100 constants the largest then has about a
      quarter of the sum, near the case of one dominating coordinate, to which the paper means to
      stay close; with 1 it would have 8 %.
    - Whether the predictor acts before or after the scaling: before, in the order of the text.
      After it, small features would say little about y, and an algorithm that neglects them, as the
      paper says of DP-SGD, would lose little.
    - The linear predictor: sparse, since the LASSO is to recover it, with ten standard normal
      coefficients.
    - "Small Gaussian noise": 0.1, against a signal near 3.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "Differentially Private Coordinate Descent
       for Composite Empirical Risk Minimization", ICML 2022.

    Examples
    --------
    >>> from papers.scaled_generators import make_scaled_regression
    >>> X, y, coef = make_scaled_regression(coef=True, random_state=0)
    >>> X.shape, y.shape, int((coef != 0).sum())
    ((10000, 100), (10000,), 10)
    >>> M = (X**2).mean(axis=0)
    >>> bool(M.max() > 1000 * M.min())
    True
    >>> X, y = make_scaled_regression(smoothness_log_std=0.0, random_state=0)
    >>> M = (X**2).mean(axis=0)
    >>> bool(M.max() < 1.2 * M.min())
    True
    """
    log_std = _check_log_std(smoothness_log_std)
    noise = check_number(noise, "noise", low=0.0)
    rng, X, u = _sparse_predictor(n_samples, n_features, n_informative, random_state)
    y = X @ u + noise * rng.standard_normal(len(X))
    s = _scale_by_lognormal(X, log_std, rng)
    return with_extras(X, y, (coef, u / s), (feature_scale, s))


def make_scaled_classification(
    n_samples: int = 10_000,
    n_features: int = 100,
    *,
    n_informative: int = 10,
    smoothness_log_std: float = 2.0,
    threshold: float = 0.0,
    flip_probability: float = 0.2,
    coef: bool = False,
    feature_scale: bool = False,
    random_state: RandomSeed = None,
) -> tuple[np.ndarray, ...]:
    r"""Make two noisy classes whose coordinate-wise smoothness is log-normal, or balanced.

    The records and w are those of `make_scaled_regression`. A record has the label 1 if
    :math:`x_i^\top w > \mathtt{threshold}` and -1 otherwise; then each label changes its sign with
    probability `flip_probability`, independently.

    Parameters
    ----------
    n_samples : int, default=10_000
        Number of records, at least 1.
    n_features : int, default=100
        Number of features, at least 1.
    n_informative : int, default=10
        Number of coefficients that are not zero, from 1 to `n_features`.
    smoothness_log_std : float, default=2.0
        Standard deviation of the logarithm of the smoothness constants, from 0 (the paper's
        balanced data) to 100.
    threshold : float, default=0.0
        Where the predictor parts the classes. Finite; 0 makes them equally likely.
    flip_probability : float, default=0.2
        Probability that a label is wrong, from 0 to 1.
    coef : bool, default=False
        Whether to return w too.
    feature_scale : bool, default=False
        Whether to return s too: what the parameter `feature_scale` of the estimators may know.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; an int makes them the same at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The records; those of `make_scaled_regression` for the same seed and
        ``smoothness_log_std=0``.
    y : ndarray of shape (n_samples,)
        Their labels, -1 and 1, as integers; for a seed the same whatever `smoothness_log_std` is.
    coef : ndarray of shape (n_features,)
        w, for the features as they are returned; only if `coef` is true.
    feature_scale : ndarray of shape (n_features,)
        s, the standard deviation of each feature's law; only if `feature_scale` is true. The
        smoothness constants of the logistic loss are about :math:`s_j^2 / 4`.

    Raises
    ------
    TypeError
        If a size is no integer, or another parameter no number.
    ValueError
        If a parameter is out of its range.

    See Also
    --------
    make_scaled_regression : The same records, with a real target.
    make_log1 : Classification with quasi-sparse coefficients.

    Notes
    -----
    From Section 5, "Logistic regression", of [1]_ (Figures 1c and 1d), which gives the sizes, the
    labels -1 and 1 and the probability 0.2. Its "fixed threshold" has no value: we take 0. The
    predictor acts before the features are scaled and is sparse, as in `make_scaled_regression`,
    whose Notes say why; flips are the only noise of the labels.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "Differentially Private Coordinate Descent
       for Composite Empirical Risk Minimization", ICML 2022.

    Examples
    --------
    >>> from papers.scaled_generators import make_scaled_classification
    >>> X, y, coef = make_scaled_classification(coef=True, random_state=0)
    >>> X.shape, y.shape
    ((10000, 100), (10000,))
    >>> round(float((y != ((X @ coef > 0) * 2 - 1)).mean()), 1)
    0.2
    """
    log_std = _check_log_std(smoothness_log_std)
    threshold = check_number(threshold, "threshold")
    flip_probability = check_number(flip_probability, "flip_probability", low=0.0, high=1.0)
    rng, X, u = _sparse_predictor(n_samples, n_features, n_informative, random_state)
    flipped = rng.uniform(size=len(X)) < flip_probability
    y = np.where(flipped, -1, 1) * signs(X @ u - threshold)
    s = _scale_by_lognormal(X, log_std, rng)
    return with_extras(X, y, (coef, u / s), (feature_scale, s))


def make_dominated_regression(
    n_samples: int = 10_000,
    n_features: int = 100,
    *,
    smoothness_ratio: float = 100.0,
    n_dominating: int = 1,
    noise: float = 0.1,
    coef: bool = False,
    feature_scale: bool = False,
    random_state: RandomSeed = None,
) -> tuple[np.ndarray, ...]:
    r"""Make a regression in which the first smoothness constants dominate all others.

    With independent standard normal :math:`z_{ij}`, :math:`e_i` and :math:`u_j`,

    .. math::

        x_{ij} = s_j z_{ij}, \qquad y_i = z_i^\top u + \mathtt{noise} \cdot e_i,

    where :math:`s_j^2` is `smoothness_ratio` for the first `n_dominating` features and 1 for the
    others. So :math:`M_{max} / M_{min}` is about `smoothness_ratio` for the squared loss.

    Parameters
    ----------
    n_samples : int, default=10_000
        Number of records, at least 1.
    n_features : int, default=100
        Number of features, at least 2.
    smoothness_ratio : float, default=100.0
        :math:`M_{max} / M_{min}`, finite and at least 1.
    n_dominating : int, default=1
        Number of features with the large constant, from 1 to ``n_features - 1``.
    noise : float, default=0.1
        Standard deviation of the noise, 0 or more.
    coef : bool, default=False
        Whether to return :math:`w_j = u_j / s_j` too.
    feature_scale : bool, default=False
        Whether to return s too: what the parameter `feature_scale` of the estimators may know.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws; an int makes them the same at each call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The records.
    y : ndarray of shape (n_samples,)
        Their targets; for a seed the same whatever `smoothness_ratio` and `n_dominating` are.
    coef : ndarray of shape (n_features,)
        w, for the features as they are returned; only if `coef` is true.
    feature_scale : ndarray of shape (n_features,)
        s, the standard deviation of each feature's law; only if `feature_scale` is true.

    Raises
    ------
    TypeError
        If a size is no integer, or another parameter no number.
    ValueError
        If a parameter is out of its range.

    See Also
    --------
    make_scaled_regression : Log-normal smoothness constants.

    Notes
    -----
    For the grid of dimension and conditioning of [1]_ (Section 5, Figure 2), which states
    n = 10,000 and "one larger smoothness constant"; the values of its grid stand in the figure
    only. It says nothing about coefficients and noise: we take dense standard normal coefficients,
    which act before the features are scaled, and noise of 0.1 as in `make_scaled_regression`. So
    the start at 0 is good in the first coordinate, as the analysis asks (its Section 3.4):
    :math:`M_1 w_1^2 \approx u_1^2` is small against the sum of the others, about p - 1.

    The comparison of block methods [2]_ has no experiments of its own. Its Section 4.3 speaks of a
    block of large constants (`n_dominating` of them) and of one small constant
    (``n_dominating=n_features - 1``, where the last feature is the small one).

    The ratio holds for the law of the features. In the data each constant varies by a factor of
    about :math:`1 \pm \sqrt{2/n}`.

    References
    ----------
    .. [1] P. Mangold, A. Bellet, J. Salmon, M. Tommasi, "Differentially Private Coordinate Descent
       for Composite Empirical Risk Minimization", ICML 2022.
    .. [2] A. Maranjyan, A. Sadiev, P. Richtárik, "Differentially Private Random Block Coordinate
       Descent", 2024.

    Examples
    --------
    >>> from papers.scaled_generators import make_dominated_regression
    >>> X, y, s = make_dominated_regression(feature_scale=True, random_state=0)
    >>> X.shape, y.shape
    ((10000, 100), (10000,))
    >>> s[:3]
    array([10.,  1.,  1.])
    """
    n_samples, n_features = check_sizes(n_samples, n_features, min_features=2)
    n_dominating = check_count(
        n_dominating, "n_dominating", high=n_features - 1, high_name="n_features - 1 = "
    )
    ratio = check_number(smoothness_ratio, "smoothness_ratio", low=1.0)
    noise = check_number(noise, "noise", low=0.0)
    rng, X = normal_design(n_samples, n_features, random_state)
    u = rng.standard_normal(n_features)
    y = X @ u + noise * rng.standard_normal(n_samples)
    s = np.ones(n_features)
    s[:n_dominating] = np.sqrt(ratio)
    X *= s
    return with_extras(X, y, (coef, u / s), (feature_scale, s))


def _sparse_predictor(n_samples, n_features, n_informative, random_state):
    """Return the generator, the design before its scaling, and the coefficients for it."""
    n_samples, n_features = check_sizes(n_samples, n_features)
    n_informative = check_informative(n_informative, n_features)
    rng, X = normal_design(n_samples, n_features, random_state)
    return rng, X, embed(rng.standard_normal(n_informative), n_features, rng)


def _check_log_std(smoothness_log_std):
    return check_number(smoothness_log_std, "smoothness_log_std", low=0.0, high=MAX_LOG_STD)


def _scale_by_lognormal(X, log_std, rng):
    """Scale the features in place by the roots of log-normal smoothness constants; return them."""
    s = np.exp(0.5 * log_std * rng.standard_normal(X.shape[1]))
    X *= s
    return s
