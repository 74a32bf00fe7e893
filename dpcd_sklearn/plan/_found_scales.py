"""Scales that a fit released, in the words of the estimators' parameters."""

from dataclasses import dataclass, replace

import numpy as np

from ..utils._public import check_bounds
from ._records_outside import NOTHING_CUT, Cut

# M of a feature whose records have a released median norm R: R²/p, the mean square of a column. For
# sparse rows and classifiers it is at least (0.1 R)², as if a row had a hundred entries that count.
# With R² an intercept, whose M is 1, would be as loud as a whole row.
ROW_SHARE = 0.1


def stated_bounds(request):
    """The pair (lo, hi) of arrays that a request states of features."""
    return check_bounds(request.feature_bounds, request.n_features, columns=request.columns)


@dataclass(frozen=True, eq=False)
class FoundScales:
    """Facts that were released, in the words of the estimators' parameters; None is not found.

    Means are in the units of mean squares, and those of `mean_row` in bounds on rows.
    Bounds of several targets are arrays of shape (n_outputs,).
    """

    feature_bounds: tuple | None = None
    row_norm_bound: float | None = None
    target_bounds: tuple | None = None
    medians: np.ndarray | None = None  # of targets whose bounds need not have them in the middle
    mean_squares: np.ndarray | None = None
    means: np.ndarray | None = None
    mean_row: np.ndarray | None = None
    cut: Cut = NOTHING_CUT

    def start(self, plan):
        """Where a fit starts that nothing else tells: at the medians of targets, or None.

        A clip cuts long rows most, so from far off their slopes take a good part of the intercept.
        """
        if self.medians is None or not plan.outputs[0].starts_at_medians:
            return None
        return np.zeros((len(self.medians), plan.request.n_features)), self.medians

    def half_width(self, request):
        """Half-width of the target."""
        if self.target_bounds is None:
            return request.target_half_width
        lo, hi = self.target_bounds
        return (hi - lo) / 2

    def widened(self, share):
        """No feature is narrower than this share of the widest."""
        if self.feature_bounds is None:
            return self
        lo, hi = self.feature_bounds
        center, half_width = lo / 2 + hi / 2, hi / 2 - lo / 2
        half_width = np.maximum(half_width, share * half_width.max())
        return replace(self, feature_bounds=(center - half_width, center + half_width))

    def of_target(self, k):
        """The scales that were found for one target of several."""
        if np.ndim(self.target_bounds) < 2:
            return self
        lo, hi = self.target_bounds
        return replace(self, target_bounds=(float(lo[k]), float(hi[k])))

    def stated_in(self, request, loss):
        """The request with these facts."""
        facts = {"loss": loss}
        if self.feature_bounds is not None:
            facts |= self._bounds_within(request)
        if self.row_norm_bound is not None:
            norm = min(self.row_norm_bound, request.row_norm_bound or np.inf)
            facts["row_norm_bound"] = norm
            least = ROW_SHARE if request.sparse or request.n_classes else 0.0
            share = max(least, request.n_features**-0.5)
            facts["feature_scale"] = share * norm
            if self.mean_row is not None:
                facts["means"] = self.mean_row / share
        if self.mean_squares is not None:
            facts |= {"mean_squares": self.mean_squares, "means": self.means}
        if self.target_bounds is not None and request.has_log_link:
            facts["loss"] = loss.of(loss, (loss.low, self.half_width(request)))
        elif self.target_bounds is not None:
            facts["target_center"] = sum(self.target_bounds) / 2
            facts["target_half_width"] = self.half_width(request)
        return replace(request, **facts)

    def _bounds_within(self, request):
        """Facts that say where features lie: within stated bounds, around centres that were found.

        What two bounds have in common has another middle than what was found, so the centre stands
        beside them, as a mean in their half-widths; and so does its distance from the farther one.
        """
        if request.feature_bounds is None:
            return {"feature_bounds": self.feature_bounds}
        stated_lo, stated_hi = stated_bounds(request)
        found_lo, found_hi = self.feature_bounds
        center = np.clip(found_lo / 2 + found_hi / 2, stated_lo, stated_hi)
        reach = np.minimum(
            found_hi / 2 - found_lo / 2, np.maximum(stated_hi - center, center - stated_lo)
        )
        lo, hi = np.maximum(stated_lo, center - reach), np.minimum(stated_hi, center + reach)
        half_width = hi / 2 - lo / 2
        has_width = half_width > 0
        half_width = np.where(has_width, half_width, 1.0)
        means = np.where(has_width, (center - (lo / 2 + hi / 2)) / half_width, 0.0)
        squares = np.where(has_width, (reach / half_width) ** 2, 1.0)
        return {"feature_bounds": (lo, hi), "mean_squares": squares, "means": means}
