"""One fit a target, each with its share of one budget.

K plans like one, K parts of one event, one charge.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..loops._problem import Solution
from ._release import key_of_output
from ._solver_plan import SolverPlan


def one_of(request, **own):
    """The request of one output, which has its share of the budget; `own` are fields of its own."""
    return replace(request, n_outputs=1, n_fits=request.n_outputs, **own)


class OutputByOutput:
    """The plan of a fit that is one fit an output; it has the face of a SolverPlan.

    Every output is released with noise of its own, and the event holds the releases of each: a
    record stands in all K fits, so they compose (they are not parallel).

    Parameters
    ----------
    request : Request
        It has K outputs, and a tuple of one loss a target.
    plans : list of SolverPlans
        One for `one_of` each target. Parameters and features are the same, so what is asked of one
        is that of the first, and none but that is charged.
    """

    located = SolverPlan.located

    def __init__(self, request, plans):
        # a sampling is tried once, and no part but the first one's is charged
        fixed = {"sampling": plans[0].sampling, "parts": plans[0].parts}
        self.request, self._plans = request, [plan.changed(**fixed) for plan in plans]

    def __getattr__(self, name):
        # geometry, sampling, event, ...: those of one output are those of all
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._plans[0], name)

    @property
    def stated_clip(self):
        """C of each output in the units of its target; one number if all are alike."""
        clips = [plan.stated_clip for plan in self._plans]
        return clips[0] if len(set(clips)) == 1 else np.array(clips)

    def planned(self, n_samples):
        """Make every number of the plan, and return it."""
        for plan in self._plans:
            plan.planned(n_samples)
        return self

    def over_records(self, place):
        """The plan over the moments of the records, for fits without noise."""
        geometry = self._plans[0].geometry_of(place)
        plans = [plan.over(geometry) for plan in self._plans]
        return type(self)(self.request, plans).planned(place.n_samples)

    def _located(self, found, loss):
        losses = loss if isinstance(loss, tuple) else (loss,)
        plans = [
            plan._located(found.of_target(k), own)
            for k, (plan, own) in enumerate(zip(self._plans, losses, strict=True))
        ]
        return type(self)(found.stated_in(self.request, loss), plans)

    def attended_by(self, start, progress):
        """The plan with what a fit hands over beside its records, as of a SolverPlan."""
        plans = []
        for k, plan in enumerate(self._plans):
            first = start and tuple(part[k : k + 1] for part in start)
            later = progress and _Later(progress, k * plan.n_told)
            plans.append(plan.attended_by(first, later))
        return type(self)(self.request, plans)

    @property
    def outputs(self):
        """The plan of each output."""
        return self._plans

    @property
    def n_told(self):
        """Updates of all outputs, of which a progress is told."""
        return self.request.n_outputs * self._plans[0].n_told

    def to_original(self, coef, dtype):
        """Coefficients of shape (..., n_outputs, n_coordinates) as (coef, intercept)."""
        parts = [plan.to_original(coef[..., k, :], dtype) for k, plan in enumerate(self._plans)]
        coefs, intercepts = zip(*parts, strict=True)
        return np.stack(coefs, axis=-2), np.stack(intercepts, axis=-1)

    def run(self, receipt, records, key, generator):
        """Fit output after output; returns a Solution."""
        found = []
        for k, plan in enumerate(self._plans):
            own = records.of_output(k)
            found.append(plan.run(receipt, own, key_of_output(k, key), generator))
        paths = [solution.path for solution in found]
        return Solution(
            np.array([solution.coef for solution in found]),
            max(solution.n_updates for solution in found),
            None if paths[0] is None else _side_by_side(paths),
            all(solution.converged for solution in found),
            strengths=tuple(solution.strengths[0] for solution in found),
        )


@dataclass(frozen=True)
class _Later:
    """The progress of an output, after the updates of those before it."""

    progress: object
    n_before: int

    def tell(self, n_done):
        self.progress.tell(self.n_before + n_done)

    def __getattr__(self, name):  # every, is_followed
        return getattr(self.progress, name)


def _side_by_side(paths):
    """Paths as (n_points, n_outputs, n_coordinates); without noise some outputs end earlier."""
    longest = max(map(len, paths))
    return np.stack(
        [np.concatenate([p, np.repeat(p[-1:], longest - len(p), axis=0)]) for p in paths], axis=1
    )
