"""Fits by persons, beside caps on the rows of a person, and fits without privacy.

    python benchmarks/persons.py [--store] [--laws] [--panels] [--repeat 30]

- *laws*: 1,000 persons, 10 normal columns, (1, 1e-6); 10 rows each, or a geometric or Zipf number
  of rows. Printed is the root mean square of the l2 norm of the coefficients' error.
- *panels*: two real ones, where `linearmodels` is installed, and three simulated ones. Printed is
  the median R² on the rows of a fifth of the persons. (The other panels of that package have
  fewer persons still.) "ids" loses at most half of what the best cap loses in all simulated cells,
  and less than it in real ones at 1 and 3. At .3 436 men and 95 firms are too few: all ways are
  worse than the mean, DP-SGD most.

"ids" is ``Persons()``; "k rows" is ``Persons(k)`` with ids: k rows of each person and k times the
noise, as OpenDP truncates. All these are default fits within stated bounds. "DP-SGD" is DP-SGD by
user, written here: a Poisson sample of the persons a step, the gradient of each (the mean over its
rows) clipped as one vector, the same neighbours and the mean of the last half of the iterates. Its
rate, steps, step size and clip are the best of a grid of 18 on these very laws without effects, and
it is told the scales of columns and target, which "ids" pays for.
Rows are stored in ``persons.csv``.
"""

import argparse
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupShuffleSplit

from dpcd_sklearn import DPLinearRegressor, Persons
from dpcd_sklearn.privacy.accounting import Budget
from dpcd_sklearn.privacy.accounting._calibration import sampled_fit_event

STORED = Path(__file__).with_name("persons.csv")
CAPS, EPSILONS = (1, 3, 10), (0.3, 1.0, 3.0)
# DP-SGD by user, and how many standard deviations fill half the width of bounds, which it is told.
RATE, N_STEPS, CLIP, STEP_SIZE, SPREAD = 0.3, 30, 0.35, 1.0, 4.0
N_PERSONS, P = 1000, 10
SIZES = {
    "10 rows each": lambda rng: np.full(N_PERSONS, 10),
    "geometric": lambda rng: rng.geometric(0.1, N_PERSONS),
    "zipf": lambda rng: np.minimum(rng.zipf(1.6, N_PERSONS), 1000),
}
# Bounds of standard normal columns, of their target, and of the columns of the real panels.
OF_COLUMNS, OF_TARGET = (-4, 4), (-6, 6)
WAGES = {"exper": (0, 20), "expersq": (0, 400), "hours": (0, 5000), "educ": (0, 20)}
TRAINING = {"lemploy": (0, 7), "lavgsal": (8, 12)}


def simulated(law, effects, seed):
    """Rows of persons with a normal effect each, in columns and target, and the coefficients."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(N_PERSONS), SIZES[law](rng))
    own, own_y = rng.standard_normal((N_PERSONS, P)), rng.standard_normal(N_PERSONS)
    X = np.sqrt(1 - effects) * rng.standard_normal((ids.size, P)) + np.sqrt(effects) * own[ids]
    coef = rng.standard_normal(P) / np.sqrt(P)
    noise = np.sqrt(effects) * own_y[ids]
    noise += np.sqrt(1 - effects) * rng.standard_normal(ids.size)
    return X, X @ coef + noise, ids, coef


def real(name):
    """X, y, ids and bounds of a real panel."""
    from linearmodels.datasets import jobtraining, wage_panel

    if name == "wages":
        frame, who, target, bounds, of_target = wage_panel.load(), "nr", "lwage", WAGES, (-4, 4)
        columns = [*WAGES, "black", "hisp", "married", "union"]
    else:
        frame, who, bounds, of_target = jobtraining.load(), "fcode", TRAINING, (10, 20)
        target, columns = "lsales", [*TRAINING, "union", "grant", "d88", "d89"]
        frame = frame.dropna(subset=[target, *columns])
    lo, hi = np.transpose([bounds.get(column, (0, 1)) for column in columns])
    X = frame[columns].to_numpy(dtype=float)
    return X, frame[target].to_numpy(dtype=float), frame[who].to_numpy(), (lo, hi), of_target


@lru_cache
def sampled_noise(epsilon, n_persons):
    """The noise of DP-SGD by user, over the clip of one person's gradient."""
    budget = Budget(epsilon, 1e-6, "replace_one", n_persons)
    return 2 * sampled_fit_event(budget, RATE, N_STEPS).releases[0].noise_multiplier


def dp_sgd_by_user(X, y, ids, seed, feature_bounds, target_bounds, fit_intercept=True, epsilon=1.0,
                   clip=CLIP, step_size=STEP_SIZE, **_):  # fmt: skip
    """DP-SGD by user: the mean of the last half of its iterates."""
    rng = np.random.default_rng(seed)
    lo, hi = (np.broadcast_to(one, X.shape[1]).astype(float) for one in feature_bounds)
    center, half = (lo + hi) / 2, (hi - lo) / 2 / SPREAD
    of_y = np.mean(target_bounds), (target_bounds[1] - target_bounds[0]) / 2 / SPREAD
    Z, z = (np.clip(X, lo, hi) - center) / half, (np.clip(y, *target_bounds) - of_y[0]) / of_y[1]
    Z = np.column_stack([Z, np.full(len(Z), float(fit_intercept))])
    persons = np.unique(ids, return_inverse=True)[1]
    sizes = np.bincount(persons)
    w, kept = np.zeros(Z.shape[1]), []
    noise = sampled_noise(epsilon, len(sizes)) * clip / (RATE * len(sizes))
    for step in range(N_STEPS):
        rows = (rng.random(len(sizes)) < RATE)[persons]
        own, r = persons[rows], (Z[rows] @ w - z[rows])[:, None] * Z[rows]
        sums = np.zeros((len(sizes), Z.shape[1]))
        np.add.at(sums, own, r)
        sums /= sizes[:, None]
        lengths = np.maximum(np.linalg.norm(sums, axis=1), 1e-300)
        total = (np.minimum(1.0, clip / lengths)[:, None] * sums).sum(axis=0)
        w = w - step_size * (total / (RATE * len(sizes)) + noise * rng.standard_normal(len(w)))
        kept += [w] * (step >= N_STEPS // 2)
    w = np.mean(kept, axis=0)
    found = LinearRegression().fit(X[:2], y[:2])  # a model to hold the coefficients
    found.coef_ = w[:-1] * of_y[1] / half
    found.intercept_ = of_y[0] + w[-1] * of_y[1] * fit_intercept - found.coef_ @ center
    return found


def fits(X, y, ids, seed, **stated):
    """One fitted model for each way."""
    yield "DP-SGD", dp_sgd_by_user(X, y, ids, seed, **stated)
    yield "plain", LinearRegression(fit_intercept=stated.get("fit_intercept", True)).fit(X, y)
    yield "ids", DPLinearRegressor(neighboring=Persons(), **stated).fit(X, y, groups=ids)
    for k in CAPS:
        capped = DPLinearRegressor(neighboring=Persons(k), **stated)
        yield f"{k} rows", capped.fit(X, y, groups=ids)


def of_laws(n_seeds):
    stated = {"feature_bounds": OF_COLUMNS, "target_bounds": OF_TARGET, "delta": 1e-6}
    for law in SIZES:
        for effects in (0.0, 0.3):
            squares = {}
            for seed in range(n_seeds):
                X, y, ids, coef = simulated(law, effects, seed)
                for way, model in fits(X, y, ids, seed, **stated, fit_intercept=False):
                    squares.setdefault(way, []).append(np.sum((model.coef_ - coef) ** 2))
            for way, found in squares.items():
                yield f"{law}, effects {effects:g}", way, 1.0, "l2", np.sqrt(np.mean(found))


def of_panels(n_seeds):
    panels = {law: lambda seed, law=law: (*simulated(law, 0.3, seed)[:3], OF_COLUMNS, OF_TARGET)
              for law in SIZES}  # fmt: skip
    for name in ("wages", "training"):
        try:
            found = real(name)
        except ImportError:
            print(f"{name} is left out: linearmodels is not installed")
            continue
        panels[name] = lambda seed, found=found: found
    for name, panel in panels.items():
        for epsilon in EPSILONS:
            scores = {}
            for seed in range(n_seeds):
                X, y, ids, bounds, of_target = panel(seed)
                (train, test), = GroupShuffleSplit(1, test_size=0.2, random_state=seed).split(
                    X, groups=ids
                )  # fmt: skip
                stated = {"feature_bounds": bounds, "target_bounds": of_target, "epsilon": epsilon}
                for way, model in fits(X[train], y[train], ids[train], seed, **stated, delta=1e-6):
                    scores.setdefault(way, []).append(r2_score(y[test], model.predict(X[test])))
            for way, found in scores.items():
                yield name, way, epsilon, "R2", np.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--laws", action="store_true")
    parser.add_argument("--panels", action="store_true")
    parser.add_argument("--repeat", type=int, default=30)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [] if asked.panels and not asked.laws else [*of_laws(asked.repeat)]
    rows += [] if asked.laws and not asked.panels else [*of_panels(asked.repeat)]
    names = ["set", "way", "epsilon", "score", "value"]
    table = pd.DataFrame(rows, columns=names).round(4)
    keys = ["set", "epsilon", "score"]
    print(table.pivot(index=keys, columns="way", values="value").to_string())
    if asked.store:
        old = pd.read_csv(STORED) if STORED.exists() else table[:0]
        table = pd.concat([old[~old["set"].isin(table["set"])], table])
        table.sort_values(names[:4]).to_csv(STORED, index=False)


if __name__ == "__main__":
    main()
