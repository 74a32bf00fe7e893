"""Plans of fits: what they say follows from public facts, spends nothing, and is roughly right."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpcd_sklearn import DPLassoCD, DPLinearClassifier, DPLogisticGCD, DPRidgeSkGD
from dpcd_sklearn.inspection import FitPlan, plan
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.model_selection._find_budget import simulated_records
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent

RIDGE = DPRidgeSkGD(alpha=1e-3, feature_bounds=(0, 10), target_bounds=(0, 50))


def made_up(errors, sizes=(100, 200, 400)):
    """A plan whose excess errors are known."""
    errors = np.asarray(errors, dtype=float)
    event = FitEvent((GaussianEvent(2.0),))
    sizes = np.asarray(sizes)
    scores = 0.9 - errors[:, np.newaxis] * [0.5, 1.0, 2.0]
    plain = np.full(len(sizes), 0.9)
    return FitPlan("Made", 200, 3, 1.0, 1e-5, event, (("noise", 1.0),), sizes, scores, plain)


def test_what_is_planned_is_what_a_fit_releases_and_nothing_is_spent(uncharged):
    model = DPRidgeSkGD(**RIDGE.get_params(deep=False) | {"accountant": uncharged})
    found = plan(model, 200, 3, sizes=[100], n_repeats=2, random_state=0)
    assert found.event == RIDGE.planned_event(200, 3)
    assert found.epsilon == pytest.approx(1.0)
    assert found.delta == 1 / 200**2
    assert list(found.sizes) == [100, 200]
    assert found.scores.shape == (2, 2)
    assert not hasattr(model, "coef_")
    texts, shares = zip(*found.releases, strict=True)
    assert list(texts) == list(map(str, found.event.releases))
    assert sum(shares) == pytest.approx(1.0)


def test_it_is_foreseen_which_fits_have_intervals():
    model = DPRidgeSkGD(alpha=1e-3, feature_bounds=(0, 10), target_bounds=(0, 50), inference=True)
    found = plan(model, 8000, 3, sizes=[1000], n_repeats=3, random_state=0)
    assert found.valid.tolist() == [3 * [False], 3 * [True]]
    head, few, many, *_ = str(found).split("on made-up records\n")[1].splitlines()
    assert head.endswith("with intervals") and few.endswith("  0%") and many.endswith("100%  <")
    plain = plan(RIDGE, 200, 3, sizes=[], n_repeats=1)
    assert plain.valid is None and "intervals" not in str(plain)


def test_shares_of_the_loss_are_told_for_each_release():
    model = DPLogisticGCD(solver="gcd", max_iter=5, feature_scale=1.0)
    found = plan(model, 100, 3, sizes=[], n_repeats=1)
    assert [share for _, share in found.releases] == pytest.approx([0.8, 0.2])


def test_privacy_costs_less_with_more_records():
    # of 60 fits to 200 records three lost less than .14, of 180 to 4,000 none more than .044; of
    # the fifteen whose medians are compared here eight would have to
    model = DPRidgeSkGD(**RIDGE.get_params(deep=False) | {"epsilon": 0.2})
    found = plan(model, 200, 3, sizes=[4000], n_repeats=15, random_state=0)
    assert found.plain_scores[1] == pytest.approx(0.5, abs=0.05)
    few, many = np.median(found.excess_errors, axis=1)
    assert few > 0.1 > many
    assert 200 < found.n_samples_for(0.1) <= 4000


def test_how_many_records_are_needed_is_read_off_the_curve():
    found = made_up([0.4, 0.1, 0.025])  # falls like n^-2
    assert found.excess_error == pytest.approx(0.1)
    assert found.n_samples_for(0.5) == 100
    assert found.n_samples_for(0.1) == 200
    assert found.n_samples_for(0.2) == pytest.approx(100 * 2**0.5, abs=1)
    assert found.n_samples_for(0.025 / 16) == pytest.approx(1600, abs=2)
    assert found.n_samples_for(1e-9) == math.inf
    # one size that is lucky, and one that is not, don't turn the curve round
    assert made_up([0.1, 0.05, 0.2]).n_samples_for(0.06) <= 200
    assert made_up([0.4], [200]).n_samples_for(0.2) == 400
    assert made_up([-0.1, -0.2, 0.0]).n_samples_for(0.01) == 100
    with pytest.raises(ValueError, match="excess_error"):
        found.n_samples_for(0.0)


def test_a_plan_reads_well():
    text = str(made_up([0.4, 0.1, 0.025]))
    assert text.startswith("Made: 200 records of 3 features, epsilon=1 at delta=1e-05")
    assert "noise (100% of the loss)" in text
    assert text.count("  <") == 1
    assert "to lose at most 0.05: about 283 records" in text
    assert "far more" in str(made_up([0.4, 0.39, 0.39]))
    assert "100 records or fewer" in str(made_up([0.001, 0.001, 0.001]))


@pytest.mark.parametrize(
    ("model", "n_features", "n_outputs"),
    [
        (RIDGE, 3, 1),
        (DPLassoCD(feature_scale=[1.0, 5.0], target_bounds=[(-3, 3)]), 2, 1),
        (DPRidgeSkGD(feature_bounds={"a": (0, 1), "b": (-5, 5)}), 2, 1),
        (DPRidgeSkGD(row_norm_bound=2.0), 50, 1),
        (DPLogisticGCD(classes=["no", "yes"]), 3, 1),
        (DPLinearClassifier("multinomial"), 2, 4),
        (make_pipeline(BoundsScaler([(0, 9), (5, 6)]), DPLassoCD()), 2, 1),
        (make_private_pipeline(DPStandardScaler(), DPLassoCD()), 4, 1),
    ],
)
def test_simulated_records_are_as_the_public_facts_say(model, n_features, n_outputs):
    draw = simulated_records(model, n_features, n_outputs, 0.5)
    X, y = draw(500, np.random.default_rng(0))
    assert np.shape(X) == (500, n_features)
    assert len(y) == 500
    if n_outputs == 4:
        assert set(y) == {0, 1, 2, 3}
    last = model[-1] if hasattr(model, "steps") else model
    if getattr(last, "classes", None) is not None:
        assert set(y) == {"no", "yes"}
        return
    if getattr(last, "feature_bounds", None) == (0, 10):
        assert np.min(X) >= 0 and np.max(X) <= 10 and np.max(X) > 9
        assert np.min(y) >= 0 and np.max(y) <= 50
        X1 = np.column_stack([X, np.ones(500)])
        residual = y - X1 @ np.linalg.lstsq(X1, y, rcond=None)[0]
        assert 1 - residual.var() / y.var() == pytest.approx(0.5, abs=0.15)
    if isinstance(getattr(last, "feature_bounds", None), dict):
        assert list(X.columns) == ["a", "b"]
    if getattr(last, "row_norm_bound", None):
        assert np.mean(np.linalg.norm(X, axis=1) <= 2.0) > 0.95


def test_records_that_nobody_can_make_up_are_asked_for():
    words = OneHotEncoder(categories=[["a", "b"]], handle_unknown="ignore", sparse_output=False)
    model = make_private_pipeline(ColumnTransformer([("w", words, ["w"])]), DPLassoCD(max_iter=2))
    with pytest.raises(ValueError, match="pass make_data"):
        plan(model, 50, pd.DataFrame({"w": ["a"]}))

    def make_data(n_samples, rng):
        X = pd.DataFrame({"w": rng.choice(["a", "b"], n_samples)})
        return X, np.where(X["w"] == "a", 0.5, -0.5)

    found = plan(model, 50, pd.DataFrame({"w": ["a"]}), make_data=make_data, n_repeats=1, sizes=[])
    assert (found.n_features, len(found.sizes)) == (1, 1)


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"n_repeats": 0}, ValueError, "n_repeats"),
        ({"signal": 1.0}, ValueError, "signal"),
        ({"sizes": [0]}, ValueError, "sizes"),
    ],
)
def test_bad_questions_are_refused(options, kind, match):
    with pytest.raises(kind, match=match):
        plan(RIDGE, 50, 2, **options)
    with pytest.raises(TypeError, match="has no budget"):
        plan(Ridge(), 50, 2)
    with pytest.raises(TypeError, match="PrivateSearchCV has several: plan its estimator"):
        plan(PrivateSearchCV(RIDGE, {"alpha": [0.1, 1.0]}), 50, 2)
