"""Neighbouring data sets as users state them: by a word, or as persons."""

from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import Literal
from zlib import crc32

import numpy as np
from scipy.sparse import issparse

from ._cells import cells_of, columns_in, on_host
from ._compat import Interval, StrOptions, safe_indexing
from ._input import read_input
from ._public import MOST
from ._stated import Stated

NEIGHBORING = ("replace_one", "add_remove")


@dataclass(eq=False, repr=False)
class Persons(Stated):
    """Neighbours that differ in one person, who has several records.

    Tables in which a person has several records take it in place of a word. With a stated number
    of records it is `neighboring` of every estimator, scorer, pipeline and accountant of this
    package; with ids, ``fit(X, y, groups=ids)``, of all that fits records in memory.

    **Privacy**

    - Guarantee: (epsilon, delta) is that of the person, exactly: releases have `max_contributions`
      times the noise that a record needs. Dividing epsilon by it would not be enough.
    - Assumption: nobody has more records. Whoever has is protected less, and nothing can notice. If
      ids are given as well, ``fit(X, y, groups=ids)``, nothing is assumed: records beyond
      `max_contributions` of a person are left out, by a rule that only its own records decide.
    - Not protected under "replace_one": the number of records, since those of a person are replaced
      by as many. If it is secret how many records a person has, take "add_remove" with `n_public`.
    - With ids a person may have any number of records, one at least, which is secret, and so is
      that of all. Under "replace_one" neighbours have the same ids, so who the persons are is
      public; "add_remove" protects it, and `n_public` counts persons. Nobody may have two ids.

    Parameters
    ----------
    max_contributions : int >= 1 or None, default=None
        How many records a person has, at most: a promise, and public; with ids, how many of each
        are read. Noise grows with it. None is any number: ids say whose each record is.
    relation : {"replace_one", "add_remove"}, default="replace_one"
        Whether a person's records are replaced, or all of them are added or removed.

    Examples
    --------
    >>> from dpcd_sklearn import DPRidgeSkGD, Persons
    >>> visits = DPRidgeSkGD(feature_bounds=(-1, 1), neighboring=Persons(5), delta=1e-6)
    >>> visits.planned_event(10_000, 8).unit
    'record, at most 5 a person'
    """

    _parameter_constraints = {
        "max_contributions": [None, Interval(Integral, 1, MOST, closed="both")],
        "relation": [StrOptions(set(NEIGHBORING))],
    }

    max_contributions: int | None = None
    relation: Literal["replace_one", "add_remove"] = "replace_one"


class PersonsOfRows(Persons):
    """Persons of whom the ids are known: what a pipeline gives to the copies of its steps.

    Parameters
    ----------
    relation : {"replace_one", "add_remove"}
    ids : array-like of shape (n_records,)
        As `fit` was told them.
    max_contributions : int or None, default=None
    """

    def __init__(self, relation, ids, max_contributions=None):
        super().__init__(max_contributions, relation)
        self.ids = ids

    def __sklearn_clone__(self):
        return self

    def __repr__(self):
        return repr(Persons(self.max_contributions, self.relation))  # no ledger shows ids


OF_NEIGHBORING = [StrOptions(set(NEIGHBORING)), Persons]  # as a constraint of a parameter


def relation_of(neighboring):
    """A relation between records, and how many of them one person has at most; None is any number.

    Raises
    ------
    TypeError, ValueError
        If `neighboring` is neither a word nor `Persons`, or these are not valid.
    """
    if isinstance(neighboring, Persons):
        neighboring.check()
        k = neighboring.max_contributions
        return str(neighboring.relation), None if k is None else int(k)
    if neighboring not in NEIGHBORING:
        raise ValueError(
            f"neighboring must be one of {NEIGHBORING} or Persons(max_contributions), got "
            f"{neighboring!r}"
        )
    return neighboring, 1


# ---- ids of persons ------------------------------------------------------------------------------

_AS_TEXT = ". Write ids of other kinds as strings, those of two columns as a.astype(str) + ' ' + b"
_ODD, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


def ids_of(neighboring, groups):
    """The ids that a fit, or the pipeline around it, was told; None where persons have none.

    Raises
    ------
    ValueError
        If ids are missing, or are given where they are not the unit.
    """
    by_id = relation_of(neighboring)[1] is None
    if groups is not None and not isinstance(neighboring, Persons):
        raise ValueError(
            "groups are ids of persons, and this neighboring does not protect persons: write "
            "neighboring=Persons() to protect them by their ids, or leave groups out"
        )
    groups = getattr(neighboring, "ids", groups)
    if groups is None and by_id:
        raise ValueError(
            "neighboring=Persons() needs an id of the person for each record: fit(X, y, "
            "groups=ids); or state how many records a person has, Persons(max_contributions)"
        )
    return groups


def persons_of(groups, n_records):
    """The ids of all persons in their order, and the number of the person of each record.

    Raises
    ------
    TypeError, ValueError
        If they are no column of ids of one kind, integers or strings, one for each record.
    """
    groups = on_host(groups)
    # of a list NumPy would choose one kind by all ids, and 1 and "1" would be one person
    dtype = object if isinstance(groups, (list, tuple)) else None
    ids = read_input(np.asarray, groups, dtype=dtype, name="groups")
    if ids.shape != (n_records,):
        raise ValueError(f"groups must have shape ({n_records},), one id each, got {ids.shape}")
    if ids.dtype.kind == "O":
        kinds = {type(one) for one in ids}
        kinds = {int if issubclass(kind, np.integer) else kind for kind in kinds}
        if kinds != {str} and kinds != {int}:
            raise TypeError(
                "groups must hold ids of one kind, integers or strings, and none may be missing"
                f"{_AS_TEXT}"
            )
    elif ids.dtype.kind not in "iuU":
        way = " (integers with missing ones become it)" if ids.dtype.kind == "f" else _AS_TEXT
        raise TypeError(f"groups must hold integers or strings, got dtype {ids.dtype}{way}")
    ids, persons = np.unique(ids, return_inverse=True)
    return ids, persons.reshape(-1)


def read_of_each(neighboring, groups, n_records):
    """How many rows of each person are read, in the order of the ids: one, or at most k."""
    k, counts = relation_of(neighboring)[1], np.bincount(persons_of(groups, n_records)[1])
    return np.minimum(counts, k or 1)


def rows_read(neighboring, groups, n_records, *tables):
    """The numbers of the rows of each person that are read, in the order of the ids.

    These are one of each person, or at most k where ``Persons(k)`` is stated: those with the least
    hashes of the id, of the row's own cells, and of its rank among equal rows of this person. So
    neither the rows of others nor any row number decide which ones are read, and nobody has more
    rows in the table that is left.

    Parameters
    ----------
    neighboring : Persons
    groups : array-like of shape (n_records,)
    n_records : int
    *tables : of all cells, as of `read_table`, or lists of columns

    Returns
    -------
    rows : ndarray of shape (n_rows_read,)
    """
    most = relation_of(neighboring)[1] or 1
    return drawn_rows(*persons_of(groups, n_records), *tables, most=most)


def records_read(neighboring, groups, X, y):
    """The records of each person that are read, of a table and an array y."""
    rows = rows_read(neighboring, groups, len(y), X, y)
    return safe_indexing(X, rows), y[rows]


def drawn_rows(ids, persons, *tables, most=1):
    """The same, of all ids in their order and the number of the person of each record."""
    found = hashes_of_ids(ids)[persons]
    for table in tables:
        _mix_rows(found, table)
    order = _sorted_by_person(found, persons)  # equal records side by side
    persons, found = persons[order], found[order]
    is_first = np.append(True, np.diff(persons) > 0)
    places = np.arange(len(order))
    is_new = is_first | np.append(True, found[1:] != found[:-1])
    rank = places - np.maximum.accumulate(np.where(is_new, places, 0))
    drawn = _sorted_by_person(_mixed(found + rank.astype(np.uint64) * _ODD), persons)
    starts = np.maximum.accumulate(np.where(is_first, places, 0))
    return order[drawn[places - starts < most]]


def _sorted_by_person(hashes, persons):
    """The order of rows by person, then by half of the bits of a hash, then as they are.

    The other half of a key is the person's, whatever the number of persons, which may not decide
    how it sorts.
    """
    keys = hashes >> _HALF | persons.astype(np.uint64) << _HALF
    return np.argsort(keys, kind="stable")


def hashes_of_ids(ids, key=0):
    """An integer below 2^64 for each id, as uint64, which no other id decides."""
    if ids.dtype.kind in "iu":
        found = ids.astype(np.uint64)
    elif ids.dtype.kind == "O" and type(ids[0]) is not str:  # the same as in arrays of integers
        found = np.array([int(one) % 2**64 for one in ids.tolist()], dtype=np.uint64)
    else:
        texts = (str(one).encode("utf-8", "surrogatepass") for one in ids.tolist())
        digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
        found = np.frombuffer(digests, dtype="<u8").astype(np.uint64)
    return _mixed(found + np.uint64(key * int(_ODD) % 2**64))


_AT_ONCE = 4096  # rows of which the columns stay in the cache


def _mix_rows(found, table):
    """Let the cells of a table follow in the hashes of its rows, in place."""
    if issparse(table):  # by the values that are not zero, whether or not zeros are stored
        table = table.tocsr()
        cells = _mixed(_hashes(table.data) + table.indices.astype(np.uint64) * _ODD)
        sums = np.cumsum(np.append(np.uint64(0), np.where(table.data != 0, cells, np.uint64(0))))
        found[:] = _mixed(found * _ODD + sums[table.indptr[1:]] - sums[table.indptr[:-1]])
        return
    is_plain = type(table) is np.ndarray and table.ndim == 2 and table.dtype.isnative
    if not (is_plain and table.dtype.kind in "iuf" and table.dtype.itemsize == 8):
        for column in _columns(table):
            found[:] = _mixed(found * _ODD + _hashes(column))
        return
    for start in range(0, len(table), _AT_ONCE):
        some = found[start : start + _AT_ONCE]
        for cells in np.ascontiguousarray(table[start : start + _AT_ONCE].T).view(np.uint64):
            some[:] = _mixed(some * _ODD + cells)


def _columns(table):
    if isinstance(table, list):
        return table
    return columns_in(table) if len(np.shape(table)) == 2 else [table]


def _hashes(column):
    """A number of each cell, as uint64, which no other cell decides; see `cells_of`."""
    cells = cells_of(column)
    if cells.dtype.kind not in "biuf" or cells.dtype.itemsize > 8:
        texts = (str(cell).removesuffix(".0") for cell in cells.tolist())  # 1.0 is 1
        cells = [crc32(text.encode("utf-8", "surrogatepass")) for text in texts]
        return np.array(cells, dtype=np.uint64)
    whole = np.dtype(f"{cells.dtype.byteorder}u{cells.dtype.itemsize}")
    numbers = np.ascontiguousarray(np.ma.getdata(cells)).view(whole).astype(np.uint64)
    return numbers + np.ma.getmaskarray(cells).astype(np.uint64) * _ODD


def _mixed(numbers):
    """Integers whose bits all follow all bits of these (Steele, Lea & Flood, 2014)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


# ---- words --------------------------------------------------------------------------------------


def unit_of(max_contributions):
    """The unit of privacy, of so many records a person."""
    if max_contributions is None:
        return "person"
    if max_contributions == 1:
        return "record"
    return f"record, at most {max_contributions:,} a person"


def words_of(relation, max_contributions):
    """The neighbours of an event."""
    words = f"{relation.replace('_', '-')} neighbours"
    if max_contributions == 1:
        return words
    if max_contributions is None:
        how = {"replace_one": "replaced by others in any number", "add_remove": "added or removed"}
        return f"{words}: all records of one person, {how[relation]}"
    how = {"replace_one": "replaced by as many", "add_remove": "added or removed"}[relation]
    return f"{words}: the records of one person, at most {max_contributions:,}, {how}"


def as_stated(relation, max_contributions):
    """The parameter of an estimator, as its user writes it."""
    persons = f"Persons({max_contributions}, {relation!r})"
    return repr(relation) if max_contributions == 1 else persons
