"""Second-order sums: of rows, curvature and moments, and gradients of one output or several.

All are exact integers, the same in every layout and order, and no record contributes more than its
norm. How far neighbours move them, and their noise, is in test_neighbours.py.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from tables import table
from twins import EVERY_LAYOUT

from dpcd_sklearn.losses import LOSSES
from dpcd_sklearn.privacy.accounting import (
    Budget,
    Receipt,
    curvature_fit_event,
    epsilon_of,
    moments_event,
)
from dpcd_sklearn.privacy.mechanisms import (
    CurvatureOracle,
    CurvatureUnits,
    MomentOracle,
    MomentUnits,
    _curvature,
)
from dpcd_sklearn.privacy.mechanisms._curvature_units import (
    exact_image,
    image_sensitivity,
    matrix_sensitivity,
)
from dpcd_sklearn.privacy.sums import LocalPlace, _integer_rows
from dpcd_sklearn.privacy.sums._integer_rows import most_of_rows, most_of_transform, short_transform

SQUARED, SOFTMAX = LOSSES["squared"](), LOSSES["multinomial"]()
K = 4  # classes


def records(rng, n=700, p=5):
    """Sparse records of uneven length, with targets, labels, and weights above and below one."""
    X = rng.normal(size=(n, p)) * rng.choice([0.0, 0.1, 1.0, 30.0], size=(n, p))
    weights = rng.uniform(0, 3, n)
    return X, {1: rng.uniform(-1, 1, n), K: rng.integers(0, K, n).astype(float)}, weights


def sums_of(X, y, weights=None, *, bounds=None, fit_intercept=True, loss=None, smoothness=None,
            n_outputs=1):  # fmt: skip
    d = X.shape[1] + fit_intercept
    smoothness = np.ones(d) if smoothness is None else smoothness
    return LocalPlace(X, y, weights, bounds).second_order(
        loss or (SQUARED if n_outputs == 1 else SOFTMAX), smoothness,
        fit_intercept=fit_intercept, n_outputs=n_outputs,
    )  # fmt: skip


def cut_rows(X, weights, row_norm, fit_intercept=True):
    """Rows with features as long as the norm leaves them, and norms of these rows."""
    one = float(fit_intercept)
    norms = np.sqrt((X**2).sum(axis=1))
    room = np.sqrt(row_norm**2 / np.clip(weights, 1e-30, 1.0) - one)
    rows = X * np.minimum(1.0, room / np.maximum(norms, 1e-300))[:, None]
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(len(X))])
    return rows, np.maximum(np.sqrt((rows**2).sum(axis=1)), 1e-300)


def rows_twin(X, weights, row_norm, units, fit_intercept=True):
    """Rows as integers, in NumPy: whole rows, which are scaled down and rounded again."""
    wide = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    lengths = np.maximum(np.sqrt((wide**2).sum(axis=1)), 1e-120)
    longest = _integer_rows.longest_row(wide.shape[1])
    factors = np.minimum(np.sqrt(weights) * lengths, row_norm) / row_norm
    factors *= units / (longest + 0.5 * math.sqrt(wide.shape[1]))
    return np.rint(np.rint(wide * (longest / lengths)[:, None]) * factors[:, None])


def lower(rng, d, condition=1e3):
    """A triangular matrix of integers with a large condition number, and its singular values."""
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    root = np.linalg.cholesky((turn * np.geomspace(1, condition**2, d)) @ turn.T)
    transform = np.asfortranarray(
        np.tril(np.rint(root / np.abs(root).max() * most_of_transform(d)))
    )
    values = np.linalg.svd(transform, compute_uv=False)
    return transform, values[0] * (1 + 1e-9), values[-1] * (1 - 1e-6)


def geometry_of(rng, d, condition=1e3):
    transform, *values = lower(rng, d, condition)
    return transform, *values, short_transform(transform)


# ---- sums ---------------------------------------------------------------------------------------


@table("dtype", [np.float64, np.float32])
@table("fit_intercept", [True, False])
def test_sums_of_rows_and_of_their_products_are_those_of_numpy(dtype, fit_intercept):
    X, y, weights = records(np.random.default_rng(0))
    X, norm, intercept = X.astype(dtype), 2.0, {"fit_intercept": fit_intercept}
    sums = sums_of(X, y[1], weights, **intercept)
    rows = rows_twin(X.astype(float), weights, norm, 2.0**14, fit_intercept)
    # a computed norm may differ in its last bits, and an entry by one unit
    found, room = sums.gram(norm, 2.0**14), 2.0**14 * len(X) / 100
    np.testing.assert_allclose(found, rows.T @ rows, rtol=1e-4, atol=room)
    wide = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    plain = sums.gram(math.inf, 0.0)
    np.testing.assert_allclose(plain, wide.T @ (weights[:, None] * wide), rtol=1e-5)

    units = 2.0**15
    found, coarse = (sums.row_sums(norm, units, of) for of in (units, 2.0**10))
    rows, norms = cut_rows(X.astype(float), weights, norm, fit_intercept)
    counted = np.minimum(weights, norm / norms)[:, None]
    means = np.rint(rows * counted * units / norm).sum(axis=0)
    np.testing.assert_allclose(found[:-1], means, atol=len(X) / 10)
    squares = (counted * rows[:, : X.shape[1]] ** 2).sum() * (units / norm) ** 2
    assert found[-1] == pytest.approx(squares, rel=1e-4)
    np.testing.assert_array_equal(coarse[:-1], found[:-1])
    assert coarse[-1] == pytest.approx(found[-1] / 2.0**10, rel=1e-2)
    if fit_intercept:
        found = sums_of(X, y[1]).row_sums(norm, units, units)
        assert found[-2] == len(X) * np.rint(units / norm * (1 - 2.0**-30))


def test_bounds_and_scales_are_applied_before_rows_are_clipped():
    X, y, weights = records(np.random.default_rng(1))
    bounds = -np.full(5, 0.7), np.full(5, 0.9), np.full(5, 0.1)
    smoothness = np.array([0.25, 1.0, 4.0, 9.0, 1.0, 0.25])
    logistic = LOSSES["logistic"]()
    found = sums_of(X, y[1], bounds=bounds, loss=logistic, smoothness=smoothness).gram(2.0, 2.0**14)
    tau = (np.clip(X, -0.7, 0.9) - 0.1) * np.sqrt(0.25 / smoothness[:5])
    rows = rows_twin(tau, np.ones(len(X)), 2.0, 2.0**14)
    np.testing.assert_allclose(found, rows.T @ rows, rtol=1e-4, atol=2.0**14 * 7)


def contributions(X, y, weights, coef, transform, clip, n_outputs):
    """Gradients of each record, clipped by the norm of all their images together."""
    wide = np.column_stack([X.astype(float), np.ones(len(X))])
    margins = wide @ coef.reshape(n_outputs, -1).T
    r = margins - y[:, None]
    if n_outputs > 1:
        r = softmax(margins, axis=1) - np.eye(n_outputs)[y.astype(int)]
    g = (r * weights[:, None])[:, :, None] * wide[:, None, :]
    norms = np.linalg.norm(g @ transform.T, axis=(1, 2))
    return g * np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None, None]


@table("n_outputs", [1, K])
@table("dtype", [np.float64, np.float32])
def test_preconditioned_gradients_are_those_of_numpy(dtype, n_outputs):
    rng = np.random.default_rng(2)
    X, y, weights = records(rng)
    limit, clip = 2.0**36, 0.5
    X, coef = X.astype(dtype), 0.3 * rng.normal(size=6 * n_outputs)
    transform, _, smallest, short = geometry = geometry_of(rng, 6)
    sums = sums_of(X, y[n_outputs], weights, n_outputs=n_outputs)
    sums.measure(*geometry)
    found = np.array(sums.gradient(coef, clip, limit), dtype=float).reshape(n_outputs, -1)
    options = X, y[n_outputs], weights, coef, transform
    twin = contributions(*options, clip * smallest, n_outputs).sum(axis=0)
    twin *= limit / clip
    np.testing.assert_allclose(found, twin, rtol=1e-3, atol=limit * len(X) * 1e-4)
    if n_outputs > 1:  # a softmax' derivatives add up to zero but for their rounding
        assert (np.abs(found.sum(axis=0)) <= len(X) * n_outputs / 2 * 2.0**15).all()
    plain = sums.gradient(coef, 1.0, 0.0).reshape(n_outputs, -1)
    twin = contributions(*options, np.inf, n_outputs).sum(axis=0)
    np.testing.assert_allclose(plain, twin, rtol=1e-9, atol=1e-8)


@table("loss", ["squared", "huber", "logistic"])
def test_moments_of_images_are_those_of_numpy(loss):
    rng = np.random.default_rng(0)
    X, y, weights = records(rng, n=530)
    y = (y[1] > 0) * 1.0 if loss == "logistic" else y[1]
    loss = LOSSES[loss]()
    coef, (transform, *_) = rng.normal(size=6) / 3, lower(rng, 6, 30.0)
    unit, units = 1 / np.abs(transform).max(), 2.0**15
    clip, row_norm, score_norm = 0.8, 1.5, 0.5
    whole = sums_of(X, y, weights, loss=loss).image_grams(
        transform, coef, unit, clip, row_norm, score_norm, units
    )
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


def test_second_derivatives_are_those_of_the_losses():
    margins, step = np.linspace(-2, 2, 41) + 0.001, 1e-6
    targets = {"squared": (0.3,), "huber": (0.0,), "logistic": (0.0, 1.0)}
    assert set(targets) == {
        name for name, loss in LOSSES.items() if not loss.multi_output and loss.has_known_errors
    }
    for name, y in ((name, y) for name, ys in targets.items() for y in ys):
        loss, y = LOSSES[name](), np.full(41, y)
        slope = (loss.gradient(margins + step, y) - loss.gradient(margins - step, y)) / (2 * step)
        found = loss.second_derivative(loss.gradient(margins, y), y)
        np.testing.assert_allclose(found, slope, atol=1e-6)


@table("dtype", [np.float64, np.float32])
@table("condition", [30, 1e4])
def test_every_sum_is_the_sum_of_what_each_record_adds_in_every_layout(condition, dtype):
    """Integers are exact whatever a BLAS does, and depend on no other record and no place."""
    rng = np.random.default_rng(3)
    X, y, weights = records(rng, n=530, p=7)
    X = X.astype(dtype)
    coef, geometry = rng.normal(size=8 * K), geometry_of(rng, 8, condition)

    def everything(rows, make=np.ascontiguousarray):
        one, classes = (
            sums_of(make(X[rows]), y[n][rows], weights[rows], n_outputs=n) for n in (1, K)
        )
        found = []
        for sums, w in ((one, coef[:8]), (classes, coef)):
            sums.gram(3.0, 2.0**13, len(rows) == 530)  # rows that it keeps, or measure makes
            sums.measure(*geometry)
            found.append(sums.gradient(w, 0.3, 2.0**38))
            found += [sums.gram(3.0, 2.0**13), sums.row_sums(3.0, 2.0**16, 2.0**16)]
        unit = 1 / np.abs(geometry[0]).max()
        return found + list(one.image_grams(geometry[0], coef[:8], unit, 0.8, 1.5, 0.5, 2.0**15))

    parts = [everything(rows) for rows in np.array_split(rng.permutation(530), [1, 9, 200, 513])]
    total = [sum(each) for each in zip(*parts, strict=True)]
    for make in EVERY_LAYOUT.values():
        for found, expected in zip(everything(rng.permutation(530), make), total, strict=True):
            assert (found == expected).all()


@pytest.mark.parametrize("layout", EVERY_LAYOUT.values())
@pytest.mark.parametrize("scaled", [[1e200, -1e200], [1e308, 1e308], [0.0, 1e300]])
def test_a_record_of_an_infinite_or_undefined_norm_adds_nothing(scaled, layout):
    """As release_preconditioned.md says, whatever its bounds made of its features."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(9, 2)), rng.normal(size=9)
    X[4] = scaled
    geometry, found = geometry_of(rng, 2, 30), []
    for rows in (np.arange(9), np.delete(np.arange(9), 4)):
        sums = sums_of(layout(X[rows]), y[rows], fit_intercept=False)
        sums.measure(*geometry)
        found.append([*sums.gradient(np.ones(2), 0.5, 2.0**38), *sums.gram(2.0, 2.0**13).flat])
    assert any(found[1]) and found[0] == found[1]


@pytest.mark.parametrize("d", [1, 5, 64, 65, 300])
def test_second_moments_of_the_longest_rows_are_exact(d):
    """Rows that are all alike, and whose one large entry fills 32 bits as soon as any can."""
    units = math.floor(most_of_rows(d) - 0.5 * math.sqrt(d))
    X = np.full((5_003, d), 1e-3)
    X[:, -1] = 50.0
    found = sums_of(X, np.zeros(len(X)), fit_intercept=False).gram(1.0, float(units))
    row = rows_twin(X[:1], np.ones(1), 1.0, units * (1 - 2.0**-22), False)[0].astype(int)
    assert (found == len(X) * np.outer(row, row)).all() and row[-1] > 0.99 * units
    with pytest.raises(ValueError, match="16 bits"):
        sums_of(X, np.zeros(len(X))).gram(1.5, 2.0**15)


def clipped_images(d, condition, seed):
    """Norms of images of records far beyond the clip, over what a record's may be."""
    rng = np.random.default_rng(seed)
    transform, largest, smallest = lower(rng, d, condition)
    # rows whose second moments the geometry is made for
    X = np.linalg.solve(transform / largest, rng.normal(size=(d, 64))).T
    short, found, limit = _integer_rows.short_transform(transform), [], 2**32
    for row in X:
        sums = sums_of(row[None], np.array([1e6]), fit_intercept=False)
        sums.measure(transform, largest, smallest, short)
        integers = sums.gradient(np.zeros(d), 1e-3, float(limit))
        image = exact_image(transform, integers).astype(float)
        most = limit * smallest + 0.5001 * largest * math.sqrt(d)
        found.append(np.linalg.norm(image) / most)
    return np.array(found)


@pytest.mark.parametrize("condition", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("d", [1, 2, 7, 40])
def test_images_are_cut_to_their_bound_and_hardly_shorter(d, condition):
    """Whether their bounds are of a geometry in one limb or, far from round ones, in two."""
    images = clipped_images(d, condition, seed=d)
    assert images.max() <= 1 + 1e-12
    assert np.median(images) > 0.95


def test_a_mutant_that_forgets_what_a_geometry_of_16_bits_lacks_is_caught(monkeypatch):
    real = _integer_rows.short_transform

    def without_slack(transform):
        return *real(transform)[:-1], 0.0

    monkeypatch.setattr(_integer_rows, "short_transform", without_slack)
    assert max(clipped_images(7, 2.0, seed).max() for seed in range(3)) > 1 + 1e-6


def released(sums, units, transform, exponent, coef, clip):
    """A mean gradient in its geometry before noise, and the standard deviation of that noise."""
    values = np.linalg.svd(transform, compute_uv=False)
    largest, smallest = values[0] * (1 + 1e-9), values[-1] * (1 - 1e-6)
    sums.measure(transform, largest, smallest, short_transform(transform))
    bits, shift, limit = units.gradient_grid(largest, smallest, whole_rows=True)
    longest = clip * 2.0**exponent / smallest
    image = exact_image(transform, sums.gradient(coef, longest, float(limit)))
    unit = longest / limit * 2.0**-exponent / sums.n
    return image.astype(float) * unit, 2.0 ** (bits + shift) * unit


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("width", [1.0, 20.0, 200.0, 1e4])
@pytest.mark.parametrize("n", [1_000, 100_000])
def test_rows_of_16_bits_move_a_gradient_by_a_tenth_of_its_noise_at_most(n, width, epsilon):
    """Bounds of one column are so many times too wide, another has heavy tails; nothing is cut."""
    rng = np.random.default_rng([n, int(width)])
    X = rng.normal(size=(n, 4)) / 3
    X[:, 1] = (rng.standard_t(2, n) / 30).clip(-1, 1)
    X[:, 0] /= width
    y, coef, norm = X @ [width, 1.0, 0.5, 0.0] + rng.normal(size=n) / 4, np.ones(5) / 5, 2.0
    event = curvature_fit_event(Budget(epsilon, 1e-10), 6, 0.2)
    sizes = {"n_samples": n, "n_normalizer": n, "row_norm": norm}
    units, sums = CurvatureUnits(event, smoothness=np.ones(5), **sizes), sums_of(X, y)
    noise, row_units = units.curvature
    unit = (norm / row_units) ** 2 / n
    values, vectors = np.linalg.eigh(sums.gram(norm, float(row_units)) * unit)
    floor = math.sqrt(10) * 2.0**noise.bits * unit
    P = (vectors * np.maximum(values, floor)) @ vectors.T
    transform, exponent = _curvature.integer_transform(np.linalg.inv(np.linalg.cholesky(P)))
    wide = np.column_stack([X, np.ones(n)])
    images = wide @ np.ldexp(transform, -exponent).T * (wide @ coef - y)[:, None]
    clip = 1.05 * np.linalg.norm(images, axis=1).max()
    found, std = released(sums, units, transform, exponent, coef, clip)
    assert std == pytest.approx(units.noise_multiplier * 2 * clip / n, rel=0.1)
    assert np.abs(found - images.mean(axis=0)).max() < 0.1 * std


def test_images_of_sums_are_exact():
    rng = np.random.default_rng(4)
    for d in (1, 3, 90):
        transform = np.asfortranarray(np.tril(rng.integers(-1, 2, size=(d, d)))).astype(float)
        transform *= most_of_transform(d)
        sums = rng.integers(-(2**52), 2**52, size=(2, d)).astype(object) << 16
        exact = (sums @ transform.T.astype(int).astype(object)).ravel()
        assert (exact_image(transform, sums.ravel()) == exact).all()


# ---- no record contributes more than the clip ----------------------------------------------------

numbers = st.sampled_from([0.0, 1e-300, 1e-160, 1e-9, 0.3, 1.0, -1.0, 7.0, -1e5, 1e160, 1e300])


@settings(max_examples=300, deadline=None)
@given(
    row=st.lists(numbers, min_size=3, max_size=3),
    weight=st.sampled_from([0.0, 1e-300, 0.5, 1.0, 3.0, 1e300]),
    target=st.sampled_from([0.0, 1.0, -1e12]),
    n_outputs=st.sampled_from([1, 1, K]),
    condition=st.sampled_from([1.0, 10.0, 1e4]),
    steepness=st.sampled_from([0.0, 1.0, 10.0, 1e200, np.inf, np.nan]),
    fit_intercept=st.booleans(),
    limit=st.sampled_from([2**17, 2**38]),  # units: a row counts a few times, or very often
    seed=st.integers(0, 2**16),
)
def test_a_record_stays_within_its_norms(
    row, weight, target, n_outputs, condition, steepness, fit_intercept, limit, seed
):
    rng, d = np.random.default_rng(seed), 3 + fit_intercept
    y = np.array([target]) if n_outputs == 1 else np.array([3.0 * (target > 0)])
    options = {"fit_intercept": fit_intercept, "n_outputs": n_outputs}
    sums = sums_of(np.array([row]), y, np.array([weight]), **options)
    units, rounding = 2**12, 0.5 * math.sqrt(d)
    # of one record Σ q qᵀ has the trace |q|²
    assert np.trace(sums.gram(1.7, float(units))) <= (units + rounding) ** 2
    *means, square = sums.row_sums(2.0, float(units), float(units)).astype(float)
    assert square <= units**2 and np.linalg.norm(means) <= units + rounding
    transform, largest, smallest = lower(rng, d, condition)
    coef = rng.normal(size=n_outputs * d) * steepness
    if n_outputs == 1:
        for gram in sums.image_grams(transform, coef, 1e-7, 1.0, 1.0, 1.0, float(units)):
            assert np.trace(gram) <= (units + rounding) ** 2
    sums.measure(transform, largest, smallest, short_transform(transform))
    image = exact_image(transform, sums.gradient(coef, 0.1, float(limit))).astype(float)
    most = limit * smallest + 0.5001 * largest * math.sqrt(n_outputs * d)
    assert np.linalg.norm(image) <= most * (1 + 1e-12)


def test_a_gradient_needs_measured_rows_and_coefficients_of_all_outputs():
    sums = sums_of(np.ones((2, 2)), np.ones(2))
    with pytest.raises(RuntimeError, match="measure"):
        sums.gradient(np.zeros(3), 1.0, 4.0)
    with pytest.raises(ValueError, match="expected 3 coefficients"):
        sums.gradient(np.zeros(2), 1.0, 0.0)
    with pytest.raises(ValueError, match="expected 12 coefficients, got 3"):
        sums_of(np.ones((2, 2)), np.ones(2), n_outputs=K).gradient(np.zeros(3), 1.0, 0.0)
    with pytest.raises(ValueError, match="the squared loss has one output"):
        sums_of(np.ones((2, 2)), np.ones(2), loss=SQUARED, n_outputs=2)


# ---- units --------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(
    log_epsilon=st.floats(-6, 6),
    neighboring=st.sampled_from(["replace_one", "add_remove"]),
    n=st.sampled_from([2, 1_000, 10**6, 2**28]),
    d=st.sampled_from([1, 7, 101, 4001]),
    n_outputs=st.sampled_from([1, 1, 3, 1000]),
    condition=st.floats(1.0, 1e4),
)
def test_noise_covers_the_sensitivity_of_integers(
    log_epsilon, neighboring, n, d, n_outputs, condition
):
    budget = Budget(10.0**log_epsilon, 1e-9, neighboring)
    event = curvature_fit_event(budget, 5, 0.2, 1, 0.05, 2)
    sizes = {"n_samples": n, "smoothness": np.ones(d), "n_normalizer": n}
    units = CurvatureUnits(event, row_norm=3.0, n_outputs=n_outputs, **sizes)
    gradients, curvature, of_rows = (release.noise_multiplier for release in event.releases)
    rounding = 0.5 * math.sqrt(d)  # of rows within their units
    (noise, row_units), claimed = units.curvature, (curvature, of_rows, of_rows)
    of_matrix = matrix_sensitivity(row_units + rounding, neighboring)
    assert 2.0**noise.bits >= curvature * of_matrix
    assert n * (row_units + rounding) ** 2 <= 2.0**62
    longest = units.rows.units + rounding
    of_mean = {"replace_one": 2.0, "add_remove": 1.0}[neighboring] * longest
    assert of_rows * of_mean <= 2.0**units.rows.noise.bits <= 1.01 * of_rows * of_mean
    assert longest <= 2**16 * 1.01
    assert 2.0**units.squares.noise.bits >= of_rows * units.squares.units**2
    assert n * units.squares.units**2 <= 2.0**62
    grids = units.curvature, units.rows, units.squares
    assert tuple(grid.noise.noise_multiplier for grid in grids) == claimed
    smallest, size = most_of_transform(d) / condition / 10, n_outputs * d
    largest = smallest * condition
    for whole_rows, most in ((False, 2.0**52), (True, 2.0**68)):
        try:
            bits, shift, limit = units.gradient_grid(largest, smallest, whole_rows)
        except ValueError:  # rounding of entries would take what exact sums leave a record
            assert not whole_rows and condition * math.sqrt(size) > min(2.0**24, 2.0**50 / n)
            continue
        norm = (limit * smallest + 0.5 * largest * math.sqrt(size)) / 2.0**shift
        of_image = image_sensitivity(norm, size, units.neighbors)
        assert gradients * of_image <= 2.0**bits <= 1.1 * gradients * of_image  # none is wasted
        assert n * limit <= most and limit < (2**39 if whole_rows else 2**50)
    event = moments_event(budget, 0.2)
    units = MomentUnits(event, **sizes)
    grids = units.matrices, units.mean_square
    for release, (noise, norm) in zip(event.releases, grids, strict=True):
        of_matrix = matrix_sensitivity(norm + rounding, neighboring)
        assert of_matrix >= (norm + rounding) ** 2  # of the sum of squared norms
        assert noise.noise_multiplier == release.noise_multiplier
        assert 2.0**noise.bits >= release.noise_multiplier * of_matrix
        assert n * (norm + rounding) ** 2 <= 2.0**62


def test_the_whole_event_is_what_was_asked_for():
    for share in (0.01, 0.15, 0.9):
        event = curvature_fit_event(Budget(1.3, 1e-7, "add_remove"), 6, share)
        assert 1.3 * (1 - 1e-9) <= epsilon_of(event, 1e-7) <= 1.3 * (1 + 1e-9)


# ---- oracles ------------------------------------------------------------------------------------


def oracle_of(X, y, epsilon=2.0, *, n_outputs=1, row_norm=1.5, of_rows=0.5, n_of_rows=2):
    event = curvature_fit_event(Budget(epsilon, 1e-3), 2, 0.3, 1, of_rows, n_of_rows)
    units = CurvatureUnits(
        event, n_samples=len(y), smoothness=np.ones(X.shape[1]), n_normalizer=len(y),
        row_norm=row_norm, n_outputs=n_outputs,
    )  # fmt: skip
    return CurvatureOracle(
        Receipt(event, None), units, LocalPlace(X, y), loss=SQUARED if n_outputs == 1 else SOFTMAX,
        fit_intercept=False, key=bytes(32),
    )  # fmt: skip


def test_no_more_is_released_than_was_paid_for():
    """One release of each kind is counted in test_neighbours.py."""
    oracle = oracle_of(np.eye(2), np.ones(2))
    with pytest.raises(RuntimeError, match="geometry"):
        oracle.release_preconditioned(np.zeros(2), 1.0)
    oracle.release_curvature()
    for bad in (np.zeros((2, 2)), np.diag([1.0, 1e-9]), np.diag([1.0, np.nan])):
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            oracle.fix_geometry(bad)
    oracle.fix_geometry(np.eye(2))
    for clip in (0.0, math.inf, math.nan, -1.0):
        with pytest.raises(ValueError, match="clip must lie"):
            oracle.release_preconditioned(np.zeros(2), clip)
    with pytest.raises(RuntimeError, match="fixed once"):
        oracle.fix_geometry(np.eye(2))
    for _ in range(2):
        oracle.release_preconditioned(np.zeros(2), 1.0)
    with pytest.raises(RuntimeError, match="paid for"):
        oracle.release_preconditioned(np.zeros(2), 1.0)
    with pytest.raises(RuntimeError, match="mean row are not paid for"):
        oracle_of(np.eye(2), np.ones(2), n_of_rows=1).release_mean_row()
    with pytest.raises(RuntimeError, match="mean square of rows are not paid for"):
        oracle_of(np.eye(2), np.ones(2), of_rows=0.0).release_mean_square()


def test_how_rows_are_seen_is_fixed_before_the_curvature():
    oracle, place = oracle_of(np.eye(2), np.zeros(2)), LocalPlace(np.eye(2), np.zeros(2))
    for other, norm in ((LocalPlace(np.eye(3), np.zeros(3)), 1.0), (place, 0.0), (place, np.nan)):
        with pytest.raises(ValueError, match="the same records|row_norm"):
            oracle.see(other, norm)
    oracle.see(place, 1.0)
    oracle.release_curvature()
    with pytest.raises(RuntimeError, match="before their curvature"):
        oracle.see(place, 1.0)


def test_moments_are_of_a_finite_geometry_and_positive_widths():
    event = moments_event(Budget(2.0, 1e-3), 0.5)
    units = MomentUnits(event, n_samples=2, n_normalizer=2, smoothness=np.ones(2))
    place = LocalPlace(np.eye(2), np.zeros(2))
    oracle = MomentOracle(Receipt(event, None), units, place, loss=SQUARED, fit_intercept=False)
    for root in (np.zeros((2, 2)), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match="a geometry is finite"):
            oracle.release_moments(root, np.zeros(2), 1.0, 1.0, 1.0)
    for widths in ((0.0, 1.0, 1.0), (1.0, math.nan, 1.0), (1.0, 1.0, math.inf)):
        with pytest.raises(ValueError, match="positive and finite"):
            oracle.release_moments(np.eye(2), np.zeros(2), *widths)
