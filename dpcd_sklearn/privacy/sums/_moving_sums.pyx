"""Sums at an iterate that moves by steps: what is known of the records between two questions.

A record has a margin for each output, and a coordinate c = k * n_coordinates + j moves margin k. A
step is kept until the records are read anyway. The states, and what is true in them:

=========== ================== =====================================================
state       margins X W are of the sums of all coordinates, one by one, are
=========== ================== =====================================================
SETTLED     the iterate        not kept
KEPT        the iterate        kept, of the iterate
MOVED       before the step    not kept
KEPT_MOVED  before the step    kept, of the iterate before the step
=========== ================== =====================================================

A move leads from SETTLED to MOVED and from KEPT to KEPT_MOVED (a second one settles the first); a
question for all coordinates one by one leads to KEPT, from KEPT_MOVED perhaps by what the step
changed alone (``_refresh``); every other question leads to SETTLED, but for one coordinate of KEPT,
whose sum is there already. Each of them is of all outputs at once: a derivative depends on every
margin of its record. ``_norms_known`` says whether ``_norms`` are of whole records. A build with
checks (``DPCD_SAFE``) sums anew after each refresh and compares.
"""

import numpy as np

from ...losses._loss cimport Loss
from ._local_sums cimport LocalSums
from ._records cimport Records
from ._sums cimport Question

cdef extern from "Python.h":
    void Py_FatalError(const char *message)

cdef extern from *:
    """
    #ifdef DPCD_CHECKED
    enum { DPCD_IS_CHECKED = 1 };
    #else
    enum { DPCD_IS_CHECKED = 0 };
    #endif
    """
    const bint DPCD_IS_CHECKED

IS_CHECKED = bool(DPCD_IS_CHECKED)  # for tests that change records under the sums


cdef class MovingSums(LocalSums):
    """Sums at an iterate that starts at zero; the parameters are those of LocalSums.

    The smoothness is stated output by output. What belongs to records (margins, norms) is kept
    output by output too, that of output k and record i at k * n + i.

    A subclass sums (``_sum``), brings the margins up to date (``_settle``), and perhaps sums of
    all coordinates (``_refresh``).
    """

    def __init__(self, Records records, Loss loss, smoothness, bint fit_intercept,
                 Py_ssize_t n_outputs=1):
        super().__init__(records, loss, smoothness, fit_intercept, n_outputs, True)
        if n_outputs == 1 and loss.multi_output:  # it has no `derivative`
            raise ValueError(f"the {loss.name} loss needs several outputs, got n_outputs=1")
        self._smoothness = np.ascontiguousarray(smoothness, dtype=np.float64)
        self._size = n_outputs * self.n_coordinates
        of_outputs = smoothness.reshape(n_outputs, -1)
        self._alike = (of_outputs == of_outputs[0]).all()
        self._margins = np.zeros(n_outputs * self.n)
        self._columns = np.empty(self._size if n_outputs > 1 else 0, dtype=np.intp)
        self._starts, self._step_starts = (np.zeros(n_outputs + 1, dtype=np.intp) for _ in "ab")
        self._widths, self._kept_sizes = (np.empty(n_outputs, dtype=np.intp) for _ in "ab")
        self._intercept_steps = np.zeros(n_outputs)
        # memory is taken when they are written: norms by joint sums alone
        self._norms = np.empty(n_outputs * self.n)
        self._step, self._step_columns = np.empty(0), np.empty(0, dtype=np.intp)
        self._state = SETTLED

    cdef const double *answer(self, const Question *question) noexcept nogil:
        cdef bint separate = question.block == NULL and not question.joint
        if self._keeps(question):
            return &self._totals[0 if question.block == NULL else question.block[0]]
        if not self._sum(question):
            return NULL
        self._state = KEPT if separate else SETTLED
        self._kept_limit, self._kept_clip = question.limit, question.clip
        return &self._totals[0]

    cdef bint _keeps(self, const Question *question) noexcept nogil:
        """Whether the answer is there already, or after a refresh."""
        if (question.joint or self._state in (SETTLED, MOVED)
                or self._kept_limit != question.limit or self._kept_clip != question.clip):
            return False
        if self._state == KEPT:
            return question.block == NULL or question.size == 1
        if question.block != NULL or not self._refresh(question):
            return False
        self._state = KEPT
        if DPCD_IS_CHECKED:
            self._check_refresh(question)
        return True

    cdef void _check_refresh(self, const Question *question) noexcept with gil:
        kept = np.array(self._totals[:question.size])
        if not self._sum(question) or not np.array_equal(kept, self._totals[:question.size]):
            Py_FatalError("sums that were brought up to date differ from those of a pass")

    cdef bint _has_step(self) noexcept nogil:
        return self._state in (MOVED, KEPT_MOVED)

    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil:
        cdef Py_ssize_t k, b, j, n = 0, start = 0, end, n_kept = self._count_kept(block, size, step)
        cdef bint few
        if n_kept == 0:
            return True
        if self._has_step():  # two steps without a question between them
            if not self._settle():
                return False
            self._state = SETTLED
        if not self._has_steps(n_kept):
            return False
        for k in range(self.n_outputs):
            self._step_starts[k] = n
            self._intercept_steps[k] = 0.0
            end = first_at(block, size, (k + 1) * self.n_coordinates)
            few = self._kept_sizes[k] < end - start
            for b in range(start, end):
                j = block[b] - k * self.n_coordinates
                if j == self.p:
                    self._intercept_steps[k] = step[b]
                elif not few or step[b] != 0.0:
                    self._step_columns[n] = j
                    self._step[n] = step[b]
                    n += 1
            start = end
        self._step_starts[self.n_outputs] = n
        self._state = KEPT_MOVED if self._state == KEPT else MOVED
        return True

    cdef Py_ssize_t _count_kept(self, const Py_ssize_t *block, Py_ssize_t size,
                                const double *step) noexcept nogil:
        """How many coordinates a step keeps, and of each output: all of its own, or the few that
        move, whose columns alone are read then. Zero when nothing moves.
        """
        cdef Py_ssize_t k, b, n_moved, n = 0, start = 0, end
        for k in range(self.n_outputs):
            end = first_at(block, size, (k + 1) * self.n_coordinates)
            n_moved = 0
            for b in range(start, end):
                n_moved += step[b] != 0.0
            self._kept_sizes[k] = n_moved if 8 * n_moved <= end - start else end - start
            n += self._kept_sizes[k]
            start = end
        return n

    cdef bint _moves_intercepts(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_outputs):
            if self._intercept_steps[k] != 0.0:
                return True
        return False

    cdef void _split(self, const Question *question) noexcept nogil:
        """The outputs' parts of a question: part k is from _starts[k] to _starts[k + 1].

        It has _widths[k] columns, _n_columns in all parts. Those of a block of several outputs are
        written to `_columns`.
        """
        cdef Py_ssize_t k, b, end, P = self.n_coordinates
        self._n_columns = 0
        self._starts[0] = 0
        for k in range(self.n_outputs):
            end = first_at(question.block, question.size, (k + 1) * P)
            self._starts[k + 1], self._widths[k] = end, end - self._starts[k]
            if question.block == NULL:
                self._widths[k] -= self.fit_intercept
            elif end > self._starts[k]:
                self._widths[k] -= question.block[end - 1] == k * P + self.p
                if self.n_outputs > 1:
                    for b in range(self._starts[k], end):
                        self._columns[b] = question.block[b] - k * P
            self._n_columns += self._widths[k]

    cdef const Py_ssize_t *_part(self, const Question *question, Py_ssize_t k) noexcept nogil:
        """The columns of part k; NULL: all."""
        if question.block == NULL or self.n_outputs == 1:
            return question.block
        return &self._columns[0] + self._starts[k]

    cdef bint _has_ones(self, Py_ssize_t k) noexcept nogil:
        """Whether part k of the question has the intercept, its last coordinate."""
        return self._starts[k + 1] - self._starts[k] > self._widths[k]

    cdef Py_ssize_t _norms_apart(self, const Question *question) noexcept nogil:
        """How far on a record's norm in the next output is; 0 when the outputs' are the same."""
        return 0 if question.block == NULL and self._alike else self.n

    cdef bint _has_steps(self, Py_ssize_t size) noexcept nogil:
        """Room for a step of so many coordinates; False when out of memory."""
        if self._step.shape[0] >= size:
            return True
        with gil:
            try:
                self._step, self._step_columns = np.empty(size), np.empty(size, dtype=np.intp)
            except MemoryError:
                return False
        return True

    # ---- what a subclass does ----

    cdef bint _sum(self, const Question *question) noexcept nogil:
        """Fill `_totals` at the iterate; False when out of memory.

        A step that waits is made on the way.
        """
        return False

    cdef bint _settle(self) noexcept nogil:
        """Make the step that waits; False when out of memory."""
        return False

    cdef bint _refresh(self, const Question *question) noexcept nogil:
        """Make the step and bring the kept sums up to date in less than a pass, or return False."""
        return False
