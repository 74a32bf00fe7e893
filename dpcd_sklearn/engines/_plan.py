"""Every number of a fit that is fixed before a record is used."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..losses._base import Loss
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._gaussian_dp import gdp_mu
from ..solvers._problem import Problem
from ._geometry import Geometry


@dataclass(frozen=True, eq=False)
class Plan:
    """The frozen plan of one fit: all of it follows from parameters, shapes and public facts.

    Attributes
    ----------
    event : FitEvent
        What the fit will release.
    geometry : Geometry
    engine : Engine
    loss : Loss
        In units of the scaled target.
    sampling : object of `samplings`, or None where no coordinates are drawn
    problem : Problem
        What the solver sees.
    clip : float
        C; infinite without noise.
    n_normalizer : int
        The public number of records.
    delta : float
    target_center, target_half_width : float
        The target is mapped to [-1, 1] by these (regression), from public bounds.
    lazy : bool
        Whether greedy choices may take a time that depends on records.
    n_threads : int
        Of passes over records, at most; nothing that is released depends on it.
    """

    event: FitEvent
    geometry: Geometry
    engine: object
    loss: Loss
    sampling: object
    problem: Problem
    clip: float
    n_normalizer: int
    delta: float
    target_center: float = 0.0
    target_half_width: float = 1.0
    lazy: bool = False
    n_threads: int = 1

    @property
    def finite_clip(self):
        """C as an oracle takes it, which clips nothing in a fit without noise."""
        return self.clip if math.isfinite(self.clip) else 1.0

    def with_geometry(self, geometry, curvature):
        """The same plan over another geometry (epsilon = inf takes it from the records)."""
        problem = replace(self.problem, smoothness=geometry.smoothness, curvature=curvature)
        return replace(self, geometry=geometry, problem=problem)

    def to_original(self, coef):
        """Split coefficients into (coef, intercept) in the units of X and y.

        Parameters
        ----------
        coef : ndarray of shape (..., n_coordinates)

        Returns
        -------
        coef : ndarray of shape (..., n_features)
        intercept : ndarray of shape (...)
        """
        n_features = len(self.geometry.center)
        largest = np.finfo(np.float64).max  # bounds near it leave room for nothing more
        coef = np.clip(coef * self.target_half_width, -largest, largest)
        if coef.shape[-1] == n_features:
            return coef, np.zeros(coef.shape[:-1])
        weights, intercept = coef[..., :-1], coef[..., -1] + self.target_center
        # Features were read as x - center: the constant that this removed goes back.
        intercept = np.nan_to_num(intercept - weights @ self.geometry.center)
        return weights, intercept


@dataclass(frozen=True)
class Facts:
    """The public numbers that recipes for "auto" may look at, and nothing else."""

    n_normalizer: int
    n_coordinates: int
    epsilon: float
    delta: float
    private: bool

    @cached_property
    def signal(self):
        """s = n μ / sqrt(p + 1): the public signal-to-noise number of a full-batch fit."""
        if not self.private:
            return math.inf
        return self.n_normalizer * gdp_mu(self.epsilon, self.delta) / math.sqrt(self.n_coordinates)


def number_of_updates(max_iter, n_coordinates=1, block_size=1):
    """T: `max_iter` counts passes over the coordinates and may be a fraction.

    More than can be counted are 2^60: the plan refuses them.
    """
    return max(1, math.ceil(min(max_iter * n_coordinates / block_size, 2.0**60)))
