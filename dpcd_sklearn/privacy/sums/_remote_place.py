"""Records in parts, wherever they lie: one question travels to all parts, and sums come back.

(a) An ``Opening`` says what is summed (public facts), a *change* what the iterate or the geometry
    became, and a *question* what is asked. A part of the records that is told the opening and all
    changes since answers with the same integers, whoever answered before it: what a part remembers
    between two questions is a short cut.
(b) Integers are added up here, and are those that one place would have summed.
"""

from functools import partial, wraps
from typing import NamedTuple

import numpy as np

from ._exact_moments import Moments
from ._geometry_sums import GeometrySums
from ._person_sums import PersonSums
from ._remote_sums import RemoteSums, answer, make_move
from ._sums import Place


class Opening(NamedTuple):
    """Which sums of a Place are asked for: the name of its method, and public arguments."""

    kind: str
    loss: object
    smoothness: np.ndarray
    options: dict

    def of(self, place):
        """The sums of a place."""
        return getattr(place, self.kind)(self.loss, self.smoothness, **self.options)


class Part:
    """One part of the records, where it lies: answers, and what it remembers between them.

    Parameters
    ----------
    place : LocalPlace
        Of at least one record.
    """

    def __init__(self, place):
        self._place, self._sums = place, None

    def answer(self, opening, changes, question):
        """Partial sums, from what is public; secret.

        Parameters
        ----------
        opening : Opening or None
            Begin anew; None goes on with the sums that are open.
        changes : sequence of tuples (name, *arguments)
            Since the last question.
        question : tuple (name, *arguments)

        Returns
        -------
        ndarray or Moments
        """
        if opening is not None:
            self._sums = opening.of(self._place) if opening.kind is not None else None
        for name, *arguments in changes:
            if name == "move":
                make_move(self._sums, *arguments)
            else:
                self._sums.measure(*arguments)
        name, *arguments = question
        if name == "sums":
            return answer(self._sums, *arguments)
        *of, options = arguments
        asked = self._place if self._sums is None else self._sums
        return getattr(asked, name)(*of, **options)

    def __reduce__(self):
        raise TypeError("what reads records is never copied or pickled")


# Places, not sums, are asked.
_PLACE = Opening(None, None, np.empty(0), {})


class Dialogue:
    """Questions to all parts of the records in turn, about sums that were opened once.

    Parameters
    ----------
    ask : callable
        ``ask(dialogue, question)`` gives a list of partial answers, of one or more parts each. It
        tells a part the opening first and every change once, in their order, before the question.
    opening : Opening

    Attributes
    ----------
    changes : list of tuples
        All of them: a part that lost its memory is told them again.
    failed : bool
        Whether an answer was lost, after which nothing more is asked.
    """

    def __init__(self, ask, opening):
        self.opening, self.changes, self.failed = opening, [], False
        self._ask = ask

    def change(self, name, *arguments):
        """Tell the parts what became of the iterate or the geometry."""
        self.changes.append((name, *arguments))

    def answers(self, name, *arguments):
        """Answers of the parts."""
        if self.failed:
            raise RuntimeError("the records were lost, and nothing more is asked of them")
        return self._ask(self, (name, *arguments))

    def ask(self, name, *arguments):
        """The sum of the answers of all parts."""
        first, *others = self.answers(name, *arguments)
        total = first.copy()
        for part in others:
            if part.shape != total.shape or part.dtype != total.dtype:
                raise TypeError(
                    f"parts answer with {total.shape[0]} sums of {total.dtype} and with "
                    f"{part.shape[0]} of {part.dtype}"
                )
            total += part
        return total

    def __reduce__(self):
        raise TypeError("a dialogue holds answers of records: it is never copied or pickled")


class RemotePlace(Place):
    """The place of records that lie in parts.

    Parameters
    ----------
    ask : callable
        As of Dialogue; with `rows`, of a copy of these rows alone.
    n_samples, n_features, n_targets : int
        Of all parts together.
    of_persons : bool, default=False
        Whether a part sums over persons, of whom n_samples is the number.
    samples_rows : bool, default=False
        Whether records may be sampled by their row numbers.
    """

    def __init__(self, ask, n_samples, n_features, n_targets=1, of_persons=False,
                 samples_rows=False):  # fmt: skip
        self.n_samples, self.n_features, self.n_targets = n_samples, n_features, n_targets
        self._ask, self._of_persons, self.samples_rows = ask, of_persons, samples_rows
        self._dialogue = Dialogue(ask, _PLACE)  # one for all counts: parts open their place once

    def of_rows(self, rows):
        """The place of these rows, for counts."""
        return RemotePlace(partial(self._ask, rows=rows), len(rows), self.n_features)

    def moving(self, loss, smoothness, *, n_outputs=1, **options):
        dialogue = self._opened("moving", loss, smoothness, n_outputs=n_outputs, **options)
        return RemoteSums(dialogue, len(smoothness) // n_outputs, n_outputs)

    def stated(self, loss, smoothness, *, n_outputs=1, **options):
        dialogue = self._opened("stated", loss, smoothness, n_outputs=n_outputs, **options)
        return RemoteSums(dialogue, len(smoothness), n_outputs)

    def second_order(self, loss, smoothness, **options):
        dialogue = self._opened("second_order", loss, smoothness, **options)
        return RemoteCurvatureSums(dialogue, not self._of_persons)

    def _opened(self, kind, loss, smoothness, **options):
        return Dialogue(self._ask, Opening(kind, loss, smoothness, options))

    def counts(self, of, *, edges=None, around=None):
        return self._dialogue.ask("counts", of, {"edges": edges, "around": around})

    def moments(self, *, centered):
        return joined(self._dialogue.answers("moments", {"centered": centered}))


def _of_all_parts(method):
    """The method of sums, which asks all parts and adds up their answers."""

    @wraps(method)
    def ask(self, *arguments):
        return self._dialogue.ask(method.__name__, *arguments, {})

    return ask


class RemoteCurvatureSums:
    """Answers of GeometrySums, or PersonSums, of all parts together; the methods are theirs."""

    def __init__(self, dialogue, reads_short_rows):
        self._dialogue, self.reads_short_rows = dialogue, reads_short_rows

    gram = _of_all_parts(GeometrySums.gram)
    row_sums = _of_all_parts(GeometrySums.row_sums)
    times = _of_all_parts(PersonSums.times)
    image_grams = _of_all_parts(GeometrySums.image_grams)
    gradient = _of_all_parts(GeometrySums.gradient)

    def measure(self, transform, largest, smallest, narrow=None):
        self._dialogue.change("measure", transform, largest, smallest, narrow)

    measure.__doc__ = GeometrySums.measure.__doc__


def joined(parts):
    """Moments of all parts together (Chan, Golub & LeVeque 1983), for fits without noise alone."""
    n_samples = sum(part.n_samples for part in parts)
    weight = sum(part.weight for part in parts)
    center = sum(part.weight * np.nan_to_num(part.center) for part in parts) / weight
    squares = sum(
        part.squares + part.weight * (np.nan_to_num(part.center) - center) ** 2
        for part in parts
        if part.weight > 0
    )
    return Moments(n_samples, weight, center, squares)
