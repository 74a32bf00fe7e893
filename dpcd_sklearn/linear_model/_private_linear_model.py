"""The one fit recipe; estimators are parameters, documentation and predictions.

    parameters, shapes, public facts -> plan -> charge -> oracle -> solver -> coef_

(a) Nothing that depends on the values of records is used before the charge is durable, beyond
    the validation of shape, dtype, finiteness and labels.
(b) A plan is a pure function of parameters, shapes and public facts; ``planned_event`` shows what
    it would release.
"""

import math
from abc import ABCMeta, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from ..exceptions import UnknownScaleWarning
from ..losses import SYNONYMS, smoothed_share, stated_loss
from ..penalties import StatedPenalty
from ..plan._few_records import warn_of_few_records
from ..plan._found_scales import FoundScales
from ..plan._margin_length import with_length
from ..plan._private_fit import PrivateFit, width_and_layout
from ..plan._records_outside import found_share_outside, warn_of_cut
from ..plan._request import Request
from ..plan._scales import found_scales
from ..plan._shrinkage import shrunk
from ..plan._smoothness import found_mean_row, found_moments
from ..plan._target import found_target
from ..plan._target_mean import with_mean
from ..privacy.accounting._spent import PrivacySpent
from ..privacy.sums._records import canonical, is_read_in_place
from ..solvers._choice import plan_of
from ..utils._cells import read_labels
from ..utils._compat import CallbackSupportMixin, fit_context
from ..utils._input import read_records
from ..utils._public import MOST, check_count
from ..utils._stated import Stated
from ..utils._typing import ArrayLike, Column
from ..utils._warnings import warn
from ._documentation import ShortSignature, documented
from ._parameters import (
    COMMON,
    MAY_BE_OBJECTS,
    SharedParameters,
    ball_of,
    bounds_of,
    refuse_absent,
    refuse_elsewhere,
    refuse_parameters_of_words,
    stated_solver,
)
from ._prediction import Exported
from ._progress import Progress
from ._records import checked_records
from ._strengths import (
    WithStrength,
    candidates,
    check_values,
    fit_cross_validated,
    keep_choice,
    values_of,
)
from ._warm_start import EarlierFit, start_of

# Parameters between zero and infinity, whatever estimator has them, and which ends may be reached.
_REALS = {"alpha": {"closed": "left"}, "l1_ratio": {"closed": "both", "high": 1.0}}
_REALS |= dict.fromkeys(("C", "clip", "max_iter", "tol"), {"closed": "neither"})


class PrivateLinearModel(
    WithStrength, Exported, PrivateFit, CallbackSupportMixin, SharedParameters, metaclass=ABCMeta
):
    """A linear model fitted through an oracle; see DPLinearRegressor for all parameters.

    A preset fixes a parameter by leaving it out of its ``__init__`` and giving a class attribute.
    """

    # The solver that a preset is named after, and the parameters that no other solver has.
    _named_after = None
    _of_its_name = ()

    # Values of parameters that a preset does not have.
    loss = None
    penalty = None
    alpha = 1.0
    l1_ratio = 0.0
    positive = False
    constraint = None
    penalize_intercept = False
    class_weight = None

    _target_is_numeric = None
    _has_many_targets = False
    _checked = checked_records

    if TYPE_CHECKING:  # attributes of a fit
        coef_: np.ndarray
        intercept_: float | np.ndarray
        n_features_in_: int

    _parameter_constraints = COMMON
    __signature__ = ShortSignature()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.__doc__ = documented(cls)

    def __new__(cls, *args, **params):  # before Python refuses them with fewer words
        refuse_elsewhere(cls, params, TypeError)
        return super().__new__(cls)

    # ---- what a subclass gives ----

    @abstractmethod
    def _encode_labels(self, y, sample_weight):
        """Validate the target before the charge; what needs values of y comes after it.

        Returns the target and the number of outputs.
        """

    @abstractmethod
    def _plain(self):
        """scikit-learn's estimator of this model, not fitted."""

    @abstractmethod
    def _stated_outputs(self, n_outputs):
        """Number of coefficient vectors that so many outputs need."""

    def _scaling_of_target(self, n_outputs):
        """Center and half-width of the public bounds of the target, or arrays of several."""
        return 0.0, 1.0

    def _finds_target(self):
        """Whether bounds of the target are to be found."""
        return False

    def _without_noise(self, plan, records):
        """The plan of a fit without noise, of which a loss may look at the records."""
        return plan

    def _scale_target(self, y, request):
        """The target as the loss takes it; after the charge."""
        return y

    def _weights_of(self, y, sample_weight):
        """Weights of records with those of their classes; after the charge, if there is noise."""
        return sample_weight

    # ---- the problem ----

    @property
    def _loss_word(self):
        """`loss`, be it in scikit-learn's words."""
        return getattr(self.loss, "word", None) or SYNONYMS.get(self.loss, self.loss)

    @property
    def _penalty_word(self):
        first = values_of(self.penalty)[0]
        return getattr(first, "word", first)

    def _validate_params(self):
        refuse_absent(loss=self.loss, solver=self.solver)
        super()._validate_params()

    def _loss(self, n_outputs, target_half_width, share=0.1):
        """The loss of a target that was divided by `target_half_width`."""
        private = self.epsilon < np.inf
        return stated_loss(self._loss_word, self.loss, target_half_width, private, share)

    def set_params(self, **params: object) -> Self:
        """Set parameters, those of a solver that is an object by ``solver__name`` too.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no such parameter; a solver that is a word has none.
        """
        refuse_elsewhere(type(self), params, ValueError)
        refuse_parameters_of_words(self, params)
        return super().set_params(**params)

    def _event_of_shape(self, n_samples, n_features, n_outputs, sparse):
        # the event does not depend on the order of bounds by name; `fit` compares names with X's
        columns = self.feature_bounds if isinstance(self.feature_bounds, dict) else None
        columns = getattr(n_features, "columns", columns)
        n_features, sparse = width_and_layout(n_features, sparse)
        n_outputs = self._stated_outputs(n_outputs)
        return self._plan(n_samples, n_features, n_outputs, sparse=sparse, columns=columns).charged

    # ---- the recipe ----

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: Column = None, groups: Column = None
    ) -> Self:
        """Fit the model, charging the accountant before a record is used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            float32 or float64 in C or F order is read in place, memory maps too, and so are
            slices of rows or columns, but for single coordinates ("cd") an array in C order is
            turned once. Every other array is copied.
        y : array-like of shape (n_samples,) or, for regressors, (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights >= 0, finite and not all zero: a promise about the domain, since the error that
            follows otherwise tells of them. They multiply a record's contribution before it is
            clipped, and sums are normalised by the number of records, so they do not change the
            guarantee. They should be about 1 on average, which step sizes assume; Newton steps
            with noise count those above 2 as 2. Divide survey weights by a public number. Of
            weights above 1 the clip may take away what they give, in `class_weight` too: those are
            public, so they are refused; these are records', so no error may tell of them.
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record, integers or strings. For ``Persons()`` a person's
            gradients are clipped as one, their sum over the root of their number. For
            ``Persons(k)`` at most k records of each person are read.

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
        records = self._checked(X, y, sample_weight, groups)
        shape, n_outputs = records.shape, records.n_outputs
        if math.isinf(self.epsilon) and candidates(self, shape[0]):
            return fit_cross_validated(self, *records.arrays())
        # 2. plan: everything public, fixed from here on
        facts = {"sparse": records.sparse, "in_arrays": records.in_arrays}
        facts["columns"] = getattr(self, "feature_names_in_", None)
        plan = self._recorded(self._plan(*shape, n_outputs, **facts))
        self._refuse_unprotected_charge()
        key, generator = self._randomness()
        if not plan.request.private:  # nothing is protected: what it refuses is not charged
            plan = self._without_noise(plan, records)
            plan = plan.over_records(records.weighted())
        known = start = self._start(plan, shape[1])
        self._warn_before_charge(plan.request.budget)
        self._warn_of_unused_alpha()
        self._warn_of_unknown_scales(plan.request)
        self._warn_of_one_strength(plan.outputs[0].request)
        warn_of_few_records(plan.request)
        # 3. charge
        receipt = self._charge(plan.event, plan.request.budget, shape[1], key)
        # 4. oracles, which alone read records: scales, counts, and the solver on what it releases
        found = self._found(plan, receipt, records, key)
        if found is not None:
            plan = self._recorded(self._plan(*shape, n_outputs, located=(plan, found)))
        if plan.part_of("outside") is not None:
            self._outside = outside = found_share_outside(plan, receipt, records, key)
        scaled = records.scaled(plan.request)
        if plan.request.mean_share:
            plan, start = self._start_at_mean(plan, receipt, scaled, key)
        if plan.request.counts_share:
            known, start = self._start_at_shares(plan, receipt, scaled.labels(), key)
        first = start or (found and found.start(plan))
        plan = plan.attended_by(first, progress := Progress(self, plan.n_told, plan.charged))
        base = known if plan.request.n_classes > 2 else start  # shares of two may be unsure
        solution = shrunk(plan, records.run(plan, receipt, scaled, key, generator), base)
        solution = with_length(plan, receipt, scaled, key, solution, known)
        solution = with_mean(plan, receipt, scaled, key, solution)
        # 5. what was released
        self._set_released(plan, solution, records.dtype)
        if (failure := getattr(plan.sampling, "failure", None)) is not None:
            warn(
                f"sampling failed after its trial ({failure}); in its place the first "
                f"{plan.sampling.block_size} coordinates were moved"
            )
        if plan.part_of("outside") is not None:
            warn_of_cut(plan.request, *outside)
        (found or FoundScales()).cut.warn(plan.request.columns)
        progress.end()
        return self

    def _found(self, plan, receipt, records, key):
        """FoundScales of what the plan looks for, or None if that is nothing; after the charge."""
        request, scales = plan.request, plan.request.scales
        found = self._known_scales
        if scales.n_choices:
            found = found_scales(plan, receipt, records.unscaled(False), key)
        if request.target_search.n_choices:
            target = found_target(plan, receipt, records.unscaled(True), key)
            found = replace(found or FoundScales(), **target)
        if request.smoothness_share:
            place = records.unscaled(False)
            if not request.asks_for_smoothness:
                row = found_mean_row(plan, receipt, place, key, found.row_norm_bound)
                return replace(found, mean_row=row)
            squares, means = found_moments(plan, receipt, place, key)
            found = replace(found or FoundScales(), mean_squares=squares, means=means)
        return found

    def _start(self, plan, n_features):
        """Where a warm start begins, and None for a cold one; before the charge."""
        if self.warm_start and plan.forgets_its_start:
            raise ValueError(
                "warm_start=True does nothing with solver='frank-wolfe': leave it False"
            )
        return start_of(self, n_features, plan.request.n_outputs)

    def _warn_of_unknown_scales(self, request):
        looks = request.looks_for_features and not request.scales.features
        is_unknown = looks and not self._known_scales
        words = {"feature_bounds": "feature_scale=1.0"} if is_unknown else {}
        if request.finds_target and not request.target_search.n_choices:
            words |= {"target_bounds": "target_bounds=(-1, 1)"}
        if not words or not request.private:
            return
        warn(
            f"n={request.budget.n:,} and epsilon={request.budget.epsilon:g} are too small to find "
            f"scales in the records, so unit scale is assumed. State {' and '.join(words)}, which "
            f"costs nothing, or {' and '.join(words.values())} if it is so",
            UnknownScaleWarning,
        )

    _labels = staticmethod(read_labels)

    def _check_records(self, X, y):
        X, y = read_records(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=[np.float64, np.float32],
            y_numeric=self._target_is_numeric,
            multi_output=self._has_many_targets,
        )
        if issparse(X):
            return canonical(X), y
        return X if is_read_in_place(X) else np.array(X, order="C"), y

    def _check_numbers(self):
        """Refuse booleans, NaN and joint conditions, which `_parameter_constraints` let through."""
        self._check_budget()
        for name, interval in _REALS.items():
            stated = getattr(self, name, "auto")
            if not (isinstance(stated, str) and stated == "auto"):
                check_values(stated, name, low=0.0, **interval)
        if self.n_threads is not None:
            check_count(self.n_threads, "n_threads", high=MOST)
        for stated in (getattr(self, name) for name in MAY_BE_OBJECTS):
            if isinstance(stated, Stated):
                stated.check()
        if self.positive and self.penalize_intercept:
            raise ValueError(
                "positive=True leaves the intercept free, so penalize_intercept must be False"
            )

    def _plan(self, n_samples, n_features, n_outputs, *, columns=None, located=None, **facts):
        """The plan of a fit, every number of it fixed by parameters, shapes and public facts.

        `located` is an earlier plan and the FoundScales that became public since; `facts` are of
        the records' layout.
        """
        if located is not None:
            plan, found = located
            share = smoothed_share(plan.request.budget, n_features)
            loss = self._loss(n_outputs, found.half_width(plan.request), share)
            return plan.located(found, loss, n_samples)
        self._check_numbers()
        budget = self._budget(n_samples)
        center, half_width = self._scaling_of_target(n_outputs)
        request = Request.of(
            self,
            loss=self._loss(n_outputs, half_width, smoothed_share(budget, n_features)),
            solver=stated_solver(self),
            penalty=self._penalty_word,
            coef_bounds=bounds_of(self.penalty),
            by_column=self._by_column(n_features, columns),
            constraint=ball_of(self.constraint),
            strength=self._beside_mean_loss(self._strength, budget.n),
            strengths=candidates(self, budget.n) if budget.private else (),
            alpha=self._strength,
            l1_ratio=float(values_of(self.l1_ratio)[0]),
            budget=budget,
            n_features=n_features,
            n_outputs=n_outputs,
            target_center=center,
            target_half_width=half_width,
            finds_target=self._finds_target(),
            columns=None if columns is None else tuple(columns),
            **{"sparse": False, "in_arrays": True} | facts,
        )
        return plan_of(request).planned(n_samples)

    def _by_column(self, n_features, columns):
        """Return signs or groups of columns that a penalty states, if it is an object."""
        if not isinstance(self.penalty, StatedPenalty):
            return None
        return self.penalty.by_column(n_features, None if columns is None else list(columns))

    def _set_released(self, plan, solution, dtype):
        coef, intercept = plan.to_original(solution.coef, dtype)
        self._set_coef(coef, intercept)
        self.feature_bounds_ = plan.geometry.clipped_to
        self.row_norm_bound_ = plan.request.row_norm_bound
        if solution.path is not None:
            self.coef_path_, self.intercept_path_ = plan.to_original(solution.path, dtype)
        keep_choice(self, plan, solution, dtype)
        self._earlier_fit = EarlierFit.of(self)
        self._set_inference(plan, solution)
        self.solver_ = plan.word
        self._n_records = plan.request.budget.n  # a public number, for reports
        self.n_iter_ = solution.n_updates
        self.clip_ = plan.stated_clip
        self.privacy_event_ = plan.charged
        self.privacy_spent_ = PrivacySpent(float(self.epsilon), plan.request.budget.delta)
        updates = plan.request.budget.of_persons(plan.part).releases
        noisy = [r for r in updates if hasattr(r, "noise_multiplier")]
        nothing = 0.0 if math.isinf(self.epsilon) else math.nan  # no gradient is released
        self.noise_multiplier_ = noisy[0].noise_multiplier if noisy else nothing
        if math.isinf(self.epsilon) and not solution.converged:
            warn(
                f"the fit without noise stopped after {solution.n_updates} updates, before it met "
                f"tol={self.tol:g}; raise max_iter or tol",
                ConvergenceWarning,
            )

    def _set_inference(self, plan, solution):
        """Keep what was found of errors; nothing is, where it can't be asked for."""

    def _set_coef(self, coef, intercept):
        self.coef_ = coef
        self.intercept_ = float(intercept) if np.ndim(intercept) == 0 else intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise from the operating system
        tags.input_tags.sparse = True
        return tags
