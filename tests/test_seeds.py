"""A seed draws public choices; noise that can be drawn again is asked for by name.

What must stay secret: noise, noisy choices, and which records are in a batch.
"""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.exceptions import PrivacyLeakWarning, ReproducibleNoiseWarning
from dpcd_sklearn.solvers import GCD, SGD, SVRG, CompGD, SkGD
from dpcd_sklearn.testing import ReproducibleNoise

P = 6
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, P))
y = X[:, 0] - X[:, 1]

UNIT = {"feature_scale": 1.0}
BOTH = UNIT | {"target_bounds": (-1, 1)}
FITS = {
    "lasso": DPLassoCD(0.01, max_iter=2, **BOTH),
    "logistic": DPLogisticGCD(max_iter=5, classes=[0, 1], **UNIT),
    "lazy": DPLogisticGCD(max_iter=5, classes=[0, 1], solver=GCD(selection="lazy"), **UNIT),
    "ridge": DPRidgeSkGD(max_iter=5, **BOTH),
    "sgd": DPLinearRegressor(solver=SGD(sampling_rate=0.3), max_iter=1, **BOTH),
    "svrg": DPLinearRegressor(solver=SVRG(sampling_rate=0.3), max_iter=1, **BOTH),
    "compgd": DPLinearRegressor(solver=CompGD(n_directions=2), max_iter=5, **BOTH),
    "softmax": DPLinearClassifier("multinomial", classes=[0, 1, 2], max_iter=2, **UNIT),
    "scales are found": DPRidgeSkGD(max_iter=5, epsilon=4.0),
}
every_fit = pytest.mark.parametrize("model", FITS.values(), ids=FITS)


def target_of(model):
    return (y > 0).astype(int) if hasattr(model, "classes") else y


def bits(model):
    return model.coef_.tobytes() + np.asarray(model.intercept_).tobytes()


# ---- ints and RandomStates ----------------------------------------------------------------------


@every_fit
def test_equal_seeds_give_other_noise_and_no_warning(model):
    seeds = [0, 0, np.random.RandomState(0), np.random.RandomState(0), np.int64(0), None, None]
    found = set()
    for seed in seeds:
        np.random.seed(0)  # noqa: NPY002  NumPy's global state must have no say
        same = pickle.loads(pickle.dumps(model)).set_params(random_state=seed)
        with warnings.catch_warnings(action="error"):
            found.add(bits(same.fit(X, target_of(model))))
    assert len(found) == len(seeds)


class Recorded:
    """Single coordinates, and what was drawn of them."""

    block_size = 1

    def __init__(self):
        self.drawn = []

    def draw(self, generator, count):
        for j in generator.integers(P + 1, size=count):
            self.drawn.append(int(j))
            yield [j]


def drawn_with(random_state):
    sampling = Recorded()
    model = DPLinearRegressor(solver=SkGD(sampling=sampling), max_iter=12, penalty=None)
    coef = model.set_params(random_state=random_state).fit(X, y).coef_
    return sampling.drawn[-12:], coef.tobytes()


def test_equal_seeds_draw_the_same_coordinates():
    seeds = (0, np.random.RandomState(0), 0, ReproducibleNoise(0))
    runs = [drawn_with(seed) for seed in seeds]
    assert len(runs[0][0]) == 12 and len(set(runs[0][0])) > 2
    assert all(drawn == runs[0][0] for drawn, _ in runs)  # by name too: the choices of its seed
    assert len({coef for _, coef in runs}) == len(seeds)
    assert drawn_with(1)[0] != runs[0][0]
    assert drawn_with(None)[0] != runs[0][0]  # 7^-12 by chance


def test_a_random_state_goes_on_from_fit_to_fit():
    state = np.random.RandomState(0)
    assert drawn_with(state)[0] != drawn_with(state)[0]


@pytest.mark.parametrize("seed", [0, np.random.RandomState(0)], ids=["int", "RandomState"])
def test_which_records_are_in_a_batch_is_not_determined_by_a_seed(seed):
    # One update, of a coefficient that one of two records moves by 7.8 if it is in the batch, with
    # odds 1/2, and that noise moves by less than 0.1.
    model = DPLinearRegressor(
        solver=SGD(sampling_rate=0.5, momentum=0.0, averaging="last"), max_iter=0.5,
        penalty=None, fit_intercept=False, epsilon=1e6, delta=0.1, feature_scale=1.0,
        target_bounds=(-10, 10))  # fmt: skip
    moved = set()
    for _ in range(60):
        model.set_params(random_state=copy.deepcopy(seed)).fit([[1.0], [0.0]], [9.0, 0.0])
        moved.add(model.coef_[0] > 1.0)
    assert model.n_iter_ == 1 and moved == {True, False}  # 2^-59 by chance


@every_fit
def test_without_noise_a_seed_determines_the_fit(model):
    model = clone(model).set_params(epsilon=math.inf, random_state=3)
    with warnings.catch_warnings(action="error", category=PrivacyLeakWarning):
        warnings.filterwarnings("ignore", "the fit without noise stopped")
        assert bits(clone(model).fit(X, target_of(model))) == bits(model.fit(X, target_of(model)))


# ---- by name ------------------------------------------------------------------------------------


@every_fit
def test_noise_asked_for_by_name_is_reproducible_and_warns(model):
    model = clone(model).set_params(random_state=ReproducibleNoise(3))
    with pytest.warns(ReproducibleNoiseWarning, match="so the fit is not private") as shown:
        first = bits(model.fit(X, target_of(model)))
    assert [warning.filename for warning in shown] == [__file__]
    for same in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert bits(same.fit(X, target_of(model))) == first
    other = clone(model).set_params(random_state=ReproducibleNoise(4))
    assert bits(other.fit(X, target_of(model))) != first


def test_what_it_is():
    noise = ReproducibleNoise(np.uint32(7))
    assert repr(noise) == "ReproducibleNoise(7)" and type(noise.seed) is int
    assert noise == ReproducibleNoise(7) != ReproducibleNoise(8) and len({noise, 7}) == 2
    assert pickle.loads(pickle.dumps(noise)) == copy.deepcopy(noise) == clone(noise, safe=False)
    assert repr(DPLassoCD(random_state=noise)) == "DPLassoCD(random_state=ReproducibleNoise(7))"
    assert issubclass(ReproducibleNoiseWarning, PrivacyLeakWarning)
    with pytest.raises(AttributeError):
        noise.seed = 8


@pytest.mark.parametrize("seed", [None, "0", 0.0, True, [0], -1, 2**32, 10**40])
def test_a_seed_is_an_integer_of_32_bits(seed):
    error = ValueError if type(seed) is int else TypeError
    with pytest.raises(error, match="seed must be (an integer|in .0, 4294967295.)"):
        ReproducibleNoise(seed)
    assert ReproducibleNoise(2**32 - 1).seed == 2**32 - 1
