"""Checks of every estimator that charges, on its parameters, before it looks at a record."""

import math
from functools import cache
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from ..exceptions import PrivacyLeakWarning, ReproducibleNoiseWarning
from ..leaks import all_private, counted_and_not, tree_of
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._promise import promised, public_number
from ..privacy.ledger._accountant import charge
from ..privacy.mechanisms._questions import is_tape
from ..utils._compat import HasMethods, Interval, ScoringMonitor, StrOptions, held_by_callers
from ..utils._persons import OF_NEIGHBORING
from ..utils._public import MOST, MOST_COORDINATES, check_count, check_real
from ..utils._stated import ReproducibleNoise
from ..utils._warnings import warn

if TYPE_CHECKING:
    from ..privacy.accounting._spent import PrivacySpent

# Values of the parameters of every estimator that charges.
BUDGET_CONSTRAINTS = {
    "epsilon": [Interval(Real, 0, math.inf, closed="right")],  # infinity: no noise
    "delta": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
    "neighboring": OF_NEIGHBORING,
    "n_public": [None, Interval(Integral, 1, None, closed="left")],
    "accountant": [None, HasMethods(["charge"])],
}
# Above it a record may change the odds of an outcome more than twenty thousand times.
_LARGE_EPSILON = 10.0


class PrivateFit:
    """For an estimator with epsilon, delta, neighboring, n_public, accountant and random_state."""

    _was_charged = False  # whether a ledger counts a fit of this object or of its copies

    if TYPE_CHECKING:  # attributes of a fit
        privacy_event_: FitEvent
        privacy_spent_: PrivacySpent

    @classmethod
    @cache  # a plan asks for its parameters ten times, and each time a signature would be read
    def _get_param_names(cls):
        return super()._get_param_names()

    def planned_event(
        self, n_samples: int, n_features: Any, n_outputs: int = 1, *, sparse: bool = False
    ) -> FitEvent:
        """The event that a fit would release; nothing is charged and no record is needed.

        Parameters
        ----------
        n_samples : int, >= 1
            Number of records; ignored when `neighboring="add_remove"`, which has `n_public`.
        n_features : int, >= 1, or array-like of shape (n_rows, n_features)
            Number of features, before the first step of a pipeline; or made-up rows of them, where
            steps ask for names, words or numbers within a range.
        n_outputs : int, default=1
            Number of classes (1 is two of them, unless `classes` tell it), or of targets.
        sparse : bool, default=False
            Whether X is, if `n_features` is a number: other scales are found where none are stated.

        Returns
        -------
        FitEvent
            Without a release if nothing is learnt.

        Raises
        ------
        TypeError, ValueError
            If a parameter is invalid, as `fit` does, or a step can't take made-up rows of zeros.
        """
        self._validate_params()
        check_sizes(n_samples=n_samples, n_outputs=n_outputs)
        return self._event_of_shape(n_samples, n_features, n_outputs, sparse)

    def _validate_params(self):
        # scikit-learn asks of these whether they are NaN, which NumPy can't say
        for name, value in self.get_params(deep=False).items():
            if not isinstance(value, Rational):
                continue
            if not isinstance(value, Integral):
                raise TypeError(f"{name} must be an int or a float, not a {type(value).__name__}")
            if not -MOST <= value <= MOST:
                raise ValueError(
                    f"{name} must lie within -2^53 and 2^53 as an integer; write a float if it is "
                    "larger"
                )
        super()._validate_params()

    def _check_budget(self):
        """Refuse booleans, NaN and joint conditions, which `_parameter_constraints` let through."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, bool) and "boolean" not in self._parameter_constraints[name]:
                raise TypeError(f"{name} must be a number or a word, not {value!r}")
        check_real(self.epsilon, "epsilon", low=0.0, closed="right")
        if self.delta != "auto":
            check_real(self.delta, "delta", low=0.0)
        if 1e300 < float(self.epsilon) < math.inf:
            raise ValueError("epsilon must be at most 1e300, or infinite for a fit without noise")
        public_number(self.neighboring, self.n_public)

    def _budget(self, n_samples):
        """The Budget of a fit, with δ as a number and n a public one."""
        stated = self.epsilon, self.delta, self.neighboring, self.n_public
        return promised(*stated, n_samples)

    def _refuse_unprotected_charge(self):
        """No record is read for an entry that the ledger refuses: of a fit without noise."""
        if self.accountant is None or getattr(self.accountant, "testing", False):
            return
        if math.isinf(self.epsilon):
            raise ValueError(
                "epsilon=inf releases without noise, which no budget admits. Fit without the "
                "accountant, or make one with testing=True"
            )

    def _stated_params(self):
        """The parameters that the ledger's entry keeps."""
        return self.get_params(deep=False)

    def _charge(self, event, budget, n_features, key):
        """Charge the event of records for a fit whose noise comes from a key, if it has one."""
        receipt = charge(
            self.accountant,
            event,
            budget=budget,
            estimator=type(self).__name__,
            params=self._stated_params(),
            n_samples=budget.n,
            n_features=n_features,
            reproducible=key is not None,
        )
        self._was_charged = self._was_charged or receipt.entry_id is not None
        return receipt

    def _recorded(self, plan):
        """The plan, which a tape keeps."""
        if is_tape(self.random_state):
            self.random_state.planned(plan)
        return plan

    def _warn_before_charge(self, budget):
        """Once a process of each topic, and before the charge: a warning may be made an error."""
        if any(isinstance(c, ScoringMonitor) for c in getattr(self, "_skl_callbacks", ())):
            # at every fit: the monitor finds no scores afterwards, and does not say why
            warn(
                "ScoringMonitor is silenced: scores of every step on the records that are fitted "
                "would be releases that nobody counts, so callbacks are given neither records nor "
                "models. A score that is paid for is one of dpcd_sklearn.metrics after the fit"
            )
        warn_of_weak_promise(budget)
        scorers = held_by_callers("scorer", "scorers")
        if self.accountant is None:
            if self._was_charged:
                self._warn_once(
                    "uncounted after charged",
                    f"this {type(self).__name__} was charged before, and has accountant=None now: "
                    "this fit is a release that no ledger counts. Give it the accountant again",
                )
            if math.isfinite(self.epsilon) and scorers:
                self._warn_once(
                    "uncounted search",
                    "private fits of a search without an accountant: what they cost together, and "
                    "that the best score chooses, is counted by nobody. Give the model "
                    "accountant=PrivacyAccountant(...), or search with "
                    "dpcd_sklearn.model_selection.PrivateSearchCV, whose whole cost is one epsilon",
                )
        elif self._was_charged and not getattr(self, "warm_start", False):
            self._warn_once(
                "second charge",
                f"this {type(self).__name__} is fitted a second time, at the full price again. "
                "If you choose among fits by their scores, the choice is a release that no ledger "
                "counts; dpcd_sklearn.model_selection.PrivateSearchCV chooses within the budget",
            )
        if not all_private(scorers):
            self._warn_of_score()
        self._warn_of_mixture()

    def _warn_of_mixture(self):
        """Warn where scikit-learn fits counted and uncounted parts of one object."""
        if getattr(self.accountant, "plan", None) is not None:
            return
        around = [e for e in held_by_callers("self", "estimator") if hasattr(e, "get_params")]
        if not around or around[-1] is self:  # nothing else is fitted
            return
        counted, uncounted = counted_and_not(tree_of(around[-1]))
        counted = [c for c in counted if not getattr(c.get("accountant"), "testing", False)]
        if counted and uncounted:
            self._warn_once(
                "uncounted beside counted",
                f"{type(around[-1]).__name__} fits {counted[0].where}, which a ledger counts, and "
                f"{uncounted[0].where}, which has accountant=None: the ledger's guarantee does not "
                "cover the second. Give both the same accountant, or share one budget in a "
                "dpcd_sklearn.pipeline.PrivatePipeline",
            )

    def _warn_once(self, topic, words):
        """A PrivacyLeakWarning, once a process; a search would repeat it at every fold."""
        warn(f"{words}. Said once a process", PrivacyLeakWarning, topic)

    def _warn_of_score(self):
        """Warn of a score of a model whose fits somebody counts: nobody counts that release."""
        if self.accountant is None or getattr(self.accountant, "testing", False):
            return
        self._warn_once(
            "score",
            f"a score of {type(self).__name__} is computed from these records without noise, and "
            "no ledger counts it: publish none on private records, choose nothing by it. "
            "dpcd_sklearn.metrics has scorers with noise, which are charged",
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
        if is_tape(self.random_state):
            key = self.random_state
        if not by_name:
            return None, generator
        warn(
            "ReproducibleNoise makes the noise of this fit known: whoever knows the seed can "
            "remove it, so the fit is not private. Leave random_state=None for a private fit.",
            ReproducibleNoiseWarning,
        )
        return key, generator


def warn_of_weak_promise(budget):
    """Warn of a large epsilon or delta, once a process and before the charge."""
    if not budget.private:
        return
    if budget.epsilon > _LARGE_EPSILON:
        who = "a record" if budget.max_contributions == 1 else "a person"
        warn(
            f"epsilon={budget.epsilon:g} promises little: {who} may change the odds of an "
            f"outcome by a factor of e^{budget.epsilon:g}. Values of 1 or less are usual for "
            f"personal data, and {_LARGE_EPSILON:g} is a lot. Said once a process",
            PrivacyLeakWarning,
            "large epsilon",
        )
    if budget.delta * budget.n >= 1:
        warn(
            f"delta={budget.delta:g} is no less than 1/n for n={budget.n:,}: publishing a "
            'whole record of one in n persons would be allowed. Leave delta="auto", which is '
            "1/n², or state a number far below 1/n. Said once a process",
            PrivacyLeakWarning,
            "large delta",
        )


def width_and_layout(n_features, sparse=False):
    """The number of features and whether they are sparse, of that number or of rows of them."""
    if len(getattr(n_features, "shape", ())) == 2:
        n_features, sparse = n_features.shape[1], sparse or issparse(n_features)
    check_sizes(n_features=n_features)
    return n_features, sparse


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
