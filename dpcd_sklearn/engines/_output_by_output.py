"""One fit an output, each with its share of one budget: a class against all others, or a target.

K plans like one, K parts of one event, one charge.
"""

import copy
import hashlib
from dataclasses import dataclass, replace

import numpy as np

from ..solvers._problem import Solution
from ._engine import Engine
from ._label_prior import count_units


def one_of(request, **own):
    """The request of one output, which has its share of the budget; `own` are fields of its own."""
    return replace(request, n_outputs=1, n_fits=request.n_outputs, **own)


class OutputByOutput:
    """The plan of a fit that is one fit an output; it has the face of an Engine.

    Every output is released with noise of its own, and the event holds the releases of each: a
    record stands in all K fits, so they compose (they are not parallel).

    Parameters
    ----------
    request : Request
        Of K outputs, with a loss of one, or a tuple of one loss a target.
    engines : list of Engines
        Of `one_of` it: one for all classes, or one for each of K targets. Parameters and features
        are the same, so what is asked of one is that of the first, and none but that is charged.
    """

    _start, _progress = None, None
    located = Engine.located

    def __init__(self, request, engines):
        self.request, self._engines = request, engines
        for engine in engines[1:]:
            engine.sampling = engines[0].sampling  # tried once

    def __getattr__(self, name):
        # geometry, sampling, event, ...: those of one output are those of all
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._engines[0], name)

    @property
    def parts(self):
        """The FitEvents of searches and counts, if there are some, and of all updates."""
        return self._engines[0].parts

    @parts.setter
    def parts(self, parts):
        self._engines = list(map(copy.copy, self._engines))
        for engine in self._engines:
            engine.parts = parts

    @property
    def stated_clip(self):
        """C of each output in the units of its target; one number if all are alike."""
        clips = [engine.stated_clip for engine in self._engines]
        return clips[0] if len(set(clips)) == 1 else np.array(clips)

    def planned(self, n_samples):
        """Make every number of the plan, and return it."""
        for engine in self._engines:
            engine.parts = self.parts
            engine.planned(n_samples)
        if self.request.counts_classes:
            count_units(self.request, self.part_of_counts, n_samples)
        return self

    def over_records(self, place):
        """The plan over the moments of the records, for fits without noise."""
        geometry = self._engines[0].geometry_of(place)
        engines = [engine.over(geometry) for engine in self._engines]
        return type(self)(self.request, engines).planned(place.n_samples)

    def _located(self, found, loss):
        losses = loss if isinstance(loss, tuple) else (loss,)
        engines = [
            engine._located(found.of_target(k), own)
            for k, (engine, own) in enumerate(zip(self._engines, losses, strict=True))
        ]
        return type(self)(found.stated_in(self.request, loss), engines)

    def attend(self, start, progress):
        """What a fit hands over beside its records, as of an Engine."""
        self._start, self._progress = start, progress

    @property
    def outputs(self):
        """The plan of each output."""
        return [self._engine_of(k) for k in range(self.request.n_outputs)]

    @property
    def n_told(self):
        """Updates of all outputs, of which a progress is told."""
        return self.request.n_outputs * self._engines[0].n_told

    def to_original(self, coef, dtype):
        """Coefficients of shape (..., n_outputs, n_coordinates) as (coef, intercept)."""
        outputs = range(self.request.n_outputs)
        parts = [self._engine_of(k).to_original(coef[..., k, :], dtype) for k in outputs]
        coefs, intercepts = zip(*parts, strict=True)
        return np.stack(coefs, axis=-2), np.stack(intercepts, axis=-1)

    def run(self, receipt, records, key, generator):
        """Fit output after output; returns a Solution."""
        found = []
        for k in range(self.request.n_outputs):
            engine, own = self._engine_of(k), records.of_output(k)
            engine.attend(*self._attended_of(k))
            found.append(engine.run(receipt, own, _key_of(key, k), generator))
        paths = [solution.path for solution in found]
        return Solution(
            np.array([solution.coef for solution in found]),
            max(solution.n_updates for solution in found),
            None if paths[0] is None else _side_by_side(paths),
            all(solution.converged for solution in found),
        )

    def _engine_of(self, k):
        return self._engines[k if len(self._engines) > 1 else 0]

    def _attended_of(self, k):
        """Where output k starts from, and whom it tells how far it is."""
        start, progress = self._start, self._progress
        if start is not None:
            start = tuple(part[k : k + 1] for part in start)
        return start, progress and _Later(progress, k * self._engines[0].n_told)


@dataclass(frozen=True)
class _Later:
    """The progress of an output, after the updates of those before it."""

    progress: object
    n_before: int

    def tell(self, n_done):
        self.progress.tell(self.n_before + n_done)

    def __getattr__(self, name):  # every, is_followed
        return getattr(self.progress, name)


def _key_of(key, k):
    """A key of its own for each output: no two of them share a stream of noise."""
    return None if key is None else hashlib.sha256(key + b"output %d" % k).digest()


def _side_by_side(paths):
    """Paths as (n_points, n_outputs, n_coordinates); without noise some outputs end earlier."""
    longest = max(map(len, paths))
    return np.stack(
        [np.concatenate([p, np.repeat(p[-1:], longest - len(p), axis=0)]) for p in paths], axis=1
    )
