"""Watching fits: their public plan, their transcript, and the same fit at another noise.

A watched model is a clone of the user's whose engine hands the solver a recording oracle. What is
kept of the records is for the audit, which was given both data sets.
"""

import copy

from ..privacy.accounting._calibration import with_noise
from ..privacy.mechanisms._curvature import CurvatureOracle
from ..privacy.mechanisms._oracle import Oracle
from ._recorder_of_curvature import RecordingCurvatureOracle
from ._recorders import RecordingIterateOracle, RecordingOracle

# Numbers of the iterates of one transcript; a longer one is not kept.
_MOST_NUMBERS = 5e7


def last_step(model):
    """The model itself, or what a pipeline ends in."""
    return model[-1] if hasattr(model, "named_steps") else model


def is_watchable(model):
    """Whether fits of the model follow this package's recipe."""
    return callable(getattr(last_step(model), "_plan", None))


class Watch:
    """Keeps plan, records, transcript and solution of the latest fit of one model.

    Parameters
    ----------
    model : estimator
        Changed in place: a clone that nobody else uses.
    noise : float, default=1.0
        Fits release with this share of the noise that their plan says.

    Attributes
    ----------
    plan : Engine
        The honest one, whatever `noise` is.
    records : tuple (X, target, sample_weight), as the oracle reads them
    unscaled : ndarray of shape (n_samples,)
        The target before `scaled`.
    recorder : RecordingOracle, RecordingIterateOracle, RecordingCurvatureOracle or None
    solution : Solution
    before_run : callable or None
        Called with what a run gets, once `records` are kept.
    """

    def __init__(self, model, noise=1.0):
        self.plan = self.records = self.unscaled = self.recorder = self.solution = None
        self.before_run = None
        self._noise, last = noise, last_step(model)
        self._planned, self._scaled = last._plan, last._scale_target
        last._plan, last._scale_target = self._plan, self._scale_target

    def _plan(self, *public, located=None, **options):
        if located is not None:
            located = self.plan, located[1]
        self.plan = self._planned(*public, located=located, **options)
        return self._watched(copy.copy(self.plan))

    def _scale_target(self, y, request):
        self.unscaled = y
        return self._scaled(y, request)

    def scaled(self, y):
        """A target in the scale of the latest fit."""
        return self._scaled(y, self.plan.request)

    def _watched(self, engine):
        if self._noise != 1.0:
            engine.parts = tuple(with_noise(part, self._noise) for part in engine.parts)
        run, solve = engine.run, getattr(engine, "solve", None)

        def recorded(oracle, problem, *rest):
            if problem.n_updates * problem.n_coordinates * problem.n_outputs > _MOST_NUMBERS:
                return solve(oracle, problem, *rest)
            if isinstance(oracle, Oracle):
                size = problem.n_outputs * problem.n_coordinates
                self.recorder = RecordingOracle(oracle, size)
            elif isinstance(oracle, CurvatureOracle):
                self.recorder = RecordingCurvatureOracle(oracle)
            else:
                self.recorder = RecordingIterateOracle(
                    oracle, problem.n_outputs, problem.n_coordinates
                )
            return solve(self.recorder, problem, *rest)

        def watched(receipt, records, *rest):
            self.records, self.recorder = records, None
            if self.before_run is not None:
                self.before_run(receipt, records, *rest)
            self.solution = run(receipt, records, *rest)
            return self.solution

        engine.solve, engine.run = recorded, watched
        return engine
