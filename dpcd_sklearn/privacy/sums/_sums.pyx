"""The face of this room: one question to records, wherever they lie, and integers for an answer.

(a) A ``Place`` knows where records lie. A mechanism opens it once it has redeemed its receipt, and
    gets ``Sums``; nothing was read before.
(b) ``Sums`` answer a ``Question`` with the integer sums over records of clipped contributions.
    They are exact, so partial sums over parts of the records, added up in any order, are the same
    integers. No noise and no budget is known here: what is answered is secret.
(c) A contribution is a deterministic function of the record and the question (with the moves so
    far): each entry is at most ``limit`` in size, and where ``joint`` so is the norm of the
    vector before its entries are rounded.
(d) Asked for counts, a ``Place`` answers how many records lie in each of some public cells.
"""


cdef class Sums:
    """Clipped integer sums of these coordinates at this iterate."""

    reads_short_rows = True  # whether gradients in a geometry may be sums of rows of 16 bits

    cdef bint move(self, const Py_ssize_t *block, Py_ssize_t size,
                   const double *step) noexcept nogil:
        """The iterate moved by step[k] in coordinate block[k]; False when out of memory."""
        return False

    cdef const double *answer(self, const Question *question) noexcept nogil:
        """The sums, to be read until the next call; NULL when out of memory.

        They are integers below 2^53, which doubles hold. With a limit of zero, for fits without
        noise, nothing is clipped and rounded.
        """
        return NULL

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")


cdef class Place:
    """Where records lie. Opening it reads them: only the holder of a redeemed receipt may."""

    n_targets = 1
    samples_rows = False  # whether there are `of_rows`

    def moving(self, loss, smoothness, *, fit_intercept, n_outputs=1, whole=False):
        """Sums at an iterate that starts at zero and moves by steps.

        Parameters
        ----------
        loss : Loss
        smoothness : ndarray of shape (n_outputs * n_coordinates,)
            M_kj, public, output by output; the intercept, if any, comes last in each of them.
        fit_intercept : bool
        n_outputs : int, default=1
            Margins of a record. A coordinate is one of one output.
        whole : bool, default=False
            Whether all questions are of all coordinates, clipped by their norm, with the same M_j
            in all outputs. Records may then be read as rows of 16 bits.

        Returns
        -------
        Sums
        """
        raise NotImplementedError

    def stated(self, loss, smoothness, *, fit_intercept, n_outputs=1):
        """Sums of whole gradients, or of their products with directions, at stated iterates.

        Parameters
        ----------
        loss, fit_intercept, n_outputs : as of `moving`
        smoothness : ndarray of shape (n_coordinates,)
            M_j, public, of every output.

        Returns
        -------
        Sums
        """
        raise NotImplementedError

    def second_order(self, loss, smoothness, *, fit_intercept, n_outputs=1,
                     max_weight=float("inf")):
        """Sums of squares and products of rows, and of gradients in a geometry made of them.

        Parameters
        ----------
        loss, fit_intercept, n_outputs : as of `moving`
        smoothness : ndarray of shape (n_coordinates,)
            M_j, public.
        max_weight : float, default=inf
            Weights above it count as it.

        Returns
        -------
        GeometrySums
        """
        raise NotImplementedError

    def counts(self, of, *, edges=None, around=None):
        """Numbers of records in public cells; see ``_counts``.

        Each record lies in one cell of each column, whatever its weight, and where that is follows
        from the record and public numbers alone.

        Parameters
        ----------
        of : {"features", "target", "row_norm", "outside"}
            As they are, before any clip. "outside" counts who lies within bounds of all columns,
            and who does not, for each of several bounds; see `count_outside`.
        edges : pair (lo, hi) of float64 arrays of shape (n_columns,), or None
            Public ends of linear cells; or bounds, of shape (n_bounds, n_columns).
        around : pair (center, unit) of float64 arrays of shape (n_columns,), or None
            Public, of half octaves of distances, or from where the norm of a row is taken. Without
            both octaves of absolute values are counted.

        Returns
        -------
        counts : int64 ndarray of shape (n_columns, n_cells)
            The target and the norm are one column; bounds are a column each.
        """
        raise NotImplementedError

    def moments(self, *, centered):
        """Weighted moments of the features, for fits without noise alone: see Moments.

        Parameters
        ----------
        centered : bool
            Around the means, which sparse records never are.

        Returns
        -------
        Moments
        """
        raise NotImplementedError

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")
