"""DP-SGD: what is stated of it, and its plan."""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from ..loops import _sgd
from ..penalties import PENALTIES
from ..plan._solver import DECAY, MOMENTUM, RATE, WEIGHTED, Solver, parameters_of
from ..utils._typing import Auto
from ._descent_recipe import GradientPlan, between, descent_recipe, noiseless_descent_recipe

# Clips of persons by their ids over those of records, in regressions. For 1,000 and 4,000 persons
# of 1, 10, a geometric or a Zipf number of simulated records errors fall by 5 to 12 % at epsilon=1
# and 3. At .3 predictions for 1,000 lose by it, so it sets in with the signal.
_OF_PERSONS, _LOUD_OF_PERSONS = 0.7, 40.0


class SGDPlan(GradientPlan):
    """DP-SGD: Poisson mini-batches, or all records."""

    penalties = {None, *PENALTIES}
    solve = staticmethod(_sgd.solve)
    noiseless_recipe = noiseless_descent_recipe(full=True)

    @cached_property
    def recipe(self):
        request, curvature = self.request, self.curvature
        chosen = descent_recipe(
            request.signal,
            curvature,
            curvature,
            True,
            request.n_classes,
            request.n_coordinates,
            has_sparse_rows=request.has_sparse_rows,
        )
        if request.by_id and not request.n_classes:
            chosen["residual_clip"] *= between(_LOUD_OF_PERSONS / request.signal, _OF_PERSONS, 1.0)
        return chosen | {"max_iter": chosen["max_iter"] * self.rate}  # as many updates


@dataclass(eq=False, repr=False)
class SGD(Solver):
    """Stochastic gradient descent (DP-SGD): Poisson mini-batches, or all records.

    Parameters
    ----------
    sampling_rate : float in (0, 1], default=0.1
        Probability of a record to be in a mini-batch; 1 is all records in every update. Without
        noise every batch is all records.
    step_size : float in (0, 1e15] or "auto", default="auto"
        See :class:`SkGD`.
    step_decay : float in [0, inf), default=0.0
        See :class:`CompGD`.
    momentum : float in [0, 1) or "auto", default="auto"
        Heavy ball in the (1 - momentum)-normalised form.
    averaging : {"auto", "last", "tail", "weighted"}, default="auto"
        See :class:`CompGD`.

    References
    ----------
    Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016). Deep learning with differential
    privacy. CCS.

    Examples
    --------
    >>> from dpcd_sklearn.solvers import SGD
    >>> SGD(sampling_rate=0.01, momentum=0.9)
    SGD(momentum=0.9, sampling_rate=0.01)
    """

    word = "sgd"
    planned_by = SGDPlan
    _parameter_constraints = parameters_of(
        WEIGHTED, sampling_rate=RATE[1:], step_decay=DECAY, momentum=MOMENTUM
    )

    sampling_rate: Auto = 0.1
    _: KW_ONLY
    step_size: Auto = "auto"
    step_decay: float = 0.0
    momentum: Auto = "auto"
    averaging: str = "auto"
