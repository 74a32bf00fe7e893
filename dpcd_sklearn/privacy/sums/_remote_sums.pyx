"""Sums over records that lie elsewhere: questions go out as arrays, and integers come back.

(a) ``RemoteSums`` have the face of ``Sums``. A move is kept until the next question, and travels
    with it; the answers of all parts of the records are added up, which is exact. What was told
    with the sums of all coordinates, one by one, is not asked for again.
(b) ``answer`` asks the ``Sums`` of one part. It is where the other end of the wire begins.
(c) What goes out is public or released: coordinates, moves, iterates, clips; and, of mini-batches,
    who is in one, which is as secret as the records are. What comes back is secret. No key of any
    noise is known here.
"""

from typing import NamedTuple

import numpy as np

from ...utils._interrupts cimport hold
from ._sums cimport Question, Sums, question_of

from ...utils._interrupts import held


class Asked(NamedTuple):
    """A Question as it travels; the fields are its own, arrays or None in the place of pointers."""

    size: int
    joint: bool
    clip: float
    limit: float
    block: np.ndarray | None = None
    coef: np.ndarray | None = None
    anchor: np.ndarray | None = None
    directions: np.ndarray | None = None
    rows: np.ndarray | None = None


cdef class RemoteSums(Sums):
    """Sums of all parts together.

    Parameters
    ----------
    dialogue : Dialogue
        With the parts of the records.
    n_coordinates, n_outputs : int
    """

    cdef object _dialogue
    cdef double[::1] _totals
    cdef object _kept  # the last question to all coordinates one by one, and its answer

    def __init__(self, dialogue, n_coordinates, n_outputs=1):
        self._dialogue = dialogue
        self.n_coordinates, self.n_outputs = n_coordinates, n_outputs

    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil:
        if size == 0:
            return True
        with gil:
            try:
                self._kept = None
                self._dialogue.change("move", _indices(block, size), _numbers(step, size))
            except BaseException as error:
                self._dialogue.failed = True
                return hold(error)
        return True

    cdef const double *answer(self, const Question *question) noexcept nogil:
        with gil:
            try:
                self._totals = self._ask(question)
                return &self._totals[0]
            except BaseException as error:
                self._dialogue.failed = True
                hold(error)
        return NULL

    cdef _ask(self, const Question *question):
        cdef Py_ssize_t size = self.n_outputs * self.n_coordinates, m = question.n_directions
        asked = Asked(
            question.size, bool(question.joint), question.clip, question.limit,
            _indices(question.block, question.size),
            _numbers(question.coef, size),
            _numbers(question.anchor, size),
            _numbers(question.directions, m * self.n_coordinates),
            _indices(question.rows, question.n_rows),
        )
        if self._knows(asked):
            at = asked.block[0]
            return self._kept[1][at : at + 1].copy()
        sums = self._dialogue.ask("sums", asked)
        expected = _size(self, asked)
        dtype = np.int64 if asked.limit > 0 else np.float64
        if sums.shape != (expected,) or sums.dtype != dtype:
            raise TypeError(f"expected {expected} sums of {np.dtype(dtype)}, got {sums.shape[0]} "
                            f"of {sums.dtype}")
        sums = np.ascontiguousarray(sums, dtype=np.float64)
        if asked.block is None and asked.coef is None and not asked.joint:
            self._kept = asked, sums
        return sums

    cdef bint _knows(self, asked):
        """Whether one coordinate is asked for that was told with all others, and nothing moved."""
        if self._kept is None or asked.joint or asked.size != 1 or asked.block is None:
            return False
        kept = self._kept[0]
        return asked.coef is None and (asked.limit, asked.clip) == (kept.limit, kept.clip)


cdef Py_ssize_t _size(Sums sums, asked) except -1:
    if asked.coef is None:
        return asked.size
    if asked.directions is None:
        return sums.n_outputs * sums.n_coordinates
    return sums.n_outputs * (len(asked.directions) // sums.n_coordinates)


cdef _indices(const Py_ssize_t *values, Py_ssize_t size):
    return None if values == NULL else np.array(<const Py_ssize_t[:size]>values) if size else (
        np.empty(0, dtype=np.intp))


cdef _numbers(const double *values, Py_ssize_t size):
    return None if values == NULL else np.array(<const double[:size]>values)


def make_move(Sums sums, block, step):
    """Move the iterate of local sums."""
    cdef const Py_ssize_t[::1] columns = np.ascontiguousarray(block, dtype=np.intp)
    cdef const double[::1] steps = np.ascontiguousarray(step, dtype=np.float64)
    cdef bint enough
    if columns.shape[0] != steps.shape[0]:
        raise ValueError(f"{columns.shape[0]} coordinates but {steps.shape[0]} steps")
    if columns.shape[0] == 0:
        return
    with nogil:
        enough = sums.move(&columns[0], columns.shape[0], &steps[0])
    if not enough:
        raise held(MemoryError("out of memory for a move of the iterate"))


def answer(Sums sums, asked):
    """The sums of one part of the records: secret.

    Parameters
    ----------
    sums : Sums
    asked : Asked

    Returns
    -------
    ndarray of int64; of float64 for a limit of zero
    """
    cdef Question question = question_of(NULL, asked.size, asked.joint, asked.clip, asked.limit)
    cdef const Py_ssize_t[::1] block, rows
    cdef const double[::1] coef, anchor, directions
    cdef const double *found
    cdef Py_ssize_t size = _size(sums, asked), none = 0
    cdef Py_ssize_t n_coefs = sums.n_outputs * sums.n_coordinates
    if asked.block is not None:
        block = _checked(asked.block, np.intp, asked.size)
        question.block = &block[0]
    if asked.coef is not None:
        coef = _checked(asked.coef, np.float64, n_coefs)
        question.coef = &coef[0]
    if asked.anchor is not None:
        anchor = _checked(asked.anchor, np.float64, n_coefs)
        question.anchor = &anchor[0]
    if asked.directions is not None:
        directions = _checked(asked.directions, np.float64, len(asked.directions))
        question.directions = &directions[0]
        question.n_directions = len(asked.directions) // sums.n_coordinates
    if asked.rows is not None:
        rows = np.ascontiguousarray(asked.rows, dtype=np.intp)
        question.n_rows = rows.shape[0]
        question.rows = &rows[0] if rows.shape[0] else &none
    with nogil:
        found = sums.answer(&question)
    if found == NULL:
        raise held(MemoryError("out of memory for sums over records"))
    return np.array(<const double[:size]>found, dtype=np.int64 if question.limit > 0 else None)


def _checked(array, dtype, size):
    array = np.ascontiguousarray(array, dtype=dtype)
    if array.shape != (size,) or not size:
        raise ValueError(f"expected {size} values, got {array.shape}")
    return array
