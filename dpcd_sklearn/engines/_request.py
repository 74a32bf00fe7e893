"""What an engine may look at: parameters and public facts, frozen, and no record."""

import math
from dataclasses import dataclass, fields
from functools import cached_property

from ..losses._base import Loss
from ..privacy.accounting._gaussian_dp import gdp_mu
from ..utils._public import plain_number


@dataclass(frozen=True, eq=False)
class Request:
    """A fit that is asked for. Parameters have the estimators' names, words and units.

    Parameters
    ----------
    loss : Loss
        Of a target that was divided by `target_half_width`.
    loss_word : str
        The estimator's word for it; of two classes the multinomial loss is the logistic one.
    strength : float
        Of the penalty beside a mean loss, whatever the estimator's parameter for it is.
    delta : float
        The number that the estimator's word stands for.
    n_normalizer : int
        The public number of records, which divides every sum.
    n_features, n_outputs : int
    sparse : bool
        Whether the records are sparse.
    columns : tuple of str or None
        Names of the features, if they have some: for bounds by name.
    target_center, target_half_width : float
        The target is mapped to [-1, 1] by these (regression), from public bounds.
    """

    # the problem
    loss: Loss
    loss_word: str
    penalty: str | None
    alpha: float
    strength: float
    l1_ratio: float
    coef_bounds: object
    positive: bool
    constraint: str | None
    radius: float
    fit_intercept: bool
    penalize_intercept: bool
    # how it is solved
    solver: str
    sampling: object
    block_size: int | None
    rule: str
    selection_share: float
    selection: str
    sampling_rate: object
    n_directions: int | None
    n_inner: int | None
    curvature_share: object
    inference: bool
    inference_share: float
    clip: object
    max_iter: object
    step_size: object
    step_decay: float
    momentum: object
    averaging: str
    coef_path: bool
    tol: float
    n_threads: int
    # what it may cost
    epsilon: float
    delta: float
    neighboring: str
    accounting: str
    # public facts
    n_normalizer: int
    n_features: int
    n_outputs: int
    sparse: bool
    columns: tuple | None
    feature_bounds: object
    feature_scale: object
    row_norm_bound: float | None
    target_center: float
    target_half_width: float

    @classmethod
    def of(cls, parameters, **facts):
        """The request of an estimator, or whatever else has its parameters as attributes.

        Numbers become Python's: noise is computed in double precision, whatever they were.
        """
        names = [field.name for field in fields(cls) if field.name not in facts]
        values = {name: getattr(parameters, name) for name in names} | facts
        return cls(**{name: plain_number(value) for name, value in values.items()})

    @property
    def private(self):
        """Whether there is noise."""
        return math.isfinite(self.epsilon)

    @property
    def n_coordinates(self):
        """p', the number of coordinates with the intercept."""
        return self.n_features + self.fit_intercept

    @property
    def n_penalized(self):
        """How many coordinates penalties and constraints are on; a free intercept comes last."""
        return self.n_features + (self.fit_intercept and self.penalize_intercept)

    @cached_property
    def mu(self):
        """The Gaussian-DP parameter of a fit of this loss."""
        return gdp_mu(self.epsilon, self.delta)

    @property
    def signal(self):
        """s = n μ / sqrt(p + 1): the public signal-to-noise number of a full-batch fit."""
        return self.n_normalizer * self.mu / math.sqrt(self.n_coordinates)
