"""The records as the kernels read them, in place; made and held by an oracle only."""

import numpy as np
from scipy import sparse

from ...utils._interrupts cimport hold

from ...utils._input import without_duplicates


cdef class Records:
    """Pointers to records, and what keeps their buffers alive.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features), float32 or float64
        Of an array rows or columns must be contiguous.
    y : ndarray of shape (n_samples,), float64, or None
        None where margins alone are asked for.
    sample_weight : ndarray of shape (n_samples,), float64, or None
    bounds : tuple (lo, hi, center) of float64 arrays of shape (n_features,), or None
        Records are clipped to [lo, hi] and centred while they are read; sparse ones have no
        center, and bounds that contain zero.
    n_threads : int
        How many threads may read records, at most; no sum depends on it.
    """

    def __init__(self, X, y, sample_weight=None, bounds=None, *, n_threads=1):
        self.n, self.p = X.shape
        self.n_threads = n_threads
        if X.dtype not in (np.float32, np.float64):
            raise TypeError("records must be float32 or float64")
        self._owners = []
        self.is_sparse = sparse.issparse(X)
        if self.is_sparse:
            self._set_sparse(X, bounds)
        else:
            self._set_dense(X, bounds)
        if y is not None:
            self.y = self._hold(y, self.n)
        if sample_weight is not None:
            self.weights = self._hold(sample_weight, self.n)

    def _set_dense(self, X, bounds):
        item = X.dtype.itemsize
        if not X.flags.aligned:
            raise TypeError("records must be aligned")
        if X.strides[1] == item or self.p == 1:
            self.X.c_order, stride = 1, X.strides[0]
        elif X.strides[0] == item or self.n == 1:
            self.X.c_order, stride = 0, X.strides[1]
        else:
            raise ValueError("rows or columns of X must be contiguous")
        self.n_entries, self.X.is_float = self.n * self.p, X.dtype == np.float32
        self.X.stride = stride // item
        self.X.data = <const void *><size_t>X.ctypes.data
        self.X.n_columns = self.p
        self._owners.append(X)
        if bounds is not None:
            lo, hi, center = bounds
            self.X.bounds.lo = self._hold(lo, self.p)
            self.X.bounds.hi = self._hold(hi, self.p)
            self.X.bounds.center = self._hold(center, self.p)

    def _set_sparse(self, X, bounds):
        if bounds is not None:
            lo, hi, center = bounds
            if (lo > 0).any() or (hi < 0).any() or center.any():
                raise ValueError("bounds of sparse records must contain zero, without centring")
            self.rows.lo = self.columns.lo = self._hold(lo, self.p)
            self.rows.hi = self.columns.hi = self._hold(hi, self.p)
        self._stored = canonical(X)
        self.n_entries = self._stored.nnz

    cdef bint holds(self, bint by_row) noexcept nogil:
        """Sparse records by row, or by column, sorted once; False when out of memory."""
        cdef dpcd_sparse *m = &self.rows if by_row else &self.columns
        if m.indptr == NULL:
            with gil:
                try:
                    self._point(m, self._stored.tocsr() if by_row else self._stored.tocsc())
                except BaseException as error:
                    return hold(error)
        return True

    cdef _point(self, dpcd_sparse *m, X):
        if X.indptr.dtype != X.indices.dtype:
            X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        for array in (X.indptr, X.indices, X.data):
            if not array.flags.c_contiguous or not array.flags.aligned:
                raise TypeError("the arrays of sparse records must be contiguous")
            self._owners.append(array)
        m.indptr = <const void *><size_t>X.indptr.ctypes.data
        m.indices = <const void *><size_t>X.indices.ctypes.data
        m.data = <const void *><size_t>X.data.ctypes.data
        m.is_float, m.is_long = X.dtype == np.float32, X.indices.dtype == np.int64

    def __reduce__(self):
        raise TypeError("records are never copied or pickled with a model")

    cdef const double *_hold(self, array, Py_ssize_t size) except NULL:
        cdef const double[::1] view = array
        if view.shape[0] != size:
            raise ValueError(f"expected {size} values, got {view.shape[0]}")
        self._owners.append(array)
        return &view[0]


def is_read_in_place(X):
    """Whether the cells of every row, or of every column, of an array lie side by side."""
    row_gap, column_gap = X.strides
    if column_gap == X.itemsize or X.shape[1] == 1:
        gap = row_gap
    elif row_gap == X.itemsize or X.shape[0] == 1:
        gap = column_gap
    else:
        return False
    return X.flags.aligned and gap >= 0 and gap % X.itemsize == 0


def canonical(X):
    """Sparse records with one entry a cell at most, as CSR or CSC in arrays that kernels read.

    A record is clipped cell by cell. See `without_duplicates`, also for what is refused.
    """
    X = without_duplicates(X)
    arrays = X.data, X.indices, X.indptr
    as_kernels_read = all(a.flags.c_contiguous and a.flags.aligned for a in arrays)
    dtypes = {X.indices.dtype, X.indptr.dtype}
    if as_kernels_read and dtypes in ({np.dtype(np.int32)}, {np.dtype(np.int64)}):
        return X
    return type(X)((X.data.copy(), X.indices.astype(np.int64), X.indptr.astype(np.int64)),
                   shape=X.shape)
