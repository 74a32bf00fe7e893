"""Intervals where bounds were found: who lies outside is counted, paid for, and decides."""

import math
import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.plan._records_outside import Cut, are_few
from dpcd_sklearn.privacy.accounting import epsilon_of
from dpcd_sklearn.privacy.sums import LocalPlace

LAYOUTS = [np.ascontiguousarray, np.asfortranarray, np.float32, csr_array, csc_array]


def outside(columns, lo, hi):
    """A NumPy twin."""
    return int((~((columns >= lo) & (columns <= hi))).any(axis=1).sum())


def test_who_lies_outside_is_counted_alike_in_every_layout():
    rng = np.random.default_rng(0)
    for trial in range(40):
        n, p = rng.integers(1, 60), rng.integers(1, 6)
        X = np.float64(np.float32(rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.7)))
        y = rng.normal(size=n) if trial % 2 else None
        columns = X if y is None else np.column_stack([X, y])
        shape = 2, rng.integers(1, 4), columns.shape[1]  # each bounds lie within the next ones
        lo, hi = rng.exponential(size=shape).cumsum(axis=1) * [[[-1]], [[1]]]
        if trial % 5 == 0:  # a bound itself lies within
            lo[-1, 0], hi[-1, 0] = min(X[:, 0].min(), lo[-1, 0]), max(X[:, 0].max(), hi[-1, 0])
        expected = [outside(columns, *bounds) for bounds in zip(lo, hi, strict=True)]
        for layout in LAYOUTS:
            counts = LocalPlace(layout(X), y).counts("outside", edges=(lo, hi))
            assert counts.tolist() == [[n - of_bounds, of_bounds] for of_bounds in expected], layout


def test_nan_and_infinity_lie_outside():
    X = np.array([[0.0, np.nan], [np.inf, 0.0], [0.5, 0.5]])
    bounds = np.array([[-1.0, -1.0]]), np.array([[1.0, 1.0]])
    assert LocalPlace(X).counts("outside", edges=bounds).tolist() == [[1, 2]]


@pytest.mark.parametrize("kind", [DPLinearRegressor, DPLinearClassifier])
def test_the_count_is_part_of_the_epsilon_and_only_where_bounds_are_found(kind):
    stated = {"feature_bounds": (-1, 1)}
    if kind is DPLinearRegressor:
        stated["target_bounds"] = (-1, 1)
    else:
        stated["classes"] = [0, 1]
    for epsilon in (0.5, 3.0):
        for facts, counts in (({}, True), (stated, False)):
            params = {"penalty": None, "inference": True, "epsilon": epsilon, "delta": 1e-6}
            plan = kind(**params, **facts)._plan(30_000, 3, 1)
            assert (plan.part_of("outside") is not None) == counts
            assert 0.999 * epsilon < epsilon_of(plan.event, 1e-6) <= epsilon
        plain = kind(penalty=None, epsilon=epsilon, delta=1e-6)._plan(30_000, 3, 1)
        assert plain.part_of("outside") is None
        (within,) = kind(epsilon=epsilon, delta=1e-6, **stated)._plan(30_000, 3, 1).outputs
        assert (within.part_of("far") is not None) == (kind is DPLinearRegressor)
        assert 0.999 * epsilon < epsilon_of(within.event, 1e-6) <= epsilon


def test_what_is_not_known_to_be_few_counts_as_many():
    n = 10_000
    few = 1.2 / math.sqrt(n)
    assert are_few(0.0, 0.4 * few, n) and are_few(0.2 * few, 0.3 * few, n)
    assert not are_few(0.0, 0.6 * few, n) and not are_few(1.1 * few, 0.0, n)


@table("share, words", [(0.3, "30%"), (0.08, "8%"), (0.06, None), (0.0, None)])
def test_many_cut_records_are_told_after_the_fit(share, words, monkeypatch):
    """The warning is a function of the released count, and nothing is lost by it."""
    X, y = simulated(np.random.default_rng(2), 3_000, heavy=False)
    monkeypatch.setattr(
        "dpcd_sklearn.linear_model._private_linear_model.found_share_outside",
        lambda *_: (share, 0.01),
    )
    model = DPLinearRegressor(penalty=None, inference=True, epsilon=8.0)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, y)
    (*told,) = [str(one.message) for one in caught if "were cut to them" in str(one.message)]
    assert len(told) == (words is not None) and hasattr(model, "solver_")
    if words:
        assert f"count {words} of the records" in told[0]
        assert "State feature_bounds and target_bounds" in told[0]


def test_features_that_narrow_bounds_cut_are_named_after_the_fit():
    """Nearly half of the records lie far out in one of eight columns with heavy tails."""
    X = np.exp(1.2 * np.random.default_rng(0).normal(size=(4_000, 8)))
    y, told = X.sum(axis=1), []
    for columns in (X, np.log(X)):
        bounds = {"feature_bounds": (columns.min(), columns.max()), "target_bounds": (0, 400)}
        with warnings.catch_warnings(record=True, action="always") as caught:
            model = DPLinearRegressor(epsilon=1.0, **bounds).fit(columns, y)
        told.append([str(one.message) for one in caught if "twice as far" in str(one.message)])
        assert hasattr(model, "solver_")
    ((words,), nothing) = told
    named = [int(k) for k in re.search(r"features (\d), (\d), (\d) ", words).groups()]
    assert nothing == [] and len(set(named)) == 3 and "state feature_scale beside" in words


@table("share, columns, tells", [(0.3, [1], True), (0.06, [1], False), (0.3, [], False)])
def test_a_cut_is_told_only_if_it_is_sure(share, columns, tells):
    with warnings.catch_warnings(record=True, action="always") as caught:
        Cut(share, 0.01, columns).warn(["income", "age"])
    assert len(caught) == tells and all("feature 'age' is cut" in str(c.message) for c in caught)


def simulated(rng, n, heavy):
    X = rng.lognormal(size=(n, 2)) if heavy else rng.normal(size=(n, 2)) * [1, 10] + [0, 50]
    return X, X @ [1.0, -0.1] + 3 + rng.normal(size=n)


def test_tails_that_found_bounds_cut_leave_no_intervals_and_the_table_says_why():
    X, y = simulated(np.random.default_rng(2), 30_000, heavy=True)
    model = DPLinearRegressor(penalty=None, inference=True, epsilon=3.0).fit(X, y)
    assert model.outside_share_ > 0.007 and not model.inference_valid_
    for found in (model.coef_std_, model.coef_cov_, model.privacy_std_):
        assert np.isnan(found).all()
    table = str(model.summary())
    assert "outside of the bounds that were found may be too many" in table
    assert "of the records lie outside" in table


def test_found_bounds_that_hold_the_records_leave_intervals():
    X, y = simulated(np.random.default_rng(3), 30_000, heavy=False)
    models = [
        DPLinearRegressor(penalty=None, inference=True, epsilon=3.0).fit(X, y) for _ in range(3)
    ]
    assert any(model.inference_valid_ for model in models)
    assert max(model.outside_share_ for model in models) < 0.01
    assert "Bounds were found" in str(models[0].summary())
    again = models[0].set_params(feature_bounds=[(-5, 5), (0, 100)], target_bounds=(-20, 20))
    again.fit(X, y)
    assert not hasattr(again, "outside_share_")
    assert "feature_bounds and target_bounds that were stated" in str(again.summary())


@pytest.mark.slow
def test_intervals_of_wages_with_nothing_stated_are_about_least_squares(benchmark_data):
    X, y = (array.astype(float) for array in benchmark_data("cps_wages_2024"))
    plain = DPLinearRegressor(penalty=None, inference=True, epsilon=math.inf).fit(X, y)
    truth, gaps, lengths = np.append(plain.coef_, plain.intercept_), [], []
    n_fits = 60
    for _ in range(n_fits):
        model = DPLinearRegressor(penalty=None, inference=True, epsilon=1.0, delta=1e-6).fit(X, y)
        if model.inference_valid_:
            gaps.append((np.append(model.coef_, model.intercept_) - truth) / model.coef_std_)
            lengths.append(model.coef_std_ / plain.coef_std_)
    assert len(gaps) >= 0.85 * n_fits  # .9 and more, less two standard deviations
    assert (np.abs(gaps) < 1.96).mean(axis=0).min() >= 0.85
    assert np.median(lengths, axis=0).max() <= 1.3
