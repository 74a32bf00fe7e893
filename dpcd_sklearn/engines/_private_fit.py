"""What every estimator that charges asks of its parameters, before it looks at a record."""

import math
import warnings
from numbers import Integral, Rational

import numpy as np
from sklearn.utils import check_random_state

from ..exceptions import ReproducibleNoiseWarning
from ..utils._public import MOST, MOST_COORDINATES, check_count, check_real
from ..utils._reproducible_noise import ReproducibleNoise


class PrivateFit:
    """For an estimator with epsilon, delta, neighboring, n_public, accountant and random_state."""

    def _validate_params(self):
        # scikit-learn asks of these whether they are NaN, which NumPy can't say
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Integral) and not -MOST <= value <= MOST:
                raise ValueError(
                    f"{name} must lie within -2^53 and 2^53 as an integer; write a float if it is "
                    "larger"
                )
            if isinstance(value, Rational) and not isinstance(value, Integral):
                raise TypeError(f"{name} must be an int or a float, not a {type(value).__name__}")
        super()._validate_params()

    def _check_budget(self):
        """What `_parameter_constraints` lets through: booleans, NaN, and joint conditions."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, bool) and "boolean" not in self._parameter_constraints[name]:
                raise TypeError(f"{name} must be a number or a word, not {value!r}")
        check_real(self.epsilon, "epsilon", low=0.0, closed="right")
        if self.delta != "auto":
            check_real(self.delta, "delta", low=0.0)
        if 1e300 < float(self.epsilon) < math.inf:
            raise ValueError("epsilon must be at most 1e300, or infinite for a fit without noise")
        if self.n_public is not None:
            check_count(self.n_public, "n_public", high=MOST)
        if self.neighboring == "add_remove" and self.n_public is None:
            raise ValueError(
                'neighboring="add_remove" needs n_public, a public number of records: the true '
                "number is not public under this relation"
            )
        if self.neighboring == "replace_one" and self.n_public is not None:
            raise ValueError(
                'n_public is for neighboring="add_remove"; under replace_one n_samples is public'
            )

    def _resolve_delta(self, n_normalizer):
        if self.delta != "auto":
            return float(self.delta)
        if self.neighboring == "add_remove":
            raise ValueError('delta="auto" is 1/n², which is not public under add_remove: state it')
        if n_normalizer < 2:
            raise ValueError('delta="auto" is 1/n², which is no guarantee for n_samples=1')
        return 1.0 / n_normalizer**2

    def _refuse_unprotected_charge(self):
        """A ledger vouches for its entries: no entry for a fit that protects nobody."""
        if self.accountant is None or getattr(self.accountant, "testing", False):
            return
        if math.isinf(self.epsilon):
            raise ValueError(
                "epsilon=inf releases without noise, which no budget admits. Fit without the "
                "accountant, or make one with testing=True"
            )
        if isinstance(self.random_state, ReproducibleNoise):
            raise ValueError(
                "random_state=ReproducibleNoise(...) makes the noise removable, so the accountant "
                "can't vouch for this fit. Leave random_state=None, or make the accountant with "
                "testing=True"
            )

    def _refuse_what_is_not_gaussian(self, scales):
        """A ledger of currency "gdp" can't count the choices that find scales."""
        if scales.n_choices and getattr(self.accountant, "currency", "rdp") == "gdp":
            raise ValueError(
                "scales are found by noisy choices, which a ledger of currency 'gdp' can't count; "
                "state feature_bounds (or feature_scale) and, of a regression, target_bounds, or "
                "keep the ledger in 'rdp'"
            )

    def _randomness(self):
        """The key of all that must stay secret, and the generator of public choices.

        Without a key the operating system's entropy gives one. Secret are noise, noisy choices
        and which records are in a batch; public is which coordinates are looked at.
        """
        if self.random_state is None:
            return None, np.random.default_rng()
        by_name = isinstance(self.random_state, ReproducibleNoise)
        random_state = check_random_state(self.random_state.seed if by_name else self.random_state)
        key = random_state.bytes(32)  # drawn in any case: a seed has the same choices either way
        generator = np.random.default_rng(list(random_state.bytes(16)))
        if math.isinf(self.epsilon):  # nothing is protected
            return key, generator
        if not by_name:
            return None, generator
        warnings.warn(
            "ReproducibleNoise makes the noise of this fit known: whoever knows the seed can "
            "remove it, so the fit is not private. Leave random_state=None for a private fit.",
            ReproducibleNoiseWarning,
            stacklevel=5,  # the caller of fit, beyond two decorators
        )
        return key, generator


def check_sizes(**sizes):
    """Sizes of a fit that is planned without records.

    Raises
    ------
    TypeError, ValueError
        If one is no integer or out of range.
    """
    for name, value in sizes.items():
        most = MOST if name == "n_samples" else MOST_COORDINATES
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
        check_count(value, name, high=most)
