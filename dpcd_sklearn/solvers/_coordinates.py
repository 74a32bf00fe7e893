"""Plans of the solvers on coordinates or blocks of them."""

import math
from functools import cached_property

import numpy as np

from ..losses import LOSSES
from ..plan._solver_plan import SolverPlan
from ..privacy.accounting._calibration import gaussian_fit_event
from ..privacy.mechanisms._oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits


class CoordinatePlan(SolverPlan):
    """A solver on coordinates or blocks of them, over a RecordOracle."""

    losses = set(LOSSES)
    known_scores = {}  # of greedy choices, beforehand: what CoordinateUnits ask for

    @property
    def _clipped_together(self):
        return 1 if self.sampling is None else self.sampling.block_size

    @property
    def _n_inner(self):
        """K of the papers' T × K: a tenth of all updates unless the user says more."""
        return self.request.solver.n_inner or math.ceil(self.n_updates / 10)

    def units(self, n_samples):
        n_outputs = self.request.n_outputs
        return CoordinateUnits(
            self.part,
            n_samples=n_samples,
            smoothness=_repeated(self.geometry.smoothness, n_outputs),
            clip=self.finite_clip,
            n_normalizer=self.request.budget.n,
            n_chosen=self.problem.n_chosen,
            n_outputs=n_outputs,
            **self.known_scores,
        )

    def oracle(self, *released, **stated):
        return RecordOracle(*released, **stated, lazy=self.request.solver.selection == "lazy")


def _repeated(smoothness, n_outputs):
    """M_j of every output, one after the other; of one output it is not copied."""
    if n_outputs == 1:
        return smoothness
    repeated = np.tile(smoothness, n_outputs)
    repeated.flags.writeable = False
    return repeated


class DrawnPlan(CoordinatePlan):
    """A solver that releases the coordinates that a sampling draws."""

    @property
    def extra(self):
        return {"n_inner": self._n_inner}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        return gaussian_fit_event(request.budget, count)
