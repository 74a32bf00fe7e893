"""The picture of an audit: which errors a test makes, and which the claim demands."""

import numpy as np
from scipy.special import ndtr, ndtri

from ._audit import audit
from ._pyplot import axes_of


class AuditDisplay:
    """Trade-off of the two error rates of an audit, beside the claimed curve.

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

    def _title(self):
        result = self.result
        power = "unknown" if result.power is None else f"{result.power:.2g}"
        shown = rf"$\epsilon\geq${result.epsilon_lower:.2g} of {result.epsilon:.3g}"
        if result.mu is not None:
            shown = rf"$\mu\geq${result.mu_lower:.2g} of {result.mu:.3g}"
        return f"{result.verdict}: {shown} (power {power})"
