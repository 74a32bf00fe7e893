"""Persons by their ids: any number of records each, clipped as one vector.

Proof: ``privacy/proofs/release_mean_of_persons.md``. The number of records is secret: neighbours
have other ones in another number.
"""

import functools
import pickle
import tracemalloc
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import kstest
from sklearn import config_context
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from tables import table
from tape_cases import check_paid

from dpcd_sklearn import (
    DPLassoCD,
    DPLassoCV,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    Persons,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import PrivacyReport, audit
from dpcd_sklearn.linear_model import _records
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PersonKFold, PrivateSearchCV
from dpcd_sklearn.partitions import fit_partitions
from dpcd_sklearn.partitions._partitioned_records import PartitionedRecords
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    DPPCA,
    BoundsScaler,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    PiecewiseExponential,
    _private_transformer,
)
from dpcd_sklearn.privacy.accounting import epsilon_of
from dpcd_sklearn.privacy.sums import PersonPlace, _person_place
from dpcd_sklearn.privacy.sums._person_sums import PersonSums
from dpcd_sklearn.solvers import GCD, SGD, CompGD, Newton, SkGD
from dpcd_sklearn.testing import LeakError, Recording, ReproducibleNoise, replay
from dpcd_sklearn.utils import _persons
from dpcd_sklearn.utils._persons import rows_read

pytestmark = pytest.mark.filterwarnings("ignore")

DELTA = 1e-5
P, N_PERSONS = 3, 40
BY_ID = {"neighboring": Persons(), "delta": DELTA}
REMOVED = {"neighboring": Persons(relation="add_remove"), "n_public": N_PERSONS, "delta": DELTA}
STATED = {"feature_bounds": (-2, 2), "target_bounds": (-3, 3)}
SIZES = [1, 2, 7, 60]
EXTREME = [0.0, 1.0, -1.0, 2.0, -2.0, 1e300, -1e300, np.finfo(float).max, 5e-324]


# ---- tables of persons --------------------------------------------------------------------------


@dataclass(frozen=True)
class Visits:
    """Records, whose they are, and weights."""

    X: np.ndarray
    y: np.ndarray
    ids: np.ndarray
    weights: np.ndarray

    def without(self, person):
        keep = self.ids != person
        return Visits(self.X[keep], self.y[keep], self.ids[keep], self.weights[keep])

    def with_records(self, X, y, person, weights, rng):
        """More records of a person, anywhere among the others."""
        size = len(y)
        joined = [
            np.concatenate(pair)
            for pair in (
                (self.X, X),
                (self.y, y),
                (self.ids, np.full(size, person)),
                (self.weights, weights),
            )
        ]
        order = rng.permutation(len(joined[1]))
        return Visits(*(array[order] for array in joined))


def visits(rng, n_persons=N_PERSONS, mean=3.0):
    sizes = rng.geometric(1 / mean, n_persons)
    ids = np.repeat(np.arange(n_persons), sizes)
    X = rng.uniform(-2, 2, (len(ids), P))
    y = np.clip(X @ [0.5, -0.3, 0.1] + 0.3 * rng.normal(size=len(ids)), -3, 3)
    return Visits(X, y, ids, rng.uniform(0, 2, len(ids)))


def neighbours(seed, as_many=False):
    """Two tables that differ in all records of one person, and in how many unless `as_many`."""
    rng = np.random.default_rng(seed)
    whole = visits(rng)
    person = int(rng.integers(N_PERSONS))
    rest, found = whole.without(person), []
    for _ in range(2):
        size = len(found[0].y) - len(rest.y) if as_many and found else int(rng.choice(SIZES))
        cells = rng.choice([*EXTREME, *rng.normal(size=4)], (size, P))
        if rng.random() < 0.5:  # all alike
            cells = np.repeat(cells[:1], size, axis=0)
        y = np.repeat(rng.choice([*EXTREME[1:7], *rng.normal(size=3)]), size)
        weights = rng.choice([0.0, 1.0, 2.0, 1e6], size)
        found.append(rest.with_records(cells, y, person, weights, rng))
    return found, rest


def fit_of(make, weighted=False):
    def fit(data, tape):
        model = make(tape)
        regression = not hasattr(model, "classes")
        y = data.y if regression else (data.y > 0).astype(int)
        name = (
            f"{model.steps[-1][0]}__sample_weight" if hasattr(model, "steps") else "sample_weight"
        )
        weights = {name: data.weights} if weighted else {}
        model.fit(data.X, y, groups=data.ids, **weights)
        return model, model.predict(np.linspace(-1, 1, 4 * P).reshape(4, P))

    return fit


class Survival(DPLinearRegressor):
    """A regression of person-periods, of durations and events that are made of the target."""

    def fit(self, X, y, sample_weight=None, groups=None):
        duration, periods = np.clip(np.abs(y), 0.1, 9.0), PiecewiseExponential([1.0, 2.0, 4.0])
        rows = periods.set_params(largest_rate=2.0).expand(X, duration, y > 0, groups)
        return super().fit(rows.X, rows.rate, rows.exposure, rows.groups)

    def predict(self, X):
        return super().predict(np.hstack([X, np.zeros((len(X), 3))]))  # of the first period


class Sparse(DPLinearRegressor):
    """A regression of which X is a sparse matrix."""

    def fit(self, X, y, sample_weight=None, groups=None):
        return super().fit(sparse.csc_array(thinned(X)), y, sample_weight, groups)


class Parted(DPLinearRegressor):
    """A regression of records in partitions, where persons are in several of them."""

    def fit(self, X, y, sample_weight=None, groups=None):
        if groups is None:
            return super().fit(X, y)
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        where = np.digitize(X[:, 1], [-0.5, 0.5])  # of each record by itself
        return fit_partitions(self, run_on(where, X, y, weights, groups))


def run_on(where, X, y, weights, ids):
    """The runner of tasks for partitions 0 to 2, of which the last one may be empty."""
    rows = [np.flatnonzero(where == number) for number in range(3)]

    def run(task):
        task = pickle.loads(pickle.dumps(task))
        return [task(k, X[own], y[own], weights[own], ids[own]) for k, own in enumerate(rows)]

    return run


class TwoTargets(DPLinearRegressor):
    """A regression of a second target beside the first."""

    def fit(self, X, y, sample_weight=None, groups=None):
        return super().fit(X, np.column_stack([y, X[:, 0]]), sample_weight, groups)


class ThreeLabels(DPLinearClassifier):
    """A classification of three classes."""

    def fit(self, X, y, sample_weight=None, groups=None):
        return super().fit(X, y + (X[:, 0] > 0), sample_weight, groups)


OF_THREE = {"feature_bounds": (-2, 2), "classes": [0, 1, 2]} | BY_ID


def thinned(X):
    return np.where(np.abs(X) < 0.7, 0.0, X)


FITS = {
    "parted": lambda t: Parted(**STATED, **BY_ID, max_iter=4, random_state=t),
    "parted, Newton": lambda t: Parted(
        **STATED, **BY_ID, solver=Newton(), max_iter=2, random_state=t
    ),
    "add_remove, parted": lambda t: Parted(**STATED, **REMOVED, max_iter=4, random_state=t),
    "parted, nothing stated": lambda t: Parted(**BY_ID, max_iter=2, random_state=t),
    "two targets": lambda t: TwoTargets(**STATED, **BY_ID, max_iter=3, random_state=t),
    "two targets, Newton": lambda t: TwoTargets(
        **STATED, **BY_ID, solver=Newton(), max_iter=2, random_state=t
    ),
    "two targets, nothing stated": lambda t: TwoTargets(**BY_ID, max_iter=2, random_state=t),
    "three labels": lambda t: ThreeLabels(**OF_THREE, max_iter=4, random_state=t),
    "three labels, Newton": lambda t: ThreeLabels(**OF_THREE, solver=Newton(), random_state=t),
    "add_remove, three labels": lambda t: ThreeLabels(
        **OF_THREE | REMOVED, max_iter=4, random_state=t
    ),
    "sparse": lambda t: Sparse(**STATED, **BY_ID, max_iter=4, random_state=t),
    "sparse, Newton": lambda t: Sparse(
        target_bounds=(-3, 3), row_norm_bound=2.0, **BY_ID, solver=Newton(), max_iter=2,
        random_state=t,
    ),
    "sparse, nothing stated": lambda t: Sparse(**BY_ID, max_iter=2, random_state=t),
    "survival": lambda t: Survival(
        "poisson", feature_bounds=(-2, 2), target_bounds=(0, 2), clip=2.0, **BY_ID,
        solver=SGD(1.0, step_size=0.3), max_iter=4, random_state=t,
    ),
    "regression": lambda t: DPLinearRegressor(**STATED, **BY_ID, max_iter=4, random_state=t),
    "add_remove": lambda t: DPLinearRegressor(**STATED, **REMOVED, max_iter=4, random_state=t),
    "by default": lambda t: DPRidgeSkGD(**STATED, **BY_ID, random_state=t),
    "lasso, no intercept": lambda t: DPLassoCD(
        **STATED, **BY_ID, alpha=0.01, fit_intercept=False, max_iter=4, random_state=t
    ),
    "labels": lambda t: DPLinearClassifier(
        feature_bounds=(-2, 2), classes=[0, 1], **BY_ID, max_iter=4, random_state=t
    ),
    "logistic, a row's norm": lambda t: DPLogisticGCD(
        row_norm_bound=2.0, classes=[0, 1], **BY_ID, max_iter=4, random_state=t
    ),
    "Newton": lambda t: DPLinearRegressor(**STATED, **BY_ID, solver=Newton(), random_state=t),
    "Newton, few": lambda t: DPLinearRegressor(
        **STATED, **BY_ID, solver=Newton(step_size=0.3), max_iter=2, fit_intercept=False,
        epsilon=8.0, random_state=t,
    ),
    "add_remove, Newton": lambda t: DPLinearClassifier(
        feature_bounds=(-2, 2), classes=[0, 1], **REMOVED, solver=Newton(), random_state=t
    ),
    "Newton, nothing stated": lambda t: DPLinearRegressor(
        **BY_ID, solver=Newton(), max_iter=2, random_state=t
    ),
    "one scale": lambda t: DPLinearRegressor(
        feature_scale=1.0, target_bounds=(-3, 3), **BY_ID, max_iter=4, random_state=t
    ),
    "nothing stated": lambda t: DPLinearRegressor(**BY_ID, max_iter=2, random_state=t),
    "labels, nothing stated": lambda t: DPLinearClassifier(
        classes=[0, 1], **BY_ID, max_iter=2, random_state=t
    ),
    "quantiles and means": lambda t: make_private_pipeline(
        DPSimpleImputer(strategy="mean", feature_bounds=(-2, 2), random_state=t),
        DPStandardScaler(random_state=t), ridge(t), **BY_ID,
    ),
    "add_remove, quantiles": lambda t: make_private_pipeline(
        DPQuantileTransformer(random_state=t), ridge(t), **REMOVED
    ),
    "categories": lambda t: make_private_pipeline(
        make_private_column_transformer(
            (DPOneHotEncoder(random_state=t), [0]),
            (DPTargetEncoder(target_bounds=(-3, 3), random_state=t), [1]),
            (DPRobustScaler(random_state=t), [2]),
        ),
        ridge(t), **BY_ID,
    ),
    "a search": lambda t: PrivateSearchCV(
        ridge(None).set_params(feature_bounds=(-2, 2), **BY_ID), {"alpha": [1e-3, 1.0]},
        epsilon=3.0, delta=DELTA, refit=True, random_state=t,
    ),
    "a search, folds": lambda t: PrivateSearchCV(
        ridge(None).set_params(feature_bounds=(-2, 2), **BY_ID), {"max_iter": [2, 3]},
        epsilon=3.0, delta=DELTA, validation=PersonKFold(2), refit=True, random_state=t,
    ),
    "a search behind steps": lambda t: PrivateSearchCV(
        make_private_pipeline(DPStandardScaler(), ridge(None), **BY_ID),
        {"dpridgeskgd__alpha": [1e-3, 1.0]}, epsilon=9.0, delta=DELTA, random_state=t,
    ),
    "columns": lambda t: make_private_pipeline(
        DPSelectKBest(k=2, feature_bounds=(-2, 2), target_bounds=(-3, 3), random_state=t),
        DPPCA(1, feature_bounds=(-2, 2), random_state=t), ridge(t), **BY_ID,
    ),
}  # fmt: skip


# Two rows of each person are read, whatever is fitted, and a person moves two rows.
MOST = 2
CAPPED = {"neighboring": Persons(MOST), "delta": DELTA}
FITS |= {
    "at most 2": lambda t: DPLinearRegressor(**STATED, **CAPPED, random_state=t),
    "at most 2, coordinates": lambda t: DPLassoCD(
        **STATED, **CAPPED, solver="cd", max_iter=2, random_state=t
    ),
    "add_remove, at most 2": lambda t: DPLassoCD(
        **STATED, solver=GCD(), max_iter=4, neighboring=Persons(MOST, "add_remove"), n_public=70,
        delta=DELTA, random_state=t,
    ),
    "at most 2, steps": lambda t: make_private_pipeline(
        make_private_column_transformer(
            (DPTargetEncoder([[0.0, 1.0]], target_bounds=(-3, 3), cv=2, random_state=t), [0]),
            (DPQuantileTransformer(random_state=t), [1, 2]),
        ),
        ridge(t), epsilon=9.0, **CAPPED,
    ),
    "at most 2, a search": lambda t: PrivateSearchCV(
        ridge(None).set_params(feature_bounds=(-2, 2), **CAPPED), {"max_iter": [2, 3]},
        epsilon=9.0, delta=DELTA, refit=True, random_state=t,
    ),
}  # fmt: skip


def ridge(t):
    return DPRidgeSkGD(target_bounds=(-3, 3), max_iter=2, random_state=t)


def test_a_record_that_the_order_of_all_records_decides_is_found(monkeypatch):
    def first_row(ids, persons, *tables, most):
        return np.unique(persons, return_index=True)[1]

    monkeypatch.setattr(_private_transformer, "drawn_rows", first_row)
    with pytest.raises(LeakError, match="moved by"):
        replayed("quantiles and means", 0)


def of_all(unit, groups, n_records, *tables):
    """At most k rows of each person, those that lie where a fixed permutation of rows starts."""
    order = np.random.default_rng(0).permutation(n_records)
    order = order[np.argsort(groups[order], kind="stable")]
    rank = np.arange(n_records) - np.searchsorted(groups[order], groups[order])
    return order[rank < MOST]


def one_more(unit, *args):
    return rows_read(Persons(MOST + 1), *args)


@table("mutant, words", [(of_all, "moved by"), (one_more, "times its sensitivity")])
def test_a_mutant_of_rows_that_are_left_out_is_found(mutant, words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_records, "rows_read", mutant)
        with pytest.raises(LeakError, match=words):
            all(replayed("at most 2, coordinates", seed) for seed in range(24))


@table("k", [1, 3])
def test_rows_of_each_person_are_drawn_by_this_persons_records_alone(k):
    unit = Persons(None if k == 1 else k)
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(300), 100)
    numbers = rng.normal(size=(30_000, 2))
    of_both = [rows_read(unit, ids, 30_000, t) for t in (numbers, pd.DataFrame(numbers))]
    assert np.array_equal(*of_both)
    thin = sparse.csr_array(thinned(numbers))
    zeros = thin.copy()
    zeros.data[::3] = 0.0
    for table_ in (thin, zeros):
        drawn = rows_read(unit, ids, 30_000, table_)
        assert kstest(drawn % 100, "randint", (0, 100)).pvalue > 1e-3
        other = sparse.coo_array(table_.toarray()[ids != 7]).tocsc()
        again = rows_read(unit, ids[ids != 7], 29_900, other)
        assert np.flatnonzero(ids != 7)[again].tolist() == drawn[ids[drawn] != 7].tolist()
    frame = pd.DataFrame({"number": rng.normal(size=30_000), "word": rng.choice([*"abc"], 30_000)})
    frame.loc[::7, "word"] = None
    rows = rows_read(unit, ids, 30_000, frame)
    assert ids[rows].tolist() == np.repeat(np.arange(300), k).tolist()
    assert kstest(rows % 100, "randint", (0, 100)).pvalue > 1e-3
    order = rng.permutation(np.flatnonzero(ids != 7))  # others, in another order, without one
    again = rows_read(unit, list(map(int, ids[order])), len(order), frame.iloc[order])
    assert order[again].tolist() == rows[ids[rows] != 7].tolist()


NUMBERS = np.random.default_rng(3).integers(0, 9, 60)
# Two tables of which one cell, the first, decides the dtype of all if a container may choose it.
BESIDE = {
    "nullable": [pd.DataFrame({"a": pd.array([one, *NUMBERS[1:]], "Int64")}) for one in (1, None)],
    "a number in a list": [[[one], *NUMBERS[1:, None].tolist()] for one in (1, 0.5)],
    "a category": [
        pd.DataFrame([one, *NUMBERS[1:]], dtype=object).astype("category") for one in (1, 0.5)
    ],
    "a gap in a list": [[[one], *NUMBERS[1:, None].tolist()] for one in (1, None)],
    "a huge number in a list": [[[one], *NUMBERS[1:, None].tolist()] for one in (1, 2**70)],
}


@table("name", BESIDE)
def test_one_cell_decides_no_record_that_is_scored_of_another_person(name):
    rows, draw = [], _persons.rows_read
    score = make_private_scorer("roc_auc", **BY_ID)
    y = NUMBERS > 4
    model = DummyClassifier().fit([[0], [1]], [False, True])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_persons, "rows_read", lambda *args: rows.append(draw(*args)) or rows[-1])
        for X in BESIDE[name]:
            score(model, X, y, groups=np.repeat(np.arange(12), 5))
    first, second = rows
    assert first[1:].tolist() == second[1:].tolist()


def test_the_score_of_a_person_is_the_mean_of_its_records():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(50), rng.integers(1, 9, 50))
    y = rng.integers(0, 2, len(ids))
    X = np.where(rng.random(len(ids)) < 0.8, y, 1 - y)[:, None].astype(float)
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    own = np.bincount(ids, X[:, 0] == y) / np.bincount(ids)
    loud = {"epsilon": 1e6, "delta": 1e-2, "neighboring": Persons()}
    found = make_private_scorer("accuracy", **loud)(model, X, y, groups=ids)
    assert found == pytest.approx(own.mean(), abs=1e-3)
    recalls = make_private_scorer("balanced_accuracy", **loud)(model, X, y, groups=ids)
    shares = 1 / np.bincount(ids)[ids]
    right = [np.sum(shares[(y == k) & (X[:, 0] == k)]) / np.sum(shares[y == k]) for k in (0, 1)]
    assert recalls == pytest.approx(np.mean(right), abs=1e-2)


def test_folds_hold_whole_persons_and_an_id_decides_its_own():
    ids = np.repeat([f"id {k}" for k in range(300)], 3)
    folds = {k: test for k, (_, test) in enumerate(PersonKFold(3).split(ids, groups=ids))}
    assert sorted(np.concatenate(list(folds.values()))) == list(range(900))
    rest = ids[ids != "id 7"]
    for k, (train, test) in enumerate(PersonKFold(3).split(rest, groups=rest)):
        assert set(rest[test]) == set(ids[folds[k]]) - {"id 7"}
        assert not set(rest[test]) & set(rest[train])
    other = next(PersonKFold(3, key=1).split(ids, groups=ids))[1]
    assert set(ids[other]) != set(ids[folds[0]])
    for groups, words in ((None, "groups=ids"), (ids[:2], "900, 2"), (np.full(900, 5), "none")):
        with pytest.raises(ValueError, match=words):
            list(PersonKFold(3).split(ids, groups=groups))


def test_tools_of_scikit_learn_route_ids():
    data = visits(np.random.default_rng(1), 300)
    ledger = PrivacyAccountant(9.0, 1e-3, neighboring=Persons())
    score = make_private_scorer("r2", 1.0, ledger, neighboring=Persons())
    model = DPRidgeSkGD(**STATED, **BY_ID, accountant=ledger)
    with config_context(enable_metadata_routing=True):
        found = cross_val_score(
            model.set_fit_request(groups=True), data.X, data.y, cv=PersonKFold(2),
            scoring=score, params={"groups": data.ids}, error_score="raise",
        )  # fmt: skip
    assert np.isfinite(found).all() and len(ledger.entries()) == 4
    assert all(entry.n_samples < 300 for entry in ledger.entries())


def test_a_search_of_persons_is_one_entry_and_keeps_no_ids():
    data = visits(np.random.default_rng(1), 600)
    for unit in ({"neighboring": Persons()}, {"neighboring": Persons(relation="add_remove")}):
        unit |= {"n_public": 600} if unit["neighboring"].relation == "add_remove" else {}
        ledger = PrivacyAccountant(9.0, 1e-3, **unit)
        search = PrivateSearchCV(
            DPRidgeSkGD(**STATED, **unit), {"alpha": [1e-3, 1e6]}, epsilon=9.0, delta=1e-3,
            accountant=ledger, refit=True,
        ).fit(data.X, data.y, groups=data.ids)  # fmt: skip
        (entry,) = ledger.entries()
        assert entry.n_samples == 600 and "in any number" in entry.event or "removed" in entry.event
        assert search.privacy_event_ == search.planned_event(600, P)
        assert b"PersonsOfRows" not in pickle.dumps(search)
        assert search.best_params_ == {"alpha": 1e-3}


def test_a_fitted_pipeline_keeps_no_ids():
    columns = make_private_column_transformer((DPStandardScaler(), [0, 1, 2]))
    pipeline = make_private_pipeline(columns, ridge(None), **BY_ID)
    assert b"PersonsOfRows" not in pickle.dumps(pipeline.fit(DATA.X, DATA.y, groups=DATA.ids))


def test_a_record_that_a_person_has_often_is_drawn_often():
    ids, words = np.repeat(np.arange(4000), 5), np.tile([*"xxxxy"], 4000)
    drawn = words[rows_read(Persons(), ids, len(ids), [words])]
    assert 0.17 < np.mean(drawn == "y") < 0.23


def replayed(name, seed, arbitrary=False):
    most = MOST if "at most" in name else 1
    (data, neighbour), rest = neighbours(seed, as_many=most > 1)
    if name.startswith("add_remove"):
        neighbour = rest
    fit = fit_of(FITS[name], weighted=seed % 2 == 1)
    found = replay(fit, data, neighbour, seed=seed, arbitrary=arbitrary, max_contributions=most)
    if "search" not in name:  # of the runs of a search each record meets some
        check_paid(found, found.returned[0].privacy_event_)
    return found


@table(("arbitrary", "seed"), [(False, 0), (True, 1)])  # the second one is weighted
@table("name", FITS)
def test_one_person_decides_nothing_whatever_and_however_many_its_records(name, arbitrary, seed):
    replayed(name, seed, arbitrary)


def test_brute_force_pairs_of_persons_are_no_farther_apart_than_the_sensitivity():
    """Iterates that no records lead to as well, so clips are met from all sides."""
    worst = [replayed("regression", seed, seed % 3 > 0).excess for seed in range(100, 140)]
    assert 0.97 < max(worst) <= 1 + 1e-12
    worst = [replayed("add_remove", seed).excess for seed in range(100, 110)]
    assert 0.9 < max(worst) <= 1 + 1e-12
    for name in ("Newton, few", "three labels, Newton", "sparse"):
        worst = [replayed(name, seed, seed % 2 > 0).excess for seed in range(100, 120)]
        assert 0.9 < max(worst) <= 1 + 1e-12


# ---- the sums -----------------------------------------------------------------------------------


def exact_sums(model, data, weights=None):
    """Questions and exact answers of a fit."""
    tape = Recording(3)
    model.set_params(random_state=tape).fit(data.X, data.y, groups=data.ids, sample_weight=weights)
    return tape.entries


def twin(data, weights, entry, model):
    """The same integers, by NumPy."""
    center, scale = 0.0, 3.0  # of the target, in bounds (-3, 3)
    X, y = np.clip(data.X, -2, 2), (np.clip(data.y, -3, 3) - center) / scale
    X1 = np.column_stack([X, np.ones(len(X))])
    smoothness = np.array([4.0] * P + [1.0])
    question, total = entry.question, np.zeros(P + 1, dtype=object)
    r = (X1 @ question.iterate - y) * weights
    for person in np.unique(data.ids):
        own = data.ids == person
        v = (r[own, None] * X1[own]).sum(axis=0) / np.sqrt(own.sum()) / np.sqrt(smoothness)
        v *= min(1.0, question.clip / max(np.linalg.norm(v), 1e-300)) * question.limit
        total = total + np.rint(v / question.clip).astype(int)
    return total


def test_sums_are_those_of_a_twin_in_numpy():
    data = visits(np.random.default_rng(1))
    model = DPLinearRegressor(**STATED, **BY_ID, max_iter=6)
    assert len(entries := exact_sums(model, data, data.weights)) == 6
    for entry in entries:
        moved = np.array(entry.exact, dtype=object) - twin(data, data.weights, entry, model)
        assert max(abs(int(one)) for one in moved) <= N_PERSONS  # a unit of rounding each
        assert entry.question.limit > 2**12


CONTAINERS = {
    "columns": np.asfortranarray,
    "single precision": lambda X: X.astype(np.float32),
    "a slice": lambda X: np.repeat(X, 2, axis=0)[::2],
    "CSR": sparse.csr_array,
    "CSC, single precision": lambda X: sparse.csc_array(X.astype(np.float32)),
    "COO, long indices": lambda X: sparse.coo_array(
        (X.ravel(), np.indices(X.shape).reshape(2, -1).astype(np.int64)), shape=X.shape
    ),
}


@table("name", CONTAINERS)
def test_the_same_sums_whatever_the_container(name):
    data = visits(np.random.default_rng(1))
    X = np.hstack([data.X, *(np.roll(data.X, k, axis=1) * data.X > 1 for k in range(5))])
    X = thinned(X).astype(np.float32).astype(float)
    model = DPLinearRegressor(**STATED, **BY_ID, feature_scale=1.0, max_iter=6)
    first, second = (
        exact_sums(model, replace(data, X=made), data.weights) for made in (X, CONTAINERS[name](X))
    )
    assert len(first) == len(second) == 6
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.exact, other.exact)


@table("of", ["a target", "two targets", "three classes", "a sparse matrix"])
def test_of_one_record_each_it_is_the_fit_of_records(of):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (300, P))
    y = X @ [0.5, -0.3, 0.1]
    same = {"delta": DELTA, "random_state": ReproducibleNoise(1), "solver": SGD(sampling_rate=1.0)}
    same |= {"feature_bounds": (-1, 1), "feature_scale": 0.6, "max_iter": 30, "clip": 0.5}
    make = DPLinearRegressor
    if of == "three classes":
        make, y, same["classes"] = DPLinearClassifier, np.digitize(y, [-0.2, 0.2]), [0, 1, 2]
    else:
        same["target_bounds"] = (-1, 1)
    y = np.column_stack([y, X[:, 0]]) if of == "two targets" else y
    X = sparse.csr_array(X) if of == "a sparse matrix" else X
    persons = make(neighboring=Persons(), **same).fit(X, y, groups=np.arange(300))
    records = make(**same).fit(X, y)
    assert persons.n_iter_ == records.n_iter_
    assert persons.noise_multiplier_ == records.noise_multiplier_
    np.testing.assert_allclose(persons.coef_, records.coef_, atol=1e-4)


def test_records_are_read_where_they_lie():
    rng = np.random.default_rng(0)
    X, ids = rng.uniform(-1, 1, (20_000, 50)), rng.integers(0, 2000, 20_000)
    model = DPLinearRegressor(feature_bounds=(-1, 1), target_bounds=(-1, 1), **BY_ID, max_iter=2)
    tracemalloc.start()
    try:
        model.fit(X, X[:, 0], groups=ids)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 0.6 * X.nbytes  # 4.5 MB


def test_neither_the_order_of_persons_nor_the_kind_of_ids_shows():
    data = visits(np.random.default_rng(4))
    model = DPLinearRegressor(**STATED, **BY_ID, random_state=ReproducibleNoise(5))
    coef = clone(model).fit(data.X, data.y, groups=data.ids).coef_
    by_person = np.argsort((data.ids * 7) % N_PERSONS, kind="stable")
    words = np.char.add("id ", data.ids.astype(str))
    kinds = [words, words.astype(object), data.ids.astype(object), data.ids.astype(np.uint8)]
    for ids in (data.ids, *kinds, pd.Series(words), list(map(int, data.ids))):
        ids = np.asarray(ids) if not isinstance(ids, (list, pd.Series)) else ids
        rows = by_person if isinstance(ids, np.ndarray) else np.arange(len(data.y))
        ids = ids[rows] if isinstance(ids, np.ndarray) else ids
        found = clone(model).fit(data.X[rows], data.y[rows], groups=ids).coef_
        np.testing.assert_array_equal(found, coef)


def test_a_plain_pipeline_hands_ids_on():
    data = visits(np.random.default_rng(8))
    model = DPRidgeSkGD(**STATED, **BY_ID, random_state=ReproducibleNoise(5))
    behind = make_pipeline(BoundsScaler((-2, 2)), model)
    behind.fit(data.X, data.y, dpridgeskgd__groups=data.ids)
    alone = clone(model).fit(data.X / 2, data.y, groups=data.ids)
    np.testing.assert_array_equal(behind[-1].coef_, alone.coef_)


OF_PARTS = {
    "regression": DPLinearRegressor(**STATED),
    "Newton": DPLinearRegressor(**STATED, solver=Newton()),
    "nothing stated": DPLinearRegressor(),
    "labels": DPLinearClassifier(solver=Newton()),
    "three labels": DPLinearClassifier(feature_bounds=(-2, 2)),
    "two targets": DPLinearRegressor(),
}


@table("name", OF_PARTS)
def test_the_bits_of_one_place_however_persons_are_divided(name):
    data, seeded = visits(np.random.default_rng(9), 90), {"random_state": ReproducibleNoise(5)}
    targets = {
        "labels": np.where(data.y > 0, "yes", "no"),
        "three labels": np.digitize(data.y, [-1, 1]),
        "two targets": np.column_stack([data.y, data.X[:, 0]]),
    }
    y, model = targets.get(name, data.y), OF_PARTS[name]
    model = clone(model).set_params(**BY_ID, **seeded, max_iter=3)
    for ids in (data.ids, np.array([f"id {one}" for one in data.ids], dtype=object)):
        for X in (data.X, sparse.csr_array(thinned(data.X))):
            one_place = clone(model).fit(X, y, data.weights, ids)
            for where in (data.ids % 3, data.ids % 2, 0 * data.ids):
                parted = fit_partitions(clone(model), run_on(where, X, y, data.weights, ids))
                np.testing.assert_array_equal(parted.coef_, one_place.coef_)
                assert parted.privacy_event_ == one_place.privacy_event_


def test_of_a_person_in_several_partitions_the_first_one_counts():
    data, seeded = visits(np.random.default_rng(9), 90), {"random_state": ReproducibleNoise(5)}
    where = np.random.default_rng(1).integers(0, 3, len(data.y))
    first = np.array([where[data.ids == one].min() for one in range(90)])
    rows = where == first[data.ids]
    assert rows.mean() < 0.8
    arrays = data.X, data.y, data.weights, data.ids
    for solver in ("auto", Newton()):
        model = DPLinearRegressor(**STATED, **BY_ID, **seeded, solver=solver)
        one_place = clone(model).fit(*(array[rows] for array in arrays))
        parted = fit_partitions(clone(model), run_on(where, *arrays))
        np.testing.assert_array_equal(parted.coef_, one_place.coef_)


# ---- mutants, and an audit -----------------------------------------------------------------------


def test_a_mutant_that_clips_records_is_caught(one_pair, monkeypatch):
    """As if each record were a person: the limit is of one record, a person has many."""
    honest = PersonPlace.stated

    def by_record(self, *args, **options):
        X, y, weights, order, _, *others = self._arrays
        self._arrays = X, y, weights, order, np.arange(len(y) + 1), *others
        return honest(self, *args, **options)

    monkeypatch.setattr(PersonPlace, "stated", by_record)
    assert audited() == "contradiction"
    for name in ("regression", "sparse"):
        with pytest.raises(LeakError, match="times its sensitivity"):
            all(replayed(name, seed) for seed in range(6))


def test_a_mutant_with_half_the_noise_is_caught_and_the_honest_sums_are_not(one_pair, monkeypatch):
    """To an audit contributions twice as long are half the noise."""
    honest = PersonPlace.stated

    def twice_as_long(self, *args, **options):
        X, y, weights, order, starts, *others = self._arrays
        again = np.concatenate([order, order])
        everybody = np.concatenate([starts, starts[1:] + starts[-1]])
        self._arrays = X, y, weights, again, everybody, *others
        return honest(self, *args, **options)

    assert audited() == "passed"
    monkeypatch.setattr(PersonPlace, "stated", twice_as_long)
    assert audited() == "contradiction"


def test_a_mutant_that_counts_a_person_in_each_partition_is_caught(monkeypatch):
    def everywhere(self, facts):
        return dict(zip(self._numbers, [one.n_samples for one in facts], strict=True)), {}

    monkeypatch.setattr(PartitionedRecords, "_at_home", everywhere)
    with pytest.raises(LeakError):
        all(replayed("parted", seed) for seed in range(6))


def audited():
    """The verdict of an audit of gradients, on made-up persons of one record or of nine."""
    model = DPLinearRegressor(
        epsilon=2.0, **STATED, **BY_ID, feature_scale=1.0, solver=SGD(1.0), max_iter=2
    )
    return audit(model, n_samples=200, n_features=2, n_runs=250, confidence=1 - 1e-5).verdict


def test_a_mutant_that_divides_by_records_is_caught(monkeypatch):
    honest = _records.RecordsByPerson.of_persons

    def by_record(self, groups):
        found = honest(self, groups)
        found.shape = (len(found._y), found.shape[1])
        found._starts = np.append(found._starts, np.full(found.shape[0] - len(found._starts) + 1,
                                                         found._starts[-1]))  # fmt: skip
        return found

    monkeypatch.setattr(_records.RecordsByPerson, "of_persons", by_record)
    with pytest.raises(LeakError):
        all(replayed("regression", seed) for seed in range(6))


class TooLong(PersonSums):
    """As if images were a quarter as long."""

    def measure(self, transform, largest, smallest, narrow=None):
        super().measure(transform, largest, 4 * smallest)


class Uncut(PersonSums):
    """As if no number of records were too large."""

    def times(self, most, units):
        return super().times(1e6, units * 1e6 / most)


@table("mutant", [TooLong, Uncut])
def test_a_mutant_of_newton_steps_is_caught(mutant, monkeypatch):
    monkeypatch.setattr(_person_place, "PersonSums", mutant)
    with pytest.raises(LeakError, match="times its sensitivity"):
        all(replayed("Newton, few", seed) for seed in range(12))


# ---- accuracy, the ledger -----------------------------------------------------------------------


def test_ids_lose_less_than_a_bound_on_records_does():
    errors = {"ids": 0.0, "bound": 0.0}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(1000), 10)
        X = rng.normal(size=(len(ids), 10))
        coef = rng.normal(size=10) / np.sqrt(10)
        y = X @ coef + rng.normal(size=len(ids))
        stated = {"feature_bounds": (-4, 4), "feature_scale": 1.0, "target_bounds": (-6, 6)}
        stated |= {"delta": 1e-6, "fit_intercept": False}
        for name, unit, given in (("ids", Persons(), {"groups": ids}), ("bound", Persons(10), {})):
            model = DPLinearRegressor(neighboring=unit, **stated).fit(X, y, **given)
            errors[name] += np.sum((model.coef_ - coef) ** 2) / 3
    assert errors["ids"] < 0.1**2
    assert errors["ids"] < 0.25 * errors["bound"]


def test_a_ledger_of_persons_is_one_of_ids(tmp_path):
    path = tmp_path / "persons.ledger"
    ledger = PrivacyAccountant(2.0, 1e-4, path=path, neighboring=Persons())
    data = visits(np.random.default_rng(0))
    model = DPLinearRegressor(epsilon=2.0, **STATED, **BY_ID, accountant=ledger)
    model.set_params(delta=1e-4).fit(data.X, data.y, groups=data.ids)
    (entry,) = ledger.entries()
    assert entry.n_samples == N_PERSONS  # never the number of records
    assert model.privacy_event_.unit == "person" and "in any number" in entry.event
    assert model.privacy_event_ == model.planned_event(N_PERSONS, P)
    assert epsilon_of(model.privacy_event_, 1e-4) == pytest.approx(2.0, rel=1e-6)
    again = PrivacyAccountant.open(path)
    assert again.max_contributions is None and "Persons(None, 'replace_one')" in repr(again)
    for other in ("replace_one", Persons(3)):
        rows = DPRidgeSkGD(**STATED, delta=DELTA, neighboring=other, accountant=again)
        with pytest.raises(ValueError, match=r"neighboring=Persons\(None"):
            rows.fit(data.X, data.y)


def test_reports_say_that_persons_are_told_by_their_ids():
    model = DPLinearRegressor(**STATED, **BY_ID).fit(DATA.X, DATA.y, groups=DATA.ids)
    for subject in (model, PrivacyAccountant(1.0, 1e-4, neighboring=Persons())):
        text = PrivacyReport(subject).to_markdown()
        assert "all rows of one person, in any number" in text and "under two ids" in text
        assert "rows of one person, in any number" in PrivacyReport(subject).to_registry_yaml()


def test_delta_is_of_persons_and_so_are_warnings():
    data = visits(np.random.default_rng(0))
    model = DPLinearRegressor(**STATED, neighboring=Persons(), max_iter=2)
    model.fit(data.X, data.y, groups=data.ids)
    assert model.privacy_spent_.delta == 1 / N_PERSONS**2


# ---- what is refused, before a charge -----------------------------------------------------------


DATA = visits(np.random.default_rng(0))
N_RECORDS = len(DATA.y)
ledger_of_nothing = functools.cache(lambda: PrivacyAccountant(1.0, 1e-4, neighboring=Persons()))
PUBLIC = DPRidgeSkGD(**STATED, epsilon=np.inf).fit(DATA.X, DATA.y)
TAKE_IDS = {
    "model": lambda a, ids: DPLinearRegressor(**STATED, **BY_ID, accountant=a).fit(
        DATA.X, DATA.y, groups=ids
    ),
    "scaler": lambda a, ids: DPStandardScaler(**BY_ID, accountant=a).fit(DATA.X, groups=ids),
    "selector": lambda a, ids: DPSelectKBest(k=2, **STATED, **BY_ID, accountant=a).fit(
        DATA.X, DATA.y, groups=ids
    ),
    "encoder": lambda a, ids: DPTargetEncoder(
        target_bounds=(-3, 3), cv=2, **BY_ID, accountant=a
    ).fit_transform(DATA.X.round(), DATA.y, groups=ids),
    "columns": lambda a, ids: make_private_column_transformer(
        (DPStandardScaler(), [0]), accountant=a, **BY_ID
    ).fit(DATA.X, groups=ids),
    "pipeline": lambda a, ids: make_private_pipeline(
        DPStandardScaler(), ridge(None), accountant=a, **BY_ID
    ).fit(DATA.X, DATA.y, groups=ids),
    "search": lambda a, ids: PrivateSearchCV(
        DPRidgeSkGD(**STATED, neighboring=Persons()), {"max_iter": [2, 3]}, epsilon=1.0,
        delta=DELTA, accountant=a,
    ).fit(DATA.X, DATA.y, groups=ids),
    "scorer": lambda a, ids: make_private_scorer(
        "r2", 1.0, a, delta=DELTA, neighboring=Persons(), target_bounds=(-3, 3)
    )(PUBLIC, DATA.X, DATA.y, groups=ids),
    "at most k": lambda a, ids: DPLinearRegressor(
        **STATED, neighboring=Persons(2), delta=DELTA
    ).fit(DATA.X, DATA.y, groups=ids),
}  # fmt: skip


@table(
    "ids, words",
    [
        (DATA.ids[:-1], "shape"),
        (DATA.ids[:, None], "shape"),
        (5, "shape"),
        (DATA.ids.astype(float), "integers or strings"),
        (np.where(DATA.ids == 3, np.nan, DATA.ids), "missing"),
        (pd.array([None, *map(int, DATA.ids[1:])], dtype="Int64"), "missing"),
        (pd.Series([None, *map(str, DATA.ids[1:])], dtype="string"), "missing"),
        ([None, *map(int, DATA.ids[1:])], "one kind"),
        ([None, *map(str, DATA.ids[1:])], "one kind"),
        (["a", *map(int, DATA.ids[1:])], "one kind"),
        ([True, *map(int, DATA.ids[1:])], "one kind"),
        ((1, *map(str, DATA.ids[1:])), "one kind"),
        (np.array(["a", *map(int, DATA.ids[1:])], dtype=object), "one kind"),
        (np.array([True, *map(int, DATA.ids[1:])], dtype=object), "one kind"),
        ([[1]] * N_RECORDS, "shape"),
        (np.array([{1}] * N_RECORDS, dtype=object), "one kind"),
        (DATA.ids.astype("datetime64[D]"), "integers or strings"),
        (DATA.ids > 3, "integers or strings"),
    ],
)
@table("name", TAKE_IDS)
def test_ids_of_another_kind_are_refused_by_name(name, ids, words):
    ledger = ledger_of_nothing()
    with pytest.raises((TypeError, ValueError), match=f"groups must .*{words}"):
        TAKE_IDS[name](ledger, ids)
    assert ledger.entries() == []


REFUSED = {
    "blocks": ({"solver": SkGD()}, r"got 'skgd' .by rows: neighboring=Persons\(k\) with groups"),
    "coordinates": ({"solver": "cd", "penalty": "l1", "alpha": 0.1}, r"Persons\(k\) with groups"),
    "greedy steps": ({"solver": "gcd", "penalty": "l1", "alpha": 0.1}, "'auto', got 'gcd'"),
    "batches": ({"solver": SGD(sampling_rate=0.1)}, "SGD"),
    "projections": ({"solver": CompGD()}, "SGD"),
    "intervals": ({"inference": True}, "takes records to be independent.*Leave inference=False"),
    "scales that are released": ({"feature_scale": "private"}, "private"),
    "no noise": ({"epsilon": np.inf, "accountant": None}, "protects nobody"),
    "strengths": ({"penalty": "l2", "alpha": [0.1, 1.0]}, "strength"),
    "records": ({"neighboring": "replace_one"}, "does not protect persons"),
}


@table("name", REFUSED)
def test_what_can_not_be_done_by_id_is_refused_in_words(name):
    params, words = REFUSED[name]
    ledger = PrivacyAccountant(1.0, 1e-4, neighboring=Persons())
    model = DPLinearRegressor(**STATED, **BY_ID, accountant=ledger).set_params(**params)
    with pytest.raises(ValueError, match=words):
        model.fit(DATA.X, DATA.y, groups=DATA.ids)
    assert ledger.entries() == []


def test_other_records_are_refused():
    model = DPLinearRegressor(**STATED, **BY_ID)
    with pytest.raises(ValueError, match="groups=ids"):
        model.fit(DATA.X, DATA.y)
    whole = 0 * DATA.ids, DATA.X, DATA.y, DATA.weights
    with pytest.raises(ValueError, match="partition 0: .*groups=ids"):
        fit_partitions(model, lambda task: [task(0, DATA.X, DATA.y)])
    with pytest.raises(ValueError, match="partition 0: .*does not protect persons"):
        fit_partitions(DPLinearRegressor(), run_on(*whole, DATA.ids))
    with pytest.raises(ValueError, match="partition 0: groups"):
        fit_partitions(DPLinearRegressor(neighboring=Persons(3)), run_on(*whole, DATA.ids))
    with pytest.raises(TypeError, match="partition 0: groups must hold integers"):
        fit_partitions(model, run_on(*whole, DATA.ids.astype(float)))
    with pytest.raises(ValueError, match="protects nobody"):
        fit_partitions(clone(model).set_params(epsilon=np.inf), run_on(*whole, DATA.ids))
    kinds = [DATA.ids, DATA.ids.astype(str)]
    with pytest.raises(ValueError, match="partition 1 has kind_of_ids 'strings'"):
        fit_partitions(model, lambda t: [t(k, DATA.X, DATA.y, None, kinds[k]) for k in (0, 1)])
    with pytest.raises(ValueError, match="strength"):
        DPLassoCV(**STATED, **BY_ID).fit(DATA.X, DATA.y, groups=DATA.ids)


@table("name", ["scaler", "scorer", "pipeline", "columns", "search"])
def test_whoever_is_told_no_ids_refuses_persons_without_a_number(name):
    with pytest.raises(ValueError, match=r"Persons\(max_contributions\)"):
        TAKE_IDS[name](None, None)
