"""The base of transformers that charge: the budget, the plan, and the charge."""

import math
from abc import ABCMeta, abstractmethod
from typing import NamedTuple

from sklearn.base import BaseEstimator, TransformerMixin

from ..exceptions import UnknownScaleWarning
from ..plan._private_fit import BUDGET_CONSTRAINTS, PrivateFit, check_sizes, width_and_layout
from ..plan._scale_choices import AMPLE_EVIDENCE, LEAST_EVIDENCE, most_zooms, n_choices
from ..privacy.accounting._calibration import choices_event, joint_fit_event
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import joined
from ..privacy.accounting._promise import Budget
from ..privacy.ledger._accountant import PrivacySpent, charge
from ..privacy.mechanisms._quantiles import MOST_RANGE, QuantileUnits
from ..utils._persons import ids_of, relation_of, rows_read
from ..utils._public import check_bounds
from ..utils._reproducible_noise import ReproducibleNoise
from ..utils._shared_texts import with_shared_texts
from ..utils._warnings import warn
from ._shared_texts import TEXTS

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


class PrivateTransformer(PrivateFit, TransformerMixin, BaseEstimator, metaclass=ABCMeta):
    """A transformer that learns from records, at a price that is known beforehand."""

    charges_nothing = False  # or a property of parameters alone
    _unit_scale = False  # whether columns lie in (-1, 1) where no bounds are stated

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.__doc__ = with_shared_texts(cls.__doc__, TEXTS)

    @abstractmethod
    def _event(self, n_features, budget):
        """The event of a fit, from public facts alone."""

    @abstractmethod
    def _units(self, event, n_features, n_samples, n_normalizer):
        """Units of each release in order; they refuse what can't be carried out."""

    def _said_of_few(self, units, n_normalizer):
        """A warning of too few records, from public numbers; None where there are enough."""

    def planned_event(
        self, n_samples: int, n_features: int, n_outputs: int = 1, *, sparse: bool = False
    ) -> FitEvent:
        """The event that a fit would release; nothing is charged and no record is needed.

        Parameters
        ----------
        n_samples : int, >= 1
            Number of records; ignored when `neighboring="add_remove"`, which has `n_public`.
        n_features : int, >= 1, or rows of them
            Number of features; of an array, a data frame or a sparse matrix the width is looked at.
        n_outputs : int, default=1
        sparse : bool, default=False
            Layout of the model behind it, as the number of outputs is: both change nothing here.

        Returns
        -------
        FitEvent
            Without a release if nothing is learnt.

        Raises
        ------
        TypeError, ValueError
            If a parameter is invalid, as `fit` does.
        """
        self._validate_params()
        n_features, _ = width_and_layout(n_features)
        check_sizes(n_samples=n_samples, n_features=n_features, n_outputs=n_outputs)
        self._check_stated(n_features)
        if relation_of(self.neighboring)[0] == "add_remove" and self.n_public is not None:
            n_samples = self.n_public
        return self._planned(n_samples, n_features).charged

    def _check_stated(self, n_features):
        """Refuse what is stated of columns or of a target as a fit does; names are not known."""
        bounds = getattr(self, "feature_bounds", None)
        if bounds is not None and not isinstance(bounds, dict):
            check_bounds(bounds, n_features)

    def _bounds_or_unit(self, n_features):
        """Stated bounds of the columns, or (-1, 1)."""
        stated = (-1.0, 1.0) if self.feature_bounds is None else self.feature_bounds
        names = getattr(self, "feature_names_in_", None)
        return check_bounds(stated, n_features, columns=names)

    def _planned(self, n_samples, n_features):
        """The plan of a fit; whatever can't be carried out is refused here."""
        self._check_budget()
        if self.charges_nothing:
            relation, max_contributions = relation_of(self.neighboring)
            nothing = Budget(0.0, 0.0, relation, int(n_samples), max_contributions)
            return TransformerPlan(FitEvent((), relation), nothing, ())
        budget = self._budget(n_samples)
        event = self._event(n_features, budget)
        if self._recorder is not None:  # of an audit, which may ask for less noise
            event = self._recorder.planned_event(event)
        units = ()
        if event.releases:
            units = tuple(self._units(event, n_features, n_samples, budget.n))
        return TransformerPlan(event, budget, units)

    def _read_by_fit(self, groups, n_records, *arrays):
        """A fit reads all records, or some of each person where ids say whose they are.

        Their number comes before them; a list has the columns of a table.
        """
        groups = ids_of(self.neighboring, groups)
        if groups is None:
            return n_records, *arrays
        rows = rows_read(self.neighboring, groups, n_records, *arrays)
        taken = ([c[rows] for c in a] if isinstance(a, list) else a[rows] for a in arrays)
        return len(rows), *taken

    def _paid(self, plan, n_features):
        """The receipt of a plan, and the key of its noise; warnings come before the charge."""
        event, budget, units = plan
        self._refuse_unprotected_charge()
        key, _ = self._randomness()
        self._warn_before_charge(budget)
        if self._unit_scale and self.feature_bounds is None:
            warn(
                f"{type(self).__name__} clips cells to (-1, 1), where no bounds are stated: State "
                "feature_bounds, which cost nothing, ((-1, 1) if it is so), or put a "
                "DPStandardScaler before it in a PrivatePipeline, which tells them",
                UnknownScaleWarning,
            )
        few = self._said_of_few(units[0], budget.n) if units else None
        if few is not None:
            warn(few)
        receipt = charge(
            self.accountant,
            event,
            recorder=self._recorder,
            budget=budget,
            estimator=type(self).__name__,
            params=self.get_params(deep=False),
            n_samples=budget.n,
            n_features=n_features,
            reproducible=key is not None,
        )
        self._was_charged = self._was_charged or receipt.entry_id is not None
        return receipt, key

    def _promise(self, plan):
        """Keep what was released and what it cost."""
        event, budget = plan.charged, plan.budget
        spent = budget[:2] if event.releases else (0.0, 0.0)
        self.privacy_event_, self.privacy_spent_ = event, PrivacySpent(*spent)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise from the operating system
        return tags


def after_scales(budget, n_features, share, main):
    """An event of choices that find quartiles, with a share of ρ, and of a release behind them.

    Parameters
    ----------
    budget : Budget
        Budget of all together.
    n_features : int
    share : float
    main : FitEvent
        It takes the budget by itself; it gets more noise.
    """
    rho = share * budget.rho
    how = n_features, "quartiles"
    zooms = most_zooms(budget.n * math.sqrt(8 * rho), *how, 2 * AMPLE_EVIDENCE, twice=True)
    count = n_choices(*how, zooms, twice=True)
    eta = min(math.sqrt(8 * rho / count), MOST_RANGE)
    choices = choices_event(eta, count, budget.neighboring)
    return joined(joint_fit_event(budget, choices, main))


def refuse_more_than(n_public, of="columns", **stated):
    """Refuse a stated width beyond a public number of columns or of records."""
    ((name, width),) = stated.items()
    if width > n_public:
        raise ValueError(
            f"{name}={width:,} is more than X has {of} ({n_public:,}): state a number of at most "
            f"{n_public:,}, or leave this step out"
        )


def lacks_evidence(units, n_normalizer):
    """Whether choices of quantiles among so many records are mostly noise; of other units False."""
    chosen = isinstance(units, QuantileUnits) and not units.noiseless
    return chosen and n_normalizer * units.eta < LEAST_EVIDENCE


def few_records(step, n_normalizer, what, remedy):
    """The words of a warning that so many records are few for what a step learns of columns."""
    return (
        f"{n_normalizer} records at epsilon={float(step.epsilon):g} are few for {what} of "
        f"{step.n_features_in_} columns, which may be far off. Raise epsilon, or state {remedy}"
    )
