"""Engines: what the fit recipe needs to know about a solver, and which problems it solves.

A new solver is one new engine: a subclass of ``Engine`` with a line in ``_engines.py``.
"""

import math
from abc import ABCMeta, abstractmethod
from functools import cached_property

import numpy as np

from ..losses import LOSSES
from ..penalties import CONSTRAINTS, PENALTIES, ElasticNet
from ..privacy.accounting._calibration import gaussian_fit_event, sampled_fit_event
from ..privacy.mechanisms._batch_oracle import BatchOracle
from ..privacy.mechanisms._oracle import RecordOracle
from ..privacy.mechanisms._units import CoordinateUnits, MeanUnits
from ..privacy.sums._place import LocalPlace
from ..solvers._problem import Problem
from ..utils._threads import effective_n_threads
from ._geometry import moment_geometry, public_geometry

EVERY_PENALTY = {None, *PENALTIES}
SINGLE_OUTPUT = {name for name, loss in LOSSES.items() if not loss.multi_output}


class Engine(metaclass=ABCMeta):
    """One solver, bound to one request: the plan of a fit.

    Every number of the fit is a property that follows from the request, hence from parameters and
    public facts; `planned` makes those that are used before anything is charged. Only ``run`` is
    given records.

    Parameters
    ----------
    request : Request

    Attributes
    ----------
    losses, penalties, constraints, averagings : set of str
        What it can solve.
    has_momentum, has_inference : bool
    noiseless_max_iter : int
        Passes of a fit without noise.
    noiseless_recipe : dict of step_size and momentum
        What "auto" stands for in a fit without noise.
    sampling : object of `samplings`, or None where every update has all coordinates
    extra : dict
        Fields of the Problem that this solver looks at, beside those of all.
    """

    losses = SINGLE_OUTPUT
    penalties = EVERY_PENALTY
    constraints = {None}
    averagings = {"auto", "last", "tail", "periodic"}
    has_momentum = False
    has_inference = False
    noiseless_max_iter = 10_000
    noiseless_recipe = {"step_size": 1.0, "momentum": 0.0}
    sampling = None
    extra = {}

    def __init__(self, request):
        self.request = request

    # ---- what it can solve: of the class ----

    @classmethod
    def needs(cls, request):
        """What a request must change for this solver to work, or None."""
        if request.loss.name not in cls.losses:
            return f"loss in {_listed(cls.losses)}, not {request.loss.name!r}"
        if request.penalty not in cls.penalties:
            return f"penalty in {_listed(cls.penalties)}, not {request.penalty!r}"
        if request.constraint not in cls.constraints:
            return f"constraint in {_listed(cls.constraints)}, not {request.constraint!r}"
        if request.averaging not in cls.averagings:
            return f"averaging in {_listed(cls.averagings)}, not {request.averaging!r}"
        if not cls.has_momentum and request.momentum not in ("auto", 0):
            return f"momentum=0, not {request.momentum!r}"
        if request.inference and not cls.has_inference:
            return "inference=False: how its iterates follow the noise is not known"
        return None

    @classmethod
    def solves(cls, request):
        """Whether loss, penalty and constraint suit the solver, whatever its other parameters."""
        return (
            request.loss.name in cls.losses
            and request.penalty in cls.penalties
            and request.constraint in cls.constraints
        )

    # ---- the plan: of the request ----

    @cached_property
    def geometry(self):
        """The geometry that the solver works in, from what the user states of the features."""
        with np.errstate(over="ignore"):  # `units` refuse what overflows
            return self._in_its_terms(public_geometry(self.request))

    def _in_its_terms(self, geometry):
        """The geometry that the solver works in, from M_j and bounds of the features."""
        return geometry

    @property
    @abstractmethod
    def recipe(self):
        """What "auto" stands for: a dict of max_iter, step_size, momentum, averaging, and
        residual_clip, in units of the scaled target's derivative: C_j = residual_clip sqrt(M_j).
        """

    def _chosen(self, name):
        """A parameter, or what "auto" stands for."""
        if (stated := getattr(self.request, name)) != "auto":
            return stated
        if self.request.private:
            return self.recipe[name]
        fixed = {"max_iter": self.noiseless_max_iter, "averaging": "last"}
        return (self.noiseless_recipe | fixed)[name]

    def updates(self, n_passes):
        """How many updates so many passes are; it need not be an integer."""
        if self.sampling is None:
            return float(n_passes)
        return n_passes * self.request.n_coordinates / self.sampling.block_size

    @cached_property
    def n_updates(self):
        """T, fixed beforehand."""
        asked = self.updates(self._chosen("max_iter"))
        if asked > 2**53:
            raise ValueError(
                f"max_iter={self.request.max_iter!r} asks for more than the 2^53 updates that can "
                "be counted; ask for fewer passes"
            )
        return max(1, math.ceil(asked))

    @property
    def curvature(self):
        """How much steeper than its coordinates a move may be: steps are divided by it."""
        return self.geometry.spread(self.request.n_coordinates)

    @cached_property
    def problem(self):
        """What the solver sees."""
        request, n_updates = self.request, self.n_updates
        one_pass = max(1, math.ceil(min(self.updates(1.0), 2.0**60)))  # or never
        return Problem(
            penalty=self._penalty(),
            smoothness=self.geometry.smoothness,
            n_penalized=request.n_penalized,
            n_updates=n_updates,
            n_outputs=request.n_outputs,
            curvature=self.curvature,
            tol=0.0 if request.private else float(request.tol),
            path_every=one_pass if request.coef_path else 0,
            **{name: self._chosen(name) for name in ("step_size", "momentum", "averaging")},
            **self.extra,
        )

    def _penalty(self):
        word, request = self.request.penalty, self.request
        if word is None:
            return ElasticNet()
        return PENALTIES[word].of(word, request.strength, request, request.target_half_width)

    def _constraint(self):
        if self.request.constraint is None:
            return None
        radius = self.request.radius / self.request.target_half_width
        return CONSTRAINTS[self.request.constraint](radius)

    @property
    @abstractmethod
    def event(self):
        """The FitEvent that is charged: what all updates together release."""

    @cached_property
    def clip(self):
        """C in units of the scaled target, C_j = C sqrt(M_j / tr M); infinite without noise."""
        if not self.request.private:
            return math.inf
        if self.request.clip == "auto":
            return self.recipe["residual_clip"] * self._largest_gradient
        clip, half_width = self.request.clip, self.request.target_half_width
        if not 0 < clip / half_width < math.inf:
            raise ValueError(
                f"clip={clip!r} must be positive and finite over half the width of target_bounds, "
                f"{half_width:g}; rescale the target"
            )
        return clip / half_width

    @property
    def _largest_gradient(self):
        """sqrt(tr M): the norm of all bounds together, for a derivative of 1."""
        return float(self.geometry.smoothness.sum()) ** 0.5

    @property
    def finite_clip(self):
        """C as an oracle takes it, which clips nothing in a fit without noise."""
        return self.clip if math.isfinite(self.clip) else 1.0

    def planned(self, n_samples):
        """Make every number of the plan, and return the engine.

        Raises
        ------
        TypeError, ValueError
            What a mechanism would raise of the plan, before anything is charged.
        """
        for name in ("geometry", "sampling", "problem", "event", "clip"):
            getattr(self, name)
        self.units(n_samples)
        return self

    def over_records(self, X, sample_weight):
        """The plan over the moments of the records, which fits without noise may look at."""
        request = self.request
        centered = request.fit_intercept and not request.penalize_intercept
        moments = LocalPlace(X, None, sample_weight).moments(centered=centered)
        return self.over(moment_geometry(moments, request)).planned(X.shape[0])

    def over(self, geometry):
        """The plan over another geometry."""
        other = type(self)(self.request)
        other.sampling = self.sampling  # as it was drawn by public facts
        other.geometry = self._in_its_terms(geometry)
        return other

    def to_original(self, coef, dtype):
        """Split coefficients into (coef, intercept) in the units of X and y.

        Parameters
        ----------
        coef : ndarray of shape (..., n_coordinates)
        dtype : dtype
            Of the coefficients; the intercept is in double precision.

        Returns
        -------
        coef : ndarray of shape (..., n_features)
        intercept : ndarray of shape (...)
        """
        largest = np.finfo(np.float64).max  # bounds near it leave room for nothing more
        coef = np.clip(coef * self.request.target_half_width, -largest, largest)
        weights = coef[..., : self.request.n_features]
        if dtype != weights.dtype:
            largest = np.finfo(dtype).max
            weights = np.clip(weights, -largest, largest).astype(dtype)
        if not self.request.fit_intercept:
            return weights, np.zeros(coef.shape[:-1])
        intercept = coef[..., -1] + self.request.target_center
        # Features were read as x - center: the constant that this removed goes back.
        return weights, np.nan_to_num(intercept - weights @ self.geometry.center)

    # ---- the records ----

    def place(self, records):
        """Where the records lie; nothing is read before a mechanism opens it."""
        n_threads = effective_n_threads(self.request.n_threads)
        return LocalPlace(*records, self.geometry.bounds, n_threads=n_threads)

    @abstractmethod
    def units(self, n_samples):
        """Units of what is released from so many records.

        Raises
        ------
        TypeError, ValueError
            If a mechanism can't carry out the event with these public numbers.
        """

    @abstractmethod
    def run(self, receipt, records, key, generator):
        """Make the oracle and run the solver on what it releases; returns a Solution."""


class CoordinateEngine(Engine):
    """A solver on coordinates or blocks of them, over a RecordOracle.

    Attributes
    ----------
    solve : callable
    """

    solve = None
    known_scores = {}  # of greedy choices, beforehand: what CoordinateUnits ask for

    @property
    def _n_inner(self):
        """K of the papers' T × K: a tenth of all updates unless the user says more."""
        return self.request.n_inner or math.ceil(self.n_updates / 10)

    def units(self, n_samples):
        return CoordinateUnits(
            self.event,
            n_samples=n_samples,
            smoothness=self.geometry.smoothness,
            clip=self.finite_clip,
            n_normalizer=self.request.n_normalizer,
            n_chosen=self.problem.n_chosen,
            **self.known_scores,
        )

    def run(self, receipt, records, key, generator):
        place = self.place(records)
        oracle = RecordOracle(
            receipt,
            self.units(place.n_samples),
            place,
            loss=self.request.loss,
            fit_intercept=self.request.fit_intercept,
            key=key,
            lazy=self.request.selection == "lazy",
        )
        return self.solve(oracle, self.problem, self.sampling, generator)


class GradientEngine(Engine):
    """A solver on mean gradients at iterates that it states, over a BatchOracle.

    Attributes
    ----------
    solve : callable
    anchor_share : float
        Clip of differences of gradients over that of gradients.
    default_rate : float
        Of the records in one mini-batch, for sampling_rate="auto".
    """

    solve = None
    anchor_share = 1.0
    default_rate = 0.1
    losses = set(LOSSES)
    averagings = {"auto", "last", "tail", "weighted"}
    noiseless_max_iter = 100_000

    @property
    def rate(self):
        """Of the records in one mini-batch; without noise every batch is all of them."""
        if not self.request.private:
            return 1.0
        if self.request.sampling_rate == "auto":
            return 1.0 if self.request.solver == "auto" else self.default_rate
        return float(self.request.sampling_rate)

    def updates(self, n_passes):
        return n_passes / self.rate

    @property
    def extra(self):
        return {"sampling_rate": self.rate, "step_decay": self.request.step_decay}

    @cached_property
    def event(self):
        request = self.request
        if self.rate >= 1:
            return gaussian_fit_event(
                request.epsilon, request.delta, self.n_updates, request.neighboring
            )
        return sampled_fit_event(
            request.epsilon, request.delta, self.rate, self.n_updates, request.neighboring
        )

    @property
    def _clips(self):
        # the norm of M^(-1/2) g over all coordinates
        smoothness = self.geometry.smoothness
        clip = self.finite_clip * (len(smoothness) / float(smoothness.sum())) ** 0.5
        return {"clip": clip, "anchor_clip": self.anchor_share * clip}

    def units(self, n_samples):
        return MeanUnits(
            self.event,
            n_samples=n_samples,
            smoothness=self.geometry.smoothness,
            n_normalizer=self.request.n_normalizer,
            n_outputs=self.request.n_outputs,
            **self._clips,
        )

    def run(self, receipt, records, key, generator):
        place = self.place(records)
        oracle = BatchOracle(
            receipt,
            self.units(place.n_samples),
            place,
            loss=self.request.loss,
            fit_intercept=self.request.fit_intercept,
            key=key,
        )
        return self.solve(oracle, self.problem, self.sampling, generator)


def _listed(names):
    return "{" + ", ".join(sorted(map(repr, names))) + "}"
