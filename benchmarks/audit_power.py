"""Power of audits to notice a fault: for each kind of release of each estimator, with defaults.

Run from the checkout: python benchmarks/audit_power.py [--n-runs 250] [names]
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dpcd_sklearn import (
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
)
from dpcd_sklearn.inspection import audit
from dpcd_sklearn.inspection._release_tests import power_text
from dpcd_sklearn.preprocessing import DPStandardScaler

BALL = {"constraint": "l1_ball", "penalty": None, "fit_intercept": False}
MODELS = {
    "DPStandardScaler": DPStandardScaler(),
    "DPLinearClassifier": DPLinearClassifier(),
    "DPLinearRegressor": DPLinearRegressor(),
    "gcd": DPLinearRegressor(solver="gcd"),
    "cd": DPLinearRegressor(solver="cd"),
    "sgd": DPLinearRegressor(solver="sgd"),
    "svrg": DPLinearRegressor(solver="svrg"),
    "skgd": DPLinearRegressor(solver="skgd"),
    "frank-wolfe": DPLinearRegressor(solver="frank-wolfe", **BALL),
    "DPLogisticGCD": DPLogisticGCD(),
    "DPLassoCD": DPLassoCD(),
    "DPRidgeSkGD": DPRidgeSkGD(),
    "three classes": DPLinearClassifier(classes=[0, 1, 2]),
    "moments of features": DPLinearClassifier(feature_bounds=(-3, 3), feature_scale="private"),
    "inference": DPLinearRegressor(solver="newton", inference=True),
    "stated bounds": DPLinearRegressor(feature_bounds=(-3, 3), target_bounds=(-9, 9)),
    "compgd": DPLinearRegressor(solver="compgd"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    parser.add_argument("--n-runs", type=int, default=250)
    parser.add_argument("--n-samples", type=int, default=10_000)
    options = parser.parse_args()
    print("| model | release | claim | draws | power at half | noticed below | verdict |")
    print("|---|---|---|---|---|---|---|")
    for name in options.names:
        start = time.perf_counter()
        result = audit(MODELS[name], n_samples=options.n_samples, n_runs=options.n_runs)
        for row in result.releases:
            noticed = "none" if row.noticed_noise is None else f"{row.noticed_noise:.2f}"
            cells = (name, row.kind, row.claim, f"{row.n_draws:,}", power_text(row.power), noticed)
            print("|", " | ".join((*cells, row.verdict)), "|", flush=True)
        seconds = time.perf_counter() - start
        print(f"{name}: {seconds:.0f} s, {result.verdict} {result.unpaid}", file=sys.stderr)


if __name__ == "__main__":
    main()
