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
from numbers import Integral, Rational
from typing import Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..engines._engines import engine_of
from ..engines._geometry import margins_of, record_geometry
from ..engines._request import Request
from ..exceptions import PrivacyLeakWarning
from ..losses import LOSSES
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._spent import PrivacySpent
from ..privacy.ledger._accountant import charge
from ..privacy.sums._records import canonical
from ..utils._compat import check_sample_weight, fit_context
from ..utils._input import read_records
from ..utils._public import MOST, MOST_COORDINATES, check_count, check_real
from ..utils._typing import ArrayLike
from ._constraints import COMMON

# What lies between zero and infinity, whatever estimator has it, and which of them may be reached.
_REALS = {"epsilon": "right", "alpha": "left", "l1_ratio": "left", "step_decay": "left"}
_REALS |= dict.fromkeys(("delta", "clip", "max_iter", "step_size", "tol"), "neither")
_REALS |= dict.fromkeys(("C", "radius", "huber_threshold"), "neither")
_COUNTS = ("n_public", "n_threads", "block_size", "n_directions", "n_inner")


class PrivateLinearModel(BaseEstimator, metaclass=ABCMeta):
    """A linear model fitted through an oracle; see DPLinearRegressor for all parameters.

    A preset fixes a parameter by leaving it out of its ``__init__`` and giving a class attribute.
    """

    # What is not a parameter of a preset has these values.
    loss = None
    penalty = None
    solver = None
    alpha = 1.0
    l1_ratio = 0.0
    coef_bounds = None
    constraint = None
    radius = 1.0
    sampling = "auto"
    block_size = None
    rule = "gs-r"
    selection_share = 0.8
    selection = "full"
    sampling_rate = "auto"
    n_directions = None
    n_inner = None
    step_decay = 0.0
    momentum = "auto"
    accounting = "composition"
    penalize_intercept = False
    coef_path = False
    n_threads = 1

    _target_is_numeric = None

    _parameter_constraints = COMMON

    # ---- what a subclass gives ----

    @abstractmethod
    def _encode_labels(self, y, sample_weight):
        """Validate the target before the charge; what needs values of y comes after it.

        Returns the target and the number of outputs.
        """

    def _stated_outputs(self, n_outputs):
        """Number of coefficient vectors that so many outputs need."""
        return n_outputs

    def _scaling_of_target(self):
        """Center and half-width of the public bounds of the target."""
        return 0.0, 1.0

    def _scale_target(self, y, request):
        """The target as the loss takes it; after the charge."""
        return y

    # ---- the problem ----

    def _loss(self, n_outputs, target_half_width):
        """The loss of a target that was divided by `target_half_width`."""
        return LOSSES[self.loss].of(self, target_half_width)

    def _strength(self, n_normalizer):
        """Strength of the penalty beside a mean loss."""
        return float(self.alpha)

    # ---- public: what a fit would release ----

    def planned_event(self, n_samples: int, n_features: int, n_outputs: int = 1) -> FitEvent:
        """What a fit would release; nothing is charged and no record is needed.

        Parameters
        ----------
        n_samples : int, >= 1
            Number of records; ignored when `neighboring="add_remove"`, which has `n_public`.
        n_features : int, >= 1
        n_outputs : int, default=1
            Number of classes for the multinomial loss (or `classes` tell it), 1 for every other
            model.

        Returns
        -------
        FitEvent

        Raises
        ------
        TypeError, ValueError
            If a parameter is invalid, as `fit` does.
        """
        self._validate_params()
        sizes = {"n_samples": n_samples, "n_features": n_features, "n_outputs": n_outputs}
        for name, value in sizes.items():
            most = MOST if name == "n_samples" else MOST_COORDINATES
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
            check_count(value, name, high=most)
        if n_outputs != 1 and self.loss != "multinomial":
            raise ValueError(f"n_outputs must be 1 for {type(self).__name__}, got {n_outputs}")
        return self._plan(n_samples, n_features, self._stated_outputs(n_outputs)).event

    # ---- the recipe ----

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model, charging the accountant before a record is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            float32 or float64 in C or F order is read in place, memory maps too, and so are
            slices of rows or columns. Every other array is copied.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, finite and not all zero: a promise about the domain, since the error that
            follows otherwise tells of them. They multiply a record's contribution before it is
            clipped, and sums are normalised by the number of records, so they do not change the
            guarantee. They should be about 1 on average: step sizes assume it.

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
        y, n_outputs = self._encode_labels(y, sample_weight)
        # 2. plan: everything public, fixed from here on
        plan = self._plan(*X.shape, n_outputs, sparse=issparse(X))
        self._refuse_unprotected_charge()
        key, generator = self._randomness()
        if not plan.request.private:  # nothing is protected: what it refuses is not charged
            plan = plan.over(self._moments(X, sample_weight, plan.request.loss)).planned(X.shape[0])
        # 3. charge
        receipt = charge(
            self.accountant,
            plan.event,
            estimator=type(self).__name__,
            params=self.get_params(deep=False),
            n_samples=plan.request.n_normalizer,
            n_features=X.shape[1],
            reproducible=key is not None,
        )
        # 4. the oracle, which alone reads records, and the solver on what it releases
        records = X, self._scale_target(y, plan.request), sample_weight
        solution = plan.run(receipt, records, key, generator)
        # 5. what was released
        self._set_released(plan, solution)
        if (failure := getattr(plan.sampling, "failure", None)) is not None:
            warnings.warn(
                f"sampling failed after its trial ({failure}); in its place the first "
                f"{plan.sampling.block_size} coordinates were moved",
                UserWarning,
                stacklevel=4,  # the caller of fit, beyond two decorators
            )
        return self

    def _check_records(self, X, y):
        X, y = read_records(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=[np.float64, np.float32],
            y_numeric=self._target_is_numeric,
        )
        if issparse(X):
            return canonical(X), y
        return X if _is_read_in_place(X) else np.array(X, order="C"), y

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

    def _check_numbers(self):
        """What `_parameter_constraints` lets through: booleans, NaN, and joint conditions."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, bool) and "boolean" not in self._parameter_constraints[name]:
                raise TypeError(f"{name} must be a number or a word, not {value!r}")
        for name, closed in _REALS.items():
            if getattr(self, name, "auto") != "auto":
                check_real(getattr(self, name), name, low=0.0, closed=closed)
        if 1e300 < float(self.epsilon) < math.inf:
            raise ValueError("epsilon must be at most 1e300, or infinite for a fit without noise")
        if self.step_size != "auto" and float(self.step_size) > 1e15:
            raise ValueError(f"step_size must be at most 1e15, got {self.step_size!r}")
        for name in _COUNTS:
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, high=MOST)
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

    def _plan(self, n_samples, n_features, n_outputs, *, sparse=False):
        """The engine of a fit, every number of it fixed by parameters, shapes and public facts."""
        self._check_numbers()
        n = int(self.n_public if self.neighboring == "add_remove" else n_samples)
        delta = self._resolve_delta(n)
        center, half_width = self._scaling_of_target()
        request = Request.of(
            self,
            loss=self._loss(n_outputs, half_width),
            loss_word=self.loss,
            strength=self._strength(n),
            delta=delta,
            n_normalizer=n,
            n_features=n_features,
            n_outputs=n_outputs,
            sparse=sparse,
            target_center=center,
            target_half_width=half_width,
        )
        return engine_of(request).planned(n_samples)

    def _moments(self, X, sample_weight, loss):
        """The geometry of the records themselves: for fits without noise only."""
        return record_geometry(
            X,
            sample_weight,
            loss.curvature,
            self.fit_intercept,
            centered=self.fit_intercept and not self.penalize_intercept and not issparse(X),
        )

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
        if solution.path is not None:
            self.coef_path_, self.intercept_path_ = plan.to_original(solution.path)
        self.n_iter_ = solution.n_updates
        self.clip_ = plan.clip * plan.request.target_half_width
        self.privacy_event_ = plan.event
        self.privacy_spent_ = PrivacySpent(float(self.epsilon), plan.request.delta)
        noisy = [r for r in plan.event.releases if hasattr(r, "noise_multiplier")]
        nothing = 0.0 if math.isinf(self.epsilon) else math.nan  # no gradient is released
        self.noise_multiplier_ = noisy[0].noise_multiplier if noisy else nothing
        if math.isinf(self.epsilon) and not solution.converged:
            warnings.warn(
                f"the fit without noise stopped after {solution.n_updates} updates, before it met "
                f"tol={self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=5,  # the caller of fit, beyond two decorators
            )

    def _set_coef(self, coef, intercept):
        self.coef_ = coef
        self.intercept_ = float(intercept)

    def _margins(self, X):
        """X @ coef.T + intercept; of one output a vector."""
        check_is_fitted(self, "coef_")  # a refused fit leaves n_features_in_
        X = read_records(
            self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False
        )
        margins = margins_of(X, np.atleast_2d(self.coef_), self.intercept_)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise from the operating system
        tags.input_tags.sparse = True
        return tags


def _is_read_in_place(X):
    """Whether the cells of every row, or of every column, lie side by side, as Records asks."""
    row_gap, column_gap = X.strides
    if column_gap == X.itemsize or X.shape[1] == 1:
        gap = row_gap
    elif row_gap == X.itemsize or X.shape[0] == 1:
        gap = column_gap
    else:
        return False
    return X.flags.aligned and gap >= 0 and gap % X.itemsize == 0
