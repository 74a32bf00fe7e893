"""Records of one fit of which ids say whose they are: sorted by person, read after the charge."""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..privacy.sums._person_place import PersonPlace
from ..utils._other_arrays import on_host, refuse_collections
from ..utils._persons import relation_of
from ._records_in_memory import RecordsInMemory, RecordsOfAFit


def checked_records(model, X, y, sample_weight, groups):
    """The records of a fit, once they are found to be valid; those in partitions were found so.

    Raises
    ------
    TypeError, ValueError
        If they are not, or ids are given where records or stated numbers of them are the unit.
    """
    by_id = relation_of(model.neighboring)[1] is None
    if isinstance(X, RecordsOfAFit):
        refuse_ids(model, groups)
        return X
    refuse_collections(model, X=X, y=y)
    if groups is not None and not by_id:
        raise ValueError(
            "groups say whose records are, and the unit is not a person: write "
            "neighboring=Persons() to protect persons by their ids, or leave groups out"
        )
    if not by_id:
        return RecordsInMemory.checked(model, X, y, sample_weight)
    if math.isinf(model.epsilon):
        raise ValueError(
            "neighboring=Persons() with epsilon=inf protects nobody: leave it at a word, without "
            "groups, for a fit without noise"
        )
    if groups is None:
        raise ValueError(
            "neighboring=Persons() needs an id of the person for each record: fit(X, y, "
            "groups=ids); or state how many records a person has, Persons(max_contributions)"
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
        persons = numbers_of_persons(groups, len(found._X))
        order = np.argsort(persons, kind="stable")
        found._X, found._y = found._X[order], found._y[order]
        if found._weights is not None:
            found._weights = found._weights[order]
        found._starts = np.append(0, np.cumsum(np.bincount(persons)))
        found.shape, found.in_arrays = (len(found._starts) - 1, found.shape[1]), False
        return found

    def scaled(self, request):
        target = self._model._scale_target(self._y, request)
        weights = self._model._weights_of(self._y, self._weights)
        return PersonArrays(self._X, target, weights, self._starts)


class PersonArrays(NamedTuple):
    """X, y and weights in memory, sorted by person; a plan opens `place()`."""

    X: np.ndarray
    target: np.ndarray
    sample_weight: np.ndarray | None
    starts: np.ndarray

    def place(self, bounds, n_threads):
        """Where they lie, with bounds as of PersonPlace; one thread reads them."""
        return PersonPlace(*self, bounds)


def numbers_of_persons(groups, n_records):
    """Ids as numbers from 0 on, in an order that follows the ids alone.

    Raises
    ------
    TypeError, ValueError
        If they are no column of ids of one kind, integers or strings, one for each record.
    """
    groups = on_host(groups)
    # of a list NumPy would choose one kind by all ids, and 1 and "1" would be one person
    ids = np.asarray(groups, dtype=object if isinstance(groups, (list, tuple)) else None)
    if ids.shape != (n_records,):
        raise ValueError(f"groups must have shape ({n_records},), an id a record, got {ids.shape}")
    if ids.dtype.kind == "O":
        kinds = {type(one) for one in ids}
        kinds = {int if issubclass(kind, np.integer) else kind for kind in kinds}
        if kinds != {str} and kinds != {int}:
            raise TypeError(
                "groups must hold ids of one kind, integers or strings, and none may be missing"
            )
    elif ids.dtype.kind not in "iuU":
        raise TypeError(f"groups must hold integers or strings, got dtype {ids.dtype}")
    return np.unique(ids, return_inverse=True)[1].reshape(-1)
