"""Ctrl-C inside a long loop without the GIL: the one place that asks Python for signals.

A loop over releases calls ``look`` after each of them. Releases take 200 ns to many seconds, so
that what counts is the time since Python was asked, not how many they were; and the clock is read
after every release, but for those that are so short that reading it would show.

A handler runs in any Python code of the main thread, that of a kernel's `with gil` included, whose
errors could not go up: ``hold`` keeps them, and who then finds the kernel out of memory raises what
is ``held``.
"""

import threading

from cpython.exc cimport PyErr_CheckSignals


cdef extern from "_clock.h":
    double dpcd_seconds() noexcept nogil

cdef enum:
    MOST_CALLS = 64  # between two looks at the clock: together they take BRIEF, or what one takes

cdef double BRIEF = 1e-3
cdef double PATIENCE = 0.2  # seconds between two questions to Python, which need the GIL


_THREAD = threading.local()


cdef bint hold(error):
    """Keep what was raised in a kernel that gives up, and return False as its result."""
    _THREAD.error = error
    return False


def held(error):
    """Return what was raised in a kernel of this thread, or else `error`."""
    found, _THREAD.error = getattr(_THREAD, "error", None), None
    return error if found is None else found


cdef class Interrupts:
    """Made by the thread whose loop it is for; signals are handled by the main thread alone."""

    def __init__(self):
        held(None)
        self._listens = threading.current_thread() is threading.main_thread()
        self._left = self._stride = 1
        self._seen = self._asked = dpcd_seconds()

    cdef int _look_at_clock(self) except -1 nogil:
        cdef double now = dpcd_seconds()
        self._stride = min(2 * self._stride, <int>MOST_CALLS) if now - self._seen < BRIEF else 1
        self._left = self._stride
        self._seen = now
        if self._listens and now - self._asked >= PATIENCE:
            self._asked = now
            with gil:
                PyErr_CheckSignals()  # declared `except -1`: what a handler raises goes up
        return 0
