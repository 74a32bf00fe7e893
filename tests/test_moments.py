"""Moments for inference: exact sums, bounded contributions, noise as claimed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table
from test_curvature import LAYOUTS, lower, records, separation, sums_of

from dpcd_sklearn.losses import LOSSES
from dpcd_sklearn.privacy.accounting import Budget, Receipt, curvature_fit_event, moments_event
from dpcd_sklearn.privacy.mechanisms import MomentOracle, MomentUnits
from dpcd_sklearn.privacy.mechanisms._curvature_units import matrix_sensitivity
from dpcd_sklearn.privacy.sums import LocalPlace

# ---- sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_moments_are_those_of_numpy_and_sums_of_what_each_record_adds(loss):
    rng = np.random.default_rng(0)
    X, y, weights = records(rng, n=530)
    y = (y > 0) * 1.0 if loss == "logistic" else y
    loss = LOSSES[loss]()
    coef, (transform, *_) = rng.normal(size=6) / 3, lower(rng, 6, 30.0)
    unit, units = 1 / np.abs(transform).max(), 2.0**15
    clip, row_norm, score_norm = 0.8, 1.5, 0.5

    def both(rows, make=np.ascontiguousarray):
        sums = sums_of(make(X[rows]), y[rows], weights[rows], loss=loss)
        return sums.image_grams(transform, coef, unit, clip, row_norm, score_norm, units)

    whole = both(np.arange(530))
    parts = [both(rows) for rows in np.array_split(rng.permutation(530), [1, 9, 513])]
    for k in (0, 1):
        assert all((whole[k] == both(np.arange(530), make)[k]).all() for make in LAYOUTS.values())
        assert (whole[k] == sum(part[k] for part in parts)).all()
    z = np.column_stack([X, np.ones(len(X))]) @ transform.T * unit
    margins = X @ coef[:5] + coef[5]
    r, lengths = loss.gradient(margins, y), np.linalg.norm(z, axis=1)
    second = np.sqrt(weights * loss.second_derivative(r, y))
    second[np.abs(weights * r) * lengths > clip] = 0.0
    for found, factors, most in (
        (whole[0], second, row_norm),
        (whole[1], np.abs(weights * r), score_norm),
    ):
        factors = np.minimum(factors, most / lengths)
        twin = (z * factors[:, None]).T @ (z * factors[:, None]) * (units / most) ** 2
        np.testing.assert_allclose(found, twin, rtol=1e-3, atol=units**2 * 1e-3)


@table("size", [1e-160, 1e-9, 1.0, 1e9, 1e160, 1e300])
@table("weight", [0.0, 1.0, 1e300])
def test_no_record_adds_more_than_its_units(size, weight):
    rng = np.random.default_rng(1)
    transform, *_ = lower(rng, 4, 1e4)
    for target in (0.0, 1e12):
        X = np.array([[size, -size, 0.5 * size]])
        sums = sums_of(X, np.array([target]), np.array([weight]))
        for coef in (np.ones(4), np.full(4, np.nan)):
            for gram in sums.image_grams(transform, coef, 1e-7, 1.0, 1.0, 1.0, 2.0**12):
                assert np.trace(gram) <= (2**12 + 1) ** 2


def test_second_derivatives_are_those_of_the_losses():
    margins, step = np.linspace(-2, 2, 41) + 0.001, 1e-6
    targets = {"squared": (0.3,), "huber": (0.0,), "logistic": (0.0, 1.0)}
    assert set(targets) == {name for name, loss in LOSSES.items() if not loss.multi_output}
    for name, y in ((name, y) for name, ys in targets.items() for y in ys):
        loss, y = LOSSES[name](), np.full(41, y)
        slope = (loss.gradient(margins + step, y) - loss.gradient(margins - step, y)) / (2 * step)
        found = loss.second_derivative(loss.gradient(margins, y), y)
        np.testing.assert_allclose(found, slope, atol=1e-6)


# ---- noise --------------------------------------------------------------------------------------


def moment_oracle(X, y, key=None, *, share=1.0, neighboring="replace_one"):
    """A release of moments with half of what (2, 1e-3) pays, with noise times `share` of it."""
    event = moments_event(Budget(2.0, 1e-3, neighboring), 0.5)
    sizes = {"n_samples": len(y), "n_normalizer": len(y), "smoothness": np.ones(X.shape[1])}
    units = MomentUnits(event, **sizes)
    units.bits += int(math.log2(share))
    units.mean_square_bits += int(math.log2(share))
    return MomentOracle(
        Receipt(event, None), units, LocalPlace(X, y), loss=LOSSES["squared"](),
        fit_intercept=False, key=key,
    )  # fmt: skip


def moment_separation(share=1.0):
    """Records whose rows are orthogonal, over the claim."""
    shown = []
    for row in ([3.0, 0.0], [0.0, 3.0]):
        shown.append([])
        for key in range(500):
            X, y = np.array([row, [0.0, 0.0]]), np.zeros(2)
            oracle = moment_oracle(X, y, key.to_bytes(32, "little"), share=share)
            jacobian, _ = oracle.release_moments(np.eye(2), np.zeros(2), 1.0, 1.0, 1.0)
            shown[-1].append(jacobian[0, 0] - jacobian[1, 1])
    matrices, _ = moments_event(Budget(2.0, 1e-3), 0.5).releases
    return separation(*shown) * matrices.noise_multiplier


def mean_square_separation(share=1.0):
    """A record at its clip or none, over the claim, of which grids leave 1 / sqrt(2) unused."""
    shown = []
    for target in (100.0, 0.0):
        X, y = np.eye(2), np.array([target, 0.0])
        oracles = (
            moment_oracle(X, y, key.to_bytes(32, "little"), share=share) for key in range(500)
        )
        shown.append([found.release_mean_square(X, np.zeros(2), 1.0) for found in oracles])
    _, mean_square = moments_event(Budget(2.0, 1e-3), 0.5).releases
    return separation(*shown) * mean_square.noise_multiplier * math.sqrt(2)


@pytest.mark.parametrize("found", [moment_separation, mean_square_separation])
def test_moments_are_told_apart_as_far_as_is_claimed_and_no_farther(found):
    assert found() == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("found", [moment_separation, mean_square_separation])
def test_half_the_noise_in_moments_is_caught(found):
    assert found(0.5) > 1.3


def test_moments_are_released_once():
    oracle = moment_oracle(np.eye(2), np.zeros(2))
    for root in (np.zeros((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match="a geometry is finite"):
            oracle.release_moments(root, np.zeros(2), 1.0, 1.0, 1.0)
    for widths in ((0.0, 1.0, 1.0), (1.0, math.nan, 1.0), (1.0, 1.0, math.inf)):
        with pytest.raises(ValueError, match="positive and finite"):
            oracle.release_moments(np.eye(2), np.zeros(2), *widths)
    oracle.release_mean_square(np.eye(2), np.zeros(2), 1.0)
    with pytest.raises(RuntimeError, match="one mean square"):
        oracle.release_mean_square(np.eye(2), np.zeros(2), 1.0)
    oracle.release_moments(np.eye(2), np.zeros(2), 1.0, 1.0, 1.0)
    with pytest.raises(RuntimeError, match="paid for once"):
        oracle.release_moments(np.eye(2), np.zeros(2), 1.0, 1.0, 1.0)
    event = curvature_fit_event(Budget(2.0, 1e-3), 1, 0.5)
    with pytest.raises(TypeError, match="two moments"):
        MomentUnits(event, n_samples=2, n_normalizer=2, smoothness=np.ones(2))


@settings(max_examples=60, deadline=None)
@given(
    log_epsilon=st.floats(-6, 6),
    neighboring=st.sampled_from(["replace_one", "add_remove"]),
    n=st.sampled_from([2, 1_000, 10**6, 2**28]),
    d=st.sampled_from([1, 7, 101, 4001]),
)
def test_noise_of_moments_covers_the_sensitivity_of_integers(log_epsilon, neighboring, n, d):
    event = moments_event(Budget(10.0**log_epsilon, 1e-9, neighboring), 0.2)
    units = MomentUnits(event, n_samples=n, smoothness=np.ones(d), n_normalizer=n)
    grids = (units.row_units, units.bits), (units.mean_square_units, units.mean_square_bits)
    for release, (norm, bits) in zip(event.releases, grids, strict=True):
        longest = norm + 0.5 * math.sqrt(d)  # rows are rounded
        of_matrix = matrix_sensitivity(longest, neighboring)
        assert of_matrix >= longest**2  # of the sum of squared norms
        assert 2.0**bits >= release.noise_multiplier * of_matrix
        assert n * longest**2 <= 2.0**62
