"""Person-periods: a Poisson regression of them is the piecewise exponential model of survival."""

import csv
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from tables import table

from dpcd_sklearn import DPLinearRegressor, DPPoissonRegressor, Persons
from dpcd_sklearn.preprocessing import PiecewiseExponential
from dpcd_sklearn.solvers import SGD
from dpcd_sklearn.testing import ReproducibleNoise

N, CUTS, RATIOS = 3000, [2.0, 4.0, 6.0], [1.0, -0.5]
NAN, INF = math.nan, math.inf


@pytest.fixture(name="records", scope="module")
def _records():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(N, 2))
    time = rng.exponential(1 / (0.15 * np.exp(X @ RATIOS)))
    seen = rng.uniform(1, 8, size=N)
    return X, np.minimum(time, seen), time <= seen


def fitted(rows, **params):
    """A fit without noise of rates with weights, which is that of counts with an offset."""
    model = DPLinearRegressor("poisson", epsilon=INF, tol=1e-9, **params)
    return model.fit(rows.X, rows.rate, sample_weight=rows.exposure)


def test_it_is_the_maximum_of_the_likelihood_of_durations(records):
    X, duration, event = records
    edges = [0.0, *CUTS, INF]

    def loss(theta):  # written by the hazard, period after period
        total = 0.0
        for k, log_hazard in enumerate(theta[2:]):
            at_risk = np.clip(duration - edges[k], 0, edges[k + 1] - edges[k])
            ends = event & (duration > edges[k]) & (duration <= edges[k + 1])
            margin = X @ theta[:2] + log_hazard
            total += np.sum(np.exp(margin) * at_risk) - margin[ends].sum()
        return total / N

    expected = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-8}).x
    periods = PiecewiseExponential(CUTS)
    rows = periods.expand(X, duration, event)
    model = fitted(rows)
    assert_allclose(model.coef_[:2], expected[:2], atol=1e-4)
    by_offset = DPLinearRegressor("poisson", epsilon=INF, tol=1e-9)
    by_offset.fit(rows.X, rows.y, sample_weight=rows.exposure > 0, offset=rows.offset)
    assert_allclose(by_offset.coef_, model.coef_, rtol=1e-9)
    hazard = periods.hazard(model, X[:3])
    assert_allclose(hazard, np.exp(X[:3] @ expected[:2, None] + expected[2:]), rtol=1e-3)
    times = [0.0, 1.0, 4.0, 9.0]
    at_risk = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [2, 2, 0, 0], [2, 2, 2, 3]])
    found = periods.survival_function(model, X[:3], times)
    assert_allclose(found, np.exp(-hazard @ at_risk.T), rtol=1e-12)
    assert_array_equal(found[:, 0], 1.0)


def test_each_record_becomes_all_periods_by_itself(records):
    X, duration, event = records
    frame = pd.DataFrame(X, columns=["age", "sex"])
    periods, ids = PiecewiseExponential(CUTS), np.arange(N) // 2
    rows = periods.expand(frame, duration, event, groups=ids)
    assert list(rows.X.columns) == ["age", "sex", "after 2", "after 4", "after 6"]
    assert_array_equal(rows.groups, np.repeat(ids, 4))
    assert_allclose(rows.exposure.reshape(N, 4).sum(axis=1), duration)
    assert_array_equal(rows.y.reshape(N, 4).sum(axis=1), event)
    assert not rows.y[rows.exposure == 0].any() and not rows.offset[rows.exposure == 0].any()
    assert_allclose(np.exp(rows.offset)[rows.exposure > 0], rows.exposure[rows.exposure > 0])
    assert_allclose(rows.rate * rows.exposure, rows.y)
    bounded = PiecewiseExponential(CUTS, largest_rate=2.0).expand(X, duration, event)
    added = bounded.exposure - rows.exposure
    assert bounded.rate.max() == 2.0 and not added[rows.y == 0].any() and (added <= 0.5).all()
    alone = periods.expand(X[5:6], duration[5:6], event[5:6])
    for name in ("X", "y", "rate", "exposure", "offset"):
        assert_array_equal(np.asarray(rows[name])[20:24], alone[name])
    assert periods.hazard(fitted(rows), frame[:2]).shape == (2, 4)
    at_a_cut = periods.expand([[0.0]], [4.0], [1])
    assert_array_equal(at_a_cut.y, [0, 1, 0, 0])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_record_of_any_duration_raises_and_warns_of_nothing():
    rows = PiecewiseExponential([5e-324]).expand([[0.0]] * 3, [5e-324, 0.5, 1e300], [1, 0, 1])
    at_risk = np.where(rows.exposure > 0, rows.exposure, 1.0)
    assert rows.offset.tolist() == [math.log(time) for time in at_risk]  # one by one
    bounds = {"feature_bounds": (0, 1), "target_bounds": (0, 9)}
    model = DPLinearRegressor("poisson", epsilon=9.0, neighboring=Persons(2), **bounds)
    model.fit(rows.X, rows.y, sample_weight=rows.exposure > 0, offset=rows.offset)
    model.fit(rows.X, rows.rate, sample_weight=rows.exposure)


@table(
    ("wrong", "match"),
    [
        *(({"cuts": [1.0, bad]}, "cuts must increase") for bad in (0.5, 1.0, NAN, INF)),
        *(({"cuts": bad}, "cuts must increase") for bad in ([0.0, 1.0], [[1.0, 2.0]])),
        *(({"duration": [1.0, bad]}, "duration must be positive") for bad in (0.0, -1.0, NAN, INF)),
        *(({"event": [0, bad]}, "event must be 0 or 1") for bad in (2, -1, 0.5, NAN)),
        *(({"largest_rate": bad}, "largest_rate") for bad in (0.0, -1.0, NAN)),
        ({"duration": [1.0]}, r"duration must have shape \(2,\)"),
        ({"event": [1, 0, 1]}, r"event must have shape \(2,\)"),
        ({"groups": [1]}, r"groups must have shape \(2,\)"),
        ({"X": [[1.0], [NAN]]}, "NaN"),
        # in words that quote no cell
        ({"X": [["a"], ["b"]]}, "X could not be converted"),
        *(({name: ["a", "b"]}, f"{name} could not be conv") for name in ("duration", "event")),
        ({"times": [-1.0]}, "times must be"),
        ({"times": 3.0}, "times must be"),
    ],
)
def test_bad_input_is_refused_by_name(wrong, match):
    given = {"X": [[1.0], [2.0]], "duration": [1.0, 2.0], "event": [0, 1], "times": [1.0]}
    given |= {"cuts": [1.0]} | wrong
    stated = {name: given.pop(name) for name in ("cuts", "largest_rate") if name in given}
    periods, times = PiecewiseExponential(**stated), given.pop("times")
    with pytest.raises(ValueError, match=match):
        periods.survival_function(None, periods.expand(**given).X, times)


@table("by_id", [True, False])
def test_a_private_fit_protects_persons(by_id, records):
    X, duration, event = records
    periods = PiecewiseExponential([1.0, 2.0, 3.0], largest_rate=2.0)
    rows = periods.expand(X, duration / 2, event)
    model = DPLinearRegressor(
        "poisson",
        neighboring=Persons() if by_id else Persons(len(CUTS) + 1),
        solver=SGD(1.0, step_size=0.3) if by_id else "auto",
        clip=2.0, epsilon=10.0, delta=1e-6, target_bounds=(0, 2), random_state=ReproducibleNoise(0),
        feature_bounds=([-1, -1, 0, 0, 0], [1] * 5),
    )  # fmt: skip
    groups = {"groups": rows.groups} if by_id else {}
    model.fit(rows.X, rows.rate, sample_weight=rows.exposure, **groups)
    assert model.privacy_event_.unit == ("person" if by_id else "record, at most 4 a person")
    assert_allclose(model.coef_[:2], RATIOS, atol=0.3)
    survival = periods.survival_function(model, np.zeros((1, 2)), [1.0, 2.0])
    assert_allclose(survival, np.exp([[-0.3, -0.6]]), atol=0.1)


def test_the_stored_benchmark_equals_lifelines_without_noise_and_is_what_the_guide_says():
    checkout = Path(__file__).parents[1]
    if not (checkout / "doc").is_dir():
        pytest.skip("benchmarks and documentation are not here")
    with (checkout / "benchmarks/survival.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (checkout / "doc/guide/survival.rst").read_text("utf-8").splitlines()
    names = ("cox", "lifelines", "inf", "eps1", "eps3", "eps10")
    assert {row["set"] for row in rows} == {"rossi", "lung", "gbsg2", "made-up"}
    for row in rows:
        assert abs(math.exp(float(row["inf"])) - math.exp(float(row["lifelines"]))) < 1e-3
        name = f"{row['set']} ({int(row['persons']):,}), {row['feature']} "
        (line,) = [line for line in page if line.startswith(name)]
        assert line.removeprefix(name).split() == [f"{float(row[one]):.2f}" for one in names]


@table("unit", [0.2, 1.0, 5.0])
def test_coefficients_follow_no_unit_of_exposure(unit):
    """The mean weight is released beside the mean of the target."""
    rng, n = np.random.default_rng(0), 20_000
    X, exposure = rng.uniform(-1, 1, (n, 2)), rng.uniform(0.5, 1.5, n)
    y = rng.poisson(exposure * np.exp(X @ [0.8, -0.5] - 0.5))
    model = DPPoissonRegressor(
        alpha=0, feature_bounds=(-1, 1), target_bounds=(0, 10 / unit), epsilon=5.0, delta=1e-6
    )
    model.fit(X, y, offset=np.log(unit * exposure))
    assert_allclose(model.coef_, [0.8, -0.5], atol=0.15)
    assert_allclose(model.intercept_ + np.log(unit), -0.5, atol=0.15)


def test_concordance_counts_comparable_pairs():
    rng, n = np.random.default_rng(3), 60
    X, duration = rng.integers(-2, 3, (n, 1)) / 2.0, rng.integers(1, 9, n).astype(float)
    event = rng.integers(0, 2, n)
    periods = PiecewiseExponential([4.0])
    rows = periods.expand(X, duration, event)
    model = DPPoissonRegressor(alpha=0, epsilon=INF)
    model.fit(rows.X, rows.rate, sample_weight=rows.exposure)
    risk = periods.hazard(model, X)[:, 0]
    agreed = [
        (risk[i] > risk[j]) + (risk[i] == risk[j]) / 2
        for i in range(n)
        for j in range(n)
        if event[i] and (duration[i] < duration[j] or (duration[i] == duration[j] and not event[j]))
    ]
    assert periods.concordance(model, X, duration, event) == pytest.approx(np.mean(agreed))
    assert math.isnan(periods.concordance(model, X, duration, np.zeros(n)))
