"""What the two generic estimators share: the choice of the solver, and their parameters."""

import math
from numbers import Integral, Real

from ..engines._engines import ENGINES
from ..engines._engines_coordinates import RULES
from ..penalties import CONSTRAINTS, PENALTIES
from ..privacy.accounting._gaussian_dp import gdp_mu
from ..samplings import SAMPLING_WORDS
from ..utils._compat import HasMethods, Interval, StrOptions
from ._base import POSITIVE

__all__ = ["GENERIC_CONSTRAINTS", "POSITIVE", "GenericLinearModel"]

_COUNT = [None, Interval(Integral, 1, None, closed="left")]

GENERIC_CONSTRAINTS = {
    "penalty": [None, StrOptions(set(PENALTIES))],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    "coef_bounds": [None, tuple, list],
    "constraint": [None, StrOptions(set(CONSTRAINTS))],
    "radius": [POSITIVE],
    "solver": [StrOptions({"auto", *ENGINES})],
    "sampling": [StrOptions({"auto", *SAMPLING_WORDS}), HasMethods(["draw"])],
    "block_size": _COUNT,
    "rule": [StrOptions(set(RULES))],
    "selection_share": [Interval(Real, 0, 1, closed="neither")],
    "selection": [StrOptions({"full", "lazy"})],
    "sampling_rate": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="right")],
    "n_directions": _COUNT,
    "n_inner": _COUNT,
    "step_decay": [Interval(Real, 0, None, closed="left")],
    "momentum": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
    "averaging": [StrOptions({"auto", "last", "tail", "periodic", "weighted"})],
    "accounting": [StrOptions({"composition", "hidden_state"})],
    "penalize_intercept": ["boolean"],
}

# Where noise dominates, a penalty with l1 is better served by choosing coordinates.
_NOISY = 25.0
_FALLBACKS = ("skgd", "sgd", "cd", "frank-wolfe")


class GenericLinearModel:
    """Mixin: any loss, penalty and solver."""

    def _solver(self, n_coordinates, n_normalizer, loss):
        if self.solver != "auto":
            return self.solver
        if self.accounting == "hidden_state":
            return "skgd"
        best = self._best_solver(n_coordinates, n_normalizer, loss)
        # momentum, averaging or sampling may ask for another one
        able = (
            name for name in (best, *_FALLBACKS) if ENGINES[name].needs(self, loss.name) is None
        )
        return next(able, best)

    def _best_solver(self, n_coordinates, n_normalizer, loss):
        if loss.multi_output:
            return "sgd"
        if self.constraint is not None:
            return "compgd" if self.penalty in (None, "l2") else "frank-wolfe"
        share = {"l1": 1.0, "elasticnet": self.l1_ratio}.get(self.penalty, 0.0)
        if share < 0.5 or math.isinf(self.epsilon):
            return "skgd"
        mu = gdp_mu(self.epsilon, self._resolve_delta(n_normalizer))
        return "gcd" if n_normalizer * mu < _NOISY * n_coordinates**0.5 else "skgd"
