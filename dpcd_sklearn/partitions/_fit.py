"""Fits over partitions that any engine holds: it only has to run one function on each of them."""

from typing import NamedTuple

from ._partition import Partition
from ._public_bits import public_bits
from ._records import Holders, PartitionedRecords


class _Look(NamedTuple):
    """Validates a partition; what travels is public."""

    reader: object

    def __call__(self, number, X, y, sample_weight=None):
        try:
            found = Partition(self.reader, number, X, y, sample_weight).facts
        except (TypeError, ValueError) as error:
            found = error
        return number, found, public_bits()


class _Answer(NamedTuple):
    """Answers one question from the whole story, and remembers nothing."""

    reader: object
    place_of: object
    opening: object
    changes: list
    question: tuple

    def __call__(self, number, X, y, sample_weight=None):
        partition = Partition(self.reader, number, X, y, sample_weight)
        if partition.facts.n_samples == 0:
            return None
        return partition.answer(*self[1:])


class _Forgetful(Holders):
    def __init__(self, run):
        self._run = run

    def look(self, reader):
        self._reader = reader
        found = sorted(self._run(_Look(reader)), key=lambda one: one[0])
        return [facts for _, facts, _ in found], {bits for *_, bits in found}

    def ask(self, place_of, dialogue, question, numbers):
        task = _Answer(self._reader, place_of, dialogue.opening, dialogue.changes, question)
        return [answer for answer in self._run(task) if answer is not None]


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
        ``run(task)`` calls ``task(number, X, y, sample_weight=None)`` for each partition, wherever
        it lies, and returns the list of what it gave, in any order. Partitions are numbered from 0
        without gaps. A task is pickled by value; it remembers nothing, so an update of "cd",
        "gcd", "skgd" makes margins anew from all moves so far: "newton", and "sgd" with
        ``sampling_rate=1``, state the iterate and don't.

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
