"""The far end: one partition of the records, validated where it lies, and its partial sums.

A question to it holds public facts, moves and iterates; its answers are secret sums. What it
remembers between two questions is a short cut: told the whole story, another one answers the same.
"""

from functools import cache
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import is_classifier
from sklearn.utils.multiclass import check_classification_targets

from ..linear_model._records import RecordsByPerson, RecordsInMemory
from ..losses import LOSSES
from ..privacy.sums._person_place import PersonPlace
from ..privacy.sums._place import LocalPlace
from ..privacy.sums._remote_place import Opening, Part
from ..privacy.sums._remote_sums import Asked
from ..utils._compat import check_sample_weight, num_samples
from ..utils._input import read_input
from ..utils._persons import hashes_of_ids, ids_of, relation_of


class PartitionFacts(NamedTuple):
    """Facts that validation publishes of a partition, as a fit in one place does of all records.

    Ids, where they are the unit, are as secret as the records; `n_samples` counts persons then.
    """

    n_samples: int
    n_features: int
    dtype: str
    sparse: bool
    columns: tuple | None
    labels: np.ndarray  # of a classifier without stated classes; of a regressor the dtype alone
    weighs: bool  # whether any weight is positive
    ids: list | None = None  # of its persons

    @property
    def kind_of_ids(self):
        """Integers or strings, of which ids of one partition are one kind; None of no ids."""
        return ("strings" if isinstance(self.ids[0], str) else "integers") if self.ids else None

    @property
    def kind_of_y(self):
        """Numbers, which booleans are, or the kind of another dtype."""
        return "numbers" if self.labels.dtype.kind in "iufb" else self.labels.dtype.kind

    def differing(self, other):
        """The name of a fact that is not the other's, or None."""
        for name, own, there in zip(self._fields, self, other, strict=True):
            if name == "ids" and there is None:  # they travel once, and check sums are of them, too
                continue
            if name != "labels" and own != there:
                return name
        alike = self.labels.dtype == other.labels.dtype
        return None if alike and np.array_equal(self.labels, other.labels) else "labels"


def rows_of(question):
    """The rows that a question is about, as of Part; None is all."""
    return question[1].rows if question[0] == "sums" else None


def with_rows(question, rows):
    """The same question of sums about these rows."""
    return "sums", question[1]._replace(rows=rows)


class PlaceOf(NamedTuple):
    """How records are read: the name of a method of RecordsInMemory, and public facts.

    With `opened_with`, bounds and a number of threads, it is the place that a plan opens; with
    `k`, of output k alone; `in_columns`, for reading single columns; `slopes`, for the columns that
    released coefficients make of the features; with `rows`, of a copy of these rows, which are as
    secret as the records.
    """

    how: str
    public: tuple = ()
    classes: np.ndarray | None = None
    opened_with: tuple | None = None
    k: int | None = None
    in_columns: bool = False
    slopes: tuple | None = None
    elsewhere: dict = {}  # by the number of a partition, ids of persons whom another one has
    rows: dict | None = None  # by the number of a partition

    def open(self, records, number):
        """The place of the records of a partition, which are at hand."""
        if number in self.elsewhere:
            records = records.without(self.elsewhere[number])
        place = getattr(records, self.how)(*self.public)
        if self.k is not None:
            place = place.of_output(self.k)
        if self.in_columns:
            place = place.in_columns()
        if self.slopes is not None:
            place = place.slopes(*self.slopes)
        place = place if self.opened_with is None else place.place(*self.opened_with)
        return place if self.rows is None else place.of_rows(self.rows[number])


class Partition:
    """Records of one partition, in the memory of who answers for them.

    Parameters
    ----------
    reader : PrivateLinearModel
        The model that is fitted, without its accountant, its randomness and its fitted state.
    number : int
        Which errors name.
    X, y, sample_weight, groups : arrays, or a part of a data frame
        `sample_weight` may be None, and so are `groups` where ids are not the unit.

    Raises
    ------
    TypeError, ValueError
        If they are not what the reader takes; the message quotes no cell.
    """

    def __init__(self, reader, number, X, y, sample_weight=None, groups=None):
        self._reader, self._number, self._part, self._arrays = reader, number, None, []
        try:
            self._records, self.facts = self._checked(X, y, sample_weight, groups)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            found = kind(f"partition {number}: {error}")
        else:
            return
        raise found  # outside of `except`: no chain of errors

    def _checked(self, X, y, sample_weight, groups):
        model, n_samples = self._reader, num_samples(X)
        groups = ids_of(model.neighboring, groups)
        if groups is not None and relation_of(model.neighboring)[1] is not None:
            raise ValueError(
                "groups in partitions are for neighboring=Persons(); with Persons(k), where k is a "
                "promise about all partitions together, leave groups out"
            )
        rows = [num_samples(array) for array in (y, sample_weight) if array is not None]
        if rows != [n_samples] * len(rows):
            raise ValueError(f"X has {n_samples} rows, y and sample_weight have {rows}")
        if n_samples == 0:
            return None, _nothing(X, y)
        X, y = model._check_records(X, y)
        weights = check_sample_weight(sample_weight, X, of_all=False)
        of_X = [X.data, X.indices, X.indptr] if issparse(X) else [X]
        self._arrays = [*of_X, y] if weights is None else [*of_X, y, weights]
        if is_classifier(model) and model.classes is None:
            # both publish the labels, and may raise or warn about them: documented
            read_input(check_classification_targets, y, name="y")
            labels = np.unique(y if weights is None else y[weights > 0])
        else:
            y, _ = model._encode_labels(y, weights)
            labels = np.empty(0) if is_classifier(model) else y[:0]
        columns = getattr(model, "feature_names_in_", None)
        facts = PartitionFacts(
            *X.shape,
            X.dtype.str,
            issparse(X),
            None if columns is None else tuple(columns),
            labels,
            weights is None or bool(weights.any()),
        )
        if groups is None:
            return RecordsInMemory(model, X, y, weights), facts
        records = RecordsByPerson(model, X, y, weights).of_persons(groups)
        self._arrays.append(hashes_of_ids(records.ids)[records.persons])
        return records, facts._replace(n_samples=len(records.ids), ids=records.ids.tolist())

    def check_sums(self):
        """Numbers that other records hardly have; as secret as they are, and only compared."""
        return [_sum_of_bits(array) for array in self._arrays]

    def answer(self, place_of, opening, changes, question):
        """Partial sums; the last three arguments are those of Part.

        Parameters
        ----------
        place_of : PlaceOf or None
            None goes on with what is open.
        """
        with np.errstate(all="ignore"):  # a warning would tell about the records
            if place_of is not None:
                if place_of.classes is not None:
                    self._reader.classes_ = place_of.classes
                self._part = Part(place_of.open(self._records, self._number))
            if (rows := rows_of(question)) is not None:
                question = with_rows(question, rows[self._number])
            return self._part.answer(opening, changes, question)

    def __reduce__(self):
        raise TypeError("what holds records is never copied or pickled")


def _sum_of_bits(array):
    """The sum for an array in any order of its rows; for objects their number alone."""
    if array.dtype.itemsize not in (1, 2, 4, 8) or array.dtype.hasobject:
        return array.size
    return int(np.add.reduce(array.view(f"u{array.dtype.itemsize}"), axis=None, dtype=np.uint64))


def _nothing(X, y):
    """The facts of a partition without records."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    n_features = shape[1] if len(shape) == 2 else 0
    return PartitionFacts(0, n_features, "", issparse(X), None, np.asarray(y)[:0], False)


# ---- Bits of a public example --------------------------------------------------------------------


@cache
def public_bits():
    """A digest of losses' derivatives, and of sums after a move, at public numbers.

    Returns
    -------
    str
    """
    n, p = 97, 11
    grid = np.arange(n * p, dtype=np.float64)
    X = ((grid * 0.618033988749895) % 2.0 - 1.0).reshape(n, p)  # of no sort, on every machine
    margins, y = 40.0 * X, np.arange(n) % 3.0
    digest = sha256()
    for name in sorted(LOSSES):
        loss = LOSSES[name]()
        at = margins[:, :3] if loss.multi_output else margins[:, 0]
        digest.update(np.ascontiguousarray(loss.gradient(at, y)).tobytes())
    smoothness, steps = np.linspace(0.5, 2.0, p + 1), np.linspace(-1.0, 1.0, p + 1)
    opening = Opening("moving", LOSSES["logistic"](), smoothness, {"fit_intercept": True})
    asked = Asked(p + 1, True, 0.7, 2.0**20)
    order = np.argsort(y, kind="stable")
    for layout in (np.float64, np.float32, csr_array):
        place = LocalPlace(layout(X), y)
        moves = [("move", np.arange(p + 1), steps), ("move", np.array([3]), np.array([0.1]))]
        digest.update(Part(place).answer(opening, moves, ("sums", asked)).tobytes())
        stated = opening._replace(kind="stated")
        at = ("sums", asked._replace(coef=steps))
        persons = PersonPlace(layout(X), y, None, order, np.arange(0, n, 8), None)
        for one in (place, persons):
            digest.update(Part(one).answer(stated, [], at).tobytes())
    return digest.hexdigest()
