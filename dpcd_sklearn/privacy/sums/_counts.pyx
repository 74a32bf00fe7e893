"""Numbers of records in public cells, column by column: what quantiles are chosen from.

(a) *Octaves* are cells of |x| on a fixed grid of powers of two: cell 0 holds |x| < 2^LOWEST, zero
    among them, cell i the numbers [2^(LOWEST + i - 1), 2^(LOWEST + i)), the last one all that is
    larger. An exponent is read off exactly.
(b) *Linear cells* divide [lo_j, hi_j], public, into equal parts; what lies outside counts in the
    first or the last one. The cell is computed with roundings, but by the same monotone operations
    for the same number, so cells are intervals, and each record lies in one of each column.
(c) *Reaches* are cells around a public centre: half octaves of the distance from it in units,
    those below it first, outermost to innermost. Their ends are 1, 1.5, 2, 3, 4, 6, ... units, and
    the outermost ones hold what is farther out. They are computed as linear cells are.
(d) Counts are integers, the same in any order and layout. A sparse cell that is not stored is a
    zero. Weights are not seen. X is read once, in the order of memory, and never copied, cast or
    written. Few columns are counted at a time, so that a cache holds their cells: in 16
    bits, and so many records until they are added up.
"""

import numpy as np
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport calloc, free
from scipy import sparse

from ...utils._threads cimport Work, over_rows
from ._kernels cimport dpcd_paying_threads
from ._records import canonical

# Whatever unit numbers are in, nearly all that float32 holds. Odds of octaves before any record is
# seen fall to e^-16 far away (``plan/_scale_choices.py``), so many of them cost nothing.
LOWEST, HIGHEST = -125, 125
N_OCTAVES = HIGHEST - LOWEST + 2
N_LINEAR = N_REACHES = 256

cdef extern from "_cells.h":
    const int DPCD_RUN
    int32_t dpcd_octave(double x) noexcept nogil
    int32_t dpcd_linear(double x, double lo, double per_unit) noexcept nogil
    int32_t dpcd_reach(double x, double center, double per_unit) noexcept nogil
    enum:
        DPCD_OCTAVES
        DPCD_LINEAR
        DPCD_REACHES
        DPCD_OUTSIDE
    ctypedef void (*dpcd_count)(const void *x, int is_float, int cells, Py_ssize_t size,
                                Py_ssize_t ahead, const double *lo, const double *per_unit,
                                const int32_t *first, uint16_t *counts) noexcept nogil
    dpcd_count dpcd_choose_count() noexcept nogil

cdef dpcd_count COUNT = dpcd_choose_count()

cdef enum:
    APART = 272  # cells of a column in 16 bits; of a power of two caches hold few alike
    AT_ONCE = 128  # columns whose cells a cache holds
    MOST = 32768  # records until counts in 16 bits are added up, before they are twice as many
    AHEAD = 8  # rows that are asked of the memory before they are counted
    NEAR = 65536  # cells of rows that the second cache holds
    IN_TURN = 4  # counts of a column: equal numbers in a row would wait for each other

ctypedef fused floating:
    float
    double

ctypedef fused index:
    int32_t
    int64_t


# ---- one pass, in the order of memory; in: all but the last argument, which is inout ----


# A pass over dense records: where they lie, what cells are, and what is found. Each share of rows
# has `counts` of its own; `squares` and `outside` have a number for each row. A row that is outside
# of all bounds before is 1 there, and 3 if it is outside of these too.
cdef struct Pass:
    const char *X
    Py_ssize_t n_columns, row_gap, column_gap  # gaps in bytes
    bint is_float, by_row
    int cells
    Py_ssize_t n_cells
    const double *lo
    const double *hi
    int64_t *counts
    double *squares
    uint8_t *outside


cdef Pass _NOTHING  # zeros, as what is static in C


cdef inline double _at(const Pass *c, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    cdef const void *x = c.X + i * c.row_gap + j * c.column_gap
    return (<const float *>x)[0] if c.is_float else (<const double *>x)[0]


cdef inline int64_t *_cell_of(const Pass *c, Py_ssize_t j, double x) noexcept nogil:
    """The count of the cell of a number in column j."""
    cdef int64_t *counts = c.counts + j * c.n_cells
    if c.cells == DPCD_OCTAVES:
        return counts + dpcd_octave(x)
    if c.cells == DPCD_LINEAR:
        return counts + dpcd_linear(x, c.lo[j], c.hi[j])
    return counts + dpcd_reach(x, c.lo[j], c.hi[j])


cdef _share(Work work, Pass *c, X, Py_ssize_t n_threads):
    n, p = X.shape
    if X.strides[1 if _by_row(X) else 0] != X.itemsize:  # runs have no gaps
        X = np.ascontiguousarray(X)
    c.X, c.n_columns = <const char *><size_t>X.ctypes.data, p
    c.row_gap, c.column_gap = X.strides
    c.is_float, c.by_row = X.dtype == np.float32, _by_row(X)
    over_rows(work, c, n, p, dpcd_paying_threads(n_threads, n * p))


cdef bint _count_rows(void *of, Py_ssize_t share, Py_ssize_t i0, Py_ssize_t n) noexcept nogil:
    """Runs are of several short rows, of a row's columns, or of a column's rows in turn."""
    cdef const Pass *c = <Pass *>of
    cdef Py_ssize_t p = c.n_columns, turns = 1 if c.by_row else IN_TURN
    cdef Py_ssize_t near = max(16, NEAR // max(p, 1)) if c.by_row else n
    cdef Py_ssize_t at_once = AT_ONCE if c.by_row else 1, size, width, i, j, k, stop, start = i0
    cdef Py_ssize_t n_rows = 1, ahead
    cdef int32_t[DPCD_RUN] first
    cdef double[2][DPCD_RUN] edges
    cdef int64_t *counts = c.counts + share * p * c.n_cells
    cdef uint16_t *few = <uint16_t *>calloc(max(1, p * turns * APART), sizeof(uint16_t))
    if few == NULL:
        return False
    if not c.by_row:
        n_rows = DPCD_RUN
    elif p <= AT_ONCE and c.row_gap == p * c.column_gap:
        n_rows = DPCD_RUN // p
    ahead = max(n_rows, AHEAD) * c.row_gap
    for k in range(DPCD_RUN):
        first[k] = APART * (k % p if c.by_row else k % IN_TURN)
    while i0 < n:
        stop, j = min(i0 + min(near, MOST), n), 0
        while j < p:
            width = min(at_once, p - j)
            for i in range(n_rows):
                for k in range(width):
                    edges[0][i * width + k], edges[1][i * width + k] = c.lo[j + k], c.hi[j + k]
            i = i0
            while i < stop:
                size = min(stop - i, n_rows)
                COUNT(c.X + i * c.row_gap + j * c.column_gap, c.is_float, c.cells,
                      width * size, ahead, edges[0], edges[1], first, few + j * turns * APART)
                i += size
            j += width
        if stop == n or (stop - start) // MOST > (i0 - start) // MOST or not c.by_row:
            for k in range(p * turns):  # those of few records are moved to those of all
                for j in range(c.n_cells):
                    counts[k // turns * c.n_cells + j] += few[k * APART + j]
                    few[k * APART + j] = 0
        i0 = stop
    free(few)
    return True


cdef bint _look_at_rows(void *of, Py_ssize_t share, Py_ssize_t i0, Py_ssize_t n) noexcept nogil:
    """Squares are summed in the order of the columns, in every layout."""
    cdef Pass c = (<Pass *>of)[0]
    cdef Py_ssize_t i, j, k
    cdef double x
    cdef double[4] sums = [0.0, 0.0, 0.0, 0.0]
    cdef uint16_t outside
    if c.outside != NULL and c.by_row:
        for i in range(i0, n):
            if c.outside[i]:
                outside = 0
                COUNT(c.X + i * c.row_gap, c.is_float, DPCD_OUTSIDE, c.n_columns,
                      AHEAD * c.row_gap, c.lo, c.hi, NULL, &outside)
                c.outside[i] |= outside << 1
        return True
    for i in range(i0, n if c.by_row else i0, 4):  # whose sums do not wait for each other
        for j in range(c.n_columns):
            for k in range(4):
                x = (_at(&c, min(i + k, n - 1), j) - c.lo[j]) * c.hi[j]
                sums[k] += x * x
        for k in range(min(4, n - i)):
            c.squares[i + k], sums[k] = sums[k], 0.0
    c.counts = NULL  # known to the compiler, which moves the other choices out of the loops
    for j in range(0 if c.by_row else c.n_columns):
        for i in range(i0, n):
            _look(&c, i, j, _at(&c, i, j))
    return True


def _look_at_sparse(const floating[::1] data, const index[::1] indices, const index[::1] indptr,
                    size_t looks):
    cdef const Pass *c = <const Pass *>looks
    cdef Py_ssize_t line, k
    with nogil:
        for line in range(indptr.shape[0] - 1):
            for k in range(indptr[line], indptr[line + 1]):
                _look(c, line if c.by_row else indices[k], indices[k] if c.by_row else line,
                      data[k])


cdef inline void _look(const Pass *c, Py_ssize_t i, Py_ssize_t j, double x) noexcept nogil:
    if c.counts != NULL:
        _cell_of(c, j, 0.0)[0] -= 1  # counted as a zero before
        _cell_of(c, j, x)[0] += 1
    elif c.squares != NULL:
        x = (x - c.lo[j]) * c.hi[j]
        c.squares[i] += x * x
    else:
        c.outside[i] |= 0 if c.lo[j] <= x <= c.hi[j] else 2


cdef _look_at(Pass *c, X, Py_ssize_t n_threads):
    """Read the cells of all records that are not zeros for certain."""
    if sparse.issparse(X):
        X = canonical(X)
        c.by_row = X.format == "csr"
        _look_at_sparse(X.data, X.indices, X.indptr, <size_t>c)
    elif X.size:
        _share(_look_at_rows, c, X, n_threads)


def count_cells(X, edges=None, around=None, Py_ssize_t n_threads=1):
    """Numbers of records in the cells of each column.

    Parameters
    ----------
    X : ndarray, CSR or CSC of shape (n_samples, n_columns), float32 or float64
    edges : pair (lo, hi) of float64 arrays of shape (n_columns,), or None
        Public ends of linear cells, lo < hi.
    around : pair (center, unit) of float64 arrays of shape (n_columns,), or None
        Public, of reaches. Without both octaves of |x| are counted.
    n_threads : int, default=1
        Of passes over dense records.

    Returns
    -------
    counts : int64 ndarray of shape (n_columns, n_cells)
    """
    n, p = X.shape
    cdef int cells = DPCD_OCTAVES
    lo = per_unit = np.zeros(p)  # octaves have none
    if edges is not None or around is not None:
        cells, pair = (DPCD_LINEAR, edges) if around is None else (DPCD_REACHES, around)
        lo, end = (np.ascontiguousarray(numbers, dtype=np.float64) for numbers in pair)
        if lo.shape != (p,) or end.shape != (p,):
            raise ValueError(f"expected edges of {p} columns")
        with np.errstate(all="ignore"):  # refused below
            per_unit = 1 / (end if around is not None else (end - lo) / N_LINEAR)
        if not (np.isfinite(lo) & np.isfinite(per_unit) & (per_unit > 0)).all():
            raise ValueError("edges must be finite, lo < hi, and neither too far nor too close")
    n_cells = N_OCTAVES if cells == DPCD_OCTAVES else N_LINEAR
    cdef const double[::1] lo_view = lo, per_unit_view = per_unit
    cdef Pass c = _NOTHING
    cdef int64_t[:, :, ::1] shares
    is_sparse = sparse.issparse(X)
    shares = counts = np.zeros((1 if is_sparse else n_threads, p, n_cells), dtype=np.int64)
    if not counts.size:
        return counts[0]
    c.counts, c.cells, c.n_cells = &shares[0, 0, 0], cells, n_cells
    c.lo, c.hi = &lo_view[0], &per_unit_view[0]
    if not is_sparse:
        _share(_count_rows, &c, X, n_threads)
        return counts.sum(axis=0)
    for j in range(p):
        _cell_of(&c, j, 0.0)[0] = n
    _look_at(&c, X, 1)
    return counts[0]


def count_norms(X, around=None, Py_ssize_t n_threads=1):
    """Numbers of records in the octaves of the norm of a row from a centre, in units of columns.

    Parameters
    ----------
    X : as of `count_cells`
    around : pair (center, unit) of float64 arrays of shape (n_columns,), or None
        Public; None is zero and 1. That of sparse records is zero. Units are above 1e-300.

    Returns
    -------
    counts : int64 ndarray of shape (1, n_cells)
        Squares are summed in the order of the columns, in every layout; the square of a number
        below 1e-162 is nothing.
    """
    around = around or (np.zeros(X.shape[1]), np.ones(X.shape[1]))
    center, unit = (np.ascontiguousarray(number, dtype=np.float64) for number in around)
    centred = np.isfinite(center).all() and not (sparse.issparse(X) and center.any())
    if not (centred and center.shape == unit.shape == X.shape[1:] and (unit > 1e-300).all()):
        raise ValueError(f"expected a centre, zero if sparse, and units of {X.shape[1]} columns")
    cdef const double[::1] centers = center, per_unit = 1 / unit
    cdef Pass c = _NOTHING
    cdef double[::1] squares = np.zeros(X.shape[0])
    if X.size:
        c.lo, c.hi, c.squares = &centers[0], &per_unit[0], &squares[0]
        _look_at(&c, X, n_threads)
    return count_cells(np.sqrt(squares)[:, np.newaxis], n_threads=n_threads)


def count_outside(X, y, bounds, Py_ssize_t n_threads=1):
    """Numbers of records that lie within bounds in every column, and that do not, by bounds.

    Parameters
    ----------
    X : ndarray, CSR or CSC of shape (n_samples, n_columns), float32 or float64
    y : float64 ndarray of shape (n_samples,), or None
        One more column, the last, if there are bounds of it.
    bounds : pair (lo, hi) of float64 arrays of shape (n_bounds, n_columns or n_columns + 1)
        Public, the narrowest first. Those of sparse columns contain zero.

    Returns
    -------
    counts : int64 ndarray of shape (n_bounds, 2)
        NaN lies outside. A record within some bounds is not looked at again.
    """
    p = X.shape[1]
    lo, hi = (np.ascontiguousarray(bound, dtype=np.float64) for bound in bounds)
    if lo.ndim != 2 or lo.shape != hi.shape or lo.shape[1] not in (p, p + 1):
        raise ValueError(f"expected bounds of {p} columns, or of these and the target")
    cdef const double[:, ::1] lo_view = lo, hi_view = hi
    cdef Pass c = _NOTHING
    outside, counts = np.ones(X.shape[0], dtype=np.uint8), []
    cdef uint8_t[::1] marks = outside
    if sparse.issparse(X) and ((lo[:, :p] > 0).any() or (hi[:, :p] < 0).any()):
        raise ValueError("bounds of sparse columns must contain zero")
    for k in range(len(lo)):
        if outside.size and p:
            c.lo, c.hi, c.outside = &lo_view[k, 0], &hi_view[k, 0], &marks[0]
            _look_at(&c, X, n_threads)
        if lo.shape[1] > p:
            outside[~((lo[k, p] <= y) & (y <= hi[k, p]))] |= 2
        outside[:] = outside == 3
        counts.append(np.count_nonzero(outside))
    return np.column_stack([np.subtract(X.shape[0], counts), counts])


def _by_row(X):
    """Whether a row lies side by side in memory, rather than a column."""
    if X.shape[1] == 1 and X.strides[0] == X.itemsize:
        return False
    return abs(X.strides[0]) >= abs(X.strides[1])
