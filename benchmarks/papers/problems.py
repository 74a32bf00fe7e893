"""The problems of the papers: what is minimised, its optimum, and what is public about it."""

import csv
import os
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Lasso, LogisticRegression

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.penalties import L1Ball
from dpcd_sklearn.solvers._choice import SOLVERS

from .generators import make_log1, make_log2, make_square
from .scaled_generators import make_scaled_classification, make_scaled_regression

CHECKOUT = Path(__file__).resolve().parents[2]


class MissingDataError(Exception):
    """A file of the benchmark data is not here."""


def data_folder():
    """The folder that DPCD_DATA names, or ``../shared/data`` beside the checkout."""
    return Path(os.environ.get("DPCD_DATA") or CHECKOUT.parent / "shared" / "data")


def data_file(name):
    path = data_folder() / name
    if not path.is_file():
        raise MissingDataError(f"{path} is not here; DPCD_DATA may name its folder")
    return path


def store(name, columns, rows):
    """Replace the rows of benchmarks/`name`.csv that have the same texts before their numbers.

    The pages of the documentation read their tables from these files.
    """
    path, old = CHECKOUT / "benchmarks" / f"{name}.csv", []
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            old = list(csv.reader(file))[1:]
    n_keys = sum(isinstance(cell, str) for cell in rows[0])
    new = [[c if isinstance(c, str) else f"{c:.4f}" for c in row] for row in rows]
    merged = {tuple(row[:n_keys]): row for row in old + new}
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *merged.values()])


@dataclass(eq=False)
class Problem:
    """Minimise the mean loss of x^T w beside alpha times a norm of w.

    Attributes
    ----------
    name : str
    loss : {"squared", "logistic"}
    penalty : {"l1", "l2"}
    alpha : float
    X, y : ndarray
    stated : float or None
        The optimum that was measured before, to agree with.
    unit : float
        Size of a loss derivative, in which `residual_clip` is stated.
    """

    name: str
    loss: str
    penalty: str
    alpha: float
    X: np.ndarray
    y: np.ndarray
    stated: float | None = None
    unit: float = 1.0

    @cached_property
    def scale(self):
        """Root mean square of each column, which the papers take as public."""
        return np.sqrt(np.mean(np.square(self.X, dtype=np.float64), axis=0))

    def objective(self, coef):
        """f(w)."""
        margins = self.X @ coef.astype(self.X.dtype)
        if self.loss == "squared":
            value = 0.5 * np.mean(np.square(self.y - margins, dtype=np.float64))
        else:
            value = np.mean(np.logaddexp(0.0, -self.y * margins.astype(np.float64)))
        norm = np.abs(coef).sum() if self.penalty == "l1" else 0.5 * coef @ coef
        return float(value + self.alpha * norm)

    def gap(self, coef):
        """(f(w) - f*) / f*."""
        return self.objective(coef) / self.optimum - 1

    @cached_property
    def solution(self):
        """w*, by scikit-learn's solvers, which share no code with ours."""
        n = len(self.y)
        if self.loss == "logistic":
            ratio = {"l1": 1.0, "l2": 0.0}[self.penalty]
            solver = {"l1": "liblinear", "l2": "lbfgs"}[self.penalty]
            peer = LogisticRegression(
                C=1 / (n * self.alpha),
                l1_ratio=ratio,
                solver=solver,
                fit_intercept=False,
                tol=1e-7,
                max_iter=10_000,
                random_state=0,
            )
            X = sp.csr_array(self.X) if self.penalty == "l1" else self.X
            return peer.fit(X, self.y).coef_[0].astype(np.float64)
        if self.penalty == "l2":
            gram = self.X.T @ self.X / n + self.alpha * np.eye(self.X.shape[1])
            return np.linalg.solve(gram, self.X.T @ self.y / n)
        peer = Lasso(self.alpha, fit_intercept=False, tol=1e-10, max_iter=100_000)
        return peer.fit(self.X, self.y).coef_

    @cached_property
    def optimum(self):
        """f*."""
        return self.objective(self.solution)

    def model(self, solver, **parameters):
        """The unfitted estimator of this problem.

        Parameters
        ----------
        solver : str
            Those without a proximal step, "compgd" and "frank-wolfe", stay in the l1 ball that the
            optimum lies on instead of having the penalty.
        residual_clip : float, optional
            c in place of the clip c unit sqrt(tr M).
        isotropic : bool, default=False
            Whether all coordinates have one M, their mean: the DP-SGD of the papers.
        **parameters : of the estimator and of its solver
        """
        scale = self.scale
        if parameters.pop("isotropic", False):
            scale = np.full_like(scale, np.sqrt(np.mean(scale**2)))
        if "residual_clip" in parameters:
            curvature = 0.25 if self.loss == "logistic" else 1.0
            squares = np.maximum(scale**2, 1e-6 * scale.max() ** 2)
            if solver == "frank-wolfe":  # it has one M for all coordinates
                squares = np.full_like(squares, squares.max())
            trace = curvature * squares.sum()
            clip = parameters.pop("residual_clip") * self.unit
            parameters["clip"] = clip * float(trace) ** 0.5
        penalty = {"penalty": self.penalty, "alpha": self.alpha}
        if solver in ("compgd", "frank-wolfe") and self.penalty == "l1":
            radius = float(np.abs(self.solution).sum())
            penalty = {"penalty": None, "constraint": L1Ball(radius)}
        solver = SOLVERS[solver]()
        own = {name: parameters.pop(name) for name in solver.get_params() if name in parameters}
        solver.set_params(**own)
        public = {"feature_scale": scale, "fit_intercept": False, "solver": solver}
        if self.loss == "squared":
            largest = float(np.abs(self.y).max())
            public["target_bounds"] = -largest, largest
            return DPLinearRegressor("squared", **penalty | public | parameters)
        return DPLinearClassifier("logistic", classes=[-1, 1], **penalty | public | parameters)


def standardized(X):
    X = X.astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def california():
    """LASSO: columns standardised, target centred."""
    with np.load(data_file("california_housing.npz"), allow_pickle=False) as arrays:
        X, y = standardized(arrays["X"]), arrays["y"].astype(np.float64)
    return Problem("california", "squared", "l1", 0.1, X, y - y.mean(), 0.41936449)


def madelon():
    """Logistic regression with l1, columns standardised."""
    with np.load(data_file("madelon.npz"), allow_pickle=False) as arrays:
        X, y = standardized(arrays["X"]), arrays["y"].astype(int)
    return Problem("madelon", "logistic", "l1", 0.05, X, y, 0.68521760)


def dorothea():
    """Logistic regression with l1: the first 800 rows, empty columns dropped, raw 0/1."""
    X = sp.load_npz(data_file("dorothea.npz"))[:800]
    y = np.load(data_file("dorothea_y.npy"), allow_pickle=False)[:800].astype(int)
    X = X[:, np.flatnonzero(X.getnnz(axis=0))]
    return Problem("dorothea", "logistic", "l1", 0.01, X.toarray(order="F"), y, 0.38865885)


REAL = {"california": california, "madelon": madelon, "dorothea": dorothea}


# The papers' text does not state these strengths. Ours leave some coefficients, not all, at zero,
# and a gap at w = 0 of about one, as the papers plot it.


def _synthetic(name, loss, penalty, alpha, maker, **parameters):
    X, y = maker(random_state=0, **parameters)
    unit = float(np.sqrt(np.mean(y**2))) if loss == "squared" else 1.0
    return Problem(name, loss, penalty, alpha, X, y, unit=unit)


def _lasso(name, log_std):
    maker = make_scaled_regression
    return partial(_synthetic, name, "squared", "l1", 0.3, maker, smoothness_log_std=log_std)


def _logistic(name, log_std):
    maker = make_scaled_classification
    return partial(_synthetic, name, "logistic", "l2", 1e-3, maker, smoothness_log_std=log_std)


SYNTHETIC = {
    "balanced LASSO": _lasso("balanced LASSO", 0.0),
    "scaled LASSO": _lasso("scaled LASSO", 2.0),
    "balanced logistic": _logistic("balanced logistic", 0.0),
    "scaled logistic": _logistic("scaled logistic", 2.0),
    "log1": partial(_synthetic, "log1", "logistic", "l2", 0.1, make_log1),
    "log2": partial(_synthetic, "log2", "logistic", "l2", 0.1, make_log2),
    "square": partial(_synthetic, "square", "squared", "l1", 10.0, make_square),
}
