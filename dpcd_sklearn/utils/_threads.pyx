"""How many threads a fit may use."""

import os
import threading
from contextlib import contextmanager
from functools import cache

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController


cdef extern from "_openmp.h":
    int dpcd_most_threads() noexcept nogil

_FORKED = False


def _notice_fork():
    global _FORKED
    _FORKED = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_notice_fork)


def most_threads():
    """The most that OpenMP admits: threadpoolctl, OMP_NUM_THREADS and joblib's workers set it."""
    return dpcd_most_threads()


def effective_n_threads(n_threads):
    """At most `n_threads`, and never more than there is room for.

    One in a forked process, where OpenMP may hang, and in joblib's worker threads, which are as
    many as the processors already. joblib's worker processes are told their share through OpenMP.
    """
    nested = get_active_backend()[0].nesting_level
    in_worker_thread = threading.current_thread() is not threading.main_thread()
    if _FORKED or (nested and in_worker_thread):
        return 1
    return min(n_threads, dpcd_most_threads())


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
