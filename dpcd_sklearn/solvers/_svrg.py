"""DP-SVRG: what is stated of it, its recipe and its plan."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from ..loops import _svrg
from ..penalties import PENALTIES
from ..plan._solver import COUNT_OR_NONE, DECAY, RATE, WEIGHTED, Solver, parameters_of
from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..utils._typing import Auto
from ._descent_recipe import GradientPlan, between, plain_steps


def variance_reduced_recipe(signal, rate, n_classes):
    """DP-SVRG: plain descent, in short steps of mini-batches around a few full gradients."""
    if n_classes:
        # Clipped derivatives bound every step, so steps may be longer. The clip is twice that of
        # full gradients: differences of gradients have half of it.
        n_full, step_size = 0.3 * signal, between(30 * rate, 1.5, 4.5)
        clip = between(0.2 * (signal / 30) ** 0.25, 0.2, 1.0)
    else:
        # Many steps under a narrow clip, which vanishes with the signal: noise has nothing to fill.
        n_full, step_size = 0.5 * signal, between(10 * rate, 0.5, 1.5)
        clip = min(0.01 * math.sqrt(signal) * min(signal / 40, 1.0), 1.0)
    return plain_steps(2 * between(n_full, 5.0, 150.0), step_size, clip)


class SVRGPlan(GradientPlan):
    """DP-SVRG: full gradients now and then, and how mini-batches differ from them."""

    penalties = {None, *PENALTIES}
    solve = staticmethod(_svrg.solve)
    anchor_share = 0.5

    @cached_property
    def recipe(self):
        request = self.request
        return variance_reduced_recipe(request.signal, self.rate, request.n_classes)

    @property
    def _n_inner(self):
        return self.request.solver.n_inner or math.ceil(1 / self.rate)

    def updates(self, n_passes):
        # an outer loop is two passes: the full gradient, and mini-batches of 1 / rate updates
        return n_passes / 2 * self._n_inner

    @property
    def extra(self):
        return super().extra | {"n_inner": min(self._n_inner, self.n_updates)}

    @cached_property
    def alone(self):
        request, count = self.request, self.n_updates
        n_full = math.ceil(count / min(self._n_inner, count))
        if not request.private:
            return gaussian_fit_event(request.budget, count + n_full)
        # one standard deviation for both kinds, in the units of the mean gradient
        ratio = self.anchor_share / self.rate
        return sampled_fit_event(
            request.budget,
            self.rate,
            request.n_fits * count,
            request.n_fits * n_full,
            ratio,
        )


@dataclass(eq=False, repr=False)
class SVRG(Solver):
    """Full gradients now and then, and how mini-batches differ from them (DP-SVRG).

    Parameters
    ----------
    sampling_rate : float in (0, 1], default=0.1
        See :class:`SGD`.
    n_inner : int >= 1, default=None
        Number of updates between two full gradients; None is one pass, 1 / sampling_rate.
    step_size : float in (0, 1e15] or "auto", default="auto"
        See :class:`SkGD`.
    step_decay : float in [0, inf), default=0.0
        See :class:`CompGD`.
    averaging : {"auto", "last", "tail", "weighted"}, default="auto"
        See :class:`CompGD`.

    References
    ----------
    Johnson & Zhang (2013). Accelerating stochastic gradient descent using predictive variance
    reduction. NIPS.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import SVRG
    >>> SVRG(n_inner=20)
    SVRG(n_inner=20)
    """

    word = "svrg"
    planned_by = SVRGPlan
    _parameter_constraints = parameters_of(
        WEIGHTED, sampling_rate=RATE[1:], n_inner=COUNT_OR_NONE, step_decay=DECAY
    )

    sampling_rate: Auto = 0.1
    _: KW_ONLY
    n_inner: int | None = None
    step_size: Auto = "auto"
    step_decay: float = 0.0
    averaging: str = "auto"
