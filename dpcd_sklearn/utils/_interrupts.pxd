cimport cython


cdef bint hold(error)


@cython.final
cdef class Interrupts:
    cdef int _left, _stride
    cdef bint _listens
    cdef double _seen, _asked

    cdef inline int look(self) except -1 nogil:
        """Raise what a signal handler raises, KeyboardInterrupt for Ctrl-C; 0 otherwise."""
        self._left -= 1
        return 0 if self._left > 0 else self._look_at_clock()

    cdef int _look_at_clock(self) except -1 nogil
