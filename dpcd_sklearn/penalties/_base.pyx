"""What a separable penalty is: value, proximal operator, and its greedy score; no data."""


cdef class Penalty:
    """A penalty that is a sum over coefficients.

    A subclass gives ``value``, ``prox`` and ``signed_score``. The guarantee of greedy selection
    rests on one property of the score, which a test checks for every penalty: for fixed w,
    smoothness and direction it is 1/sqrt(smoothness)-Lipschitz in the gradient.
    """

    name = None

    cdef double prox(self, double v, double step) noexcept nogil:
        """argmin over u of (u - v)^2 / 2 + step * penalty(u)."""
        return v

    cdef double signed_score(self, double w, double gradient, double smoothness,
                             int direction) noexcept nogil:
        """How much a move of w upwards (direction 1) or downwards (-1) promises (rule GS-r)."""
        return 0.0

    def value(self, coef):
        """Penalty of a coefficient vector."""
        raise NotImplementedError

    def proximal(self, double v, double step):
        """``prox`` for Python callers."""
        return self.prox(v, step)

    def greedy_score(self, double w, double gradient, double smoothness, int direction):
        """``signed_score`` for Python callers."""
        return self.signed_score(w, gradient, smoothness, direction)
