"""Margins of records at a public model, each a function of its own record alone; no noise here.

(a) A margin is summed over features in the kernels' eight lanes, joined in one fixed order without
    fused operations, and bounds are applied cell by cell: neither other records, nor a record's
    place among them, nor layout, alignment and threads change a bit of it. BLAS, whose kernels
    change with the number of rows, does not keep that.
(b) Rows are read in place, a tile at a time for all outputs.
"""

import numpy as np
from libc.stdlib cimport calloc, free, malloc
from scipy.sparse import issparse

from ...utils._threads cimport over_rows
from ._kernels cimport (
    DPCD_LANES,
    DPCD_READ_AGAIN,
    DPCD_READ_ONCE,
    KERNELS,
    dpcd_matrix,
    dpcd_paying_threads,
    dpcd_rows_ahead,
    dpcd_tile,
    dpcd_tile_rows,
)
from ._records cimport Records, dpcd_add_columns, dpcd_dot_rows, dpcd_join_lanes

cdef enum:
    SPARSE_ROWS = 1024


# The products of rows start, ..., stop - 1, one output after the other in memory.
cdef struct Products:
    void *records
    Py_ssize_t n_outputs
    const double *v
    double *sums


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
        Of passes over dense records, and over sparse ones by row.

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
    cdef Products asked
    if v.shape[1] != records.p:
        raise ValueError(f"coef has {v.shape[1]} columns, X has {records.p}")
    if not out.size or not records.p:
        return out.T
    if records.is_sparse and not records.holds(by_row):
        raise MemoryError
    asked.records, asked.n_outputs = <void *>records, v.shape[0]
    asked.v, asked.sums = &v[0, 0], &sums[0, 0]
    if records.is_sparse and not by_row:
        if not _by_column(records, &asked):
            raise MemoryError
        return out.T
    over_rows(_sparse_rows if by_row else _dense_rows, &asked, records.n, records.p,
              dpcd_paying_threads(records.n_threads, records.n_entries))
    return out.T


cdef bint _dense_rows(void *of, Py_ssize_t share, Py_ssize_t i, Py_ssize_t stop) noexcept nogil:
    cdef const Products *asked = <Products *>of
    cdef dpcd_matrix *X = &(<Records>asked.records).X
    cdef Py_ssize_t k, n_rows, ahead, n = (<Records>asked.records).n, p = X.n_columns
    cdef Py_ssize_t tile_rows = dpcd_tile_rows(
        X, p, DPCD_READ_ONCE if asked.n_outputs == 1 else DPCD_READ_AGAIN)
    cdef double *room = NULL
    cdef dpcd_tile tile
    if asked.n_outputs > 1 and X.bounds.lo != NULL:  # read often: clipped once
        room = <double *>malloc(tile_rows * p * sizeof(double))
        if room == NULL:
            return False
    while i < stop:
        n_rows = min(tile_rows, stop - i)
        KERNELS.load(X, i, NULL, n_rows, NULL, p, room, &tile)
        ahead = dpcd_rows_ahead(tile_rows, n - i - n_rows)
        for k in range(asked.n_outputs):
            KERNELS.rows_dot(&tile, asked.v + k * p, False, 0 if k else ahead,
                             asked.sums + k * n + i)
        i += n_rows
    free(room)
    return True


cdef bint _sparse_rows(void *of, Py_ssize_t share, Py_ssize_t i, Py_ssize_t stop) noexcept nogil:
    cdef const Products *asked = <Products *>of
    cdef Py_ssize_t[SPARSE_ROWS] rows
    cdef Py_ssize_t k, n_rows, n = (<Records>asked.records).n, p = (<Records>asked.records).p
    while i < stop:
        n_rows = min(SPARSE_ROWS, stop - i)
        for k in range(n_rows):
            rows[k] = i + k
        for k in range(asked.n_outputs):
            dpcd_dot_rows(&(<Records>asked.records).rows, n_rows, rows, asked.v + k * p, False,
                          asked.sums + k * n + i)
        i += n_rows
    return True


cdef bint _by_column(Records records, const Products *asked) noexcept nogil:
    cdef Py_ssize_t k
    cdef double *lanes = <double *>calloc(records.n * DPCD_LANES, sizeof(double))
    for k in range(asked.n_outputs if lanes != NULL else 0):
        dpcd_add_columns(&records.columns, records.p, NULL, asked.v + k * records.p, False,
                         lanes)
        # and they are zeros again
        dpcd_join_lanes(records.n, NULL, lanes, asked.sums + k * records.n)
    free(lanes)
    return lanes != NULL
