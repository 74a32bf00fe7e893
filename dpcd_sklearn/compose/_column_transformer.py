"""scikit-learn's ColumnTransformer, whose layout is public and whose parts share one budget."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.utils.validation import check_is_fitted

from ..leaks import may_be_sparse, refuse_leaks
from ..pipeline import PrivatePipeline
from ..pipeline._budget_of_step import BUDGET
from ..pipeline._joint_plan import parts_within
from ..plan._private_fit import BUDGET_CONSTRAINTS, PrivateFit
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._spent import PrivacySpent
from ..privacy.ledger import Prepaid
from ..utils._compat import ColumnTransformer, HasMethods, StrOptions, fit_context
from ..utils._persons import relation_of
from ..utils._typing import ArrayLike, Auto, Column, Neighboring

_WITHIN = "columns"  # the name of the step that does it


@dataclass(eq=False, repr=False)
class DPColumnTransformer(PrivateFit, ColumnTransformer):
    """Transform columns by private steps of their own, which share one budget.

    As scikit-learn's ColumnTransformer, but for two things: the result is dense, whatever the
    records are, so its layout tells nothing; and one (`epsilon`, `delta`) is divided over all
    private steps, exactly, and charged as one event.

    **Privacy**

    - Guarantee: what `fit` releases, the fitted attributes of all private steps, is together
      (`epsilon`, `delta`)-DP for neighbours that differ in one record
      (``neighboring="replace_one"``), or by adding or removing one (``"add_remove"``). Given them
      each record is mapped by itself, so the budget of the next step comes on top.
    - Which steps: private ones, and those that are known to learn nothing from the records. What
      `inspection.find_leaks` calls void or a leak is refused.
    - Charged: all releases of all private steps, as one event, before a record is used. If no step
      charges anything, nothing is charged.
    - Not protected: what each step says of itself. Names and positions of columns are public.

    Parameters
    ----------
    transformers : list of (name, transformer, columns)
        As in scikit-learn's ColumnTransformer. Private steps keep their `epsilon`, `delta`,
        `accountant`, `neighboring` and `n_public` at the defaults: they are given theirs.
    epsilon : float in (0, inf], default=0.5
        Budget of all steps together. Infinity adds no noise, and protects nobody.
    delta : "auto" or float in (0, 1), default="auto"
        "auto" is 1/n², not available under "add_remove".
    shares : "auto" or dict {name: float > 0}, default="auto"
        How the budget is divided over private steps: shares of μ², a number for each by its name,
        "pipeline__dpsimpleimputer" within another step; only the ratios count. "auto" gives
        scalers and encoders twice what it gives others.
    remainder : {"drop", "passthrough"} or transformer, default="drop"
        What becomes of the other columns.
    verbose_feature_names_out : bool, default=True
        Whether names of columns begin with that of their transformer.
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        What one record more or less means; with "replace_one" the number of records is public.
        :class:`~dpcd_sklearn.Persons` have several of them.
    n_public : int, default=None
        A public number of records, for "add_remove".
    accountant : PrivacyAccountant, default=None
        What is charged.

    Attributes
    ----------
    transformers_, named_transformers_, output_indices_
        As in scikit-learn's ColumnTransformer.
    shares_ : dict
        Share of μ² of each private step; they sum to one. Public.
    privacy_event_ : FitEvent
        What was released, of all steps together. Public.
    privacy_spent_ : PrivacySpent (epsilon, delta)
        The guarantee of this fit.
    n_features_in_, feature_names_in_
        As in scikit-learn's ColumnTransformer. Public.

    Raises
    ------
    BudgetExceededError
        If the accountant refuses the charge; nothing was released.
    LedgerError
        If the accountant's ledger can't be written; nothing was released.
    TypeError, ValueError
        If a parameter or a step is invalid, or the input malformed; nothing was charged.

    See Also
    --------
    make_private_column_transformer : Names the steps by itself.
    dpcd_sklearn.pipeline.PrivatePipeline : Puts a model behind it, on one budget.

    Notes
    -----
    It is a `PrivatePipeline` of one step. Within another one it has one share of the budget, of
    which `shares` divides what it gets, and tells bounds on: of indicators, scaled columns, and
    imputed ones whose bounds are stated.

    Examples
    --------
    >>> import pandas as pd
    >>> import numpy as np
    >>> from dpcd_sklearn.compose import make_private_column_transformer
    >>> from dpcd_sklearn.preprocessing import DPOneHotEncoder, DPStandardScaler
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(
    ...     {"age": rng.normal(40, 9, 9_000), "town": rng.choice(["Lille", "Roubaix"], 9_000)})
    >>> columns = make_private_column_transformer(
    ...     (DPStandardScaler(), ["age"]),
    ...     (DPOneHotEncoder(max_categories=3), ["town"]),
    ...     epsilon=1.0,
    ... ).fit(table)
    >>> columns.get_feature_names_out().tolist()
    ['age', 'town_Lille', 'town_Roubaix', 'town_infrequent']
    >>> columns.privacy_spent_.epsilon
    1.0
    >>> columns.transform(table).shape
    (9000, 4)
    """

    shares_one_budget = True
    sparse_threshold = 0  # a public layout
    force_int_remainder_cols = "deprecated"  # of scikit-learn 1.8
    n_jobs = transformer_weights = None
    verbose = False
    random_state = None  # the steps have theirs

    _parameter_constraints = BUDGET_CONSTRAINTS | {
        "transformers": [list],
        "shares": [StrOptions({"auto"}), dict],
        "remainder": [StrOptions({"drop", "passthrough"}), HasMethods(["fit", "transform"])],
        "verbose_feature_names_out": ["boolean"],
    }

    transformers: Any
    _: KW_ONLY
    epsilon: float = 0.5
    delta: Auto = "auto"
    shares: Any = "auto"
    remainder: Any = "drop"
    verbose_feature_names_out: bool = True
    neighboring: Neighboring = "replace_one"
    n_public: int | None = None
    accountant: Any = None

    @property
    def charges_nothing(self):
        """Whether no step charges anything, so that nothing is charged."""
        return not parts_within(_WITHIN, self)

    def _pipeline(self):
        """A pipeline of this step alone, which has its budget."""
        given = {name: getattr(self, name) for name in BUDGET}
        defaults = {name: getattr(type(self), name) for name in BUDGET}
        found = PrivatePipeline([(_WITHIN, clone(self).set_params(**defaults))], **given)
        found.entry_name = type(self).__name__
        return found

    def _event_of_shape(self, n_samples, n_features, n_outputs, sparse):
        if self.charges_nothing:
            return FitEvent((), *relation_of(self.neighboring))
        return self._pipeline().planned_event(n_samples, n_features, sparse=sparse)

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: Column = None, groups: Column = None) -> Self:
        """Fit all steps on one budget, charging the accountant before a record is used.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            For steps that take it.
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record: one of each is read, at most k for ``Persons(k)``.

        Returns
        -------
        self : DPColumnTransformer

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused or can't be written; nothing was released.
        TypeError, ValueError
            If a parameter or the input is invalid.
        """
        self.fit_transform(X, y, groups)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")
    def fit_transform(self, X: ArrayLike, y: Column = None, groups: Column = None):
        """Fit all steps on one budget, and transform X by them; each as its own `fit_transform`.

        Parameters
        ----------
        X, y, groups
            As in `fit`.

        Returns
        -------
        X_transformed : {ndarray, data frame} of shape (n_samples, n_transformed_features)
            Not private.
        """
        if self.charges_nothing:
            refuse_leaks(self, dense=not may_be_sparse(X))
            answer = super().fit_transform(X, y)
            self.shares_, self.privacy_spent_ = {}, PrivacySpent(0.0, 0.0)
            self.privacy_event_ = FitEvent((), *relation_of(self.neighboring))
            return answer
        if isinstance(self.accountant, Prepaid) and (plan := self.accountant.plan) is not None:
            # a pipeline around it planned its steps, and gave each its part
            answer = super().fit_transform(X, y)
            self.accountant.refuse_leftovers()
            self.shares_, self.privacy_event_ = plan.shares, plan.event
            self.privacy_spent_ = PrivacySpent(*plan.budget[:2])
            return answer
        fitted = self._pipeline()
        answer = fitted.fit_transform(X, y, groups)
        vars(self).update(vars(fitted[0]) | self.get_params(deep=False))
        return answer

    def transform(self, X: ArrayLike):
        """Transform records by the fitted steps, each by itself.

        Parameters
        ----------
        X : {array-like, data frame} of shape (n_samples, n_features)

        Returns
        -------
        X_transformed : {ndarray, data frame} of shape (n_samples, n_transformed_features)
        """
        check_is_fitted(self, "transformers_")  # a refused fit leaves nothing
        return super().transform(X)


def make_private_column_transformer(
    *transformers,
    epsilon: float = 0.5,
    delta: Auto = "auto",
    shares="auto",
    remainder="drop",
    verbose_feature_names_out: bool = False,
    neighboring: Neighboring = "replace_one",
    n_public: int | None = None,
    accountant=None,
) -> DPColumnTransformer:
    """A DPColumnTransformer whose steps have the names of their classes in lower case.

    Parameters
    ----------
    *transformers : tuples (transformer, columns)
    epsilon, delta, shares, remainder, neighboring, n_public, accountant
        As in `DPColumnTransformer`.
    verbose_feature_names_out : bool, default=False
        As there; columns are called by their own names.

    Returns
    -------
    transformer : DPColumnTransformer

    Examples
    --------
    >>> from dpcd_sklearn.compose import make_private_column_transformer
    >>> from dpcd_sklearn.preprocessing import DPOneHotEncoder, DPSimpleImputer
    >>> columns = make_private_column_transformer(
    ...     (DPSimpleImputer(), ["age"]), (DPOneHotEncoder(), ["town"]), epsilon=0.3)
    >>> [name for name, _, _ in columns.transformers]
    ['dpsimpleimputer', 'dponehotencoder']
    """
    return DPColumnTransformer(
        make_column_transformer(*transformers).transformers if transformers else [],
        epsilon=epsilon,
        delta=delta,
        shares=shares,
        remainder=remainder,
        verbose_feature_names_out=verbose_feature_names_out,
        neighboring=neighboring,
        n_public=n_public,
        accountant=accountant,
    )
