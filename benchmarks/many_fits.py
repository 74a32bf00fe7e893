"""Three private models on real data: a table, and plots beside this file.

``python benchmarks/many_fits.py`` runs it. With ``--quick`` fewer fits are made, for the tests.

Every bound below is public knowledge: a unit, a definition or a clinically plausible range, in
round numbers. None is a minimum or a maximum of the data, and values outside are clipped.
"""

import argparse
import logging
import os
import socket
import warnings
from http.client import HTTPException
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    fetch_california_housing,
    load_breast_cancer,
    load_diabetes,
    load_digits,
)
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline

from dpcd_sklearn import (
    DPLassoCD,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
    PrivacyLeakWarning,
)
from dpcd_sklearn.exceptions import FewRecordsWarning
from dpcd_sklearn.preprocessing import BoundsScaler

HERE = Path(__file__).resolve().parent

# ---- what is public --------------------------------------------------------------------------

# A pixel of digits counts the black dots in a 4 x 4 cell: 0 to 16, by construction.
DIGITS_BOUNDS = (0, 16)

# Cell nuclei in an image. With a radius r of 5 to 30 (the mean of the largest three: 40), geometry
# gives the perimeter, 2 pi r, and the area, pi r^2; the other features are ratios, in [0, 1] or
# well within. "error" is the standard error of the mean over the nuclei, a small part of the mean.
BREAST_CANCER_BOUNDS = {
    # name: (mean, error, worst)
    "radius": ((5, 30), (0, 2), (5, 40)),
    "texture": ((0, 50), (0, 5), (0, 50)),  # standard deviation of grey values
    "perimeter": ((30, 200), (0, 12), (30, 250)),
    "area": ((80, 3000), (0, 200), (80, 5000)),
    "smoothness": ((0, 0.25), (0, 0.02), (0, 0.25)),
    "compactness": ((0, 0.5), (0, 0.1), (0, 1)),
    "concavity": ((0, 0.5), (0, 0.1), (0, 1)),
    "concave points": ((0, 0.2), (0, 0.04), (0, 0.3)),
    "symmetry": ((0, 0.4), (0, 0.05), (0, 0.6)),
    "fractal dimension": ((0, 0.2), (0, 0.02), (0, 0.2)),
}

# Adults under treatment: ranges that a clinician would call plausible.
DIABETES_BOUNDS = {
    "age": (18, 90),  # years
    "sex": (1, 2),  # a code
    "bmi": (15, 50),  # kg / m^2
    "bp": (50, 150),  # mean arterial pressure, mm Hg
    "s1": (80, 350),  # total cholesterol, mg / dl
    "s2": (20, 250),  # LDL cholesterol, mg / dl
    "s3": (20, 100),  # HDL cholesterol, mg / dl
    "s4": (1, 10),  # total / HDL cholesterol
    "s5": (3, 7),  # log of triglycerides: 20 to 1,100 mg / dl
    "s6": (50, 200),  # blood sugar, mg / dl
}
DIABETES_TARGET = (0, 400)  # a score of the progression of the disease

# Block groups of the 1990 census, of 600 to 3,000 people by the bureau's definition, in California.
CALIFORNIA_BOUNDS = {
    "MedInc": (0, 15),  # 10,000 dollars; higher incomes were coded as 15
    "HouseAge": (0, 60),  # years
    "AveRooms": (0, 15),
    "AveBedrms": (0, 5),
    "Population": (0, 10_000),
    "AveOccup": (0, 10),
    "Latitude": (32, 42.5),  # the borders of the state
    "Longitude": (-125, -114),
}
CALIFORNIA_TARGET = (0, 5)  # 100,000 dollars; higher values were coded as 5

# ---- what is fitted --------------------------------------------------------------------------

DELTA = 1e-6  # well below 1 / n of every data set here
EPSILONS = (0.5, 1.0, 3.0, 10.0)  # of one fit, in the table
RUNS = 15  # independent fits behind each number of the table
SEARCH_EPSILON = 0.5  # of each fit of a grid search
SEARCH_BUDGET = 4.0  # of all searches on one data set together
BENCHMARK_BUDGET = 1e4  # only a ledger of what the table cost; no protection


class DataSet(NamedTuple):
    """Records split into those that are fitted and those that score, and what is public of them."""

    name: str
    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray
    bounds: tuple
    contests: list  # of Contest
    score: str  # what a score is
    ignorant: float  # the score of a model that ignores the features


class Contest(NamedTuple):
    """A private model, the same without privacy, and the grid of the search."""

    private: object
    plain: object
    grid: dict

    @property
    def name(self):
        return type(self.private).__name__


class Row(NamedTuple):
    """One line of the table: scores by epsilon, and the score without privacy."""

    name: str
    plain_name: str
    scores: dict
    spent: dict
    plain_score: float


def classification():
    model = DPLogisticGCD(classes=[0, 1], feature_bounds=(-1, 1), delta=DELTA)
    return [Contest(model, LogisticRegression(max_iter=1000), {"C": [0.01, 0.1, 1.0, 10.0]})]


def regression(target_bounds, lasso_alpha):
    public = {"feature_bounds": (-1, 1), "target_bounds": target_bounds, "delta": DELTA}
    lasso_grid = {"alpha": [lasso_alpha * factor for factor in (0.1, 1, 3, 10)]}
    return [
        Contest(DPLassoCD(lasso_alpha, **public), Lasso(lasso_alpha), lasso_grid),
        Contest(DPRidgeSkGD(1.0, **public), Ridge(1.0), {"alpha": [0.1, 1.0, 10.0, 100.0]}),
    ]


def data_set(name, X, y, bounds, contests):
    # The split goes by row numbers: a stratified one would depend on every label.
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    if isinstance(contests[0].plain, LogisticRegression):
        score, ignorant = "accuracy", max(y_test.mean(), 1 - y_test.mean())
    else:
        score, ignorant = "R²", 0.0
    return DataSet(name, X_train, X_test, y_train, y_test, bounds, contests, score, ignorant)


def bundled_data():
    """The data sets that come with scikit-learn."""
    cancer = load_breast_cancer()
    columns = [
        BREAST_CANCER_BOUNDS[name][kind]  # the columns are all means, all errors, all worst values
        for kind in range(3)
        for name in BREAST_CANCER_BOUNDS
    ]
    yield data_set("breast_cancer", cancer.data, cancer.target, columns, classification())
    X, digit = load_digits(return_X_y=True)
    is_large = (digit >= 5).astype(int)
    yield data_set("digits, 5 or more", X, is_large, DIGITS_BOUNDS, classification())
    X, y = load_diabetes(return_X_y=True, scaled=False)
    bounds = list(DIABETES_BOUNDS.values())
    yield data_set("diabetes", X, y, bounds, regression(DIABETES_TARGET, lasso_alpha=1.0))


def california_housing():
    """California housing from the folder of the benchmark data or the network; or None."""
    folder = os.environ.get("DPCD_DATA") or HERE.parent.parent / "shared" / "data"
    path = Path(folder, "california_housing.npz")
    if path.is_file():
        with np.load(path, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
    else:
        patience = socket.getdefaulttimeout()
        socket.setdefaulttimeout(5)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it tries again
                X, y = fetch_california_housing(return_X_y=True, n_retries=1, delay=0.1)
        except (OSError, HTTPException) as error:  # no network, a page instead of the file, ...
            print(
                f"California housing is left out: there is no {path},\n"
                f"and scikit-learn's copy could not be downloaded: {error}\n"
            )
            return None
        finally:
            socket.setdefaulttimeout(patience)
    bounds = list(CALIFORNIA_BOUNDS.values())
    contests = regression(CALIFORNIA_TARGET, lasso_alpha=0.01)  # the target is in 100,000 dollars
    return data_set("california_housing", X, y, bounds, contests)


def pipeline(data, model):
    return make_pipeline(BoundsScaler(data.bounds), model)


# ---- a grid search with an accountant --------------------------------------------------------


def spent_text(spent):
    return f"({spent.epsilon:.3g}, {spent.delta:.0e})"


def search_all(data):
    """One search for each model on one data set, and one accountant for all of them."""
    accountant = PrivacyAccountant(SEARCH_BUDGET, DELTA, path=f"{mkdtemp()}/records.ledger")
    for contest in data.contests:
        model = clone(contest.private).set_params(epsilon=SEARCH_EPSILON, accountant=accountant)
        step = contest.name.lower()
        search = GridSearchCV(
            pipeline(data, model),
            {f"{step}__{name}": values for name, values in contest.grid.items()},
            cv=KFold(3),  # the default, stratified for classifiers, voids the guarantee
            error_score="raise",  # an empty budget must stop the search, not become a NaN score
        )
        search.fit(data.X_train, data.y_train)
        best = ", ".join(
            f"{name.removeprefix(step + '__')}={value:g}"
            for name, value in search.best_params_.items()
        )
        print(
            f"{data.name:19} {contest.name:14} {best:11} "
            f"{search.score(data.X_test, data.y_test):14.3f} {len(accountant.entries()):14} "
            f"{spent_text(accountant.spent()):>15} {accountant.remaining():12.3g}"
        )


def print_searches(data_sets):
    print(
        f"Grid searches: 4 candidates x 3 folds and a refit, {SEARCH_EPSILON:g} for each fit, and\n"
        f"one accountant of ({SEARCH_BUDGET:g}, {DELTA:.0e}) for each data set.\n\n"
        f"{'data set':19} {'model':14} {'best':11} {'held-out score':>14} {'ledger entries':>14} "
        f"{'spent':>15} {'one more fit':>12}"
    )
    for data in data_sets:
        search_all(data)
    print(
        "\nThirteen such fits cost about as much as one with epsilon = 2: a search pays where\n"
        "records are many. The scores on its folds have no noise and are not in the ledger."
    )


# ---- score against epsilon -------------------------------------------------------------------


def measure(data, contest, accountant, epsilons, runs):
    """Fit again and again at every epsilon, and score on the held-out records."""
    scores, spent = {}, {}
    for epsilon in epsilons:
        scores[epsilon] = []
        for _ in range(runs):
            model = clone(contest.private).set_params(epsilon=epsilon, accountant=accountant)
            fitted = pipeline(data, model).fit(data.X_train, data.y_train)
            scores[epsilon].append(fitted.score(data.X_test, data.y_test))
        spent[epsilon] = fitted[-1].privacy_spent_
    plain = pipeline(data, contest.plain).fit(data.X_train, data.y_train)
    plain_score = plain.score(data.X_test, data.y_test)
    return Row(contest.name, type(contest.plain).__name__, scores, spent, plain_score)


def print_table(data_sets, epsilons, runs, folder):
    """Print the table while it is made, and save the plots."""
    print(
        f"\n\nScore on held-out records (accuracy, or R² for regression): median of {runs} "
        "independent\nfits on one fixed split, by (epsilon, delta) spent by one fit.\n"
    )
    costs, plots, header = [], [], False
    for data in data_sets:
        accountant = PrivacyAccountant(BENCHMARK_BUDGET, DELTA, path=f"{mkdtemp()}/one.ledger")
        rows = []
        for contest in data.contests:
            row = measure(data, contest, accountant, epsilons, runs)
            if not header:
                heads = "".join(f"{spent_text(spent):>13}" for spent in row.spent.values())
                print(f"{'data set':19} {'n':>6} {'p':>3} {'model':13}{heads} {'no privacy':>11}")
                header = True
            cells = "".join(f"{median(scores):13.3f}" for scores in row.scores.values())
            n, p = data.X_train.shape
            print(f"{data.name:19} {n:6} {p:3} {row.name:13}{cells} {row.plain_score:11.3f}")
            rows.append(row)
        fits, spent = len(accountant.entries()), accountant.spent()
        costs.append(f"  {data.name:19} {fits:4} fits, {spent_text(spent)}")
        plots.append(save_plot(data, rows, folder))
    print(
        "\nThe repeated fits of the table are a benchmark on public data. Whoever publishes all\n"
        "of them has spent what the ledger of the data set says, not (epsilon, delta) of one fit:"
    )
    print(*costs, sep="\n")
    print(
        "The searches above had ledgers of their own; two ledgers on the same records compose.\n"
        "Scores are exact figures of the held-out records, which nothing here protects."
    )
    if None not in plots:
        print("\nPlots:", *(os.path.relpath(path) for path in plots))


# ---- plots -----------------------------------------------------------------------------------

INK = "#444444"
COLOURS = ("#0072B2", "#D55E00")  # of Okabe and Ito: told apart by everybody


def save_plot(data, rows, folder):
    """Score against epsilon: every fit, medians and quartiles, and the models without noise."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no plots")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    labels = []
    for k, (row, colour) in enumerate(zip(rows, COLOURS, strict=False)):
        # two models at one epsilon stand side by side
        labels += draw_row(axes, row, colour, shift=1.05 ** (2 * k - len(rows) + 1))
    scores = [score for row in rows for run in row.scores.values() for score in run]
    if min(scores) - data.ignorant < max(scores) - min(scores):  # elsewhere it would be far below
        axes.axhline(data.ignorant, color=INK, linewidth=1, linestyle=":")
        labels.append((data.ignorant, "features ignored", INK))
    epsilons = list(rows[0].scores)
    axes.set(
        xscale="log",
        xlabel=f"ε of one fit, at δ = {DELTA:.0e}",
        ylabel=f"{data.score} on held-out records",
    )
    n, p = data.X_train.shape
    title = f"{data.name}: {n:,} training records, {p} features"
    key = (
        f"dots: {len(rows[0].scores[epsilons[0]])} fits at each ε; line and bars: median, quartiles"
    )
    axes.set_title(title, loc="left", fontsize=12, color=INK, pad=22)
    at_corner = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(key, (0, 1), (0, 9), fontsize=9, color=INK, **at_corner)
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    write_beside(axes, labels)
    name = "".join(c if c.isalnum() else "_" for c in data.name.partition(",")[0])
    path = Path(folder, f"many_fits_{name}.png")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def draw_row(axes, row, colour, shift):
    """Draw one model; return what its lines are called: (height, text, colour)."""
    epsilons = np.array(list(row.scores)) * shift
    low, middle, high = np.quantile(list(row.scores.values()), [0.25, 0.5, 0.75], axis=1)
    axes.axhline(row.plain_score, color=colour, linewidth=1.2, linestyle="--")
    axes.vlines(epsilons, low, high, color=colour, alpha=0.3, linewidth=7)
    axes.plot(epsilons, middle, "o-", color=colour, linewidth=1.8, markersize=5)
    for epsilon, scores in zip(epsilons, row.scores.values(), strict=True):
        axes.plot([epsilon] * len(scores), scores, ".", color=colour, alpha=0.45, markersize=4)
    return [
        (middle[-1], row.name, colour),
        (row.plain_score, f"{row.plain_name}, no privacy", colour),
    ]


def write_beside(axes, labels):
    """Write the names of the lines at their right ends, moved apart where they would collide."""
    bottom, top = axes.get_ylim()
    gap, labels = 0.056 * (top - bottom), sorted(labels)
    heights = [y for y, _, _ in labels]
    for _ in range(100):  # neighbours that are too close push each other away
        for k in range(1, len(heights)):
            lack = max(0.0, gap - (heights[k] - heights[k - 1]))
            heights[k - 1] -= lack / 2
            heights[k] += lack / 2
    for height, (_, text, colour) in zip(heights, labels, strict=True):
        axes.annotate(
            text,
            (1.01, height),
            xycoords=("axes fraction", "data"),
            va="center",
            color=colour,
            fontsize=9,
            annotation_clip=False,
        )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few fits, bundled data only")
    parser.add_argument("--folder", type=Path, default=HERE, help="where the plots are saved")
    options = parser.parse_args(arguments)
    # Scores have no noise, and say so; these records are public anyway.
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    warnings.simplefilter("ignore", FewRecordsWarning)  # the table shows what few records mean
    logging.getLogger("dpcd_sklearn").setLevel(logging.ERROR)  # each data set has a new ledger
    epsilons, runs = ((1.0, 10.0), 3) if options.quick else (EPSILONS, RUNS)
    data_sets = list(bundled_data())
    if not options.quick and (california := california_housing()) is not None:
        data_sets.append(california)
    print_searches(data_sets)
    print_table(data_sets, epsilons, runs, options.folder)


if __name__ == "__main__":
    main()
