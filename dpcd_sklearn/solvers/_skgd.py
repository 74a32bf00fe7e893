"""DP-SkGD: what is stated of it, and its plan."""

import itertools
import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from numbers import Integral

import numpy as np

from ..loops import _skgd
from ..loops._covariance import DescentWalk
from ..plan._inference import gradient_noise, with_inference
from ..plan._settled_intercept import is_settled, settled
from ..plan._solver import COUNT_OR_NONE, INNER, MOMENTUM, Solver, parameters_of
from ..samplings import SAMPLING_WORDS, Sampling
from ..utils._compat import HasMethods, StrOptions
from ..utils._public import check_real
from ..utils._typing import Auto
from ._descent_recipe import (
    OF_ROOT_OF_NUMBERS,
    DrawnPlan,
    clip_for_inference,
    descent_of_rows,
    descent_recipe,
    long_descent,
    noiseless_descent_recipe,
    steps_of_root,
)

# Descents that would take so many steps over so many cells take fewer and longer ones, if columns
# are no more than the signal: with twice as many R² lost .012, with fewer steps correlated columns
# lost .04. Half-widths that were found hold tails, so records fill a small part of the bound on the
# curvature, and steps are four times as long. Where records fill all of it, as copies of one column
# may, clips bound every step.
_FEWER, _MANY_STEPS, _MANY_CELLS = 4.0, 160.0, 2**20

# ---- A user's own sampling: any object that draws blocks -----------------------------------------


class CheckedSampling:
    """The blocks of a sampling, as ascending intp arrays within the coordinates.

    A fit is paid for when it draws. What turns to nonsense then, after a sound trial, is replaced
    by a fixed block: the blocks are public, and so is the replacement.

    Parameters
    ----------
    sampling : object with ``draw(generator, count)`` and ``block_size``
    n_coordinates : int

    Attributes
    ----------
    failure : str or None
        What went wrong in `draw`, for a warning once the fit is done.

    Raises
    ------
    TypeError
        If it has not this face.
    ValueError
        If a trial draw, from a generator of its own, is no block of coordinates.
    """

    def __init__(self, sampling, n_coordinates):
        if not callable(getattr(sampling, "draw", None)) or not hasattr(sampling, "block_size"):
            raise TypeError(
                "sampling must be a word or an object with draw(generator, count) and block_size, "
                f"got {sampling!r}"
            )
        self._sampling, self._n_coordinates = sampling, n_coordinates
        self.failure = None
        self.block_size = sampling.block_size
        is_integer = isinstance(self.block_size, Integral) and not isinstance(self.block_size, bool)
        if not is_integer or not 1 <= self.block_size <= n_coordinates:
            raise ValueError(
                f"sampling.block_size must be an integer in [1, {n_coordinates}], the number of "
                f"coordinates with the intercept; got {self.block_size!r}"
            )
        for _ in self._sound(np.random.default_rng(0), 10):
            pass

    def draw(self, generator, count):
        """`count` blocks, whatever the sampling does; its first `block_size` coordinates if not."""
        n_drawn = 0
        try:
            for block in self._sound(generator, count):
                yield block
                n_drawn += 1
                if n_drawn == count:
                    return
        except Exception as error:  # the user's code: of any kind
            self.failure = repr(error)
        fixed = np.arange(self.block_size, dtype=np.intp)
        yield from itertools.repeat(fixed, count - n_drawn)

    def _sound(self, generator, count):
        """`count` blocks, or the error that says what is wrong with them."""
        blocks = self._sampling.draw(generator, count)
        if not np.iterable(blocks):
            raise TypeError(f"sampling.draw must give an iterable of blocks, got {blocks!r}")
        n_drawn = 0
        for n_drawn, block in enumerate(itertools.islice(blocks, count + 1), start=1):
            if n_drawn > count:
                break
            found = np.unique(block)
            if (
                found.dtype.kind not in "iu"
                or not 1 <= len(found) <= self.block_size
                or found[0] < 0
                or found[-1] >= self._n_coordinates
            ):
                raise ValueError(
                    f"sampling drew {block!r}: a block holds 1 to block_size={self.block_size} of "
                    f"the coordinates 0, ..., {self._n_coordinates - 1} (the intercept is last)"
                )
            yield found.astype(np.intp, copy=False)
        if n_drawn != count:
            raise ValueError(
                f"sampling.draw(generator, {count}) must give {count} blocks, it gave "
                f"{'more' if n_drawn > count else n_drawn}"
            )

    def curvature(self, spread):
        """The sampling's own bound, or that of its largest block."""
        own = getattr(self._sampling, "curvature", None)
        if own is None:
            return spread(self.block_size)
        advice = "1 is a set that is no steeper than its coordinates"
        return check_real(own(spread), "sampling.curvature", low=1, closed="left", advice=advice)


class SkGDPlan(DrawnPlan):
    """DP-SkGD: a random block at a time, or all coordinates."""

    solve = staticmethod(_skgd.solve)
    has_inference = True
    noiseless_max_iter = 100_000
    log_link_share = 0.6  # as measured

    @classmethod
    def needs_for_inference(cls, request):
        if request.loss.name != "squared":
            return "loss='squared' with solver='skgd': others move the mean of its noisy iterates"
        solver = request.solver
        if not isinstance(solver.sampling, str) or solver.sampling not in ("auto", "full"):
            return 'SkGD(sampling="full")'
        if solver.averaging == "periodic":
            return "SkGD(averaging=...) in {'last', 'tail'}, not 'periodic'"
        return super().needs_for_inference(request)

    @cached_property
    def sampling(self):
        solver, n_coordinates = self.request.solver, self.request.n_coordinates
        word = solver.sampling
        if not isinstance(word, str):
            return CheckedSampling(word, n_coordinates)
        size = solver.block_size or math.ceil(math.sqrt(n_coordinates))
        return SAMPLING_WORDS[word].of(word, n_coordinates, size, self.geometry.smoothness)

    @property
    def _full(self):
        return self.sampling.block_size == self.request.n_coordinates

    @property
    def known_of_questions(self):
        # a user's own sampling may draw fewer coordinates than its block has
        whole = self._full and isinstance(self.request.solver.sampling, str)
        return {"whole": whole, "sparse": self.request.sparse}

    @property
    def curvature(self):
        return self.sampling.curvature(self.geometry.spread)

    @property
    def noise_length(self):
        """How far noise carries the iterates, were the loss nowhere curved.

        The last one has of each step what the momentum has made of it by then. Of a mean all steps
        are counted whole, and of dense features, which may be correlated: less was measured to keep
        margins too long.
        """
        request, problem = self.request, self.problem
        if not (request.private and self._full):
            return 0.0
        size = math.sqrt(request.n_outputs * request.n_features / self.curvature)
        noise = gradient_noise(self, self.units(request.budget.n))
        step = problem.step_size * noise * self.clip / self._largest_gradient * size
        made = np.ones(self.n_updates)
        if problem.averaging == "last" and request.has_sparse_rows:
            made -= problem.momentum ** np.arange(1, self.n_updates + 1)
        return step * float(np.linalg.norm(made))

    @cached_property
    def recipe(self):
        request, is_long = self.request, self._has_long_way
        recipe = descent_recipe(
            request.signal,
            self.geometry.spread(request.n_coordinates),
            self.curvature,
            self._full,
            request.n_classes,
            request.n_coordinates,
            has_sparse_rows=request.has_sparse_rows,
            found_target=request.finds_target and bool(request.target_search.n_choices),
            has_log_link=request.has_log_link,
        )
        if request.inference:
            recipe["residual_clip"] = clip_for_inference(request.signal, False)
        elif self._full and request.has_sparse_rows and (request.n_classes == 2 or is_long):
            return descent_of_rows(recipe, request.signal, request.n_classes, is_on_its_way=is_long)
        elif is_long:
            return long_descent(recipe, request.n_classes)
        elif self._has_long_passes and recipe["max_iter"] >= _MANY_STEPS:
            if request.finds_target and request.scales.features in ("tails", "quartiles"):
                recipe["max_iter"] /= _FEWER
                recipe["step_size"] *= _FEWER
                recipe["momentum"] = 0.8  # remembers an eighth of them
            else:
                recipe |= steps_of_root(recipe, OF_ROOT_OF_NUMBERS)
        return recipe

    @property
    def _has_long_passes(self):
        """Whether records have many cells, and the signal allows fewer steps."""
        request = self.request
        is_long = self._full and request.budget.n * request.n_features >= _MANY_CELLS
        is_clear = request.signal >= request.n_features
        return self._is_known and is_long and is_clear

    @property
    def _is_known(self):
        # fewer and longer steps were measured with these losses
        return self.request.loss.name == "squared" or self.request.n_classes == 2

    @property
    def _has_long_way(self):
        """Whether a descent of one output has more features than it can learn, in long passes."""
        request = self.request
        if not self._full or request.n_classes > 2:
            return False
        fits_rows = request.n_classes or request.has_smooth_penalty  # a Lasso loses by it
        if request.sparse and not (request.has_sparse_rows and fits_rows):
            return False
        # The signals from and to which the last iterate is more than noise and still on its way:
        # of sparse rows, few of whose columns count, and of dense ones. The second is a feature's.
        is_wide = request.n_features > 1000  # more than Newton steps have
        if request.sparse:
            return is_wide and 1.0 <= request.signal < request.n_features
        is_enough = self._is_known and request.n_features > (100 if request.n_classes else 500)
        most = (4 if is_wide else 1) * request.n_features
        return (is_wide or is_enough) and 60.0 <= request.signal < most

    @cached_property
    def settles(self):
        if not (self.request.counts_share and self._full):
            return False
        # an intercept is by the last steps of a long way, whatever the clip
        clip = 0.0 if self._has_long_way else self.recipe["residual_clip"]
        return is_settled(self.request, clip)

    def run(self, receipt, records, key, generator):
        solution = super().run(receipt, records, key, generator)
        if self.settles:
            start = 0.0 if self._start is None else float(self._start[1][0])
            coef = settled(self, receipt, self.place(records), key, start, solution.coef)
            return replace(solution, coef=coef)
        if not self.request.inference:
            return solution
        place, size = self.place(records), self.request.n_coordinates
        walk = DescentWalk(
            clip=self.units(place.n_samples).coordinate_clip * math.sqrt(size),
            n_updates=solution.n_updates,
            size=size,
            filled=self.geometry.spread(size),
        )
        return with_inference(self, receipt, place, replace(solution, walk=walk), key)

    @property
    def noiseless_recipe(self):
        return noiseless_descent_recipe(self._full, self.sampling.block_size)


@dataclass(eq=False, repr=False)
class SkGD(Solver):
    """Sketched gradient descent (DP-SkGD): a random block at a time, or all coordinates.

    Parameters
    ----------
    sampling : str or object of `dpcd_sklearn.samplings`, default="full"
        Which coordinates an update moves: all ("full"); one ("uniform", "importance"); a block of a
        fixed partition, drawn uniformly ("block") or with a probability proportional to its largest
        M_j ("block-importance"); any set of `block_size` coordinates ("nice"); or what an object
        with ``block_size`` and ``draw(generator, count)`` draws, see
        :class:`~dpcd_sklearn.samplings.Sampling`. One that fails in the fit, after a sound trial of
        ten draws, is replaced by its first ``block_size`` coordinates, with a UserWarning.
    block_size : int >= 1, default=None
        Number of coordinates in a set or block, the intercept being the last coordinate; None is
        the square root of their number, rounded up.
    step_size : float in (0, 1e15] or "auto", default="auto"
        γ: coordinate j moves with the step γ / (λ M_j), λ a public bound on how much steeper than
        coordinates the set is that moves. Without momentum steps below 2 are safe.
    momentum : float in [0, 1) or "auto", default="auto"
        Heavy ball in the (1 - momentum)-normalised form. "auto" follows n, p, epsilon and delta
        with full sampling, and is 0 otherwise.
    averaging : {"auto", "last", "tail", "periodic"}, default="auto"
        See :class:`CD`.
    n_inner : int >= 1, default=None
        See :class:`CD`.

    References
    ----------
    Maranjyan, Sadiev & Richtárik (2024). Differentially private random block coordinate descent.

    Examples
    --------
    >>> from dpcd_sklearn import DPLinearRegressor
    >>> from dpcd_sklearn.solvers import SkGD
    >>> DPLinearRegressor(solver=SkGD("block", block_size=3)).solver.block_size
    3
    """

    word = "skgd"
    planned_by = SkGDPlan
    _parameter_constraints = parameters_of(
        **INNER
        | {
            "sampling": [StrOptions(set(SAMPLING_WORDS)), HasMethods(["draw"])],
            "block_size": COUNT_OR_NONE,
            "momentum": MOMENTUM,
        }
    )

    sampling: str | Sampling = "full"
    _: KW_ONLY
    block_size: int | None = None
    step_size: Auto = "auto"
    momentum: Auto = "auto"
    averaging: str = "auto"
    n_inner: int | None = None
