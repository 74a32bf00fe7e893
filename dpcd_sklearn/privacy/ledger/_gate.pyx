"""A gate for SQLite's connections, and descriptors of files, that no interrupt cuts in two.

A signal's handler, and what one thread raises in another, run between two bytecodes. Between
``acquire()`` and ``try`` there is one, and in a context manager of Python several: a Ctrl-C there
leaves a lock that nobody lets go, on which other threads' charges and ``os.fork`` wait. Here
nothing is between them but C. Where Python looks for signals after ``__enter__``, before the block
begins, no ``__exit__`` follows; but then the context dies with the frame's stack, and lets go.
"""

import os
import threading

from cpython.ref cimport Py_DECREF, Py_INCREF


cdef extern from "Python.h":
    int Py_AddPendingCall(int (*function)(void *) except -1, void *argument) noexcept


cdef int _raise(void *error) except -1:
    raised = <object>error
    Py_DECREF(raised)
    raise raised


cdef class Gate:
    """Held by a thread, which may enter again, while it has a connection; and by fork() itself.

    What a handler raises while a fork waits would be ignored, and the fork would go on with a
    connection open in another thread: it waits on, and the parent hears of it afterwards.
    """

    cdef object _lock, _raised

    def __init__(self):
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._before_fork, after_in_parent=self._after_fork,
                after_in_child=self._lock.release,
            )

    def _before_fork(self):
        raised = None
        while True:
            try:
                self._lock.acquire()
                break
            except BaseException as error:
                raised = error
        self._raised = raised

    def _after_fork(self):
        raised, self._raised = self._raised, None
        self._lock.release()
        if raised is not None:
            Py_INCREF(raised)
            if Py_AddPendingCall(_raise, <void *>raised):  # the queue is full
                Py_DECREF(raised)


cdef class Connected:
    """A context: a connection to a SQLite file, closed when it ends.

    Parameters
    ----------
    gate : Gate
    timeout : float
        Seconds to wait at it.
    check, connect : callable
        Called in this order behind the gate; `connect` is C's, and gives the connection.
    late : callable
        Gives the error to raise if the gate stayed shut.
    explained : callable
        What to raise in the place of an error of theirs or of the block's; None lets it pass.
    """

    cdef Gate _gate
    cdef object _timeout, _check, _connect, _late, _explained, _connection
    cdef bint _inside

    def __init__(self, Gate gate, timeout, check, connect, late, explained):
        self._gate, self._timeout = gate, timeout
        self._check, self._connect = check, connect
        self._late, self._explained = late, explained

    def __enter__(self):
        if self._inside:
            raise RuntimeError("a connection is one call's")
        if not self._gate._lock.acquire(timeout=self._timeout):
            raise self._late()
        self._inside = True
        try:
            self._check()
            self._connection = self._connect()
            self._connection.execute("PRAGMA synchronous = EXTRA")
        except BaseException as error:
            self._leave_with(error)
            raise
        return self._connection

    def __exit__(self, kind, error, traceback):
        if error is None:
            try:
                self._leave()
            except BaseException as late:
                self._raise_explained(late)
                raise
        else:
            self._leave_with(error)

    def __del__(self):
        self._leave()

    cdef _leave(self):
        """Close the connection, which rolls back what was not committed, and let go."""
        if not self._inside:
            return
        self._inside = False
        try:
            if self._connection is not None:
                self._connection.close()
        finally:
            self._connection = None
            self._gate._lock.release()

    cdef _leave_with(self, error):
        try:
            self._leave()
        finally:
            self._raise_explained(error)

    cdef _raise_explained(self, error):
        explained = self._explained(error)
        if explained is not None:
            raise explained from error


# Between two calls of C no signal's handler runs, so no descriptor is left open.


def make_empty(path):
    """Create an empty file, for its owner only."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def sync_folder(path):
    """Make names in a folder as durable as the files."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
