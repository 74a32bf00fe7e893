"""The picture of an audit: which errors a test makes, and which the claim demands."""

import numpy as np
from scipy.special import ndtr, ndtri

from ._audit import audit
from ._bounds import REQUIRED_POWER, shown
from ._pyplot import axes_of


class AuditDisplay:
    """Powers of an audit by release, or the error rates of one of whole fits.

    Of each kind of release a bar is the power against half the noise, beside what is required.

    Every test of a private mechanism makes errors on or above the claimed curve. The errors of the
    chosen test lie below the dotted line; a line that does not meet the claimed region contradicts
    the claim.

    Parameters
    ----------
    result : AuditResult

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Artist
        The audit's curve.
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_estimator(cls, estimator, data=None, neighbor=None, *, ax=None, **options):
        """Run `audit` and draw what it found.

        Parameters
        ----------
        estimator, data, neighbor, **options
            As in `audit`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : AuditDisplay
        """
        return cls(audit(estimator, data, neighbor, **options)).plot(ax=ax)

    def plot(self, ax=None):
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        display : AuditDisplay
        """
        self.ax_ = ax = axes_of(ax)
        self.figure_ = ax.figure
        if self.result.releases:
            return self._plot_powers(ax)
        result, rate = self.result, np.linspace(1e-6, 1 - 1e-6, 1001)
        claimed = np.maximum.reduce(
            [
                np.zeros_like(rate),
                1 - result.delta - np.exp(result.epsilon) * rate,
                np.exp(-result.epsilon) * (1 - result.delta - rate),
            ]
        )
        ax.fill_between(rate, claimed, color="C0", alpha=0.12, lw=0)
        label = rf"claim: $\epsilon$={result.epsilon:.3g}, $\delta$={result.delta:.1g}"
        ax.plot(rate, claimed, color="C0", label=label)
        if result.mu is not None:
            gaussian = ndtr(-ndtri(rate) - result.mu)
            ax.plot(rate, gaussian, "C0--", label=rf"claim: {result.mu:.3g}-GDP")
        one, other = result.statistics
        cuts = np.sort(np.concatenate([one, other]))
        false = 1 - np.searchsorted(np.sort(other), cuts, side="right") / len(other)
        missed = np.searchsorted(np.sort(one), cuts, side="right") / len(one)
        (self.line_,) = ax.plot(false, missed, "C1", label="audit: all thresholds")
        # of the chosen test, and the line that its sum of errors is below
        at = np.mean(other > result.threshold), np.mean(one <= result.threshold)
        ax.plot(*at, "oC1", label=f"audit: chosen test, {result.error:.3g} wrong")
        bound = 2 * result.error_upper
        label = f"bound of confidence {result.confidence:.0%}"
        ax.plot([0, bound], [bound, 0], "C1:", label=label)
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xlabel="false alarm rate",
            ylabel="miss rate",
            title=self._title(),
        )
        ax.legend(loc="upper right", fontsize="small")
        return self

    def _plot_powers(self, ax):
        rows = self.result.releases
        powers = [0.0 if row.power is None else row.power for row in rows]
        colors = {"passed": "C0", "inconclusive": "C7", "contradiction": "C3"}
        at = np.arange(len(rows))
        self.line_ = ax.barh(at, powers, color=[colors[row.verdict] for row in rows])
        for k, row in enumerate(rows):
            noticed = "" if row.noticed_noise is None else f", noticed {row.noticed_noise:.2f}"
            ax.text(0.02, k, f"{row.verdict}: {shown(row.power)}{noticed}", va="center")
        ax.axvline(REQUIRED_POWER, color="k", ls=":", label=f"required, {REQUIRED_POWER}")
        ax.set_yticks(at, [f"{row.kind}\n{row.claim}" for row in rows])
        ax.invert_yaxis()
        ax.set(xlim=(0, 1), xlabel="power against half the noise", title=self._title())
        ax.legend(loc="lower right", fontsize="small")
        return self

    def _title(self):
        result = self.result
        bound = rf"$\epsilon\geq${result.epsilon_lower:.2g} of {result.epsilon:.3g}"
        if result.mu is not None:
            bound = rf"$\mu\geq${result.mu_lower:.2g} of {result.mu:.3g}"
        return f"{result.verdict}: {bound} (power {shown(result.power)})"
