"""A table of cases looks at every row, says which failed, and can't pass by looking at none."""

import pytest
from tables import RowsFailedError, table


def failed_rows(test, **fixtures):
    with pytest.raises(RowsFailedError) as raised:
        test(**fixtures)
    return str(raised.value)


def test_every_row_is_looked_at_and_those_that_fail_are_named():
    seen = []

    @table("value, limit", [(1, 2), (3, 2), pytest.param(5, 9, id="fine"), (7, 2)])
    def below(value, limit):
        seen.append(value)
        assert value < limit, "too large"

    text = failed_rows(below)
    assert seen == [1, 3, 5, 7]
    assert "2 rows failed" in text and "value=3, limit=2" in text and "value=7, limit=2" in text
    assert "value=5" not in text and "AssertionError" in text and "test_tables.py" in text


def test_whatever_a_row_raises_is_a_failure_and_no_end():
    def fail_of_pytest():
        with pytest.raises(ValueError):
            pass

    @table("call", [fail_of_pytest, lambda: 1 / 0, lambda: None, lambda: pytest.fail("no")])
    def calls(call):
        call()

    text = failed_rows(calls)
    assert "3 rows failed" in text and "DID NOT RAISE" in text and "ZeroDivisionError" in text


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
