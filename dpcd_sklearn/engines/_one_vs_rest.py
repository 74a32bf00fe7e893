"""One fit a class against all others: K plans like one, K shares of one budget, one charge."""

import copy
import hashlib
from dataclasses import dataclass, replace

import numpy as np

from ..solvers._problem import Solution


def one_of(request):
    """The request of one class against the others, which has its share of the budget."""
    return replace(request, n_outputs=1, n_fits=request.n_outputs)


class OneVsRest:
    """The plan of a fit that is one binary fit a class; it has the face of an Engine.

    Every class is released with noise of its own, and the event holds the releases of each: a
    record stands in all K fits, so they compose (they are not parallel).

    Parameters
    ----------
    request : Request
        Of K outputs, with a loss of one.
    engine : Engine
        Of `one_of` it.
    """

    _start, _progress = None, None

    def __init__(self, request, engine):
        self.request, self._engine = request, engine

    def __getattr__(self, name):
        # geometry, clip, sampling, event, ...: those of one class are those of all
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._engine, name)

    @property
    def parts(self):
        """The FitEvents of the search of scales, if there is one, and of all updates."""
        return self._engine.parts

    @parts.setter
    def parts(self, parts):
        self._engine = copy.copy(self._engine)
        self._engine.parts = parts

    def planned(self, n_samples):
        """Make every number of the plan, and return it."""
        self._engine.planned(n_samples)
        return self

    def over_records(self, place):
        """The plan over the moments of the records, for fits without noise."""
        return type(self)(self.request, self._engine.over_records(place))

    def located(self, found, loss, n_samples):
        """The plan in the scales that were found, with the updates that were paid for."""
        engine = self._engine.located(found, loss, n_samples)
        request = replace(engine.request, n_outputs=self.request.n_outputs, n_fits=1)
        return type(self)(request, engine)

    def attend(self, start, progress):
        """What a fit hands over beside its records, as of an Engine."""
        self._start, self._progress = start, progress

    @property
    def n_told(self):
        """Updates of all classes, of which a progress is told."""
        return self.request.n_outputs * self._engine.n_told

    def run(self, receipt, records, key, generator):
        """Fit class after class; returns a Solution."""
        found = []
        for k in range(self.request.n_outputs):
            self._engine.attend(*self._attended_of(k))
            own = records.of_class(k)
            found.append(self._engine.run(receipt, own, _key_of(key, k), generator))
        paths = [solution.path for solution in found]
        return Solution(
            np.array([solution.coef for solution in found]),
            max(solution.n_updates for solution in found),
            None if paths[0] is None else _side_by_side(paths),
            all(solution.converged for solution in found),
        )


    def _attended_of(self, k):
        """Where class k starts from, and whom it tells how far it is."""
        start, progress = self._start, self._progress
        if start is not None:
            start = tuple(part[k : k + 1] for part in start)
        return start, progress and _Later(progress, k * self._engine.n_told)


@dataclass(frozen=True)
class _Later:
    """The progress of a class, after the updates of those before it."""

    progress: object
    n_before: int

    def tell(self, n_done):
        self.progress.tell(self.n_before + n_done)

    def __getattr__(self, name):  # every, is_followed
        return getattr(self.progress, name)


def _key_of(key, k):
    """A key of its own for each class: no two of them share a stream of noise."""
    return None if key is None else hashlib.sha256(key + b"class %d" % k).digest()


def _side_by_side(paths):
    """Paths as (n_points, n_outputs, n_coordinates); without noise some classes end earlier."""
    longest = max(map(len, paths))
    return np.stack(
        [np.concatenate([p, np.repeat(p[-1:], longest - len(p), axis=0)]) for p in paths], axis=1
    )
