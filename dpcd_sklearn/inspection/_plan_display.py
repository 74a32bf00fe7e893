"""The picture of a plan: what privacy costs, by the number of records."""

import numpy as np

from ..utils._shown import Shown
from ._plan_fit import plan
from ._pyplot import axes_of, legend_beside


class PlanDisplay(Shown):
    """Score of private and of plain fits to made-up records, by their number.

    Parameters
    ----------
    plan : FitPlan

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Artist
        The medians of private fits.
    """

    def __init__(self, plan):
        self.plan = plan

    @classmethod
    def from_estimator(cls, estimator, n_samples, n_features, *, ax=None, **options):
        """Run `plan` and draw what it found.

        Parameters
        ----------
        estimator, n_samples, n_features, **options
            As in `plan`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : PlanDisplay
        """
        return cls(plan(estimator, n_samples, n_features, **options)).plot(ax=ax)

    def plot(self, ax=None):
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        display : PlanDisplay
        """
        self.ax_ = ax = axes_of(ax)
        self.figure_ = ax.figure
        found = self.plan
        sizes, scores = found.sizes, found.scores
        ax.plot(sizes, found.plain_scores, "o--", color="0.4", ms=4, label="without noise")
        ax.fill_between(sizes, scores.min(axis=1), scores.max(axis=1), color="C0", alpha=0.15, lw=0)
        label = rf"private, $\epsilon$={found.epsilon:.3g}: median of {scores.shape[1]}"
        (self.line_,) = ax.plot(sizes, np.median(scores, axis=1), "o-", color="C0", label=label)
        ax.axvline(found.n_samples, color="C1", lw=1, ls=":", label=f"n = {found.n_samples:,}")
        low = max(min(scores.min(), found.plain_scores.min()), -0.1)
        ax.set(
            xscale="log",
            xlabel="records",
            ylabel="score on new made-up records",
            ylim=(low - 0.03, None),
            title=f"{found.name}, {found.n_features:,} features",
        )
        ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
        ax.minorticks_off()
        legend_beside(ax)
        return self
