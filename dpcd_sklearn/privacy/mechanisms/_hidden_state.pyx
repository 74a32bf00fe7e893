"""Full-batch noisy descent of which only the last iterate leaves this room.

    W <- box(W - rint(γ λ W) - S(W) + floor(2^bits N)),  iterate w = W * unit

(a) The state W is a vector of integers and S(W) the integer sum of clipped gradients, in units
    chosen such that one unit of gradient moves the state by one: nothing is rounded between a sum
    and the next state but the noise, downwards, which is a function of the noisy state alone.
(b) Without noise the step is a contraction by c but for a public rounding error, and neighbours
    move it by the sensitivity of S. How much the last of T steps tells:
    ``proofs/release_last_iterate.md``.
(c) Rows are scaled down to the stated norm and weights count at most one, whatever the records.
"""

import math

import numpy as np
from libc.math cimport rint
from libc.stdint cimport int64_t

from ...losses._loss cimport Loss
from ...utils._interrupts cimport Interrupts
from ..noise._noise cimport NoiseSource
from ..sums._sums cimport Place, Question, Sums, question_of
from ._grid cimport MAX_NOISE_BITS, record_limit

from ..accounting._events import HiddenStateEvent
from ._questions import LastIterate, NoNoise, is_tape
from ._units import Units

# Integers of the state stay below this, and their products with γ λ < 2 in int64.
cdef double LARGEST_STATE = 2.0**61


class Descent(Units):
    """The public numbers of one descent, checked: what its proof assumes, and its units.

    Parameters
    ----------
    event : FitEvent
        One HiddenStateEvent.
    n_samples : int
    n_coordinates : int
    curvature : float
        Curvature of the loss, in the margin.
    squared_norm : float
        Bound on the squared norm of a record's features, the intercept's 1 included.
    clip : float
        Bound on the norm of a record's gradient.
    step : float
        γ, the step along the mean gradient.
    l2 : float
        λ of the ridge λ |w|² / 2, on every coordinate.
    n_normalizer : int

    Attributes
    ----------
    limit : float
        Units of `clip`.
    unit : float
        What one unit of the state is in the iterate.
    bits : int
        The noise has a standard deviation of 2^bits units.
    box : float
        States are clamped to it; far outside of what a descent reaches.

    Raises
    ------
    TypeError, ValueError
        If the event is another one, the steps do not contract as it says, or the numbers leave no
        room for exact integers.
    """

    def __init__(self, event, *, n_samples, n_coordinates, curvature, squared_norm, clip, step, l2,
                 n_normalizer):
        super().__init__(event, n_samples=n_samples, n_normalizer=n_normalizer, width=n_coordinates)
        release = self._only(HiddenStateEvent, "hidden descents")
        needed = contraction(step, l2, curvature * squared_norm)
        if not needed <= release.contraction <= 1:
            raise ValueError(f"steps contract by {needed}, the event says {release.contraction}")
        z, self.count = release.noise_multiplier, release.count
        if not self.count >= 1 or not 0 < z < math.inf:
            raise ValueError(f"noise and count must be positive and finite, got {release!r}")
        self.step, self.l2, self.clip = step, l2, clip
        self._facts = n_samples, n_coordinates, curvature, squared_norm
        # The kernels' guards against overflow are proved for this range.
        for value in (clip, squared_norm):
            if not 1e-30 < value < 1e30:
                raise ValueError("clip and the squared norm of a record must lie in (1e-30, 1e30); "
                                 "rescale the target or the features")
        # With K units a record the drift takes states to n K / (γ λ), and the noise's spread is
        # at most 2^bits / sqrt(γ λ); no descent comes to the box.
        # Under add_remove n_public must bound the number of records: a sum of more of them over
        # n_public would be steeper than the contraction counts with.
        if n_samples > n_normalizer:
            raise ValueError("hidden_state accounting needs n_public to be at least the number of "
                             "records; state a larger one")
        drift = 1.1 * n_normalizer / (step * l2)
        spread = 20 * z * self.neighbors / math.sqrt(step * l2)
        # and a record's integers stay below what the kernels round (2^50)
        target = min(2.0**49, 2.0**52 / n_normalizer, LARGEST_STATE / (drift + spread))
        self.bits = min(MAX_NOISE_BITS, math.floor(math.log2(z * self.neighbors * target)))
        self.limit = math.floor(2.0**self.bits / (z * self.neighbors))
        # 2^bits must be z times the sensitivity and twice the rounding error, which is taken at
        # this K: it is less at the smaller one that is left
        self.box = min(LARGEST_STATE, (drift + spread) * self.limit)
        error = self._rounding(n_normalizer, n_coordinates, curvature, squared_norm)
        self.limit = record_limit(self.bits, z, self.neighbors, n_coordinates, 2 * error)
        if self.limit < 2.0**10:
            raise ValueError(
                "hidden_state accounting leaves no exact integers for so many records, so long a "
                "memory (small alpha or step) or so little noise; use accounting='composition'"
            )
        self.unit = step * clip / (self.limit * n_normalizer)

    def check(self, *facts):
        """Raise ValueError unless the descent was planned for n, p, curvature and row norm."""
        if facts != self._facts:
            raise ValueError(f"the descent was planned for {self._facts}, not for {facts}")

    def _rounding(self, n, p, curvature, squared_norm):
        """Bound on the norm of a step's rounding error, in units."""
        share = self.step * self.clip / self.n_normalizer
        # of the state; of a margin; of the derivative; in the record's units
        state = share * self.box / self.limit * math.sqrt(p)
        margin = math.sqrt(squared_norm) * state * (p + 24) * 2.0**-52
        units = curvature * margin * math.sqrt(squared_norm) / self.clip * self.limit
        record = units + 0.5 * math.sqrt(p) + self.limit * (p + 64) * 2.0**-51
        decay = (0.5 + self.step * self.l2 * self.box * 2.0**-51) * math.sqrt(p)
        floor = math.sqrt(p)  # of the noisy state, whose contraction is at most one
        return n * record + decay + floor


def contraction(step, l2, smoothness):
    """c: how much a step of the ridge's descent brings two iterates together, rounded upwards."""
    return max(abs(1 - step * l2), abs(1 - step * (l2 + smoothness))) + 2.0**-50


def release_last_iterate(receipt, descent, Place place, *, Loss loss, row_norm,
                         bint fit_intercept, key=None):
    """Run the descent that the receipt pays for, from zero, and release its last iterate.

    Parameters
    ----------
    receipt : Receipt
        Proof that the descent's event was charged; it is redeemed here, once.
    descent : Descent
        Units of the public plan.
    place : Place
        Where the records lie. Weights above one count as one.
    loss : Loss
    row_norm : float
        Features longer than this are scaled down to it.
    fit_intercept : bool
        A last coordinate, with the ridge on it too.
    key : bytes of length 32, or None

    Returns
    -------
    coef : ndarray of shape (n_features + fit_intercept,)
    """
    n_coordinates = place.n_features + fit_intercept
    descent.check(place.n_samples, n_coordinates, loss.curvature, row_norm**2 + fit_intercept)
    descent.redeem(receipt, place, fit_intercept)
    sums = place.stated(loss, np.ones(n_coordinates), fit_intercept=fit_intercept,
                        row_norm=row_norm, max_weight=1.0)
    state = _last_state(sums, n_coordinates, descent, NoiseSource(None if is_tape(key) else key))
    if is_tape(key):  # the noise is in it; how far neighbours move it is not to be seen here
        state = key.release(state, LastIterate(descent.count, descent.clip), NoNoise())
    return state * descent.unit


def _last_state(Sums gradients, Py_ssize_t p, descent, NoiseSource noise):
    """The last state; no other one leaves this function."""
    cdef Py_ssize_t _t, j, count = descent.count
    cdef double unit = descent.unit, box = descent.box, decay = descent.step * descent.l2
    cdef int bits = descent.bits
    state = np.zeros(p, dtype=np.int64)
    cdef int64_t[::1] W = state
    cdef double[::1] w = np.zeros(p)
    cdef const int64_t *total
    cdef Question question = _question(&w[0], p, descent)
    cdef Interrupts interrupts = Interrupts()
    cdef bint done = True
    with nogil:
        for _t in range(count):
            for j in range(p):
                w[j] = <double>W[j] * unit
            # 1. the exact sum of clipped gradients at this state
            total = gradients.integers(&question)
            if total == NULL:
                done = False
                break
            for j in range(p):
                # 2. the step, in integers, and the noise
                W[j] -= <int64_t>rint(decay * <double>W[j]) + total[j]
                W[j] += noise.gaussian(bits)
                # 3. a public box
                W[j] = min(max(W[j], -<int64_t>box), <int64_t>box)
            if noise.failed:
                done = False
                break
            interrupts.look()
    if not done:
        raise RuntimeError("memory or noise ran out; what was charged stays charged")
    return state


cdef Question _question(const double *w, Py_ssize_t p, descent):
    """The whole gradient at w, in the units of the state."""
    cdef Question question = question_of(NULL, p, True, descent.clip, descent.limit)
    question.coef = w
    return question
