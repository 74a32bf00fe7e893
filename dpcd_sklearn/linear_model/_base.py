"""The one fit recipe; estimators are parameters, documentation and predictions.

    parameters, shapes, public facts -> plan -> charge -> oracle -> solver -> coef_

(a) Nothing that depends on the values of records is used before the charge is durable, beyond
    the validation of shape, dtype, finiteness and labels.
(b) A plan is a pure function of parameters, shapes and public facts; ``planned_event`` shows what
    it would release.
"""

import math
import warnings
from abc import ABCMeta, abstractmethod
from numbers import Integral, Real
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..exceptions import PrivacyLeakWarning
from ..privacy._accountant import PrivacySpent, charge
from ..privacy._events import NEIGHBORING, FitEvent
from ..privacy._oracle import RecordOracle
from ..solvers._problem import Problem
from ..utils._compat import HasMethods, Interval, StrOptions, check_sample_weight, fit_context
from ..utils._public import check_real
from ..utils._typing import ArrayLike
from ._geometry import public_geometry, record_geometry
from ._plan import Facts, Plan, number_of_updates

POSITIVE = Interval(Real, 0, None, closed="neither")
AUTO_OR_POSITIVE = [StrOptions({"auto"}), POSITIVE]


class PrivateLinearModel(BaseEstimator, metaclass=ABCMeta):
    """A linear model fitted through an oracle; see DPLassoCD for the meaning of the parameters.

    A subclass gives the class attributes and the abstract methods below.
    """

    _loss = None  # an instance of a class of `losses`
    _target_is_numeric = None
    _exact_max_iter = None  # passes of a fit without noise, unless max_iter says more

    _parameter_constraints = {
        "epsilon": [Interval(Real, 0, math.inf, closed="right")],  # infinity: no noise
        "delta": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "neighboring": [StrOptions(set(NEIGHBORING))],
        "n_public": [None, Interval(Integral, 1, None, closed="left")],
        "clip": AUTO_OR_POSITIVE,
        "max_iter": AUTO_OR_POSITIVE,
        "step_size": AUTO_OR_POSITIVE,
        "averaging": [StrOptions({"auto", "last", "tail"})],
        "fit_intercept": ["boolean"],
        "feature_bounds": [None, tuple, list, np.ndarray],
        "feature_scale": [None, Real, tuple, list, np.ndarray],
        "row_norm_bound": [None, POSITIVE],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "accountant": [None, HasMethods(["charge", "cost", "spent"])],
        "random_state": ["random_state"],
    }

    # ---- what a subclass gives ----

    @abstractmethod
    def _penalty(self, n_normalizer, target_half_width):
        """The penalty beside a mean loss, with the target divided by `target_half_width`."""

    @abstractmethod
    def _release(self, delta, problem, geometry):
        """The FitEvent of the problem's updates at `epsilon` and `delta`."""

    @abstractmethod
    def _recipe(self, facts, geometry, block_size):
        """Values for "auto": a dict of max_iter, step_size, momentum and averaging, and
        residual_clip, in units of the scaled target's derivative: C_j = residual_clip sqrt(M_j).
        """

    @abstractmethod
    def _solve(self, oracle, plan, generator):
        """Run the solver on a plan."""

    @abstractmethod
    def _encode_labels(self, y, sample_weight):
        """Validate the target before the charge; what needs values of y comes after it."""

    def _sampling(self, n_coordinates, geometry):
        """The sampling of coordinates, or None for greedy selection."""
        return None

    def _scaling_of_target(self):
        """Center and half-width of the public bounds of the target."""
        return 0.0, 1.0

    def _scale_target(self, y, plan):
        """The target as the loss takes it; after the charge."""
        return y

    # ---- public: what a fit would release ----

    def planned_event(self, n_samples: int, n_features: int, n_outputs: int = 1) -> FitEvent:
        """What a fit would release; nothing is charged and no record is needed.

        Parameters
        ----------
        n_samples : int, >= 1
            Number of records; ignored when `neighboring="add_remove"`, which has `n_public`.
        n_features : int, >= 1
        n_outputs : int, default=1
            Only 1 is supported.

        Returns
        -------
        FitEvent

        Raises
        ------
        TypeError, ValueError
            If a parameter is invalid, as `fit` does.
        """
        self._validate_params()
        for name, value in (("n_samples", n_samples), ("n_features", n_features)):
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
        if n_outputs != 1:
            raise ValueError(f"n_outputs must be 1 for {type(self).__name__}, got {n_outputs}")
        return self._plan(n_samples, n_features).event

    # ---- the recipe ----

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model, charging the accountant before a record is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            float32 or float64 in C or F order is read in place.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights. They multiply a record's contribution before it is clipped, and
            sums are normalised by the number of records, so they do not change the guarantee.
            They should be about 1 on average: step sizes assume it.

        Returns
        -------
        self : object

        Raises
        ------
        BudgetExceededError
            If the accountant refuses the charge; no record was used.
        LedgerError
            If the accountant's ledger can't be written; no record was used.
        TypeError, ValueError
            If a parameter, X, y or a weight is invalid; nothing was charged.
        """
        # 1. validation: shape, dtype, finiteness, labels
        X, y = self._check_records(X, y)
        sample_weight = check_sample_weight(sample_weight, X)
        y = self._encode_labels(y, sample_weight)
        # 2. everything public, fixed from here on
        plan = self._plan(*X.shape)
        self._refuse_unprotected_charge()
        key, generator = self._randomness()
        # 3. pay
        receipt = charge(
            self.accountant,
            plan.event,
            estimator=type(self).__name__,
            params=self.get_params(deep=False),
            n_samples=plan.n_normalizer,
            n_features=X.shape[1],
        )
        # 4. read records through the oracle only
        if math.isinf(self.epsilon):
            centered = self.fit_intercept and not self._penalizes_intercept()
            plan = plan.with_geometry(
                record_geometry(
                    X, sample_weight, self._loss.curvature, self.fit_intercept, centered
                )
            )
        records = X, self._scale_target(y, plan), sample_weight
        solution = self._run(receipt, records, plan, key, generator)
        # 5. what was released
        self._set_released(plan, solution)
        return self

    def _run(self, receipt, records, plan, key, generator):
        """Make the oracle and run the solver on what it releases."""
        X, target, sample_weight = records
        oracle = RecordOracle(
            receipt,
            X,
            target,
            loss=self._loss,
            smoothness=plan.geometry.smoothness,
            clip=plan.clip if math.isfinite(plan.clip) else 1.0,
            n_normalizer=plan.n_normalizer,
            sample_weight=sample_weight,
            fit_intercept=self.fit_intercept,
            bounds=plan.geometry.bounds,
            key=key,
        )
        return self._solve(oracle, plan, generator)

    def _check_release(self, plan, n_samples):
        """Raise the ValueError that the oracle would raise, before anything is charged."""
        RecordOracle.check(
            plan.event,
            n_samples=n_samples,
            smoothness=plan.geometry.smoothness,
            clip=plan.clip,
            n_normalizer=plan.n_normalizer,
            fit_intercept=self.fit_intercept,
        )

    def _check_records(self, X, y):
        X, y = validate_data(
            self, X, y, dtype=[np.float64, np.float32], y_numeric=self._target_is_numeric
        )
        if not (X.flags.c_contiguous or X.flags.f_contiguous) or not X.flags.aligned:
            X = np.array(X, order="C")  # gaps or no alignment: the only cases that are copied
        return X, y

    def _check_numbers(self):
        """What `_parameter_constraints` lets through: booleans, NaN, and joint conditions."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, bool) and "boolean" not in self._parameter_constraints[name]:
                raise TypeError(f"{name} must be a number or a word, not {value!r}")
        for name in ("epsilon", "delta", "clip", "max_iter", "step_size", "tol"):
            if getattr(self, name) != "auto":
                closed = "right" if name == "epsilon" else "neither"  # only epsilon may be infinite
                check_real(getattr(self, name), name, low=0.0, closed=closed)
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

    def _plan(self, n_samples, n_features):
        """Fix every number of a fit from parameters, shapes and public facts."""
        self._check_numbers()
        n = self.n_public if self.neighboring == "add_remove" else n_samples
        private = math.isfinite(self.epsilon)
        delta = self._resolve_delta(n)
        with np.errstate(over="ignore"):  # RecordOracle.check refuses what overflows
            geometry = self._geometry(n_features)
        n_coordinates = len(geometry.smoothness)
        sampling = self._sampling(n_coordinates, geometry)
        block_size = n_coordinates if sampling is None else sampling.block_size
        facts = Facts(n, n_coordinates, self.epsilon, delta, private)
        recipe = self._recipe(facts, geometry, block_size)
        if not private:
            recipe |= {"max_iter": self._exact_max_iter, "averaging": "last"}
        chosen = {
            name: recipe[name] if getattr(self, name, "auto") == "auto" else getattr(self, name)
            for name in ("max_iter", "step_size", "momentum", "averaging")
        }
        n_updates = number_of_updates(chosen["max_iter"], n_coordinates, block_size)
        if n_updates > 2**53:
            raise ValueError(
                f"max_iter={self.max_iter!r} asks for {n_updates:.3g} updates, at most 2^53 can be "
                "counted; ask for fewer passes"
            )
        center, half_width = self._scaling_of_target()
        problem = Problem(
            penalty=self._penalty(n, half_width),
            smoothness=geometry.smoothness,
            n_penalized=n_coordinates if self._penalizes_intercept() else n_features,
            n_updates=n_updates,
            step_size=chosen["step_size"],
            momentum=chosen["momentum"],
            averaging=chosen["averaging"],
            tol=0.0 if private else float(self.tol),
        )
        plan = Plan(
            event=self._release(delta, problem, geometry),
            geometry=geometry,
            sampling=sampling,
            problem=problem,
            clip=self._resolve_clip(recipe, geometry, half_width, private),
            n_normalizer=n,
            delta=delta,
            target_center=center,
            target_half_width=half_width,
        )
        if private:
            self._check_release(plan, n_samples)
        return plan

    def _geometry(self, n_features):
        """M_j and what else is public about the features."""
        return public_geometry(
            n_features,
            self._loss.curvature,
            self.fit_intercept,
            self.feature_bounds,
            self.feature_scale,
            self.row_norm_bound,
        )

    def _penalizes_intercept(self):
        return False

    def _resolve_clip(self, recipe, geometry, target_half_width, private):
        """C in units of the scaled target: C_j = C sqrt(M_j / tr M)."""
        if not private:
            return math.inf
        if self.clip == "auto":
            return recipe["residual_clip"] * math.sqrt(geometry.smoothness.sum())
        return self.clip / target_half_width

    def _refuse_unprotected_charge(self):
        """A ledger vouches for its entries: no entry for a fit that protects nobody."""
        if self.accountant is None or getattr(self.accountant, "testing", False):
            return
        if math.isinf(self.epsilon):
            raise ValueError(
                "epsilon=inf releases without noise, which no budget admits. Fit without the "
                "accountant, or make one with testing=True"
            )
        if self.random_state is not None:
            raise ValueError(
                "a fixed random_state makes the noise removable, so the accountant can't vouch for "
                "this fit. Leave random_state=None, or make the accountant with testing=True"
            )

    def _randomness(self):
        """The key of the noise and the generator of public choices."""
        if self.random_state is None:
            return None, np.random.default_rng()  # both from the operating system's entropy
        random_state = check_random_state(self.random_state)
        key = random_state.bytes(32)
        if math.isfinite(self.epsilon):
            warnings.warn(
                "random_state makes the noise reproducible: whoever knows the seed can remove it, "
                "so this fit is not private. Leave random_state=None for a private fit.",
                PrivacyLeakWarning,
                stacklevel=5,  # the caller of fit, beyond two decorators
            )
        return key, np.random.default_rng(list(random_state.bytes(16)))

    def _set_released(self, plan, solution):
        coef, intercept = plan.to_original(solution.coef)
        self._set_coef(coef, intercept)
        self.n_iter_ = solution.n_updates
        self.clip_ = plan.clip * plan.target_half_width
        self.privacy_event_ = plan.event
        self.privacy_spent_ = PrivacySpent(float(self.epsilon), plan.delta)
        noisy = [r for r in plan.event.releases if hasattr(r, "noise_multiplier")]
        self.noise_multiplier_ = noisy[0].noise_multiplier if noisy else 0.0

    def _set_coef(self, coef, intercept):
        self.coef_ = coef
        self.intercept_ = intercept

    def _margins(self, X):
        """X @ coef + intercept for one output."""
        check_is_fitted(self, "coef_")  # a refused fit leaves n_features_in_
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return X @ np.ravel(self.coef_) + np.ravel(self.intercept_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise from the operating system
        return tags
