from libc.stdint cimport uint64_t

from ..sums._sums cimport Question


cdef enum:
    MAX_NOISE_BITS = 48

cpdef double record_limit(int bits, double noise_multiplier, double neighbors, Py_ssize_t size,
                          double slack=*) noexcept nogil
cpdef int noise_bits(double noise_multiplier, double neighbors, double n_normalizer,
                     Py_ssize_t n_samples, Py_ssize_t size, double most=*) except -1


cdef class Units:
    cdef readonly object event
    cdef readonly Py_ssize_t n_samples, width
    cdef readonly bint noiseless
    cdef readonly double n_normalizer, neighbors


cdef class GeometryUnits(Units):
    cdef readonly Py_ssize_t n_coordinates, n_outputs
    cdef readonly object smoothness


cdef class CoordinateUnits(GeometryUnits):
    cdef readonly Py_ssize_t n_gaussians, n_selections
    cdef readonly int bits
    cdef readonly bint whole
    cdef readonly double coordinate_clip, noise_multiplier, eta, units_per_noise

    cdef Question question(self, const Py_ssize_t *block, Py_ssize_t size,
                           bint joint) noexcept nogil
    cdef double block_clip(self, Py_ssize_t size) noexcept nogil
    cdef double limit(self, Py_ssize_t size) noexcept nogil
    cdef double score_sensitivity(self) noexcept nogil
    cdef double most_public_score(self, Py_ssize_t size) noexcept nogil


# One kind of release: how many are paid for, and its noise in units.
cdef struct Paid:
    Py_ssize_t count
    double noise_multiplier
    int bits


cdef class MeanUnits(GeometryUnits):
    cdef readonly double clip, anchor_clip, rate
    cdef uint64_t threshold
    cdef Paid full, sampled

    cdef Question question(self, bint sampled, const double *coef, const double *anchor,
                           const double *directions, Py_ssize_t n_directions) noexcept nogil
    cdef double limit(self, bint of_sample, Py_ssize_t size) noexcept nogil
