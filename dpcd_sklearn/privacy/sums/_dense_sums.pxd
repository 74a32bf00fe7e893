cimport cython

from ._kernels cimport dpcd_tile
from ._moving_sums cimport MovingSums
from ._sums cimport Question


# Buffers of one tile, for each output.
cdef struct Room:
    double *cells  # copies, where a tile is not read in place
    double *r  # derivatives
    double *margins  # side by side, as losses read those of several outputs
    double *norms  # of blocks
    dpcd_tile *tiles


@cython.final
cdef class DenseSums(MovingSums):
    cdef double[::1] _scale, _block_inverses

    cdef bint _pass(self, const Question *question) noexcept nogil
    cdef bint _reads_again(self, const Question *question) noexcept nogil
    cdef bint _make_room(self, Py_ssize_t n_rows, Py_ssize_t n_cells, Room *room) noexcept nogil
    cdef void _derive(self, Py_ssize_t i0, Py_ssize_t n_rows, const Room *room) noexcept nogil
    cdef void _load(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                    const Room *room) noexcept nogil
    cdef void _clip_tile(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                         const Room *room) noexcept nogil
    cdef double _column_sum(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                            Py_ssize_t ahead, const Room *room) noexcept nogil
    cdef void _sum_tile(self, const Question *question, Py_ssize_t i0, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, const Room *room,
                        double *sums) noexcept nogil
    cdef void _sum_part(self, const Question *question, Py_ssize_t k, Py_ssize_t n_rows,
                        Py_ssize_t ahead, bint halves, const Room *room,
                        double *sums) noexcept nogil
    cdef void _move_margins(self, Py_ssize_t i0, Py_ssize_t n_rows, Py_ssize_t ahead,
                            double *cells) noexcept nogil
