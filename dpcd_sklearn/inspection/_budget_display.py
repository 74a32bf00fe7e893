"""The picture of a ledger: what was spent when, and what is left."""

import numpy as np

from ..utils._shown import Shown
from ._pyplot import axes_of, legend_beside


class BudgetDisplay(Shown):
    """Privacy spent over time, by estimator, beside the budget.

    Parameters
    ----------
    report : LedgerReport
        As `PrivacyAccountant.report` returns it.
    budget : PrivacySpent or tuple (epsilon, delta)
        The ledger's.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Artist
        The steps of what was spent.
    """

    def __init__(self, report, budget):
        self.report = report
        self.budget = budget

    @classmethod
    def from_accountant(cls, accountant, *, by="entry", ax=None):
        """Draw the ledger of an accountant.

        Parameters
        ----------
        accountant : PrivacyAccountant
        by : {"entry", "time"}, default="entry"
            What the horizontal axis shows.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : BudgetDisplay

        Raises
        ------
        LedgerError
            If the ledger can't be read or was changed.
        """
        return cls(accountant.report(), (accountant.epsilon, accountant.delta)).plot(by=by, ax=ax)

    def plot(self, *, by="entry", ax=None):
        """Draw the steps.

        Parameters
        ----------
        by : {"entry", "time"}, default="entry"
        ax : matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        display : BudgetDisplay

        Raises
        ------
        ValueError
            If `by` is neither.
        """
        if by not in ("entry", "time"):
            raise ValueError(f"by must be 'entry' or 'time', got {by!r}")
        self.ax_ = ax = axes_of(ax)
        self.figure_ = ax.figure
        entries, (epsilon, delta) = self.report.entries, self.budget
        spent = np.minimum(self.report.epsilons, epsilon)  # a release without noise is infinite
        at = [e.time for e in entries] if by == "time" else np.arange(1, len(entries) + 1)
        start = ([], []) if by == "time" else ([0], [0.0])
        (self.line_,) = ax.step(
            [*start[0], *at], [*start[1], *spent], where="post", color="0.6", lw=1, zorder=1
        )
        for k, name in enumerate(dict.fromkeys(entry.estimator for entry in entries)):
            chosen = [i for i, entry in enumerate(entries) if entry.estimator == name]
            ax.scatter(
                [at[i] for i in chosen], spent[chosen], s=22, color=f"C{k}", zorder=2,
                label=f"{name or 'unnamed'} ({len(chosen)})",
            )  # fmt: skip
        ax.axhline(epsilon, color="C3", ls="--", label=rf"budget $\epsilon$={epsilon:g}")
        ax.set(
            xlabel="charge" if by == "entry" else "time (UTC)",
            ylabel=rf"$\epsilon$ spent at $\delta$={delta:g}",
            ylim=(0, 1.08 * epsilon),
        )
        if by == "time" and entries:
            from matplotlib.dates import ConciseDateFormatter

            locator = ax.xaxis.get_major_locator()
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        elif by == "entry":
            ax.xaxis.get_major_locator().set_params(integer=True)
        legend_beside(ax)
        return self
