"""The strength of a penalty, chosen from what Newton steps have released: at no further charge.

A walk releases a curvature P, and noisy gradients at its iterates. Their means over the tail give a
quadratic model of the clipped loss,

    wᵀ Q w / 2 - cᵀ w,    Q from P,    c = Q (mean iterate) - (mean gradient).

Its minimiser under each penalty, of some of the columns too, and the choice among them, are
functions of released and public numbers (``privacy/proofs/choices.md``). The walk itself has no
penalty and all columns: neither its steps nor its noise depend on the candidates.

The criterion is that of Mallows (1973): the noise of c has the covariance v Q, v known, so a
minimiser with df degrees of freedom follows it by v df. It is inflated by 1 + r², r the noise of
the curvature over its eigenvalues, since the model is not the loss where the curvature is noisy;
the variance of sampling is added, that of residuals taken to be half of their clip.
"""

import math
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter

import numpy as np
from scipy.linalg import solve_triangular

from ..loops._problem import shares_of_bound
from ..loops._quadratic import minimise
from ..penalties import PENALTIES

# Below this signal, or below one of p, the curvature is too noisy for a choice: gaps to the best
# candidate of .1 in R² were seen there, and .011 at worst above it.
LEAST_SIGNAL = 75.0
_LEAST = 1e-300  # of what logarithms and quotients are taken
# Strengths of a grid that follows released numbers, from the one that removes all coefficients.
_N_L1, _LEAST_L1 = 30, 1e-3
_N_L2, _RANGE_L2 = 15, (1e-5, 1e2)


@dataclass(frozen=True)
class Strength:
    """A candidate.

    Parameters
    ----------
    penalty : str or None
    strength : float or None
        Beside a mean loss; None is a grid that follows what was released.
    l1_ratio : float
        Share of l1, whatever the penalty's word is.
    columns : tuple of int, or None
        Features that it has; None is all of them.
    design : int
        Which of several lists of columns that is.
    """

    penalty: str | None
    strength: float | None
    l1_ratio: float
    columns: tuple | None = None
    design: int = 0


@dataclass(frozen=True, eq=False)
class StrengthPath:
    """Minimisers along strengths, and what each is estimated to lose.

    Attributes
    ----------
    strengths : tuple of Strength
    coefs : ndarray of shape (n_strengths, n_coordinates) or (n_strengths, n_outputs, n_coordinates)
    excess : ndarray of shape (n_strengths,)
        Estimated mean loss of each, less that of the chosen one.
    excess_std : ndarray of shape (n_strengths,)
        Standard deviation of `excess` by privacy noise.
    best : int
    """

    strengths: tuple
    coefs: np.ndarray
    excess: np.ndarray
    excess_std: np.ndarray
    best: int

    def moved(self, change):
        """The same path of coefficients that were changed alike."""
        return replace(self, coefs=change(self.coefs))


def need_of_choice(stated, solver, loss):
    """The parameter without which no choice among strengths is made, in words; None if all fit."""
    if solver.word not in ("auto", "newton"):
        return f"solver='auto' or 'newton', not {solver.word!r}"
    if not loss.has_known_errors:
        return "loss='squared' or 'huber'"
    if stated.inference:
        return "inference=False: errors of coefficients after a choice are not known"
    if stated.constraint is not None:
        return "constraint=None"
    if stated.coef_path or stated.max_iter != "auto":
        return "coef_path=False and max_iter='auto'"
    return None


def refuse(request):
    """Raise a ValueError where strengths can't be chosen."""
    if needs := need_of_choice(request, request.solver, request.loss):
        raise ValueError(
            f"several strengths of a penalty are chosen among by what Newton steps release, which "
            f"needs {needs}; or state one strength"
        )


def chooses_columns(request):
    """Whether candidates have some of the columns each."""
    return any(one.columns is not None for one in request.strengths)


def is_loud(request):
    """Whether a choice is worth it, by public numbers alone."""
    # the noise of a union of columns is borne by all candidates: at 1.4 of p .1 in R² was lost
    # beside the smallest design (abalone), from 1.5 on .03 at most
    least = 1.5 if chooses_columns(request) else 1.0
    return request.signal >= max(LEAST_SIGNAL, least * request.n_features)


def nearest(request):
    """The one candidate that is fitted where there is no choice: nearest to the usual strength."""
    usual = math.log(max(request.strength, _LEAST))

    def distance(one):
        return 0.0 if one.strength is None else abs(math.log(max(one.strength, _LEAST)) - usual)

    found = min(request.strengths, key=distance)
    return found if found.strength is not None else replace(found, strength=request.strength)


def chosen(plan, solution, noise):
    """The solution under the penalty that is estimated to lose least.

    Parameters
    ----------
    plan : NewtonPlan
    solution : Solution
        Of a walk without a penalty, with its tail.
    noise : float
        Standard deviation of a preconditioned gradient's noise.

    Returns
    -------
    Solution
        Its covariance by noise is not known any more. Where released numbers leave no model (none
        of them finite), it is that of the walk.
    """
    with np.errstate(all="ignore"):
        try:
            return _chosen(plan, solution, noise)
        except np.linalg.LinAlgError:
            return solution


def _chosen(plan, solution, noise):
    request, problem = plan.request, plan.attended
    model = _Model.of(request, problem, solution)
    n_averaged = problem.n_updates - min(problem.tail_start, problem.n_updates - 1)
    of_privacy = noise**2 / n_averaged / model.share
    inverse = np.mean(1 / np.maximum(np.linalg.eigvalsh(model.curvature), _LEAST))
    of_privacy *= 1 + min(plan.curvature_noise * inverse, 1e9) ** 2
    of_sampling = (plan.extra["unit_clips"][1] / 2) ** 2 / request.budget.n
    strengths, coefs, freedom = model.of_all(request)
    risk = model.value(coefs) + (of_privacy + of_sampling) * freedom
    best = int(np.argmin(np.where(np.isfinite(risk), risk, np.inf)))
    spread = np.sqrt(of_privacy * 2 * model.quadratic_part(coefs - coefs[best]))
    shape = solution.coef.shape
    coefs = coefs.reshape(-1, *shape)
    path = StrengthPath(strengths, coefs, risk - risk[best], spread, best)
    return replace(solution, coef=coefs[best], strengths=(path,), noise=None)


@dataclass(frozen=True, eq=False)
class _Model:
    """wᵀ Q w / 2 - cᵀ w, summed over outputs.

    Attributes
    ----------
    curvature : ndarray of shape (n_coordinates, n_coordinates)
        P, in the units of sqrt(M_j).
    share : float
        The curvature of the loss over that.
    quadratic : ndarray of shape (n_coordinates, n_coordinates)
        Q, the same in all outputs.
    linear : ndarray of shape (n_outputs, n_coordinates)
        c.
    n_penalized : int
    """

    curvature: np.ndarray
    share: float
    quadratic: np.ndarray
    linear: np.ndarray
    n_penalized: int

    @classmethod
    def of(cls, request, problem, solution):
        roots, tail = np.sqrt(problem.smoothness), solution.tail
        factor = solve_triangular(solution.walk.root, np.eye(len(roots)), lower=True)
        curvature, share = factor @ factor.T, 1.0
        if request.n_classes:  # it is a bound, which margins tell to be too large
            has_constant = request.n_penalized < len(roots)
            share = float(shares_of_bound(curvature, tail.point, has_constant)[0].max())
        quadratic = np.ascontiguousarray(share * roots[:, None] * curvature * roots)
        linear = roots * (share * tail.point @ curvature - tail.gradient)
        return cls(curvature, share, quadratic, linear, request.n_penalized)

    def of_all(self, request):
        """All candidates, minimisers, and degrees of freedom, in the order of the request."""
        found = []
        for _, listed in groupby(request.strengths, key=attrgetter("design")):
            candidates = list(listed)
            kept, model = self._of_columns(candidates[0].columns, request.n_features)
            strengths = model.with_grids(candidates, request)
            minima, freedom = model.path(strengths, request)
            coefs = np.zeros((len(strengths), *self.linear.shape))
            coefs[:, :, kept] = minima
            found.append((strengths, coefs, freedom))
        strengths, coefs, freedom = zip(*found, strict=True)
        return sum(strengths, ()), np.concatenate(coefs), np.concatenate(freedom)

    def _of_columns(self, columns, n_features):
        """The coordinates of some columns and of the intercept, and the model of these alone."""
        size = len(self.quadratic)
        if columns is None:
            return np.arange(size), self
        kept = np.array([*columns, *range(n_features, size)])
        quadratic = np.ascontiguousarray(self.quadratic[np.ix_(kept, kept)])
        n_penalized = int((kept < self.n_penalized).sum())
        return kept, replace(
            self, quadratic=quadratic, linear=self.linear[:, kept], n_penalized=n_penalized
        )

    def with_grids(self, candidates, request):
        """The candidates, those without a strength replaced by a grid of them."""
        found = []
        for one in candidates:
            grid = [one.strength] if one.strength is not None else self._grid(one, request)
            found += [replace(one, strength=float(strength)) for strength in grid]
        return tuple(found)

    def _grid(self, candidate, request):
        n = self.n_penalized
        if candidate.l1_ratio == 0:
            mean = max(np.trace(self.quadratic[:n, :n]) / max(n, 1), _LEAST)
            return mean * np.geomspace(*_RANGE_L2, _N_L2)
        slope = self.linear
        if n < len(self.quadratic):  # after the intercept alone
            free = self.quadratic[n:, n:]
            slope = slope - np.linalg.solve(free, slope[:, n:].T).T @ self.quadratic[n:]
        strongest = max(float(np.abs(slope[:, :n]).max(initial=0.0)), _LEAST)
        strongest *= request.target_half_width / candidate.l1_ratio
        return strongest * np.geomspace(_LEAST_L1, 1.0, _N_L1)

    def path(self, strengths, request):
        """Minimisers of shape (n_strengths, n_outputs, n_coordinates), and degrees of freedom."""
        coefs = np.zeros((len(strengths), *self.linear.shape))
        freedom = np.zeros(len(strengths))
        order = sorted(range(len(strengths)), key=lambda i: -strengths[i].strength)
        start = np.zeros(self.linear.shape)
        for i in order:  # from the strongest: each starts near to where it ends
            one = strengths[i]
            parameters = _Parameters(one.l1_ratio, request.positive, request.signs)
            word = one.penalty or "l2"
            penalty = PENALTIES[word].of(word, one.strength, parameters, request.target_half_width)
            pairs = zip(self.linear, start, strict=True)
            start = np.array([self._minimum(b, penalty, w) for b, w in pairs])
            coefs[i] = start
            freedom[i] = sum(self._freedom(w, penalty) for w in start)
        return coefs, freedom

    def _minimum(self, linear, penalty, start):
        if penalty.is_smooth:
            return np.linalg.solve(self._with_ridge(penalty, slice(None)), linear)
        return minimise(self.quadratic, linear, penalty, self.n_penalized, start)

    def _with_ridge(self, penalty, kept):
        ridge = np.where(np.arange(len(self.quadratic)) < self.n_penalized, penalty.l2, 0.0)
        return self.quadratic[kept][:, kept] + np.diag(ridge[kept])

    def _freedom(self, coef, penalty):
        """Degrees of freedom: of coefficients that are not zero (Zou, Hastie & Tibshirani 2007)."""
        kept = np.ones(len(coef), dtype=bool)
        if not penalty.is_smooth:
            kept[: self.n_penalized] = coef[: self.n_penalized] != 0
        shrunk = np.linalg.solve(self._with_ridge(penalty, kept), self.quadratic[kept][:, kept])
        return np.trace(shrunk)

    def quadratic_part(self, coefs):
        """wᵀ Q w / 2 of each of several models."""
        return 0.5 * np.einsum("koi,ij,koj->k", coefs, self.quadratic, coefs, optimize=True)

    def value(self, coefs):
        """The model's value at each of several models."""
        return self.quadratic_part(coefs) - np.einsum("koi,oi->k", coefs, self.linear)


@dataclass(frozen=True)
class _Parameters:
    """The parameters of an estimator that a penalty reads."""

    l1_ratio: float
    positive: bool
    signs: tuple | None
