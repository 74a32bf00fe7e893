"""How far released coefficients are kept: the less, the less of them is more than noise.

Margins of a noisy model are too large: its labels may be right where its probabilities are far too
sure. Coefficients times a factor below one, which follows from public and released numbers alone,
cost nothing. What they are drawn to is the model without features: the released shares of classes,
or the released middle of a target.

(a) Of a full descent of classes it is known how far noise alone would carry coefficients. What is
    no longer than that tells of nothing: of a length ρ times as much, 1 - (c / ρ)² is kept, the
    estimate of James and Stein.
(b) The rest follows the public signal s, as measured on a hundred sets that no recipe was tuned on.
    Of numbers, whose clip bounds noise already, that is all.
"""

import math
from dataclasses import replace

import numpy as np

from ._margin_scale import margin_scale
from ._smoothness import wants_mean_row

# Rows of a bounded norm have so many entries that count, if there are as many columns.
ENTRIES = 100
# Share of margins that is kept in any case: their order chooses the label, at no cost in log loss.
_LEAST = 0.05


def is_shrunk(request):
    """Whether a fit is one whose coefficients are drawn to the model without features.

    Inference is of the coefficients themselves, and a warm start goes on from them. The middle of
    stated bounds tells nothing of a target.
    """
    if not request.private or request.inference or request.warm_start:
        return False
    if not (request.n_classes or _knows_middle(request) or lacks_scale(request)):
        return False
    # who states a parameter of a recipe gets the iterate itself
    of_recipe = [request.clip, request.max_iter, request.coef_bounds]
    of_recipe += [getattr(request.solver, name) for name in ("step_size", "momentum", "averaging")]
    return all(isinstance(value, str | None) and value in ("auto", None) for value in of_recipe)


def shrinkage(request, length=math.inf):
    """The factor of coefficients.

    Parameters
    ----------
    request : Request
        Request of a fit that is `is_shrunk`.
    length : float, default=inf
        Length of released coefficients, in lengths that noise alone would give them; infinite is
        that of solvers of which it is not known.
    """
    if lacks_scale(request):
        return 0.0
    signal = signal_of_rows(request)
    if not request.n_classes:
        # At a signal of 10 half of what a regression explains is noise; its variance is 1 / s² of
        # it. With a log link s is that of a target whose upper bound is six of its means.
        signal *= 6 / request.loss.reach if request.has_log_link else 1.0
        return signal**2 / (signal**2 + 10**2)
    # From these signals on all is kept: after Newton steps, whose curvature tells of weak
    # directions, or solvers of which (a) is not known; and after descents.
    least = 100.0 if math.isinf(length) else 50.0
    # c; less where rows have a bounded norm: most noise is in columns that few of them have
    noise = 0.75 if _has_bounded_rows(request) else 1.0
    told = 1 - (noise / max(length, 1e-9)) ** 2
    if request.length_share and not _has_bounded_rows(request):
        # Where dense columns have a signal the loss itself draws back what noise carries away:
        # (a) is left to these derivatives, more and more from a signal of 80 to 150. Below it .3 is
        # kept for them to choose from: the order of margins may be right where (a) keeps nothing.
        told = max(told, min(max(signal / 100 - 0.5, 0.3), 1.0))
    return max(max(told, 0.0) * min(signal / least, 1.0), _LEAST)


def signal_of_rows(request):
    """s, where rows have a bounded norm that of as many columns as count in one of them."""
    size = request.n_coordinates
    if _has_bounded_rows(request):
        size = min(size, ENTRIES)
    return request.budget.n * request.mu / math.sqrt(size)


def _has_bounded_rows(request):
    """Whether they are sparse, or somebody stated a bound on their norm."""
    stated = request.row_norm_bound is not None and request.scales.features is None
    return request.sparse or stated


def _knows_middle(request):
    """Whether the middle of a target's bounds was found, or its mean."""
    if request.has_log_link:
        return request.mean_share > 0
    found = request.finds_target and request.target_search.n_choices
    return bool(found and request.fit_intercept)


def lacks_scale(request):
    """Whether nobody knows the scale of columns, or of those with one scale their centre.

    Columns without a centre act as an intercept: rankings would often be those of their size.
    """
    if wants_mean_row(request) and not request.smoothness_share:
        return True
    return request.looks_for_features and request.scales.features is None


def shrunk(plan, solution, start):
    """A solution nearer to the model without features.

    Parameters
    ----------
    plan : SolverPlan or OutputByOutput
    solution : Solution
    start : (coef, intercept) or None
        Where the fit started: at released shares of classes, or at a released mean; or at zero.
    """
    if not is_shrunk(plan.request):
        return solution
    request, known = plan.request, np.zeros_like(solution.coef)
    knows_start = request.n_classes or request.has_log_link or _knows_middle(request)
    if start is not None and knows_start:
        known[..., -1] = np.reshape(start[1], known.shape[:-1])
        if not request.has_log_link:  # of a target that is scaled
            known[..., -1] -= request.target_center
            known[..., -1] /= request.target_half_width
    elif request.n_classes and request.fit_intercept and lacks_scale(request):
        known[..., -1] = _LEAST * solution.coef[..., -1]  # the first class is not the likeliest
    elif request.fit_intercept and not (request.n_classes or _knows_middle(request)):
        known[..., -1] = solution.coef[..., -1]  # of nothing else the mean is known
    moved = solution.coef - known
    pairs = zip(plan.outputs, moved if len(plan.outputs) > 1 else [moved], strict=True)
    factor = np.mean([shrinkage(one.request, _length(one, part)) for one, part in pairs])
    if plan.request.n_classes:
        factor = min(factor, _borne_out(plan, solution, known))
    return moved_by(float(factor), solution, known)


def moved_by(factor, solution, known):
    """A solution so many times as far from the model that is known."""
    path, noise = solution.path, solution.noise
    bases = known if len(solution.strengths) > 1 else [known]
    strengths = tuple(
        one and one.moved(lambda w, b=b: b + factor * (w - b))
        for one, b in zip(solution.strengths, bases, strict=True)
    )
    return replace(
        solution,
        coef=known + factor * (solution.coef - known),
        path=None if path is None else known + factor * (path - known),
        noise=noise and replace(noise, privacy=factor**2 * noise.privacy),
        strengths=strengths,
    )


def _borne_out(plan, solution, known):
    """Scales of margins that the last gradients bear out, where a curvature tells their spread.

    Of weighted classes they tell of other margins.
    """
    request = plan.request
    free_intercept = request.fit_intercept and not request.penalize_intercept
    if solution.tail is None or request.class_weight is not None or not free_intercept:
        return 1.0
    return margin_scale(
        solution.tail,
        plan.loss,
        known.reshape(-1, request.n_coordinates)[:, -1],
        plan.recipe["residual_clip"],
    )


def size_of_margins(plan, coef):
    """The root mean square of margins, if columns are unrelated: from public and released numbers.

    Parameters
    ----------
    plan : SolverPlan
    coef : ndarray of shape (n_outputs, n_coordinates) or (n_coordinates,), or of the first ones
    """
    smoothness = plan.geometry.smoothness[: coef.shape[-1]]
    return math.sqrt(float(np.sum(coef**2 * smoothness) / plan.request.loss.curvature))


def _length(plan, moved):
    """How far coefficients of features moved, over how far noise alone would have carried them."""
    if not plan.noise_length:
        return math.inf
    request = plan.request
    moved = moved.reshape(-1, request.n_coordinates)[:, : request.n_features]
    return min(size_of_margins(plan, moved) / plan.noise_length, 1e9)
