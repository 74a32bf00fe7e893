"""Pictures of audits, budgets and scores by epsilon; the one place that asks for matplotlib."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from ..pipeline._budget_of_step import private_part
from ..privacy.ledger._ledger_report import LedgerReport
from ..utils._public import check_count, check_real
from ..utils._texts import ReadableRepr
from ._audit import AuditResult, audit
from ._release_tests import REQUIRED_POWER, power_text


def axes_of(ax, **options):
    """The given axes, or those of a new figure.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'dpcd_sklearn[plot]'") from error
    return plt.subplots(layout="constrained", **options)[1] if ax is None else ax


def legend_beside(ax, **options):
    """A legend at the right of the axes, where it covers no curve."""
    options = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0.0} | options
    return ax.legend(fontsize="small", frameon=False, **options)


# ---- The picture of an audit: what it would have noticed of each kind of release -----------------


@dataclass(eq=False, repr=False)
class AuditDisplay(ReadableRepr):
    """Powers of an audit.

    Each bar is the power against half the noise for one kind of release; a line marks the target.

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

    result: AuditResult

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
        beside = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": "small"}
        for k, row in enumerate(rows):
            noticed = "" if row.noticed_noise is None else f"\nnoticed {row.noticed_noise:.2f}"
            ax.text(1.02, k, f"{row.verdict}: {power_text(row.power)}{noticed}", **beside)
        ax.axvline(REQUIRED_POWER, color="k", ls=":")
        ax.set_yticks(at, [f"{row.kind}\n{row.claim}" for row in rows])
        ax.invert_yaxis()
        ax.set(xlim=(0, 1), xlabel=f"power against half the noise; {REQUIRED_POWER} is required")
        ax.set_title(self._title(), fontsize="medium")
        return self

    def _title(self):
        result = self.result
        bound = rf"$\epsilon\geq${result.epsilon_lower:.2g} of {result.epsilon:.3g}"
        if result.mu is not None:
            bound = rf"$\mu\geq${result.mu_lower:.2g} of {result.mu:.3g}"
        return f"{result.verdict}: {bound} (power {power_text(result.power)})"


# ---- The picture of a ledger: what was spent when, and what is left ------------------------------


@dataclass(eq=False, repr=False)
class BudgetDisplay(ReadableRepr):
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

    report: LedgerReport
    budget: tuple

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
        (self.line_,) = ax.step(at, spent, where="post", color="0.6", lw=1, zorder=1)
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


# ---- The picture of what privacy costs on records: score against epsilon -------------------------


@dataclass(eq=False, repr=False)
class EpsilonDisplay(ReadableRepr):
    """Scores of private fits by their epsilon, beside a fit without noise.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
    scores : ndarray of shape (n_epsilons, n_repeats)
    plain_score : float, default=None
        Score of a fit without noise.
    name : str, default="score"
        What the vertical axis shows.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Artist
        The medians.
    """

    epsilons: np.ndarray
    scores: np.ndarray
    plain_score: float | None = None
    name: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        X_test,
        y_test,
        *,
        epsilons=(0.1, 0.3, 1.0, 3.0, 10.0),
        n_repeats=5,
        ax=None,
    ):
        """Fit the estimator at each epsilon, score it, and draw the scores.

        **This is not private**, unless the records are public or made up: scores have no noise, and
        one fit has none either. So an accountant is refused; `plan` needs no records.

        Parameters
        ----------
        estimator : private estimator, PrivatePipeline, or Pipeline with one private step
            It is neither fitted nor changed.
        X, y : array-like
            What is fitted: public or made-up records.
        X_test, y_test : array-like
            What the scores are computed on.
        epsilons : array-like of float, default=(0.1, 0.3, 1.0, 3.0, 10.0)
        n_repeats : int, default=5
            Fits at each epsilon.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : EpsilonDisplay

        Raises
        ------
        TypeError, ValueError
            If a parameter is invalid, or the estimator has an accountant, whose records are not
            public.
        """
        epsilons = np.array([check_real(e, "epsilons", low=0.0) for e in epsilons])
        check_count(n_repeats, "n_repeats")
        part = private_part(estimator)
        if part.accountant is not None:
            raise ValueError(
                "scores against epsilon tell of the records and are in no ledger, so an estimator "
                "with an accountant is not drawn; use plan, or public records without one"
            )

        def score(epsilon):
            model = clone(estimator)
            private_part(model).set_params(epsilon=float(epsilon))
            return model.fit(X, y).score(X_test, y_test)

        scores = np.array([[score(epsilon) for _ in range(n_repeats)] for epsilon in epsilons])
        name = "accuracy" if hasattr(estimator, "predict_proba") else "R²"
        return cls(epsilons, scores, score(math.inf), name).plot(ax=ax)

    def plot(self, ax=None):
        """Draw the scores, their medians and their range.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        display : EpsilonDisplay
        """
        self.ax_ = ax = axes_of(ax)
        self.figure_ = ax.figure
        scores = np.asarray(self.scores)
        if self.plain_score is not None:
            ax.axhline(self.plain_score, color="0.4", ls="--", label="without noise")
        low, high = scores.min(axis=1), scores.max(axis=1)
        ax.fill_between(self.epsilons, low, high, color="C0", alpha=0.15, lw=0)
        label = f"private: median and range of {scores.shape[1]}"
        (self.line_,) = ax.plot(
            self.epsilons, np.median(scores, axis=1), "o-", color="C0", label=label
        )
        ax.set(xscale="log", xlabel=r"$\epsilon$", ylabel=self.name)
        bottom = max(low.min(), -1.0)  # a fit that failed must not squeeze the others
        top = max(high.max(), -np.inf if self.plain_score is None else self.plain_score)
        ax.set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))
        ax.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        ax.minorticks_off()
        legend_beside(ax)
        return self
