"""Fixtures and settings that every test may use.

Environment variables
---------------------
DPCD_DATA
    Folder of the benchmark data; default ``../shared/data`` beside the checkout. Tests that need
    a file which is not there are skipped and say so.
DPCD_TEST_SEEDS
    Seeds that ``global_random_seed`` takes: "42" (one), "0-9" (a range); default "0".
DPCD_TAPE_PAIRS
    Pairs of data sets that the slow tests of the tape compare in all; default 100000, which takes
    about five hours of one core.
DPCD_EXPLORE
    "1" draws new examples, and noise from the operating system's own entropy, in every run: to look
    for what the usual run can't see. Without it a test passes or fails for good.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from entropy import replace_entropy
from hypothesis import settings
from seeds import pytest_generate_tests  # noqa: F401

from dpcd_sklearn import PrivacyAccountant
from dpcd_sklearn.inspection import _release_audit
from dpcd_sklearn.privacy.ledger import _files
from dpcd_sklearn.utils import _warnings

# Words that come once a process do not come here, where many tests fit with a large epsilon and no
# ledger; the tests of these warnings forget it.
_warnings.said |= {
    "score", "second charge", "uncounted search", "large epsilon", "large delta"
}  # fmt: skip
_files._warned_of_place = True

EXPLORES = os.environ.get("DPCD_EXPLORE", "0") not in ("", "0")

# Nowhere a deadline: machines are shared.
settings.register_profile("same examples", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if EXPLORES else "same examples")

os.environ.setdefault("MPLBACKEND", "Agg")  # no window, wherever the tests run

CHECKOUT = Path(__file__).resolve().parent.parent


# A charge waits until it is on the disk. Ledgers without a path, of which tests make thousands,
# lie in memory here, where there is room; those of ``tmp_path`` stay on the disk.
MEMORY = Path("/dev/shm")
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2**30 and "TMPDIR" not in os.environ:
    tempfile.tempdir = str(MEMORY)

# Each process of the tests has a folder of its own: whoever makes a temporary ledger asks of each
# folder of another process beside it whether that process lives.
os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="dpcd-tests-")


@atexit.register
def _remove_temporary_files(folder=tempfile.tempdir, process=os.getpid()):  # noqa: B008
    if os.getpid() == process:  # not at the end of a forked child
        shutil.rmtree(folder, ignore_errors=True)


STREAM = None if EXPLORES else replace_entropy()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if STREAM is not None:
        STREAM.restart(item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    if STREAM is None or fixturedef.scope == "function":
        return (yield)
    # Which test asks first depends on how tests are spread over processes.
    with STREAM.within(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}"):
        return (yield)


@pytest.fixture(autouse=True)
def _figures_are_closed():
    """Matplotlib warns of many open figures, whose tests they are."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture
def uncharged():
    """A ledger with room for any fit, which the test must leave without an entry."""
    accountant = PrivacyAccountant(1e3, 1e-2)
    yield accountant
    assert accountant.entries() == []


@pytest.fixture
def one_pair(monkeypatch):
    """Audits of gradients look at one of the ways to differ that show most, and at none twice."""
    name = "many features"
    monkeypatch.setattr(_release_audit, "CHANGES", {name: _release_audit.CHANGES[name]})
    monkeypatch.setattr(_release_audit, "_BETTER", 1)


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the benchmark data, which is not part of the package."""
    folder = Path(os.environ.get("DPCD_DATA") or CHECKOUT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("the benchmark data is not here; DPCD_DATA may name its folder")
    return folder


@pytest.fixture(scope="session")
def benchmark_data(data_folder):
    """A function that returns X and y of a dense benchmark set by its name, or skips."""

    def load(name):
        path = data_folder / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"{path.name} is not among the benchmark data")
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["X"], arrays["y"]

    return load
