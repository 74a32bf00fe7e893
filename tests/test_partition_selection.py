"""Categories of enough records: their threshold, their sensitivity, their curve."""

import math
from collections import Counter
from datetime import timedelta
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from tables import table

from dpcd_sklearn.privacy.accounting import (
    Budget,
    CoveredEvent,
    FitEvent,
    NonPrivateEvent,
    epsilon_of,
    loss_of,
)
from dpcd_sklearn.privacy.accounting._joint import partition_event
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import Oracle, PartitionUnits
from dpcd_sklearn.privacy.sums import CategoryPlace
from dpcd_sklearn.privacy.sums._tables import _key, category_of, coded, counted, order_of

RELATIONS = ["replace_one", "add_remove"]


def units_of(p, n, z=2.0, spare=1e-6, neighboring="replace_one"):
    event = FitEvent((CoveredEvent(z, spare),), neighboring)
    return PartitionUnits(event, n_columns=p, n_samples=n, n_normalizer=n)


@table("spare", [0.4, 1e-3, 1e-9, 1e-200])
@table("p", [1, 30])
def test_a_category_of_one_record_is_named_as_seldom_as_is_charged(spare, p):
    units = units_of(p, 1000, 5.0, spare)
    # a floor is at least k if the noise is
    log_of_one = -((units.least - units.units) / 2.0**units.bits)
    assert p * ndtr(log_of_one) <= spare
    assert p * ndtr(log_of_one) >= 0.9 * spare or units.least == units.units


@pytest.mark.parametrize("spare", [0.05, 1e-4])
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_neighbours_are_told_apart_as_far_as_is_claimed(neighboring, spare):
    """The exact curve of the worst pair of one column is below the event's, at all epsilons."""
    z, m = 1.5, 6  # a common category of 5 or 6 records, and one of the changed record alone
    units = units_of(1, m, z, spare, neighboring)
    sigma = 2.0**units.bits
    k = np.arange(-12 * 2**6, 60 * 2**6)  # cells of the common count, coarser than the grid
    edges = k * sigma / 2**6

    def law(count):
        return np.diff(ndtr((edges - units.units * count) / sigma), prepend=0.0)

    alone = float(ndtr(-(units.least - units.units) / sigma))
    P, Q = law(m), law(m - 1)
    # P: nobody is alone. Q: the changed record left for a category of its own, or is gone.
    named = alone if neighboring == "replace_one" else 0.0
    event = units.event
    for epsilon in (0.0, 0.2, 0.7, 1.5):
        forth = np.maximum(P - math.exp(epsilon) * (1 - named) * Q, 0).sum()
        back = named + np.maximum((1 - named) * Q - math.exp(epsilon) * P, 0).sum()
        assert max(forth, back) <= loss_of(event, 1e-20).delta(epsilon) * (1 + 1e-6)


@table("epsilon", [0.05, 1.0, 8.0])
@table("delta", [1e-3, 1e-10])
def test_a_fit_is_worth_its_budget(epsilon, delta):
    event = partition_event(Budget(epsilon, delta))
    assert epsilon * (1 - 1e-6) < epsilon_of(event, delta) <= epsilon
    assert partition_event(Budget(math.inf, delta, "add_remove")).releases == (NonPrivateEvent(),)


def test_without_noise_all_categories_are_named():
    event = FitEvent((NonPrivateEvent(),))
    units = PartitionUnits(event, n_columns=1, n_samples=3, n_normalizer=3)
    place = CategoryPlace([np.array(["b", "a", None], dtype=object)], 3)
    ((names, counts),) = Oracle(charge(None, event), units, place).release()
    assert names == ("a", "b", None) and counts.tolist() == [1, 1, 1]


# ---- what a category is --------------------------------------------------------------------------


def test_a_category_is_a_function_of_its_cell_alone():
    same = [1, 1.0, True, np.int8(1), np.float32(1), np.True_]
    for first in same:  # whoever comes first, all are told in one way
        column = np.array([first, *same], dtype=object)
        assert counted(column) == [(1, 7)] and type(counted(column)[0][0]) is int
    missing = np.array([None, np.nan, float("nan"), np.float32("nan")], dtype=object)
    assert counted(missing) == [(None, 4)]
    assert category_of("1") == "1" and category_of(0.5) == 0.5 and category_of(-0.0) == 0
    for cell in (b"a", 1j, (1,), object(), Fraction(10**400, 3)):
        with pytest.raises(TypeError, match="categories are strings"):
            category_of(cell)


def equal_cells():
    """Pairs of cells that are equal, but not written alike."""
    pandas = pytest.importorskip("pandas")
    noon = pandas.Timestamp("2020-01-01 12:00", tz="UTC")
    return [
        (noon, noon.tz_convert("Europe/Paris")),
        (noon.to_pydatetime(), noon.tz_convert("Asia/Tokyo").to_pydatetime()),
        (pandas.Timedelta("1 day"), timedelta(1)),
        (1, True),
        (0.0, -0.0),
        (np.float32(0.5), 0.5),
        ("a", np.str_("a")),
    ]


def test_no_record_chooses_how_the_category_of_another_is_written():
    for one, other in equal_cells():
        assert one == other and hash(one) == hash(other)
        for column in ([one, other, other], [other, other, one]):
            alone = [category_of(cell) for cell in column]
            known = sorted(set(alone), key=order_of)
            column = np.array([*column, None], dtype=object)[:-1]
            assert dict(counted(column)) == Counter(alone)
            assert [known[code] for code in coded(column, known)] == alone


def test_integers_of_one_hash_are_looked_up_in_bounded_time():
    of_one_hash = [(2**61 - 1) * (2**64 + i) for i in range(400)]
    assert len(set(map(hash, of_one_hash))) == 1
    column = np.array([*of_one_hash, -of_one_hash[0]], dtype=object)
    pairs = counted(column)
    assert pairs == [(-of_one_hash[0], 1), *((cell, 1) for cell in of_one_hash)]
    known = [category for category, _ in pairs]
    assert coded(column, known).tolist() == [*range(1, 401), 0]
    assert len({hash(_key(category)) for category in known}) == len(known)


@table("column", [[3, 1, 1], [0.5, np.nan, 2.0], ["b", "a", "b"], ["b", None, 1]])
def test_codes_are_places_in_the_list(column):
    column = np.array(column)
    if column.dtype.kind == "U":
        column = column.astype(object)
    known = [category for category, _ in counted(column)]
    codes = coded(column, known)
    assert [known[code] for code in codes] == [category_of(cell) for cell in column.tolist()]
    assert coded(column, ()).tolist() == [0, 0, 0]
