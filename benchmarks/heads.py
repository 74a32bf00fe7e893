"""Private heads: ten classes on pixels and on scattering features of Fashion-MNIST, by defaults.

    python benchmarks/heads.py                                  # pixels
    python benchmarks/heads.py --scattering TRAIN.npy TEST.npy  # and features computed before
    python benchmarks/heads.py --records 6000                   # fewer records, in seconds

The head without privacy comes first: no private one is asked for more than that. Then come
DPLinearClassifier with its defaults under both relations, and what is published of others.
Features are those of kymatio (J = 2, eight angles: 81 channels of 7 x 7), computed here where it
is installed and read from two arrays otherwise, as memory maps. kymatio 0.3 needs a SciPy before
1.15: give it an environment of its own. "grouped" are the same features with 27 groups of three
channels by `grouped`, as Tramèr and Boneh have them: nothing is learnt from other records,
so it costs nothing.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from dpcd_sklearn import DPLinearClassifier
from dpcd_sklearn.exceptions import PrivacyLeakWarning

DELTA = 1e-5
N_CLASSES = 10
N_GROUPS = 27
TILE = 2_000  # images that are transformed at once
# Test accuracy of linear heads at δ = 1e-5, as published.
PUBLISHED = (
    "scattering, epsilon = 3, add_remove: 0.897 (Tramer & Boneh, Differentially private learning "
    "needs better features (or much more data), ICLR 2021)",
)
GOALS = {("pixels", 3.0): 0.84, ("pixels", 1.0): 0.82, ("scattering", 3.0): 0.90}
_FROM_WITHOUT = 0.01  # below the head without privacy no goal is nearer than this


def images(path):
    with np.load(path) as arrays:
        X, y = arrays["X_train"], arrays["y_train"].astype(int)
        return X, y, arrays["X_test"], arrays["y_test"].astype(int)


def flat(images):
    return images.reshape(len(images), -1) / np.float32(255)


def scattering(images):
    """Scattering coefficients of each image by itself, a float32 row each."""
    from kymatio.numpy import Scattering2D  # noqa: PLC0415 (an environment of its own)

    transform = Scattering2D(J=2, shape=images.shape[1:], L=8)
    tiles = [images[i : i + TILE] / np.float32(255) for i in range(0, len(images), TILE)]
    return np.concatenate([transform(tile).reshape(len(tile), -1) for tile in tiles])


def problems(options, train, test):
    """Name, features, test features and what is stated of them, one problem at a time."""
    yield "pixels", flat(train), flat(test), {"feature_bounds": (0.0, 1.0)}
    if options.scattering:
        X, X_test = (np.load(path, mmap_mode="r") for path in options.scattering)
        X = X[: len(train)]
    else:
        try:
            X, X_test = scattering(train), scattering(test)
        except ImportError as error:
            print(f"scattering is left out: {error}; give two arrays by --scattering")
            return
    yield "scattering", X, X_test, {}
    yield "scattering, grouped", grouped(X), grouped(X_test), {}


def grouped(X):
    """Groups of features centred and scaled within each row, and rows of norm 1."""
    found = np.empty_like(X)
    for start in range(0, len(X), TILE):
        groups = np.reshape(X[start : start + TILE], (-1, N_GROUPS, X.shape[1] // N_GROUPS))
        groups = groups - groups.mean(axis=2, keepdims=True)
        groups /= np.sqrt(groups.var(axis=2, keepdims=True) + 1e-5)
        found[start : start + TILE] = normalize(groups.reshape(len(groups), -1))
    return found


def without_privacy(X, y, X_test, y_test, n_iter):
    head = LogisticRegression(C=10.0, max_iter=n_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return head.fit(X, y).score(X_test, y_test)


def private(X, y, X_test, y_test, options, **stated):
    """Test accuracy, seconds of the fit and the solver's name."""
    head = DPLinearClassifier(
        classes=range(N_CLASSES), delta=DELTA, n_threads=options.threads, **stated
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        head.fit(X, y)
    seconds = time.perf_counter() - start
    return head.score(X_test, y_test), seconds, head.solver_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scattering", nargs=2, metavar=("TRAIN", "TEST"))
    parser.add_argument("--records", type=int, default=60_000, help="of the training images")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[3.0, 1.0])
    parser.add_argument("--only", help="problems whose names begin with it")
    parser.add_argument("--iterations", type=int, default=100, help="of the head without privacy")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    path = Path(os.environ.get("DPCD_DATA", beside)) / "fashion_mnist.npz"
    if not path.is_file():
        print(f"fashion_mnist is left out: no {path.name} in the folder that DPCD_DATA names")
        return
    train, y, test, y_test = images(path)
    train, y = train[: options.records], y[: options.records]
    print(f"{len(train):,} records, delta = {DELTA:g}, defaults but for what is stated\n")
    print("| features | p | epsilon | neighbours | test accuracy | goal | seconds | solver |")
    print("|---|---|---|---|---|---|---|---|")
    for name, X, X_test, stated in problems(options, train, test):
        if options.only and not name.startswith(options.only):
            continue
        p = X.shape[1]
        best = without_privacy(X, y, X_test, y_test, options.iterations)
        print(f"| {name} | {p} | without | | {best:.4f} | | | |", flush=True)
        for epsilon in options.epsilon:
            goal = GOALS.get((name.split(",")[0], epsilon))
            goal = "" if goal is None else f"{min(goal, best - _FROM_WITHOUT):.4f}"
            for neighboring in ("add_remove", "replace_one"):
                n_public = len(X) if neighboring == "add_remove" else None
                stated |= {"neighboring": neighboring, "n_public": n_public, "epsilon": epsilon}
                score, seconds, solver = private(X, y, X_test, y_test, options, **stated)
                cells = name, p, f"{epsilon:g}", neighboring, f"{score:.4f}", goal
                print(f"| {' | '.join(map(str, cells))} | {seconds:.0f} | {solver} |", flush=True)
    print("\npublished:", *PUBLISHED, sep="\n")


if __name__ == "__main__":
    main()
