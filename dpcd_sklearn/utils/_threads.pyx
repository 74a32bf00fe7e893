"""How many threads a fit may use, and the one place that shares rows among them."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from cython.parallel cimport prange

from ._interrupts cimport Interrupts


cdef extern from "_openmp.h":
    int dpcd_most_threads() noexcept nogil

_PROCESS = os.getpid()  # of the import: another one is a fork of it


def effective_n_threads(n_threads):
    """At most `n_threads`, and never more than there is room for.

    None stands for all that there is room for in the main thread, and for one in others. One in a
    forked process, where OpenMP may hang, and in joblib's worker threads, which are as many as the
    processors already. joblib's worker processes are told their share through OpenMP.
    """
    nested = get_active_backend()[0].nesting_level
    in_worker_thread = threading.current_thread() is not threading.main_thread()
    if os.getpid() != _PROCESS or (in_worker_thread and (nested or n_threads is None)):
        return 1
    return dpcd_most_threads() if n_threads is None else min(n_threads, dpcd_most_threads())


cdef bint in_shares(Work work, void *of, Py_ssize_t start, Py_ssize_t stop,
                    Py_ssize_t n_threads) noexcept nogil:
    """Do the work of rows start, ..., stop - 1, a share in each thread; False if a share failed."""
    cdef Py_ssize_t t, share = ((stop - start) // n_threads + 16) // 16 * 16
    cdef int n_failed = 0
    if n_threads == 1:
        return work(of, 0, start, stop)
    for t in prange(n_threads, num_threads=n_threads, schedule="static", chunksize=1):
        n_failed += not work(of, t, min(start + t * share, stop),
                             min(start + (t + 1) * share, stop))
    return n_failed == 0


cdef int over_rows(Work work, void *of, Py_ssize_t n_rows, Py_ssize_t n_columns,
                   Py_ssize_t n_threads) except -1:
    """Do the work of all rows, slab after slab, and let a signal interrupt it in between."""
    cdef Interrupts interrupts = Interrupts()
    cdef Py_ssize_t start = 0, stop, slab = n_threads * (SLAB // max(1, n_columns) // 16 + 1) * 16
    cdef bint enough
    while start < n_rows:
        interrupts.look()
        stop = min(start + slab, n_rows)
        with nogil:
            enough = in_shares(work, of, start, stop, n_threads)
        if not enough:
            raise MemoryError
        start = stop
    return 0


def call_in_threads(function, tasks, n_threads):
    """Call function(task) for every task, in so many threads."""
    if n_threads == 1:
        list(map(function, tasks))
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(function, tasks))  # where an error is raised again


_BLAS_LOCK = threading.Lock()
_BLAS_USERS = 0
_BLAS_LIMIT = None


@cache
def libraries():
    """Find the libraries whose threads can be limited, once a process.

    A search does so before its runs: else it would show later that a run of some solver took place.
    """
    return ThreadpoolController()


@contextmanager
def limited_blas(n_threads):
    """A context in which BLAS has at most so many threads.

    The limit is the process's: of fits that overlap in threads of their own the first one sets it,
    and the last one to leave puts back what was before all of them.
    """
    global _BLAS_USERS, _BLAS_LIMIT
    with _BLAS_LOCK:
        if _BLAS_USERS == 0:
            _BLAS_LIMIT = libraries().limit(limits=n_threads, user_api="blas")
        _BLAS_USERS += 1
    try:
        yield
    finally:
        with _BLAS_LOCK:
            _BLAS_USERS -= 1
            if _BLAS_USERS == 0:
                _BLAS_LIMIT.restore_original_limits()
                _BLAS_LIMIT = None
