"""Curvature and preconditioned gradients: exact sums, bounded contributions, noise as claimed."""

import math
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpcd_sklearn.losses import LOSSES
from dpcd_sklearn.privacy.accounting import Budget, Receipt, curvature_fit_event
from dpcd_sklearn.privacy.mechanisms import (
    CurvatureOracle,
    CurvatureUnits,
    _curvature,
    _curvature_units,
    _questions,
)
from dpcd_sklearn.privacy.mechanisms._curvature import exact_image
from dpcd_sklearn.privacy.mechanisms._curvature_units import image_sensitivity, matrix_sensitivity
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.privacy.sums import LocalPlace, _integer_rows
from dpcd_sklearn.privacy.sums._integer_rows import (
    joined,
    most_of_rows,
    most_of_transform,
    short_transform,
    split,
)

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "rows of a wider array": lambda X: np.hstack([X, X])[:, : X.shape[1]],
    "CSR": sparse.csr_matrix,
    "CSC": sparse.csc_matrix,
}
SQUARED = LOSSES["squared"]()


def records(rng, n=700, p=5):
    """Sparse records of uneven length, with weights above and below one."""
    X = rng.normal(size=(n, p)) * rng.choice([0.0, 0.1, 1.0, 30.0], size=(n, p))
    return X, rng.uniform(-1, 1, n), rng.uniform(0, 3, n)


def sums_of(X, y, weights=None, *, bounds=None, fit_intercept=True, loss=SQUARED, smoothness=None):
    d = X.shape[1] + fit_intercept
    smoothness = np.ones(d) if smoothness is None else smoothness
    return LocalPlace(X, y, weights, bounds).second_order(
        loss, smoothness, fit_intercept=fit_intercept
    )


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
    """Rows as integers, in NumPy."""
    rows, norms = cut_rows(X, weights, row_norm, fit_intercept)
    factors = np.minimum(np.sqrt(weights), row_norm / norms)
    return np.rint(rows * factors[:, None] * (units / row_norm))


# ---- sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_second_moments_are_those_of_numpy_and_equal_in_every_layout(dtype, fit_intercept):
    X, y, weights = records(np.random.default_rng(0))
    X = X.astype(dtype)
    found = [
        sums_of(make(X), y, weights, fit_intercept=fit_intercept).gram(2.0, 2.0**14)
        for make in LAYOUTS.values()
    ]
    assert all((found[0] == other).all() for other in found[1:])
    rows = rows_twin(X.astype(float), weights, 2.0, 2.0**14, fit_intercept)
    # a computed norm may differ in its last bits, and an entry by one unit
    np.testing.assert_allclose(found[0], rows.T @ rows, rtol=1e-4, atol=2.0**14 * len(X) / 100)
    plain = sums_of(X, y, weights, fit_intercept=fit_intercept).gram(math.inf, 0.0)
    wide = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    np.testing.assert_allclose(plain, wide.T @ (weights[:, None] * wide), rtol=1e-5)


def test_bounds_and_scales_are_applied_before_rows_are_clipped():
    X, y, weights = records(np.random.default_rng(1))
    bounds = -np.full(5, 0.7), np.full(5, 0.9), np.full(5, 0.1)
    smoothness = np.array([0.25, 1.0, 4.0, 9.0, 1.0, 0.25])
    logistic = LOSSES["logistic"]()
    found = sums_of(X, y, bounds=bounds, loss=logistic, smoothness=smoothness).gram(2.0, 2.0**14)
    tau = (np.clip(X, -0.7, 0.9) - 0.1) * np.sqrt(0.25 / smoothness[:5])
    rows = rows_twin(tau, np.ones(len(X)), 2.0, 2.0**14)
    np.testing.assert_allclose(found, rows.T @ rows, rtol=1e-4, atol=2.0**14 * 7)


def lower(rng, d, condition=1e3):
    """A triangular matrix of integers with a large condition number, and its singular values."""
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    root = np.linalg.cholesky((turn * np.geomspace(1, condition**2, d)) @ turn.T)
    transform = np.asfortranarray(
        np.tril(np.rint(root / np.abs(root).max() * most_of_transform(d)))
    )
    values = np.linalg.svd(transform, compute_uv=False)
    return transform, values[0] * (1 + 1e-9), values[-1] * (1 - 1e-6)


def in_one(sums):
    """Sums of 64 bits that may have come in two."""
    return sums if sums.ndim == 1 else joined(*sums)


def in_bits(transform, largest, smallest, narrow):
    """A geometry for rows as they are, or also in 16 bits."""
    made = short_transform(transform)
    assert made is not None or not narrow
    return transform, largest, smallest, made if narrow else None


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_preconditioned_gradients_are_those_of_numpy_and_equal_in_every_layout(dtype, narrow):
    """Rows as they are or of 16 bits, which arrays keep and sparse matrices make anew."""
    rng = np.random.default_rng(2)
    X, y, weights = records(rng)
    limit, clip = 2.0**36 if narrow else 2.0**22, 0.5
    X, coef = X.astype(dtype), rng.normal(size=6)
    transform, largest, smallest = lower(rng, 6)
    found = []
    for make in LAYOUTS.values():
        sums = sums_of(make(X), y, weights)
        sums.measure(*in_bits(transform, largest, smallest, narrow))
        found.append(in_one(sums.gradient(coef, clip, limit)))
    assert all((found[0] == other).all() for other in found[1:])
    wide = np.column_stack([X.astype(float), np.ones(len(X))])
    r = (wide @ coef - y) * weights
    norms = np.abs(r) * np.linalg.norm(wide @ transform.T, axis=1) / smallest
    twin = (r * np.minimum(1, clip / norms)) @ wide * limit / clip
    np.testing.assert_allclose(found[0], twin, rtol=1e-3, atol=limit * len(X) * 1e-4)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_record_adds_does_not_depend_on_its_place_or_on_others(layout, narrow):
    """Integers are exact whatever a BLAS does: sums of all are the sums of each, in any order."""
    rng = np.random.default_rng(3)
    X, y, weights = records(rng, n=530, p=7)
    coef, geometry = rng.normal(size=8), in_bits(*lower(rng, 8, 1e4 if not narrow else 30), narrow)

    def both(rows):
        sums = sums_of(LAYOUTS[layout](X[rows]), y[rows], weights[rows])
        sums.measure(*geometry)
        gradient = sums.gradient(coef, 0.3, 2.0**40 if narrow else 2.0**24)
        return sums.gram(3.0, 2.0**13), in_one(gradient)

    whole = both(np.arange(530))
    mixed = both(rng.permutation(530))
    parts = [both(rows) for rows in np.array_split(rng.permutation(530), [1, 4, 9, 200, 513])]
    for k in (0, 1):
        assert (whole[k] == mixed[k]).all()
        assert (whole[k] == sum(part[k] for part in parts)).all()


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaled", [[1e200, -1e200], [1e308, 1e308], [0.0, 1e300]])
def test_a_record_of_an_infinite_or_undefined_norm_adds_nothing(scaled, layout, narrow):
    """As release_preconditioned.md says, whatever its bounds made of its features."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(9, 2)), rng.normal(size=9)
    X[4] = scaled
    geometry, found = in_bits(*lower(rng, 2, 30), narrow), []
    for rows in (np.arange(9), np.delete(np.arange(9), 4)):
        sums = sums_of(LAYOUTS[layout](X[rows]), y[rows], fit_intercept=False)
        sums.measure(*geometry)
        limit = 2.0**40 if narrow else 2.0**24
        found.append(in_one(sums.gradient(np.ones(2), 0.5, limit)))
    assert found[1].any() and (found[0] == found[1]).all()


@pytest.mark.parametrize("d", [1, 5, 64, 65, 300])
def test_second_moments_of_the_longest_rows_are_exact(d):
    """Rows that are all alike, and whose one large entry fills 32 bits as soon as any can."""
    units = math.floor(most_of_rows(d) - 0.5 * math.sqrt(d))
    X = np.full((5_003, d), 1e-3)
    X[:, -1] = 50.0
    found = sums_of(X, np.zeros(len(X)), fit_intercept=False).gram(1.0, float(units))
    row = np.rint(X[0] / np.linalg.norm(X[0]) * (units * (1 - 2.0**-30))).astype(int)
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
        integers = in_one(sums.gradient(np.zeros(d), 1e-3, float(limit)))
        image = np.array([float(value) for value in exact_image(transform, integers)])
        most = limit * smallest + 0.5001 * largest * math.sqrt(d)
        found.append(np.linalg.norm(image) / most)
    return np.array(found)


@pytest.mark.parametrize("condition", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("d", [1, 2, 7, 40])
def test_images_are_cut_to_their_bound_and_hardly_shorter(d, condition):
    """Whether their bounds are of a geometry of 16 bits or, far from round ones, of doubles."""
    images = clipped_images(d, condition, seed=d)
    assert images.max() <= 1 + 1e-12
    assert np.median(images) > 0.95


def test_a_mutant_that_forgets_what_a_geometry_of_16_bits_lacks_is_caught(monkeypatch):
    real = _integer_rows.short_transform

    def without_slack(transform):
        return *real(transform)[:-1], 0.0

    monkeypatch.setattr(_integer_rows, "short_transform", without_slack)
    assert max(clipped_images(7, 2.0, seed).max() for seed in range(3)) > 1 + 1e-6


def test_sums_beyond_64_bits_come_in_two_that_add_up():
    """268 million records are not refused, however few are public, and each may add 2^40."""
    totals = [2**68, -(2**68), -1, 0, 2**32, 12345 - 2**40]
    parts = np.array([split(total) for total in totals]).T
    assert parts.dtype == np.int64
    assert [joined(int(a), int(b)) for a, b in parts.T] == totals
    assert [joined(int(a), int(b)) for a, b in (parts + parts).T] == [2 * one for one in totals]


def released(sums, units, transform, exponent, coef, clip, narrow):
    """A mean gradient in its geometry before noise, and the standard deviation of that noise."""
    values = np.linalg.svd(transform, compute_uv=False)
    largest, smallest = values[0] * (1 + 1e-9), values[-1] * (1 - 1e-6)
    sums.measure(transform, largest, smallest, narrow)
    bits, shift, limit = units.gradient_grid(largest, smallest, narrow is not None)
    longest = clip * 2.0**exponent / smallest
    image = exact_image(transform, in_one(sums.gradient(coef, longest, float(limit))))
    unit = longest / limit * 2.0**-exponent / sums.n
    return np.array([float(value) for value in image]) * unit, 2.0 ** (bits + shift) * unit


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("width", [1.0, 20.0, 200.0, 1e5])
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
    unit = (norm / units.row_units) ** 2 / n
    values, vectors = np.linalg.eigh(sums.gram(norm, float(units.row_units)) * unit)
    floor = math.sqrt(10) * 2.0**units.curvature_bits * unit
    P = (vectors * np.maximum(values, floor)) @ vectors.T
    transform, exponent = _curvature.integer_transform(np.linalg.inv(np.linalg.cholesky(P)))
    narrow = short_transform(transform)
    assert narrow is not None
    wide = np.column_stack([X, np.ones(n)])
    images = wide @ np.ldexp(transform, -exponent).T * (wide @ coef - y)[:, None]
    clip = 1.05 * np.linalg.norm(images, axis=1).max()
    exact, std = released(sums, units, transform, exponent, coef, clip, None)
    found, of_narrow = released(sums, units, transform, exponent, coef, clip, narrow)
    assert of_narrow == pytest.approx(std, rel=0.1)
    assert np.abs(found - exact).max() < 0.1 * std


def test_images_of_sums_are_exact():
    rng = np.random.default_rng(4)
    for d in (1, 3, 90):
        transform = np.asfortranarray(np.tril(rng.integers(-1, 2, size=(d, d)))).astype(float)
        transform *= most_of_transform(d)
        sums = rng.integers(-(2**52), 2**52, size=d)
        exact = [sum(int(a) * int(b) for a, b in zip(row, sums, strict=True)) for row in transform]
        assert exact_image(transform, sums) == exact


# ---- no record contributes more than the clip ----------------------------------------------------

numbers = st.sampled_from([0.0, 1e-300, 1e-160, 1e-9, 0.3, 1.0, -1.0, 7.0, -1e5, 1e160, 1e300])


@settings(max_examples=150, deadline=None)
@given(
    row=st.lists(numbers, min_size=3, max_size=3),
    weight=st.sampled_from([0.0, 1e-300, 0.5, 1.0, 3.0, 1e300]),
    target=st.sampled_from([0.0, 1.0, -1e12]),
    condition=st.sampled_from([1.0, 10.0, 1e4]),
    fit_intercept=st.booleans(),
    narrow=st.sampled_from([0, 2**17, 2**38]),  # units: a row counts a few times, or very often
    seed=st.integers(0, 2**16),
)
def test_a_record_stays_within_its_norms(
    row, weight, target, condition, fit_intercept, narrow, seed
):
    rng, d = np.random.default_rng(seed), 3 + fit_intercept
    X, y, weights = np.array([row]), np.array([target]), np.array([weight])
    sums = sums_of(X, y, weights, fit_intercept=fit_intercept)
    units = 2**12
    gram = sums.gram(1.7, float(units))
    # of one record Σ q qᵀ has the trace |q|²
    assert np.trace(gram) <= (units + 0.5 * math.sqrt(d)) ** 2
    transform, largest, smallest = lower(rng, d, condition)
    made = short_transform(transform) if narrow else None
    sums.measure(transform, largest, smallest, made)
    limit = 2**20 if made is None else narrow
    integers = in_one(sums.gradient(rng.normal(size=d) * 10, 0.1, float(limit)))
    image = np.array([float(value) for value in exact_image(transform, integers)])
    most = limit * smallest + 0.5001 * largest * math.sqrt(d)
    assert np.linalg.norm(image) <= most * (1 + 1e-12)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("coef", [np.nan, np.inf, 1e200])
def test_iterates_that_diverge_give_bounded_sums(coef, narrow):
    rng = np.random.default_rng(5)
    X, y, weights = records(rng, n=3)
    sums = sums_of(X, y, weights)
    sums.measure(*in_bits(*lower(rng, 6), narrow))
    assert np.abs(in_one(sums.gradient(np.full(6, coef), 1.0, 2.0**10))).max() <= 3 * 2**10


def test_a_gradient_needs_measured_rows():
    sums = sums_of(np.ones((2, 2)), np.ones(2))
    with pytest.raises(RuntimeError, match="measure"):
        sums.gradient(np.zeros(3), 1.0, 4.0)
    with pytest.raises(ValueError, match="expected 3 coefficients"):
        sums.gradient(np.zeros(2), 1.0, 0.0)


# ---- units --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    log_epsilon=st.floats(-6, 6),
    neighboring=st.sampled_from(["replace_one", "add_remove"]),
    n=st.sampled_from([2, 1_000, 10**6, 2**28]),
    d=st.sampled_from([1, 7, 101, 4001]),
    condition=st.floats(1.0, 1e4),
)
def test_noise_covers_the_sensitivity_of_integers(log_epsilon, neighboring, n, d, condition):
    event = curvature_fit_event(Budget(10.0**log_epsilon, 1e-9, neighboring), 5, 0.2)
    units = CurvatureUnits(event, n_samples=n, smoothness=np.ones(d), n_normalizer=n, row_norm=3.0)
    gradients, curvature = event.releases
    # rows are within row_units, and rounded
    of_matrix = matrix_sensitivity(units.row_units + 0.5 * math.sqrt(d), neighboring)
    assert 2.0**units.curvature_bits >= curvature.noise_multiplier * of_matrix
    assert n * (units.row_units + 0.5 * math.sqrt(d)) ** 2 <= 2.0**62
    smallest = most_of_transform(d) / condition / 10
    largest = smallest * condition
    for whole_rows, most in ((False, 2.0**52), (True, 2.0**68)):
        bits, shift, limit = units.gradient_grid(largest, smallest, whole_rows)
        norm = (limit * smallest + 0.5 * largest * math.sqrt(d)) / 2.0**shift
        of_image = image_sensitivity(norm, d, units.neighbors)
        assert 2.0**bits >= gradients.noise_multiplier * of_image
        assert 2.0**bits <= 1.1 * gradients.noise_multiplier * of_image  # and is not wasted
        assert n * limit <= most and limit < (2**41 if whole_rows else 2**50)


def test_the_whole_event_is_what_was_asked_for():
    from dpcd_sklearn.privacy.accounting import epsilon_of

    for share in (0.01, 0.15, 0.9):
        event = curvature_fit_event(Budget(1.3, 1e-7, "add_remove"), 6, share)
        assert 1.3 * (1 - 1e-9) <= epsilon_of(event, 1e-7) <= 1.3 * (1 + 1e-9)


def test_units_refuse_what_is_not_proved():
    event = curvature_fit_event(Budget(1.0, 1e-6), 5, 0.2)
    sizes = {"n_samples": 9, "n_normalizer": 9, "row_norm": 2.0}
    with pytest.raises(ValueError, match="4,002 coordinates"):
        CurvatureUnits(event, smoothness=np.ones(4002), **sizes)
    for norm in (0.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="row_norm"):
            CurvatureUnits(event, smoothness=np.ones(3), **(sizes | {"row_norm": norm}))
    with pytest.raises(ValueError, match="records"):
        CurvatureUnits(event, smoothness=np.ones(3), **(sizes | {"n_samples": 2**29}))
    for epsilon, delta in ((1e-14, 1e-30), (1e300, 1e-6)):
        with pytest.raises(ValueError, match="noise multiplier"):
            CurvatureUnits(
                curvature_fit_event(Budget(epsilon, delta), 5, 0.2),
                smoothness=np.ones(3),
                **sizes,
            )
    one = type(event)(event.releases[:1])
    with pytest.raises(TypeError, match="one curvature"):
        CurvatureUnits(one, smoothness=np.ones(3), **sizes)


# ---- the oracle ---------------------------------------------------------------------------------


def oracle_of(X, y, epsilon=2.0, key=None, *, count=2, delta=1e-3, row_norm=1.5, **options):
    event = curvature_fit_event(
        Budget(epsilon, delta, options.pop("neighboring", "replace_one")), count, 0.5
    )
    n = options.pop("n_normalizer", len(y))
    units = CurvatureUnits(
        event,
        n_samples=len(y),
        smoothness=np.ones(X.shape[1]),
        n_normalizer=n,
        row_norm=row_norm,
    )
    place = LocalPlace(X, y)
    return CurvatureOracle(
        Receipt(event, None), units, place, loss=SQUARED, fit_intercept=False, key=key
    )


def test_no_more_is_released_than_was_paid_for():
    oracle = oracle_of(np.eye(2), np.ones(2))
    with pytest.raises(RuntimeError, match="geometry"):
        oracle.release_preconditioned(np.zeros(2), 1.0)
    oracle.release_curvature()
    with pytest.raises(RuntimeError, match="one curvature"):
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


def test_releases_are_unbiased_and_symmetric():
    rng = np.random.default_rng(6)
    X, y = rng.uniform(-1, 1, size=(4000, 3)), rng.uniform(-1, 1, 4000)
    oracle = oracle_of(X, y, epsilon=1e4, key=bytes(32), row_norm=2.0)
    found = oracle.release_curvature()
    assert (found == found.T).all()
    np.testing.assert_allclose(found, X.T @ X / 4000, atol=1e-4)
    root = oracle.fix_geometry(np.tril(rng.normal(size=(3, 3))) + 3 * np.eye(3))
    coef = np.array([0.1, 0.2, -0.3])
    found = oracle.release_preconditioned(coef, 100.0)
    np.testing.assert_allclose(found, root @ X.T @ (X @ coef - y) / 4000, atol=2e-3)


# ---- noise, and mutants --------------------------------------------------------------------------

N_RELEASES = 500
# Both sides have the same keys, so their means differ exactly by what records change; a standard
# deviation from so many draws is off by 3 %. The keys are fixed, so a test that passed once does.
ROOM = 0.15


def separation(one, other):
    return abs(np.mean(one) - np.mean(other)) / math.sqrt((np.var(one) + np.var(other)) / 2)


def keys():
    return (k.to_bytes(32, "little") for k in range(N_RELEASES))


def curvature_separation(neighboring="replace_one", off_diagonal=1.0):
    """How far neighbours are apart, over the claim, in the direction that tells them apart best.

    That is their difference, with `off_diagonal` times as much weight there.
    """
    one, other = np.array([[1.5, 0.0], [0.0, 0.0]]), np.array([[0.0, 1.5], [0.0, 0.0]])
    if neighboring == "add_remove":  # a record off the axes, or none: cells off the diagonal tell
        one, other = np.array([[1.5, 1.5]]) / math.sqrt(2), np.zeros((1, 2))
    direction = one.T @ one - other.T @ other
    direction *= np.where(np.eye(2), 1.0, off_diagonal)
    shown = [
        [
            np.sum(
                direction
                * oracle_of(
                    X, np.zeros(len(X)), key=key, neighboring=neighboring, n_normalizer=2
                ).release_curvature()
            )
            for key in keys()
        ]
        for X in (one, other)
    ]
    event = curvature_fit_event(Budget(2.0, 1e-3, neighboring), 2, 0.5)
    return separation(*shown) * event.releases[1].noise_multiplier


@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_the_worst_rows_are_told_apart_as_far_as_is_claimed_and_no_farther(neighboring):
    assert curvature_separation(neighboring) == pytest.approx(1.0, abs=ROOM)


def test_a_mutant_that_forgets_the_root_of_two_is_caught(monkeypatch):
    monkeypatch.setattr(_curvature_units, "matrix_sensitivity", lambda norm, neighboring: norm**2)
    assert curvature_separation() > 1 + 2 * ROOM  # 1.41


class Source:
    """A source of noise for mutants to change, as NoiseSource has no subclasses."""

    def __init__(self, key):
        self._source = NoiseSource(key)

    def gaussians(self, size, bits):
        return self._source.gaussians(size, bits)


class HalfTheNoise(Source):
    """A source of half the noise."""

    def gaussians(self, size, bits):
        return super().gaussians(size, bits - 1)


class HalfOffTheDiagonal(Source):
    """A source whose noise off the diagonal of a matrix of 2 x 2 is half as large."""

    def gaussians(self, size, bits):
        drawn = super().gaussians(size, bits)
        return drawn // np.array([1, 2, 2, 1]) if size == 4 else drawn


def test_a_mutant_with_half_the_noise_off_the_diagonal_is_caught(monkeypatch):
    monkeypatch.setattr(_questions, "NoiseSource", HalfOffTheDiagonal)
    # half of the squared difference lies off the diagonal, where it counts four times as much
    assert curvature_separation("add_remove", off_diagonal=4.0) > 1 + 2 * ROOM  # 1.58


def gradient_separation(sums=None):
    """Two records that pull along the short axis of a geometry, where it is stretched.

    Their sums may be those of a mutant.
    """
    root, shown = np.diag([1.0, 8.0]), []
    for target in (1e6, -1e6):
        X, y = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([target, 0.0])
        shown.append([])
        for key in keys():
            oracle = oracle_of(X, y, key=key, count=1)
            if sums is not None:
                oracle._sums = sums(oracle._sums)
            oracle.fix_geometry(root)
            shown[-1].append(oracle.release_preconditioned(np.zeros(2), 1.0)[1])
    event = curvature_fit_event(Budget(2.0, 1e-3), 1, 0.5)
    return separation(*shown) * event.releases[0].noise_multiplier


def test_records_that_pull_along_a_stretched_axis_are_no_farther_apart_than_claimed():
    assert gradient_separation() == pytest.approx(1.0, abs=ROOM)


class ClippedBefore:
    """Sums whose records are clipped before they are moved into the geometry."""

    def __init__(self, sums):
        self.gradient, self._sums = sums.gradient, sums

    def measure(self, transform, largest, smallest, narrow=None):
        same = np.asfortranarray(np.eye(len(transform)) * np.rint(smallest))
        self._sums.measure(same, smallest, smallest)


def test_a_mutant_that_clips_before_it_preconditions_is_caught():
    assert gradient_separation(ClippedBefore) > 1 + 2 * ROOM  # 8


def test_a_mutant_with_half_the_noise_is_caught(monkeypatch):
    monkeypatch.setattr(_questions, "NoiseSource", HalfTheNoise)
    assert gradient_separation() > 1 + 2 * ROOM  # 2


# ---- interrupts ---------------------------------------------------------------------------------


ONES = np.asfortranarray(np.eye(101))
PASSES = {
    "gram": lambda sums: sums.gram(20.0, 2.0**12),
    "row_sums": lambda sums: sums.row_sums(20.0, 2.0**12, 2.0**12),
    "measure": lambda sums: sums.measure(ONES, 1.0, 1.0),
    "image_grams": lambda sums: sums.image_grams(
        ONES, np.zeros(101), 1.0, 1.0, 1.0, 1.0, 2.0**12
    ),
}  # fmt: skip


class _LeftError(Exception):
    """The error that the handler of a signal raises."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
@pytest.mark.parametrize("name", PASSES)
def test_a_pass_over_rows_is_left_at_a_tile_when_a_signal_comes(name):
    """The handler's error comes out of the pass itself, and not after it."""

    def handler(*_):
        raise _LeftError

    # pages of zeros are no memory, and a pass over them takes seconds
    sums = sums_of(np.zeros((8_000_000, 100), dtype=np.float32), np.zeros(8_000_000))
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(_LeftError) as at:
            PASSES[name](sums)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert any(entry.name.endswith(f".{name}") for entry in at.traceback)
