"""The plan of a fit by one solver, and which problems that solves.

A new solver has one of its own: a subclass of ``SolverPlan``, beside what is stated of the solver.
"""

import math
from abc import ABCMeta, abstractmethod
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..exceptions import UnknownScaleWarning
from ..loops._problem import Problem
from ..losses import LOSSES
from ..penalties import SEPARABLE
from ..privacy.accounting._calibration import joint_fit_event
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import joined
from ..utils._warnings import warn
from ._geometry import moment_geometry, public_geometry
from ._inference import MOMENTS
from ._label_prior import COUNTS
from ._margin_length import LENGTH
from ._penalty import penalty_share, stated_penalty
from ._records_outside import FAR, OUTSIDE
from ._scales import SCALES
from ._settled_intercept import SETTLING
from ._smoothness import SMOOTHNESS
from ._target import TARGET
from ._target_mean import MEAN_AT_END, TARGET_MEAN

_FARTHEST = 1e100  # of a start: scores and margins of what is farther would overflow
# Found columns are no narrower than such a share of the widest: greedy scores and radii are bounded
# in units of sqrt(M_j), and what would break the bound as it was found may keep it a little wider.
_NARROW = 0.0, 2.0**-10

# Releases that a fit may make beside its updates, in the order of their events.
RELEASES = (SCALES, FAR, TARGET, SMOOTHNESS, TARGET_MEAN, MEAN_AT_END, COUNTS)
RELEASES += (SETTLING, LENGTH, OUTSIDE, MOMENTS)

SINGLE_OUTPUT = {name for name, loss in LOSSES.items() if not loss.multi_output}


class SolverPlan(metaclass=ABCMeta):
    """One solver, bound to one request: the plan of a fit.

    Every number of the fit is a property that follows from the request, hence from parameters and
    public facts; `planned` makes those that are used before anything is charged. Only ``run`` is
    given records.

    Parameters
    ----------
    request : Request

    Attributes
    ----------
    losses, penalties, constraints : set of str
        What it can solve.
    has_inference : bool
    noiseless_max_iter : int
        Passes of a fit without noise.
    noiseless_recipe : dict of step_size and momentum
        What "auto" stands for in a fit without noise.
    sampling : object of `samplings`, or None where every update has all coordinates
    extra : dict
        Fields of the Problem that this solver looks at, beside those of all.
    forgets_its_start, starts_at_medians : bool
        Whether its first update goes to one point from everywhere, or starts at known medians.
    settles : bool
        Whether an intercept is set right after all updates.
    hides_updates : bool
        Whether all updates are one release, of which nobody is told how far it is.
    rows_within : float
        How many times as long as usual rows those are by which residuals are clipped.
    log_link_share : float
        How much of a penalty counts beside the clipped derivatives of a loss with a log link.
    noise_length : float
        How far noise alone would carry coefficients of features, in units of sqrt(M_j); 0 is not
        known.
    solve : callable
        The loop, of (oracle, problem, sampling, generator) to a Solution.
    """

    losses = SINGLE_OUTPUT
    penalties = {None, *SEPARABLE}
    constraints = {None}
    has_inference = False
    noiseless_max_iter = 10_000
    noiseless_recipe = {"step_size": 1.0, "momentum": 0.0}
    sampling = None
    extra = {}
    forgets_its_start = hides_updates = settles = knows_weights = starts_at_medians = False
    rows_within = 2.0
    log_link_share = 1.0
    noise_length = 0.0
    _start, _progress = None, None

    def __init__(self, request, **fixed):
        vars(self).update(fixed, request=request)

    def __setattr__(self, name, value):
        raise AttributeError(f"a plan is frozen, {name} too: changed({name}=...) is another one")

    def changed(self, **fixed):
        """The same plan but for these numbers."""
        other = copy(self)
        vars(other).pop("_beside", None)
        vars(other).update(fixed)
        return other

    # ---- what it can solve: of the class ----

    @classmethod
    def needs(cls, request):
        """The change of a request that makes this solver work, in words; None if it works."""
        if request.loss.name not in cls.losses:
            return f"loss in {_listed(cls.losses)}, not {request.loss.name!r}"
        if request.penalty not in cls.penalties:
            return f"penalty in {_listed(cls.penalties)}, not {request.penalty!r}"
        if request.constraint_word not in cls.constraints:
            return f"constraint in {_listed(cls.constraints)}, not {request.constraint_word!r}"
        return cls.needs_for_inference(request) if request.inference else None

    @classmethod
    def needs_for_inference(cls, request):
        """The change of a request that makes covariances known, in words; None if they are."""
        if not request.loss.has_known_errors:
            return "loss='squared' or 'huber', of which released curvatures tell the errors"
        if not cls.has_inference:
            return (
                "solver='newton', or 'skgd' for the squared loss: of other solvers it is not known "
                "how iterates follow the noise"
            )
        if not request.has_smooth_penalty:
            return "penalty=None or 'l2': other penalties leave no normal law"
        if request.budget.n <= 2 * request.n_coordinates:
            n, size = request.budget.n, request.n_coordinates
            return f"more than two records a coefficient, got {n:,} for {size:,}"
        return None

    @classmethod
    def solves(cls, request):
        """Whether loss, penalty and constraint suit the solver, whatever its other parameters."""
        return (
            request.loss.name in cls.losses
            and request.penalty in cls.penalties
            and request.constraint_word in cls.constraints
        )

    # ---- the plan: of the request ----

    @property
    def word(self):
        """The solver's name, as a value of `solver`."""
        return self.request.solver.word

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
        """Values that "auto" stands for: a dict of max_iter, step_size, momentum, averaging, and
        residual_clip, in units of the scaled target's derivative: C_j = residual_clip sqrt(M_j).
        """

    def _chosen(self, name):
        """A parameter, or what "auto" stands for."""
        of = self.request if name == "max_iter" else self.request.solver
        if (stated := getattr(of, name)) != "auto":
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
    def loss(self):
        """The loss whose derivatives are released."""
        return self.request.loss

    @property
    def curvature(self):
        """How much steeper than its coordinates a move may be: steps are divided by it."""
        return self.geometry.spread(self.request.n_coordinates)

    @cached_property
    def problem(self):
        """The problem as the solver sees it."""
        request, n_updates = self.request, self.n_updates
        one_pass = max(1, math.ceil(min(self.updates(1.0), 2.0**60)))  # or never
        return Problem(
            penalty=stated_penalty(request, penalty_share(self)),
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

    def _constraint(self):
        """The set of coefficients of the scaled target."""
        ball = self.request.constraint
        return ball and type(ball)(ball.radius / self.request.target_half_width)

    @property
    @abstractmethod
    def alone(self):
        """The FitEvent of the updates of all `n_fits`, were they all that is released."""

    @cached_property
    def parts(self):
        """The FitEvents of what is released: what stands beside the updates, and these last."""
        request = self.request
        beside = [release.event(self) for release in self._beside]
        if not beside:
            return (self.alone,)
        _, updates = joint_fit_event(request.budget, joined(beside), self.alone)
        return (*beside, updates)

    @cached_property
    def _beside(self):
        """The releases beside the updates, in the order of their events."""
        return [release for release in RELEASES if release.share(self)]

    def part_of(self, name):
        """The event that pays for a release beside the updates, or None where it is not made."""
        names = [release.name for release in self._beside]
        return self.parts[names.index(name)] if name in names else None

    @property
    def part(self):
        """The event that pays for the updates of this fit, one of `n_fits`."""
        event, n_fits = self.parts[-1], self.request.n_fits
        if n_fits == 1 or not self.request.private:
            return event
        releases = (replace(release, count=release.count // n_fits) for release in event.releases)
        return FitEvent(tuple(releases), event.neighboring)

    @property
    def event(self):
        """The FitEvent of records, the releases of each of `n_fits` by themselves."""
        first = sum((part.releases for part in self.parts[:-1]), ())
        return FitEvent(first + self.request.n_fits * self.part.releases, self.part.neighboring)

    @property
    def charged(self):
        """The same, as the event of persons: what is charged, and told."""
        return self.request.budget.of_persons(self.event)

    @cached_property
    def clip(self):
        """C in units of the scaled target, C_j = C sqrt(M_j / tr M); infinite without noise."""
        if not self.request.private:
            return math.inf
        if self.request.clip == "auto":
            clip = min(self.recipe["residual_clip"], self.request.loss.steepest)
            return clip * self.request.loss.reach * self._largest_gradient
        clip, half_width = self.request.clip, self._derivative_unit
        if not 0 < clip / half_width < math.inf:
            raise ValueError(
                f"clip={clip!r} must be positive and finite over half the width of target_bounds, "
                f"{half_width:g}; rescale the target"
            )
        return clip / half_width

    @property
    def stated_clip(self):
        """C in the units of the target."""
        return self.clip * self._derivative_unit

    @property
    def _derivative_unit(self):
        """The size of a derivative of 1 in the units of the loss that was stated."""
        return self.request.target_half_width * self.request.loss.unit

    @property
    def _largest_gradient(self):
        """The least C with which a derivative of 1 is never clipped.

        It is sqrt(tr M), or less where a bound on rows says that the gradient of a whole block is
        shorter than all bounds together: a clip that can't bite would cost noise.
        """
        size = self._clipped_together
        longest = self.geometry.spread(size) / size
        return math.sqrt(float(self.geometry.smoothness.sum()) * longest)

    @property
    def _clipped_together(self):
        """How many coordinates of a record's gradient one norm clips."""
        return self.request.n_coordinates

    @property
    def finite_clip(self):
        """C as an oracle takes it, which clips nothing in a fit without noise."""
        return self.clip if math.isfinite(self.clip) else 1.0

    def planned(self, n_samples):
        """Make every number of the plan, and return it.

        Raises
        ------
        TypeError, ValueError
            What a mechanism would raise of the plan, before anything is charged.
        """
        for name in ("geometry", "sampling", "problem", "parts", "clip"):
            getattr(self, name)
        for release in self._beside:
            release.units(self, n_samples)
        self.units(n_samples)
        return self

    def over_records(self, place):
        """The plan over the moments of the records, which fits without noise may look at."""
        return self.over(self.geometry_of(place)).planned(place.n_samples)

    def with_loss(self, loss):
        """The plan with another loss of the same curvature, with the updates that were paid for."""
        fixed = {name: getattr(self, name) for name in ("geometry", "parts", "n_updates")}
        return type(self)(replace(self.request, loss=loss), sampling=self.sampling, **fixed)

    def geometry_of(self, place):
        """The geometry of the records themselves: for fits without noise."""
        request = self.request
        centered = request.fit_intercept and not request.penalize_intercept
        return moment_geometry(place.moments(centered=centered), request)

    def over(self, geometry, **fixed):
        """The plan over another geometry, with what else is fixed."""
        # its sampling as it was drawn by public facts
        geometry = self._in_its_terms(geometry)
        return type(self)(self.request, sampling=self.sampling, geometry=geometry, **fixed)

    def located(self, found, loss, n_samples):
        """The plan in the scales that were found, with the updates that were paid for.

        What is paid for is carried out, whatever was found. Where a mechanism would refuse the
        scales beside the other parameters, that is this plan of unit scale, which was tried before
        the charge.

        Parameters
        ----------
        found : FoundScales
        loss : Loss, or tuple of one a target
            Loss of a target in the width that was found.
        n_samples : int
        """
        for share in _NARROW:
            try:
                return self._located(found.widened(share), loss).planned(n_samples)
            except Exception as error:  # of any kind: a sampling is the user's code
                refusal = error
        warn(
            f"the scales that were found do not go with the other parameters ({refusal}); unit "
            "scale took their place, or stated bounds did. State feature_bounds or feature_scale "
            "in numbers and, of a regression, target_bounds",
            UnknownScaleWarning,
        )
        return self

    def _located(self, found, loss):
        fixed = {"parts": self.parts, "n_updates": self.n_updates}
        if not isinstance(self.request.solver.sampling, str):
            fixed["sampling"] = self.sampling  # it was tried already
        return type(self)(found.stated_in(self.request, loss), **fixed)

    def attended_by(self, start, progress):
        """The plan with what a fit hands over beside its records.

        Parameters
        ----------
        start : (coef, intercept) or None
            In the units of X and y, of shapes (n_outputs, n_features) and (n_outputs,).
        progress : object with ``tell(n_updates)``, ``every`` and ``is_followed``
        """
        return self.changed(_start=start, _progress=progress)

    @property
    def outputs(self):
        """The plans of all fits that this one is: itself."""
        return [self]

    @property
    def n_told(self):
        """Updates of which a progress is told."""
        return 0 if self.hides_updates else self.n_updates

    @property
    def attended(self):
        """The problem as the solver sees it, with its start and whom it tells how far it is."""
        problem = self.problem
        if self._start is not None:
            problem = replace(problem, start=self._from_original(*self._start))
        if self._progress is not None and self._progress.is_followed:
            told = {"watch": self._progress.tell, "watch_every": self._progress.every}
            problem = replace(problem, **told)
        return problem

    def _from_original(self, coef, intercept):
        """The inverse of `to_original`, one output after the other."""
        if self.request.fit_intercept:
            intercept = intercept - self.request.target_center + coef @ self.geometry.center
            coef = np.column_stack([coef, intercept])
        coef = np.nan_to_num(coef / self.request.target_half_width)
        return np.clip(coef, -_FARTHEST, _FARTHEST).ravel()

    def to_original(self, coef, dtype):
        """Split coefficients into (coef, intercept) in the units of X and y.

        Parameters
        ----------
        coef : ndarray of shape (..., n_coordinates)
        dtype : dtype
            Dtype of the coefficients; the intercept is in double precision.

        Returns
        -------
        coef : ndarray of shape (..., n_features)
        intercept : ndarray of shape (...)
        """
        largest = np.finfo(np.float64).max  # bounds near it leave room for nothing more
        coef = np.clip(coef * self.request.target_half_width, -largest, largest)
        # a column that can't vary is told from the intercept by noise alone
        weights = np.where(self.geometry.is_fixed, 0.0, coef[..., : self.request.n_features])
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
        return records.place(self.geometry.bounds, self.request.n_threads)

    @abstractmethod
    def units(self, n_samples):
        """Units of what is released from so many records.

        Raises
        ------
        TypeError, ValueError
            If a mechanism can't carry out the event with these public numbers.
        """

    def oracle(self, receipt, units, place, *, loss, fit_intercept, key):
        """The mechanism that answers `solve`; a plan without one has a `run` of its own."""
        raise NotImplementedError

    def run(self, receipt, records, key, generator):
        """Make the oracle and run the solver on what it releases; returns a Solution.

        `records` are Arrays, or have their methods.
        """
        place = self.place(records)
        units = self.units(place.n_samples)
        stated = {"loss": self.loss, "fit_intercept": self.request.fit_intercept, "key": key}
        oracle = self.oracle(receipt, units, place, **stated)
        return self.solve(oracle, self.attended, self.sampling, generator)


def _listed(names):
    return "{" + ", ".join(sorted(map(repr, names))) + "}"
