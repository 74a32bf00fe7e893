"""A picture of the strengths of a penalty among which a fit chose. Free of charge."""

import numpy as np

from ..utils._shown import Shown
from ._model_displays import _fitted_model, _names, _widths_and_words
from ._pyplot import axes_of, legend_beside


class StrengthDisplay(Shown):
    """Coefficients along strengths of a penalty, and what each strength is estimated to lose.

    Both were released with the fit, so the picture costs nothing.

    Parameters
    ----------
    strengths : ndarray of shape (n_strengths,)
    coefs : ndarray of shape (n_strengths, n_coefs)
    excess_loss, excess_loss_std : ndarray of shape (n_strengths,)
        Estimated mean loss, less that of the chosen one, and its standard deviation by noise.
    chosen : float
        The strength that was chosen.
    feature_names : list of str of length n_coefs
    xlabel : str, default="alpha"
    ylabel : str, default="coefficient"

    Attributes
    ----------
    axes_ : ndarray of 2 matplotlib Axes
        Of coefficients and of losses.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One for each coefficient, in their order.
    """

    def __init__(
        self,
        strengths,
        coefs,
        excess_loss,
        excess_loss_std,
        chosen,
        feature_names,
        *,
        xlabel="alpha",
        ylabel="coefficient",
    ):
        self.strengths = strengths
        self.coefs = coefs
        self.excess_loss = excess_loss
        self.excess_loss_std = excess_loss_std
        self.chosen = chosen
        self.feature_names = feature_names
        self.xlabel = xlabel
        self.ylabel = ylabel

    @classmethod
    def from_estimator(
        cls, estimator, *, output=0, units="auto", feature_names=None, max_labels=8, axes=None
    ):
        """Draw the strengths of the penalty that was chosen.

        Parameters
        ----------
        estimator : fitted linear model or pipeline, or fitted search over strengths
            Of several strengths: a list of them, or "auto".
        output : int, default=0
            Which target, of a model of several.
        units : {"auto", "bounds", "raw"}, default="auto"
            As in `CoefficientDisplay`.
        feature_names : array-like of str of shape (n_features,), default=None
        max_labels : int, default=8
            How many coefficients have a colour and a name, those that are largest where it chose.
        axes : sequence of 2 matplotlib Axes, default=None

        Returns
        -------
        display : StrengthDisplay

        Raises
        ------
        ValueError
            If the model chose among no strengths, or has other features than names, or `units` is
            none of its words or asks for bounds that are not there.
        """
        estimator = getattr(estimator, "best_estimator_", estimator)
        model = _fitted_model(estimator, "strength_path_")
        name, path = model._strength_name, model.strength_path_
        path = path[output] if isinstance(path, list) else path
        best = int(np.argmin(path["excess_loss"]))
        strengths = np.asarray(path[name], dtype=float)
        alike = np.array(path["penalty"]) == path["penalty"][best]
        alike &= path["l1_ratio"] == path["l1_ratio"][best]
        shown = np.flatnonzero(alike)[np.argsort(strengths[alike], kind="stable")]
        coefs = np.asarray(path["coef"])[shown]
        widths, words = _widths_and_words(model, units)
        coefs = coefs if widths is None else coefs * widths
        names = _names(estimator, model, feature_names, coefs.shape[-1])
        if coefs.ndim == 3:  # a class at a time
            names = [f"{name}, {label}" for label in model.classes_ for name in names]
            coefs = coefs.reshape(len(coefs), -1)
        xlabel = f"{name}, penalty {path['penalty'][best]}"
        if path["penalty"][best] == "elasticnet":
            xlabel += f", l1_ratio {path['l1_ratio'][best]:g}"
        display = cls(
            strengths[shown],
            coefs,
            path["excess_loss"][shown],
            path["excess_loss_std"][shown],
            float(strengths[best]),
            names,
            xlabel=xlabel,
            ylabel=words,
        )
        return display.plot(max_labels=max_labels, axes=axes)

    def plot(self, *, max_labels=8, axes=None):
        """Draw coefficients above, and losses with two standard deviations below.

        Parameters
        ----------
        max_labels : int, default=8
        axes : sequence of 2 matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        display : StrengthDisplay
        """
        if axes is None:
            axes = axes_of(None, nrows=2, sharex=True, figsize=(6.4, 6.4))
        self.axes_, self.figure_ = axes, axes[0].figure
        above, below = axes
        at_best = self.coefs[int(np.argmin(np.abs(self.strengths - self.chosen)))]
        largest = np.argsort(-np.abs(at_best), kind="stable")[:max_labels]
        self.lines_ = above.plot(self.strengths, self.coefs, color="0.75", lw=0.8)
        for k, j in enumerate(largest):
            self.lines_[j].set(color=f"C{k % 10}", lw=1.6, label=self.feature_names[j], zorder=3)
        above.axhline(0, color="0.3", lw=0.8)
        above.set(ylabel=self.ylabel)
        legend_beside(above, handles=[self.lines_[j] for j in largest])
        loss, band = np.asarray(self.excess_loss), 2 * np.asarray(self.excess_loss_std)
        below.plot(self.strengths, loss, "o-", color="C0", ms=3, lw=1.6, label="estimate")
        ends, look = (loss - band, loss + band), {"color": "C0", "alpha": 0.2, "lw": 0}
        below.fill_between(self.strengths, *ends, **look, label="noise, 2 sd")
        below.set(xlabel=self.xlabel, ylabel="mean loss beside the chosen one's", xscale="log")
        small = max(float(np.median(band)), 1e-4 * np.ptp(loss), 1e-12)
        below.set_yscale("symlog", linthresh=small)
        below.set_ylim(bottom=-3 * small)
        for ax in axes:
            chosen = ax.axvline(self.chosen, color="0.3", ls="--", lw=1.0, label="chosen")
        legend_beside(below, handles=[*below.get_legend_handles_labels()[0][:2], chosen])
        return self
