"""The picture of an audit: what it would have noticed of each kind of release."""

import numpy as np

from ..utils._shown import Shown
from ._audit import audit
from ._bounds import REQUIRED_POWER, shown
from ._pyplot import axes_of


class AuditDisplay(Shown):
    """Powers of an audit.

    Of each kind of release a bar is the power against half the noise, beside what is required.

    Parameters
    ----------
    result : AuditResult

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib BarContainer
        The bars.
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **options):
        """Run `audit` and draw what it found.

        Parameters
        ----------
        estimator, X, y, **options
            As in `audit`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : AuditDisplay
        """
        return cls(audit(estimator, X, y, **options)).plot(ax=ax)

    def plot(self, ax=None):
        """Draw the bars.

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
