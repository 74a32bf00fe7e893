"""The integer grid that records are summed on, and the sensitivity of such a sum.

The unit is chosen by the noise: 2^bits units of standard deviation, so that a record counts for at
most 2^24 units (2^26 of whole rows) and the sum of all records is exact in a double.
Proofs: ``proofs/release_partial.md``, ``release_gradient.md``, ``release_mean.md``.
"""

import math

from libc.math cimport floor, sqrt

cpdef double record_limit(int bits, double noise_multiplier, double neighbors, Py_ssize_t size,
                          double slack=0.0) noexcept nogil:
    """K, the norm bound of one record's integers, such that 2^bits >= z * (sensitivity + slack).

    The sensitivity of the integer sums is `neighbors` (2 under replace-one, 1 under add-remove)
    times the largest norm of one record's integers: K for one entry, which is clamped, and
    K (1 + (size + 16) 2^-52) + sqrt(size) / 2 for a vector, whose entries are rounded after the
    clip. `slack` is what else may move the state between neighbours, in units.
    """
    cdef double norm = (2.0**bits / noise_multiplier - slack) / neighbors
    if size > 1 or slack > 0:
        norm = (norm - 0.5 * sqrt(<double>size)) / (1 + (size + 16) * 2.0**-52)
    return floor(norm)


cpdef int noise_bits(double noise_multiplier, double neighbors, double n_normalizer,
                     Py_ssize_t n_samples, Py_ssize_t size, double most=2.0**24) except -1:
    """The bits of a release of `size` entries or fewer, where a record has at most `most` units.

    Raises
    ------
    ValueError
        If the noise or the number of records is not positive and finite, no grid suits it, or there
        are more records than `doc/threat_model.rst` promises: nothing else depends on how many.
    """
    if not 0 < noise_multiplier < math.inf:
        raise ValueError(f"noise must be positive and finite, got {noise_multiplier!r}")
    if not 1 <= n_normalizer < math.inf:
        raise ValueError(f"n_normalizer is a public number of records, got {n_normalizer!r}")
    target = min(most, 2.0**50 / n_normalizer)
    bits = min(MAX_NOISE_BITS, math.floor(math.log2(noise_multiplier * neighbors * target)))
    if bits < 1 or record_limit(bits, noise_multiplier, neighbors, size) < 1:
        raise ValueError(f"noise multiplier {noise_multiplier:g} is out of the range that the "
                         "integer grid supports; change epsilon or max_iter")
    # a record has at most `target` units: sums below 2^52 are exact
    if n_samples > max(2.0**28, 4 * n_normalizer):
        raise ValueError("more than 2^28 records (or 4 n_public, if that is more) have no exact "
                         "sums; state a larger n_public or fit on fewer records")
    return bits
