"""The tape: one record decides nothing in whole fits but what noise covers.

The table is ``tape_cases.CASES``. Each row is fitted on a data set and replayed on a neighbour,
with the answers that were released and with arbitrary ones. Amplification by sampling and the law
of the noise have tests of their own: a tape says nothing of them.
"""

import functools
import warnings

import numpy as np
import pytest
from tables import table
from tape_cases import CASES, Searched

from dpcd_sklearn import DPLinearRegressor
from dpcd_sklearn.linear_model._private_linear_model import PrivateLinearModel
from dpcd_sklearn.privacy.accounting import GaussianEvent
from dpcd_sklearn.privacy.mechanisms._quantiles import CellCounts
from dpcd_sklearn.privacy.mechanisms._questions import Source
from dpcd_sklearn.privacy.mechanisms._scores import ScoreSums
from dpcd_sklearn.testing import LeakError, Recording, replay, unpaid

SEEDS, MORE_SEEDS = range(2), range(100, 360)


def check(case, seed, arbitrary):
    """Replay a case, and reconcile its questions with what was charged."""
    data, neighbour, removed = case.pair(seed)
    fit = functools.partial(case.fit, ledger=seed % 10 == 0)
    replayed = replay(fit, data, neighbour, seed=seed, arbitrary=arbitrary, removed=removed)
    if replayed.returned is None:  # refused alike, before the charge
        return replayed
    model, _, accountant = replayed.returned
    if accountant is not None:
        events = {entry.event for entry in accountant.entries()}
        assert events == {str(getattr(model, "privacy_event_", *events))}
    if isinstance(model, Searched):
        check_runs(replayed, model.search)
    elif hasattr(model, "privacy_event_"):
        found = unpaid(replayed, model.privacy_event_)
        assert not found, found
    return replayed


def check_runs(replayed, search):
    """The questions of a search cost no more than its runs may: a fit for each score, a refit."""
    (run,) = search.privacy_event_.releases[0].base.releases
    if not isinstance(run, GaussianEvent):  # a cover of other releases
        return
    n_scores = sum(isinstance(entry.question, ScoreSums) for entry in replayed.entries)
    allowed = (2 * n_scores + int(search.refit)) / run.noise_multiplier**2
    asked = sum(k[0] == "GaussianEvent" and n / k[1] ** 2 for k, n in replayed.events().items())
    assert {k[0] for k in replayed.events()} <= {"GaussianEvent"}
    assert asked <= allowed * (1 + 1e-9)


@table("arbitrary", [False, True])
@table("name", CASES)
def test_one_record_decides_nothing(name, arbitrary):
    for seed in SEEDS:
        check(CASES[name], seed, arbitrary)


@pytest.mark.slow
@table("name", CASES)
def test_one_record_decides_nothing_on_many_data_sets(name):
    for seed in MORE_SEEDS:
        check(CASES[name], seed, arbitrary=seed % 2 == 0)


@table("name", ["sgd", "svrg", "sgd, add_remove, two", "compgd, sampled"])
def test_secret_coins_show_in_nothing_but_answers(name):
    for seed in SEEDS:
        data, _, _ = CASES[name].pair(seed)
        again = replay(CASES[name].fit, data, data, seed=seed, other_coins=True)
        assert again.coins


@table("name", [name for name in CASES if name.startswith("search")])
def test_other_runs_of_a_search_show_in_nothing_but_its_winner(name):
    def fit(data, tape):
        model, _, accountant = CASES[name].fit(data, tape, ledger=True)
        return model.shown_besides_the_winner(), accountant

    for seed in range(4):
        data, _, _ = CASES[name].pair(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            replay(fit, data, data, seed=seed, other_coins=True)


# ---- mutants: faults that a house of this kind has had, or could have ----------------------------


def largest(place):
    """The largest number of the records, which nobody may look at."""
    return float(np.abs(place._arrays[0]).max())


def bounds_of_records(answer, self, place):
    if self.edges is None:
        return answer(self, place)
    lo, hi = self.edges
    return answer(type(self)(self.of, (lo, hi + largest(place)), columns=self.columns), place)


def a_vote_twice(answer, self, place):
    return 2 * answer(self, place)


def an_attribute(fit, self, X, y, *weights):
    fit(self, X, y, *weights)
    self._largest = float(np.abs(X).max())
    return self


def a_warning(fit, self, X, y, *weights):
    if np.abs(X).max() > 1e6:
        warnings.warn("a large number", UserWarning, stacklevel=2)
    return fit(self, X, y, *weights)


def a_printed_value(fit, self, X, y, *weights):
    print(np.abs(X).max())
    return fit(self, X, y, *weights)


def another_path(fit, self, X, y, *weights):
    if np.abs(X).max() > 1e6:
        self.set_params(max_iter=1)
    return fit(self, X, y, *weights)


def an_error(fit, self, X, y, *weights):
    fit(self, X, y, *weights)
    if np.abs(X).max() > 1e6:
        raise ValueError("a large number")
    return self


def callers_records_change(fit, self, X, y, *weights):
    fit(self, X, y, *weights)
    np.clip(X, -1e6, 1e6, out=X)
    return self


FIT = (PrivateLinearModel, "fit")
MUTANTS = {
    "bounds of the records": (CellCounts, "answer", bounds_of_records),
    "a vote counted twice": (CellCounts, "answer", a_vote_twice),
    "an attribute that keeps a record": (*FIT, an_attribute),
    "a warning for large numbers": (*FIT, a_warning),
    "a printed value": (*FIT, a_printed_value),
    "fewer steps for large numbers": (*FIT, another_path),
    "an error after the charge": (*FIT, an_error),
    "records of the caller that change": (*FIT, callers_records_change),
}


def found():
    """Whether the tape finds a fault in fits of records that may have extreme neighbours."""
    for seed in range(8):
        try:
            check(CASES["auto, large epsilon"], seed, arbitrary=False)
        except (LeakError, AssertionError):
            return True
    return False


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name, monkeypatch):
    owner, attribute, fault = MUTANTS[name]
    honest = getattr(owner, attribute)

    @functools.wraps(honest)
    def mutant(*args, **options):
        return fault(honest, *args, **options)

    assert not found()
    monkeypatch.setattr(owner, attribute, mutant)
    assert found()


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
