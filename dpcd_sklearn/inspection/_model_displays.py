"""Pictures of coefficients, of one model or by the strength of its penalty; they cost nothing."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..linear_model._inference import fixed_features
from ..linear_model._prediction import coefficients_of
from ..pipeline._budget_of_step import last_step
from ..pipeline._joint_plan import names_at_the_end
from ..utils._texts import ReadableRepr
from ._displays import axes_of, legend_beside


def _fitted_model(estimator, attribute, advice=""):
    """The fitted linear model of an estimator, the last step of a pipeline."""
    check_is_fitted(estimator)
    estimator = last_step(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(f"{type(estimator).__name__} has no {attribute}{advice}")
    return estimator


def _in_units(model, level, widths, is_used):
    """Coefficients of the used features times widths, and their intervals, or None without any."""
    coef, intervals = (coefficients_of(model) * widths)[:, is_used], None
    if getattr(model, "inference_valid_", False):
        intervals = model.confidence_interval(level)[: model.n_features_in_]
        intervals = (intervals.T * widths).T[is_used]
    return coef, intervals


def _widths_and_words(model, units):
    """The factors of coefficients, and what an axis says of them.

    Raises
    ------
    ValueError
        If `units` is none of its words, or asks for bounds that are not there.
    """
    if units not in ("auto", "bounds", "raw"):
        raise ValueError(f"units must be 'auto', 'bounds' or 'raw', got {units!r}")
    bounds = None if units == "raw" else getattr(model, "feature_bounds_", None)
    if bounds is not None:
        widths = (np.asarray(bounds[1]) - bounds[0]) / 2
        if np.isfinite(widths).all() and widths.any():
            return widths, "change over half of a feature's bounds"
    if units == "bounds":
        raise ValueError('units="bounds" needs a model with finite feature_bounds_; leave "auto"')
    return 1.0, "coefficient"


def names_of(estimator, model, feature_names, n_features):
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is None and hasattr(estimator, "steps"):
        feature_names = names_at_the_end(estimator)
    if feature_names is None:
        return [f"x{j}" for j in range(n_features)]
    if len(feature_names) != n_features:
        raise ValueError(f"feature_names has {len(feature_names)} names for {n_features} features")
    return [str(name) for name in feature_names]


@dataclass(eq=False, repr=False)
class CoefficientDisplay(ReadableRepr):
    """The largest coefficients of a fitted model, by name, with intervals where it has them.

    Coefficients of features in different units can't be compared. Where the model has bounds of the
    features, which are public or were released, a bar is what the prediction changes by when a
    feature goes from the middle of its bounds to one end.

    Coefficients and intervals were released, so the picture costs nothing; it may be published as
    the model may. Beside a model without privacy it may not.

    Parameters
    ----------
    coef : ndarray of shape (n_outputs, n_features)
    feature_names : list of str
    outputs : list of str, default=None
        Names of the outputs, if there are several.
    intervals : ndarray of shape (n_features, 2), default=None
        Intervals of one output.
    beside : ndarray of shape (n_outputs, n_features), default=None
        Coefficients of another model.
    beside_intervals : ndarray of shape (n_features, 2), default=None
    xlabel : str, default="coefficient"
        What the bars are.
    title : str, default=None

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : list of matplotlib BarContainer
        One for each output; none where there are intervals.
    errors_ : list of matplotlib ErrorbarContainer
        Error bars of the model, where it has intervals, and of the one beside it.
    """

    coef: np.ndarray
    feature_names: list
    outputs: list | None = None
    _: KW_ONLY
    intervals: np.ndarray | None = None
    beside: np.ndarray | None = None
    beside_intervals: np.ndarray | None = None
    xlabel: str = "coefficient"
    title: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator,
        *,
        beside=None,
        level=0.95,
        units="auto",
        feature_names=None,
        max_features=20,
        ax=None,
    ):
        """Draw the coefficients of a fitted model, or of the last step of a pipeline.

        Parameters
        ----------
        estimator : fitted linear model or pipeline
            With intervals, if it was fitted with `inference` and that is valid.
        beside : fitted linear model or pipeline, default=None
            One without privacy, scikit-learn's or one with ``epsilon=float("inf")``, for those who
            may look at it: the picture shows its coefficients and is **not private** then.
        level : float in (0, 1), default=0.95
            Level of the intervals. Where the model was fitted with `inference` that is not valid,
            none is drawn, and the title says so.
        units : {"auto", "bounds", "raw"}, default="auto"
            "bounds": coefficients times half the width of `feature_bounds_`, comparable between
            features; "raw": as they are. "auto" is "bounds" where the model has some.
        feature_names : array-like of str of shape (n_features,), default=None
            None takes `feature_names_in_` of the model, names of the columns that the steps before
            it make, or x0, x1, ...
        max_features : int, default=20
            How many are shown at most, the largest ones.
        ax : matplotlib Axes, default=None

        Returns
        -------
        display : CoefficientDisplay

        Raises
        ------
        ValueError
            If a model has no coefficients, or other features than names, or the one beside it has
            other coefficients, or `units` is none of its words or asks for bounds that are not
            there.
        """
        model = _fitted_model(estimator, "coef_")
        shape, is_used = coefficients_of(model).shape, ~fixed_features(model)
        names = np.array(names_of(estimator, model, feature_names, shape[1]), dtype=object)
        widths, xlabel = _widths_and_words(model, units)
        coef, intervals = _in_units(model, level, widths, is_used)
        display = cls(coef, list(names[is_used]), intervals=intervals, xlabel=xlabel)
        if len(coef) > 1:
            display.outputs = [str(c) for c in getattr(model, "classes_", range(len(coef)))]
        if getattr(model, "inference_valid_", True) is False:
            display.title = "no intervals: the inference is not valid"
        if beside is not None:
            other = _fitted_model(beside, "coef_")
            if (other_shape := coefficients_of(other).shape) != shape:
                raise ValueError(
                    f"the model beside has coefficients of shape {other_shape}, not {shape}"
                )
            found = _in_units(other, level, widths, is_used)
            display.beside, display.beside_intervals = found
        return display.plot(max_features=max_features, ax=ax)

    def plot(self, *, max_features=20, ax=None):
        """Draw bars, or points with intervals, the largest coefficient on top.

        Where some coefficients have intervals, those without come last and say so: nothing that was
        released tells them apart from others.

        Parameters
        ----------
        max_features : int, default=20
        ax : matplotlib Axes, default=None
            A new figure if None.

        Returns
        -------
        display : CoefficientDisplay
        """
        coef = np.atleast_2d(self.coef)
        lacks = np.zeros(coef.shape[1], dtype=bool)
        if self.intervals is not None and np.isfinite(self.intervals).any():
            lacks = np.isnan(self.intervals).any(axis=1)
        order = np.lexsort((-np.abs(coef).max(axis=0), lacks))[:max_features][::-1]
        height = 0.8 / len(coef)
        if ax is None:
            rows = max(len(order) * max(1, 0.4 * len(coef)), 4)
            ax = axes_of(None, figsize=(6, 1.2 + 0.25 * min(rows, 60)))
        self.ax_, self.figure_, self.bars_, self.errors_ = ax, ax.figure, [], []
        at = np.arange(len(order), dtype=float)
        offsets = (np.arange(len(coef)) - (len(coef) - 1) / 2) * height
        if self.intervals is not None:  # two intervals are never one over the other
            offsets = np.array([0.0 if self.beside is None else 0.12])
            self._draw(coef[0], self.intervals, order, at + offsets[0], "o", "C0", "private")
        else:
            for k, (row, offset) in enumerate(zip(coef, offsets, strict=True)):
                label = None if self.outputs is None else self.outputs[k]
                bars = ax.barh(at - offset, row[order], height, color=f"C{k % 10}", label=label)
                self.bars_.append(bars)
        if self.beside is not None:
            label = "without privacy"
            for row, offset in zip(np.atleast_2d(self.beside), offsets, strict=True):
                self._draw(row, self.beside_intervals, order, at - offset, "D", "0.35", label)
                label = None  # one entry of the legend for all outputs
        ax.axvline(0, color="0.3", lw=0.8)
        names = [f"{self.feature_names[j]}{' (no interval)' * bool(lacks[j])}" for j in order]
        ax.set_yticks(at, names)
        ax.set(xlabel=self.xlabel, ylim=(-0.6, len(order) - 0.4))
        n_all = coef.shape[1]
        cut = f"the largest {len(order)} of {n_all:,}" if len(order) < n_all else None
        if texts := list(filter(None, (self.title, cut))):
            ax.set_title("; ".join(texts), fontsize="medium")
        if self.outputs is not None or self.beside is not None:
            legend_beside(ax)
        return self

    def _draw(self, values, intervals, order, at, marker, color, label):
        """Points in this order, with intervals if there are some."""
        reach = None if intervals is None else np.abs(intervals.T - values)[:, order]
        points = self.ax_.errorbar(
            values[order], at, xerr=reach, fmt=marker, color=color, ms=5, lw=1.6, capsize=3,
            label=label,
        )  # fmt: skip
        self.errors_.append(points)


# ---- A picture of the strengths of a penalty among which a fit chose. Free of charge -------------


@dataclass(eq=False, repr=False)
class StrengthDisplay(ReadableRepr):
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

    strengths: np.ndarray
    coefs: np.ndarray
    excess_loss: np.ndarray
    excess_loss_std: np.ndarray
    chosen: float
    feature_names: list
    _: KW_ONLY
    xlabel: str = "alpha"
    ylabel: str = "coefficient"

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
        advice = '; state several strengths, or "auto", and records enough for a choice'
        model = _fitted_model(estimator, "strength_path_", advice)
        name, path = model._strength_name, model.strength_path_
        path = path[output] if isinstance(path, list) else path
        best = int(np.argmin(path["excess_loss"]))
        strengths = np.asarray(path[name], dtype=float)
        alike = np.array(path["penalty"]) == path["penalty"][best]
        alike &= path["l1_ratio"] == path["l1_ratio"][best]
        order = np.flatnonzero(alike)[np.argsort(strengths[alike], kind="stable")]
        widths, words = _widths_and_words(model, units)
        coefs = np.asarray(path["coef"])[order] * widths
        names = names_of(estimator, model, feature_names, coefs.shape[-1])
        if coefs.ndim == 3:  # a class at a time
            names = [f"{name}, {label}" for label in model.classes_ for name in names]
            coefs = coefs.reshape(len(coefs), -1)
        xlabel = f"{name}, penalty {path['penalty'][best]}"
        if path["penalty"][best] == "elasticnet":
            xlabel += f", l1_ratio {path['l1_ratio'][best]:g}"
        display = cls(
            strengths[order],
            coefs,
            path["excess_loss"][order],
            path["excess_loss_std"][order],
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
        below.set_ylim(bottom=1.2 * min(float((loss - band).min()), -small / 2))
        for ax in axes:
            chosen = ax.axvline(self.chosen, color="0.3", ls="--", lw=1.0, label="chosen")
        legend_beside(below, handles=[*below.get_legend_handles_labels()[0][:2], chosen])
        return self
