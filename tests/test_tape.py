"""The tape: one record decides nothing in whole fits but what noise covers.

The table is ``tape_cases.CASES``. Each row is fitted on a data set and replayed on a neighbour,
with the answers that were released and with arbitrary ones. ``MUTANTS`` are faults that it finds.
A tape says nothing of amplification by sampling, of the law of the noise and of when records are
read: privacy/proofs/README.md names the tests of these mutants.
"""

import functools
import logging
import os
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from tables import table
from tape_cases import ADD_REMOVE, CASES, Case, Searched, check_paid, estimator, planned

from dpcd_sklearn import DPLinearRegressor
from dpcd_sklearn.linear_model import _classification
from dpcd_sklearn.linear_model._private_linear_model import PrivateLinearModel
from dpcd_sklearn.model_selection import _runs
from dpcd_sklearn.preprocessing import (
    DPPCA,
    DPOneHotEncoder,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
)
from dpcd_sklearn.privacy.accounting import GaussianEvent, TuningEvent
from dpcd_sklearn.privacy.mechanisms import _quantiles, _tables
from dpcd_sklearn.privacy.mechanisms._curvature import MomentSums
from dpcd_sklearn.privacy.mechanisms._quantiles import CellCounts
from dpcd_sklearn.privacy.mechanisms._questions import Source
from dpcd_sklearn.privacy.mechanisms._scores import ScoreSums
from dpcd_sklearn.privacy.sums import LocalPlace, _place
from dpcd_sklearn.testing import LeakError, Recording, replay, unpaid
from dpcd_sklearn.utils import _cells

SEEDS = range(2)
# The slow tests look at so many pairs in all.
N_PAIRS = int(os.environ.get("DPCD_TAPE_PAIRS", "100000"))
MORE_SEEDS = range(100, 100 + -(-N_PAIRS // len(CASES)))


def check(case, seed, arbitrary):
    """Replay a case, and reconcile its questions with what was charged."""
    data, neighbour, removed = case.pair(seed)
    # what a ledger holds follows from the plan, whatever is answered
    fit = functools.partial(case.fit, ledger=seed % 10 == 0 and not arbitrary)
    replayed = replay(fit, data, neighbour, seed=seed, arbitrary=arbitrary, removed=removed)
    assert replayed.returned is not None, "a case that is refused looks at nothing"
    model, used, accountant = replayed.returned
    for found in (used, getattr(model, "coef_", None)):  # whatever was answered
        if getattr(found, "dtype", np.dtype(object)).kind == "f":
            assert np.isfinite(getattr(found, "data", found)).all()
    fitted = getattr(model, "search", model)
    if hasattr(model, "planned_event"):
        assert model.privacy_event_ == planned(model, data)
    if accountant is not None:
        events = {entry.event for entry in accountant.entries()}
        assert events == {str(getattr(fitted, "privacy_event_", *events))}
    if isinstance(model, Searched) and model.search.n_splits_:
        check_runs(replayed, model.search)
        return replayed  # a search without runs is one fit
    if hasattr(fitted, "privacy_event_"):
        check_paid(replayed, fitted.privacy_event_)
    return replayed


def check_runs(replayed, search):
    """The questions of a search cost no more than its runs may: a fit for each score, a refit."""
    first = search.privacy_event_.releases[0]
    (run,) = first.base.releases if isinstance(first, TuningEvent) else [first]
    if not isinstance(run, GaussianEvent):  # a cover of other releases
        return
    n_scores = sum(isinstance(entry.question, ScoreSums) for entry in replayed.entries)
    allowed = (2 * n_scores + int(search.refit)) / run.noise_multiplier**2
    asked = sum(k[0] == "GaussianEvent" and n / k[1] ** 2 for k, n in replayed.events().items())
    assert {k[0] for k in replayed.events()} <= {"GaussianEvent"}
    assert asked <= allowed * (1 + 1e-9)


@pytest.mark.parametrize(("arbitrary", "seed"), [(False, 0), (True, 1)])
@pytest.mark.parametrize("quarter", range(4))  # of the table, for as many processes
def test_one_record_decides_nothing(quarter, arbitrary, seed):
    @table("name", list(CASES)[quarter::4])
    def each(name):
        check(CASES[name], seed, arbitrary)

    each()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_one_record_decides_nothing_on_many_data_sets(name):
    for seed in MORE_SEEDS:
        check(CASES[name], seed, arbitrary=seed % 2 == 0)


@table("name", ["sgd", "svrg", "sgd, add_remove, two", "compgd, sampled"])
def test_secret_coins_show_in_nothing_but_answers(name):
    for seed in SEEDS:
        data, _, _ = CASES[name].pair(seed)
        again = replay(CASES[name].fit, data, data, seed=seed, other_coins=True)
        assert again.coins


def other_runs(name, seed):
    """Search twice on the same records, with other coins; compare all but the winners."""

    def fit(data, tape):
        model, _, accountant = CASES[name].fit(data, tape, ledger=True)
        return model.shown_besides_the_winner(), accountant

    data, _, _ = CASES[name].pair(seed)
    replay(fit, data, data, seed=seed, other_coins=True)


# A Poisson law may draw no run, which is released as "no winner".
ANY_RUNS = [name for name in CASES if name.startswith("search") and name != "search, no run"]


@table("name", ANY_RUNS)
def test_other_runs_of_a_search_show_in_nothing_but_its_winner(name):
    other_runs(name, 0)


# ---- mutants: faults that a house of this kind has had, or could have ----------------------------


def largest(X):
    """The largest number of the records, which nobody may look at."""
    return float(np.abs(X).max())


def is_large(X):
    return largest(X) > 1e6


def bounds_of_records(answer, self, place):
    if self.edges is None:
        return answer(self, place)
    lo, hi = self.edges
    hi += largest(place._arrays[0])
    return answer(type(self)(self.of, (lo, hi), columns=self.columns), place)


def counted_twice(answer, self, place):
    return 2 * answer(self, place)


def counted_three_times(count, *records):
    return 3 * count(*records)


def before(look):
    """A fault of what is done with the records before a fit."""

    def fault(fit, self, X, *rest, **options):
        look(self, X)
        return fit(self, X, *rest, **options)

    return fault


def after(look):
    """A fault of what is done with the records after a fit."""

    def fault(fit, self, X, *rest, **options):
        fit(self, X, *rest, **options)
        look(self, X)
        return self

    return fault


def complain(model, X):
    if is_large(X):
        raise ValueError("a large number")


def one_question_more(fit, self, X, y, *weights):
    if is_large(X):
        clone(self).fit(X, y, *weights)
    return fit(self, X, y, *weights)


def a_mean_that_nobody_counts(transform, self, X):
    return transform(self, X - np.clip(X, -1e6, 1e6).mean(axis=0))


def labels_by_all_labels(numbers_of, labels, classes, otherwise=-1):
    if (numbers_of(labels, classes) >= 0).all():
        return numbers_of(labels, classes, otherwise)
    return np.arange(len(labels)) % len(classes)


def a_run_without_score(run, model, params, scorer, X, *rest):
    return run(None if is_large(X) else model, params, scorer, X, *rest)


def runs_that_are_counted(best_of, outcomes):
    outcomes = list(outcomes)
    print(len(outcomes))
    return best_of(outcomes)


def a_choice_by_the_records(fit, self, X, y, *weights):
    fit(self, X, y, *weights)
    path = self.strength_path_
    residuals = X @ path["coef"].T + path["intercept"] - np.reshape(y, (-1, 1))
    self.alpha_ = path["alpha"][np.argmin(np.abs(residuals).max(axis=0))]
    return self


def a_choice_by_the_number_of_records(fit, self, X, y, *weights):
    if len(y) % 2:
        self.set_params(penalty="l2", alpha=0.1)
    return fit(self, X, y, *weights)


def another_plan(planned_event, self, n_samples, *shape, **options):
    return planned_event(self, 2 * n_samples, *shape, **options)


def a_rare_category(model, X):
    model.categories_[0] = np.array(sorted(map(str, {*X[:, 0]})), dtype=object)


def a_fill_of_records(transform, self, X):
    return transform(self, np.where(np.isnan(X), np.nanmax(X, axis=0), X))


FIT = (PrivateLinearModel, "fit")
LARGE = "auto, large epsilon"
# name: the fit that has the fault, whose attribute is another one, and the fault
MUTANTS = {
    "bounds of the records": (LARGE, CellCounts, "answer", bounds_of_records),
    "a vote counted twice": (LARGE, CellCounts, "answer", counted_twice),
    "moments counted twice": ("inference", MomentSums, "answer", counted_twice),
    "records outside counted three times": (
        "inference, found", _place, "count_outside", counted_three_times
    ),
    "scores counted twice": ("score, accuracy", ScoreSums, "answer", counted_twice),
    "a question more for large numbers": (LARGE, *FIT, one_question_more),
    "a mean that nobody counts": (
        "pipeline", DPStandardScaler, "transform", a_mean_that_nobody_counts
    ),
    "labels read by all labels": ("auto, two", _classification, "numbers_of", labels_by_all_labels),
    "a choice by the records": ("strengths, l1", *FIT, a_choice_by_the_records),
    "a choice by their number": ("strengths, kinds", *FIT, a_choice_by_the_number_of_records),
    "a run that is left out": ("search", _runs, "run", a_run_without_score),
    "a plan of other numbers": ("auto", PrivateLinearModel, "planned_event", another_plan),
    "a threshold that is a millionth too low": (
        "one hot", _tables, "ndtri", lambda ndtri, share: ndtri(share) * (1 - 1e-6)
    ),
    "a rare category": ("one hot", DPOneHotEncoder, "fit", after(a_rare_category)),
    "a fill of the records": ("pipeline, gaps", DPSimpleImputer, "transform", a_fill_of_records),
    "a layout that follows the records": ("pca, found", DPPCA, "fit", after(lambda self, X: setattr(
        self, "components_", np.asarray(self.components_, order="F" if is_large(X) else "K")
    ))),
    "a center of the records": ("robust", DPRobustScaler, "fit", after(lambda self, X: setattr(
        self, "center_", np.clip(X, -1e6, 1e6).mean(axis=0)
    ))),
} | {
    name: (LARGE, *FIT, fault)
    for name, fault in {
        "an error before the charge": before(complain),
        "an error after the charge": after(complain),
        "a warning for large numbers": before(
            lambda self, X: is_large(X) and warnings.warn("a large number", stacklevel=1)
        ),
        "a printed value": before(lambda self, X: print(largest(X))),
        "a word to stderr": before(
            lambda self, X: print("large" if is_large(X) else "small", file=sys.stderr)
        ),
        "a logged value": before(
            lambda self, X: logging.getLogger("dpcd_sklearn").debug("largest %g", largest(X))
        ),
        "a filter of warnings": before(
            lambda self, X: is_large(X) and warnings.simplefilter("ignore", EncodingWarning)
        ),
        "fewer steps for large numbers": before(
            lambda self, X: is_large(X) and self.set_params(max_iter=1)
        ),
        "public draws that follow the records": before(
            lambda self, X: is_large(X) and np.random.random()  # noqa: NPY002
        ),
        "floating point errors of the process": before(
            lambda self, X: np.seterr(over="ignore" if is_large(X) else "warn")
        ),
        "a module that remembers": after(lambda self, X: vars(_cells).update(LARGEST=largest(X))),
        "records of the caller that change": after(lambda self, X: np.clip(X, -1e6, 1e6, out=X)),
        "an attribute that keeps a record": after(
            lambda self, X: setattr(self, "_largest", largest(X))
        ),
        "an attribute whose name follows a record": after(
            lambda self, X: setattr(self, "_large" if is_large(X) else "_small", None)
        ),
        "a dtype that follows the records": after(
            lambda self, X: setattr(self, "coef_", self.coef_.astype("f4" if is_large(X) else "f8"))
        ),
        "a number of updates that follows the records": after(
            lambda self, X: setattr(self, "n_iter_", self.n_iter_ + is_large(X))
        ),
        "a parameter that follows the records": after(
            lambda self, X: self.set_params(verbose=bool(is_large(X)))
        ),
    }.items()
}  # fmt: skip


def found(name):
    """Whether the tape finds a fault in fits of records that may have extreme neighbours."""
    for seed in range(4):  # each mutant is found by the third
        try:
            check(CASES[name], seed, arbitrary=False)
        except (LeakError, AssertionError):
            return True
    return False


def put_in(monkeypatch, owner, attribute, fault):
    honest = getattr(owner, attribute)

    @functools.wraps(honest)
    def mutant(*args, **options):
        return fault(honest, *args, **options)

    monkeypatch.setattr(owner, attribute, mutant)


@table("case", sorted({mutant[0] for mutant in MUTANTS.values()}))
def test_no_fault_is_found_where_there_is_none(case):
    assert not found(case)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name, monkeypatch):
    case, *fault = MUTANTS[name]
    put_in(monkeypatch, *fault)
    assert found(case)


SAMPLES = {
    "coins": None,
    "every other row": lambda of_rows, self, rows: of_rows(self, np.arange(self.n_samples)[::2]),
    "rows by all records": lambda of_rows, self, rows: of_rows(
        self, np.arange(self.n_samples)[int(self._arrays[0].max()) % 2 :: 2]
    ),
}


@table("fault", list(SAMPLES))
def test_rows_that_are_counted_are_drawn_by_coins_alone(fault, monkeypatch):
    for least in "_LEAST_SAMPLE", "_AMPLE_EVIDENCE", "_EVIDENCE_BEYOND":
        monkeypatch.setattr(_quantiles, least, 2.0)
    if SAMPLES[fault] is not None:
        put_in(monkeypatch, LocalPlace, "of_rows", SAMPLES[fault])
    removing = estimator(DPLinearRegressor, epsilon=60.0, max_iter=7, **ADD_REMOVE)
    monkeypatch.setitem(CASES, "sampled", Case(removing, CASES[LARGE].records))
    assert (found(LARGE) or found("sampled")) == (SAMPLES[fault] is not None)
    monkeypatch.undo()
    assert not found(LARGE)


def test_a_search_that_counts_its_runs_is_caught(monkeypatch):
    put_in(monkeypatch, _runs, "best_of", runs_that_are_counted)

    def searches():
        for seed in range(8):
            other_runs("search", seed)

    with pytest.raises(LeakError, match="printed"):
        searches()


def test_a_question_more_than_was_charged_is_found():
    recording = Recording()
    model = DPLinearRegressor(random_state=recording)
    data = CASES["auto"].pair(0)[0]
    model.fit(data.X, data.y)
    assert not unpaid(recording, model.privacy_event_)
    recording.entries.append(recording.entries[-1])
    assert unpaid(recording, model.privacy_event_)


def test_every_question_goes_through_the_seam(monkeypatch):
    """No oracle has a source of noise of its own beside the one that the tape replaces."""
    asked = []
    release = Source.release
    monkeypatch.setattr(
        Source, "release", lambda self, *args: asked.append(args[1]) or release(self, *args)
    )
    data = CASES["auto"].pair(0)[0]
    DPLinearRegressor(epsilon=60.0, random_state=0).fit(data.X, data.y)
    assert any(isinstance(question, CellCounts) for question in asked)
