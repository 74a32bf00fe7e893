"""A recorder that is handed to a run: what each mechanism answered, and runs that follow another.

A leading run keeps all releases. One that follows it draws some of them afresh, and its solver
hears the leader's answers to all: given these, what followers draw is independent, from one draw to
the next and of all that was released before. A tape sees what a solver sees and holds no record.
"""

from dataclasses import dataclass

import numpy as np

from ..privacy.accounting._calibration import with_noise
from ..privacy.accounting._events import (
    FitEvent,
    GaussianEvent,
    PoissonSampledEvent,
    SelectionEvent,
)
from ..privacy.mechanisms._batch_oracle import IterateOracle
from ..privacy.mechanisms._oracle import Oracle
from ._recorders import RecordingIterateOracle, RecordingOracle


@dataclass(frozen=True)
class Kind:
    """Releases of one method of one mechanism, paid for by one event.

    Parameters
    ----------
    mechanism, method : str
    event : FitEvent
        Event of the mechanism, as it was planned.
    """

    mechanism: str
    method: str
    event: FitEvent

    @property
    def release(self):
        """The part of the event that pays for it."""
        releases = self.event.releases
        if (at := _PLACES.get((self.mechanism, self.method))) is not None:
            return releases[at]
        asked = {"release_argmax": SelectionEvent, "release_sample": PoissonSampledEvent}
        wanted = asked.get(self.method, GaussianEvent)
        found = [release for release in releases if isinstance(release, wanted)]
        return found[0] if found else releases[0]

    @property
    def words(self):
        """Its name in a table."""
        return _WORDS.get((self.mechanism, self.method)) or _WORDS[self.method]


# Which release of an event is whose, where their types don't tell.
_PLACES = {
    ("MomentOracle", "release_moments"): 0,
    ("MomentOracle", "release_mean_square"): 1,
    ("CurvatureOracle", "release_preconditioned"): 0,
    ("CurvatureOracle", "release_curvature"): 1,
    ("CurvatureOracle", "release_mean_square"): 2,
    ("CurvatureOracle", "release_mean_row"): 2,
    ("CurvatureOracle", "release_times"): 2,
}
_WORDS = {
    "release_quantiles of octaves": "choices of scales",
    "release_quantiles of cells": "choices of scales",
    "release_quantiles of parts": "choices of scales",
    "release_quantiles of tails": "choices of scales",
    "release_quantiles of doublings": "choices of tails",
    "release_quantiles of intervals": "choices of scales",
    "release_mean_squares": "moments of features",
    "release_counts": "counts of classes",
    "release_outside": "records outside of bounds",
    "release_partial": "coordinates of gradients",
    "release_gradient": "gradients",
    "release_argmax": "greedy choices",
    "release_mean": "gradients",
    "release_sample": "gradients of samples",
    ("CurvatureOracle", "release_mean_square"): "mean square of rows",
    "release_mean_row": "mean row",
    "release_times": "mean root of a person's number of records",
    "release_curvature": "curvature",
    "release_preconditioned": "Newton gradients",
    ("MomentOracle", "release_mean_square"): "mean square of gradients",
    "release_moments": "moments for inference",
    "release_running_counts": "running counts",
    "release_present_means": "means of what is present",
    "release_categories": "counts of categories",
    "release_columns": "choices of columns",
    "release_target_sums": "sums of the target",
    ("SecondMomentOracle", "release_curvature"): "second moments",
}


def with_share_of_noise(plan, share):
    """A plan that releases with such a share of the noise."""
    if share == 1.0:
        return plan
    return plan.paid_by(tuple(with_noise(part, share) for part in plan.parts))


# Their bounds are kept: records are made up for them.
_WITHIN_BOUNDS = ("release_running_counts", "release_present_means")


class EnoughError(Exception):
    """Ends a run that has drawn what is wanted of it."""


class Tape:
    """Releases of one run.

    Parameters
    ----------
    noise : float, default=1.0
        The run releases with this share of the noise that its plan says; a power of two.
    leader : Tape, default=None
        Tape of the run that this one follows.
    wanted : dict of Kind to collection of int, default={}
        Which calls a follower draws; a leader draws all.

    Attributes
    ----------
    plan : SolverPlan or units
        The latest one of the run.
    drawn : dict of Kind to list
        Draws of each call: an array, a pair of lists for greedy choices, or None for what was not.
    heard : dict of Kind to list
        What the solver was told.
    paid : dict of Kind to list of int
        How many releases each call was.
    asked : dict of Kind to list
        What choices are between, which is public: of greedy ones the problem and the iterate; of
        differences from an anchor the step from there; None of others.
    events : list of FitEvent
        Events of each mechanism, as planned.
    n_left : int or None
        Calls that are wanted and still to be drawn; None is all of a run.
    """

    def __init__(self, noise=1.0, leader=None, wanted=None):
        self.noise, self.leader, self.wanted = noise, leader, wanted or {}
        self.plan = None
        self.n_left = sum(map(len, self.wanted.values())) or None
        self.drawn, self.heard, self.paid, self.asked, self.events = {}, {}, {}, {}, []

    def __reduce__(self):
        raise TypeError("a tape belongs to one run: it is never copied or pickled")

    def planned(self, plan):
        """The plan with the share of its noise; one in found scales has it already."""
        self.plan = with_share_of_noise(plan, self.noise) if self.plan is None else plan
        return self.plan

    def planned_event(self, event):
        """The event of a transformer with the share of its noise."""
        return with_noise(event, self.noise)

    def stand_before(self, mechanism, units):
        """The object that a solver sees in place of a mechanism."""
        event = with_noise(units.event, 1 / self.noise)
        self.events.append(event)
        if isinstance(mechanism, Oracle):
            return RecordingOracle(
                mechanism, len(units.smoothness), _CallRecorder(self, "RecordOracle", event)
            )
        if isinstance(mechanism, IterateOracle):
            return RecordingIterateOracle(
                mechanism,
                units.n_outputs,
                len(units.smoothness),
                _CallRecorder(self, "BatchOracle", event),
            )
        return _RecordingMechanism(mechanism, _CallRecorder(self, type(mechanism).__name__, event))


class _CallRecorder:
    """The place of one mechanism in one run: which calls are drawn, and what is heard."""

    def __init__(self, tape, mechanism, event):
        self._tape, self._mechanism, self._event = tape, mechanism, event
        self._shelves = {}

    def _shelf(self, method):
        """Where calls of a method are kept, which are drawn, and what the leader heard."""
        if method not in self._shelves:
            tape, kind = self._tape, Kind(self._mechanism, method, self._event)
            kept = [of.setdefault(kind, []) for of in (tape.drawn, tape.heard, tape.paid)]
            kept.append(tape.asked.setdefault(kind, []))
            heard = None if tape.leader is None else tape.leader.heard[kind]
            self._shelves[method] = kept, tape.wanted.get(kind, ()), heard
        return self._shelves[method]

    def draws(self, method):
        """Whether the next call is drawn."""
        (drawn, *_), wanted, heard = self._shelf(method)
        return heard is None or len(drawn) in wanted

    def keep(self, method, mine, paid=1, asked=None):
        """Keep what was drawn, or None; returns what the solver hears."""
        kept, _, led = self._shelf(method)
        heard = mine if led is None else led[len(kept[0])]
        for of, value in zip(kept, (mine, heard, paid, asked), strict=True):
            of.append(value)
        tape = self._tape
        if tape.n_left is not None and mine is not None:
            tape.n_left -= 1
            if tape.n_left == 0:
                raise EnoughError
        return heard


class _RecordingMechanism:
    """Stands before a mechanism that is called from Python."""

    def __init__(self, mechanism, stand):
        self._mechanism, self._calls = mechanism, stand

    def __getattr__(self, name):
        found = getattr(self._mechanism, name)
        if not name.startswith("release_"):
            return found

        def release(*args, **options):
            if name == "release_quantiles":
                return self._choose(found, *args, **options)
            mine = found(*args, **options) if self._calls.draws(name) else None
            asked = args if name in _WITHIN_BOUNDS else None
            paid = 2 if name == "release_moments" else 1
            if name == "release_columns":  # a choice each
                paid = np.size(mine)
            return self._calls.keep(name, mine, paid, asked)

        return release

    def _choose(self, release, of, quantiles, *, edges=None, around=None, intervals=False, **prior):
        """Choices between octaves, cells, parts, distances and intervals are kinds of their own.

        What is thought of distances beforehand favours one side, where it is thought at all.
        """
        kind = "octaves" if edges is None else "parts" if intervals else "cells"
        if around is not None and of != "row_norm":
            odds = prior.get("prior")
            kind = "doublings" if odds is None or odds[0] == odds[1] else "tails"
            kind = "intervals" if intervals else kind
        cells = {"edges": edges, "around": around, "intervals": intervals or None}
        cells = {name: value for name, value in cells.items() if value is not None}
        name, mine = f"release_quantiles of {kind}", None
        columns = prior.get("columns")
        if columns is not None and not np.any(columns):  # nothing is chosen, nor paid for
            return release(of, quantiles, **cells, **prior)
        if self._calls.draws(name):
            mine = release(of, quantiles, **cells, **prior)
        asked = of, tuple(quantiles), cells
        return self._calls.keep(name, mine, np.size(mine), asked)
