"""The facts that a plan may look at: parameters and public facts, frozen, and no record."""

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from ..losses._loss import Loss
from ..privacy.accounting._promise import Budget
from ..utils._public import plain_number
from ..utils._stated import Stated
from ._inference import share_for_inference
from ._label_prior import counts_share
from ._margin_length import length_share
from ._records_outside import share_of_far, share_of_outside
from ._scales import NOTHING, ScaleSearch, wanted_scales
from ._smoothness import smoothness_share
from ._solver import Solver
from ._target import NO_TARGET, TargetSearch, wanted_target
from ._target_mean import mean_share

# Releases that a request decides on, each from those before it: searches, and shares of μ².
_SEARCHES = {"target_search": wanted_target, "scales": wanted_scales}
_SHARES = (smoothness_share, mean_share, length_share, counts_share)
_SHARES = {decide.__name__: decide for decide in _SHARES}
_UNDECIDED = {"target_search": NO_TARGET, "scales": NOTHING} | dict.fromkeys(_SHARES, 0.0)
# Derived fields.
_DERIVED_FIELDS = {*_UNDECIDED, "asks_for_smoothness", "mean_squares", "means", "n_fits"}
_DERIVED_FIELDS |= {"chooses", "finds_scales", "lacks_intervals"}


@dataclass(frozen=True, eq=False)
class Request:
    """A fit that is asked for, frozen. Parameters have the estimators' names, words and units.

    Parameters
    ----------
    loss : Loss, or tuple of n_outputs of them
        Loss of a target that was divided by `target_half_width`. Of two classes it is the logistic
        one.
    by_column : tuple or None
        What an object as penalty states of the columns: signs of coefficients, or groups.
    constraint : L1Ball, L2Ball or None
        The set of all coefficients, in the units of the target.
    solver : Solver
        What was asked for, with parameters of its own; "auto" until it is chosen.
    strength : float
        Strength of the penalty beside a mean loss, whatever the estimator's parameter for it is.
    strengths : tuple of Strength
        Candidates among which one is chosen; none where `strength` is stated.
    chooses : bool
        Whether it is, from what is released in any case.
    budget : Budget
        What all releases may cost together; its n divides every sum.
    n_features, n_outputs : int
    sparse : bool
        Whether the records are sparse.
    in_arrays : bool
        Whether they all are arrays in memory, in a fit whose updates nobody follows.
    columns : tuple of str or None
        Names of the features, if they have some: for bounds by name.
    target_center, target_half_width : float, or ndarray of shape (n_outputs,)
        The target is mapped to [-1, 1] by these (regression), from public bounds.
    finds_target : bool
        Whether the target's bounds are left to be found.
    scales : ScaleSearch
        What is left to be found at a price, a share of ρ.
    target_search : TargetSearch
        What is left to be found of the target.
    asks_for_smoothness : bool
        Whether M_j are to follow from released mean squares, whose bounds are stated.
    smoothness_share : float
        Share of μ² for these, or for the mean row where features have one scale; 0 where neither is
        released.
    mean_squares : ndarray of shape (n_features,), or None
        What was released, in squared half-widths.
    means : ndarray of shape (n_features,), or None
        What was released beside them: in half-widths, from where features are seen.
    counts_share : float
        Share of μ² for numbers of records of the classes, from or to which intercepts are moved; 0
        where these are not released.
    mean_share : float
        Share of μ² for the mean of a target; 0 where it is not released.
    length_share : float
        Share of μ² for the length of margins; 0 where it is not released.
    finds_scales : bool
        Whether scales that are not stated are looked for, unless they are known already.
    lacks_intervals : bool
        Whether `inference` was asked for and public numbers rule intervals out: the request is that
        of a fit without it.
    n_fits : int
        How many fits like this one share the budget: one of them is asked for.
    """

    # the problem
    loss: Loss
    penalty: str | None
    alpha: float
    strength: float
    l1_ratio: float
    coef_bounds: object
    by_column: tuple | None
    positive: bool
    constraint: object
    fit_intercept: bool
    penalize_intercept: bool
    # how it is solved
    solver: Solver
    inference: bool
    clip: object
    max_iter: object
    coef_path: bool
    warm_start: bool
    class_weight: dict | None
    tol: float
    n_threads: int | None
    # what it may cost
    budget: Budget
    # public facts
    n_features: int
    n_outputs: int
    sparse: bool
    in_arrays: bool
    columns: tuple | None
    feature_bounds: object
    feature_scale: object
    row_norm_bound: float | None
    target_center: float
    target_half_width: float
    finds_target: bool = False
    scales: ScaleSearch = NOTHING
    target_search: TargetSearch = NO_TARGET
    asks_for_smoothness: bool = False
    smoothness_share: float = 0.0
    mean_squares: np.ndarray | None = None
    means: np.ndarray | None = None
    counts_share: float = 0.0
    mean_share: float = 0.0
    length_share: float = 0.0
    n_fits: int = 1
    strengths: tuple = ()
    chooses: bool = False
    finds_scales: bool = True
    lacks_intervals: bool = False

    @classmethod
    def of(cls, parameters, **facts):
        """The request of an estimator, or whatever else has its parameters as attributes.

        Numbers become Python's: noise is computed in double precision, whatever they were.
        """
        names = {field.name for field in fields(cls)}.difference(facts, _DERIVED_FIELDS)
        values = {name: getattr(parameters, name) for name in names} | facts
        if isinstance(values["feature_scale"], str):
            values |= {"feature_scale": None, "asks_for_smoothness": True}
        values["finds_scales"] = getattr(parameters, "_known_scales", None) is None
        return cls(**{name: _plain(value) for name, value in values.items()}).changed()

    def changed(self, **changes):
        """The request with other fields, and with the searches and counts that suit these."""
        request = replace(self, **_UNDECIDED, **changes)
        decisions = _SEARCHES if request.finds_scales else {}
        # over persons, all else that is released is of their sums
        decisions = decisions if request.by_id else decisions | _SHARES
        for name, decide in decisions.items():
            if (value := decide(request)) != _UNDECIDED[name]:
                request = replace(request, **{name: value})
        return request

    @cached_property
    def private(self):
        """Whether there is noise."""
        return self.budget.private

    @cached_property
    def by_id(self):
        """Whether ids say whose records are, so that all sums are over persons."""
        return self.budget.max_contributions is None

    @cached_property
    def has_log_link(self):
        """Whether predictions are exponentials of margins, of a target that is not scaled."""
        return not isinstance(self.loss, tuple) and self.loss.has_log_link

    @cached_property
    def centres_target(self):
        """Whether a target is seen from its middle, which an intercept makes good."""
        return self.fit_intercept and not self.has_log_link

    @cached_property
    def looks_for_features(self):
        """Whether nothing is stated of the features' scales."""
        stated = (self.feature_bounds, self.feature_scale, self.row_norm_bound)
        return all(fact is None for fact in stated)

    @cached_property
    def constraint_word(self):
        """The name of the set of coefficients, or None."""
        return self.constraint and self.constraint.name

    @cached_property
    def looks_within(self):
        """Whether bounds are stated, and scales within them may be far smaller.

        A stated scale is the user's word for how large numbers are. An inference is about records
        within the bounds that were stated, and not about those without their tails.
        """
        is_bounded = self.feature_bounds is not None or self.row_norm_bound is not None
        knows_scale = self.feature_scale is not None or self.asks_for_smoothness
        return is_bounded and not knows_scale and not self.inference

    @cached_property
    def has_sparse_rows(self):
        """Whether rows are sparse, and it is their norm that is known."""
        knows_norm = self.row_norm_bound is not None or self.scales.features == "rows"
        return self.sparse and knows_norm

    @cached_property
    def has_smooth_penalty(self):
        """Whether the penalty is a ridge, or none at all, whatever its word."""
        has_no_l1 = self.penalty in ("l1", "elasticnet") and self.strength == 0
        is_signed = self.positive or self.signs is not None
        return not is_signed and (self.l1_share == 0 or has_no_l1)

    @property
    def signs(self):
        """Stated signs of the penalised coefficients, or None."""
        if self.penalty != "elasticnet" or self.by_column is None:
            return None
        return self.by_column + (0,) * (self.n_penalized - self.n_features)

    @cached_property
    def l1_share(self):
        """Share of the l1 norm in the penalty; bounds are as little smooth as that norm is."""
        shares = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": self.l1_ratio}
        return shares.get(self.penalty, 1.0)

    @cached_property
    def n_classes(self):
        """Number of classes, 0 for a regression."""
        loss = self.loss[0] if isinstance(self.loss, tuple) else self.loss
        return max(2, self.n_outputs) if loss.task == "classification" else 0

    @cached_property
    def n_targets(self):
        """Number of targets, 0 for classes."""
        return 0 if self.n_classes else self.n_outputs

    @cached_property
    def n_coordinates(self):
        """p', the number of coordinates with the intercept."""
        return self.n_features + self.fit_intercept

    @cached_property
    def n_penalized(self):
        """How many coordinates penalties and constraints are on; a free intercept comes last."""
        return self.n_features + (self.fit_intercept and self.penalize_intercept)

    @cached_property
    def mu(self):
        """The Gaussian-DP parameter of the updates, nearly: less what is released beside them."""
        share = self.share_left - (self.share_of_moments if self.inference else 0.0)
        return self.budget.mu * math.sqrt(share / self.n_fits)

    @cached_property
    def share_left(self):
        """Share of μ² that scales, mean squares and counts leave."""
        beside = self.scales.share + self.target_search.share
        beside += self.smoothness_share + share_of_outside(self) + share_of_far(self)
        return 1 - beside - self.counts_share - self.mean_share - self.length_share

    @cached_property
    def share_of_moments(self):
        """Share of μ² that inference has of what scales and counts leave."""
        if not self.private:
            return 0.2
        mu, size = self.budget.mu, self.n_coordinates
        share = share_for_inference(self.budget.n * mu / math.sqrt(size), size)
        return share * self.share_left

    @property
    def evidence(self):
        """n μ of all releases together."""
        return self.budget.n * self.budget.mu

    @property
    def least_noise(self):
        """The noise of a mean of numbers within [-1, 1] that all of μ² pays for."""
        return {"replace_one": 2.0, "add_remove": 1.0}[self.budget.neighboring] / self.evidence

    @cached_property
    def signal(self):
        """s = n μ / sqrt(p + 1): the public signal-to-noise number of a full-batch fit."""
        return self.budget.n * self.mu / math.sqrt(self.n_coordinates)


def _plain(value):
    return value.plain() if isinstance(value, Stated) else plain_number(value)
