"""The one place where a question meets records, and where noise is added to its answer.

(a) A ``Question`` is frozen: it knows which sum it asks for. Its answer is exact integers, in units
    of which a record moves no more than the sensitivity of the mechanism; it is secret.
(b) A mechanism is frozen too, and makes a released answer of an exact one: ``GaussianNoise`` here,
    choices beside their oracles. It knows what it claims, so that a test can hold it to it.
(c) Both meet in ``Source.release`` and nowhere else. Whoever stands there sees all that is asked of
    records and all that comes out: ``dpcd_sklearn.testing`` does.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..noise._noise import NoiseSource


@dataclass(frozen=True, eq=False)
class Question:
    """A sum over records; its fields are the public numbers that fix it.

    Its `name` is that of the kind of release in tables, but for choices of cells and scores.
    """

    def answer(self, place):
        """Exact integers; secret."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Answered(Question):
    """A question that compiled sums answer: what it is asked of is its answer."""

    def answer(self, place):
        return place


@dataclass(frozen=True, eq=False)
class GradientSums(Answered):
    """Clipped sums of gradients at an iterate, of all records or of a secret sample."""

    block: tuple | None  # coordinates; None is all
    joint: bool
    sampled: bool
    clip: float
    limit: float
    iterate: np.ndarray
    anchor: np.ndarray | None = None
    directions: np.ndarray | None = None

    @property
    def name(self):
        if self.sampled:
            return "gradients of samples"
        return "gradients" if self.joint else "coordinates of gradients"


@dataclass(frozen=True, eq=False)
class Gram(Question):
    """Sums of products of rows that are clipped to a norm, which has so many units."""

    row_norm: float
    units: float
    keeps: bool = False  # rows for the gradients that follow
    name = "curvature"

    def answer(self, place):
        return place.gram(self.row_norm, self.units, self.keeps)


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Adds floor(2^bits N) to every integer; neighbours move the answer by 2^bits / z at most."""

    bits: int
    noise_multiplier: float
    count = 1  # of releases that are paid for

    def release(self, exact, noise):
        return exact + noise.gaussians(exact.size, self.bits).reshape(exact.shape)

    def excess(self, exact, neighbour):
        """The distance of two answers over the sensitivity: at most 1 where the claim holds."""
        moved = np.asarray(neighbour, dtype=object) - np.asarray(exact, dtype=object)
        distance = sum(int(step) ** 2 for step in moved.flat) ** 0.5
        return distance * self.noise_multiplier / 2.0**self.bits


class Choices:
    """Report noisy max: of each row of scores, the options whose scores with noise are largest.

    A kind of choice has a method ``tables(exact)``: scores over the scale of their Gumbel noise, by
    rows and options, in one table or several; without noise in any units. -infinity is no
    candidate. Neighbours move the log odds of two options of a row by `eta` at most.

    Attributes
    ----------
    eta : float or None
        Bounded range of each choice; None chooses without noise.
    count : int
        How many options are chosen of each row, the best first.
    width : int
        How many options beside each other are one group, of which one is chosen at most.
    prior : float64 ndarray of shape (n_options,), or None
        Public odds of the options.
    """

    count, width, prior = 1, 1, None

    def release(self, exact, noise):
        """Numbers of the options chosen in each row, of shape (n_rows, count)."""
        return np.concatenate([self.chosen(scores, noise) for scores in self.tables(exact)])

    def chosen(self, scores, noise):
        """The options of each row of one table."""
        if self.eta is None:
            keys = -scores
        else:
            keys = noise.log_exponentials(scores.size).reshape(scores.shape)
            keys -= 0.0 if self.prior is None else np.log(self.prior)
            keys -= scores
        if self.count == 1:
            return keys.argmin(axis=1)[:, np.newaxis]
        keys = keys.reshape(len(keys), -1, self.width)
        groups = np.argsort(keys.min(axis=2), axis=1, kind="stable")[:, : self.count]
        within = np.take_along_axis(keys.argmin(axis=2), groups, axis=1)
        return groups * self.width + within

    def excess(self, exact, neighbour):
        """The range by which log odds differ, over that which is paid for."""
        if self.eta is None:
            return 0.0
        pairs = zip(self.tables(exact), self.tables(neighbour), strict=True)
        with np.errstate(invalid="ignore"):  # of options that are no candidates, here and there
            moved = np.concatenate([after - before for before, after in pairs])
            return np.max(np.nanmax(moved, axis=1) - np.nanmin(moved, axis=1)) / self.eta


@dataclass(frozen=True, eq=False)
class GreedyChoices(Choices):
    """Chooses coordinates and their directions, as a compiled oracle does.

    Option 2 j is a move down of coordinate j, option 2 j + 1 a move up.
    """

    eta: float
    scores: Callable  # from the exact sums of all coordinates: down and up, in scales of the noise
    public: tuple  # what the scores depend on besides
    count: int
    width = 2

    def tables(self, exact):
        return [np.reshape(self.scores(exact), (1, -1))]


@dataclass(frozen=True, eq=False)
class NoNoise:
    """Releases the answer as it is: at epsilon=inf, where nothing is protected."""

    count = 0

    def release(self, exact, noise):
        return exact

    def excess(self, exact, neighbour):
        return 0.0


class Source:
    """Asks records and adds noise.

    Parameters
    ----------
    key : bytes of length 32, or None
        As of NoiseSource.
    """

    def __init__(self, key=None):
        self._noise = NoiseSource(key)

    def release(self, place, question, mechanism):
        """The released answer to a question that a receipt was redeemed for."""
        return mechanism.release(question.answer(place), self._noise)

    def sample(self, n_rows, halvings):
        """Numbers of rows, each drawn by a secret coin of its own, of probability 2^-halvings."""
        return self._noise.sample(n_rows, halvings)

    def __reduce__(self):
        raise TypeError("a source of noise is never copied or pickled")


def source_of(key):
    """The source behind a key of noise; a test's tape is one by itself."""
    return key if is_tape(key) else Source(key)


def is_tape(key):
    """Whether a key of noise is a tape, which stands in place of a source."""
    return hasattr(key, "release")
