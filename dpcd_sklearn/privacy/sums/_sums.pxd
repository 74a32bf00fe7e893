from libc.string cimport memset


# One question to the records: clipped sums of these coordinates at this iterate.
cdef struct Question:
    # Coordinate j of output k is k * n_coordinates + j, the intercept the last of an output.
    const Py_ssize_t *block  # ascending coordinates; NULL: all of them
    Py_ssize_t size  # of the block, or all coordinates; not read where there are directions
    bint joint  # the block's vector is clipped by its norm, else each coordinate by itself
    double clip  # of a coordinate in the geometry of M^(-1/2), or of the vector's norm
    double limit  # the integer units that are `clip`; 0: plain sums (epsilon = inf)
    const double *coef  # a stated iterate, n_outputs x n_coordinates; NULL: the one moved to
    const double *anchor  # another iterate, whose gradients are subtracted; or NULL
    const double *directions  # n_directions x n_coordinates: products with these; or NULL
    Py_ssize_t n_directions
    const Py_ssize_t *rows  # of these records alone, ascending; NULL: all
    Py_ssize_t n_rows


cdef inline Question question_of(const Py_ssize_t *block, Py_ssize_t size, bint joint, double clip,
                                 double limit) noexcept nogil:
    """A question about a block, or all coordinates (NULL), at the iterate moved to."""
    cdef Question question
    memset(&question, 0, sizeof(Question))
    question.block, question.size, question.joint = block, size, joint
    question.clip, question.limit = clip, limit
    return question


cdef class Sums:
    cdef readonly Py_ssize_t n_coordinates, n_outputs  # coordinates of an output

    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil
    cdef const double *answer(self, const Question *question) noexcept nogil


cdef class Place:
    pass
