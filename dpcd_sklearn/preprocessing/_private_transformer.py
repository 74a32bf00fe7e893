"""The base of transformers that charge: the budget, the plan, the charge, and shared texts."""

import math
from abc import ABCMeta, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import issparse

from ..exceptions import UnknownScaleWarning
from ..plan._private_fit import BUDGET_CONSTRAINTS, PrivateFit, width_and_layout
from ..plan._release import own_key
from ..plan._scale_choices import (
    AMPLE_EVIDENCE,
    LEAST_EVIDENCE,
    find_scales,
    most_zooms,
    n_choices,
    zooms_of,
)
from ..privacy.accounting._calibration import choices_event, gaussian_fit_event, joint_fit_event
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import joined
from ..privacy.accounting._promise import Budget
from ..privacy.ledger._accountant import PrivacyAccountant, PrivacySpent
from ..privacy.mechanisms._gaussian_sum import Oracle
from ..privacy.mechanisms._quantiles import MOST_RANGE, QuantileOracle, QuantileUnits
from ..privacy.mechanisms._tables import PartitionUnits
from ..privacy.mechanisms._units import Units
from ..utils._compat import BaseEstimator, TransformerMixin, fit_context
from ..utils._input import read_records
from ..utils._persons import drawn_rows, ids_of, persons_of, relation_of
from ..utils._public import check_bounds
from ..utils._stated import ReproducibleNoise
from ..utils._texts import counted, with_inherited_texts
from ..utils._typing import ArrayLike, Auto, Column, Neighboring, Seed
from ..utils._warnings import warn

# How numbers are read.
CHECKS = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
    "ensure_all_finite": True,
}
UNIT = (-1.0, 1.0)  # bounds of columns where none are stated
OF_BUDGET = BUDGET_CONSTRAINTS | {"random_state": ["random_state", ReproducibleNoise]}


class TransformerPlan(NamedTuple):
    """The plan of a fit: its event, the budget that pays for it, and units."""

    event: FitEvent
    budget: Budget
    units: tuple  # of each release, in order

    @property
    def charged(self):
        """The event of persons."""
        return self.budget.of_persons(self.event)


class Releases(NamedTuple):
    """The plan of a fit, the receipt of its charge, and the key of its noise."""

    plan: TransformerPlan
    receipt: object
    key: object
    persons: np.ndarray | None  # the number of the person of each record

    def oracle(self, units, place, name=None, kind=Oracle):
        """An oracle of these units over records; oracles of several releases are named apart."""
        key = self.key if name is None else own_key(name, self.key)
        return kind(self.receipt, units, place, key=key)


@dataclass(eq=False, repr=False)
class PrivateTransformer(PrivateFit, TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """A transformer that learns from records, at a price that is known beforehand.

    Fields are the parameters: those of all transformers here, and in a subclass its own. What is
    said of them here is said of a subclass that has them, unless its docstring has other words.

    **Privacy**

    - Guarantee: what `fit` releases, the fitted attributes, is (`epsilon`, `delta`)-DP for
      neighbours that differ in one record (``neighboring="replace_one"``), or by adding or
      removing one (``"add_remove"``). Given them each record is mapped by itself, so neighbouring
      data sets stay neighbours, and the budget of the next step comes on top.

    Parameters
    ----------
    classes : list, default=None
        Labels of a target of classes, at most 256: then `target_bounds` are not looked at. What is
        none of them counts as the first one.
    target_bounds : tuple (lo, hi) of float, default=None
        Clips a target of numbers. None: the model's in a PrivatePipeline, else (-1, 1), and a
        warning.
    epsilon : float in (0, inf], default=0.2
        Budget of this step alone. Infinity adds no noise, and protects nobody.
    delta : "auto" or float in (0, 1), default="auto"
        "auto" is 1/n², not available under "add_remove".
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        What one record more or less means; with "replace_one" the number of records is public.
        :class:`~dpcd_sklearn.Persons` have several of them.
    n_public : int, default=None
        A public number of records, for "add_remove".
    accountant : PrivacyAccountant, default=None
        What is charged.
    random_state : int, RandomState instance, ReproducibleNoise or None, default=None
        Leave it None. This fit has no public choices that an int could draw; its noise comes from
        the operating system either way. :class:`~dpcd_sklearn.testing.ReproducibleNoise` makes the
        noise reproducible, hence **not private**: it warns, and an accountant refuses it.

    Attributes
    ----------
    privacy_event_ : FitEvent
        What was released.
    privacy_spent_ : PrivacySpent (epsilon, delta)
        The guarantee of this fit.
    n_features_in_ : int
        Number of features. Public.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if X has names that are all strings. Public.

    Raises
    ------
    BudgetExceededError
        If the accountant refuses the charge; no record was used.
    LedgerError
        If the accountant's ledger can't be written; no record was used.
    TypeError, ValueError
        If a parameter, X or y is invalid; nothing was charged.
    """

    _: KW_ONLY
    epsilon: float = 0.2
    delta: Auto = "auto"
    neighboring: Neighboring = "replace_one"
    n_public: int | None = None
    accountant: PrivacyAccountant | None = None
    random_state: Seed | None = None

    charges_nothing = False  # or a property of parameters alone
    _unit_scale = False  # whether columns lie in (-1, 1) where no bounds are stated
    _takes_sparse = False  # or such a property, too
    # what is uncertain where records are few, and what to state instead
    _uncertain, _remedy = "the scales", "feature_bounds that you know"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.__doc__ = with_inherited_texts(cls)

    @abstractmethod
    def _plan_releases(self, n_features, budget):
        """The releases of a fit in order, from public facts alone.

        Each is a triple: the event that pays for it, the class of its units, and the public numbers
        that these have besides. Units refuse what can't be carried out.
        """

    def _read(self, X, *, reset):
        """Read X, of a fit with `reset`: an array or a sparse matrix, or a list of columns."""
        if issparse(X) and not self._takes_sparse:
            raise TypeError(
                f"{type(self).__name__} takes no sparse X as its parameters are, since it would "
                "become dense: pass X.toarray(), or with_centering=False to a scaler"
            )
        checks = CHECKS if self._takes_sparse else CHECKS | {"accept_sparse": False}
        return read_records(self, X, reset=reset, **checks)

    def _read_with_target(self, X, y):
        """Tables that a fit reads, one row a record, and what else it knows of the target."""
        return [self._read(X, reset=True)], None

    @abstractmethod
    def _release(self, releases, tables, stated):
        """Release what is learnt, and keep it."""

    def _few_records_warning(self, units, n_normalizer):
        """A warning if most choices of quantiles or categories would be noise; else None."""
        if isinstance(units, PartitionUnits):
            enough = units.threshold <= n_normalizer / 2
        else:
            chosen = isinstance(units, QuantileUnits) and not units.noiseless
            enough = not chosen or n_normalizer * units.eta >= LEAST_EVIDENCE
        if enough:
            return None
        return (
            f"{n_normalizer:,} records at epsilon={float(self.epsilon):g} are few for "
            f"{self._uncertain} of {counted(self.n_features_in_, 'column')}, which may be far off. "
            f"Raise epsilon, or state {self._remedy}"
        )

    def _event_of_shape(self, n_samples, n_features, n_outputs, sparse):
        n_features, _ = width_and_layout(n_features)
        self._check_stated(n_features)
        if relation_of(self.neighboring)[0] == "add_remove" and self.n_public is not None:
            n_samples = self.n_public
        return self._planned(n_samples, n_features).charged

    def _check_stated(self, n_features):
        """Refuse what is stated of columns or of a target as a fit does; names are not known."""
        if not isinstance(getattr(self, "feature_bounds", None), (dict, type(None))):
            self._bounds_of(n_features)

    def _stated_bounds(self, otherwise=None):
        """Bounds of the columns (lo, hi), or `otherwise` where none are stated."""
        if self.feature_bounds is None:
            return otherwise and check_bounds(otherwise, self.n_features_in_)
        return self._bounds_of(self.n_features_in_, getattr(self, "feature_names_in_", None))

    def _bounds_of(self, n_features, names=None):
        lo, hi = check_bounds(self.feature_bounds, n_features, columns=names)
        with np.errstate(over="ignore"):
            if not np.isfinite(hi - lo).all():
                raise ValueError("feature_bounds must be at most 1.79e308 apart")
        return lo, hi

    # ---- one Gaussian release within bounds, which quartiles give where none are stated ----

    def _plan_within_bounds(self, n_features, budget, share, kind):
        """The release, with units of a kind, after choices of bounds that have this share of ρ."""
        release, facts = gaussian_fit_event(budget, 1), {"n_columns": n_features}
        if not budget.private:
            return [(release, Units, {})]
        if self.feature_bounds is not None:
            return [(release, kind, facts)]
        rho = share * budget.rho
        how = n_features, "quartiles"
        zooms = most_zooms(budget.n * math.sqrt(8 * rho), *how, 2 * AMPLE_EVIDENCE, twice=True)
        count = n_choices(*how, zooms, twice=True)
        eta = min(math.sqrt(8 * rho / count), MOST_RANGE)
        choices = choices_event(eta, count, budget.neighboring)
        choices, release = joint_fit_event(budget, choices, release)
        return [(choices, QuantileUnits, {}), (release, kind, facts)]

    def _release_within_bounds(self, releases, place, exact, *public, width=None):
        """The release, without noise `exact(bounds)`; and the bounds, which are stated or found."""
        *scales, units = releases.plan.units
        bounds, n = self._stated_bounds(), self.n_features_in_
        if units.noiseless:
            units.redeem(releases.receipt)
            return exact(bounds), bounds
        for of_scales in scales:
            oracle = releases.oracle(of_scales, place, "scales", QuantileOracle)
            evidence, zooms = releases.plan.budget.n * of_scales.eta, zooms_of(of_scales, n)
            center, half_width = find_scales(
                oracle, "features", "quartiles", evidence, width, zooms=zooms, twice=True
            )
            bounds = center - half_width, center + half_width
        return releases.oracle(units, place, "values").release(*bounds, *public), bounds

    # ---- fitting ----

    def _planned(self, n_samples, n_features):
        """The plan of a fit; whatever can't be carried out is refused here."""
        self._check_budget()
        if self.charges_nothing:
            relation, max_contributions = relation_of(self.neighboring)
            nothing = Budget(0.0, 0.0, relation, int(n_samples), max_contributions)
            return TransformerPlan(FitEvent((), relation), nothing, ())
        budget = self._budget(n_samples)
        planned = self._plan_releases(n_features, budget)
        event = joined([FitEvent((), budget.neighboring), *(event for event, *_ in planned)])
        sizes = {"n_samples": n_samples, "n_normalizer": budget.n}
        units = tuple(kind(event, **facts, **sizes) for event, kind, facts in planned)
        return TransformerPlan(event, budget, units)

    @fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: Column = None, groups: Column = None) -> Self:
        """Learn from records, charging the accountant before one is used.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
            The records, as the class describes them. float32 and float64 are read in place.
        y : array-like of shape (n_samples,), default=None
            Numbers, or labels if `classes` are stated; ignored by steps that need no target.
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record: one of each is read, at most k for ``Persons(k)``.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused or can't be written; no record was used.
        TypeError, ValueError
            If a parameter, X or y is invalid; nothing was charged.
        """
        tables, stated = self._read_with_target(X, y)
        if hasattr(self, "feature_bounds"):
            self._stated_bounds()
        table, groups = tables[0], ids_of(self.neighboring, groups)
        # a table is an array or a list of columns
        n_samples = len(table[0]) if isinstance(table, list) else table.shape[0]
        persons = None
        if groups is not None:
            ids, persons = persons_of(groups, n_samples)
            rows = drawn_rows(ids, persons, *tables, most=relation_of(self.neighboring)[1] or 1)
            tables = [[c[rows] for c in t] if isinstance(t, list) else t[rows] for t in tables]
            persons = persons[rows]
            n_samples = len(rows)
        plan, paid = self._planned(n_samples, self.n_features_in_), (None, None)
        if plan.units:
            paid = self._paid(plan)
        self._release(Releases(plan, *paid, persons), tables, stated)
        self._promise(plan)
        return self

    def _paid(self, plan):
        """The receipt of a plan, and the key of its noise; warnings come before the charge."""
        event, budget, units = plan
        self._refuse_unprotected_charge()
        key, _ = self._randomness()
        self._warn_before_charge(budget)
        unstated = ["feature_bounds"] if self._unit_scale and self.feature_bounds is None else []
        if getattr(self, "classes", ()) is None and self.target_bounds is None:
            unstated.append("target_bounds (classes of labels)")
        if unstated:
            warn(
                f"{type(self).__name__} clips numbers to (-1, 1), since not all bounds are stated. "
                f"State {' and '.join(unstated)}, which costs nothing. In a PrivatePipeline a "
                "DPStandardScaler hands on bounds of features, and the model those of the target",
                UnknownScaleWarning,
            )
        few = self._few_records_warning(units[0], budget.n)
        if few is not None:
            warn(few)
        return self._charge(event, budget, self.n_features_in_, key), key

    def _promise(self, plan):
        """Keep what was released and what it cost."""
        event, budget = plan.charged, plan.budget
        spent = budget[:2] if event.releases else (0.0, 0.0)
        self.privacy_event_, self.privacy_spent_ = event, PrivacySpent(*spent)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise from the operating system
        tags.input_tags.sparse = self._takes_sparse
        tags.target_tags.required = hasattr(self, "target_bounds")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def refuse_more_than(n_public, of="columns", **stated):
    """Refuse a stated width beyond a public number of columns or of records."""
    ((name, width),) = stated.items()
    if width > n_public:
        raise ValueError(
            f"{name}={width:,} is more than X has {of} ({n_public:,}): state a number of at most "
            f"{n_public:,}, or leave this step out"
        )
