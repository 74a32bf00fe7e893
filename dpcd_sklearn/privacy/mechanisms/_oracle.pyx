"""The face of paid releases that solvers see: released numbers come out, public steps go in.

The declaration (``_oracle.pxd``) has no field, so a solver can't reach X or y.
"""

from ...penalties._penalty cimport Penalty, Rule

cdef enum:
    REFUSED = -1


cdef class SolverOracle:
    """The face that solvers see: releases that are paid for.

    Every method returns a negative number when the receipt admits no further release, or none of
    this kind.
    """

    cdef int release_partial(self, Py_ssize_t j, double *partial) noexcept nogil:
        """One noisy coordinate of the mean gradient at the current iterate."""
        return REFUSED

    cdef int release_gradient(self, const Py_ssize_t *block, Py_ssize_t size,
                              double *gradient) noexcept nogil:
        """A noisy block (ascending) of the mean gradient: gradient[k] is of coordinate block[k]."""
        return REFUSED

    cdef int release_argmax(self, Penalty penalty, Py_ssize_t n_penalized, Rule rule,
                            const double *coef, Py_ssize_t size, Py_ssize_t *chosen,
                            int *directions) noexcept nogil:
        """The `size` coordinates that promise most, by noisy argmax, and directions of their moves.

        In the order of the noisy scores; each of them is a choice that is paid for. The penalty is
        of the first `n_penalized` coordinates of every output.
        """
        return REFUSED

    cdef void apply_step(self, const Py_ssize_t *block, Py_ssize_t size,
                         const double *step) noexcept nogil:
        """Tell the oracle that the iterate moved by step[k] in coordinate block[k]."""
        pass

    cdef int release_mean(self, bint sampled, const double *coef, const double *anchor,
                          const double *directions, Py_ssize_t n_directions,
                          double *mean) noexcept nogil:
        """Release the noisy mean of clipped gradients; a negative number when not paid for.

        Parameters
        ----------
        sampled : of a Poisson sample (normalised by its expected size), or of all records.
        coef : in, the iterate, n_outputs x n_coordinates.
        anchor : in, another iterate, whose gradients are subtracted record by record, or NULL.
        directions : in, n_directions x n_coordinates: release products with these, or NULL.
        mean : out, n_outputs x (n_directions or n_coordinates).
        """
        return REFUSED
