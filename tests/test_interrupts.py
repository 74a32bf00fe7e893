"""Ctrl-C stops every solver within a second, and leaves the charge where it was.

Run as a program it fits one model after the other, each of which would take minutes.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from flat import SOLVERS
from scipy.sparse import csr_array

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, PrivacyAccountant
from dpcd_sklearn.privacy.sums import _geometry_sums
from dpcd_sklearn.solvers import GCD, SGD, SkGD
from dpcd_sklearn.utils._tiles import is_finite

# Many times what the promised second and a busy machine take, and much less than any fit here.
PATIENCE = 10.0
BALL = {"penalty": None, "constraint": "l1_ball", "fit_intercept": False}
CLASSES = {"classes": [0, 1, 2], "loss": "multinomial"}
MODELS = {
    "cd": DPLinearRegressor(solver="cd", max_iter=1e6),
    "gcd": DPLinearRegressor(solver="gcd", penalty="l1", max_iter=1e5),
    "gcd, blocks": DPLinearRegressor(solver=GCD(block_size=20), penalty="l1", max_iter=1e5),
    "gcd, lazy": DPLinearRegressor(solver=GCD(selection="lazy"), penalty="l1", max_iter=1e5),
    "skgd": DPLinearRegressor(solver="skgd", max_iter=1e6),
    "skgd, nice": DPLinearRegressor(solver=SkGD(sampling="nice"), max_iter=1e6),
    "sgd": DPLinearRegressor(solver=SGD(sampling_rate=1.0), max_iter=1e6),
    "sgd, multinomial": DPLinearClassifier(**CLASSES, solver="sgd", max_iter=1e5),
    "svrg": DPLinearRegressor(solver="svrg", max_iter=1e5),
    "compgd": DPLinearRegressor(solver="compgd", max_iter=1e6),
    "frank-wolfe": DPLinearRegressor(solver="frank-wolfe", **BALL, max_iter=1e5),
    "newton": DPLinearRegressor(solver="newton", max_iter=1e6),
}


def records():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100_000, 20))
    return np.asfortranarray(X), rng.integers(0, 3, len(X)).astype(float)


def fit_all(path):
    """Fit each model until the parent interrupts it; one line a model says how that went."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
    X, y = records()
    accountant = PrivacyAccountant.open(path)
    for name, model in MODELS.items():
        try:
            model.set_params(accountant=accountant).fit(X, y)
        except KeyboardInterrupt:
            how = "fitted" if hasattr(model, "coef_") else "stopped"
        else:
            how = "finished"
        print(name, how, len(accountant.entries()), sep="|", flush=True)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """Each fit's words, and the seconds from SIGINT until they came."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    accountant = PrivacyAccountant(epsilon=100.0, delta=1e-3, path=path, testing=True)
    search = os.pathsep.join(filter(None, sys.path))
    child = subprocess.Popen(
        [sys.executable, __file__, str(path)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": search},
    )  # fmt: skip
    found = {}
    try:
        for count, name in enumerate(MODELS):
            while len(accountant.entries()) <= count:  # charged: the solver begins
                assert child.poll() is None, f"{name} was not charged"
                time.sleep(0.02)
            time.sleep(0.3)
            asked = time.monotonic()
            hurry = threading.Timer(PATIENCE, child.kill)
            hurry.start()
            child.send_signal(signal.SIGINT)
            line = child.stdout.readline()
            hurry.cancel()
            if not line.startswith(f"{name}|"):
                break
            found[name] = line.strip().partition("|")[2], time.monotonic() - asked
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    return found


@pytest.mark.skipif(os.name == "nt", reason="no other process can send SIGINT here")
@pytest.mark.parametrize("name", MODELS)
def test_ctrl_c_ends_a_fit_soon_and_its_charge_stays(name, interrupted):
    assert name in interrupted, f"no answer in {PATIENCE} s, here or in a fit before"
    said, seconds = interrupted[name]
    assert said == f"stopped|{1 + list(MODELS).index(name)}"  # one entry a fit
    assert seconds < PATIENCE


@pytest.mark.parametrize(
    ("owner", "name", "convert"),
    [(_geometry_sums, "limbs", np.asarray), (csr_array, "tocsc", csr_array)],
    ids=["an iterate in limbs", "columns of sparse records"],
)
def test_what_a_handler_raises_in_a_kernel_goes_up(owner, name, convert, monkeypatch):
    """Handlers run in Python code that a kernel calls, and nothing can be raised through it."""

    class LeftError(BaseException):
        pass

    def leave(*_, **__):
        raise LeftError

    X, y = convert(np.eye(200, 3)), np.arange(200.0)
    model = DPLinearRegressor(solver="cd" if convert is csr_array else "newton", max_iter=50)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, leave)
        with pytest.raises(LeftError):
            model.fit(X, y)
    assert model.fit(X, y).n_features_in_ == 3  # nothing is left over for the next fit


def test_every_solver_is_interrupted():
    solvers = {name.partition(",")[0] for name in MODELS}
    assert solvers == set(SOLVERS)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")
def test_a_look_at_a_large_array_is_left_when_a_signal_comes():
    class LeftError(Exception):
        pass

    def handler(*_):
        raise LeftError

    X = np.zeros((20_000_000, 100), dtype=np.float32)  # pages of zeros are no memory
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(LeftError) as at:
            is_finite(X)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert any(entry.name == "is_finite" for entry in at.traceback)


if __name__ == "__main__":
    fit_all(sys.argv[1])
