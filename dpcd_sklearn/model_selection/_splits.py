"""Which rows a run fits and which it scores: slots by row number, by person, or by coins."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from ..leaks import KNOWN_SPLITS, full_name
from ..utils._compat import num_samples
from ..utils._persons import hashes_of_ids, persons_of
from ..utils._public import MOST, check_count, check_real
from ..utils._texts import ReadableRepr
from ..utils._typing import ArrayLike, Column

_COINS = "under add_remove no slot of secret coins may be nearly empty"
# With fewer records a slot of coins might be empty, a fact that errors would tell: with so many one
# is with a probability of 3e-23 at most.
_LEAST_OF_COINS = 500


class PersonKFold(ReadableRepr, BaseCrossValidator):
    """Folds of whole persons, where the fold of a person is a keyed hash of its id.

    GroupKFold balances the sizes of its folds, so one person with more records moves others to
    another fold. Here an id decides its own fold and nothing else, so neighbours in the sense of
    :class:`~dpcd_sklearn.Persons` differ in one fold.

    In `PrivateSearchCV` it divides persons by their number in the order of ids.

    Parameters
    ----------
    n_splits : int >= 2, default=5
        Number of folds. Each has about the same number of persons, by chance.
    key : int >= 0, default=0
        Key of the hash: another one gives other folds. Public.

    See Also
    --------
    dpcd_sklearn.Persons : Persons by their ids.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn.model_selection import PersonKFold
    >>> ids = np.repeat(np.arange(200), 3)
    >>> folds = list(PersonKFold(2).split(ids, groups=ids))
    >>> [len(set(ids[train]) & set(ids[test])) for train, test in folds]
    [0, 0]
    """

    __metadata_request__split = {"groups": True}

    def __init__(self, n_splits: int = 5, *, key: int = 0):
        self.n_splits = check_count(n_splits, "n_splits", low=2, high=MOST)
        self.key = check_count(key, "key", low=0, high=MOST)

    def get_n_splits(self, X: Column = None, y: Column = None, groups: Column = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(self, X: ArrayLike, y: Column = None, groups: Column = None):
        """Generate row numbers (train, test), a pair a fold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its number of rows is used.
        y : ignored
        groups : array-like of shape (n_samples,)
            The id of the person of each record, integers or strings.

        Yields
        ------
        train, test : ndarray
            Row numbers.

        Raises
        ------
        TypeError, ValueError
            If ids are missing or invalid, or a fold would have no person.
        """
        return super().split(X, y, groups)

    def _iter_test_masks(self, X=None, y=None, groups=None):
        if groups is None:
            raise ValueError("PersonKFold needs the id of the person of each record: groups=ids")
        ids, persons = persons_of(groups, num_samples(X))
        folds = hashes_of_ids(ids, self.key) % np.uint64(self.n_splits)
        if len(np.unique(folds)) < self.n_splits:
            raise ValueError(
                f"a fold of {self.n_splits} has none of {len(ids)} persons; lower n_splits, or "
                "take another key"
            )
        for fold in range(self.n_splits):
            yield folds[persons] == fold


@dataclass(frozen=True)
class Slots:
    """How rows are divided, before records are there.

    Attributes
    ----------
    splits : tuple of (train, test), or None
        Row numbers; None for coins, and for a share that is drawn where rows are asked for.
    n_train, n_test : tuple of int
        Public numbers of records of each split.
    n_seen : int
        How many fits and scores of a run one record meets, at most.
    share : float
        Share of coins that say "score".
    generator : RandomState or None
        Draws a share; None draws coins.
    """

    splits: tuple | None
    n_train: tuple
    n_test: tuple
    n_seen: int
    share: float = 0.0
    generator: object = None

    def rows(self, n_records, coins, ids=None):
        """Row numbers (train, test) of each split; with ids slots are of persons in their order."""
        if ids is None:
            return self._slots(n_records, coins)
        ids, persons = np.unique(ids, return_inverse=True)
        return [
            tuple(np.flatnonzero(np.isin(persons, side)) for side in split)
            for split in self._slots(len(ids), coins)
        ]

    def _slots(self, n_samples, coins):
        if self.splits is not None:
            return self.splits
        if self.generator is not None:
            order, n_test = self.generator.permutation(n_samples), self.n_test[0]
            return ((np.sort(order[n_test:]), np.sort(order[:n_test])),)
        scored = coins.words("slots", n_samples) < np.uint64(int(self.share * 2.0**64))
        return ((np.flatnonzero(~scored), np.flatnonzero(scored)),)


def slots_of(validation, n_samples, *, random_state=None, n_public=None):
    """Divide rows; nothing but their number is looked at.

    Parameters
    ----------
    validation : float in (0, 1), array of int, or splitter
    n_samples : int
        Public under replace_one, ignored under add_remove.
    random_state : int, RandomState or None
        Draws the split.
    n_public : int or None
        Not None is add_remove.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or a slot would be empty or follow more than row numbers.
    """
    if isinstance(validation, Real) and not isinstance(validation, (bool, Integral)):
        share = check_real(validation, "validation", low=0.0, high=1.0)
        return _share(share, n_samples, random_state, n_public)
    if n_public is not None:
        raise ValueError(
            "under neighboring='add_remove' row numbers are not public, so validation must be a "
            "share: each record draws a secret coin"
        )
    if hasattr(validation, "split") and hasattr(validation, "get_n_splits"):
        return _of_splits(_splits(validation, n_samples), n_samples)
    rows = _index_array(validation, n_samples)
    return _of_splits([(np.setdiff1d(np.arange(n_samples), rows), rows)], n_samples)


def _share(share, n_samples, random_state, n_public):
    n = n_samples if n_public is None else n_public
    n_test = min(max(1, round(share * n)), n - 1)
    if n_test < 1:
        raise ValueError(
            "one record, or person, can't be both fitted and scored; a search needs two at least"
        )
    if n_public is not None:
        check_real(share, "validation", low=0.1, high=0.9, closed="both", advice=_COINS)
        refuse_number(n, n)
        return Slots(None, (n - n_test,), (n_test,), 1, share)
    return Slots(None, (n - n_test,), (n_test,), 1, share, check_random_state(random_state))


def refuse_number(n_samples, n_public):
    """Refuse a table that coins can't divide, before any is drawn: a promise about all records.

    So no slot is empty, and none holds more than `n_public`: its size decides nothing.

    Raises
    ------
    ValueError
        If there are more records than `n_public`, or too few.
    """
    if not _LEAST_OF_COINS <= n_samples <= n_public:
        raise ValueError(
            "a search under neighboring='add_remove' draws a secret coin for each record, and "
            f"takes {_LEAST_OF_COINS} records at least and n_public={n_public} at most; state an "
            "n_public that no number of records exceeds"
        )


def _index_array(validation, n_samples):
    rows = np.asarray(validation)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise TypeError(
            "validation must be a share between 0 and 1, an array of row numbers, or a splitter by "
            f"row number, got {validation!r}"
        )
    if not len(rows) or rows.min() < 0 or rows.max() >= n_samples:
        raise ValueError(f"row numbers of validation must lie in [0, {n_samples}), at least one")
    if len(np.unique(rows)) != len(rows):
        raise ValueError("a row number stands twice in validation")
    return rows


def _splits(splitter, n_samples):
    name = full_name(type(splitter))
    if name not in KNOWN_SPLITS:
        hint = "its slots follow labels" if "Stratified" in name else "it may look at records"
        raise ValueError(
            f"{type(splitter).__name__} is not known to split by row number ({hint}); use KFold or "
            "ShuffleSplit"
        )
    return list(splitter.split(np.zeros((n_samples, 1)), groups=np.arange(n_samples)))


def _of_splits(splits, n_samples):
    seen = np.zeros(n_samples, dtype=np.int64)
    for train, test in splits:
        if not len(train) or not len(test):
            raise ValueError("a split leaves no record to fit or none to score")
        seen[train] += 1
        seen[test] += 1
    sizes = [tuple(map(len, side)) for side in zip(*splits, strict=True)]
    return Slots(tuple(splits), *sizes, int(seen.max()))
