"""Records of one fit of which ids say whose they are: sorted by person, read after the charge."""

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..privacy.sums._person_place import PersonPlace
from ..privacy.sums._place import LocalPlace
from ..utils._other_arrays import refuse_collections
from ..utils._persons import drawn_rows, ids_of, persons_of, relation_of
from ._records_in_memory import RecordsInMemory, RecordsOfAFit


def checked_records(model, X, y, sample_weight, groups):
    """The records of a fit, once they are found to be valid; those in partitions were found so.

    Raises
    ------
    TypeError, ValueError
        If they are not, or ids are given where records or stated numbers of them are the unit.
    """
    if isinstance(X, RecordsOfAFit):
        refuse_ids(model, groups)
        return X
    refuse_collections(model, X=X, y=y)
    if (groups := ids_of(model.neighboring, groups)) is None:
        return RecordsInMemory.checked(model, X, y, sample_weight)
    if relation_of(model.neighboring)[1] is not None:
        return RecordsInMemory.checked(model, X, y, sample_weight).at_most(groups)
    if math.isinf(model.epsilon):
        raise ValueError(
            "neighboring=Persons() with epsilon=inf protects nobody: leave it at a word, without "
            "groups, for a fit without noise"
        )
    return RecordsByPerson.of(model, X, y, sample_weight, groups)


def refuse_ids(model, groups):
    """Refuse persons by their ids, of records that lie elsewhere.

    Raises
    ------
    ValueError
    """
    if groups is not None or relation_of(model.neighboring)[1] is None:
        raise ValueError(
            "groups and neighboring=Persons() are for records in memory: of partitions state how "
            "many records a person has, Persons(max_contributions)"
        )


class RecordsByPerson(RecordsInMemory):
    """Records of this process, of persons; its number of records is that of persons."""

    @classmethod
    def of(cls, model, X, y, sample_weight, groups):
        """The validated arguments of ``fit``, sorted by person.

        Raises
        ------
        TypeError, ValueError
            If they are not valid, X is sparse, or there are several outputs.
        """
        if issparse(X):
            raise ValueError("groups need X as an array: sparse records have no sums by person")
        found = cls.checked(model, X, y, sample_weight)
        if found.n_outputs > 1:
            raise ValueError("groups are for one target or two classes; fit a model a target")
        ids, persons = persons_of(groups, len(found._X))
        order = np.argsort(persons, kind="stable")
        found._X, found._y = np.take(found._X, order, axis=0), found._y[order]
        if found._weights is not None:
            found._weights = found._weights[order]
        found._ids = ids
        found._starts = np.append(0, np.cumsum(np.bincount(persons)))
        found.shape, found.in_arrays = (len(found._starts) - 1, found.shape[1]), False
        return found

    @cached_property
    def _one_each(self):
        weights = () if self._weights is None else (self._weights,)
        persons = np.repeat(np.arange(len(self._ids)), np.diff(self._starts))
        return drawn_rows(self._ids, persons, self._X, self._y, *weights)

    def unscaled(self, with_target):
        """One record of each person, so that a choice is one of records."""
        rows = self._one_each
        y = np.ascontiguousarray(self._y[rows], dtype=np.float64) if with_target else None
        return LocalPlace(self._X[rows], y)

    def scaled(self, request):
        target = self._model._scale_target(self._y, request)
        weights = self._model._weights_of(self._y, self._weights)
        return PersonArrays(self._X, target, weights, self._starts, lambda: self._one_each)


class PersonArrays(NamedTuple):
    """X, y and weights in memory, sorted by person; a plan opens `place()`."""

    X: np.ndarray
    target: np.ndarray
    sample_weight: np.ndarray | None
    starts: np.ndarray
    draw: Callable

    def place(self, bounds, n_threads):
        """Where they lie, with bounds as of PersonPlace; one thread reads them."""
        return PersonPlace(*self, bounds)
