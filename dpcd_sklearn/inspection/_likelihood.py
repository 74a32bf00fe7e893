"""Log likelihood ratios of a transcript: the test that tells two data sets apart best.

An audit owns both data sets, so at every released iterate it knows what each of them would have
summed to, and which noise was claimed. Given all releases before it, a noisy sum v of coordinates S
has, in the geometry of M^(-1/2), the log likelihood ratio

    <v - (m + m') / 2, m - m'> / σ²,   m, m' the means of clipped gradients at this iterate,

a choice that of two softmaxes of the scores, and a sample's mean that of two mixtures. Their sum is
the log likelihood ratio of the whole transcript, whatever the steps depend on: of full gradients of
a record that reaches every clip it is N(±μ²/2, μ²).

Nothing that an audit proves rests on these formulas: a wrong one makes a weak test, not a false
alarm (see ``_audit``).
"""

import functools
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse

from ..privacy.accounting._events import GaussianEvent, PoissonSampledEvent, SelectionEvent
from ._recorder_of_curvature import RecordingCurvatureOracle
from ._recorders import RecordingIterateOracle, RecordingOracle


@dataclass(frozen=True, eq=False)
class Rows:
    """Records as an oracle reads them, and which secret each of them tells.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_coordinates)
        Within their bounds, centred, the intercept's constant last.
    target, weights : ndarrays of shape (n_rows,)
    side : ndarray of shape (n_rows,), of 1, -1 or 0
        In the first data set, in the second one, or in both.
    owner : ndarray of shape (n_rows,) of int
        The secret bit that decides which of its rows are there.
    """

    features: np.ndarray
    target: np.ndarray
    weights: np.ndarray
    side: np.ndarray
    owner: np.ndarray

    @property
    def n_secrets(self):
        """Number of secret bits."""
        return int(self.owner.max()) + 1

    @property
    def share(self):
        """How much a row counts in the mean of both data sets."""
        return np.where(self.side == 0, 1.0, 0.5)

    def per_secret(self, values):
        """Sums over each secret's rows, those of the second side negative."""
        return np.bincount(self.owner, values * self.side, minlength=self.n_secrets)


def rows_of(plan, records, side, owner=None):
    """Rows of one set of records; `side` is one number or one for each."""
    X, target, weights = records
    X = np.asarray(X.toarray() if issparse(X) else X, dtype=float)
    if plan.geometry.lo is not None:
        X = np.clip(X, plan.geometry.lo, plan.geometry.hi)
    X = X - plan.geometry.center
    if len(plan.geometry.smoothness) > X.shape[1]:
        X = np.column_stack([X, np.ones(len(X))])
    n = len(X)
    return Rows(
        X,
        np.asarray(target, dtype=float),
        np.ones(n) if weights is None else np.asarray(weights, dtype=float),
        np.broadcast_to(side, n),
        np.zeros(n, dtype=int) if owner is None else owner,
    )


def pair_rows(plan, one, other):
    """Rows of two data sets with one secret: which of them it was."""
    first, second = rows_of(plan, one, 1), rows_of(plan, other, -1)
    n, m = len(first.target), len(second.target)
    # the second set without the record that add_remove took away: its place in the first
    gap = next((i for i in range(m) if not _same(first, i, second, i)), m) if m == n - 1 else n
    matches = [(i, i - (i > gap)) for i in range(n) if i != gap] if abs(n - m) < 2 else []
    matches = [(i, k) for i, k in matches if k < m and _same(first, i, second, k)]
    common, shared = ([i for i, _ in matches], [k for _, k in matches])
    side = np.concatenate([np.ones(n), np.full(m, -1.0)])
    side[common] = 0.0
    kept = np.setdiff1d(np.arange(n + m), n + np.array(shared, dtype=int))
    return Rows(
        np.vstack([first.features, second.features])[kept],
        np.concatenate([first.target, second.target])[kept],
        np.concatenate([first.weights, second.weights])[kept],
        side[kept],
        np.zeros(len(kept), dtype=int),
    )


def _same(one, i, other, k):
    return (
        one.target[i] == other.target[k]
        and one.weights[i] == other.weights[k]
        and (one.features[i] == other.features[k]).all()
    )


def log_ratios(plan, recorder, rows):
    """Log likelihood ratio of a transcript for each secret, first side over second."""
    with np.errstate(all="ignore"):
        if isinstance(recorder, RecordingOracle):
            found = _of_sums(plan, recorder, rows) + _of_choices(plan, recorder, rows)
        elif isinstance(recorder, RecordingIterateOracle):
            found = _of_means(plan, recorder, rows)
        elif isinstance(recorder, RecordingCurvatureOracle):
            found = _of_rows(plan, recorder, rows)
            rows = _seen_from(rows, recorder.shift)
            found += _of_curvature(plan, recorder, rows) + _of_geometry(plan, recorder, rows)
        else:
            found = np.zeros(rows.n_secrets)
    return np.nan_to_num(found, nan=0.0, posinf=1e300, neginf=-1e300)


# ---- what one record adds ------------------------------------------------------------------------


def _derivatives(plan, rows, iterates):
    """Derivatives of losses in margins, times weights: (n_releases, n_rows, n_outputs)."""
    margins = np.swapaxes(iterates @ rows.features.T, 1, 2)
    shape = margins.shape
    flat = margins.reshape(-1) if shape[2] == 1 else margins.reshape(-1, shape[2])
    found = plan.loss.gradient(flat, np.tile(rows.target, shape[0]))
    return found.reshape(shape) * rows.weights[:, None]


def _clipped(r, square_norms, clip):
    """Derivatives of the clipped vectors; clip is a number or one for each release.

    `square_norms` of features are (n_rows,), (n_releases, n_rows), or a last axis of outputs more.
    """
    if np.ndim(square_norms) < 3:
        square_norms = np.asarray(square_norms)[..., None]
    norms = np.sqrt((r**2 * square_norms).sum(axis=2))
    return r * np.minimum(1.0, np.reshape(clip, (-1, 1)) / np.maximum(norms, 1e-300))[:, :, None]


def _gaussian(rows, r, features, weight_of, values, n):
    """Log ratios of noisy means; `weight_of` is 1 / variance of each released number."""
    middle = np.swapaxes(r * rows.share[:, None], 1, 2) @ features / n
    pull = (values - middle) * weight_of
    along = np.swapaxes(pull @ np.swapaxes(features, -1, -2), 1, 2)
    return rows.per_secret((r * along).sum(axis=(0, 2)) / n)


def _release(plan, kind):
    """The claimed release of a kind, and how many records of full clip its noise counts."""
    found = [release for release in plan.part.releases if isinstance(release, kind)]
    return (found[0] if found else None), {"replace_one": 2.0, "add_remove": 1.0}[
        plan.part.neighboring
    ]


# ---- coordinates ---------------------------------------------------------------------------------


def _of_sums(plan, recorder, rows):
    iterates, in_block, values = recorder.sums()
    release, neighbors = _release(plan, GaussianEvent)
    if not len(iterates) or release is None:
        return np.zeros(rows.n_secrets)
    smoothness, n = plan.geometry.smoothness, plan.request.budget.n
    iterates, in_block, values = (
        found.reshape(len(iterates), -1, len(smoothness)) for found in (iterates, in_block, values)
    )
    clip = _coordinate_clip(plan) * (in_block.sum(axis=(1, 2)) / plan.request.n_outputs) ** 0.5
    square_norms = np.swapaxes(in_block @ (rows.features**2 / smoothness).T, 1, 2)
    r = _clipped(_derivatives(plan, rows, iterates), square_norms, clip)
    variance = (release.noise_multiplier * neighbors * clip / n) ** 2
    weight_of = in_block / (variance[:, None, None] * smoothness)
    return _gaussian(rows, r, rows.features, weight_of, values, n)


def _coordinate_clip(plan):
    """C_kj = this sqrt(M_kj)."""
    return plan.finite_clip / plan.geometry.smoothness.sum() ** 0.5


def _of_choices(plan, recorder, rows):
    """The log ratio of choices, of one secret only: others would change the scores too."""
    problem, iterates, chosen, directions = recorder.choices()
    release, neighbors = _release(plan, SelectionEvent)
    if not len(iterates) or release is None or rows.n_secrets > 1:
        return np.zeros(rows.n_secrets)
    smoothness, n = plan.geometry.smoothness, plan.request.budget.n
    iterates = iterates.reshape(len(iterates), -1, len(smoothness))
    clip = _coordinate_clip(plan)
    # each coordinate is clipped by itself
    each = _derivatives(plan, rows, iterates)[..., None] * rows.features[:, None, :]
    each = np.clip(np.nan_to_num(each), -clip * smoothness**0.5, clip * smoothness**0.5)
    scale = 2 * neighbors * clip / n / release.eta
    total = 0.0
    for sign in (1, -1):
        gradients = each[:, rows.side != -sign].sum(axis=1) / n
        for w, gradient, coordinates, moves in zip(
            iterates, gradients, chosen, directions, strict=True
        ):
            scores = _scores(problem, w, gradient, smoothness) / scale
            total += sign * _log_probability(scores, coordinates, moves)
    return np.array([total])


def choice_tables(plan, asked, rows):
    """For each choice of one data set a function: the log probability of what was chosen.

    Parameters
    ----------
    plan : SolverPlan
    asked : list of (problem, iterate)
        Between what was chosen, and where.
    rows : Rows
        Rows of this data set alone.
    """
    release, neighbors = _release(plan, SelectionEvent)
    smoothness, n = plan.geometry.smoothness, plan.request.budget.n
    clip = _coordinate_clip(plan)
    scale, tables = 2 * neighbors * clip / n / release.eta, []
    for problem, iterate in asked:
        w = iterate.reshape(-1, len(smoothness))
        each = _derivatives(plan, rows, w[None])[0][..., None] * rows.features[:, None, :]
        each = np.clip(np.nan_to_num(each), -clip * smoothness**0.5, clip * smoothness**0.5)
        scores = _scores(problem, w, each.sum(axis=0) / n, smoothness) / scale
        tables.append(functools.partial(_log_probability, scores))
    return tables


def _scores(problem, w, gradient, smoothness):
    """The promise of every move: (n_outputs * n_coordinates, 2), downwards and upwards."""
    penalty, n_penalized, rule = problem
    return np.array(
        [
            [
                penalty.greedy_score(rule, w[k, j], gradient[k, j], smoothness[j], sign)
                if j < n_penalized
                else -sign * gradient[k, j] / smoothness[j] ** 0.5
                for sign in (-1, 1)
            ]
            for k, j in np.ndindex(w.shape)
        ]
    )


def _log_probability(scores, coordinates, directions):
    """The log probability of choices one after the other by Gumbel noise, no coordinate twice."""
    scores, total = scores.copy(), 0.0
    for j, direction in zip(coordinates, directions, strict=True):
        total += scores[j, int(direction > 0)] - np.logaddexp.reduce(scores, axis=None)
        scores[j] = -np.inf
    return total


# ---- means at iterates ---------------------------------------------------------------------------


def _of_means(plan, recorder, rows):
    clips = plan._clips
    full, neighbors = _release(plan, GaussianEvent)
    sampled, _ = _release(plan, PoissonSampledEvent)
    total = np.zeros(rows.n_secrets)
    for release, rate in ((full, 1.0), (sampled, getattr(sampled, "sampling_rate", 1.0))):
        iterates, anchors, directions, values = recorder.means(release is sampled)
        if release is None or not len(iterates):
            continue
        n = plan.request.budget.n * rate
        clip = clips["clip"] if anchors is None else clips["anchor_clip"]
        r = _derivatives(plan, rows, iterates)
        if anchors is not None:
            r = r - _derivatives(plan, rows, anchors)
        features, metric = rows.features, plan.geometry.smoothness
        if directions is not None:
            features, metric = features @ np.swapaxes(directions, 1, 2), np.ones(1)
        r = _clipped(r, (features**2 / metric).sum(axis=-1), clip)
        weight_of = 1 / ((release.noise_multiplier * neighbors * clip / n) ** 2 * metric)
        if rate < 1:
            total += _mixtures(rows, r, features, weight_of, values, n, rate)
        else:
            total += _gaussian(rows, r, features, weight_of, values, n)
    return total


def _mixtures(rows, r, features, weight_of, values, n, rate):
    """Log ratios of noisy means of Poisson samples, along the line between both contributions.

    All other records are taken as a Gaussian of their mean and variance.
    """
    found = np.zeros(rows.n_secrets)
    root = np.sqrt(weight_of)
    middle = np.swapaxes(r * rows.share[:, None], 1, 2) @ features / n * rate
    for secret in range(rows.n_secrets):
        mine = (rows.owner == secret) & (rows.side != 0)
        part = features[..., mine, :]
        of = [
            np.swapaxes(r[:, mine] * (rows.side[mine] == s)[:, None], 1, 2) @ part / n * root
            for s in (1, -1)
        ]
        line = of[0] - of[1]
        line = line / np.maximum(np.sqrt((line**2).sum(axis=(1, 2))), 1e-300)[:, None, None]
        others = middle * root - rate * (of[0] + of[1]) / 2
        seen = ((values * root - others) * line).sum(axis=(1, 2))
        along = np.swapaxes((line * root) @ np.swapaxes(features, -1, -2), 1, 2)
        spread = ((r * along).sum(axis=2) / n) ** 2 * (rows.side == 0) * rate * (1 - rate)
        variance = 1 + spread.sum(axis=1)
        one, other = (
            np.logaddexp(
                np.log1p(-rate) - seen**2 / (2 * variance),
                np.log(rate) - (seen - (g * line).sum(axis=(1, 2))) ** 2 / (2 * variance),
            )
            for g in of
        )
        found[secret] = (one - other).sum()
    return found


# ---- a curvature, and gradients in its geometry --------------------------------------------------


def _of_rows(plan, recorder, rows):
    """The log ratio of the mean of clipped rows, and of their squared norms."""
    if recorder.mean_square is None:
        return np.zeros(rows.n_secrets)
    _, neighbors = _release(plan, GaussianEvent)
    norm, n = plan.widest, plan.request.budget.n
    z = plan.part.releases[2].noise_multiplier
    unit = _clipped_rows(plan, rows, norm)
    square = (unit**2).sum(axis=1)
    # the grid of squares is made for a matrix, whose sensitivity is larger
    noise = z * norm**2 * (2.0 if neighbors == 2 else 1.0) ** 0.5 / n
    pull = (recorder.mean_square - rows.share @ square / n) / noise**2
    found = rows.per_secret(pull * square) / n
    if recorder.mean_row is not None:
        noise = z * neighbors * norm / n
        pull = (recorder.mean_row - rows.share @ unit / n) / noise**2
        found += rows.per_secret(unit @ pull) / n
    return found


def _seen_from(rows, shift):
    """The rows around another centre."""
    if np.ndim(shift) == 0:
        return rows
    features = rows.features.copy()
    features[:, : len(shift)] -= shift
    return replace(rows, features=features)


def _clipped_rows(plan, rows, norm):
    """In the units of sqrt(M_j), the constant as it is where the norm leaves room for it."""
    unit = rows.features * (plan.request.loss.curvature / plan.geometry.smoothness) ** 0.5
    one = plan.request.fit_intercept
    features = unit[:, : unit.shape[1] - one]
    features *= _shrunk(np.linalg.norm(features, axis=1), (norm**2 - one) ** 0.5)[:, None]
    unit *= rows.weights[:, None] ** 0.5
    unit *= _shrunk(np.linalg.norm(unit, axis=1), norm)[:, None]
    return unit


def _of_curvature(plan, recorder, rows):
    """The log ratio of products of clipped rows, whose cells all have the same noise."""
    _, neighbors = _release(plan, GaussianEvent)
    norm, n = recorder.row_norm, plan.request.budget.n
    noise = plan.part.releases[1].noise_multiplier * (2.0 if neighbors == 2 else 1.0) ** 0.5
    unit = _clipped_rows(plan, rows, norm)
    middle = (unit * rows.share[:, None]).T @ unit / n
    pull = (recorder.curvature - middle) / (noise * norm**2 / n) ** 2
    return rows.per_secret(((unit @ pull) * unit).sum(axis=1) / n)


def _shrunk(norms, most):
    return np.minimum(1.0, most / np.maximum(norms, 1e-300))


def _of_geometry(plan, recorder, rows):
    """The log ratio of gradients in the geometry, where their noise is isotropic."""
    iterates, clips, values = recorder.gradients()
    release, neighbors = _release(plan, GaussianEvent)
    n = plan.request.budget.n
    features = rows.features / plan.geometry.smoothness**0.5 @ recorder.root.T
    size = len(plan.geometry.smoothness)
    iterates, values = (found.reshape(len(clips), -1, size) for found in (iterates, values))
    r = _derivatives(plan, rows, iterates)
    r = _clipped(r, (features**2).sum(axis=1), clips)
    weight_of = 1 / (release.noise_multiplier * neighbors * clips / n) ** 2
    return _gaussian(rows, r, features, weight_of[:, None, None], values, n)
