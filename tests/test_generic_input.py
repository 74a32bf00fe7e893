"""Bad input of the generic estimators is refused, says what is allowed, and charges nothing."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tables import table

from dpcd_sklearn import (
    BudgetExceededError,
    DPLinearClassifier,
    DPLinearRegressor,
    PrivacyAccountant,
)
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.penalties import Box, L1Ball
from dpcd_sklearn.solvers import GCD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise

BOTH = [DPLinearRegressor, DPLinearClassifier]
N_SAMPLES, N_FEATURES = 40, 3
NAN, INF = math.nan, math.inf

every_estimator = pytest.mark.parametrize("estimator", BOTH)


@pytest.fixture
def accountant():
    with PrivacyAccountant(epsilon=1e6, delta=0.01) as accountant:
        yield accountant


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES))
    return X, (X[:, 0] > 0).astype(int)


def refuse(model, X, y, match, error=(TypeError, ValueError)):
    """The fit raises with this message, before a charge, and before it would draw any noise."""
    with pytest.raises(error, match=match) as raised:
        model.fit(X, y)
    assert not isinstance(raised.value, BudgetExceededError)
    assert model.accountant.entries() == []
    assert not hasattr(model, "coef_")


@every_estimator
def test_the_ledger_of_these_tests_would_show_a_charge(estimator, accountant, data):
    estimator(accountant=accountant).fit(*data)
    assert len(accountant.entries()) == 1


# --- each parameter by itself --------------------------------------------------------------------

ALLOWED = "must|allowed|is for|needs"  # how messages go on after the name of the parameter
COUNT = [0, -1, 1.5, "all", True, NAN, INF]
NUMBERS = {
    "alpha": [-1, -1e-9, NAN, INF, "1", None, True],
    "l1_ratio": [-0.1, 1.1, NAN, INF, "auto", None, True],
    "epsilon": [0, -1, NAN, -INF, "1", None, True],
    "delta": [0, 1, -1, NAN, INF, "n", None, True],
    "clip": [0, -1, NAN, INF, "none", None, True],
    "max_iter": [0, -1, NAN, INF, "all", None, True, 1e300],
    "tol": [0, -1, NAN, INF, "auto", None, True],
    "n_public": COUNT,
    "n_threads": [*COUNT, 2.0, "2", None, False, np.True_],
}
WORDS = {
    "loss": ["hinge", None, 1, True, Huber, L1Ball()],
    # what they may be as objects is in the tables of `test_solver_objects`
    "penalty": ["l0", "None", "box", 1, True, Box, GCD(), (-1, 1)],
    "constraint": ["simplex", 1, True, L1Ball, Box(-1.0, 1.0), 2.0],
    "solver": ["lbfgs", "", None, 1, True, GCD, L1Ball(), {"rule": "gs-s"}],
    "neighboring": ["swap", None, True],
    "fit_intercept": ["yes", None, 2],
    "penalize_intercept": ["yes", None, 2],
    "coef_path": ["yes", None, 2],
    "warm_start": ["yes", None, 2],
    "verbose": [-1, 0.5, "loud", None],
    "inference": ["yes", None, 2],
    "accountant": [],  # what has no ledger can't show that it was not charged
    "random_state": ["seed", 1.5, -1],
}
SETS = {
    "feature_bounds": [(1, -1), (NAN, 1), (0, INF), (0,), "01", 3.0, ([0, 0], [1, 1])],
    "feature_scale": [0, -1, NAN, INF, "unit", True, [1, 1]],
    "row_norm_bound": [0, -1, NAN, INF, "1", True],
}
OWN = {
    DPLinearRegressor: {
        "target_bounds": [(1, -1), (3, 3), (NAN, 1), (0, INF), "01", (0,), 5],
    },
    DPLinearClassifier: {
        "classes": [[1], [1, 1], [], "01", 2, ["0", "1"]],
        "unknown_label": ["last", None, 1, True],
        "class_weight": ["balanced", "auto", 2, [1, 2], {0: 1.0, 1: 2.0}],
    },
}
BAD = [
    (estimator, name, value)
    for estimator in BOTH
    for name, values in (NUMBERS | WORDS | SETS | OWN[estimator]).items()
    for value in values
]
# Parameters that are looked at only where they are used.
USED_WITH = {
    "n_public": {"neighboring": "add_remove", "delta": 1e-5},
}


@table(("estimator", "name", "value"), BAD)
def test_a_bad_parameter_is_named_and_not_paid_for(accountant, data, estimator, name, value):
    params = {"accountant": accountant, **USED_WITH.get(name, {}), name: value}
    more = "|no width|no feature any width|state them as|asks for|multinomial"
    refuse(estimator(**params), *data, match=rf"(?s){name}.*({ALLOWED}{more})")


@every_estimator
def test_every_parameter_is_in_the_tables(estimator):
    assert set(NUMBERS | WORDS | SETS | OWN[estimator]) == set(estimator().get_params())


BAD_ALONE = [
    (name, value)
    for name, values in NUMBERS.items()
    for value in values
    if name != "epsilon" and name not in USED_WITH
]


@every_estimator
@table(("name", "value"), BAD_ALONE)
def test_a_bad_number_is_refused_without_noise_and_by_the_plan_too(data, estimator, name, value):
    model = estimator(**{"epsilon": INF, name: value})
    with pytest.raises((TypeError, ValueError), match=name):
        model.planned_event(N_SAMPLES, N_FEATURES)
    with pytest.raises((TypeError, ValueError), match=name):
        model.fit(*data)


# --- parameters together -------------------------------------------------------------------------

TOGETHER = [
    ({"solver": "sgd", "constraint": "l1_ball", "penalty": None}, "work as it stands: compgd$"),
    (
        {"solver": "frank-wolfe", "constraint": "l1_ball", "penalty": None},
        "fit_intercept=False or penalize_intercept=True",
    ),
    ({"solver": "frank-wolfe", "penalty": None, "fit_intercept": False}, "needs constraint in"),
    ({"solver": SkGD(accounting="hidden_state")}, 'hidden_state" needs fit_intercept=False or'),
    (
        {"solver": SkGD("nice", accounting="hidden_state"), "fit_intercept": False},
        'hidden_state" needs sampling="full"',
    ),
    ({"neighboring": "add_remove"}, "needs n_public"),
    ({"neighboring": "add_remove", "n_public": 40}, "not public under add_remove: state it"),
    ({"n_public": 40}, "is for neighboring"),
]


@every_estimator
@table(("params", "match"), TOGETHER)
def test_what_does_not_go_together_says_what_does(accountant, data, estimator, params, match):
    refuse(estimator(accountant=accountant, **params), *data, match=match)


@every_estimator
@pytest.mark.parametrize(
    "bounds", [(-1.0, 1.0), [0, 0.5], (-INF, 0.0), (0.1, INF), (-INF, INF)], ids=str
)
def test_a_box_may_be_half_open_and_holds_every_coefficient(data, estimator, bounds):
    model = estimator(penalty=Box(*bounds), max_iter=3).fit(*data)
    assert ((model.coef_ >= bounds[0]) & (model.coef_ <= bounds[1])).all()


# --- classes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_multinomial_models_have_a_row_a_class_from_three_on(data, n_classes):
    X, _ = data
    y = np.arange(N_SAMPLES) % n_classes
    model = DPLinearClassifier("multinomial", max_iter=3).fit(X, y)
    rows = n_classes if n_classes > 2 else 1
    assert model.coef_.shape == (rows, N_FEATURES)
    assert model.intercept_.shape == (rows,)
    assert model.predict_proba(X).shape == (N_SAMPLES, n_classes)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_classes_that_never_occur_have_a_row_and_no_error(data):
    X, y = data
    model = DPLinearClassifier("multinomial", classes=["a", "b", "c", "d"], max_iter=3)
    model.fit(X, np.where(y > 0, "b", "d"))
    assert model.coef_.shape == (4, N_FEATURES)
    model.fit(X, np.full(N_SAMPLES, "c"))  # a single class, and one that is not stated
    model.fit(X, np.where(y > 0, "b", "unheard of"))


@pytest.mark.parametrize(
    ("loss", "y", "match"),
    [
        ("logistic", np.arange(N_SAMPLES) % 3, "loss='logistic', got 3 classes.*multinomial"),
        ("logistic", np.zeros(N_SAMPLES), "got 1 class"),
        ("multinomial", np.zeros(N_SAMPLES), "got 1 class"),
        ("multinomial", np.linspace(0, 1, N_SAMPLES), "Unknown label type: continuous"),
    ],
)
def test_labels_that_no_model_has_are_refused(accountant, data, loss, y, match):
    refuse(DPLinearClassifier(loss, accountant=accountant), data[0], y, match=match)


@pytest.mark.parametrize("solver", ["compgd", "frank-wolfe"])
def test_several_classes_name_the_solvers_that_have_them(accountant, data, solver):
    model = DPLinearClassifier("multinomial", solver=solver, accountant=accountant)
    refuse(model, data[0], np.arange(N_SAMPLES) % 3, match="loss in .*: cd, gcd, skgd, sgd, svrg")


@pytest.mark.parametrize("n_outputs", [0, -1, 1.5, "3", None])
def test_planned_events_need_a_number_of_outputs(n_outputs):
    with pytest.raises(ValueError, match="n_outputs must be an integer >= 1"):
        DPLinearClassifier("multinomial").planned_event(40, 3, n_outputs)
    with pytest.raises(ValueError, match="n_outputs must be 1"):
        DPLinearClassifier("logistic").planned_event(40, 3, 3)


# --- samplings of the user's own -----------------------------------------------------------------


class Drawing:
    """Draws one thing again and again."""

    def __init__(self, block, block_size=2):
        self.block, self.block_size = block, block_size

    def draw(self, generator, count):
        return [self.block] * count


class TooFew(Drawing):
    def draw(self, generator, count):
        return [[0]] * (count - 1)


class TooMany(Drawing):
    def draw(self, generator, count):
        return [[0]] * (count + 1)


class Endless(Drawing):
    def draw(self, generator, count):
        return itertools.repeat(self.block)


class Nothing(Drawing):
    def draw(self, generator, count):
        return None


class Single(Drawing):
    def draw(self, generator, count):
        return 0


NONSENSE = [
    *(Drawing(block) for block in ([], [4], [-1], [0, 1, 2], [0.5], [NAN], ["0"], [True], None)),
    *(Drawing(block) for block in ([2**63], [[0, 1], [2, 3]], {0, 1}, "01", [None])),
    *(Drawing([0], size) for size in (0, -1, 5, 1.5, "2", None, NAN, True)),
    TooFew([0]),
    TooMany([0]),
    Endless([0]),
    Nothing([0]),
    Single([0]),
]


@every_estimator
@table("sampling", NONSENSE)
def test_a_sampling_that_draws_nonsense_is_refused_before_the_charge(
    accountant, data, estimator, sampling
):
    model = estimator(solver=SkGD(sampling), accountant=accountant)
    refuse(model, *data, match=r"sampling(\.block_size|\.draw| drew)")


class Late(Drawing):
    """Sound on trial, and nonsense in the fit."""

    def __init__(self):
        super().__init__([0])
        self.trials = 0

    def draw(self, generator, count):
        self.trials += 1
        return [[0] if self.trials == 1 else [99]] * count


class Few(Late):
    """One block where many were asked for."""

    def draw(self, generator, count):
        self.trials += 1
        return [[0, 1]] * (count if self.trials == 1 else 1)


class Raising(Late):
    def draw(self, generator, count):
        self.trials += 1
        if self.trials > 1:
            raise KeyError("a fault of the user's code")
        return [[0]] * count


@every_estimator
@pytest.mark.parametrize("sampling", [Late, Few, Raising])
def test_a_sampling_that_turns_to_nonsense_once_paid_for_is_replaced_by_a_fixed_block(
    accountant, data, estimator, sampling
):
    # of so few records no scale is found, and features without one are let go
    model = estimator(
        solver=SkGD(sampling()), accountant=accountant, feature_scale=1.0
    )
    with pytest.warns(UserWarning, match="first 2 coordinates were moved"):
        model.fit(*data)
    assert len(accountant.entries()) == 1
    moved = model.coef_.ravel() != 0
    assert moved[:2].all() and not moved[2]  # what was paid for is used, on the public block


@every_estimator
@pytest.mark.parametrize("curvature", [0, 0.5, NAN, INF, "2", None, True])
def test_a_sampling_with_a_curvature_that_is_none_is_refused(
    accountant, data, estimator, curvature
):
    sampling = Drawing([0])
    sampling.curvature = lambda spread: curvature
    model = estimator(solver=SkGD(sampling), accountant=accountant)
    refuse(model, *data, match="sampling.curvature must be")


class Arrays:
    """A sound sampling of every shape that a block may have."""

    block_size = 2

    def draw(self, generator, count):
        kinds = [(1, 0), [2], np.array([3, 1], dtype=np.int8), np.array([1], dtype=np.uint64)]
        return (kinds[generator.integers(4)] for _ in range(count))


@every_estimator
def test_blocks_may_be_any_sequences_of_integers_in_any_order(accountant, data, estimator):
    estimator(solver=SkGD(Arrays()), accountant=accountant, max_iter=10).fit(*data)
    assert len(accountant.entries()) == 1


def test_losses_have_scikit_learns_names_where_they_are_here_and_advice_where_they_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    pairs = [(DPLinearRegressor, "squared_error", "squared", X[:, 0])]
    pairs += [(DPLinearClassifier, "log_loss", "auto", rng.integers(0, k, 60)) for k in (2, 3)]
    for estimator, theirs, ours, y in pairs:
        seeded = {"random_state": ReproducibleNoise(0), "feature_bounds": (-1, 1)}
        found = [estimator(word, **seeded).fit(X, y) for word in (theirs, ours)]
        assert_array_equal(found[0].coef_, found[1].coef_)
        assert type(found[0].to_sklearn()) is type(found[1].to_sklearn())
        assert found[0].privacy_event_ == found[1].privacy_event_
    for word in ("hinge", "modified_huber", "perceptron"):
        with pytest.raises(ValueError, match=f"loss must not be '{word}': use loss=.log_loss"):
            DPLinearClassifier(word).planned_event(100, 2)
    for word in ("absolute_error", "epsilon_insensitive", "quantile"):
        with pytest.raises(ValueError, match=f"loss must not be '{word}': use loss=.huber"):
            DPLinearRegressor(word).planned_event(100, 2)
