"""Plans bound to requests: frozen, whole before the charge, and the same in any order."""

import dataclasses
import hashlib

import numpy as np
import pytest
from flat import SOLVERS as STATED
from sklearn.base import clone
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, DPRidgeSkGD
from dpcd_sklearn.plan._inference import MOMENTS
from dpcd_sklearn.plan._release import key_of_output
from dpcd_sklearn.plan._solver_plan import RELEASES
from dpcd_sklearn.privacy.accounting import gdp_delta, gdp_mu, greedy_fit_event, sampled_fit_event
from dpcd_sklearn.solvers import GCD, SGD, SkGD, _choice
from dpcd_sklearn.solvers._choice import SOLVERS

BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
MODELS = {
    "cd": DPLinearRegressor(solver="cd", penalty="l1"),
    "gcd": DPLinearRegressor(solver=GCD(block_size=2), penalty="l1"),
    "skgd": DPLinearRegressor(solver=SkGD(sampling="nice")),
    "compgd": DPLinearRegressor(solver="compgd", penalty=None, constraint="l2_ball"),
    "sgd": DPLinearRegressor(solver="sgd"),
    "svrg": DPLinearRegressor(solver="svrg"),
    "frank-wolfe": DPLinearRegressor(solver="frank-wolfe", **BALL),
    "newton": DPLinearRegressor(solver="newton"),
}
NUMBERS = ("geometry", "sampling", "n_updates", "curvature", "problem", "event", "clip")
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)

PLANS = [solver.planned_by for solver in SOLVERS.values()]


def plan_of(model, n_samples=100, n_features=6):
    return model._plan(n_samples, n_features, 1)


def plain(value):
    """Comparable parts: numbers, and the numbers of frozen objects."""
    if dataclasses.is_dataclass(value):
        fields = (getattr(value, field.name) for field in dataclasses.fields(value))
        return [plain(field) for field in fields]
    return value.tolist() if isinstance(value, np.ndarray) else str(value).split(" object")[0]


def test_every_kind_of_plan_is_looked_at():
    assert {type(plan_of(model)) for model in MODELS.values()} == {*PLANS}


@every_model
def test_a_request_is_frozen_and_holds_no_estimator(model):
    request = plan_of(model).request
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.epsilon = 2.0
    held = [getattr(request, field.name) for field in dataclasses.fields(request)]
    assert not any(isinstance(value, type(model)) for value in held)
    changed = clone(model)
    bound = _choice.plan_of(plan_of(changed).request)
    changed.set_params(epsilon=7.0, max_iter=3, clip=0.1)
    assert (bound.event, bound.clip) == (plan_of(model).event, plan_of(model).clip)


class Counted:
    """A sampling that tells how often it was asked."""

    block_size = 2

    def __init__(self):
        self.asked = []

    def draw(self, generator, count):
        self.asked.append(count)
        return (generator.choice(4, 2, replace=False) for _ in range(count))


def test_a_pass_of_more_updates_than_can_be_counted_is_one_that_never_ends():
    rare = {"solver": SGD(sampling_rate=1e-310), "max_iter": 1e-308, "coef_path": True}
    problem = _choice.plan_of(dataclasses.replace(plan_of(MODELS["sgd"]).request, **rare)).problem
    assert problem.path_every > problem.n_updates


@every_model
@table("kind", [np.float16, np.float32, np.longdouble])
def test_numbers_of_numpy_are_computed_with_in_double_precision(model, kind):
    # a plan in half precision told 0.08 % more than epsilon
    stated = {"epsilon": 1.0, "delta": 2.0**-10, "alpha": 0.125}
    own = model.solver.get_params() if not isinstance(model.solver, str) else {}
    model = clone(model).set_params(solver=STATED[plan_of(model).word](**own))
    dyadic = {"selection_share": 0.75, "step_size": 0.5, "sampling_rate": 0.125}
    dyadic |= {"step_decay": 0.25, "momentum": 0.5, "curvature_share": 0.25}
    own = model.solver.get_params()
    for name, value in dyadic.items():
        if name in own:
            stated[f"solver__{name}"] = value
    found = clone(model).set_params(**{name: kind(value) for name, value in stated.items()})
    for cached in (gdp_mu, greedy_fit_event, sampled_fit_event):
        cached.cache_clear()
    found, expected = plan_of(found), plan_of(clone(model).set_params(**stated))
    for name in NUMBERS:
        assert plain(getattr(found, name)) == plain(getattr(expected, name)), name
    (release, *_) = found.event.releases
    assert {type(value) for value in dataclasses.astuple(release)} <= {int, float}


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_numbers_of_numpy_leave_nothing_in_caches_for_others(kind):
    gdp_mu.cache_clear()
    plan_of(DPLinearRegressor(solver="cd", epsilon=kind(1.0), delta=1e-6))
    assert gdp_delta(gdp_mu(1.0, 1e-6), 1.0) <= 1e-6
    gdp_mu.cache_clear()


def test_no_sampling_can_move_the_geometry_of_a_plan():
    class Moving(Counted):
        def curvature(self, spread):
            self.geometry = spread.__self__
            return 2.0

    sampling = Moving()
    model = DPRidgeSkGD(sampling=sampling, feature_bounds=(-1, 1), target_bounds=(-1, 1))
    plan_of(model)
    for name in ("smoothness", "center", "lo", "hi"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(sampling.geometry, name)[0] = 1e6


def test_integers_of_numpy_do_not_wrap_around():
    model = DPLinearRegressor(solver="gcd", penalty="l1", max_iter=100, delta=1e-6)
    found, expected = (
        plan_of(model.set_params(solver=GCD(block_size=size, n_inner=n_inner)), n_features=100)
        for size, n_inner in [(np.int8(3), np.int8(100)), (3, 100)]
    )
    assert found.event == expected.event
    auto = DPLinearRegressor(solver="cd")
    assert auto.planned_event(np.int16(1000), 5) == auto.planned_event(1000, 5)


def test_every_release_and_every_output_has_a_key_of_its_own_and_keeps_it():
    """Fits with ReproducibleNoise repeat their bits from one version to the next."""
    key = bytes(range(32))
    names = [release.name for release in RELEASES]
    keys = [release.key(key) for release in RELEASES] + [key_of_output(k, key) for k in range(3)]
    assert len({key, *keys}) == 1 + len(names) + 3
    for name, own in zip(names, keys, strict=False):
        assert own == hashlib.blake2b(key, digest_size=32, person=name.encode()).digest()
    assert keys[-1] == hashlib.sha256(key + b"output 2").digest()
    assert MOMENTS.key(None) is None and key_of_output(0, None) is None  # the system's entropy


def recipe_of(model, n_samples, n_features, *, sparse=False):
    plan = model._plan(n_samples, n_features, 1, sparse=sparse)
    return plan.problem, plan.recipe


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("classes", [None, (0, 1)], ids=["numbers", "classes"])
def test_long_descents_are_of_many_features_alone(classes, sparse):
    """Features that Newton steps could have, or a signal for all of them, keep a descent's pace."""
    kind = DPLinearRegressor if classes is None else DPLinearClassifier
    stated = {"target_bounds": (-1, 1)} if classes is None else {"classes": classes}
    model = kind(solver="skgd", epsilon=1.0, delta=1e-8, **stated)
    narrow, of_narrow = recipe_of(model, 40_000, 1_000, sparse=sparse)
    wide, of_wide = recipe_of(model, 40_000, 1_100, sparse=sparse)
    loud, _ = recipe_of(model.set_params(epsilon=60.0), 40_000, 1_100, sparse=sparse)
    for problem in (narrow, loud):
        assert problem.averaging == "tail" and (problem.momentum == 0.9 or sparse)
    assert wide.averaging == "last" and wide.n_updates < narrow.n_updates
    some, _ = recipe_of(model.set_params(epsilon=10.0), 40_000, 1_100, sparse=sparse)
    assert some.averaging == ("tail" if sparse else "last")  # twice as much signal as features
    # stable are 2 (1 + β) / (1 - β): of sparse rows at half the bound on the curvature
    for p in (narrow, wide):
        room = 2 * (1 + p.momentum) / (1 - p.momentum) / p.step_size
        assert room >= (0.5 if sparse else 1.0) * 38 / 30 * (1 - 1e-9)
    walks = [recipe["residual_clip"] * recipe["max_iter"] * recipe["step_size"]
             for recipe in (of_narrow, of_wide)]  # fmt: skip
    assert walks[1] < 2 * walks[0]


def test_stated_blocks_keep_the_pace_of_a_descent_and_so_does_not_an_inference_without_hope():
    stated = {"epsilon": 1.0, "delta": 1e-8, "target_bounds": (-1, 1)}
    of_blocks = DPLinearRegressor(solver=SkGD("block", block_size=20), **stated)
    assert recipe_of(of_blocks, 40_000, 1_100)[0].averaging == "tail"
    plain = DPLinearRegressor(solver="skgd", penalty=None, **stated)
    of_inference = clone(plain).set_params(inference=True)  # 1,100 columns leave no intervals
    problems = [recipe_of(model, 40_000, 1_100)[0] for model in (plain, of_inference)]
    assert problems[0].averaging == problems[1].averaging == "last"
    assert problems[0].n_updates == problems[1].n_updates
