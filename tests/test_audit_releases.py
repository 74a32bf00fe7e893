"""Audits release by release: honest fits pass, and a flaw in any kind of release is caught.

Flaws of compiled mechanisms are in test_audit_mutants.py.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import ndtr

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, DPRidgeSkGD
from dpcd_sklearn.inspection import AuditDisplay, audit
from dpcd_sklearn.inspection._audit import shape_of
from dpcd_sklearn.inspection._release_audit import Kind, audit_releases
from dpcd_sklearn.inspection._release_tests import least_error, power_text
from dpcd_sklearn.inspection._simulated_records import CHANGES, OF_KIND, SimulatedRecords
from dpcd_sklearn.plan import _label_prior, _records_outside, _smoothness
from dpcd_sklearn.preprocessing import DPStandardScaler
from dpcd_sklearn.privacy.accounting import (
    FitEvent,
    GaussianEvent,
    PoissonSampledEvent,
    SelectionEvent,
)
from dpcd_sklearn.privacy.mechanisms import _curvature, _curvature_units, _quantiles

SURE = 1 - 1e-6
IN_BOUNDS = {"feature_bounds": (-1.0, 1.0), "target_bounds": (-1.0, 1.0)}
# no scale is looked for within bounds, and rows reach the norm that they are clipped to
NEWTON_IN_BOUNDS = {"epsilon": 4.0, "max_iter": 4, "solver": "newton", **IN_BOUNDS}
NEWTON_IN_BOUNDS["feature_scale"] = 0.25
SMALL = {"epsilon": 4.0, "max_iter": 4}


def rows_of(model, only=None, *, n_samples=1000, n_features=2, n_runs=100, confidence=0.99):
    """Rows of an audit of some kinds without their powers, and what is not paid for."""
    made_up = shape_of(model, None, None, n_samples=n_samples, n_features=n_features)
    rows, unpaid, _ = audit_releases(
        model, made_up, n_runs=n_runs, confidence=confidence, only=only
    )
    return {row.kind: row for row in rows if row.n_draws}, unpaid


# ---- flaws ------------------------------------------------------------------------------------


def _narrower(name, module, *attributes, bits=1):
    """Units whose noise has so many bits less."""

    def apply(monkeypatch):
        honest = getattr(module, name)

        class Narrower(honest):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                for attribute in attributes:
                    if hasattr(self, attribute):
                        setattr(self, attribute, getattr(self, attribute) - bits)

        monkeypatch.setattr(module, name, Narrower)

    return apply


def _replaced(owner, name, flawed):
    def apply(monkeypatch):
        honest = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: flawed(honest(*args)))

    return apply


def _gradient_bits(grid):
    bits, shift, limit = grid
    return bits - 1, shift, limit


NEWTON = _curvature_units.CurvatureUnits


def _less_noise(grid, bits):
    noise = replace(grid.noise, bits=grid.noise.bits - bits)
    return grid._replace(noise=noise)


def _of_curvature(attribute, bits=1):
    def apply(monkeypatch):
        honest = NEWTON.__init__

        def flawed(self, *args, **options):
            honest(self, *args, **options)
            if hasattr(self, attribute):
                setattr(self, attribute, _less_noise(getattr(self, attribute), bits))

        monkeypatch.setattr(NEWTON, "__init__", flawed)

    return apply


FLAWS = {
    "a quarter of the noise of counts": _narrower("CountUnits", _label_prior, "bits", bits=2),
    "half the noise of records outside": _narrower("CountUnits", _records_outside, "bits"),
    "a quarter of the Gumbel scale": _replaced(
        _quantiles.QuantileChoices, "noise_scale", lambda scale: scale / 4
    ),
    "half the Gumbel scale": _replaced(
        _quantiles.QuantileChoices, "noise_scale", lambda scale: scale / 2
    ),
    "half the noise of Newton gradients": _replaced(NEWTON, "gradient_grid", _gradient_bits),
    "a dropped root of two": _replaced(
        _curvature_units, "matrix_sensitivity", lambda size: size / math.sqrt(2)
    ),
    "half the noise of a curvature": _of_curvature("curvature"),
    "half the noise of a mean row": _of_curvature("rows"),
    "a quarter of the noise of squares of rows": _of_curvature("squares", bits=2),
    "half the noise of moments of features": _narrower("SmoothnessUnits", _smoothness, "bits"),
    "a quarter of the noise of moments": _replaced(
        _curvature.MomentUnits, "square_grid", lambda grid: _less_noise(grid, 2)
    ),
}
SCALES, TAILS, GRADIENTS = "choices of scales", "choices of tails", "Newton gradients"
# kind of release, model, flaw: at least one of each kind
FAST = [
    (SCALES, DPStandardScaler(epsilon=2.0), "a quarter of the Gumbel scale"),
    (TAILS, DPRidgeSkGD(epsilon=2.0), "half the Gumbel scale"),
    ("counts of classes", DPLinearClassifier(**SMALL), "a quarter of the noise of counts"),
    (GRADIENTS, DPLinearRegressor(**NEWTON_IN_BOUNDS), "half the noise of Newton gradients"),
    ("curvature", DPLinearRegressor(**NEWTON_IN_BOUNDS), "a dropped root of two"),
    ("mean row", DPLinearRegressor(**NEWTON_IN_BOUNDS), "half the noise of a mean row"),
    (
        "mean square of rows",
        DPLinearRegressor(**NEWTON_IN_BOUNDS),
        "a quarter of the noise of squares of rows",
    ),
    (
        "moments of features",
        DPLinearRegressor(epsilon=4.0, solver="skgd", feature_scale="private", **IN_BOUNDS),
        "half the noise of moments of features",
    ),
    (
        "records outside of bounds",
        DPLinearRegressor(epsilon=8.0, solver="newton", inference=True),
        "half the noise of records outside",
    ),
    (
        "moments for inference",
        DPLinearRegressor(epsilon=4.0, max_iter=1, solver="newton", inference=True, **IN_BOUNDS),
        "a quarter of the noise of moments",
    ),
]


@pytest.mark.parametrize(("kind", "model", "flaw"), FAST, ids=[case[0] for case in FAST])
def test_a_flaw_in_a_kind_of_release_is_caught(kind, model, flaw, one_pair, monkeypatch):
    FLAWS[flaw](monkeypatch)
    for n_runs in (60, 300):  # most flaws show in a few runs; what they miss is audited at length
        rows, _ = rows_of(model, {kind}, n_runs=n_runs, confidence=0.95)
        if rows[kind].verdict == "contradiction":
            return
    pytest.fail(str(rows))


def test_the_same_releases_without_a_flaw_are_not_contradicted(one_pair):
    for kinds, model in (  # scales are in test_audit_of_transformers.py
        ({"counts of classes"}, DPLinearClassifier(**SMALL)),
        ({TAILS}, DPRidgeSkGD(epsilon=2.0)),
        ({GRADIENTS, "curvature", "mean row"}, DPLinearRegressor(**NEWTON_IN_BOUNDS)),
    ):
        rows, unpaid = rows_of(model, kinds, confidence=SURE)
        assert set(rows) == kinds and unpaid == ()
        for row in rows.values():
            assert row.verdict != "contradiction", row
            # the records reach what is claimed: errors are those that it allows, nearly
            assert row.error < row.error_claimed + 0.15, row


# ---- what is not a release ----------------------------------------------------------------------


class Peeking(DPRidgeSkGD):
    """Adds to the coefficients what no oracle released."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.coef_ = self.coef_ + 1e-12 * np.mean(y)
        return self


class Counting(DPRidgeSkGD):
    """Keeps a number of records that nobody paid for."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.n_large_ = int(np.sum(np.asarray(y) > 0))
        return self


class Boastful(DPRidgeSkGD):
    """Says that it spent an eighth of what it did."""

    def _set_released(self, plan, solution, dtype):
        super()._set_released(plan, solution, dtype)
        self.privacy_spent_ = type(self.privacy_spent_)(self.epsilon / 8, plan.request.budget.delta)


@pytest.mark.parametrize(
    ("model", "name"),
    [(Peeking, "coef_"), (Counting, "n_large_"), (Boastful, "privacy_spent_")],
)
def test_what_no_mechanism_released_is_named(model, name):
    _, unpaid = rows_of(model(**SMALL, **IN_BOUNDS), set())
    assert unpaid == (name,)
    _, unpaid = rows_of(DPRidgeSkGD(**SMALL, **IN_BOUNDS), set())
    assert unpaid == ()


def test_a_contradiction_beside_the_releases_is_one_of_the_audit(one_pair):
    model = Counting(**SMALL, **IN_BOUNDS, feature_scale=1.0, solver="skgd")
    result = audit(model, n_samples=300, n_features=1, n_runs=100)
    assert result.contradicts and result.unpaid == ("n_large_",)
    assert "not paid for: n_large_" in str(result)


# ---- the result ---------------------------------------------------------------------------------


def test_the_result_has_a_row_for_each_kind_that_the_event_holds_and_a_picture_shows_them(one_pair):
    X = np.random.default_rng(0).normal(size=(600, 2))
    model = DPLinearRegressor(**SMALL, **IN_BOUNDS, solver="skgd", feature_scale="private")
    result = audit(model, X, X[:, 0], n_runs=100, confidence=SURE)
    assert {row.kind for row in result.releases} == {"moments of features", "gradients"}
    for row in result.releases:
        assert row.n_draws > 0 and row.power is not None
        assert row.kind in str(result) and row.claim in repr(result)
    assert 0 <= result.mu_lower <= result.mu * 1.1
    assert 0 <= result.epsilon_lower <= result.epsilon
    assert (result.epsilon, result.n_runs) == (4.0, 100)
    pytest.importorskip("matplotlib", reason="plots are an extra")
    display = AuditDisplay(result).plot()
    texts = [text.get_text() for text in display.ax_.texts]
    assert len(display.line_) == len(result.releases)
    for row, text in zip(result.releases, texts, strict=True):
        assert text.startswith(f"{row.verdict}: {power_text(row.power)}")
    assert display.ax_.get_title().startswith(result.verdict)


class Idle(DPLinearRegressor):
    """Charges for more than it asks."""

    def _set_released(self, plan, solution, dtype):
        super()._set_released(plan, solution, dtype)
        more = (*self.privacy_event_.releases, self.idle)
        self.privacy_event_ = FitEvent(more, plan.event.neighboring)
        self.privacy_spent_ = type(self.privacy_spent_)(99.0, plan.request.budget.delta)


WITH_SCALES = {"max_iter": 1, "target_bounds": (-1, 1)}
SCALES_OF_600 = DPLinearRegressor(**WITH_SCALES).planned_event(600, 2).releases[0]


@pytest.mark.parametrize(
    ("parameters", "idle", "only", "n_idle"),
    [
        (NEWTON_IN_BOUNDS, GaussianEvent(3.0, 7), set(), 7),
        (WITH_SCALES, SelectionEvent(2 * SCALES_OF_600.eta, 7), set(), 7),
        # their mechanism was looked at
        (WITH_SCALES, SelectionEvent(SCALES_OF_600.eta, 7), {SCALES}, 0),
    ],
)
def test_a_kind_that_was_not_exercised_makes_the_audit_inconclusive(
    parameters, idle, only, n_idle, monkeypatch
):
    monkeypatch.setattr(Idle, "idle", idle, raising=False)
    model = Idle(**parameters)
    records = SimulatedRecords(model, 600, 2)
    rows = audit_releases(model, records, n_runs=20, confidence=0.95, only=only)[0]
    idle_rows = [row for row in rows if row.n_draws == 0]
    assert {row.verdict for row in idle_rows} <= {"inconclusive"}
    assert sum(row.n_releases for row in idle_rows) == n_idle
    assert {row.kind for row in rows if row.n_draws} == only


def test_powers_are_never_rounded_up():
    for power, text in ((0.8996, "0.899"), (0.9, "0.900"), (0.99999, "0.999"), (None, "unknown")):
        assert power_text(power) == text


# ---- made-up records ----------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
@pytest.mark.parametrize("layout", [None, "array"])
def test_data_sets_differ_in_as_many_records_as_the_claim_counts(relation, layout):
    options = {"neighboring": relation, "delta": 1e-5}
    options |= {"n_public": 60} if relation == "add_remove" else {}
    for model in (DPLinearRegressor(**options), DPLinearClassifier(**options, classes=[0, 1, 2])):
        labels = getattr(model, "classes", None)
        labels = None if labels is None else np.array(labels)
        made_up = SimulatedRecords(model, 60, 3, labels=labels, sparse=layout)
        plan = model._plan(60, 3, 1 if labels is None else 3, sparse=layout is not None)
        for name in CHANGES:
            one, other = made_up.pair(name, plan, 7, np.random.default_rng(0))
            X, Z = (sparse.csr_array(side[0]).toarray() for side in (one, other))
            if relation == "add_remove":
                assert len(Z) == len(X) - 7 == len(other[1])
                continue
            changed = (X != Z).any(axis=1) | (one[1] != other[1])
            assert changed.sum() == 7, name
    assert set().union(*OF_KIND.values()) <= set(CHANGES)


# ---- claims of groups ---------------------------------------------------------------------------


def test_floors_of_groups_are_those_of_group_privacy():
    def floor(release, size, group, relation="replace_one"):
        return least_error(Kind("gradients", release, relation), size, group)

    assert floor(GaussianEvent(8.0, 4), 4, 5) == pytest.approx(ndtr(-5 * 2 / 8 / 2))
    # one choice of range k eta is randomised response between e^(k eta / 2) and its inverse
    assert floor(SelectionEvent(0.5), 1, 3) == pytest.approx(1 / (1 + math.exp(0.75)), rel=1e-3)
    # a rate of nearly one is no sampling: shifts of k clips
    of_all = PoissonSampledEvent(1 - 1e-9, 8.0, 4)
    for relation in ("replace_one", "add_remove"):
        assert floor(of_all, 4, 5, relation) == pytest.approx(ndtr(-5 * 2 / 8 / 2), rel=1e-2)


# ---- what is refused  ----------------------------------------------


def test_shapes_that_make_no_audit_are_refused_with_what_to_write():
    model, X = DPRidgeSkGD(), np.ones((30, 2))
    for options, match in (
        ({"n_samples": 5}, "n_samples must be at least 20"),
        ({"n_samples": 50, "n_features": 0}, "n_features must be at least 1"),
        ({"X": X, "y": X[:, 0], "n_samples": 30}, "n_samples and n_features are those"),
        ({"X": X[:, 0]}, "X must have two dimensions"),
        ({"y": X[:, 0]}, "give X with y"),
    ):
        with pytest.raises(ValueError, match=match):
            audit(model, **{"n_runs": 100} | options)
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        audit(model, n_samples=True, n_runs=100)
    with pytest.raises(ValueError, match="more than n_public=100"):
        audit(DPRidgeSkGD(neighboring="add_remove", n_public=100, delta=1e-4), n_samples=200)
    with pytest.raises(TypeError, match="compared by dpcd_sklearn.testing.replay"):
        audit(model, (X, X[:, 0]), (X, X[:, 1]))
    with pytest.raises(ValueError, match="without noise"):
        audit(DPRidgeSkGD(epsilon=math.inf), n_samples=100)


def test_values_of_stated_records_are_not_looked_at():
    X, y = np.full((40, 3), np.nan, dtype=np.float32), np.full((40, 2), "secret")
    made_up = shape_of(DPRidgeSkGD(), X, y, n_samples=None, n_features=None)
    Z, target, _ = made_up.usual(np.random.default_rng(0))
    assert (Z.shape, Z.dtype, target.shape) == ((40, 3), np.float32, (40, 2))
    laid_out = shape_of(
        DPRidgeSkGD(), sparse.csr_matrix((40, 3)), y, n_samples=None, n_features=None
    )
    assert sparse.issparse(laid_out.usual(np.random.default_rng(0))[0])
