"""Standard errors, intervals, tests and summaries of coefficients, from released covariances."""

import math
from dataclasses import replace
from html import escape

import numpy as np
from scipy import stats
from scipy.sparse.csgraph import connected_components
from sklearn.utils.validation import check_is_fitted

from ..plan._records_outside import are_few
from ..utils._public import check_real
from ..utils._texts import counted, html_table, text_table
from ..utils._typing import ArrayLike

# ---- The table that `summary` returns, as text, HTML and LaTeX -----------------------------------

_OF_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_OF_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
_OF_LATEX |= {"[": "{[}", "*": "{*}"}  # after a line's end they would be its options
_OF_LATEX = str.maketrans(_OF_LATEX | {sign: f"\\{sign}" for sign in "&%$#_{}"})


def fixed_features(model):
    """Which features of a fitted model have bounds of one point, so that they tell nothing."""
    bounds = getattr(model, "feature_bounds_", None)
    return np.zeros(model.n_features_in_, bool) if bounds is None else bounds[0] == bounds[1]


class CoefSummary:
    """A row a coefficient: estimate, standard error, test, interval, and the noise's share.

    Its ``str`` is the table as text; notebooks show it as HTML. `as_html` and `as_latex` are for
    what is written about it.

    Parameters
    ----------
    heads : list of str
    rows : list of (name, list of str)
        A cell for each head.
    notes : list of str
        Sentences under the table.
    """

    def __init__(self, heads, rows, notes):
        self.heads, self.rows, self.notes = heads, rows, notes

    def __str__(self):
        lines = text_table([["", *self.heads], *([name, *row] for name, row in self.rows)], {0})
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__

    def as_html(self) -> str:
        """The table as an element of HTML, with its notes below.

        Returns
        -------
        str
        """
        rows = [["", *self.heads], *([name, *row] for name, row in self.rows)]
        return f"{html_table(rows)}<p>{'<br>'.join(map(escape, self.notes))}</p>"

    _repr_html_ = as_html

    def as_latex(self) -> str:
        """The table as a ``tabular`` of LaTeX, which needs no package, with its notes below.

        Returns
        -------
        str
        """
        rows = [["", *map(_latex, self.heads)]]
        rows += [[_latex(name), *map(_latex_of_cell, row)] for name, row in self.rows]
        head, *body = [" & ".join(cells) + r" \\" for cells in rows]
        begin = rf"\begin{{tabular}}{{l{'r' * len(self.heads)}}}"
        table = [begin, r"\hline", head, r"\hline", *body, r"\hline", r"\end{tabular}"]
        return "\n".join([*table, "", *map(_latex, self.notes)])


def _latex(text):
    return text.translate(_OF_LATEX)


def _latex_of_cell(cell):
    return f"${cell}$" if cell.startswith("-") else _latex(cell)


_FEW = (
    "public numbers (n, the number of features, epsilon) rule them out, so the fit is that of "
    "inference=False; its warning says which n or epsilon would do."
)
_TOO_NOISY = (
    "the noisy moments are not safely positive, or the steps did not converge. A larger epsilon, "
    "more records or less wide bounds make them likelier."
)
_CONSTANT = "too few records differ from the others in it."
_REDUNDANT = (
    "the released curvature does not tell them apart. A constant column is so beside an intercept, "
    "a twin beside its twin, an indicator beside all others (DPOneHotEncoder(drop='first'))."
)
_OUTSIDE = (
    "records outside of the bounds that were found may be too many (outside_share_); state wider "
    "feature_bounds and, of a regression, target_bounds."
)
_NOISE_UNKNOWN = (
    "privacy_std_ is not known of this fit: how far noise carries coefficients depends on the "
    "curvature of the loss on your records, which it did not release. It is known with "
    "inference=True, or without it of one target, loss='squared' and penalty=None or 'l2' after "
    "steps of solver='newton'; fit again with these"
)


_METHODS = {"fdr_bh": "bh", "fdr_by": "by"}


def _redundant(safe, unsafe, doubt):
    """Groups of coefficients that directions without released curvature make up.

    Parameters
    ----------
    safe, unsafe : ndarrays of shape (n_coefs, n_directions)
    doubt : float
        As of `Inference`, in the units of X.

    Returns
    -------
    list of ndarrays of int
        Of one coefficient what does not vary, and of several what cannot be told apart.
    """
    lengths = [np.sqrt(np.sum(directions**2, axis=1)) for directions in (safe, unsafe)]
    found = np.flatnonzero(lengths[1] > doubt * lengths[0])
    if not len(found):
        return []
    basis = np.linalg.svd(unsafe[found], full_matrices=False)[0]
    basis = basis / np.sqrt(np.sum(basis**2, axis=1))[:, None]
    # by the cosine between the directions of two coefficients
    n_groups, group = connected_components(np.abs(basis @ basis.T) > 0.3)
    return [found[group == k] for k in range(n_groups)]


class InferenceMixin:
    """For a linear model of one output that was fitted with ``inference=True``.

    Intervals cover the minimiser of what was fitted: of the clipped gradients and the penalty, for
    the population. Where many records are at the clip it is another than that of the plain loss.
    """

    @property
    def privacy_std_(self) -> np.ndarray:
        check_is_fitted(self, "coef_")
        if self._privacy_std is None:
            raise AttributeError(_NOISE_UNKNOWN)
        return self._privacy_std

    def _set_inference(self, plan, solution):
        """Covariances in the units of X and y, the intercept last; without any, none is left."""
        found, noise, request = solution.inference, solution.noise, plan.request
        of_inference = ("coef_cov_", "coef_std_", "inference_valid_", "outside_share_")
        for name in (*of_inference, "_why_invalid", "_redundant"):
            vars(self).pop(name, None)
        outside = vars(self).pop("_outside", None)
        self._privacy_std, self._n_records = None, request.budget.n
        if not request.private and request.n_outputs == 1 and found is None:
            self._privacy_std = np.zeros(request.n_coordinates)
            noise = None  # a matrix of p² zeros would be multiplied
        if request.lacks_intervals:
            self.coef_cov_ = np.full((request.n_coordinates,) * 2, np.nan)
            self.coef_std_ = np.full(request.n_coordinates, np.nan)
            self._privacy_std = self.coef_std_.copy()
            self.inference_valid_, self._why_invalid, self._redundant = False, _FEW, []
        known = noise if found is None else found
        if known is None:
            return
        why = _TOO_NOISY
        if outside is not None:
            self.outside_share_ = outside[0]
            if found.valid and not are_few(*outside, request.budget.n):
                why = _OUTSIDE
                nothing = np.full_like(found.sampling, np.nan)
                known = found = replace(found, sampling=nothing, privacy=nothing, valid=False)
        change = np.eye(request.n_coordinates)
        if request.fit_intercept:
            change[-1, :-1] = -np.asarray(plan.geometry.center)
        change[:, : request.n_features] *= ~plan.geometry.is_fixed
        change *= request.target_half_width
        known = known.moved(change)
        self._privacy_std = np.sqrt(np.diag(known.privacy))
        redundant = _redundant(known.safe, known.unsafe, known.doubt) if known.valid else []
        for group in redundant:
            self._privacy_std[group] = np.nan
        if found is None:
            return
        self.coef_cov_, self._redundant = known.sampling + known.privacy, redundant
        for group in redundant:
            self.coef_cov_[group] = self.coef_cov_[:, group] = np.nan
        self.coef_std_ = np.sqrt(np.diag(self.coef_cov_))
        self.inference_valid_ = found.valid
        if not found.valid:
            self._why_invalid = why

    def _estimates(self):
        check_is_fitted(self, "coef_")
        if not hasattr(self, "coef_cov_"):
            raise ValueError("fit with inference=True: without it no covariance was released")
        coef = np.ravel(self.coef_).astype(np.float64)
        return np.append(coef, self.intercept_) if self.fit_intercept else coef

    def confidence_interval(self, level: float = 0.95) -> np.ndarray:
        """Confidence intervals of the coefficients and, last, of the intercept if there is one.

        Parameters
        ----------
        level : float in (0, 1), default=0.95

        Returns
        -------
        ndarray of shape (n_coefs, 2)
            NaN if the inference is not valid, and of coefficients that it can't tell apart, which
            `summary` names: of a constant column beside an intercept, of twins, of all indicators
            of a feature.

        Raises
        ------
        TypeError, ValueError
            If the level is not in (0, 1), or the fit was made without `inference`.
        """
        level = check_real(level, "level", low=0.0, high=1.0)
        estimates = self._estimates()
        reach = stats.norm.isf((1 - level) / 2) * self.coef_std_
        return np.column_stack([estimates - reach, estimates + reach])

    def p_values(self, method: str | None = None) -> np.ndarray:
        """P-values of the tests that each coefficient is zero, the intercept's last.

        It is made of what was released, so it costs nothing.

        Parameters
        ----------
        method : {"fdr_bh", "fdr_by"}, default=None
            Adjust those of the features for their number, by the false discovery rate of Benjamini
            and Hochberg, or of Benjamini and Yekutieli, which holds whatever the coefficients have
            to do with each other: names of statsmodels' ``multipletests``. Features without an
            interval are not counted. The intercept's stays as it is. None adjusts nothing.

        Returns
        -------
        ndarray of shape (n_coefs,)
            NaN where there is no interval.

        Raises
        ------
        ValueError
            If there is no such method, or the fit was made without `inference`.
        """
        if method not in (None, *_METHODS):
            raise ValueError(f"method must be one of {(None, *_METHODS)}, got {method!r}")
        estimates = self._estimates()
        with np.errstate(invalid="ignore"):
            found = 2 * stats.norm.sf(np.abs(estimates / self.coef_std_))
        counted = np.flatnonzero(np.isfinite(found[: self.n_features_in_]))
        if method is not None and len(counted):
            found[counted] = stats.false_discovery_control(found[counted], method=_METHODS[method])
        return found

    def wald_test(self, R: ArrayLike, r: ArrayLike | None = None) -> tuple[float, float]:
        """Wald test of R coef = r, the intercept last.

        Parameters
        ----------
        R : array-like of shape (n_restrictions, n_coefs) or (n_coefs,), or list of str
            Matrix of full row rank; or names of coefficients: those of the features, "x0", ...
            where these have none, and "intercept". They are tested together.
        r : array-like of shape (n_restrictions,), default=None
            None is zero.

        Returns
        -------
        statistic : float
            Chi-squared with n_restrictions degrees of freedom, if they hold.
        p_value : float

        Raises
        ------
        ValueError
            If shapes do not fit, R has no full rank, there is no such name, or the fit was made
            without `inference`.
        """
        estimates, R = self._estimates(), self._restrictions(R)
        r = np.zeros(len(R)) if r is None else np.ravel(np.asarray(r, dtype=np.float64))
        if R.shape[1] != len(estimates) or r.shape != (len(R),):
            raise ValueError(
                f"R must have {len(estimates)} columns and r an entry for each of its rows, got "
                f"shapes {R.shape} and {r.shape}"
            )
        if np.linalg.matrix_rank(R) < len(R):
            raise ValueError("the rows of R must be linearly independent")
        used = R.any(axis=0)
        covariance = R[:, used] @ self.coef_cov_[np.ix_(used, used)] @ R[:, used].T
        if not np.isfinite(covariance).all():
            return np.nan, np.nan
        gap = R @ estimates - r
        statistic = float(gap @ np.linalg.solve(covariance, gap))
        return statistic, float(stats.chi2.sf(statistic, len(R)))

    def bic_difference(self, R: ArrayLike) -> tuple[float, float]:
        """By how much the BIC of the model without some coefficients is above that of the model.

        Negative: leave them out. It is the Wald statistic W of R coef = 0 less log(n) for each of
        the q restrictions, to first order the difference of two BICs, and counts the noise of
        privacy as it counts sampling. There is no BIC of the model alone: no sum of squared
        residuals is released, and the released moments of clipped gradients would move
        n log(RSS / n) by tens.

        Parameters
        ----------
        R : as of `wald_test`
            Coefficients, or combinations of them, that the other model sets to zero.

        Returns
        -------
        difference, std : float
            And its standard deviation over records and noise, sqrt(2 q + 4 max(W - q, 0)). NaN
            where the coefficients have no intervals.

        Raises
        ------
        ValueError
            As of `wald_test`.
        """
        (statistic, _), size = self.wald_test(R), len(self._restrictions(R))
        std = math.sqrt(2 * size + 4 * max(statistic - size, 0.0))
        return statistic - size * math.log(self._n_records), std

    def _restrictions(self, R):
        """R as a matrix, of names too."""
        R, names = np.atleast_1d(np.asarray(R)), self._coef_names()
        if R.dtype.kind in "OU" and R.ndim == 1:
            if unknown := [name for name in R.tolist() if name not in names]:
                raise ValueError(f"there is no coefficient {unknown[0]!r}; there are {names}")
            R = np.eye(len(names))[[names.index(name) for name in R.tolist()]]
        return np.atleast_2d(R.astype(np.float64))

    def _functional(self):
        if np.isinf(self.clip_):
            return ["loss with its penalty."]
        return [
            f"loss with its penalty and gradients that are clipped (clip_ = {self.clip_:.3g});",
            "if errors are skewed, a clip that bites moves the intercept.",
            *self._clips_of_records(),
        ]

    def _clips_of_records(self):
        """The bounds that records were cut to, one sentence for stated and one for found ones."""
        names = [name for name in ("feature_bounds", "target_bounds") if hasattr(self, name)]
        stated = [name for name in names if getattr(self, name) is not None]
        if stated:
            yield f"Records are clipped to the {' and '.join(stated)} that were stated."
        if hasattr(self, "outside_share_"):
            share = max(self.outside_share_, 0.0)
            yield f"Bounds were found: {share:.2%} of the records lie outside, by a noisy count."

    def summary(self, level: float = 0.95, method: str | None = None) -> CoefSummary:
        """A table of coefficients, standard errors, intervals, and how much of an error is privacy.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
        method : {"fdr_bh", "fdr_by"}, default=None
            By which p-values are adjusted for their number, see `p_values`.

        Returns
        -------
        object
            Text if printed, and a table in notebooks.

        Raises
        ------
        TypeError, ValueError
            If the level is not in (0, 1), there is no such method, or the fit was made without
            `inference`.
        """
        intervals, std, names = self.confidence_interval(level), self.coef_std_, self._coef_names()
        shown = np.ones(len(names), dtype=bool)
        shown[: self.n_features_in_] = ~fixed_features(self)
        arrays = self._estimates(), std, intervals, self.privacy_std_, self.p_values(method)
        estimates, std, intervals, privacy, p_values = (array[shown] for array in arrays)
        z = estimates / std
        columns = {
            "coef": (estimates, ".4g"),
            "std err": (std, ".4g"),
            "z": (z, ".2f"),
            "P>|z|": (p_values, ".3f"),
            f"[{(1 - level) / 2:.3g}": (intervals[:, 0], ".4g"),
            f"{(1 + level) / 2:.3g}]": (intervals[:, 1], ".4g"),
            "privacy": ((privacy / std) ** 2, ".0%"),
        }
        cells = [
            ["nan" if np.isnan(value) else f"{value:{form}}" for value in column]
            for column, form in columns.values()
        ]
        notes = [
            "privacy: the noise's share of the variance. Intervals are of the minimiser of the",
            *self._functional(),
        ]
        if method is not None:
            notes.insert(0, f"P>|z| of features is adjusted for their number (method={method!r}).")
        if not self.inference_valid_:
            notes = ["No standard errors: " + self._why_invalid, *self._clips_of_records()]
        for group in self._redundant:
            why = _REDUNDANT if len(group) > 1 else _CONSTANT
            notes.append(f"No interval of {', '.join(names[j] for j in group)}: {why}")
        if not shown.all():
            notes.append(f"Left out: {counted(sum(~shown), 'column')}, the same for every record.")
        cells = map(list, zip(*cells, strict=True))
        rows = list(zip(np.array(names, dtype=object)[shown], cells, strict=True))
        return CoefSummary(list(columns), rows, notes)

    def _coef_names(self):
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return [*names, *["intercept"] * bool(self.fit_intercept)]
