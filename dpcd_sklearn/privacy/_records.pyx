"""The records as the kernels read them, in place; made and held by an oracle only."""

import numpy as np


cdef class Records:
    """Pointers to dense records, and what keeps their buffers alive.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64
        Rows or columns must be contiguous.
    y : ndarray of shape (n_samples,), float64
    sample_weight : ndarray of shape (n_samples,), float64, or None
    bounds : tuple (lo, hi, center) of float64 arrays of shape (n_features,), or None
        Records are clipped to [lo, hi] and centred while they are read.
    """

    def __init__(self, X, y, sample_weight=None, bounds=None):
        self.n, self.p = X.shape
        self.X.is_float = X.dtype == np.float32
        item = X.dtype.itemsize
        if X.dtype not in (np.float32, np.float64) or not X.flags.aligned:
            raise TypeError("records must be aligned float32 or float64")
        if X.strides[1] == item or self.p == 1:
            self.X.c_order, stride = 1, X.strides[0]
        elif X.strides[0] == item or self.n == 1:
            self.X.c_order, stride = 0, X.strides[1]
        else:
            raise ValueError("rows or columns of X must be contiguous")
        self.X.stride = stride // item
        self.X.data = <const void *><size_t>X.ctypes.data
        self.X.n_columns = self.p
        self._owners = [X]
        self.y = self._hold(y, self.n)
        if sample_weight is not None:
            self.weights = self._hold(sample_weight, self.n)
        if bounds is not None:
            self.X.lo, self.X.hi, self.X.center = (
                self._hold(bounds[0], self.p), self._hold(bounds[1], self.p),
                self._hold(bounds[2], self.p)
            )

    def __reduce__(self):
        raise TypeError("records are never copied or pickled with a model")

    cdef const double *_hold(self, array, Py_ssize_t size) except NULL:
        cdef const double[::1] view = array
        if view.shape[0] != size:
            raise ValueError(f"expected {size} values, got {view.shape[0]}")
        self._owners.append(array)
        return &view[0]
