"""Promises of theory before anything is spent: utility and iterations from public facts."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpcd_sklearn.privacy.accounting import gdp_mu
from dpcd_sklearn.utils._public import check_real
from dpcd_sklearn.utils._texts import ReadableRepr
from dpcd_sklearn.utils._typing import ArrayLike

from .theorems import ITERATIONS, SAMPLINGS, promises
from .theory_facts import check_choice, check_facts


@dataclass(frozen=True)
class UtilityBound(ReadableRepr):
    """One line of :class:`UtilityBounds`.

    Attributes
    ----------
    algorithm : str
    sampling : str
        How DP-SkGD draws coordinates; empty for the other algorithms.
    bound : float
        Order of magnitude of F(w) - F*.
    formula : str
        The bound in the letters of the paper, r = sqrt(log(1/delta)) / (n epsilon).
    source : str
        Paper and table, or theorem.
    """

    algorithm: str
    sampling: str
    bound: float
    formula: str
    source: str

    @property
    def key(self):
        """The algorithm's name, for DP-SkGD the pair with its sampling."""
        return (self.algorithm, self.sampling) if self.sampling else self.algorithm


@dataclass(frozen=True, repr=False)
class UtilityBounds(ReadableRepr):
    """Orders of magnitude of the error of each algorithm, the most promising first.

    A sequence of :class:`UtilityBound` that also finds them by name: ``bounds[0]``,
    ``bounds["DP-CD"]``, ``bounds["DP-SkGD", "nice"]``. Prints as a table.

    Attributes
    ----------
    rows : tuple of UtilityBound
        Sorted by `bound`; equals (to nine digits) stay in the order of the papers.
    case : {"convex", "strongly convex"}
        Which column of the papers' tables.
    n_samples, n_features : int
    epsilon, delta : float
    """

    rows: tuple
    case: str
    n_samples: int
    n_features: int
    epsilon: float
    delta: float

    @property
    def best(self):
        """The row with the smallest bound."""
        return self.rows[0]

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __getitem__(self, key):
        if isinstance(key, (int, np.integer, slice)):
            return self.rows[key]
        for row in self.rows:
            if key in (row.key, (row.algorithm, row.sampling)):
                return row
        raise KeyError(f"no bound for {key!r}; there are {[row.key for row in self.rows]}")

    def __repr__(self):
        lines = [
            f"{self.case}, n = {self.n_samples:,}, p = {self.n_features:,}, "
            f"epsilon = {self.epsilon:g}, delta = {self.delta:g}; orders of magnitude",
            f"{'algorithm':<10}{'sampling':<19}{'bound':>9}{'vs best':>9}  source",
        ]
        for row in self.rows:
            ratio = row.bound / self.best.bound
            lines.append(
                f"{row.algorithm:<10}{row.sampling:<19}{row.bound:>9.2e}{ratio:>9.3g}  {row.source}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class TheoreticalIterations(ReadableRepr):
    """How long a theorem lets an algorithm run.

    Attributes
    ----------
    algorithm, sampling : str
    n_outer, n_inner : int
        T and K, rounded upwards and at least 1; K = 1 where there is no inner loop.
    noise_multiplier : float or None
        Standard deviation of the noise over the sensitivity (2 L_j / n for a coordinate, 2 L_S / n
        for a set) that makes all T K Gaussian releases (epsilon, delta)-DP, by the exact curve of
        Gaussian DP. None for DP-GCD, whose choices of coordinates are not Gaussian.
    paper_noise_multiplier : float or None
        The same by the paper's closed form; None where that is not proven: for epsilon > 1,
        delta >= 1/3, and DP-GCD.
    source : str
        Paper and equation.
    """

    algorithm: str
    sampling: str
    n_outer: int
    n_inner: int
    noise_multiplier: float | None
    paper_noise_multiplier: float | None
    source: str

    @property
    def n_updates(self):
        """T K, the number of private updates."""
        return self.n_outer * self.n_inner


# --- the two questions ---------------------------------------------------------------------------


def utility_bounds(
    n_samples: int,
    smoothness: ArrayLike,
    *,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    strong_convexity: ArrayLike | None = None,
    norm: Literal["l2", "smoothness"] = "l2",
    full_lipschitz: float | None = None,
    block_size: int | None = None,
    initial_gap: float | None = None,
    failure_probability: float = 0.05,
) -> UtilityBounds:
    r"""Compare what the papers promise for each algorithm and sampling, before anything is spent.

    **Orders of magnitude only.** Each bound is an entry of Table 1 of Mangold et al. (2022) or of
    Maranjyan et al. (2024), or a theorem, with a constant of 1 and without its logarithms; those of
    1/delta, and for DP-GCD of p/zeta, stay. Theorems ask for epsilon <= 1 and delta < 1/3; beyond
    that only comparisons make sense. Ratios below 3 or so mean nothing.

    **Privacy.** Everything here is computed from what you state; nothing is charged. It stays free
    only while no argument was taken from the records.

    Parameters
    ----------
    n_samples : int >= 1
        Number of records. Public.
    smoothness : array-like of shape (n_features,)
        M_j > 0 with f(w + v) <= f(w) + <grad f(w), v> + sum_j M_j v_j^2 / 2 for every v, as the
        papers have it. Constants that hold for one coordinate at a time give the same bounds, see
        `spread` of :func:`theoretical_iterations`.
    lipschitz : float or array-like of shape (n_features,)
        L_j > 0: each record's loss changes by at most L_j abs(t) when w_j changes by t. With
        clipping, the clips.
    radius : float or array-like of shape (n_features,)
        Distance from the start to an optimum. A number bounds it in the `norm`; an array
        bounds abs(w0_j - w*_j) for every j, which tells more: with a number each theorem assumes
        the worst direction in a norm of its own, which partly decides the comparison. For DP-GCD
        it must hold for all w with F(w) <= F(w0), for DP-CompGD it bounds the feasible set.
    epsilon : float > 0, default=1.0
    delta : float in (0, 1), default=1e-6
    strong_convexity : float or array-like of shape (n_features,), default=None
        mu in the `norm`, or m_j such that F curves at least as sum_j m_j v_j^2. A ridge penalty
        alpha / 2 norm(w)^2 has mu = alpha in l2. None is the convex case.
    norm : {"l2", "smoothness"}, default="l2"
        The norm of scalar `radius` and `strong_convexity`: l2 (R_I and mu_I of the papers), or
        the one that weighs squares by M_j (R_M and mu_M).
    full_lipschitz : float, default=None
        Lambda: Lipschitz constant of each record's loss in l2, as clips of whole gradients give it.
        None, or more than norm(L), is norm(L); L_j above it are lowered to it.
    block_size : int in [1, n_features], default=None
        Size for the block and nice samplings; None is the square root of n_features, rounded up.
        Blocks hold consecutive features, as in :class:`~dpcd_sklearn.DPRidgeSkGD`.
    initial_gap : float >= 0, default=None
        F(w0) - F*, if F has a part that is not smooth: R_M of DP-CD is at least its square root.
    failure_probability : float in (0, 1), default=0.05
        zeta: DP-GCD's bound holds but for this, the others hold in expectation.

    Returns
    -------
    bounds : UtilityBounds
        Sorted, the smallest first.

    Raises
    ------
    TypeError
        If a fact is no number, array of numbers or string, as it should be; booleans aren't.
    ValueError
        If a fact is NaN, not positive and finite, of a wrong shape or out of its range.

    See Also
    --------
    theoretical_iterations : the T and K with which the theorems get there.

    Notes
    -----
    With :math:`r = \sqrt{\log(1/\delta)}/(n\epsilon)`, P the chances of the coordinates and
    :math:`\Sigma_S^2 = E[L_S^2 \sum_{j \in S} 1 / (p_j M_j)]`:

    - DP-CD: :math:`r \sqrt{p} \|L\|_{M^{-1}} R_M`; strongly convex
      :math:`r^2 p \|L\|_{M^{-1}}^2 / \mu_M`.
    - DP-SGD and DP-SVRG: :math:`r \sqrt{p} \Lambda R_I`; :math:`r^2 p \Lambda^2 / \mu_I`.
    - DP-SkGD: :math:`r \Sigma_S R_{M/P}`; :math:`r^2 \Sigma_S^2 \max_j (M_j / p_j) / \mu_I`, with
      the m_j, if they are known, inside the maximum.
    - DP-GCD: :math:`(r L_{max} / \sqrt{M_{min}})^{2/3} R_{M,1}^{4/3} \log(p/\zeta)`;
      :math:`r^2 L_{max}^2 \log(p/\zeta) / (M_{min} \mu_{M,1}^2)`.
    - DP-CompGD: :math:`r \sqrt{p} \Lambda R_I`.

    Where the papers are unclear or wrong:

    - Table 1 of Maranjyan et al. forgets a square on norm(L) for strongly convex functions, block
      and importance sampling; Theorem 4.2 has it, and so does this.
    - Importance sampling has R_{M/P} of Theorem 4.2, of which the table's R_I sqrt(sum_A max M) is
      the worst case; a scalar `radius` in l2 gives just that.
    - Nice sampling is in no table; Theorem 4.2 is evaluated for it, with L_S at most Lambda and
      the norm of L on S. Single uniform sampling is DP-CD without a composite part.
    - For DP-GCD log(1/delta) has the power 1/3 of (37), not 1 as in the theorem. The paper's
      choice of coordinates costs twice its claim or more; that changes constants.
    - DP-CompGD's projections reach all p dimensions after a few steps, so m = p. Its theorems make
      no use of strong convexity: it has no row there.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML.
    Mangold, Bellet, Salmon & Tommasi (2023). High-dimensional private empirical risk minimization
    by greedy coordinate descent. AISTATS.
    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.
    Huang, Lei & Kabán (2023). Optimization and learning with randomly compressed gradient updates.
    Neural Computation.

    Examples
    --------
    Three features of unit scale, one that is a hundred times larger and matters little:

    >>> from papers.theory import utility_bounds
    >>> bounds = utility_bounds(
    ...     10_000, [1e4, 1, 1, 1], lipschitz=[100, 1, 1, 1], radius=[0.001, 1, 1, 1]
    ... )
    >>> bounds
    convex, n = 10,000, p = 4, epsilon = 1, delta = 1e-06; orders of magnitude
    algorithm sampling               bound  vs best  source
    DP-CD                         2.58e-03        1  Mangold 2022, Table 1
    DP-SkGD   single uniform      2.58e-03        1  Maranjyan 2024, Table 1
    DP-SkGD   block uniform       9.12e-02     35.4  Maranjyan 2024, Table 1
    DP-SkGD   nice                9.12e-02     35.4  Maranjyan 2024, Thm 4.2
    DP-SkGD   full                1.12e-01     43.3  Maranjyan 2024, Table 1
    DP-SGD                        1.29e-01     49.9  Mangold 2022, Table 1
    DP-SVRG                       1.29e-01     49.9  Mangold 2022, Table 1
    DP-SkGD   single importance   1.29e-01     49.9  Maranjyan 2024, Table 1
    DP-CompGD                     1.29e-01     49.9  Huang 2023, Thm 11, 12
    DP-GCD                        2.21e+00      855  Mangold 2023, Thm 4.4
    DP-SkGD   block importance    5.26e+00 2.04e+03  Maranjyan 2024, Table 1
    >>> bounds.best.algorithm, bounds["DP-SkGD", "full"].formula
    ('DP-CD', 'r Sigma_S R_{M/P}')
    """
    facts = check_facts(locals())
    rows = [UtilityBound(*row) for row in promises(facts)]
    rows.sort(key=lambda row: float(f"{row.bound:.9e}"))  # ties but for rounding stay in order
    case = "convex" if facts.strong_convexity is None else "strongly convex"
    return UtilityBounds(
        tuple(rows), case, facts.n_samples, facts.n_features, facts.epsilon, facts.delta
    )


def _at_least_one(iterations):
    # 1e-12: a whole number that rounding pushed up stays what it is
    return max(1, math.ceil(iterations * (1 - 1e-12)))


def theoretical_iterations(
    algorithm: Literal["DP-CD", "DP-SkGD", "DP-GCD", "DP-CompGD"],
    n_samples: int,
    smoothness: ArrayLike,
    *,
    lipschitz: ArrayLike,
    radius: ArrayLike,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    strong_convexity: ArrayLike | None = None,
    norm: Literal["l2", "smoothness"] = "l2",
    full_lipschitz: float | None = None,
    sampling: str | None = None,
    block_size: int | None = None,
    spread: float = 1.0,
    initial_gap: float | None = None,
    failure_probability: float = 0.05,
) -> TheoreticalIterations:
    """The numbers of iterations T and K with which a theorem proves its utility.

    They keep the constants of the theorems, which are made for proofs: take them as orders of
    magnitude, and as public defaults that cost nothing.

    Parameters
    ----------
    algorithm : {"DP-CD", "DP-SkGD", "DP-GCD", "DP-CompGD"}
    n_samples, smoothness, lipschitz, radius, epsilon, delta : see :func:`utility_bounds`
    strong_convexity, norm, full_lipschitz, block_size : see :func:`utility_bounds`
    sampling : str, default=None
        For DP-SkGD only: "single uniform", "single importance", "block uniform",
        "block importance", "nice" or "full"; None is "full".
    spread : float in [1, n_features], default=1.0
        Bound on the largest eigenvalue of M^(-1/2) H M^(-1/2), H any Hessian of f. 1 if M bounds H
        as the papers assume; n_features is always enough if M_j bounds H_jj only. It lengthens
        DP-SkGD where several coordinates move at once, and matters little elsewhere.
    initial_gap : float >= 0, default=None
        F(w0) - F*. None takes what smoothness and radius imply, spread R_M^2 / 2, which holds if
        all of F is smooth.
    failure_probability : see :func:`utility_bounds`

    Returns
    -------
    iterations : TheoreticalIterations

    Raises
    ------
    TypeError, ValueError
        As :func:`utility_bounds`; if `sampling` is stated for another algorithm than DP-SkGD.

    See Also
    --------
    utility_bounds : what is proven to be reached with them.

    Notes
    -----
    With r = sqrt(log(1/delta)) / (n epsilon), and Sigma_S, P as in :func:`utility_bounds`:

    - DP-CD: T = 1, K = R_M sqrt(p/8) / (r norm(L)); strongly convex K = 2 p (1 + 1/mu_M),
      T = log2(gap / (12 K r^2 norm(L)^2)), norm(L)^2 = sum_j L_j^2 / M_j.
    - DP-SkGD: T = 1, K = R_{M/P} / (r Sigma_S); strongly convex K = 2 (1 + max(M_j / p_j) / mu),
      T = log2(gap / (12 K r^2 Sigma_S^2)). The main text of the paper prints
      K = 2 (1 + 1 / (mu max(M_j / p_j))), of which its appendix proves nothing.
    - DP-GCD: T = (R_{M,1} sqrt(Mmin) / (r Lmax))^(2/3) / 4; strongly convex
      T = 4/mu log(gap mu Mmin / (128 r^2 Lmax^2 log(8p/zeta))), mu = mu_{M,1}.
    - DP-CompGD: the paper leaves T open; T = 1/r balances the terms of its Theorem 12,
      T = 1/(p r^2) those of Theorem 11, where the step of the former would be too long.

    Both papers state another constant inside the log2 of T (32 for DP-CD, 1 for DP-SkGD) than
    their proofs use: 1/24, which is here.

    The papers' noise is valid for epsilon <= 1 and 1.2 to 1.8 times what the exact curve asks for.
    DP-CompGD's needs gradients that are clipped record by record, which the paper's are not.

    Examples
    --------
    >>> from papers.theory import theoretical_iterations
    >>> facts = {"lipschitz": [10, 1, 1, 1], "radius": 1.0, "strong_convexity": 0.5}
    >>> single = theoretical_iterations(
    ...     "DP-SkGD", 10_000, [100, 1, 1, 1], sampling="single importance", **facts
    ... )
    >>> single.n_outer, single.n_inner
    (15, 414)
    >>> print(f"{single.noise_multiplier:.0f}, {single.paper_noise_multiplier:.0f} in the paper")
    333, 507 in the paper
    """
    check_choice(algorithm, "algorithm", tuple(ITERATIONS))
    facts = check_facts(locals())
    spread = check_real(spread, "spread", low=1.0, high=facts.n_features, closed="both")
    if algorithm == "DP-SkGD":
        sampling = check_choice("full" if sampling is None else sampling, "sampling", SAMPLINGS)
    elif sampling is not None:
        raise ValueError(f"only DP-SkGD takes a sampling; leave it None for {algorithm}")
    outer, inner, source = ITERATIONS[algorithm](facts, sampling, spread)
    outer, inner = _at_least_one(outer), _at_least_one(inner)
    noise = _noise_multipliers(algorithm, outer * inner, facts.epsilon, facts.delta)
    return TheoreticalIterations(algorithm, sampling or "", outer, inner, *noise, source)


def _noise_multipliers(algorithm, n_updates, epsilon, delta):
    """Standard deviation over sensitivity: exact, and as the paper has it where that is proven."""
    if algorithm == "DP-GCD":
        return None, None
    exact = math.sqrt(n_updates) / gdp_mu(epsilon, delta)
    if epsilon > 1 or delta >= 1 / 3:
        return exact, None
    factor = 8 if algorithm == "DP-CompGD" else 3  # Alg. 4 of Huang; Theorems 1 and 4.1
    return exact, math.sqrt(factor * n_updates * math.log(1 / delta)) / epsilon
