"""Records of one fit in this process: validated first, read after the charge."""

import math
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from ..plan._arrays import Arrays, is_mapped
from ..privacy.sums._person_place import PersonPlace
from ..privacy.sums._place import LocalPlace
from ..privacy.sums._records import canonical
from ..utils._cells import refuse_collections
from ..utils._compat import check_sample_weight
from ..utils._persons import drawn_rows, ids_of, persons_of, relation_of, rows_read
from ..utils._threads import effective_n_threads


class RecordsOfAFit(metaclass=ABCMeta):
    """Valid records, as the fit recipe knows them.

    Attributes
    ----------
    shape : tuple (n_samples, n_features)
    dtype : dtype of X
    sparse : bool
    n_outputs : int
    in_arrays : bool
        Whether they are arrays in memory, which sparse ones index by 32 bits, in a fit whose
        updates nobody follows.
    """

    in_arrays = False

    @abstractmethod
    def weighted(self):
        """The place of features and weights, for a plan without noise."""

    @abstractmethod
    def unscaled(self, with_target):
        """The place of records as they are, for a search of scales; after the charge."""

    @abstractmethod
    def scaled(self, request):
        """Records for a plan: Arrays, or what has their methods; after the charge."""

    def run(self, plan, receipt, scaled, key, generator):
        """Carry out a plan over what `scaled` gave; returns a Solution."""
        return plan.run(receipt, scaled, key, generator)


class RecordsInMemory(RecordsOfAFit):
    """Records of this process.

    Parameters
    ----------
    model : PrivateLinearModel
        Which validated them.
    X, y, sample_weight : arrays
    n_outputs : int, default=1
    """

    def __init__(self, model, X, y, sample_weight, n_outputs=1):
        self._model, self._X, self._y, self._weights = model, X, y, sample_weight
        self.shape, self.dtype, self.sparse = X.shape, X.dtype, issparse(X)
        self.n_outputs, self._n_threads = n_outputs, effective_n_threads(model.n_threads)
        parts = (X.data, X.indices, X.indptr) if self.sparse else (X,)
        is_followed = bool(getattr(model, "_skl_callbacks", ()))
        is_long = self.sparse and max(X.nnz, *X.shape) >= 2**31
        self.in_arrays = not (is_followed or is_long or any(is_mapped(part) for part in parts))

    @classmethod
    def checked(cls, model, X, y, sample_weight):
        """The validated arguments of ``fit``; the model publishes the labels."""
        X, y = model._check_records(X, y)
        sample_weight = check_sample_weight(sample_weight, X)
        y, n_outputs = model._encode_labels(y, sample_weight)
        return cls(model, X, y, sample_weight, n_outputs)

    def at_most(self, groups):
        """At most as many records of each person as the model states, sorted by person."""
        records = [one for one in self.arrays() if one is not None]
        rows = rows_read(self._model.neighboring, groups, self.shape[0], *records)
        X, y, *weights = (one[rows] for one in records)
        return RecordsInMemory(self._model, X, y, *(weights or [None]), self.n_outputs)

    def arrays(self):
        """X, y and weights, for a fit without noise."""
        return self._X, self._y, self._weights

    def weighted(self):
        weights = self._model._weights_of(self._y, self._weights)
        return LocalPlace(self._X, None, weights, n_threads=self._n_threads)

    def unscaled(self, with_target):
        y = np.ascontiguousarray(self._y, dtype=np.float64) if with_target else None
        return LocalPlace(self._X, y, n_threads=self._n_threads)

    def scaled(self, request):
        target = self._model._scale_target(self._y, request)
        return Arrays(self._X, target, self._model._weights_of(self._y, self._weights))


# ---- Records of which ids say whose they are: read by person -------------------------------------


def checked_records(model, X, y, sample_weight, groups):
    """The records of a fit, once they are found to be valid; those in partitions were found so.

    Raises
    ------
    TypeError, ValueError
        If they are not, or ids are given where records or stated numbers of them are the unit.
    """
    if isinstance(X, RecordsOfAFit):
        return X
    refuse_collections(model, X=X, y=y)
    if (groups := ids_of(model.neighboring, groups)) is None:
        return RecordsInMemory.checked(model, X, y, sample_weight)
    if relation_of(model.neighboring)[1] is not None:
        return RecordsInMemory.checked(model, X, y, sample_weight).at_most(groups)
    refuse_nobody(model)
    return RecordsByPerson.checked(model, X, y, sample_weight).of_persons(groups)


def refuse_nobody(model):
    """Refuse a fit of persons by their ids without noise; returns whether ids are its unit.

    Raises
    ------
    ValueError
    """
    by_id = relation_of(model.neighboring)[1] is None
    if by_id and math.isinf(model.epsilon):
        raise ValueError(
            "neighboring=Persons() with epsilon=inf protects nobody: leave it at a word, without "
            "groups, for a fit without noise"
        )
    return by_id


class RecordsByPerson(RecordsInMemory):
    """Records of this process, of persons; its number of records is that of persons."""

    def of_persons(self, groups):
        """The same, with ids of records, and their order by person.

        Raises
        ------
        TypeError, ValueError
            If the ids are not valid.
        """
        self.ids, self.persons = persons_of(groups, len(self._y))
        self._order = np.argsort(self.persons, kind="stable")
        self._starts = np.append(0, np.cumsum(np.bincount(self.persons)))
        self.shape, self.in_arrays = (len(self.ids), self.shape[1]), False
        if self.sparse:
            self._X = canonical(self._X).tocsr()
        return self

    def without(self, ids):
        """The same without the records of some persons."""
        left_out = set(ids)
        stays = np.array([one not in left_out for one in self.ids.tolist()])
        rows = np.flatnonzero(stays[self.persons])
        arrays = (None if a is None else a[rows] for a in self.arrays())
        found = RecordsByPerson(self._model, *arrays, self.n_outputs)
        return found.of_persons(self.ids[self.persons[rows]])

    @cached_property
    def _one_each(self):
        # not by the target, which partitions read before they know the numbers of classes
        weights = () if self._weights is None else (self._weights,)
        return drawn_rows(self.ids, self.persons, self._X, *weights)

    def unscaled(self, with_target):
        """One record of each person, so that a choice is one of records."""
        rows = self._one_each
        y = np.ascontiguousarray(self._y[rows], dtype=np.float64) if with_target else None
        # partitions have persons in another order
        return LocalPlace(self._X[rows], y, samples_rows=False)

    def scaled(self, request):
        target = self._model._scale_target(self._y, request)
        weights = self._model._weights_of(self._y, self._weights)
        whose = self._order, self._starts, lambda: self._one_each
        return PersonArrays(self._X, target, weights, *whose)


class PersonArrays(NamedTuple):
    """X, y and weights in memory, and whose they are; a plan opens `place()`."""

    X: object
    target: np.ndarray
    sample_weight: np.ndarray | None
    order: np.ndarray
    starts: np.ndarray
    draw: Callable

    def place(self, bounds, n_threads):
        """Where they lie, with bounds as of PersonPlace; one thread reads them."""
        return PersonPlace(*self, bounds)

    of_output = Arrays.of_output
