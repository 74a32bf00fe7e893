"""Neighbouring data sets as users state them: by a word, or as persons."""

from collections.abc import Callable
from functools import wraps
from numbers import Integral
from typing import Literal, TypeVar, cast

from ._compat import Interval, StrOptions
from ._public import MOST
from ._stated import Stated

NEIGHBORING = ("replace_one", "add_remove")


class Persons(Stated):
    """Neighbours that differ in one person, who has several records.

    Tables in which a person has several records take it in place of a word. With a stated number
    of records it is `neighboring` of every estimator, scorer, pipeline and accountant of this
    package; with ids, ``fit(X, y, groups=ids)``, of linear models in memory and of accountants.

    **Privacy**

    - Guarantee: (epsilon, delta) is that of the person, exactly: releases have `max_contributions`
      times the noise that a record needs. Dividing epsilon by it would not be enough.
    - Assumption: nobody has more records. Whoever has is protected less, and nothing can notice.
    - Not protected under "replace_one": the number of records, since those of a person are replaced
      by as many. If it is secret how many records a person has, take "add_remove" with `n_public`.
    - With ids a person may have any number of records, one at least, which is secret, and so is
      that of all; the number of persons is public (under "add_remove" `n_public` counts persons).
      Nobody may come under two ids.

    Parameters
    ----------
    max_contributions : int >= 1 or None, default=None
        How many records a person has, at most: a promise, and public. Noise grows with it. None is
        any number: ids say whose each record is.
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

    def __init__(
        self,
        max_contributions: int | None = None,
        relation: Literal["replace_one", "add_remove"] = "replace_one",
    ):
        self.max_contributions = max_contributions
        self.relation = relation


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


OF_PERSONS = (
    "groups say whose records are, and {} is not told them: write neighboring=Persons(k) to "
    "protect persons of at most k records each; a linear model by itself takes Persons() and groups"
)
_Method = TypeVar("_Method", bound=Callable[..., object])


def refuses_groups(fit: _Method) -> _Method:
    """Decorate a `fit` that has no parameter `groups`, to name what is there for persons."""

    @wraps(fit)
    def checked(self, *args, **params):
        if "groups" in params:
            raise ValueError(OF_PERSONS.format(type(self).__name__))
        return fit(self, *args, **params)

    return cast(_Method, checked)


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
