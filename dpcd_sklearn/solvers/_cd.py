"""DP-CD: what is stated of it, its recipe and its plan."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from ..loops import _cd
from ..plan._solver import INNER, Solver, parameters_of
from ..samplings import SingleSampling
from ..utils._compat import StrOptions
from ..utils._typing import Auto
from ._descent_recipe import DrawnPlan, between, plain_steps


def coordinate_recipe(request):
    """DP-CD: more passes, and a wider clip, where the signal pays for their noise.

    A regression of many columns has a narrower one, so that the noise of all coefficients together
    stays below what they tell (1,000 x 60 at ε = 1: R² -2.3, and .15 now).
    """
    signal = request.signal
    if request.n_classes:
        clip = between(0.04 * math.sqrt(signal), 0.1, 1.0)
    else:
        clip = between(0.25 * (signal / 70) ** 0.25, 0.1, 0.5)
        widest = 0.05 * math.sqrt(signal / request.n_coordinates)
        clip = min(clip, widest) * min(signal / 10, 1.0)
    return plain_steps(between(0.75 * signal, 10.0, 200.0), 1.0, clip)


class CDPlan(DrawnPlan):
    """DP-CD: one coordinate at a time."""

    solve = staticmethod(_cd.solve)
    curvature = 1.0

    @cached_property
    def sampling(self):
        word, n_coordinates = self.request.solver.sampling, self.request.n_coordinates
        return SingleSampling.of(word, n_coordinates, 1, self.geometry.smoothness)

    @cached_property
    def recipe(self):
        return coordinate_recipe(self.request)

    def place(self, records):
        enough = self.n_updates >= self.request.n_coordinates  # for a copy to pay
        return super().place(records.in_columns() if enough else records)


@dataclass(eq=False, repr=False)
class CD(Solver):
    """Proximal coordinate descent (DP-CD): one coordinate at a time.

    Parameters
    ----------
    sampling : {"uniform", "importance"}, default="uniform"
        Which coordinate an update moves: any, or one with a probability proportional to M_j.
    step_size : float in (0, 1e15] or "auto", default="auto"
        γ: coordinate j moves with the step γ / M_j, M_j its smoothness. Steps below 2 are safe.
        "auto" follows n, p, epsilon and delta.
    averaging : {"auto", "last", "tail", "periodic"}, default="auto"
        What `coef_` is: the last iterate ("last"); the mean of the last half of the iterates
        ("tail", "auto"); or the end of the papers' outer loop, which restarts from the mean of
        every `n_inner` iterates ("periodic"). Coefficients that end at zero are exactly zero in
        means too, but for "periodic".
    n_inner : int >= 1, default=None
        K, the number of updates between two restarts of "periodic"; None is a tenth of all.

    References
    ----------
    Mangold, Bellet, Salmon & Tommasi (2022). Differentially private coordinate descent for
    composite empirical risk minimization. ICML. Algorithm 1, mended.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.solvers import CD
    >>> DPLinearRegressor(penalty="l1", solver=CD(sampling="importance"))
    DPLinearRegressor(penalty='l1', solver=CD(sampling='importance'))
    """

    word = "cd"
    steps_by_coordinate = True
    planned_by = CDPlan
    _parameter_constraints = parameters_of(
        **INNER | {"sampling": [StrOptions({"uniform", "importance"})]}
    )

    sampling: str = "uniform"
    _: KW_ONLY
    step_size: Auto = "auto"
    averaging: str = "auto"
    n_inner: int | None = None
