"""Records in partitions: every solver gives the bits of a fit in one place, over any engine."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, issparse
from sklearn.base import clone
from tables import table

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.partitions import fit_partitions
from dpcd_sklearn.partitions._partition import public_bits
from dpcd_sklearn.privacy.mechanisms import _quantiles
from dpcd_sklearn.privacy.sums import Dialogue, LocalPlace
from dpcd_sklearn.solvers import GCD
from dpcd_sklearn.testing import ReproducibleNoise

N, P = 211, 6
CUTS = {
    "one": [0, N],
    "uneven": [0, 3, 3, 150, N, N],
    "a row each": list(range(N + 1)),
}
_rng = np.random.default_rng(15)
X = _rng.uniform(-1, 1, (N, P)) * (_rng.random((N, P)) < 0.7)
Y = np.clip(X @ np.linspace(-0.5, 0.5, P) + 0.1 * _rng.normal(size=N), -1, 1)
WEIGHTS = _rng.uniform(0, 2, N)
TWO, THREE = np.where(Y > 0, "yes", "no"), np.digitize(Y, [-0.2, 0.2])
LAYOUTS = [np.asarray, np.asfortranarray, np.float32, csr_array, csc_array]
SEEDED = {"random_state": ReproducibleNoise(3), "epsilon": 20.0}
STATED = SEEDED | {"feature_bounds": (-1, 1), "max_iter": 3}
REGRESSION = STATED | {"target_bounds": (-1, 1)}
BALL = {"penalty": None, "constraint": "l1_ball", "penalize_intercept": True}
ADD_REMOVE = {"neighboring": "add_remove", "n_public": 200, "delta": 1e-6}
MODELS = {
    **{
        solver: (DPLinearRegressor(solver=solver, **REGRESSION), Y)
        for solver in ("cd", "gcd", "skgd", "newton", "sgd", "svrg", "compgd")
    },
    "frank-wolfe": (DPLinearRegressor(solver="frank-wolfe", **BALL, **REGRESSION), Y),
    "found scales": (DPLinearRegressor(solver="gcd", max_iter=3, **SEEDED), Y),
    "released squares": (DPLinearRegressor(solver="cd", feature_scale="private", **REGRESSION), Y),
    "add_remove": (DPLassoCD(alpha=0.001, **ADD_REMOVE, **REGRESSION), Y),
    "blocks": (DPRidgeSkGD(sampling="nice", block_size=2, **REGRESSION), Y),
    "greedy logistic": (DPLogisticGCD(solver=GCD(selection="lazy"), **STATED), TWO),
    "softmax": (DPLinearClassifier(solver="skgd", **STATED), THREE),
    "softmax newton": (DPLinearClassifier(solver="newton", **STATED), THREE),
    "softmax auto": (DPLinearClassifier(**STATED), THREE),
    "several targets": (
        DPLinearRegressor(solver="gcd", feature_bounds=(-1, 1), max_iter=3, **SEEDED),
        np.column_stack([Y, -Y]),
    ),
    "inference": (DPLinearRegressor(solver="newton", inference=True, **REGRESSION), Y),
    "inference of classes": (DPLinearClassifier(solver="newton", inference=True, **STATED), TWO),
    "weights of classes": (
        DPLinearClassifier(classes=["no", "yes"], class_weight={"no": 1.0, "yes": 0.5}, **STATED),
        TWO,
    ),
}


def run_on(cuts, X, y, weights=None):
    """The runner of `fit_partitions`' tasks: each is pickled, as it would be to travel."""

    def run(task):
        rows = [slice(*pair) for pair in zip(cuts, cuts[1:], strict=False)]
        found = [
            pickle.loads(pickle.dumps(task))(
                number, X[own], y[own], None if weights is None else weights[own]
            )
            for number, own in enumerate(rows)
        ]
        return found[::-1]  # in any order

    return run


def assert_same_bits(fitted, other):
    assert fitted.coef_.dtype == other.coef_.dtype
    np.testing.assert_array_equal(fitted.coef_, other.coef_)
    np.testing.assert_array_equal(fitted.intercept_, other.intercept_)
    assert fitted.privacy_event_ == other.privacy_event_
    assert fitted.n_iter_ == other.n_iter_


@table("name", MODELS)
def test_the_bits_of_one_place(name):
    model, y = MODELS[name]
    local = clone(model).fit(X, y)
    assert np.any(local.coef_)
    parted = fit_partitions(clone(model), run_on(CUTS["uneven"], X, y))
    assert_same_bits(local, parted)
    if "inference" in name:
        np.testing.assert_array_equal(local.coef_cov_, parted.coef_cov_)


@table("layout", [np.asarray, np.asfortranarray, csr_array])
def test_a_sample_that_is_counted_has_the_same_rows(layout, monkeypatch):
    model, sampled = DPRidgeSkGD(max_iter=3, **SEEDED), []
    of_rows = LocalPlace.of_rows
    for least in "_LEAST_SAMPLE", "_AMPLE_EVIDENCE", "_EVIDENCE_BEYOND":
        monkeypatch.setattr(_quantiles, least, 5.0)
    monkeypatch.setattr(
        LocalPlace, "of_rows", lambda self, rows: sampled.append(rows) or of_rows(self, rows)
    )
    local = clone(model).fit(layout(X), Y)
    parted = fit_partitions(clone(model), run_on(CUTS["uneven"], layout(X), Y))
    assert_same_bits(local, parted)
    assert (len(sampled) == 0) == issparse(layout(X))


@table("weights", [None, WEIGHTS])
@table("layout", LAYOUTS)
@table("name", ["cd", "gcd", "skgd", "newton", "softmax", "softmax newton"])
def test_the_bits_of_every_layout(name, layout, weights):
    model, y = MODELS[name]
    records = layout(X)
    local = clone(model).fit(records, y, weights)
    run = run_on(CUTS["uneven"], records, y, weights)
    assert_same_bits(local, fit_partitions(clone(model), run))


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("name", ["gcd", "newton", "softmax newton"])
def test_the_bits_of_every_partitioning(name, cuts):
    model, y = clone(MODELS[name][0]).set_params(max_iter=1), MODELS[name][1]
    local = clone(model).fit(X, y)
    assert_same_bits(local, fit_partitions(clone(model), run_on(CUTS[cuts], X, y)))


@pytest.mark.parametrize("layout", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["cd", "skgd", "newton", "softmax", "softmax newton"])
@pytest.mark.filterwarnings("ignore:the fit without noise stopped")
def test_without_noise_to_the_tolerance(name, layout):
    """Sums of floating-point numbers: the same but for their last bits, after as many updates."""
    model, y = MODELS[name]
    model = clone(model).set_params(epsilon=np.inf, random_state=0, tol=1e-12)
    local = clone(model).fit(layout(X), y, WEIGHTS)
    run = run_on(CUTS["uneven"], layout(X), y, WEIGHTS)
    parted = fit_partitions(clone(model), run)
    np.testing.assert_allclose(parted.coef_, local.coef_, rtol=1e-9, atol=1e-12)


def test_the_ledger_has_the_entry_of_a_local_fit(tmp_path):
    budget = {"epsilon": 50, "delta": 1e-3}
    model = clone(MODELS["skgd"][0]).set_params(random_state=None)
    entries = []
    for fit in (
        lambda model: model.fit(X, Y),
        lambda model: fit_partitions(model, run_on(CUTS["uneven"], X, Y)),
    ):
        accountant = PrivacyAccountant(**budget)
        fit(clone(model).set_params(accountant=accountant))
        (entry,) = accountant.entries()
        entries.append((entry.amount, entry.event, entry.estimator, entry.n_samples))
    assert entries[0] == entries[1]


def test_nothing_travels_before_the_charge_but_validation():
    asked = []
    run = run_on(CUTS["uneven"], X, Y)

    def watched(task):
        asked.append(type(task).__name__)
        return run(task)

    accountant = PrivacyAccountant(epsilon=0.1, delta=1e-6)
    model = clone(MODELS["skgd"][0]).set_params(random_state=None, accountant=accountant)
    with pytest.raises(BudgetExceededError):
        fit_partitions(model, watched)
    assert asked == ["_Look"]
    assert not accountant.entries()


def test_no_key_of_noise_travels(monkeypatch):
    """Neither the key of a fit, nor the seed, nor the accountant is in what goes out."""
    keys, seed = [], 123_456_789
    accountant = PrivacyAccountant(50, 1e-3, testing=True)
    model = clone(MODELS["found scales"][0]).set_params(
        random_state=ReproducibleNoise(seed), accountant=accountant
    )
    randomness = model._randomness
    monkeypatch.setattr(
        model, "_randomness", lambda: keys.append(randomness()) or keys[-1], raising=False
    )
    sent, run = [], run_on(CUTS["one"], X, Y)

    def watched(task):
        sent.append(pickle.dumps(task))
        return run(task)

    fit_partitions(model, watched)
    ((key, _),) = keys
    assert len(key) == 32 and len(sent) > 3
    together = b"".join(sent)
    assert key not in together
    assert seed.to_bytes(4, "little") not in together
    assert b"Accountant" not in together and b"ReproducibleNoise" not in together
    assert b"feature_bounds" in together  # public parameters do


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (np.where(np.arange(N)[:, None] == 180, np.nan, X), y), "partition 3: .*NaN"),
        (lambda X, y: (X, np.where(np.arange(N) == 1, np.inf, y)), "partition 0: .*infinity"),
        (lambda X, y: (X, y[:-20]), "partition 3: X has 61 rows, y and sample_weight have .41."),
    ],
    ids=["NaN", "infinite target", "too few targets"],
)
def test_an_invalid_partition_is_named_and_nothing_is_charged(spoil, message, uncharged):
    model = clone(MODELS["skgd"][0]).set_params(random_state=None, accountant=uncharged)
    with pytest.raises(ValueError, match=message):
        fit_partitions(model, run_on(CUTS["uneven"], *spoil(X, Y)))


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ((X[:50, :5], Y[:50]), "partition 1 has n_features 5, partition 0 has 6"),
        ((np.float32(X[:50]), Y[:50]), "partition 1 has dtype '<f4'"),
        ((csr_array(X[:50]), Y[:50]), "partition 1 has sparse True"),
    ],
    ids=["columns", "dtype", "sparse"],
)
def test_partitions_must_be_alike(last, message):
    parts = [(0, X, Y), (1, *last)]
    with pytest.raises(ValueError, match=message):
        fit_partitions(clone(MODELS["skgd"][0]), lambda task: [task(*part) for part in parts])


def test_labels_of_other_kinds_and_empty_fits_are_refused():
    parts = [(0, X[:100], TWO[:100]), (1, X[100:], THREE[100:])]
    with pytest.raises(ValueError, match="partition 1 has kind_of_y 'numbers'"):
        fit_partitions(clone(MODELS["greedy logistic"][0]), lambda t: [t(*part) for part in parts])
    with pytest.raises(ValueError, match="every partition of X is empty"):
        fit_partitions(clone(MODELS["skgd"][0]), run_on([0, 0], X, Y))
    with pytest.raises(ValueError, match="sample_weight is zero for every record"):
        fit_partitions(clone(MODELS["skgd"][0]), run_on([0, 9, N], X, Y, np.zeros(N)))


def test_labels_are_those_of_all_partitions():
    order = np.argsort(THREE, kind="stable")  # each partition holds one label
    cuts = [0, *np.cumsum(np.bincount(THREE))]
    model = clone(MODELS["softmax"][0])
    local = clone(model).fit(X[order], THREE[order])
    parted = fit_partitions(model, run_on(cuts, X[order], THREE[order]))
    np.testing.assert_array_equal(parted.classes_, [0, 1, 2])
    assert_same_bits(local, parted)


def test_who_computes_other_bits_is_refused():
    assert public_bits() == public_bits()
    model, run = clone(MODELS["skgd"][0]), run_on(CUTS["one"], X, Y)
    with pytest.raises(RuntimeError, match="other bits"):
        fit_partitions(model, lambda task: [one._replace(of_task="") for one in run(task)])


@pytest.mark.parametrize("name", ["skgd", "newton"])
def test_records_that_are_lost_end_the_fit_which_stays_charged(name):
    """The error is the engine's own, wherever a kernel was when it happened."""
    calls, run = [], run_on(CUTS["one"], X, Y)

    def failing(task):
        calls.append(task)
        if len(calls) == 3:
            raise ConnectionError("the engine is gone")
        return run(task)

    accountant = PrivacyAccountant(50, 1e-3)
    model = clone(MODELS[name][0]).set_params(random_state=None, accountant=accountant)
    with pytest.raises(ConnectionError, match="the engine is gone"):
        fit_partitions(model, failing)
    assert len(calls) == 3
    assert len(accountant.entries()) == 1
    assert not hasattr(model, "coef_")


def test_an_answer_of_another_size_is_refused():
    for cuts, message in ((CUTS["one"], "expected 7 sums of int64"), (CUTS["uneven"], "parts ans")):
        run = run_on(cuts, X, Y)

        def cut(task, run=run):
            found = run(task)
            if type(task).__name__ == "_Answer":
                sums, of_records = found[-1].of_task
                found[-1] = found[-1]._replace(of_task=(sums[:-1], of_records))
            return found

        with pytest.raises(TypeError, match=message):
            fit_partitions(clone(MODELS["skgd"][0]).set_params(feature_scale=1.0), cut)


# ---- an engine that does not keep its word -------------------------------------------------------

# Three partitions of one size: facts alone do not tell them apart.
PARTS = [(number, X[own], Y[own]) for number, own in enumerate(np.split(np.arange(90), 3))]


def called(task, parts):
    return [task(*part) for part in parts]


def dropped(task, earlier):
    return called(task, PARTS[:2])


def duplicated(task, earlier):
    return called(task, [*PARTS, PARTS[1]])


def instead_of_another(task, earlier):
    return called(task, [PARTS[0], PARTS[0], PARTS[2]])


def replayed(task, earlier):
    return earlier[-1] if earlier else called(task, PARTS)


def one_replayed(task, earlier):
    found = called(task, PARTS)
    return [*found[:2], earlier[-1][2]] if earlier else found


def beside_itself(task, earlier):
    """A speculative copy that comes late."""
    return called(task, PARTS) + (earlier[-1][:1] if earlier else [])


def renumbered(task, earlier):
    return called(task, [(9, *PARTS[0][1:]), *PARTS[1:]])


def swapped(task, earlier):
    return called(task, [(0, *PARTS[1][1:]), (1, *PARTS[0][1:]), PARTS[2]])


def under_another_number(task, earlier):
    return called(task, [PARTS[0], (1, *PARTS[0][1:]), PARTS[2]])


def made_anew(task, earlier):
    number, X, y = PARTS[2]
    return called(task, [*PARTS[:2], (number, X, y + 1e-3)])


def shortened(task, earlier):
    number, X, y = PARTS[2]
    return called(task, [*PARTS[:2], (number, X[:-1], y[:-1])])


def of_another_dtype(task, earlier):
    number, X, y = PARTS[2]
    return called(task, [*PARTS[:2], (number, X.astype(np.float32), y)])


def words(task, earlier):
    return [*called(task, PARTS[:2]), "lost"]


FAULTS = [
    dropped, duplicated, instead_of_another, replayed, one_replayed, beside_itself, renumbered,
    swapped, under_another_number, made_anew, shortened, of_another_dtype, words,
]  # fmt: skip


REFUSED = "partition|another question|must return the list"


@pytest.mark.parametrize("name", ["skgd", "newton"])
def test_no_answer_counts_twice_or_is_missing_or_another(name, monkeypatch):
    """From the second question on, when one good answer is known: nothing is drawn for it."""
    drawn, counts = [], []
    monkeypatch.setattr(Dialogue, "ask", counted(Dialogue.ask, drawn))
    for fault in FAULTS:
        accountant, earlier = PrivacyAccountant(50, 1e-3), []
        model = clone(MODELS[name][0]).set_params(random_state=None, accountant=accountant)
        drawn.clear()

        def run(task, fault=fault, earlier=earlier):
            if type(task).__name__ == "_Look" or not earlier:
                found = called(task, PARTS)
            else:
                found = fault(task, earlier)
            if type(task).__name__ == "_Answer":
                earlier.append(found)
            return found

        with pytest.raises((RuntimeError, TypeError), match=REFUSED):
            fit_partitions(model, run)
        assert not hasattr(model, "coef_"), fault.__name__
        assert len(accountant.entries()) == 1
        counts.append(len(drawn))
    assert counts == [1] * len(FAULTS)


def counted(ask, sums):
    """`Dialogue.ask` that notes which sums came back."""

    def noted(self, *question):
        total = ask(self, *question)
        sums.append(total)
        return total

    return noted


def test_lists_are_records_too():
    X, y = np.linspace(-1, 1, 60).reshape(30, 2), np.arange(30) % 2
    model = DPLinearClassifier(
        classes=[0, 1], feature_bounds=(-1, 1), random_state=ReproducibleNoise(0)
    )
    lists = [(0, X[:9].tolist(), y[:9].tolist()), (1, X[9:], y[9:].tolist()), (2, [], [])]
    arrays = [(0, X[:9], y[:9]), (1, X[9:], y[9:])]
    of_lists, of_arrays = (
        fit_partitions(clone(model), lambda task, parts=parts: [task(*part) for part in parts])
        for parts in (lists, arrays)
    )
    np.testing.assert_array_equal(of_lists.coef_, of_arrays.coef_)


@pytest.mark.parametrize("fault", [dropped, duplicated, instead_of_another, renumbered, words])
def test_a_look_without_each_partition_once_is_refused_uncharged(fault, uncharged):
    model = clone(MODELS["skgd"][0]).set_params(random_state=None, accountant=uncharged)
    if fault is dropped:  # a gap: the first is missing
        run = lambda task: called(task, PARTS[1:])  # noqa: E731
    else:
        run = lambda task: fault(task, [])  # noqa: E731
    with pytest.raises((RuntimeError, TypeError), match="exactly once|must return the list"):
        fit_partitions(model, run)
