"""The columns that go best with the target: k choices by one draw of Gumbel noise.

(a) The score of a column is the length of its sum of products with the target, less the target's
    mean, which was released before: |Σ x (y - m)| of numbers, Σ_k |Σ x ([y = k] - m_k)| of classes.
(b) The k largest noisy scores are k choices without replacement (Luce's axiom), as in
    ``release_argmax``; the scores do not leave.
(c) The sensitivity is written here, once. Proof: ``proofs/release_columns.md``.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..accounting._events import SelectionEvent
from ..sums._score_of_columns import ONE
from ._quantiles import LEAST_RANGE, MOST_RANGE
from ._questions import Question, source_of
from ._units import GUMBEL_ROUNDING, Units

MOST_CLASSES = 256


def columns_sensitivity(n_classes, neighboring):
    """How far one record moves the score of a column, in units; 0 classes are a number."""
    of_one = 2 * ONE if n_classes else ONE
    return {"replace_one": 2, "add_remove": 1}[neighboring] * of_one + 2  # for rounding


@dataclass(frozen=True, eq=False)
class ColumnScores(Question):
    """For each column the length of its sum of products with the target, less the target's mean."""

    means: np.ndarray
    target_bounds: tuple | None

    def answer(self, place):
        if self.target_bounds is None:
            shares = np.maximum(self.means, 0.0)
            whole = math.fsum(shares)
            shares = shares / whole if whole > 0 else np.full(len(shares), 1 / len(shares))
            sums = place.by_class()
            sums = sums - shares[:, np.newaxis] * sums.sum(axis=0)
        else:
            lo, hi = self.target_bounds
            mean = float(np.clip(self.means[0], lo, hi))
            sums = place.products(mean, max(hi - mean, mean - lo))
        return np.rint(np.abs(sums).sum(axis=0)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ColumnChoices:
    """Chooses the columns of the largest scores, the best first."""

    count: int
    eta: float
    noise_scale: float  # 0 chooses without noise

    def release(self, exact, noise):
        keys = -exact
        if self.noise_scale:
            keys = noise.log_exponentials(len(exact)) - exact / self.noise_scale
        return np.argsort(keys, kind="stable")[: self.count]

    def excess(self, exact, neighbour):
        """The range by which log odds differ, over that which is paid for."""
        return np.ptp(neighbour - exact) / self.noise_scale / self.eta if self.noise_scale else 0.0


class ColumnUnits(Units):
    """Noise of choices of columns.

    Parameters
    ----------
    event : FitEvent
        One SelectionEvent of as many choices as columns are chosen, or a NonPrivateEvent.
    n_samples, n_normalizer, width : as of Units
    n_chosen : int
        At most the width.

    Raises
    ------
    TypeError, ValueError
        If the event holds something else, or the numbers are outside of what is proved.
    """

    def __init__(self, event, *, n_chosen, width, **numbers):
        super().__init__(event, width=width, **numbers)
        self.n_chosen = n_chosen
        if not 1 <= n_chosen <= width:
            raise ValueError(f"k={n_chosen} columns can't be chosen of {width}; lower k")
        if self.n_samples > 2**28:
            raise ValueError("more than 2^28 records have no exact sums; fit on fewer records")
        if self.noiseless:
            return
        choices = self._only(SelectionEvent, "choices of columns")
        self.eta = choices.eta
        if choices.count != n_chosen or not LEAST_RANGE <= self.eta <= MOST_RANGE:
            raise ValueError(f"{n_chosen} choices of columns are not paid for by {event}")

    def choices(self, n_classes):
        """The mechanism; its scale is that of the Gumbel noise on scores."""
        if self.noiseless:
            return ColumnChoices(self.n_chosen, 0.0, 0.0)
        sensitivity = columns_sensitivity(n_classes, self.event.neighboring)
        scale = 2 * sensitivity / self.eta * GUMBEL_ROUNDING
        return ColumnChoices(self.n_chosen, self.eta, scale)


class ColumnOracle:
    """Chooses columns, once.

    Parameters
    ----------
    receipt : Receipt
        Proof that the units' event was charged; it is redeemed here, once.
    units : ColumnUnits
    place : TargetPlace
    key : bytes of length 32, default=None
        Reproducible noise, which protects nobody.
    """

    def __init__(self, receipt, units, place, *, key=None):
        units.redeem(receipt, place)
        self._units, self._place, self._source, self._left = units, place, source_of(key), 1

    def release_columns(self, means, target_bounds=None):
        """The columns of the largest noisy scores, the best first.

        Parameters
        ----------
        means : float64 ndarray of shape (n_targets,)
            Public, or released before: of the number, or shares of the classes.
        target_bounds : pair (lo, hi) of float, default=None
            Public bounds of a number; None is classes.

        Returns
        -------
        intp ndarray of shape (n_chosen,)

        Raises
        ------
        RuntimeError
            If it was not paid for a second time; nothing is drawn.
        """
        if len(means) > MOST_CLASSES:
            raise ValueError(f"columns are chosen by {MOST_CLASSES} classes at most")
        if not self._left:
            raise RuntimeError("these choices of columns were paid for once")
        self._left = 0
        choices = self._units.choices(len(means) if target_bounds is None else 0)
        return self._source.release(self._place, ColumnScores(means, target_bounds), choices)

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")
