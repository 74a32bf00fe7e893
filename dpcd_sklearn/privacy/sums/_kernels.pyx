"""The kernels over tiles of dense records, compiled twice: the faster ones if the processor can.

Both give the same bits. See ``_kernels.h``.
"""

cdef extern from "_kernels_twice.h":
    const dpcd_kernels *dpcd_choose_kernels() noexcept nogil
    int dpcd_uses_avx2() noexcept nogil

KERNELS = dpcd_choose_kernels()


def instruction_set():
    """Name of the compilation that is used: "avx2" or "portable"."""
    return "avx2" if dpcd_uses_avx2() else "portable"
