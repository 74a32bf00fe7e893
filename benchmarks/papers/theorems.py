"""The papers' theorems on utility, as functions of public facts.

(a) A bound is what the papers' tables state: constants of 1 and no logarithms, except those of
    1/delta and, for DP-GCD, of p/zeta. Numbers of iterations keep the constants of the theorems.
(b) r = sqrt(log(1/delta)) / (n epsilon) is in every theorem; bounds are called by it.
"""

import math
from dataclasses import dataclass

import numpy as np

SAMPLINGS = (
    "single uniform",
    "single importance",
    "block uniform",
    "block importance",
    "nice",
    "full",
)


# --- DP-SkGD: what a sampling is worth -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sketch:
    """A sampling in the eyes of Theorem 4.2 of Maranjyan et al. (2024).

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
        M_j / p_j.
    noise : float
        Sigma_S = sqrt(E[L_S^2 sum_{j in S} 1 / (p_j M_j)]).
    """

    weights: np.ndarray
    noise: float


def _block_sketch(facts, block_size, importance):
    """Section 4.2.1; blocks of one coordinate are single sampling, one block is full sampling."""
    p = facts.n_features
    starts = np.arange(0, p, block_size)  # as samplings.BlockSampling
    sizes = np.diff(starts, append=p)
    largest = np.maximum.reduceat(facts.smoothness, starts)
    chances = largest / largest.sum() if importance else np.full(len(starts), 1 / len(starts))
    lipschitz = np.sqrt(np.add.reduceat(facts.lipschitz**2, starts))
    lipschitz = np.minimum(lipschitz, facts.full_lipschitz)
    noise = np.sum(lipschitz**2 * np.add.reduceat(1 / facts.smoothness, starts))
    return Sketch(facts.smoothness / np.repeat(chances, sizes), math.sqrt(noise))


def _nice_sketch(facts):
    """Uniform subsets of `block_size` coordinates; in no table, so from Theorem 4.2 itself.

    With L_S^2 <= sum_{i in S} L_i^2 the expectation is a sum over pairs (i, j) in S: the diagonal
    gives |L|_{1/M}^2, the others have a conditional chance of (size - 1)/(p - 1).
    """
    p, size = facts.n_features, facts.block_size
    inverse = np.sum(1 / facts.smoothness)
    diagonal = facts.sensitivity**2
    pairs = np.sum(facts.lipschitz**2) * inverse
    independent = diagonal + (size - 1) / max(p - 1, 1) * (pairs - diagonal)
    noise = min(independent, facts.full_lipschitz**2 * inverse)
    return Sketch(facts.smoothness * p / size, math.sqrt(noise))


def sketch(facts, sampling):
    if sampling == "nice":
        return _nice_sketch(facts)
    size = {"single": 1, "block": facts.block_size, "full": facts.n_features}
    return _block_sketch(facts, size[sampling.split()[0]], sampling.endswith("importance"))


def step_inflation(facts, sampling, spread):
    """The factor that makes M bound the Hessian on the sets that are drawn.

    Fercoq & Richtárik (2015) for "nice". Bounds of DP-SkGD do not change with the scale of M;
    numbers of iterations do.
    """
    p, size = facts.n_features, facts.block_size
    if sampling == "nice":
        return 1 + (size - 1) * (spread - 1) / max(p - 1, 1)
    return min(spread, {"single": 1, "block": size, "full": p}[sampling.split()[0]])


# --- bounds on utility: (algorithm, sampling, bound, formula, source) -----------------------------


def _convex_promises(facts):
    p, r = facts.n_features, facts.rate
    descent = r * math.sqrt(p) * facts.full_lipschitz * facts.distance(np.ones(p))
    random = r * math.sqrt(p) * facts.sensitivity * facts.composite_distance()
    yield "DP-CD", "", random, "r sqrt(p) |L|_{1/M} R_M", "Mangold 2022, Table 1"
    for name in ("DP-SGD", "DP-SVRG"):
        yield name, "", descent, "r sqrt(p) Lambda R_I", "Mangold 2022, Table 1"
    for sampling in SAMPLINGS:
        drawn = sketch(facts, sampling)
        bound = r * drawn.noise * facts.distance(drawn.weights)
        yield "DP-SkGD", sampling, bound, "r Sigma_S R_{M/P}", _sketch_source(sampling)
    noise = r * facts.lipschitz.max() / math.sqrt(facts.smoothness.min())
    bound = noise ** (2 / 3) * facts.distance_1() ** (4 / 3)
    bound *= math.log(p / facts.failure_probability)
    formula = "(r Lmax / sqrt(Mmin))^(2/3) R_{M,1}^(4/3) log(p/zeta)"
    yield "DP-GCD", "", bound, formula, "Mangold 2023, Thm 4.4"
    yield "DP-CompGD", "", descent, "r sqrt(p) Lambda R_I", "Huang 2023, Thm 11, 12"


def _strongly_convex_promises(facts):
    p, square = facts.n_features, facts.rate**2
    descent = square * p * facts.full_lipschitz**2 * facts.condition(np.ones(p))
    random = square * p * facts.sensitivity**2 * facts.condition(facts.smoothness)
    yield "DP-CD", "", random, "r^2 p |L|_{1/M}^2 / mu_M", "Mangold 2022, Table 1"
    for name in ("DP-SGD", "DP-SVRG"):
        yield name, "", descent, "r^2 p Lambda^2 / mu_I", "Mangold 2022, Table 1"
    for sampling in SAMPLINGS:
        drawn = sketch(facts, sampling)
        bound = square * drawn.noise**2 * facts.condition(drawn.weights)
        formula = "r^2 Sigma_S^2 max(M/P) / mu"
        yield "DP-SkGD", sampling, bound, formula, _sketch_source(sampling)
    noise = square * facts.lipschitz.max() ** 2 / facts.smoothness.min()
    bound = noise * facts.condition_1() ** 2 * math.log(p / facts.failure_probability)
    formula = "r^2 Lmax^2 log(p/zeta) / (Mmin mu_{M,1}^2)"
    yield "DP-GCD", "", bound, formula, "Mangold 2023, Thm 4.4"


def _sketch_source(sampling):
    return "Maranjyan 2024, " + ("Thm 4.2" if sampling == "nice" else "Table 1")


def promises(facts):
    convex = facts.strong_convexity is None
    return _convex_promises(facts) if convex else _strongly_convex_promises(facts)


# --- numbers of iterations: (T, K, source) --------------------------------------------------------


def _halvings(gap, noise):
    """T after which gap / 2^T is the noise of one round, 24 K/2 Sigma^2 r^2 in both papers.

    Both derive their bounds from this T, but state another constant in its logarithm: 32 as a
    factor (DP-CD), 1 for 1/24 (DP-SkGD). The displayed bounds follow with 1/24 only.
    """
    return math.log2(gap / (24 * noise)) if gap > 0 else 0.0


def cd_iterations(facts, sampling, spread):
    """Theorem 2 of Mangold et al. (2022), with the constants of its Appendix C.2."""
    p, noise = facts.n_features, facts.sensitivity * facts.rate
    if facts.strong_convexity is None:
        inner = facts.composite_distance() * math.sqrt(p / 8) / noise
        return 1.0, inner, "Mangold 2022, (66)"
    inner = 2 * p * (1 + facts.condition(facts.smoothness))
    outer = _halvings(facts.gap(spread), inner / 2 * noise**2)
    return outer, inner, "Mangold 2022, (68), (74)"


def skgd_iterations(facts, sampling, spread):
    """Theorem 4.2 of Maranjyan et al. (2024), with the K of its Appendix E.2.

    The main text has K = 2 (1 + 1 / (mu max M/P)). The appendix's proof loses a factor of two in
    Lemma E.1, but the lemma holds: with f(w*) >= f + <g, w* - w> + |g|_{1/M}^2 / 2 in E.4,
    2 (f(w_k) - f*) <= D_k - E[D_{k+1}] + N, hence at most D_0 / (2K) + N on average.
    """
    drawn = sketch(facts, sampling)
    inflation = step_inflation(facts, sampling, spread)
    noise = drawn.noise / math.sqrt(inflation) * facts.rate
    weights = drawn.weights * inflation
    if facts.strong_convexity is None:
        return 1.0, facts.distance(weights) / noise, "Maranjyan 2024, Thm 4.2"
    inner = 2 * (1 + facts.condition(weights))
    outer = _halvings(facts.gap(spread), inner / 2 * noise**2)
    return outer, inner, "Maranjyan 2024, App. E.2"


def gcd_iterations(facts, sampling, spread):
    """Theorem 4.4 of Mangold et al. (2023), from the proofs in its Appendix B.

    Convex: T of (37), the only one of three constants for which (37) follows from (36). Strongly
    convex: T between (55) and (56), for the contraction 1 - mu/4 of (53); (50) has mu/2.
    """
    noise = facts.rate * facts.lipschitz.max() / math.sqrt(facts.smoothness.min())
    if facts.strong_convexity is None:
        return (facts.distance_1() / noise) ** (2 / 3) / 4, 1.0, "Mangold 2023, (37)"
    condition, gap = facts.condition_1(), facts.gap(spread)
    logarithm = math.log(8 * facts.n_features / facts.failure_probability)
    ratio = gap / (128 * condition * noise**2 * logarithm)
    outer = 4 * condition * math.log(ratio) if ratio > 1 else 0.0
    return outer, 1.0, "Mangold 2023, (55)"


def compgd_iterations(facts, sampling, spread):
    """T that balances the two terms of Huang et al. (2023), with m = p; they leave T open.

    Theorem 12 (smooth) if its step, radius / (Lambda sqrt(m)), is at most 1 / (4 beta); its second
    term lacks the factor radius that (54) has. Theorem 11 (not smooth) otherwise.
    """
    p = facts.n_features
    beta = spread * facts.smoothness.max()
    step = facts.distance(np.ones(p)) / (facts.full_lipschitz * math.sqrt(p))
    if 4 * beta * step <= 1:
        return 1 / facts.rate, 1.0, "Huang 2023, Thm 12"
    return 1 / (p * facts.rate**2), 1.0, "Huang 2023, Thm 11"


ITERATIONS = {
    "DP-CD": cd_iterations,
    "DP-SkGD": skgd_iterations,
    "DP-GCD": gcd_iterations,
    "DP-CompGD": compgd_iterations,
}
