"""The oracle: what a record may contribute, how often it answers, and by which law."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from dpcd_sklearn.losses import LogisticLoss, SquaredLoss
from dpcd_sklearn.penalties import ElasticNet
from dpcd_sklearn.privacy._accountant import charge
from dpcd_sklearn.privacy._events import FitEvent, GaussianEvent, SelectionEvent
from dpcd_sklearn.privacy._oracle import RecordOracle
from dpcd_sklearn.samplings import FullSampling, SingleSampling
from dpcd_sklearn.solvers import _cd, _gcd, _skgd
from dpcd_sklearn.solvers._problem import Problem

LIMIT_MARGIN = 1 + 2.0**-40


def make_oracle(X, y, *, event=None, smoothness=None, clip=1.0, loss=None, **options):
    if event is None:
        event = FitEvent((GaussianEvent(10.0, 100),))
    fit_intercept = options.setdefault("fit_intercept", True)
    if smoothness is None:
        smoothness = np.linspace(0.5, 2.0, X.shape[1] + fit_intercept)
    return RecordOracle(
        charge(None, event),
        X,
        np.asarray(y, dtype=np.float64),
        loss=loss or SquaredLoss(),
        smoothness=smoothness,
        clip=clip,
        n_normalizer=options.pop("n_normalizer", len(X)),
        **options,
    )


def records(n=203, p=11, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.integers(0, 2, n).astype(float), rng.random(n)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()])
def test_sums_are_those_of_ten_lines_of_numpy_in_every_layout(joint, bounded, dtype, loss):
    X, y, weights = records()
    X = X.astype(dtype)
    n, p = X.shape
    step = np.linspace(-0.4, 0.5, p + 1)
    smoothness = np.linspace(0.5, 2.0, p + 1)
    box = (np.full(p, -1.0), np.full(p, 1.5), np.full(p, 0.25)) if bounded else None
    options = {"loss": loss, "sample_weight": weights, "bounds": box, "clip": 1.5}
    Z = X.astype(np.float64)
    if bounded:
        Z = np.clip(Z, -1.0, 1.5) - 0.25
    Z = np.column_stack([Z, np.ones(n)])
    for block in (np.arange(p + 1), np.array([2]), np.array([p]), np.array([0, 3, 7, p])):
        seen = []
        for layout in (np.ascontiguousarray(X), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
            oracle = make_oracle(layout, y, **options)
            sums, limit = oracle._unreleased_sums(block, step, joint=joint)
            seen.append(sums)
        assert_array_equal(seen[0], seen[1])
        assert_array_equal(seen[0], seen[2])
        # the twin
        r = weights * loss.gradient(Z @ step, y)
        G = r[:, None] * Z[:, block]
        clips = 1.5 * np.sqrt(smoothness[block] / smoothness.sum())
        if joint:
            H = G / np.sqrt(smoothness[block])
            largest = 1.5 * np.sqrt(len(block) / smoothness.sum())
            H *= np.minimum(1, largest / np.maximum(np.linalg.norm(H, axis=1), 1e-300))[:, None]
            expected = np.rint(H * limit / largest).sum(axis=0)
        else:
            expected = np.rint(np.clip(G / clips, -1, 1) * limit).sum(axis=0)
        # margins are summed in another order, so a contribution may round to its neighbour
        assert np.max(np.abs(seen[0] - expected)) <= n
        assert np.max(np.abs(expected)) > 1e4 * n  # and that is a close call
        assert_array_equal(seen[0], np.rint(seen[0]))


def test_the_order_of_records_does_not_change_a_released_sum():
    X, y, _ = records(n=5000, p=3)
    order = np.random.default_rng(1).permutation(len(X))
    everything, step = np.arange(4), np.array([0.3, -0.2, 0.1, 0.5])
    one, _ = make_oracle(X, y)._unreleased_sums(everything, step, joint=True)
    other, _ = make_oracle(X[order], y[order])._unreleased_sums(everything, step, joint=True)
    assert_array_equal(one, other)


def test_two_steps_without_a_release_between_them_both_count():
    X, y, _ = records(p=4)
    a, b = np.array([0.1, 0, 0.2, 0, -0.3]), np.array([0, 0.7, 0, -0.1, 0.2])
    oracle = make_oracle(X, y)
    oracle._unreleased_sums([0], a, joint=False)
    two, _ = oracle._unreleased_sums(np.arange(5), b, joint=False)
    one, limit = make_oracle(X, y)._unreleased_sums(np.arange(5), a + b, joint=False)
    assert np.max(np.abs(two - one)) <= len(X)  # margins differ by rounding


EXTREME = [0.0, 1.0, -1.0, 1e-320, 1e-200, -1e-160, 1e-30, 1e30, -1e160, 1e300, 1.7e308]


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("p", [1, 2, 8, 21])
def test_no_record_contributes_more_than_the_limit(joint, p):
    rng = np.random.default_rng(p)
    for _ in range(300):
        x, y = rng.choice(EXTREME, (1, p)), rng.choice(EXTREME, 1)
        weight = np.abs(rng.choice(EXTREME, 1))
        step = rng.choice([*EXTREME[:3], 1e5, -1e290], p + 1)
        oracle = make_oracle(x, y, sample_weight=weight)
        sums, limit = oracle._unreleased_sums(np.arange(p + 1), step, joint=joint)
        assert np.isfinite(sums).all()
        if joint:
            assert np.linalg.norm(sums) <= limit * LIMIT_MARGIN + np.sqrt(p + 1) / 2
        else:
            assert np.max(np.abs(sums)) <= limit


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
@pytest.mark.parametrize("z", [0.01, 1.0, 37.5, 1e4, 1e6])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_noise_is_at_least_the_noise_multiplier_times_the_sensitivity(neighboring, z, size):
    X, y = np.ones((7, 99)), np.full(7, 1e9)
    event = FitEvent((GaussianEvent(z, 1),), neighboring)
    oracle = make_oracle(X, y, event=event)
    _, limit = oracle._unreleased_sums(np.arange(size), joint=size > 1)
    norm = limit if size == 1 else limit * (1 + (size + 16) * 2.0**-52) + np.sqrt(size) / 2
    sensitivity = norm * (2 if neighboring == "replace_one" else 1)
    bits = np.ceil(np.log2(z * sensitivity))  # the only power of two that is near
    assert 2.0**bits >= z * sensitivity
    assert 2.0**bits <= 1.01 * z * sensitivity  # and no more than 1 % above


def problem(p, n_updates, l1=0.0):
    return Problem(ElasticNet(l1), np.linspace(0.5, 2.0, p + 1), p, n_updates)


@pytest.mark.parametrize("solver", [_cd, _gcd, _skgd])
def test_a_solver_gets_no_more_releases_than_were_paid_for(solver):
    X, y, _ = records(p=3)
    releases = (GaussianEvent(5.0, 10),)
    if solver is _gcd:
        releases = (SelectionEvent(0.1, 10), *releases)
    sampling = FullSampling(4) if solver is _skgd else SingleSampling(4)
    generator = np.random.default_rng(0)
    paid = make_oracle(X, y, event=FitEvent(releases))
    assert np.isfinite(solver.solve(paid, problem(3, 10), sampling, generator).coef).all()
    with pytest.raises(RuntimeError, match="refused a release"):
        solver.solve(paid, problem(3, 1), sampling, generator)  # used up
    with pytest.raises(RuntimeError, match="refused a release"):
        solver.solve(
            make_oracle(X, y, event=FitEvent(releases)), problem(3, 11), sampling, generator
        )


def test_a_receipt_opens_one_oracle_and_an_oracle_is_never_copied():
    X, y, _ = records()
    receipt = charge(None, FitEvent((GaussianEvent(1.0, 1),)))
    build = {"loss": SquaredLoss(), "smoothness": np.ones(12), "clip": 1.0, "n_normalizer": 203}
    oracle = RecordOracle(receipt, X, y, **build)
    with pytest.raises(RuntimeError, match="redeemed before"):
        RecordOracle(receipt, X, y, **build)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never copied"):
            attempt(oracle)


def test_a_release_is_the_clipped_mean_with_gaussian_noise_of_the_stated_size():
    # one coordinate, clip reached by every record: the mean is C_0 exactly
    n, z, draws = 50, 3.0, 4000
    X, y = np.ones((n, 1)), np.full(n, -1e6)
    one = Problem(ElasticNet(), np.ones(1), 1, 1)
    values = []
    for _ in range(draws):
        oracle = make_oracle(
            X,
            y,
            event=FitEvent((GaussianEvent(z, 1),)),
            smoothness=np.ones(1),
            clip=0.5,
            fit_intercept=False,
        )
        values.append(-_cd.solve(oracle, one, SingleSampling(1), np.random.default_rng(0)).coef[0])
    noise = (np.array(values) - 0.5) / (z * 2 * 0.5 / n)
    assert stats.kstest(noise, "norm").pvalue > 1e-6


def test_greedy_choice_follows_the_exponential_mechanism():
    # two coordinates of M = 1 and given clipped means; 2 p signed candidates
    n, eta, draws = 20, 0.5, 20_000
    X = np.repeat([[0.4, -0.1]], n, axis=0)
    y = np.full(n, -1.0)  # derivative 1 at zero: means 0.4 and -0.1, clips 1
    event = FitEvent((SelectionEvent(eta, 1), GaussianEvent(1.0, 1)))
    one = Problem(ElasticNet(), np.ones(2), 2, 1)
    counts = np.zeros(2)
    for _ in range(draws):
        oracle = make_oracle(
            X, y, event=event, smoothness=np.ones(2), clip=np.sqrt(2), fit_intercept=False
        )
        # a tiny step keeps the choice visible: the chosen coordinate moves unless noise opposes it
        coef = _gcd.solve(oracle, one).coef
        if coef.any():
            counts[np.flatnonzero(coef)[0]] += 1
    b = 2 * (2 * 1.0 / n) / eta
    scores = np.array([0.4, -0.1])
    noise_std = 2 * 1.0 / n  # z = 1
    weights = np.exp(np.array([scores, -scores]) / b)  # move down, move up
    agrees = stats.norm.cdf(np.array([scores, -scores]) / noise_std)
    seen = (weights * agrees).sum(axis=0)
    expected = seen / weights.sum() * draws
    rest = draws - expected.sum()
    observed = [*counts, draws - counts.sum()]
    assert stats.chisquare(observed, [*expected, rest]).pvalue > 1e-6


@pytest.mark.parametrize("penalty", [ElasticNet(), ElasticNet(0.3), ElasticNet(0.2, 0.7)])
def test_scores_move_no_faster_than_the_gradient_over_the_root_of_smoothness(penalty):
    rng = np.random.default_rng(0)
    for _ in range(5000):
        w = rng.choice([0.0, rng.normal(), 1e-8, 50.0])
        smoothness = np.exp(rng.normal())
        g, h = rng.normal(size=2) * rng.choice([1e-3, 1.0, 30.0])
        for direction in (-1, 1):
            moved = penalty.greedy_score(w, g, smoothness, direction) - penalty.greedy_score(
                w, h, smoothness, direction
            )
            assert abs(moved) <= abs(g - h) / np.sqrt(smoothness) * (1 + 1e-9) + 1e-12 * (
                1 + abs(w)
            )
