"""scikit-learn's Pipeline, with one budget for all of its private steps."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from ..exceptions import PrivacyLeakWarning
from ..leaks import may_be_sparse, refuse_leaks
from ..plan._private_fit import BUDGET_CONSTRAINTS, PrivateFit, check_sizes
from ..privacy.accounting._spent import PrivacySpent
from ..privacy.ledger._accountant import PrivacyAccountant
from ..privacy.ledger._prepaid import Prepaid
from ..utils._cells import is_of_another_library, on_host, refuse_collections
from ..utils._compat import Pipeline, StrOptions, available_if
from ..utils._input import by_name, read_table, reworded
from ..utils._persons import PersonsOfRows, ids_of, read_of_each
from ..utils._public import width_of
from ..utils._stated import ReproducibleNoise
from ..utils._typing import ArrayLike, Auto, Column, Neighboring
from ..utils._warnings import held_back, repeat, warn
from ._budget_of_step import as_params, copy_of, give_back, tell_target_bounds
from ._fitted_pipeline import InferenceOfModel, LeavesAsPlain
from ._joint_plan import (
    check_steps,
    joint_planner,
    n_outputs_of,
    refuse_what_steps_refuse,
    shares_of,
    walked,
)
from ._public_facts import PublicFacts, facts_after, first_rows


def _answer(method):
    """A method of Pipeline, for X as `fit` reads it."""
    of_pipeline = getattr(Pipeline, method)

    @available_if(lambda self: hasattr(Pipeline(self.steps), method))
    @wraps(of_pipeline)
    def answer(self, X, *args, **params):
        return of_pipeline(self, self._as_fitted(X), *args, **params)

    return answer


@dataclass(eq=False, repr=False)
class PrivatePipeline(LeavesAsPlain, InferenceOfModel, PrivateFit, Pipeline):
    """A Pipeline whose private steps share one budget.

    Steps of this package are private by themselves, each at a price of its own. Here they are
    planned together: one (`epsilon`, `delta`) is divided over them, exactly, and charged as one
    entry before a record is used. What a step makes public is told to the next one.

    **Privacy**

    - Guarantee: everything that `fit` releases, the fitted attributes of all private steps, is
      together (`epsilon`, `delta`)-DP.
    - Which steps: private ones, and those that are known to learn nothing from the records and to
      map each of them by itself, to the last bit; where X may be sparse no ColumnTransformer may
      choose its layout by density (``sparse_threshold=0``). What `inspection.find_leaks` calls void
      or a leak is refused, unless `public_steps` names the step: then **you** vouch for it.
    - Charged: all releases of all private steps, as one event, when the first of them asks for it,
      before it uses a record. What fails after that stays charged.
    - Not protected: what each step says of itself. Steps that learn nothing map the records before
      the charge; their errors, like those of any bad input, cost nothing and may tell of records.

    Parameters
    ----------
    steps : list of (name, estimator)
        As in scikit-learn's Pipeline. Private steps keep their `epsilon`, `delta`, `accountant`,
        `neighboring` and `n_public` at the defaults: they are given theirs while fitting. Private
        transformers may also be in a ColumnTransformer or a FeatureUnion, for some columns.
    epsilon : float in (0, inf], default=1.0
        Budget of all steps together. Infinity adds no noise, and protects nobody.
    delta : "auto" or float in (0, 1), default="auto"
        "auto" is 1/n², not available under "add_remove".
    accountant : PrivacyAccountant, default=None
        What is charged.
    shares : "auto" or dict {name: float > 0}, default="auto"
        How the budget is divided over private steps: shares of μ² (of the squared parameter of
        Gaussian DP, or of ρ), a number for each by its name, "columns__numbers" within another
        step; only the ratios count. "auto" gives scalers and encoders what they need for n and
        `epsilon` (.05 to .3 each), other steps .15, and the model what is left, at least half.
    public_steps : list of str, default=()
        Names of steps that are not known to learn nothing, for which you vouch that what they keep
        is public: a transformer of your own that maps each row by itself, one that was fitted to
        other, public records.
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        What one record more or less means; with "replace_one" the number of records is public.
        :class:`~dpcd_sklearn.Persons` have several of them.
    n_public : int, default=None
        A public number of records, for "add_remove".
    verbose : bool, default=False
        Whether to print the time of each step: time may follow the records.

    Attributes
    ----------
    privacy_event_ : FitEvent
        What was released, of all steps together. Public.
    privacy_spent_ : PrivacySpent
        Named tuple (epsilon, delta) of this fit. Those of the steps do not add up to it. Public.
    shares_ : dict
        Share of μ² of each private step; they sum to one. Public.
    told_ : dict {step name: dict}
        Parameters that a step was given because steps before it made them public: `feature_bounds`,
        `row_norm_bound`. Public. Columns that an encoder leaves unused, and those of infrequent
        categories that its released counts leave no records to, have bounds of one point besides,
        in the `feature_bounds_` of the model, and the coefficient 0.
    named_steps, classes_, n_features_in_, feature_names_in_
        As in scikit-learn's Pipeline.

    Raises
    ------
    BudgetExceededError
        If the accountant refuses the charge; nothing was released.
    LedgerError
        If the accountant's ledger can't be written; nothing was released.
    TypeError, ValueError
        If a parameter of the pipeline or of a step is invalid, a step is not covered, or the input
        is malformed; nothing was charged: where a private step comes before others, all steps are
        tried up to their charge first, so public steps map the records twice.

    See Also
    --------
    make_private_pipeline : Names the steps by itself.
    dpcd_sklearn.inspection.find_leaks : What the guarantee does not cover, of any object.

    Notes
    -----
    The budget of step k is the (ε, δ) of a fit that is sqrt(share_k) μ-Gaussian-DP, where μ is that
    of the whole. If all releases are Gaussian this is exact. Choices and mini-batches compose in
    another way: then the union of all events is computed, and all parts are scaled by one factor
    until it costs `epsilon`, up to one part in a million.

    Later steps are told bounds after BoundsScaler, DPStandardScaler (the scale of features too),
    encoders with public categories and a ColumnTransformer of these; row norms after RowNormClipper
    and Normalizer; encoders and selectors are told the `target_bounds` of the model. A parameter
    that a step states itself stays as it is.

    A fit works on copies of the steps, which are the steps of the fitted pipeline afterwards, with
    the parameters that you stated: `clone` and searches see what you wrote. The objects that you
    passed are not fitted; look at ``pipeline[-1]``. Several threads may fit one pipeline, or
    pipelines that share steps; each fit is charged, and the last one is kept.

    Steps behind one that learns its width are planned for the public width (`max_categories`, `k`,
    `n_components`), so columns that stay zero cost a little: with 54 columns, 29 of them used, the
    R² of diamonds was .909, and .923 where the width was stated. State no more than may be.

    There is no cache (`memory`): a step that comes from it would not have been charged.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.pipeline import make_private_pipeline
    >>> from dpcd_sklearn.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal([30, 1e6], [10, 1e5], size=(50_000, 2))
    >>> y = X @ [0.5, 3e-5]
    >>> model = make_private_pipeline(
    ...     DPStandardScaler(), DPRidgeSkGD(target_bounds=(0, 100)), epsilon=1.0)
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    >>> model.privacy_spent_
    PrivacySpent(epsilon=1.0, delta=4e-10)
    >>> model.told_
    {'dpridgeskgd': {'feature_bounds': (-1.0, 1.0), 'feature_scale': 1.0}}
    """

    shares_one_budget = True
    entry_name = None  # in the ledger, of who is a pipeline behind the scenes
    memory = None
    transform_input = None
    _facts_before = None  # before the first step, where bounds are handed to the last one
    random_state = None  # the steps have theirs
    _has_objects = False  # whether the cells of the array that was fitted are objects

    _parameter_constraints = BUDGET_CONSTRAINTS | {
        "steps": [list, tuple],
        "shares": [StrOptions({"auto"}), dict],
        "public_steps": [list, tuple, set],
        "verbose": ["boolean"],
    }

    steps: list[tuple[str, Any]]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: Auto = "auto"
    accountant: PrivacyAccountant | None = None
    shares: str | dict[str, float] = "auto"
    public_steps: Sequence[str] = ()
    neighboring: Neighboring = "replace_one"
    n_public: int | None = None
    verbose: bool = False

    # ---- what a fit would release ----

    def _event_of_shape(self, n_samples, n_features, n_outputs, sparse):
        with reworded(by_name):
            if isinstance(n_features, Integral):
                check_sizes(n_features=n_features)
                shape = (2, int(n_features))
                rows = csr_array(shape, dtype=float) if sparse else np.zeros(shape)
            else:
                rows = first_rows(read_table(n_features)[0], whole=bool(self.public_steps))
            return self._planner(n_samples, rows, n_outputs)(self._budget(n_samples)).event

    def _planner(self, n_samples, rows, n_outputs=1):
        """From a Budget to the plan of all private steps; copies of public ones map the rows."""
        self._validate_steps()
        self._check_budget()
        steps = [(name, step) for _, name, step in self._iter()]
        private = check_steps(steps, self.public_steps)
        refuse_leaks(self, dense=not may_be_sparse(rows))
        relation = {"neighboring": self.neighboring, "n_public": self.n_public}
        walk = walked(steps, rows, shares_of(private, self.shares), n_outputs)
        return joint_planner(walk, n_samples, relation)

    # ---- fitting ----

    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: Column = None, groups: Column = None, **params: object) -> Self:
        """Fit all steps on one budget, charging the accountant before a record is used.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record: steps read one record of each, or at most k for
            ``Persons(k)``, and a model as its own `fit` says.
        **params : dict
            For single steps, as ``name__parameter``: ``dplassocd__sample_weight``. As in
            scikit-learn's Pipeline.

        Returns
        -------
        self : object

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused or can't be written; nothing was released.
        TypeError, ValueError
            If a parameter or the input is invalid.
        """
        self._fit_copy("fit", X, y, groups, params)
        return self

    @available_if(lambda self: hasattr(Pipeline(self.steps), "fit_transform"))
    @np.errstate(all="ignore")
    def fit_transform(self, X: ArrayLike, y: Column = None, groups: Column = None, **params):
        """Fit all steps on one budget, and transform X by all of them.

        Parameters
        ----------
        X, y, groups, **params
            As in `fit`.

        Returns
        -------
        X_transformed : array-like of shape (n_samples, n_transformed_features)
            Not private.
        """
        return self._fit_copy("fit_transform", X, y, groups, params)

    def _fit_copy(self, method, X, y, groups, params):
        """Fit copies of the steps on one budget by a method of Pipeline; then take them.

        The steps that the user holds are never changed, so threads may share them.
        """
        refuse_collections(self.steps[-1][1], X=X, y=y)
        X, y = on_host(X), on_host(y)
        self._validate_params()
        self._validate_steps()
        stated, copy = self.steps, clone(self)
        copy.steps = [(name, copy_of(step)) for name, step in stated]
        # 1. plan
        X, n_samples = read_table(X)
        X_rows = first_rows(X, whole=bool(self.public_steps))
        relation = {"neighboring": self.neighboring, "n_public": self.n_public}
        if (groups := ids_of(self.neighboring, groups)) is not None:
            n_samples = int(read_of_each(self.neighboring, groups, n_samples).sum())
            unit = self.neighboring
            relation["neighboring"] = PersonsOfRows(unit.relation, groups, unit.max_contributions)
        name, last = copy.steps[-1]
        if f"{name}__offset" not in params:  # whose bounds are of a rate, not of y
            tell_target_bounds(copy.steps)
        with held_back() as warned:
            n_outputs = n_outputs_of(last, X, y, params.get(f"{name}__sample_weight"))
        plan = copy._planner(n_samples, X_rows, n_outputs)(self._budget(n_samples))
        self._warn_before_charge(plan.budget)
        has_bounds = any(p.name == name and "feature_bounds" in p.facts for p in plan.steps)
        copy._facts_before = PublicFacts(width_of(X_rows)) if has_bounds else None
        account = Prepaid(
            self.accountant,
            plan.event,
            estimator=self.entry_name or type(self).__name__,
            params=self.get_params(deep=False),
            n_samples=plan.budget.n,
            n_features=width_of(X_rows),
            reproducible=any(
                isinstance(value, ReproducibleNoise) for value in self.get_params().values()
            ),
        )
        plan.hand_out(account, relation)
        # 2. the first private step pays for those behind it, which must not refuse after the charge
        with held_back() as also_warned:
            # a pipeline around this one has done so, if it is charged
            if getattr(self.accountant, "plan", None) is None or not self.accountant.is_charged:
                refuse_what_steps_refuse(copy.steps, X, y, params)
        # 3. the fit, in which the first private step charges for all
        with repeat([*warned, *also_warned]):
            answer = getattr(super(PrivatePipeline, copy), method)(X, y, **params)
        account.refuse_leftovers()
        for (_, fitted), (_, step) in zip(copy.steps, stated, strict=True):
            if hasattr(step, "get_params"):
                give_back(fitted, step)
        vars(self).update(
            steps=copy.steps,
            _was_charged=self._was_charged or self.accountant is not None,
            _has_objects=isinstance(X, np.ndarray) and X.dtype.kind == "O",
            privacy_event_=plan.event,
            privacy_spent_=PrivacySpent(*plan.budget[:2]),
            shares_=plan.shares,
            told_={part.name: part.facts for part in plan.steps if part.facts},
        )
        return answer

    def _fit(self, X, *args, **kwargs):
        """As of Pipeline; then the last step is told which columns turned out to be unused.

        That was released, and the event of the last step does not depend on it.
        """
        found = super()._fit(X, *args, **kwargs)
        if self._facts_before is not None:
            facts = facts_after(Pipeline(self.steps[:-1]), self._facts_before, width_of(found))
            if facts.bounds is not None and np.any(facts.bounds[0] < facts.bounds[1]):
                found_bounds = {"feature_bounds": facts.stated()["feature_bounds"]}
                self.steps[-1][1].set_params(**as_params(self.steps[-1][1], found_bounds))
        return found

    # ---- answers ----

    def _as_fitted(self, X):
        """X as `fit` reads it: with cells that are objects where those of `fit` were.

        Steps compare cells with categories that were read in `fit`, and fail on other kinds.
        """
        if hasattr(X, "__dask_graph__") or is_of_another_library(X):
            return X
        X, _ = read_table(X)
        return X.astype(object) if self._has_objects and isinstance(X, np.ndarray) else X

    predict = _answer("predict")
    predict_proba = _answer("predict_proba")
    predict_log_proba = _answer("predict_log_proba")
    decision_function = _answer("decision_function")
    transform = _answer("transform")
    score = _answer("score")

    def __getitem__(self, index):
        """A step, or a plain Pipeline of some of them, which is not fitted on this budget."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise ValueError("Pipeline slicing only supports a step of 1")
            if self.accountant is not None and not self.__sklearn_is_fitted__():
                warn(
                    "steps of a PrivatePipeline that is not fitted are a plain Pipeline: no ledger "
                    "counts what it fits. Fit the whole pipeline first, and slice it then",
                    PrivacyLeakWarning,
                    topic="slice before a fit",
                )
            return Pipeline(self.steps[index], verbose=self.verbose)
        return super().__getitem__(index)


def make_private_pipeline(
    *steps: object,
    epsilon: float = 1.0,
    delta: Auto = "auto",
    accountant: PrivacyAccountant | None = None,
    shares: str | dict[str, float] = "auto",
    public_steps: Sequence[str] = (),
    neighboring: Neighboring = "replace_one",
    n_public: int | None = None,
    verbose: bool = False,
) -> PrivatePipeline:
    """A PrivatePipeline whose steps have the names of their classes in lower case.

    Parameters
    ----------
    *steps : estimators
    epsilon, delta, accountant, shares, public_steps, neighboring, n_public, verbose
        As in `PrivatePipeline`.

    Returns
    -------
    pipeline : PrivatePipeline

    Examples
    --------
    >>> from dpcd_sklearn import DPLassoCD
    >>> from dpcd_sklearn.pipeline import make_private_pipeline
    >>> from dpcd_sklearn.preprocessing import BoundsScaler
    >>> model = make_private_pipeline(BoundsScaler((0, 10)), DPLassoCD(), epsilon=2.0)
    >>> [name for name, _ in model.steps]
    ['boundsscaler', 'dplassocd']
    """
    return PrivatePipeline(
        make_pipeline(*steps).steps,
        epsilon=epsilon,
        delta=delta,
        accountant=accountant,
        shares=shares,
        public_steps=public_steps,
        neighboring=neighboring,
        n_public=n_public,
        verbose=verbose,
    )
