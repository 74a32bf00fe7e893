"""The picture of what privacy costs on records: score against epsilon."""

import math

import numpy as np
from sklearn.base import clone

from ..pipeline._budget_of_step import private_part
from ..utils._public import check_count, check_real
from ..utils._shown import Shown
from ._pyplot import axes_of, legend_beside


class EpsilonDisplay(Shown):
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

    def __init__(self, epsilons, scores, plain_score=None, name="score"):
        self.epsilons = epsilons
        self.scores = scores
        self.plain_score = plain_score
        self.name = name

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
        top = max(high.max(), self.plain_score if self.plain_score is not None else high.max())
        ax.set_ylim(bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom))
        ax.set_xticks(self.epsilons, [f"{epsilon:g}" for epsilon in self.epsilons])
        ax.minorticks_off()
        legend_beside(ax)
        return self
