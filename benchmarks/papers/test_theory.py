"""The theory in the hand: bounds and iterations equal the papers' formulas, worked out here."""

import dataclasses
import math
from itertools import combinations

import numpy as np
import pytest
from tables import table

from dpcd_sklearn.privacy.accounting import gdp_delta
from dpcd_sklearn.samplings import BlockSampling

from .theorems import SAMPLINGS
from .theory import UtilityBounds, theoretical_iterations, utility_bounds

N = 10_000
M = [4.0, 1.0, 9.0, 1.0]
FACTS = {"lipschitz": [2.0, 1.0, 3.0, 0.5], "radius": [1.0, 2.0, 0.0, 1.0], "delta": 1e-6}
RATE = math.sqrt(math.log(1e6)) / N  # sqrt(log(1/delta)) / (n epsilon) for epsilon = 1
SINGLE = ["single uniform", "single importance"]
MU = 0.5


def bounds(smoothness=M, n_samples=N, **facts):
    return utility_bounds(n_samples, smoothness, **FACTS | facts)


def iterations(algorithm, smoothness=M, n_samples=N, **facts):
    return theoretical_iterations(algorithm, n_samples, smoothness, **FACTS | facts)


# ---- spot values, by hand ---------------------------------------------------------------------
# sum L^2/M = 4/4 + 1/1 + 9/9 + 0.25/1 = 3.25      |L|^2 = 14.25      sum 1/M = 1/4 + 1 + 1/9 + 1
# R_M^2 = 4*1 + 1*4 + 9*0 + 1*1 = 9                R_I^2 = 6
# R_{M,1} = 2*1 + 1*2 + 3*0 + 1*1 = 5              tr M = 15

INVERSE = 1 / 4 + 1 + 1 / 9 + 1
# two blocks of two: (4 + 1)(1/4 + 1) + (9 + 0.25)(1/9 + 1)
BLOCKS = 5 * 1.25 + 9.25 * 10 / 9


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DP-CD", math.sqrt(4 * 3.25) * 3),
        ("DP-SGD", math.sqrt(4 * 14.25 * 6)),
        ("DP-SVRG", math.sqrt(4 * 14.25 * 6)),
        ("DP-CompGD", math.sqrt(4 * 14.25 * 6)),
        (("DP-SkGD", "single uniform"), math.sqrt(4 * 3.25) * 3),
        (("DP-SkGD", "single importance"), math.sqrt(3.25 * 15 * 6)),
        (("DP-SkGD", "block uniform"), math.sqrt(2 * BLOCKS) * 3),
        # q = 4/13 and 9/13; M/P = 13 (1, 1/4, 1, 1/9)
        (("DP-SkGD", "block importance"), math.sqrt(BLOCKS * 13 * (1 + 4 / 4 + 0 + 1 / 9))),
        (("DP-SkGD", "full"), math.sqrt(14.25 * INVERSE) * 3),
    ],
)
def test_convex_bounds_by_hand(key, value):
    assert bounds()[key].bound == pytest.approx(RATE * value, rel=1e-12)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("DP-CD", 4 * 3.25 * 9 / MU),  # mu_M = mu_I / max M
        ("DP-SGD", 4 * 14.25 / MU),
        ("DP-SVRG", 4 * 14.25 / MU),
        (("DP-SkGD", "single uniform"), 3.25 * 9 * 4 / MU),
        (("DP-SkGD", "single importance"), 3.25 * 15 / MU),
        (("DP-SkGD", "block uniform"), BLOCKS * 9 * 2 / MU),
        (("DP-SkGD", "block importance"), BLOCKS * (4 + 9) / MU),
        (("DP-SkGD", "full"), 14.25 * INVERSE * 9 / MU),
    ],
)
def test_strongly_convex_bounds_by_hand(key, value):
    row = bounds(strong_convexity=MU)[key]
    assert row.bound == pytest.approx(RATE**2 * value, rel=1e-12)


def test_greedy_bounds_by_hand():
    """L_max = 3, M_min = 1, p/zeta = 4/0.1; 1/mu_{M,1} = sum M_j/m_j = 15/mu."""
    convex = bounds(failure_probability=0.1)["DP-GCD"].bound
    assert convex == pytest.approx((RATE * 3) ** (2 / 3) * 5 ** (4 / 3) * math.log(40), rel=1e-12)
    curved = bounds(failure_probability=0.1, strong_convexity=MU)["DP-GCD"].bound
    assert curved == pytest.approx(RATE**2 * 9 * (15 / MU) ** 2 * math.log(40), rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("together", [None, 1.5])
def test_nice_sampling_is_the_expectation_over_all_subsets(size, together):
    L = np.minimum(FACTS["lipschitz"], together or np.inf)
    subsets = [list(S) for S in combinations(range(4), size)]
    chance = size / 4
    squares = [(L[S] ** 2).sum() * (1 / (chance * np.array(M)[S])).sum() for S in subsets]
    noise = np.mean(squares)
    if together:
        noise = min(noise, together**2 * INVERSE)
    row = bounds(block_size=size, full_lipschitz=together)["DP-SkGD", "nice"]
    assert row.bound == pytest.approx(RATE * math.sqrt(noise / chance) * 3, rel=1e-12)


def test_a_lipschitz_constant_for_all_lowers_those_for_sets():
    """Lambda = 2.5: L = (2, 1, 2.5, 0.5); on {2, 3} the norm of L is above it."""
    rows = bounds(full_lipschitz=2.5)
    assert rows["DP-SGD"].bound == pytest.approx(RATE * math.sqrt(4 * 6) * 2.5, rel=1e-12)
    single = 1 + 1 + 6.25 / 9 + 0.25
    assert rows["DP-CD"].bound == pytest.approx(RATE * math.sqrt(4 * single) * 3, rel=1e-12)
    blocks = 5 * 1.25 + 6.25 * 10 / 9
    block = rows["DP-SkGD", "block uniform"].bound
    assert block == pytest.approx(RATE * math.sqrt(2 * blocks) * 3, rel=1e-12)
    # more than |L|_2 says nothing
    assert [r.bound for r in bounds(full_lipschitz=99.0)] == [r.bound for r in bounds()]


def test_scalar_facts_are_worst_cases():
    """In l2: R_M = sqrt(max M) R, R_{M,1} = sqrt(tr M) R; in M: R_I = R / sqrt(min M)."""
    euclidean = bounds(radius=2.0)
    assert euclidean["DP-CD"].bound == pytest.approx(RATE * math.sqrt(13) * 3 * 2, rel=1e-12)
    importance = euclidean["DP-SkGD", "block importance"].bound
    assert importance == pytest.approx(RATE * math.sqrt(BLOCKS * 13) * 2, rel=1e-12)
    greedy = (RATE * 3) ** (2 / 3) * (2 * math.sqrt(15)) ** (4 / 3) * math.log(80)
    assert euclidean["DP-GCD"].bound == pytest.approx(greedy, rel=1e-12)
    weighted = bounds(M, radius=2.0, norm="smoothness")
    assert weighted["DP-CD"].bound == pytest.approx(RATE * math.sqrt(13) * 2, rel=1e-12)
    assert weighted["DP-SGD"].bound == pytest.approx(RATE * math.sqrt(57) * 2, rel=1e-12)
    curved = bounds(M, norm="smoothness", strong_convexity=MU)
    assert curved["DP-CD"].bound == pytest.approx(RATE**2 * 13 / MU, rel=1e-12)
    assert curved["DP-SGD"].bound == pytest.approx(RATE**2 * 57 / MU, rel=1e-12)


@pytest.mark.parametrize("case", [None, MU])
def test_no_direction_inside_the_ball_is_worse_than_the_scalar_radius(case):
    """The scalar's bounds are the supremum over arrays of that norm, for every row."""
    rng = np.random.default_rng(0)
    worst = bounds(radius=2.0, strong_convexity=case)
    for _ in range(50):
        r = rng.exponential(size=4) * (rng.random(4) < 0.5) + 1e-9
        some = bounds(radius=2 * r / np.linalg.norm(r), strong_convexity=case)
        for row in some:
            assert row.bound <= worst[row.key].bound * (1 + 1e-9)


def test_initial_gap_of_a_composite_problem():
    assert bounds(initial_gap=4.0)["DP-CD"].bound == bounds()["DP-CD"].bound  # R_M = 3 > 2
    composite = bounds(initial_gap=36.0)
    assert composite["DP-CD"].bound == pytest.approx(RATE * math.sqrt(13) * 6, rel=1e-12)
    assert composite["DP-SkGD", "single uniform"].bound < composite["DP-CD"].bound


@table("size", [1, 2, 3, 5, 7])
@table("importance", [False, True])
def test_blocks_are_those_of_the_solver(size, importance):
    """Section 4.2.1, written as its sums over the blocks that DPRidgeSkGD would draw."""
    rng = np.random.default_rng(1)
    smoothness, L, radius = rng.exponential(size=(3, 7))
    blocks = BlockSampling(7, size).blocks
    q = [smoothness[A].max() if importance else 1.0 for A in blocks]
    q = np.array(q) / sum(q)
    noise = sum((L[A] ** 2).sum() * (1 / smoothness[A]).sum() for A in blocks)
    far = sum((smoothness[A] * radius[A] ** 2).sum() / q[i] for i, A in enumerate(blocks))
    rows = utility_bounds(N, smoothness, lipschitz=L, radius=radius, block_size=size)
    found = rows["DP-SkGD", "block importance" if importance else "block uniform"].bound
    assert found == pytest.approx(RATE * math.sqrt(noise * far), rel=1e-12)


# ---- iterations -------------------------------------------------------------------------------


def test_cd_iterations_by_hand():
    """(66): K = R_M sqrt(p) n eps / (|L| sqrt(8 log)); (68), (74) with gap = R_M^2/2 = 4.5."""
    convex = iterations("DP-CD")
    assert convex.n_outer == 1
    inner = 3 * 2 * N / (math.sqrt(3.25) * math.sqrt(8 * math.log(1e6)))
    assert convex.n_inner == math.ceil(inner)
    curved = iterations("DP-CD", strong_convexity=MU)  # mu_M = 0.5/9, 1 + 1/mu_M = 19
    assert curved.n_inner == 2 * 4 * 19
    T = math.log2(4.5 * N**2 / (24 * 4 * 19 * 3.25 * math.log(1e6)))
    assert curved.n_outer == math.ceil(T)
    assert curved.n_updates == curved.n_outer * 152


def test_cd_iterations_minimise_the_bound_that_they_come_from():
    """(65), 3 p R^2 / (2 K) + 12 |L|^2 K log / (n eps)^2, is lower at K than at its neighbours."""

    def bound(K):
        return 3 * 4 * 9 / (2 * K) + 12 * 3.25 * K * RATE**2

    K = iterations("DP-CD").n_inner
    assert bound(K) < min(bound(0.9 * K), bound(1.1 * K))


@pytest.mark.parametrize(
    ("sampling", "largest"),
    [
        ("single uniform", 36),
        ("single importance", 15),
        ("block uniform", 18),
        ("block importance", 13),
        ("nice", 18),
        ("full", 9),
    ],
)
def test_skgd_takes_the_inner_loop_of_the_appendix(sampling, largest):
    """K = 2 (1 + max(M/p) / mu), not the main text's 2 (1 + 1 / (mu max(M/p)))."""
    found = iterations("DP-SkGD", sampling=sampling, strong_convexity=MU)
    assert found.n_inner == 2 * (1 + largest / MU)
    assert found.n_inner > 10 * 2 * (1 + 1 / (MU * largest))


def test_the_inner_loop_of_the_appendix_halves_and_the_other_does_not():
    """f(w) = mu w_2^2 / 2 in two dimensions, M = (1, 1), no noise, one coordinate at a time.

    Drawn with probability 1/2, w_2 shrinks by 1 - mu. E f of the average of K iterates is at most
    the average of E f (convexity), and at least f of the mean (Jensen).
    """
    mu = 0.05
    facts = {"lipschitz": 1.0, "radius": 1.0, "strong_convexity": mu, "sampling": "single uniform"}
    K = theoretical_iterations("DP-SkGD", N, [1.0, 1.0], **facts).n_inner
    wrong = math.ceil(2 * (1 + 1 / (mu * 2)))
    assert (K, wrong) == (82, 22)
    at_most = np.mean((0.5 + 0.5 * (1 - mu) ** 2) ** np.arange(1, K + 1))
    at_least = np.mean((1 - mu / 2) ** np.arange(1, wrong + 1)) ** 2
    assert at_most <= 0.5 < at_least


def test_skgd_convex_iterations_by_hand():
    full = iterations("DP-SkGD")  # the default
    assert full == iterations("DP-SkGD", sampling="full")
    assert (full.n_outer, full.sampling) == (1, "full")
    assert full.n_inner == math.ceil(3 / (RATE * math.sqrt(14.25 * INVERSE)))


def test_skgd_outer_loop_by_hand():
    found = iterations("DP-SkGD", sampling="full", strong_convexity=MU, initial_gap=2.0)
    noise = 24 * (1 + 9 / MU) * 14.25 * INVERSE * RATE**2
    assert found.n_outer == math.ceil(math.log2(2.0 / noise))


@pytest.mark.parametrize(
    ("sampling", "growth"),
    [("single importance", 1), ("block uniform", 2), ("nice", 1 + 1 / 3 * 2), ("full", 3)],
)
def test_correlated_features_need_shorter_steps(sampling, growth):
    """With spread 3 the M of the theorem grows, so K does; blocks of two correlate at most twice.

    1 + max(M/p)/mu and R_{M/P} / Sigma_S are both linear in it; the bounds on utility keep.
    """
    facts = {"sampling": sampling, "strong_convexity": 1e-3}
    x = (iterations("DP-SkGD", **facts).n_inner - 2) / 2
    assert iterations("DP-SkGD", spread=3.0, **facts).n_inner == math.ceil(
        2 * (1 + x * growth) * (1 - 1e-12)
    )
    facts["strong_convexity"] = None
    straight = iterations("DP-SkGD", **facts).n_inner
    assert iterations("DP-SkGD", spread=3.0, **facts).n_inner == pytest.approx(
        straight * growth, abs=3
    )
    scaled = bounds([12.0, 3.0, 27.0, 3.0])["DP-SkGD", sampling].bound
    assert scaled == pytest.approx(bounds()["DP-SkGD", sampling].bound, rel=1e-12)


def test_gcd_iterations_by_hand():
    """(37) with R = 5, M_min = 1, L_max = 3; the proof's T with mu = 1/30, gap = 4.5."""
    convex = iterations("DP-GCD")
    T = 5 ** (2 / 3) * N ** (2 / 3) / (4 * 3 ** (2 / 3) * math.log(1e6) ** (1 / 3))
    assert (convex.n_outer, convex.n_inner) == (math.ceil(T), 1)
    curved = iterations("DP-GCD", strong_convexity=MU, failure_probability=0.1)
    inside = N**2 * 4.5 / 30 / (128 * 9 * math.log(1e6) * math.log(320))
    assert curved.n_outer == math.ceil(4 * 30 * math.log(inside))


def test_compgd_iterations_by_hand():
    """Theorem 12 if 4 beta R <= Lambda sqrt(p), Theorem 11 otherwise."""
    far = iterations("DP-CompGD")  # 4 * 9 * sqrt(6) > sqrt(14.25 * 4)
    assert far.source.endswith("Thm 11")
    assert far.n_outer == math.ceil(N**2 / (4 * math.log(1e6)))
    near = iterations("DP-CompGD", radius=0.1)
    assert near.source.endswith("Thm 12")
    assert near.n_outer == math.ceil(N / math.sqrt(math.log(1e6)))
    assert iterations("DP-CompGD", radius=0.1, spread=4.0).source.endswith("Thm 11")


def test_hopeless_problems_run_once():
    for algorithm in ("DP-CD", "DP-SkGD", "DP-GCD", "DP-CompGD"):
        found = iterations(algorithm, n_samples=1, strong_convexity=MU, epsilon=1e-3)
        assert found.n_outer == 1
    found = iterations("DP-CD", strong_convexity=MU, initial_gap=0.0)
    assert found.n_outer == 1


def test_noise_is_exact_and_the_papers_is_larger():
    found = iterations("DP-CD")
    mu = math.sqrt(found.n_updates) / found.noise_multiplier
    assert 0.999e-6 < gdp_delta(mu, 1.0) <= 1e-6
    closed = math.sqrt(3 * found.n_updates * math.log(1e6))
    assert found.paper_noise_multiplier == pytest.approx(closed, rel=1e-12)
    assert found.paper_noise_multiplier / found.noise_multiplier == pytest.approx(
        6.438 / 4.225, rel=1e-3
    )
    sketched = iterations("DP-CompGD")
    closed = math.sqrt(8 * sketched.n_updates * math.log(1e6))
    assert sketched.paper_noise_multiplier == pytest.approx(closed, rel=1e-12)


def test_noise_is_not_quoted_where_it_is_not_proven():
    assert iterations("DP-CD", epsilon=1.01).paper_noise_multiplier is None
    assert iterations("DP-CD", delta=0.34).paper_noise_multiplier is None
    greedy = iterations("DP-GCD")
    assert greedy.noise_multiplier is None and greedy.paper_noise_multiplier is None


# ---- how bounds scale, and what the papers claim ------------------------------------------------


@pytest.mark.parametrize(("case", "power"), [(None, 1), (MU, 2)])
def test_twice_the_records_or_the_budget(case, power):
    """A half or a quarter; DP-GCD without curvature 2^(-2/3)."""
    base = bounds(strong_convexity=case)
    for other in (
        bounds(n_samples=2 * N, strong_convexity=case),
        bounds(epsilon=2.0, strong_convexity=case),
        bounds(delta=1e-24, strong_convexity=case),  # log(1/delta) grows by 4: the other way
    ):
        factor = 2.0 if other.delta == 1e-24 else 0.5
        for row in base:
            exponent = 2 / 3 if row.key == "DP-GCD" and case is None else power
            expected = row.bound * factor**exponent
            assert other[row.key].bound == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("case", [None, MU])
def test_equal_smoothness_makes_samplings_equal(case):
    """Importance is uniform, and DP-CD is DP-SGD with |L|_2 in the place of Lambda."""
    rows = bounds([2.0] * 4, strong_convexity=case)
    for block in ("single", "block"):
        uniform, importance = (rows["DP-SkGD", f"{block} {w}"] for w in ("uniform", "importance"))
        assert importance.bound == pytest.approx(uniform.bound, rel=1e-12)
    assert rows["DP-CD"].bound == pytest.approx(rows["DP-SGD"].bound, rel=1e-12)
    assert rows["DP-SkGD", "full"].bound == pytest.approx(rows["DP-SGD"].bound, rel=1e-12)
    tight = bounds([2.0] * 4, full_lipschitz=3.0, strong_convexity=case)
    assert tight["DP-CD"].bound > tight["DP-SGD"].bound


@pytest.mark.parametrize("case", [None, MU])
def test_samplings_meet_at_their_ends(case):
    for size, same in ((1, "single"), (4, "full")):
        rows = bounds(block_size=size, strong_convexity=case)
        end = rows["DP-SkGD", "full" if same == "full" else "single uniform"].bound
        assert rows["DP-SkGD", "nice"].bound == pytest.approx(end, rel=1e-12)
        assert rows["DP-SkGD", "block uniform"].bound == pytest.approx(end, rel=1e-12)
    assert rows["DP-CD"].bound == pytest.approx(rows["DP-SkGD", "single uniform"].bound, rel=1e-12)


@pytest.mark.parametrize("p", [10, 1000])
def test_cd_beats_sgd_when_a_large_coordinate_is_known(p):
    """Section 3.4 of Mangold et al. (2022): better by about sqrt(Mmax / Mmin)."""
    smoothness = np.r_[1e8, np.ones(p - 1)]
    L = np.r_[1e4, np.full(p - 1, 1e-3)]  # L_1^2 / M_1 dominates
    radius = np.r_[1e-6, np.ones(p - 1)]
    rows = utility_bounds(N, smoothness, lipschitz=L, radius=radius)
    ratio = rows["DP-SGD"].bound / rows["DP-CD"].bound
    assert ratio == pytest.approx(math.sqrt(1e8), rel=0.01)


def test_importance_beats_uniform_when_a_large_coordinate_is_far():
    """Section 4.3.2 of Maranjyan et al. (2024): up to sqrt(d) better, p where it is squared."""
    p = 100
    smoothness, radius = np.r_[1e6, np.ones(p - 1)], np.r_[1.0, np.full(p - 1, 1e-4)]
    facts = {"lipschitz": np.sqrt(smoothness), "radius": radius}
    rows = utility_bounds(N, smoothness, **facts)
    uniform, importance = (rows["DP-SkGD", sampling].bound for sampling in SINGLE)
    assert uniform / importance == pytest.approx(math.sqrt(p), rel=1e-3)
    rows = utility_bounds(N, smoothness, strong_convexity=MU, **facts)
    uniform, importance = (rows["DP-SkGD", sampling].bound for sampling in SINGLE)
    assert uniform / importance == pytest.approx(p, rel=1e-3)


def test_uniform_beats_importance_when_curvature_follows_smoothness():
    rows = bounds(norm="smoothness", strong_convexity=MU)
    uniform, importance = (rows["DP-SkGD", sampling].bound for sampling in SINGLE)
    assert importance / uniform == pytest.approx(15 / 4, rel=1e-12)  # tr M / (p min M)


def test_full_beats_sgd_when_a_small_coordinate_is_far():
    """Section 4.3.1 of Maranjyan et al. (2024): sqrt(d)."""
    p = 64
    smoothness, radius = np.r_[1.0, np.full(p - 1, 1e8)], np.r_[1.0, np.full(p - 1, 1e-9)]
    rows = utility_bounds(N, smoothness, lipschitz=1.0, radius=radius)
    ratio = rows["DP-SGD"].bound / rows["DP-SkGD", "full"].bound
    assert ratio == pytest.approx(math.sqrt(p), rel=1e-3)


def test_greedy_wins_in_high_dimension_with_a_sparse_optimum():
    """R_{M,1} = 1 whatever p: logarithmic growth, where DP-CD grows with p."""
    few, many = (
        utility_bounds(10**5, np.ones(p), lipschitz=1.0, radius=np.eye(1, p)[0])
        for p in (10**2, 10**6)
    )
    assert many["DP-GCD"].bound / few["DP-GCD"].bound < 3
    assert many["DP-CD"].bound / few["DP-CD"].bound == pytest.approx(1e4, rel=1e-9)
    assert many.best.key == "DP-GCD"


# ---- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [None, MU])
def test_rows_are_complete_sorted_and_found(case):
    rows = bounds(strong_convexity=case)
    names = {"DP-CD", "DP-SGD", "DP-SVRG", "DP-GCD"} | {("DP-SkGD", name) for name in SAMPLINGS}
    names |= {"DP-CompGD"} if case is None else set()
    assert {row.key for row in rows} == names and len(rows) == len(names)
    values = [row.bound for row in rows]
    assert values == pytest.approx(sorted(values), rel=1e-8)
    assert rows.best is rows[0] and rows[-1].bound == max(values)
    assert all(rows[row.key] is row for row in rows)
    assert rows.case == ("convex" if case is None else "strongly convex")
    with pytest.raises(KeyError, match="DP-SkGD"):
        rows["DP-SkGD"]


def test_ties_keep_the_papers_order():
    names = [row.algorithm for row in bounds() if row.algorithm in ("DP-SGD", "DP-SVRG")]
    assert names == ["DP-SGD", "DP-SVRG"]
    tied = [row.key for row in bounds([0.3] * 4, lipschitz=0.1, radius=0.7)][:3]
    assert tied == ["DP-CD", "DP-SGD", "DP-SVRG"]


def test_table_is_readable():
    rows = bounds()
    text = str(rows)
    assert text == repr(rows)
    lines = text.splitlines()
    assert len(lines) == 2 + len(rows) and max(map(len, lines)) <= 80
    for line, row in zip(lines[2:], rows, strict=True):
        assert line.startswith(row.algorithm) and row.sampling in line
        assert f"{row.bound:.2e}" in line and line.endswith(row.source)
    assert " 1  " in lines[2]  # the best compared with itself


def test_results_are_frozen():
    rows = bounds()
    assert isinstance(rows, UtilityBounds)
    for result, name in ((rows, "rows"), (rows[0], "bound"), (iterations("DP-CD"), "n_inner")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, name, 0)


def test_one_feature():
    rows = utility_bounds(N, [2.0], lipschitz=1.0, radius=3.0)
    for row in rows:
        if row.algorithm not in ("DP-GCD",):
            assert row.bound == pytest.approx(rows["DP-SGD"].bound, rel=1e-12)
    assert theoretical_iterations("DP-SkGD", N, [2.0], lipschitz=1.0, radius=3.0, sampling="nice")


def test_inputs_are_not_changed():
    facts = {name: np.array(value) for name, value in FACTS.items() if name != "delta"}
    smoothness = np.array(M)
    utility_bounds(N, smoothness, **facts, full_lipschitz=1.0)
    np.testing.assert_array_equal(smoothness, M)
    for name, value in facts.items():
        np.testing.assert_array_equal(value, FACTS[name])


# ---- bad facts ----------------------------------------------------------------------------------

NAN, INF = math.nan, math.inf
GOOD_FACTS = FACTS | {"n_samples": N, "smoothness": M}
BAD_FACTS = {  # of values and of types
    "n_samples": ([0], [10.0, True]),
    "smoothness": (
        [1.0, [], [[1.0, 1.0]], [1.0, 0.0, 1.0, 1.0], [1.0, NAN, 1.0, 1.0]],
        ["large", [True, True, True, True]],
    ),
    "lipschitz": ([-1.0, [1.0, 1.0], NAN], ["1", True]),
    "radius": (
        [0.0, INF, [1.0] * 3, [1.0, 1.0, 1.0, -1.0], [0.0] * 4, [1.0, 1.0, 1.0, NAN]],
        ["far", True, None, ["1"] * 4],
    ),
    "epsilon": ([0.0, NAN, INF], ["1"]),
    "delta": ([0.0, 1.0], [True]),
    "strong_convexity": ([0.0, NAN, [1.0, 1.0], [1.0, 1.0, 1.0, 0.0]], ["strong"]),
    "norm": (["l1", None], []),
    "full_lipschitz": ([0.0], [[1.0]]),
    "block_size": ([5, 0], [2.0]),
    "initial_gap": ([-1.0, NAN], []),
    "failure_probability": ([0.0], ["0.1"]),
}
BAD_QUESTIONS = [
    ({name: value}, error, name)
    for name, wrong in BAD_FACTS.items()
    for error, values in zip((ValueError, TypeError), wrong, strict=True)
    for value in values
]
BAD_QUESTIONS += [
    ({"algorithm": "DP-SGD"}, ValueError, "algorithm must be one of"),
    ({"algorithm": None}, ValueError, "algorithm must be one of"),
    ({"algorithm": "DP-SkGD", "sampling": "greedy"}, ValueError, "sampling must be one of"),
    ({"algorithm": "DP-CD", "sampling": "full"}, ValueError, "only DP-SkGD"),
    ({"algorithm": "DP-CD", "spread": 0.5}, ValueError, "spread"),
    ({"algorithm": "DP-CD", "spread": 4.5}, ValueError, "spread"),
    ({"algorithm": "DP-CD", "spread": "1"}, TypeError, "spread"),
]


@table(("facts", "error", "words"), BAD_QUESTIONS)
def test_bad_questions_are_refused_by_name(facts, error, words):
    with pytest.raises(error, match=words):
        theoretical_iterations(**{"algorithm": "DP-CD"} | GOOD_FACTS | facts)
    if "algorithm" not in facts:
        with pytest.raises(error, match=words):
            utility_bounds(**GOOD_FACTS | facts)
