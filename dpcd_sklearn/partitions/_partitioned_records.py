"""The near end: records in partitions, with the face that the fit recipe knows of records.

Validation publishes shapes, dtypes, names of columns and labels, as it does in one place; errors
name the partition. Places are asked after the charge, or without one where nothing is protected.
"""

import copy
import secrets
from abc import ABCMeta, abstractmethod
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..linear_model._records import RecordsOfAFit, refuse_nobody
from ..plan._solver import Solver
from ..privacy.sums._remote_place import RemotePlace
from ._partition import Partition, PlaceOf, public_bits, rows_of, with_rows


class Holders(metaclass=ABCMeta):
    """Holders of partitions, who carry questions to them."""

    @abstractmethod
    def look(self, reader):
        """Have each partition validated.

        Parameters
        ----------
        reader : PrivateLinearModel

        Returns
        -------
        found : list of PartitionFacts or errors, one a partition
        bits : set of str
            `public_bits` of all who will answer.
        """

    @abstractmethod
    def ask(self, place_of, dialogue, question, numbers):
        """Answers to a question, each of one or more partitions.

        Parameters
        ----------
        place_of : PlaceOf
        dialogue : Dialogue
        question : tuple
        numbers : list of int
            Numbers of the partitions that have records.
        """


def each_once(answered, expected):
    """Refuse answers that are not of each partition exactly once: a sum would be another one.

    Raises
    ------
    RuntimeError
        It names the partitions.
    """
    counts = Counter(answered)
    twice = sorted(number for number, count in counts.items() if count > 1)
    lost = sorted(set(expected) - set(counts))
    unknown = sorted(set(counts) - set(expected))
    for numbers, what in ((twice, "more than once"), (lost, "not at all"), (unknown, "unasked")):
        if numbers:
            shown = ", ".join(map(str, numbers[:10]))
            raise RuntimeError(
                f"partitions answered {what}: {shown}. Each must answer exactly once, with a "
                "number from 0 on without gaps; what was charged stays charged"
            )


class PartitionedRecords(RecordsOfAFit):
    """Records in partitions.

    Parameters
    ----------
    model : PrivateLinearModel
        Learns the labels, as a fit in one place does.
    holders : Holders

    Raises
    ------
    TypeError, ValueError
        If a partition is invalid or unlike the others.
    RuntimeError
        If somebody computes other bits than this process does.
    """

    def __init__(self, model, holders):
        self._holders, self._by_id = holders, refuse_nobody(model)
        found, bits = holders.look(_reader_of(model))
        for one in found:
            if isinstance(one, Exception):
                raise one
        if bits - {public_bits()}:
            raise RuntimeError(
                "a worker sums a public example to other bits than this process: its results would "
                "not be those of one machine. Install the same dpcd_sklearn on the same kind of "
                "processor everywhere"
            )
        self._numbers = [number for number, one in enumerate(found) if one.n_samples]
        facts = [found[number] for number in self._numbers]
        if not facts:
            raise ValueError("Found array with 0 sample(s): every partition of X is empty")
        self._refuse_strangers(facts)
        if not any(one.weighs for one in facts):
            raise ValueError(
                "sample_weight is zero for every record; at least one must be positive"
            )
        first = facts[0]
        sizes, self._elsewhere = self._at_home(facts)
        self._numbers = [number for number, size in sizes.items() if size]
        self._sizes = [sizes[number] for number in self._numbers]
        self.shape = sum(self._sizes), first.n_features
        self.dtype, self.sparse = np.dtype(first.dtype), first.sparse
        if self.shape[0] > 2**53:
            raise ValueError("more than 2^53 records can't be counted")
        model.n_features_in_ = first.n_features
        if first.columns is not None:
            model.feature_names_in_ = np.array(first.columns, dtype=object)
        elif hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
        _, self.n_outputs = model._encode_labels(np.concatenate([f.labels for f in facts]), None)
        self._classes = getattr(model, "classes_", None)

    def _at_home(self, facts):
        """How many records or persons each partition counts, and ids that another one counts.

        A person in several partitions counts in the first of them. This person's records alone
        decide which that is, so other persons' vectors in the sums stay where they were.
        """
        facts = dict(zip(self._numbers, facts, strict=True))
        home, elsewhere = {}, {}
        for number, one in facts.items():
            others = [id_ for id_ in one.ids or () if home.setdefault(id_, number) != number]
            if others:
                elsewhere[number] = others
        counts = {n: one.n_samples - len(elsewhere.get(n, ())) for n, one in facts.items()}
        return counts, elsewhere

    def _refuse_strangers(self, facts):
        """Partitions must be alike in what a fit in one place has one of."""
        for name in ("n_features", "dtype", "sparse", "columns", "kind_of_ids", "kind_of_y"):
            of_first = getattr(facts[0], name)
            for number, one in zip(self._numbers, facts, strict=True):
                if getattr(one, name) != of_first:
                    raise ValueError(
                        f"partition {number} has {name} {getattr(one, name)!r}, partition "
                        f"{self._numbers[0]} has {of_first!r}: make them alike before the fit"
                    )

    def weighted(self):
        return self._place(PlaceOf("weighted", (), self._classes))

    def unscaled(self, with_target):
        return self._place(PlaceOf("unscaled", (with_target,), self._classes))

    def scaled(self, request):
        request = replace(request, solver=Solver())  # as of the reader
        return _Scaled(self, PlaceOf("scaled", (request,), self._classes))

    def _place(self, place_of):
        holders, numbers, sizes = self._holders, self._numbers, self._sizes
        place_of = place_of._replace(elsewhere=self._elsewhere)

        def ask(dialogue, question, rows=None):  # without self: records end with the fit, at once
            of = place_of if rows is None else place_of._replace(rows=_split(rows, numbers, sizes))
            if (of_batch := rows_of(question)) is not None:
                question = with_rows(question, _split(of_batch, numbers, sizes))
            return holders.ask(of, dialogue, question, numbers)

        n_targets = self.n_outputs if self._classes is None else 1
        shape = self.shape if place_of.slopes is None else (self.shape[0], len(place_of.slopes[3]))
        samples_rows = not (self.sparse or self._by_id)
        return RemotePlace(ask, *shape, n_targets, self._by_id, samples_rows)


def _split(rows, numbers, sizes):
    """The rows of each partition by its number, in ascending order."""
    ends = np.cumsum(sizes)
    cuts = np.split(rows, np.searchsorted(rows, ends[:-1]))
    starts = ends - sizes
    return {n: cut - start for n, cut, start in zip(numbers, cuts, starts, strict=True)}


class _Scaled:
    """Records that lie in partitions, as a plan is given them; see Arrays."""

    def __init__(self, records, place_of):
        self._records, self._place_of = records, place_of

    def place(self, bounds, n_threads):
        return self._records._place(self._place_of._replace(opened_with=(bounds, n_threads)))

    def in_columns(self):
        return _Scaled(self._records, self._place_of._replace(in_columns=True))

    def slopes(self, *public):
        return _Scaled(self._records, self._place_of._replace(slopes=public))

    def labels(self):
        return self.place(None, 1)

    def of_output(self, k):
        return _Scaled(self._records, self._place_of._replace(k=k))


def _reader_of(model):
    """A model that reads as this one does, and knows nothing that is secret or fitted."""
    reader, params = copy.copy(model), model.get_params(deep=False)
    for name in set(vars(reader)) - set(params):
        delattr(reader, name)
    reader.accountant = reader.random_state = reader.client = None
    # a sampling is the user's code, and of no use to who only reads
    reader.solver = "auto"
    vars(reader).update(dict.fromkeys({"sampling"} & params.keys()))
    return reader


# ---- Partitions that any engine holds: it runs one function on each of them ----------------------


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
        of_task = answer, partition.check_sums()
        return _Found(self.ticket, number, facts._replace(ids=None), of_task)


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
