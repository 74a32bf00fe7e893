"""The compiled oracle and solvers against twins of ten lines of NumPy.

Sums without noise are in test_sums_of_classes.py, and those of batches in test_batch_oracle.py.

With a key the noise is known: a twin that reads the same words must release the same numbers, which
pins down the unit, the noise and the order of draws, not only the sums.
"""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tables import table
from twins import LAYOUTS, Records, bits_of, limit_of

from dpcd_sklearn.loops import _cd, _gcd, _skgd
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.losses import LogisticLoss, SquaredLoss
from dpcd_sklearn.penalties import ElasticNet
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, NonPrivateEvent, SelectionEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import CoordinateUnits, RecordOracle
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.samplings import BlockSampling, FullSampling, SingleSampling

LOSSES = [SquaredLoss(), LogisticLoss()]
KEY = bytes(range(7, 39))


class Case(Records):
    """Records, what an oracle is asked of them, and what NumPy says."""

    def __init__(
        self, *, p=11, clip=0.7, z=20.0, count=1000, eta=None, neighboring="replace_one", **records
    ):
        super().__init__(p=p, **records)
        selection = () if eta is None else (SelectionEvent(eta, count),)
        self.event = FitEvent((*selection, GaussianEvent(z, count)), neighboring)
        self.clip, self.z, self.eta = clip, z, eta
        self.neighbors = {"replace_one": 2, "add_remove": 1}[neighboring]

    @property
    def everything(self):
        return np.arange(len(self.M))

    def oracle(self, layout=np.ascontiguousarray, event=None):
        event = event or self.event
        units = CoordinateUnits(
            event, n_samples=self.n, smoothness=self.M, clip=self.clip, n_normalizer=self.n
        )
        return RecordOracle(
            charge(None, event), units, self.place(layout, slice(None)), loss=self.loss,
            fit_intercept=self.intercept, key=KEY,
        )  # fmt: skip


    # ---- the twin ----

    def gradients(self, coef):
        """Every record's gradient before it is clipped."""
        return self.derivatives(coef) * self.rows()

    def threshold(self, size, joint):
        return self.clip * np.sqrt((size if joint else 1) / self.M.sum())

    def sums(self, coef, block, limit, joint):
        """Integer sums: in the geometry of M^(-1/2), clip, scale, round, add."""
        H = self.gradients(coef)[:, block] / np.sqrt(self.M[block])
        threshold = self.threshold(len(block), joint)
        if joint:
            norms = np.maximum(np.linalg.norm(H, axis=1), 1e-300)
            H = H * np.minimum(1, threshold / norms)[:, None]
        return np.rint(np.clip(H / threshold, -1, 1) * limit).sum(axis=0)

    def bits_and_limit(self, size):
        """The noise in units, and the largest norm of a record in them."""
        facts = self.z, self.neighbors, self.n
        return bits_of(*facts), limit_of(*facts, size)

    def release(self, noise, coef, block, joint):
        bits, limit = self.bits_and_limit(len(block) if joint else 1)
        units = self.sums(coef, block, limit, joint) + noise.gaussians(len(block), bits) + 0.5
        threshold = self.threshold(len(block), joint)
        return units * threshold * np.sqrt(self.M[block]) / limit / self.n


# ---- releases: the twin knows the noise --------------------------------------------------------


class TwinPath:
    """The part that all solvers share, in NumPy."""

    def __init__(self, case, problem, momentum=0.0):
        self.case, self.problem = case, problem
        self.coef, self.velocity = np.zeros(len(case.M)), np.zeros(len(case.M))
        self.noise, self.iterates = NoiseSource(KEY), []

    def update(self, block, joint, direction=None):
        problem, case = self.problem, self.case
        gradient = case.release(self.noise, self.coef, block, joint)
        beta = problem.momentum
        self.velocity[block] = beta * self.velocity[block] + (1 - beta) * gradient
        for j in block:
            step = problem.step_size / case.M[j]
            w = self.coef[j] - step * self.velocity[j]
            if j < problem.n_penalized:
                l1, l2 = problem.penalty.l1, problem.penalty.l2
                w = np.sign(w) * max(abs(w) - step * l1, 0.0) / (1 + step * l2)
            if direction is None or (w - self.coef[j]) * direction >= 0:
                self.coef[j] = w
        self.iterates.append(self.coef.copy())

    def result(self):
        tail = self.iterates[len(self.iterates) // 2 :]
        if self.problem.averaging != "tail":
            return self.coef
        return np.where(self.coef == 0, 0.0, np.mean(tail, axis=0))


def problem_of(case, n_updates, **options):
    p = len(case.M) - case.intercept
    options = {"step_size": 0.5, "penalty": ElasticNet(0.001, 0.1), **options}
    return Problem(smoothness=case.M, n_penalized=p, n_updates=n_updates, **options)


# The twin's sums may differ from the kernel's by a unit or two where a contribution lies on an edge
# of rounding: less than 1e-9 of a coefficient.
CLOSE = {"rtol": 1e-7, "atol": 1e-8}

every_option = pytest.mark.parametrize(
    "options",
    [
        {"p": 5},
        {"p": 9, "loss": LOSSES[1], "bounded": True, "intercept": False},
        {"p": 3, "weighted": True, "neighboring": "add_remove", "z": 3.3, "dtype": np.float32},
        {"p": 17, "loss": LOSSES[1], "weighted": True, "z": 0.011},
        {"p": 2, "z": 1e6, "n": 1037},
    ],
    ids=["plain", "bounds", "add_remove", "little noise", "much noise"],
)
every_averaging = pytest.mark.parametrize("averaging", ["last", "tail"])


@every_option
@every_averaging
@table("layout", [np.ascontiguousarray, np.asfortranarray])
def test_coordinate_descent_is_its_twin(options, averaging, layout):
    case = Case(**options)
    problem = problem_of(case, 40, averaging=averaging)
    sampling, twin = SingleSampling(len(case.M)), TwinPath(case, problem)
    for block in sampling.draw(np.random.default_rng(1), 40):
        twin.update(block, joint=False)
    found = _cd.solve(case.oracle(layout), problem, sampling, np.random.default_rng(1))
    assert found.n_updates == 40
    assert_allclose(found.coef, twin.result(), **CLOSE)


@every_option
@every_averaging
@table("block_size", [1, 2, 3, None])
@table("momentum", [0.0, 0.7])
def test_sketched_descent_is_its_twin(options, averaging, block_size, momentum):
    case = Case(**options)
    p = len(case.M)
    sampling = FullSampling(p) if block_size is None else BlockSampling(p, block_size)
    problem = problem_of(case, 30, averaging=averaging, momentum=momentum)
    twin = TwinPath(case, problem)
    for block in sampling.draw(np.random.default_rng(2), 30):
        twin.update(block, joint=True)
    found = _skgd.solve(case.oracle(), problem, sampling, np.random.default_rng(2))
    assert_allclose(found.coef, twin.result(), **CLOSE)


def twin_of_argmax(case, noise, coef, penalty):
    """The exponential mechanism on 2 p signed scores, lower direction first (GS-r)."""
    _, limit = case.bits_and_limit(1)
    sums = case.sums(coef, case.everything, limit, joint=False)
    g = sums / limit * case.threshold(1, False) * np.sqrt(case.M) / case.n
    s = case.neighbors * case.threshold(1, False) / case.n
    b = 2 * s / case.eta * (1 + 2.0**-12)
    best, choice = np.inf, None
    for j, direction in itertools.product(case.everything, (-1, 1)):
        root, w = np.sqrt(case.M[j]), coef[j]
        free = case.intercept and j == case.everything[-1]
        l1, l2 = (0.0, 0.0) if free else (penalty.l1, penalty.l2)
        slope = l1 if w == 0 else direction * (np.sign(w) * l1 + l2 * w)
        score = -(direction * g[j] + slope) / root
        if score > 0:
            v = w - g[j] / case.M[j]
            v = np.sign(v) * max(abs(v) - l1 / case.M[j], 0)
            score = direction * root * (v / (1 + l2 / case.M[j]) - w)
        key = noise.log_exponentials(1)[0] - score / b
        if key < best:
            best, choice = key, (np.array([j]), direction)
    return choice


@every_option
@every_averaging
@table("eta", [0.01, 5.0])
def test_greedy_descent_is_its_twin(options, averaging, eta):
    case = Case(eta=eta, **options)
    problem = problem_of(case, 25, averaging=averaging)
    twin = TwinPath(case, problem)
    for _ in range(25):
        block, direction = twin_of_argmax(case, twin.noise, twin.coef, problem.penalty)
        twin.update(block, joint=False, direction=direction)
    found = _gcd.solve(case.oracle(), problem)
    assert_allclose(found.coef, twin.result(), **CLOSE)
    assert len({tuple(i) for i in twin.iterates}) > 5  # something moved


# ---- without noise -----------------------------------------------------------------------------


@table("loss", LOSSES)
@table("layout", LAYOUTS)
@table("bounded", [False, True])
def test_without_noise_a_step_follows_the_plain_mean_gradient(layout, loss, bounded):
    case = Case(loss=loss, bounded=bounded, weighted=True, clip=1e-3)
    problem = problem_of(case, 3, penalty=ElasticNet())
    event = FitEvent((NonPrivateEvent(),))
    coef = np.zeros(len(case.M))
    for _ in range(3):
        coef = coef - 0.5 * case.gradients(coef).mean(axis=0) / case.M
    oracle, sampling = case.oracle(layout, event=event), FullSampling(len(case.M))
    found = _skgd.solve(oracle, problem, sampling, np.random.default_rng(0))
    assert_allclose(found.coef, coef, rtol=1e-10, atol=1e-12)


# ---- what can't be read is refused -------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda case: case.X.astype(">f8"), TypeError),
        (lambda case: case.X.astype(np.float16), TypeError),
        (lambda case: case.X.astype(np.int64), TypeError),
        (lambda case: case.X[::2, ::2], ValueError),
    ],
    ids=["byte order", "float16", "integers", "gaps everywhere"],
)
def test_records_in_another_form_are_refused(spoil, error):
    case = Case()
    with pytest.raises(error):
        case.oracle(lambda X: spoil(case))


@table(
    ("attribute", "value"),
    [
        ("y", np.zeros(300)),
        ("y", np.zeros(301, dtype=np.float32)),
        ("weights", np.ones(302)),
        ("M", np.ones(11)),
    ],
)
def test_arrays_of_another_length_or_type_are_refused(attribute, value):
    case = Case()
    setattr(case, attribute, value)
    with pytest.raises(ValueError):
        case.oracle()
