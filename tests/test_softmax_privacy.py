"""Releases of a softmax of K classes: sensitivities against a twin in NumPy, and their noise.

The sums of the room below are compared, layout by layout, in test_sums_of_classes.py; here it is
what a RecordOracle of K outputs makes of them: one clip over all classes, the noise that it is paid
for, and scores over features x classes.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from unreleased import MovingSums

from dpcd_sklearn import DPLinearClassifier
from dpcd_sklearn.inspection._released_answers import Tape
from dpcd_sklearn.losses import MultinomialLoss
from dpcd_sklearn.penalties import BoxPenalty, ElasticNet, Rule
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, SelectionEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import CoordinateUnits, RecordOracle
from dpcd_sklearn.privacy.sums import LocalPlace

RELATIONS = {"replace_one": 2.0, "add_remove": 1.0}
CONFIDENCE = 1 - 1e-7


def sums_of(X, y, K, M, clip, *, neighboring="replace_one", z=10.0, n=None, weights=None):
    event = FitEvent((GaussianEvent(z, 1), SelectionEvent(0.1, 1)), neighboring)
    units = CoordinateUnits(
        event, n_samples=len(X), smoothness=M, clip=clip, n_normalizer=n or len(X), n_outputs=K
    )
    place = LocalPlace(X, np.asarray(y, dtype=float), weights)
    return MovingSums(units, place, loss=MultinomialLoss())


def contributions(X, y, K, M, coef, clip, joint, weights=None):
    """Clipped gradients of each record in the geometry of M^(-1/2), over C: (n, K * P)."""
    A = np.column_stack([X, np.ones(len(X))])
    r = softmax(A @ coef.reshape(K, -1).T, axis=1) - np.eye(K)[np.asarray(y, dtype=int)]
    r = r * (1 if weights is None else weights[:, None])
    H = np.einsum("ik,ij->ikj", r, A).reshape(len(X), -1) / np.sqrt(M)
    H /= clip * math.sqrt(M.size if joint else K) / math.sqrt(M.sum())
    if joint:
        return H / np.maximum(1, np.linalg.norm(H, axis=1))[:, None]
    return np.clip(H, -1, 1)


def random_pairs(count, n=4):
    """Records of K classes, some of them long, an iterate, and a neighbour; thousands of them."""
    rng = np.random.default_rng(12)
    for _ in range(count):
        K, p = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        M = np.tile(rng.uniform(0.2, 3, p + 1), K)
        X = rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-1, 3, (n, 1))
        y, i = rng.integers(0, K, n), rng.integers(n)
        other_X, other_y = X.copy(), y.copy()
        # the worst are close to opposite features of one label
        other_X[i] = -X[i] if rng.random() < 0.5 else rng.standard_normal(p) * 100
        other_y[i] = y[i] if rng.random() < 0.5 else rng.integers(K)
        coef = rng.standard_normal(K * (p + 1)) * rng.uniform(0, 0.1)
        yield K, M, (X, y), (other_X, other_y), i, coef, 10.0 ** rng.uniform(-2, 1)


@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("joint", [True, False], ids=["joint", "one by one"])
def test_no_neighbour_moves_a_sum_by_more_than_the_noise_is_paid_for(neighboring, joint):
    neighbors, reached, z = RELATIONS[neighboring], 0.0, 10.0
    for K, M, one, other, i, coef, clip in random_pairs(600):
        if neighboring == "add_remove":
            other = tuple(np.delete(part, i, axis=0) for part in one)
        found = []
        for data in (one, other):
            asked = sums_of(*data, K, M, clip, neighboring=neighboring, z=z, n=4)
            sums, limit = asked.of(np.arange(M.size), coef, joint=joint)
            twin = contributions(*data, K, M, coef, clip, joint).sum(axis=0) * limit
            assert_allclose(sums, twin, rtol=0, atol=0.5 * len(data[1]) + 1e-6 * limit)
            found.append(sums)
        apart = found[0] - found[1]
        moved = np.linalg.norm(apart) if joint else np.max(np.abs(apart))
        size = M.size if joint else 1
        most = limit * (1 + (size + 16) * 2.0**-52) + (math.sqrt(size) / 2 if joint else 0)
        assert moved <= neighbors * most
        bits = math.floor(math.log2(z * neighbors * 2.0**24))
        assert 2.0**bits >= z * neighbors * most * (1 - 2.0**-52)
        reached = max(reached, moved / (neighbors * limit))
    assert reached > 0.98  # the noise is not more than what is needed


def test_a_mutant_that_clips_each_class_by_itself_is_noticed():
    """The twin of that mistake exceeds the sensitivity in these pairs."""
    worst = 0.0
    for K, M, one, other, _, coef, clip in random_pairs(300):
        moved = 0.0
        for data, sign in ((one, 1), (other, -1)):
            H = contributions(*data, K, M, coef, 1e-9 * clip, joint=True)
            H = H.reshape(len(data[1]), K, -1)  # directions; each class at its full clip
            H = H / np.maximum(np.linalg.norm(H, axis=2, keepdims=True), 1e-300)
            moved = moved + sign * H.sum(axis=0)
        worst = max(worst, np.linalg.norm(moved) / 2)
    assert worst > 1.4  # sqrt(K) times too much


RULES = [Rule.GS_S, Rule.GS_R, Rule.GS_Q]
PENALTIES = [ElasticNet(), ElasticNet(l1=0.05), ElasticNet(l2=0.5), BoxPenalty(-0.5, 1.0)]


@pytest.mark.parametrize("neighboring", RELATIONS)
def test_no_neighbour_moves_a_score_of_any_feature_and_class_by_more_than_s(neighboring):
    """Scores of all 2 K p' signed candidates, by every rule and penalty; s is that of the units."""
    neighbors, reached = RELATIONS[neighboring], 0.0
    for t, (K, M, one, other, i, coef, clip) in enumerate(random_pairs(600)):
        if neighboring == "add_remove":
            other = tuple(np.delete(part, i, axis=0) for part in one)
        own = clip * math.sqrt(K / M.sum())
        gradients = [
            contributions(*data, K, M, coef, clip, joint=False).sum(axis=0) * own * np.sqrt(M) / 4
            for data in (one, other)
        ]
        s = neighbors * own / 4  # of the units, for n = 4 and C_kj = own sqrt(M)
        rule, penalty = RULES[t % 3], PENALTIES[t // 3 % 4]
        w = np.clip(coef, -0.5, 1.0)
        scores = np.array(
            [
                [
                    penalty.greedy_score(rule, w[c], g[c], M[c], sign)
                    for c in range(M.size)
                    for sign in (-1, 1)
                ]
                for g in gradients
            ]
        )
        finite = np.isfinite(scores[0])
        assert_array_equal(finite, np.isfinite(scores[1]))
        moved = np.max(np.abs(scores[0] - scores[1])[finite])
        assert moved <= s * (1 + 1e-9)
        reached = max(reached, moved / s)
    assert reached > 0.98


def test_units_of_outputs_that_do_not_share_the_smoothness_out_are_refused():
    event = FitEvent((GaussianEvent(1.0, 1),))
    options = {"n_samples": 3, "clip": 1.0, "n_normalizer": 3}
    with pytest.raises(ValueError, match="7 entries, which are not those of 3 outputs"):
        CoordinateUnits(event, smoothness=np.ones(7), n_outputs=3, **options)
    # two outputs of three coordinates are not three of two
    units = CoordinateUnits(event, smoothness=np.ones(6), n_outputs=2, **options)
    place = LocalPlace(np.ones((3, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="of 3 columns, not 2"):
        RecordOracle(charge(None, event), units, place, loss=MultinomialLoss())


# ---- noise of the classes ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["skgd", "cd"])
def test_every_class_has_noise_of_its_own_and_as_much_as_is_stated(solver):
    n, K, T = 50, 4, 400
    X, y = np.zeros((n, 2)), np.arange(n) % K
    model = DPLinearClassifier(solver=solver, classes=range(K), max_iter=T, fit_intercept=False)
    model._recorder = tape = Tape()
    model.fit(X, y)  # records of zeros: nothing but noise is released
    (drawn,) = (of for kind, of in tape.drawn.items() if kind.method == "release_gradient")
    plan, z, size = tape.plan, model.noise_multiplier_, len(drawn[0])
    M = plan.geometry.smoothness
    assert (M == M[0]).all()  # whatever block is drawn
    std = z * 2 / n * plan.clip * math.sqrt(size) / math.sqrt(K * M.sum())
    seen = np.array(drawn) / (std * math.sqrt(M[0]))
    assert seen.shape == (plan.n_updates, size) and size == (2 * K if solver == "skgd" else K)
    # 6 standard deviations of a mean square and of correlations
    assert abs(np.mean(seen**2) - 1) < 6 * math.sqrt(2 / seen.size) + 1e-3
    correlations = np.corrcoef(seen.T) - np.eye(seen.shape[1])
    assert np.max(np.abs(correlations)) < 6 / math.sqrt(len(seen))
