"""Hazard ratios of piecewise exponential models, with and without noise, beside lifelines'.

    python benchmarks/survival.py --store      # needs lifelines; writes survival.csv

Three sets that lifelines bundles, and made-up persons of the same kind: logarithms of hazard ratios
over the public range of each feature, of Cox's model and of lifelines' piecewise model with the
same cuts, of a fit here without noise, and medians of 9 fits by persons at epsilon 1, 3 and 10
(delta 1e-6) with their spread: half the distance of the quartiles.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from dpcd_sklearn import DPLinearRegressor, Persons
from dpcd_sklearn.preprocessing import PiecewiseExponential
from dpcd_sklearn.solvers import SGD
from dpcd_sklearn.testing import ReproducibleNoise

STORED = Path(__file__).with_suffix(".csv")
EPSILONS, N_FITS = (1, 3, 10), 9
# Public ranges of the features; columns of the durations and events; how long a period is, and how
# many there are. No duration ends at a cut, where lifelines counts an event half to either side.
SETS = {
    "rossi": (
        {"fin": (0, 1), "age": (16, 46), "race": (0, 1), "mar": (0, 1), "prio": (0, 20)},
        ("week", "arrest", 13.1, 4),
    ),
    "lung": (
        {"age": (35, 85), "sex": (1, 2), "ph.ecog": (0, 3)},
        ("time", "status", 182.3, 4),
    ),
    "gbsg2": (
        {"hormones": (0, 1), "age": (20, 80), "tsize": (0, 120), "pnodes": (0, 50)},
        ("time", "cens", 365.3, 5),
    ),
    "made-up": ({"a": (0, 1), "b": (0, 1), "c": (0, 1)}, ("time", "event", 1, 5)),
}


def records(name):
    """Features over their public ranges, durations in periods, and events."""
    bounds, (time, event, length, _) = SETS[name]
    if name == "made-up":
        rng = np.random.default_rng(0)
        X = rng.uniform(0, 1, (10_000, 3))
        hazard = 0.15 * np.exp(X @ [1.0, -0.5, 0.0])
        times, seen = rng.exponential(1 / hazard), rng.uniform(1, 5, len(X))
        table = pd.DataFrame(X, columns=list(bounds))
        table = table.assign(time=np.minimum(times, seen), event=(times <= seen).astype(int))
    else:
        from lifelines import datasets

        table = getattr(datasets, f"load_{name}")()
    if name == "gbsg2":
        table = table.assign(hormones=(table["horTh"] == "yes").astype(int))
    table = table[[*bounds, time, event]].dropna()
    lo, hi = (np.array(end, dtype=float) for end in zip(*bounds.values(), strict=True))
    X = (table[list(bounds)].clip(lo, hi, axis=1) - lo) / (hi - lo)
    return X, table[time].to_numpy() / length, table[event].to_numpy()


def by_lifelines(X, duration, event, cuts):
    """Coefficients of Cox's model and of the piecewise exponential one."""
    from lifelines import CoxPHFitter

    table = X.assign(duration=duration, event=event)
    cox = CoxPHFitter().fit(table, "duration", "event").params_
    model = CoxPHFitter(baseline_estimation_method="piecewise", breakpoints=cuts)
    piecewise = model.fit(table, "duration", "event", fit_options={"tol": 1e-10}).params_["beta_"]
    return cox[X.columns].to_numpy(), piecewise[X.columns].to_numpy()


def rows_of(name):
    """A row for each feature of a set."""
    X, duration, event = records(name)
    cuts = np.arange(1.0, SETS[name][1][3])
    models = [*by_lifelines(X, duration, event, list(cuts))]
    table = PiecewiseExponential(cuts).expand(X, duration, event)
    plain = DPLinearRegressor("poisson", epsilon=np.inf, tol=1e-9)
    models.append(plain.fit(table.X, table.rate, sample_weight=table.exposure).coef_)
    table = PiecewiseExponential(cuts, largest_rate=2.0).expand(X, duration, event)
    for epsilon in EPSILONS:
        coefs = []
        for seed in range(N_FITS):
            model = DPLinearRegressor(
                "poisson",
                epsilon=epsilon,
                delta=1e-6,
                neighboring=Persons(),
                solver=SGD(1.0, step_size=0.3),
                clip=2.0,
                feature_bounds=(0, 1),
                target_bounds=(0, 2),
                random_state=ReproducibleNoise(seed),
            )
            weights = {"sample_weight": table.exposure, "groups": table.groups}
            coefs.append(model.fit(table.X, table.rate, **weights).coef_)
        low, median, high = np.quantile(coefs, [0.25, 0.5, 0.75], axis=0)
        models += [median, (high - low) / 2]
    columns = [np.round(model[: X.shape[1]], 4) for model in models]
    return [(name, len(X), int(event.sum()), *row) for row in zip(X.columns, *columns, strict=True)]


def main():
    """Print all rows, and store them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", action="store_true")
    stored = parser.parse_args().store
    header = ["set", "persons", "events", "feature", "cox", "lifelines", "inf"]
    header += [f"{what}{epsilon}" for epsilon in EPSILONS for what in ("eps", "spread")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [row for name in SETS for row in rows_of(name)]
    for row in (header, *rows):
        print(*row, sep=",")
    if stored:
        with STORED.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
