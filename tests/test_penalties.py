"""Penalties, constraint sets and losses: each against what defines it."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose
from scipy.optimize import check_grad

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.losses import (
    LOSSES,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
)
from dpcd_sklearn.penalties import Box, BoxPenalty, ElasticNet, L1Ball, L2Ball

number = st.floats(-5, 5)
penalties = st.one_of(
    st.builds(ElasticNet, st.floats(0, 3), st.floats(0, 3), st.booleans()),
    st.sampled_from([(0.0, math.inf), (-1.0, 2.0), (-math.inf, 0.5), (0.25, 0.5)]).map(
        lambda bounds: BoxPenalty(*bounds)
    ),
)


# ---- penalties ---------------------------------------------------------------------------------


@given(penalties, number, st.floats(0.01, 10))
def test_a_proximal_point_is_a_minimiser(penalty, v, step):
    def objective(w):
        return step * penalty.value(np.array([w])) + (w - v) ** 2 / 2

    found = penalty.proximal(v, step)
    least = objective(found)
    assert least < math.inf
    for h in (1e-6, 1e-3, 0.1, 1.0):
        assert least <= min(objective(found - h), objective(found + h)) + 1e-12


@given(penalties, number, number, st.floats(0.01, 10))
def test_proximal_points_are_no_further_apart_than_their_arguments(penalty, u, v, step):
    apart = abs(penalty.proximal(u, step) - penalty.proximal(v, step))
    assert apart <= abs(u - v) + 1e-15 * (abs(u) + abs(v))


def test_a_box_is_free_inside_and_infinite_outside():
    box = BoxPenalty(-1.0, 2.0)
    assert box.value([-1.0, 0.0, 2.0]) == 0.0
    assert box.value([-1.1, 0.0]) == box.value([2.1]) == box.value([math.nan]) == math.inf
    assert BoxPenalty().proximal(-3.0, 0.1) == 0.0 and BoxPenalty().proximal(3.0, 0.1) == 3.0


@pytest.mark.parametrize("estimator", [DPLinearRegressor, DPLinearClassifier])
def test_a_box_may_be_half_open_and_holds_every_coefficient(estimator):
    X = np.random.default_rng(0).standard_normal((40, 3))
    for lo, hi in [(-1.0, 1.0), (0, 0.5), (-math.inf, 0.0), (0.1, math.inf), (-math.inf, math.inf)]:
        model = estimator(penalty=Box(lo, hi), max_iter=3).fit(X, X[:, 0] > 0)
        assert ((model.coef_ >= lo) & (model.coef_ <= hi)).all()


@pytest.mark.parametrize(("lo", "hi"), [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.nan)])
def test_a_box_without_inside_is_refused(lo, hi):
    with pytest.raises(ValueError, match="lo < hi"):
        BoxPenalty(lo, hi)
    with pytest.raises(ValueError, match="lo must be below hi|(lo|hi) of Box must be in"):
        Box(lo, hi).check()


# ---- balls -------------------------------------------------------------------------------------

wide = st.one_of(number, st.floats(-1e300, 1e300), st.sampled_from([1e20, -1e20, 1e200, 1e-200]))
vectors = hnp.arrays(float, st.integers(1, 8), elements=wide)


def norm_in(ball, coef):
    order = 1 if isinstance(ball, L1Ball) else 2
    largest = np.max(np.abs(coef), initial=0.0)
    return largest * np.linalg.norm(coef / largest, order) if largest else 0.0


@pytest.mark.parametrize("ball", [L1Ball, L2Ball])
@given(vectors, st.sampled_from([1e-6, 0.5, 1.0, 30.0]))
@example(np.array([1e20]), 1.0)
@example(np.array([1e200, 1e200]), 1.0)
@example(np.array([3.0, -1.0, 0.0]), 1.0)
def test_a_projection_is_in_the_ball_and_on_its_boundary_from_outside(ball, coef, radius):
    found = ball(radius).project(coef, np.ones(len(coef)))
    norm = norm_in(ball(radius), coef)
    assert norm_in(ball(radius), found) <= radius * (1 + 1e-12)
    if norm <= radius * (1 - 1e-12):
        np.testing.assert_array_equal(found, coef)
    elif norm > radius * (1 + 1e-12):
        assert norm_in(ball(radius), found) == pytest.approx(radius, rel=1e-9)


@pytest.mark.parametrize("ball", [L1Ball, L2Ball])
@given(hnp.arrays(float, 4, elements=number), hnp.arrays(float, 4, elements=number))
@settings(max_examples=200)
def test_no_point_of_the_ball_is_nearer_than_the_projection(ball, coef, other):
    smoothness = np.array([1.0, 0.2, 3.0, 8.0])
    inside = ball(1.0).project(other, smoothness)
    found = ball(1.0).project(coef, smoothness)
    # the obtuse angle, in the norm of M, that characterises a projection onto a convex set
    assert (smoothness * (coef - found)) @ (inside - found) <= 1e-8


# ---- losses ------------------------------------------------------------------------------------


def cases():
    yield SquaredLoss(), 1
    yield HuberLoss(0.7), 1
    yield TweedieLoss(1.0, 1.0, 0.0, 5.0).bounded(), 1
    yield QuantileLoss(0.8, 0.3), 1
    yield LogisticLoss(), 1
    yield MultinomialLoss(), 4


every_loss = pytest.mark.parametrize(("loss", "K"), list(cases()), ids=[c[0].name for c in cases()])


def test_every_loss_is_tested():
    assert {loss.name for loss, _ in cases()} == set(LOSSES)


@pytest.mark.parametrize("power", [1.0, 1.3, 2.0])
@given(target=st.floats(0.5, 4.0), margin=st.floats(-1e4, 1e4), step=st.floats(0.0, 5.0))
def test_a_log_link_is_convex_bounded_and_of_the_public_range(power, target, margin, step):
    loss = TweedieLoss(power, 1.5, 0.5, 4.0)
    m = np.array([margin, margin + step])
    slope = loss.gradient(m, np.full(2, target))
    assert slope[0] <= slope[1] + 1e-12
    means = np.clip(np.exp(np.clip(m, -700, 700)), 0.5, 4.0)
    expected = (means - target) * means ** (1 - power) / 1.5 ** (2 - power)
    assert_allclose(slope, expected, rtol=1e-12, atol=1e-12)
    one = np.array([margin])
    assert check_grad(
        lambda m: float(loss.value(m, [target])[0]), lambda m: loss.gradient(m, [target]), one
    ) < 1e-5 * max(1, abs(margin))


@every_loss
@given(st.data())
def test_a_derivative_is_that_of_the_value(loss, K, data):
    margin = data.draw(hnp.arrays(float, K, elements=number))
    target = data.draw(st.integers(0, max(K - 1, 1)))

    def value(m):
        return float(loss.value(m[None] if K > 1 else m, np.array([target]))[0])

    def gradient(m):
        return np.ravel(loss.gradient(m[None] if K > 1 else m, np.array([float(target)])))

    assert check_grad(value, gradient, margin) < 1e-5


@every_loss
@given(st.data())
def test_derivatives_grow_by_the_curvature_at_most_and_are_monotone(loss, K, data):
    one, other = (data.draw(hnp.arrays(float, K, elements=st.floats(-30, 30))) for _ in range(2))
    target = np.array([float(data.draw(st.integers(0, max(K - 1, 1))))])
    change = np.ravel(loss.gradient(one[None] if K > 1 else one, target)) - np.ravel(
        loss.gradient(other[None] if K > 1 else other, target)
    )
    assert change @ (one - other) >= -1e-12
    assert np.linalg.norm(change) <= loss.curvature * np.linalg.norm(one - other) + 1e-12


@pytest.mark.parametrize("margins", [[800.0, -800.0, 0.0], [-800.0] * 3, [1e300, 1e300, -1e300]])
def test_multinomial_probabilities_survive_large_margins(margins):
    gradient = MultinomialLoss().gradient(np.array([margins]), np.array([1.0]))[0]
    assert np.isfinite(gradient).all()
    assert gradient.sum() == pytest.approx(0.0, abs=1e-12)
    assert ((gradient >= -1) & (gradient <= 1)).all()


@pytest.mark.parametrize("residual", [1e300, -1e300, math.inf, -math.inf])
def test_the_huber_derivative_never_exceeds_its_threshold(residual):
    found = HuberLoss(1.35).gradient(np.array([residual]), np.zeros(1))[0]
    assert found == math.copysign(1.35, residual)
