"""Fits over partitions that any engine holds: it only has to run one function on each of them."""

import secrets
from typing import NamedTuple

from ._partition import Partition, public_bits
from ._partitioned_records import Holders, PartitionedRecords, each_once


class _Found(NamedTuple):
    """The answer to a task for one partition."""

    ticket: str  # the task's own: an answer to another one has another
    number: int
    facts: object  # or the error of validation
    of_task: object


class _Look(NamedTuple):
    """Validates a partition; what travels is public."""

    ticket: str
    reader: object

    def __call__(self, number, X, y, sample_weight=None, groups=None):
        try:
            found = Partition(self.reader, number, X, y, sample_weight, groups).facts
        except (TypeError, ValueError) as error:
            found = error
        return _Found(self.ticket, number, found, public_bits())


class _Answer(NamedTuple):
    """Answers one question from the whole story, and remembers nothing."""

    ticket: str
    reader: object
    place_of: object
    opening: object
    changes: list
    question: tuple

    def __call__(self, number, X, y, sample_weight=None, groups=None):
        partition = Partition(self.reader, number, X, y, sample_weight, groups)
        facts, answer = partition.facts, None
        if facts.n_samples > len(self.place_of.elsewhere.get(number, ())):
            answer = partition.answer(*self[2:])
        found = answer, partition.check_sums()
        return _Found(self.ticket, number, facts._replace(ids=None), found)


class _Forgetful(Holders):
    def __init__(self, run):
        self._run, self._facts, self._check_sums = run, None, {}

    def look(self, reader):
        self._reader = reader
        found = self._found(_Look(secrets.token_hex(16), reader))
        each_once([one.number for one in found], range(len(found)))
        self._facts = [one.facts for one in sorted(found, key=lambda one: one.number)]
        return self._facts, {one.of_task for one in found}

    def ask(self, place_of, dialogue, question, numbers):
        ticket = secrets.token_hex(16)
        task = _Answer(ticket, self._reader, place_of, dialogue.opening, dialogue.changes, question)
        found = self._found(task)
        each_once([one.number for one in found], range(len(self._facts)))
        for one in found:
            self._refuse_others(one)
        return [one.of_task[0] for one in found if one.number in numbers]

    def _found(self, task):
        """The answers that the engine brings back, if they are answers to this task."""
        found = list(self._run(task))
        for one in found:
            if not isinstance(one, _Found):
                raise TypeError(
                    f"run(task) must return the list of what task(...) gave, got "
                    f"{type(one).__name__} in it"
                )
            if one.ticket != task.ticket:
                raise RuntimeError(
                    f"the answer of partition {one.number} is one to another question: each task "
                    "must be called anew, and its answers must never be kept for another"
                )
        return found

    def _refuse_others(self, one):
        """A partition has the records that were looked at, and those of its other answers."""
        differing = self._facts[one.number].differing(one.facts)
        known = self._check_sums.setdefault(one.number, one.of_task[1])
        if differing is None and known != one.of_task[1]:
            differing = "records"
        if differing is not None:
            raise RuntimeError(
                f"partition {one.number} has other {differing} than before; what was charged "
                "stays charged. Each number must stand for the same records in every task"
            )


def fit_partitions(model, run):
    """Fit a model on records in partitions, over an engine of your own.

    Coefficients, event and price are those of ``model.fit`` on all records at once: sums are
    integers. The receipt, the ledger and all noise stay in this process. What `run` carries away
    are public facts and iterates, and of mini-batches who is in one; what it brings back are sums,
    **as secret as the records**.

    Parameters
    ----------
    model : estimator
        One of this package.
    run : callable
        ``run(task)`` calls ``task(number, X, y, sample_weight=None, groups=None)`` for each
        partition, wherever it lies, and returns the list of what it gave, in any order, each
        partition exactly once: a record that counts twice is not covered. Partitions are numbered
        from 0 without gaps, and a number stands for the same records in every task. A task is
        pickled by value; it remembers nothing, so an update of "cd", "gcd", "skgd" makes margins
        anew from all moves so far: "newton", and ``SGD(sampling_rate=1)``, state the iterate and
        don't.

        Under ``Persons()`` each partition has the ids of its records as `groups`. Divide records by
        id: of a person in several partitions only the records in the first one count. No error says
        so, since where a person's records lie is secret. Ids travel back once, for validation.

    Returns
    -------
    model : estimator
        The same, fitted.

    Raises
    ------
    BudgetExceededError, LedgerError
        As of ``fit``; no record was used.
    TypeError, ValueError
        If a partition is invalid: the error names it, and nothing was charged.
    RuntimeError
        If an answer is lost, comes twice, belongs to another task, or is one of other records than
        before: no sum that it is part of is released.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.partitions import fit_partitions
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    >>> parts = [(0, X[:300], X[:300, 0]), (1, X[300:], X[300:, 0])]
    >>> model = DPLinearRegressor(solver="newton", feature_bounds=(-1, 1), target_bounds=(-1, 1))
    >>> fit_partitions(model, lambda task: [task(*part) for part in parts]).coef_.shape
    (3,)
    """
    return model.fit(PartitionedRecords(model, _Forgetful(run)), None)
