"""Which solver "auto" takes, of presets as of generic estimators; Newton steps that it takes."""

import dataclasses
import hashlib

import numpy as np
import pytest
from flat import SOLVERS
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix
from sklearn.base import clone
from tables import table

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.plan._inference import MOMENTS
from dpcd_sklearn.plan._release import key_of_output
from dpcd_sklearn.plan._solver_plan import RELEASES
from dpcd_sklearn.privacy.accounting import (
    epsilon_of,
    gdp_delta,
    gdp_mu,
    greedy_fit_event,
    sampled_fit_event,
)
from dpcd_sklearn.samplings import FullSampling
from dpcd_sklearn.solvers import CD, GCD, SGD, Newton, SkGD, _choice
from dpcd_sklearn.solvers._descent_recipe import descent_recipe
from dpcd_sklearn.testing import ReproducibleNoise

N, P = 20_000, 5
SIGNALS = (3.0, 10.0, 15.0, 35.0, 40.0, 50.0, 75.0)
UNIT = {"feature_bounds": (-1, 1), "feature_scale": 1.0}  # none is looked for
TARGET = UNIT | {"target_bounds": (-1, 1)}
PRESETS = {
    "lasso": lambda **params: DPLassoCD(**{"alpha": 0.01} | TARGET | params),
    "ridge": lambda **params: DPRidgeSkGD(**TARGET | params),
    "logistic": lambda **params: DPLogisticGCD(**UNIT | {"classes": [0, 1]} | params),
}
every_preset = pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)


def records(n=N, p=P, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, p))
    margins = X @ np.r_[0.4, -0.3, np.zeros(p - 2)] + 0.1
    y = np.clip(margins + 0.1 * rng.standard_normal(n), -1, 1)
    return X, y, (rng.random(n) < 1 / (1 + np.exp(-6 * margins))).astype(int)


def is_newton(event):
    """One matrix, and fewer gradients than any descent; the numbers of the classes stand before."""
    counts = [release.count for release in event.releases[-3:-1]]  # and moments of rows
    return len(counts) == 2 and counts[1] == 1 and 6 <= counts[0] <= 24


@every_preset
@pytest.mark.parametrize("neighboring", ["replace_one", "add_remove"])
def test_default_fits_of_many_records_release_a_curvature_and_a_few_gradients(preset, neighboring):
    X, y, labels = records()
    public = {"n_public": N + 7, "delta": 1e-9} if neighboring == "add_remove" else {}
    model = preset(neighboring=neighboring, random_state=ReproducibleNoise(0), **public)
    model.fit(X, labels if hasattr(model, "classes") else y)
    event = model.planned_event(N, P)
    assert is_newton(event) and event == model.privacy_event_
    assert epsilon_of(event, model.privacy_spent_.delta) == pytest.approx(1.0, rel=1e-6)


@every_preset
def test_few_records_and_sparse_ones_and_wide_ones_take_a_descent(preset):
    assert not is_newton(preset().planned_event(300, P))
    assert not is_newton(preset().planned_event(N, P, sparse=True))
    assert not is_newton(preset().planned_event(10_000, 900))  # more features than the signal
    model = preset(epsilon=10.0, random_state=ReproducibleNoise(0), max_iter=1)
    X, _, labels = records(500)
    assert model.fit(csr_matrix(X), labels).solver_ in ("skgd", "gcd")


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_an_l1_penalty_on_many_columns_is_for_greedy_steps_and_then_for_a_descent(penalty):
    model = DPLinearRegressor(penalty=penalty, **TARGET)
    words = [model._plan(n, 300, 1).word for n in (2_000, 40_000, 1_000_000)]
    assert words == {"l1": ["gcd", "skgd", "newton"], "l2": ["skgd", "newton", "newton"]}[penalty]


@pytest.mark.parametrize(
    ("preset", "stated", "p", "least"),
    [
        ("ridge", TARGET, P, 50),
        ("ridge", TARGET, 70, 70),
        ("lasso", {}, P, 75),
        ("ridge", {}, 30, 120),
    ],
)
def test_newton_steps_begin_at_a_signal_that_follows_what_is_stated(preset, stated, p, least):
    """Descents within stated target bounds lose from max(50, p); found ones from max(75, 4 p)."""
    plans = [
        PRESETS[preset](**{"target_bounds": None} | stated)._plan(n, p, 1)
        for n in range(100, 5_000, 70)
    ]
    assert {plan.word == "newton" for plan in plans} == {True, False}
    assert all((plan.word == "newton") == (plan.request.signal >= least) for plan in plans)


@table("n, p, step", [(2_000, 100, 30), (20_000, 100, 120), (20_000, 500, 30)])
def test_descents_within_found_scales_have_few_long_steps_where_cells_are_many(n, p, step):
    plan = DPRidgeSkGD(epsilon=12_000 / n)._plan(n, p, 1)
    assert plan.word == "skgd" and plan.request.scales.features == "quartiles"
    found = plan.problem.step_size, plan.problem.momentum
    assert found == pytest.approx((step, 0.8 if step > 30 else 0.9), rel=1e-9)


def test_clips_are_narrowest_at_a_middling_signal_within_stated_target_bounds():
    shares = []
    for found in (False, True):
        recipes = [descent_recipe(s, 6.0, 6.0, True, 0, 6, found_target=found) for s in SIGNALS]
        shares.append([one["residual_clip"] for one in recipes])
    assert np.divide(*shares) == pytest.approx([1, 1, 0.7, 0.7, 0.8, 1, 1])


def test_three_relevant_of_many_columns_are_found_beside_constant_ones():
    """A descent has the noise of all columns: of 2,000, R² was .04 where greedy steps had .67."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5_000, 1_500))
    X[:, 3:9] = np.repeat([0.0, 3.0, 1e-30], 2)
    y = X[:, :3] @ [1.0, -0.8, 0.6] + rng.standard_normal(5_000)
    model = DPLassoCD(alpha=1e-3, epsilon=3.0, random_state=ReproducibleNoise(0)).fit(X, y)
    assert model.solver_ == "gcd" and model.score(X, y) > 0.55
    assert not model.coef_[3:9].any()


NAMES = {"lasso": "cd", "ridge": "skgd", "logistic": "gcd"}
# Parameters of the algorithm of a preset's name alone, short for an object of it.
OF_ITS_NAME = [
    ("lasso", {"sampling": "importance"}),
    ("lasso", {"sampling": "uniform"}),
    ("ridge", {"sampling": "nice"}),
    ("ridge", {"sampling": "full"}),
    ("ridge", {"sampling": FullSampling(P + 1)}),
    ("ridge", {"block_size": 2}),
    ("ridge", {"sampling": "block", "block_size": 3}),
    ("logistic", {"rule": "gs-q"}),
    ("logistic", {"rule": "gs-r"}),
]


@pytest.mark.parametrize(("name", "asked"), OF_ITS_NAME)
def test_stating_what_an_algorithm_alone_has_asks_for_it(name, asked, uncharged):
    for more in ({}, {"solver": NAMES[name]}):
        assert PRESETS[name](**asked, **more)._plan(N, P, 1).word == NAMES[name]
    X, y, labels = records(100)
    (first, *_), cls = asked, SOLVERS[NAMES[name]]
    wanted = rf"{first}=.* beside solver=.*: write solver={cls.__name__}\({first}=.*=None"
    for solver in ("newton", Newton(), cls(), CD() if cls is GCD else GCD(), SGD()):
        model = PRESETS[name](solver=solver, accountant=uncharged, **asked)
        with pytest.raises(ValueError, match=wanted):
            model.fit(X, labels if name == "logistic" else y)
        with pytest.raises(ValueError, match=wanted):
            model.planned_event(N, P)


@pytest.mark.parametrize("asked", [{"max_iter": 12}, {"coef_path": True}])
@every_preset
def test_what_is_asked_of_a_descent_is_done_by_one(preset, asked):
    assert preset(**asked)._plan(N, P, 1).word in ("skgd", "gcd")


@table("solver", [*SOLVERS.values()])
@every_preset
def test_a_preset_takes_every_solver_that_can_solve_its_problem(preset, solver):
    able = {"cd", "gcd", "skgd", "sgd", "svrg", "newton"}
    model, word = preset(solver=solver()), solver.word
    if word in able or (word == "compgd" and model._penalty_word == "l2"):
        assert model._plan(N, P, 1).word == word
        assert preset(solver=word).planned_event(N, P) == model.planned_event(N, P)
    else:
        with pytest.raises(ValueError, match=f"solver='{word}' needs"):
            model.planned_event(N, P)


@every_preset
def test_newton_steps_are_of_whatever_length_where_they_are_asked_for(preset):
    event = preset(solver=Newton(step_size=0.5), max_iter=5).planned_event(200, P)
    assert [release.count for release in event.releases[-3:]] == [5, 1, 2]
    assert is_newton(preset(solver="newton").planned_event(200, P, sparse=True))


def twins(n, **common):
    """Presets beside the generic estimators with their penalties in the units of a mean loss."""
    yield DPLassoCD(0.1, **common), DPLinearRegressor(penalty="l1", alpha=0.1, **common)
    yield DPRidgeSkGD(2.0, **common), DPLinearRegressor(penalty="l2", alpha=2.0 / n, **common)
    for classes, l1_ratio in (([0, 1], 0.0), ([0, 1], 1.0), (range(3), 0.3), (range(10), 0.0)):
        shared = common | {"classes": classes, "l1_ratio": l1_ratio}
        generic = DPLinearClassifier(penalty="elasticnet", alpha=2.0 / n, **shared)
        yield DPLogisticGCD(0.5, **shared), generic


def test_a_preset_and_its_generic_twin_plan_the_same_fit():
    """Over shapes, layouts, budgets and what may be asked of both; `solver_` is the plan's word."""
    asked = [{}, UNIT | {"tol": 1e-3}, {"row_norm_bound": 1.0, "max_iter": 7},
             {"feature_scale": "private", "fit_intercept": False, **UNIT},
             {"neighboring": "add_remove", "delta": 1e-9, "clip": 0.5}]  # fmt: skip
    seen, failures = set(), []
    for n, p in [(50, 3), (400, 5), (1500, 64), (20_000, 8), (5000, 1200)]:
        for epsilon in (0.1, 1.0, 10.0, np.inf):
            for sparse in (False, True):
                for more in asked:
                    if "neighboring" in more:
                        more = more | {"n_public": n}
                    for preset, generic in twins(n, epsilon=epsilon, **more):
                        outputs = preset._stated_outputs(1)
                        plans = [
                            model._plan(n, p, outputs, sparse=sparse) for model in (preset, generic)
                        ]
                        seen.add(plans[0].word)
                        if len({(plan.word, plan.event, plan.clip) for plan in plans}) > 1:
                            failures.append((n, p, epsilon, sparse, more, preset))
    assert not failures
    # the grid reaches every answer of the rule
    assert seen == {"newton", "skgd", "gcd", "scikit-learn"}


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
def test_a_preset_and_its_generic_twin_are_the_same_model(layout):
    X, y, labels = records(400)
    common = {"random_state": ReproducibleNoise(3), "epsilon": 2.0}
    for preset, generic in twins(len(X), **common):
        target = labels if hasattr(preset, "classes") else y
        found = [model.fit(layout(X), target) for model in (preset, generic)]
        assert found[0].solver_ == found[1].solver_
        assert found[0].privacy_event_ == found[1].privacy_event_
        np.testing.assert_array_equal(found[0].coef_, found[1].coef_)


def test_momentum_looks_ahead():
    """By hand, without noise: gradients are taken where half of the last move would lead again."""
    X, y, _ = records(50, 3)
    X = X - X.mean(axis=0)
    model = DPLinearRegressor(
        solver=Newton(step_size=0.3, momentum=0.5, averaging="last"), alpha=0.0, epsilon=np.inf,
        fit_intercept=False, max_iter=4, tol=1e-12, coef_path=True,
    )  # fmt: skip
    with pytest.warns(match="stopped after 4 updates"):
        path = model.fit(X, y).coef_path_
    least = np.linalg.lstsq(X, y)[0]
    before = at = np.zeros(3)
    for point in path[1:]:
        ahead = at + 0.5 * (at - before)
        before, at = at, ahead + 0.3 * (least - ahead)
        assert_allclose(point, at, rtol=1e-9)


# ---- what a solver plans -------------------------------------------------------------------------


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
    model = clone(model).set_params(solver=SOLVERS[plan_of(model).word](**own))
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
@pytest.mark.parametrize("kind", [DPLinearRegressor, DPLinearClassifier])
def test_long_descents_are_of_many_features_alone(kind, sparse):
    """Few features, or a signal for all of them, keep a descent's pace."""
    stated = {"target_bounds": (-1, 1)} if kind is DPLinearRegressor else {"classes": (0, 1)}
    few = (40_000, 500) if kind is DPLinearRegressor else (10_000, 100)
    model = kind(solver="skgd", epsilon=1.0, delta=1e-8, **stated)
    narrow, of_narrow = recipe_of(model, *few, sparse=sparse)
    wide, of_wide = recipe_of(model, 40_000, 1_100, sparse=sparse)
    loud, _ = recipe_of(model.set_params(epsilon=60.0), 40_000, 1_100, sparse=sparse)
    for problem in (narrow, loud):
        assert problem.averaging == "tail" and (problem.momentum >= 0.9 or sparse)
    assert wide.averaging == "last" and wide.n_updates < narrow.n_updates
    some, _ = recipe_of(model.set_params(epsilon=1.0), 10_000, 501, sparse=sparse)
    clear, _ = recipe_of(model.set_params(epsilon=10.0), 40_000, 1_100, sparse=sparse)
    # not of sparse rows: fewer features, or twice as much signal as features
    assert some.averaging == clear.averaging == ("tail" if sparse else "last")
    # stable are 2 (1 + β) / (1 - β): of many features at half the bound on the curvature
    for p in (narrow, wide):
        room = 2 * (1 + p.momentum) / (1 - p.momentum) / p.step_size
        assert room >= (0.5 if sparse or p is wide else 1.0) * 38 / 30 * (1 - 1e-9)
    walks = [r["residual_clip"] * r["max_iter"] * r["step_size"] for r in (of_narrow, of_wide)]
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
