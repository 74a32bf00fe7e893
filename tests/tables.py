"""Tables of cases within one test, where a test for each would cost more than what it looks at."""

import functools
import inspect
import traceback

import pytest
from sklearn.utils.estimator_checks import check_estimator

MOST_SHOWN = 20  # of the rows that failed


class RowsFailedError(AssertionError):
    """The rows of a table that failed, with what was said of each."""

    def __init__(self, failed):
        super().__init__(failed)
        self.failed = failed

    def __str__(self):
        more = len(self.failed) - MOST_SHOWN
        lines = [f"{len(self.failed)} rows failed", *self.failed[:MOST_SHOWN]]
        return "\n".join(lines + [f"... and {more} more"] * (more > 0))


def table(names, rows):
    """Like ``pytest.mark.parametrize``, but one test, which fails once with every row that does.

    All rows see the same fixtures, which therefore hold nothing that a row may leave behind for
    the next. Two tables above one another make the product of their rows.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_values(row, len(names)) for row in rows]
    assert rows, "a table without rows looks at nothing"

    def decorate(test):
        signature = inspect.signature(test)
        assert set(names) <= set(signature.parameters), f"{test.__name__} takes no {names}"

        @functools.wraps(test)
        def over_rows(**fixtures):
            failed, skipped = [], []
            for row in rows:
                try:
                    test(**fixtures, **dict(zip(names, row, strict=True)))
                except RowsFailedError as inner:  # a table within this one
                    failed += [f"{_row(names, row)}, {line}" for line in inner.failed]
                except (Exception, pytest.fail.Exception) as error:
                    failed.append(f"{_row(names, row)}: {_said(error)}")
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
            if failed:
                raise RowsFailedError(failed)
            if len(skipped) == len(rows):
                raise skipped[0]

        left = [value for name, value in signature.parameters.items() if name not in names]
        over_rows.__signature__ = signature.replace(parameters=left)
        return over_rows

    return decorate


def pass_checks(estimator, expected):
    """All of scikit-learn's checks hold but those expected to fail, which do fail."""
    options = {"on_skip": None, "on_fail": None}
    results = check_estimator(estimator, expected_failed_checks=expected, **options)
    failed = [
        f"{found['check_name']}: {found['status']}, {found['exception']!r:.1000}"
        for found in results
        if found["status"] == ("passed" if found["expected_to_fail"] else "failed")
    ]
    if failed:
        raise RowsFailedError(failed)


def _values(row, n_names):
    if hasattr(row, "marks"):  # a pytest.param
        assert not row.marks, "a row has no marks"
        return row.values
    return (row,) if n_names == 1 else tuple(row)


def _row(names, row):
    return ", ".join(f"{name}={value!r:.200}" for name, value in zip(names, row, strict=True))


def _said(error):
    """The error, and the line of the test, or of what it calls in tests, that it came from."""
    calls = traceback.extract_tb(error.__traceback__)
    of_tests = [call for call in calls if "tests" in call.filename and call.filename != __file__]
    at = (of_tests or calls)[-1]
    return f"{type(error).__name__} at {at.filename}:{at.lineno}: {error!s:.1000}"
