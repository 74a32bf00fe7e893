"""The tight curve of adaptive bounded-range selections, and the convex hull of any curve.

The former is V_k of ``proofs/selections.md``.

V(x), x = e^ε, is the largest δ(ε) of k adaptive choices of bounded range η. It is convex and
decreasing in x with V(0) = 1, and V_{k+1}(x) is the highest chord of V_k over an interval
[e^a, e^{a+η}] that contains x. Here it is kept on a grid of ε, from above:

(a) between grid points V lies below its chord, so chords between grid points are known from above;
(b) of an interval between two grid positions the chord exceeds the higher one of its two
    neighbours by a second-order term at most, which is added to both;
(c) left of the grid V lies below the chord from V(0) = 1, right of it below its last value.

Every operation is a sum of positive terms, hence good to a few units in the last place, and each
step is inflated by more than that.
"""

import math

import numpy as np
from libc.math cimport expm1

# Relative rounding of one step: ten operations of 2^-53 each.
cdef double UP = 1 + 2.0**-48


def loss_distribution(double eta, Py_ssize_t count, Py_ssize_t cells, double tail):
    """A distribution of privacy loss that dominates `count` adaptive choices of range `eta`.

    Parameters
    ----------
    eta : float, > 0
        Bounded range of one choice.
    count : int, >= 1
    cells : int, >= 2
        Grid cells for one range: the excess over the true curve falls with their square.
    tail : float, > 0
        Probability that may be moved to the ends of the grid.

    Returns
    -------
    losses, masses : ndarray of shape (n,)
        Finite losses, ascending, and their probabilities.
    infinite : float
        Probability of an infinite loss.
    """
    cdef double h = eta / cells, kappa = math.expm1(h)
    # Hoeffding: the loss of all choices has mean in [0, count eta²/8] and `count` ranges eta.
    cdef double spread = eta * math.sqrt(count * math.log(1 / tail) / 2)
    cdef Py_ssize_t right = math.ceil(min(count * eta, count * eta * eta / 8 + spread) / h) + 1
    cdef Py_ssize_t left = math.ceil(min(count * eta, spread) / h) + 1
    losses = h * np.arange(-left, right + 1)
    # `cells` more points on both sides, where V is known by (c)
    x = np.exp(h * np.arange(-left - cells, right + cells + 1))
    values = np.maximum(1 - x, 0.0)
    following, gap = values.copy(), np.zeros_like(values)
    # of the two ends of an interval whose lower end is k cells below x
    offsets = h * np.arange(cells + 1)
    cdef double[::1] lower = np.exp(offsets) * np.expm1(offsets[::-1]) / math.expm1(eta)
    cdef double[::1] upper = np.expm1(offsets) / math.expm1(eta)
    # of the cells beside the lower end
    cdef double[::1] excess = np.exp(offsets) * kappa**2 / (4 * math.expm1(eta))
    cdef double[::1] now = values, then = following, room = gap
    cdef const double[::1] position = x
    cdef Py_ssize_t n = left + right + 1, step, start, end, i
    with nogil:
        for step in range(count):
            # so many choices have no losses farther out, where V is (1 - x)_+
            start, end = max(0, left - (step + 1) * cells), min(n, left + (step + 1) * cells + 1)
            _choose(now, then, room, lower, upper, excess, kappa, cells, n, start, end)
            for i in range(cells):  # (c)
                then[i] = 1.0 - (1.0 - then[cells]) * (position[i] / position[cells])
                then[cells + n + i] = then[cells + n - 1]
            now, then = then, now
    final = np.asarray(now[cells - 1:cells + n + 1])
    # V(x) = sum of mass_i (1 - x / x_i)_+ : masses are the bends of the piecewise linear curve
    intercepts = final[:n + 1] - np.diff(final) / kappa
    masses = np.maximum(-np.diff(intercepts), 0.0)
    return losses, masses, float(final[n + 1])


def lower_hull(const double[::1] values, double step, double widest):
    """The points that are on the convex hull of a curve and (0, 1), on a grid of ε, in x = e^ε.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
        δ at each point of the grid, whose distance is `step`.
    widest : float
        Chords of more ε are taken for this long.

    Returns
    -------
    kept : intp ndarray of shape (m,)
    intercepts : ndarray of shape (m,)
        At x = 0, of the chord that ends at each kept point; 1 for the first.
    """
    cdef Py_ssize_t k, m = 0, n = values.shape[0]
    cdef double intercept = 1.0
    kept, intercepts = np.empty(n, dtype=np.intp), np.empty(n)
    cdef Py_ssize_t[::1] at = kept
    cdef double[::1] bend = intercepts
    for k in range(n):
        while m > 0:
            intercept = values[at[m - 1]] - values[k]
            intercept /= expm1(min(step * (k - at[m - 1]), widest))
            intercept += values[at[m - 1]]
            # where points lie above the chord of their neighbours the chord is the better bound
            if intercept <= bend[m - 1]:
                break
            m -= 1
        at[m], bend[m] = k, intercept if m > 0 else 1.0
        m += 1
    return kept[:m], intercepts[:m]


cdef void _choose(const double[::1] now, double[::1] then, double[::1] room,
                  const double[::1] lower, const double[::1] upper, const double[::1] excess,
                  double kappa, Py_ssize_t cells, Py_ssize_t n, Py_ssize_t start,
                  Py_ssize_t end) noexcept nogil:
    """One more choice: then[i] = the highest chord of `now` over i, on these of n inner points."""
    cdef Py_ssize_t i, k, last = n + 2 * cells - 1
    cdef const double *low
    cdef const double *high
    cdef const double *around
    cdef double *out = &then[cells]
    cdef double alpha, beta, bump, value
    # intercepts at x = 0 of the grid's chords, and their decrease over one range
    for i in range(last):
        room[i] = now[i] + (now[i] - now[i + 1]) / kappa
    room[last] = now[last]
    for i in range(last + 1 - cells):
        value = room[i] - room[i + cells]
        room[i] = value if value > 0.0 else 0.0
    # the first and the last interval end at x: (b) of the one cell of others beside each
    for i in range(start, end):
        bump, value = excess[cells] * room[i], excess[1] * room[cells + i - 1]
        out[i] = now[cells + i] + (value if value > bump else bump)
    # (b) of the two cells beside the lower end of any other, as seen from it
    for i in range(last - cells, 0, -1):
        value = room[i - 1] * (1 + kappa)
        room[i] = value if value > room[i] else room[i]
    for k in range(1, cells):
        alpha, beta, bump = lower[k], upper[k], excess[k]
        low, high, around = &now[cells - k], &now[2 * cells - k], &room[cells - k]
        for i in range(start, end):
            value = alpha * low[i] + beta * high[i] + bump * around[i]
            out[i] = value if value > out[i] else out[i]
    for i in range(start, end):
        value = out[i] * UP
        out[i] = value if value < 1.0 else 1.0
