"""Whole derivatives of an intercept, after a descent whose clip is narrow."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from tables import table

from dpcd_sklearn import DPLinearClassifier, PrivacyAccountant
from dpcd_sklearn.exceptions import ReproducibleNoiseWarning
from dpcd_sklearn.plan import _settled_intercept
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, epsilon_of, gdp_mu
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.solvers import SkGD
from dpcd_sklearn.testing import ReproducibleNoise

N, P = 1600, 200
RNG = np.random.default_rng(0)
X = (RNG.random((N, P)) < 0.05).astype(float)
Y = (RNG.random(N) < 0.6).astype(int)
MODEL = DPLinearClassifier(
    classes=[0, 1], epsilon=2.0, delta=1e-6, feature_scale=0.5, row_norm_bound=5.0
)


def plan_of(**params):
    return clone(MODEL).set_params(**params)._plan(N, P, 1)


def test_the_derivatives_are_a_part_of_one_budget():
    accountant = PrivacyAccountant(2.0, 1e-6)  # not one bit more
    model = clone(MODEL).set_params(accountant=accountant).fit(X, Y)
    plan, (entry,) = plan_of(), accountant.entries()
    assert entry.event == str(model.privacy_event_) and model.privacy_event_ == plan.event
    counts, settling, length, updates = plan.parts
    names = ("counts", "intercept", "length")
    assert (counts, settling, length) == tuple(map(plan.part_of, names))
    (release,) = settling.releases
    assert isinstance(release, GaussianEvent) and release.count == 3
    mu = gdp_mu(2.0, 1e-6)
    assert 3 / release.noise_multiplier**2 == pytest.approx(0.05 * mu**2, rel=1e-9)
    assert 2 * (1 - 1e-5) < epsilon_of(plan.event, 1e-6) <= 2.0
    assert model.noise_multiplier_ == updates.releases[0].noise_multiplier
    assert len(plan_of(feature_scale=None, row_norm_bound=None).parts) == 5  # with scales


@table(
    "params",
    [
        {"epsilon": 0.1},  # too much noise
        {"epsilon": 50.0},  # no narrow clip
        {"clip": 1.0},
        {"class_weight": {0: 0.5}},
        {"fit_intercept": False},
        {"warm_start": True},
        {"solver": SkGD("block")},
        {"solver": "cd"},
        {"solver": "gcd"},
        {"classes": [0, 1, 2]},
        {"classes": [0, 1, 2], "solver": "skgd"},
        {"epsilon": math.inf},
    ],
)
def test_nothing_is_settled_where_it_has_no_use(params):
    model = clone(MODEL).set_params(**params)
    plan = model._plan(N, P, model._stated_outputs(1))
    assert not plan.settles and plan.part_of("intercept") is None


def test_the_model_expects_as_many_records_of_a_class_as_there_are(monkeypatch):
    """Without signal a narrow clip drives the intercept off; only it is moved back."""
    options = {"random_state": ReproducibleNoise(0)}
    length = "dpcd_sklearn.linear_model._private_linear_model.with_length"
    monkeypatch.setattr(length, lambda *args: args[-2])  # which would move all of them
    found = []
    for settles in (True, False):
        if not settles:  # the same budget, the same noise and no last step
            monkeypatch.setattr("dpcd_sklearn.solvers._skgd.settled", lambda *args: args[-1])
        with pytest.warns(ReproducibleNoiseWarning):
            model = clone(MODEL).set_params(**options).fit(X, Y)
        found.append((model.coef_, expit(model.decision_function(X)).mean()))
    (coef, share), (same, off) = found
    assert_allclose(coef, same)
    assert abs(off - Y.mean()) > 0.1 > 0.05 > abs(share - Y.mean())


@pytest.mark.parametrize("mutant", [1.0, 0.5])
def test_half_the_noise_is_noticed(mutant):
    """Moves from a point that is right already are noise alone, of which the size is known."""
    plan, n = plan_of(), 400
    z = plan.part_of("intercept").releases[0].noise_multiplier
    target, zeros = np.tile([0.0, 1.0], N // 2), np.zeros((N, 1))
    plan = DPLinearClassifier(solver="skgd", classes=[0, 1], feature_scale=1.0)._plan(N, 1, 1)
    counts, length = map(plan.part_of, ("counts", "length"))
    event = FitEvent((GaussianEvent(z * mutant, 3),))
    plan = plan.changed(settles=True).paid_by((counts, event, length, plan.parts[-1]))
    last = np.array(
        [
            _settled_intercept.settled(
                plan, charge(None, event), LocalPlace(zeros, target), None, 0.0, np.zeros(2)
            )[-1]
            for _ in range(n)
        ]
    )
    # a step is .7 of Newton's, so that .3 of what was there is left: noise of .3^2, .3 and 1
    std = 0.7 * 4 * 2 * z / N * math.sqrt(1 + 0.09 + 0.0081)
    assert (last.std() > 0.75 * std) == (mutant == 1.0)
    assert last.std() < 1.3 * std


def test_derivatives_have_a_stream_of_noise_of_their_own():
    plan = plan_of()
    event, place, key = plan.part_of("intercept"), LocalPlace(X, Y.astype(float)), bytes(range(32))

    def moved(key):
        coef = np.zeros(P + 1)
        return _settled_intercept.settled(plan, charge(None, event), place, key, 0.4, coef)

    assert_array_equal(moved(key), moved(key))
    assert (moved(None) != moved(key)).any() and not moved(None)[:-1].any()


def test_unsettled_iterates_and_the_settled_model_are_told_apart():
    model = clone(MODEL).set_params(coef_path=True).fit(X, Y)
    assert all(len(one) == P for one, _ in pairwise(model.coef_path_))
    assert model.intercept_path_[-1] != model.intercept_
