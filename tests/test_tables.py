"""A table of cases looks at every row, says which failed, and can't pass by looking at none."""

import pytest
from tables import RowsFailedError, table


def failed_rows(test, **fixtures):
    with pytest.raises(RowsFailedError) as raised:
        test(**fixtures)
    return str(raised.value)


def test_every_row_is_looked_at_and_those_that_fail_are_named():
    seen = []

    rows = [(1, 2), (3, 2), pytest.param(5, 9, id="fine"), (7, None), (9, "nine"), (8, 2)]

    @table("value, limit", rows)
    def below(value, limit):
        seen.append(value)
        if limit is None:
            pytest.fail("no")
        assert value < limit, "too large"

    text = failed_rows(below)
    assert seen == [1, 3, 5, 7, 9, 8]
    assert "4 rows failed" in text and "value=3, limit=2" in text and "value=8, limit=2" in text
    assert "value=5" not in text and "AssertionError" in text and "test_tables.py" in text
    assert "Failed at" in text and "TypeError" in text


def test_tables_above_one_another_are_their_product():
    seen = []

    @table("a", [1, 2])
    @table(("b",), [3, 4])
    def both(a, b):
        seen.append((a, b))
        assert (a, b) != (2, 3)

    assert "1 rows failed\na=2, b=3" in failed_rows(both)
    assert seen == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_rows_may_be_skipped_and_a_table_of_skipped_rows_is():
    @table("k", [1, 2])
    def skipped(k, least):
        if k < least:
            pytest.skip("small")

    skipped(least=2)
    with pytest.raises(pytest.skip.Exception):
        skipped(least=3)


def test_a_table_that_would_look_at_nothing_is_refused():
    with pytest.raises(AssertionError, match="without rows"):
        table("k", [])
    with pytest.raises(AssertionError, match="takes no"):
        table("k", [1])(lambda j: None)
