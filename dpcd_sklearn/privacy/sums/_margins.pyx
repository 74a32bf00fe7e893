"""Margins of records at a public model, each a function of its own record alone; no noise here.

(a) A margin is summed over features in the kernels' eight lanes, joined in one fixed order without
    fused operations, and bounds are applied cell by cell: neither other records, nor a record's
    place among them, nor layout, alignment and threads change a bit of it. BLAS, whose kernels
    change with the number of rows, does not keep that.
(b) Rows are read in place, a tile at a time for all outputs.
"""

import numpy as np
from cython.parallel cimport prange
from libc.stdlib cimport calloc, free, malloc
from scipy.sparse import issparse

from ._kernels cimport (
    DPCD_LANES,
    DPCD_READ_AGAIN,
    DPCD_READ_ONCE,
    KERNELS,
    dpcd_paying_threads,
    dpcd_rows_ahead,
    dpcd_tile,
    dpcd_tile_rows,
)
from ._records cimport Records, dpcd_add_columns, dpcd_dot_rows, dpcd_join_lanes

cdef enum:
    SPARSE_ROWS = 1024


def products(X, coef, bounds=None, *, Py_ssize_t n_threads=1):
    """clip(X) @ coef.T in double precision; what overflows is infinite or NaN.

    Parameters
    ----------
    X : ndarray or CSR or CSC matrix of shape (n_samples, n_features), float32 or float64
        As `Records` reads them in place.
    coef : ndarray of shape (n_outputs, n_features), float64
    bounds : tuple (lo, hi) of float64 arrays of shape (n_features,), or None
        What features are clipped to; those of sparse records contain zero.
    n_threads : int, default=1
        Of passes over dense records.

    Returns
    -------
    ndarray of shape (n_samples, n_outputs), one output after the other in memory
    """
    cdef bint by_row = issparse(X) and X.format == "csr"
    if bounds is not None:
        bounds = (*bounds, np.zeros(X.shape[1]))
    cdef Records records = Records(X, None, None, bounds, n_threads=n_threads)
    out = np.zeros((len(coef), records.n))
    cdef const double[:, ::1] v = np.ascontiguousarray(coef, dtype=np.float64)
    cdef double[:, ::1] sums = out
    cdef bint enough = True
    if v.shape[1] != records.p:
        raise ValueError(f"coef has {v.shape[1]} columns, X has {records.p}")
    if out.size and records.p:
        with nogil:
            if not records.is_sparse:
                enough = _dense(records, v, sums)
            elif by_row:
                enough = records.holds(True) and _by_row(records, v, sums)
            else:
                enough = records.holds(False) and _by_column(records, v, sums)
    if not enough:
        raise MemoryError
    return out.T


cdef bint _dense(Records records, const double[:, ::1] v, double[:, ::1] sums) noexcept nogil:
    cdef Py_ssize_t t, share, n = records.n
    cdef Py_ssize_t n_threads = dpcd_paying_threads(records.n_threads, n * records.p)
    cdef int n_failed = 0
    if n_threads == 1:
        return _dense_rows(records, v, 0, n, sums)
    share = (n // n_threads + 16) // 16 * 16
    for t in prange(n_threads, num_threads=n_threads, schedule="static", chunksize=1):
        n_failed += not _dense_rows(records, v, min(t * share, n), min((t + 1) * share, n), sums)
    return n_failed == 0


cdef bint _dense_rows(Records records, const double[:, ::1] v, Py_ssize_t i, Py_ssize_t stop,
                      double[:, ::1] sums) noexcept nogil:
    cdef Py_ssize_t k, n_rows, ahead, p = records.p
    cdef Py_ssize_t tile_rows = dpcd_tile_rows(
        &records.X, p, DPCD_READ_ONCE if v.shape[0] == 1 else DPCD_READ_AGAIN)
    cdef double *room = NULL
    cdef dpcd_tile tile
    if v.shape[0] > 1 and records.X.bounds.lo != NULL:  # read often: clipped once
        room = <double *>malloc(tile_rows * p * sizeof(double))
        if room == NULL:
            return False
    while i < stop:
        n_rows = min(tile_rows, stop - i)
        KERNELS.load(&records.X, i, NULL, n_rows, NULL, p, room, &tile)
        ahead = dpcd_rows_ahead(tile_rows, records.n - i - n_rows)
        for k in range(v.shape[0]):
            KERNELS.rows_dot(&tile, &v[k, 0], False, 0 if k else ahead, &sums[k, i])
        i += n_rows
    free(room)
    return True


cdef bint _by_row(Records records, const double[:, ::1] v, double[:, ::1] sums) noexcept nogil:
    cdef Py_ssize_t[SPARSE_ROWS] rows
    cdef Py_ssize_t i = 0, k, n_rows
    while i < records.n:
        n_rows = min(SPARSE_ROWS, records.n - i)
        for k in range(n_rows):
            rows[k] = i + k
        for k in range(v.shape[0]):
            dpcd_dot_rows(&records.rows, n_rows, rows, &v[k, 0], False, &sums[k, i])
        i += n_rows
    return True


cdef bint _by_column(Records records, const double[:, ::1] v, double[:, ::1] sums) noexcept nogil:
    cdef Py_ssize_t k
    cdef double *lanes = <double *>calloc(records.n * DPCD_LANES, sizeof(double))
    for k in range(v.shape[0] if lanes != NULL else 0):
        dpcd_add_columns(&records.columns, records.p, NULL, &v[k, 0], lanes)
        dpcd_join_lanes(records.n, NULL, lanes, &sums[k, 0])  # and they are zeros again
    free(lanes)
    return lanes != NULL
