"""Plans of the solvers on mean gradients."""

from functools import cached_property

from ..losses import LOSSES
from ..plan._solver_plan import SolverPlan
from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..privacy.mechanisms._batch_oracle import BatchOracle
from ..privacy.mechanisms._units import MeanUnits


class GradientPlan(SolverPlan):
    """A solver on mean gradients at iterates that it states, over a BatchOracle.

    Attributes
    ----------
    anchor_share : float
        Clip of differences of gradients over that of gradients.
    """

    anchor_share = 1.0
    losses = set(LOSSES)
    noiseless_max_iter = 100_000

    @property
    def rate(self):
        """Share of the records in one mini-batch; without noise every batch is all of them."""
        if not self.request.private:
            return 1.0
        return float(self.request.solver.sampling_rate)

    def updates(self, n_passes):
        return n_passes / self.rate

    @property
    def extra(self):
        return {"sampling_rate": self.rate, "step_decay": self.request.solver.step_decay}

    @cached_property
    def alone(self):
        request, count = self.request, self.request.n_fits * self.n_updates
        if self.rate >= 1:
            return gaussian_fit_event(request.budget, count)
        return sampled_fit_event(request.budget, self.rate, count)

    @property
    def _clips(self):
        # the norm of M^(-1/2) g over all coordinates
        smoothness = self.geometry.smoothness
        clip = self.finite_clip * (len(smoothness) / float(smoothness.sum())) ** 0.5
        return {"clip": clip, "anchor_clip": self.anchor_share * clip}

    def units(self, n_samples):
        return MeanUnits(
            self.part,
            n_samples=n_samples,
            smoothness=self.geometry.smoothness,
            n_normalizer=self.request.budget.n,
            n_outputs=self.request.n_outputs,
            **self._clips,
        )

    def oracle(self, *released, **stated):
        return BatchOracle(*released, **stated)
