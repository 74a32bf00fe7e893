"""Nine flaws of one line in the mechanisms, compiled, each caught by an audit release by release.

The sources are copied, every flaw is written into them beside the honest line, and what changed is
compiled once; a process that has imported the copy chooses a flaw and audits. Needs the checkout,
built in place, Cython and a C compiler: without them the tests are skipped.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
PRIVACY = "dpcd_sklearn/privacy"

CHOICE = """

cdef int FLAW = 0


def choose(int flaw):
    global FLAW
    FLAW = flaw
"""
# Shared by all coordinates of a release, or by all classes, once it was drawn.
SHARED = """

cdef int64_t[4] SHARED_NOISE  # coordinates of a class: three features, an intercept
cdef int N_DRAWN = 0


cdef void _renew() noexcept nogil:
    global N_DRAWN
    N_DRAWN = 0


cdef int64_t _drawn(NoiseSource noise, int bits) noexcept nogil:
    global N_DRAWN
    cdef int shared = 1 if FLAW == 4 else 4 if FLAW == 8 else 0
    if shared == 0 or N_DRAWN < shared:
        SHARED_NOISE[N_DRAWN % 4] = noise.gaussian(bits)
    N_DRAWN = N_DRAWN + 1
    return SHARED_NOISE[(N_DRAWN - 1) % (shared or 4)]
"""
FACTOR = ('{"replace_one": 2.0,', '{"replace_one": 1.0 if FLAW == 2 else 2.0,')
# file: pairs of an honest text, which occurs once, and the text with a flaw beside it
FLAWS = {
    "mechanisms/_units.pyx": [
        (
            "2.0**bits / noise_multiplier",
            "2.0**bits / (noise_multiplier * (0.5 if FLAW == 1 else 1.0))",
        ),
        FACTOR,
        (
            "SCORE_UNITS / self.eta * GUMBEL_ROUNDING",
            "SCORE_UNITS / self.eta * GUMBEL_ROUNDING"
            " * (0.5 if FLAW == 1 else 0.25 if FLAW == 6 else 1.0)",
        ),
        (
            "int(self.rate * 2**64) if self.rate < 1 else 0",
            "int((0.9 if FLAW == 9 else self.rate) * 2**64) if self.rate < 1 else 0",
        ),
    ],
    "mechanisms/_record_oracle.pyx": [
        ("paid.count -= 1", "paid.count -= 1; _renew()"),
        ("self._noise.gaussian(paid.bits)", "_drawn(self._noise, paid.bits)"),
    ],
    "sums/_dense_sums.pyx": [
        (
            "+= self._block_inverses[self._starts[k + 1] - 1]",
            "+= self._block_inverses[self._starts[k + 1] - 1] * (FLAW != 3)",
        ),
        (
            "n_rows, r, scale[width], question.limit)",
            "n_rows, r, scale[width], question.limit * (1 << 20 if FLAW == 3 else 1))",
        ),
        (
            "KERNELS.weigh(n_rows, weights, room.r + k * n_rows)",
            "KERNELS.weigh(n_rows, NULL if FLAW == 5 else weights, room.r + k * n_rows)",
        ),
        (
            "KERNELS.clip_norms(n_rows, self.n_outputs, norms, apart, question.clip, room.r)",
            "for k in range(self.n_outputs if FLAW == 7 else 0):\n"
            "            KERNELS.clip_norms(n_rows, 1, norms + k * apart, 0, question.clip,\n"
            "                               room.r + k * n_rows)\n"
            "        if FLAW != 7:\n"
            "            KERNELS.clip_norms(n_rows, self.n_outputs, norms, apart, question.clip,\n"
            "                               room.r)",
        ),
        (
            "            self._clip_tile(question, i0, n_rows, room)\n",
            "            self._clip_tile(question, i0, n_rows, room)\n"
            "            for k in range(self.n_outputs):\n"
            "                KERNELS.weigh(n_rows, weights if FLAW == 5 else NULL,\n"
            "                              room.r + k * n_rows)\n",
        ),
    ],
    "sums/_gradient_sums.pyx": [
        ("norms[i] += self._inverses[p]", "norms[i] += self._inverses[p] * (FLAW != 3)"),
        ("r + k * n_rows, scale[p], question.limit)",
         "r + k * n_rows, scale[p], question.limit * (1 << 20 if FLAW == 3 else 1))"),
        ("KERNELS.weigh(n_rows, weights, r + k * n_rows)",
         "KERNELS.weigh(n_rows, NULL if FLAW == 5 else weights, r + k * n_rows)"),
        (
            "KERNELS.clip_norms(n_rows, K, norms, 0, question.clip, r)",
            "KERNELS.clip_norms(n_rows, K, norms, 0, question.clip, r)\n"
            "            for k in range(K):\n"
            "                KERNELS.weigh(n_rows, weights if FLAW == 5 else NULL, r + k * n_rows)",
        ),
    ],
}  # fmt: skip

BUILD = """
import sys
sys.path.insert(0, ".")
import setup as kernels
from setuptools import setup
names = set(sys.argv.pop().split(","))
kernels.optimisation = lambda source, msvc: ["-O1"]
modules = [m for m in kernels.extensions() if m.name in names]
setup(name="flawed", ext_modules=modules, cmdclass={"build_ext": kernels.BuildKernels},
      script_args=["--quiet", "build_ext", "--inplace"])
"""

AUDIT = """
import importlib, json, os, sys
from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor
from dpcd_sklearn.inspection._audit import shape_of
from dpcd_sklearn.inspection import _release_audit
from dpcd_sklearn.inspection._release_audit import CHANGES, audit_releases
from dpcd_sklearn.solvers import SkGD
BALL = {"constraint": "l1_ball", "penalty": None, "fit_intercept": False}
SCALED = {"epsilon": 2.0, "feature_scale": 1.0}  # of so few records none is found
# A few updates share the budget of many: as much is told by each run, in a fraction of the time.
SOLVERS = {
    "cd": DPLinearRegressor(epsilon=2.0, solver="cd", max_iter=8),
    "gcd": DPLinearRegressor(epsilon=2.0, solver="gcd", max_iter=8),
    "skgd, add_remove": DPLinearRegressor(epsilon=2.0, solver="skgd", max_iter=8, delta=1e-6,
                                          neighboring="add_remove", n_public=1000),
    "skgd": DPLinearRegressor(epsilon=2.0, solver="skgd", max_iter=8),
    "blocks": DPLinearRegressor(epsilon=2.0, solver=SkGD("block"), max_iter=8),
    "sgd": DPLinearRegressor(**SCALED, solver="sgd", max_iter=5),
    "svrg": DPLinearRegressor(**SCALED, solver="svrg"),
    "compgd": DPLinearRegressor(**SCALED, solver="compgd", max_iter=8),
    "frank-wolfe": DPLinearRegressor(**SCALED, solver="frank-wolfe", **BALL),
    "classes": DPLinearClassifier(**SCALED, classes=[0, 1, 2], solver="skgd", max_iter=8),
    "classes, cd": DPLinearClassifier(**SCALED, classes=[0, 1, 2], solver="cd", max_iter=8),
    "classes, gcd": DPLinearClassifier(**SCALED, classes=[0, 1, 2], solver="gcd", max_iter=8),
    "newton": DPLinearClassifier(**SCALED, classes=[0, 1, 2], solver="newton"),
}
# kinds that compiled code sums or draws, or has the units of
KINDS = {"coordinates of gradients", "gradients", "gradients of samples", "greedy choices",
         "last iterate", "Newton gradients"}
modules = [importlib.import_module(name) for name in sys.argv[1].split(",")]
for flaw, names, changes, confidence, n_runs in json.loads(sys.argv[2]):
    if os.fork():  # so that no flaw leaves anything behind for the next one
        assert os.wait()[1] == 0
        continue
    for module in modules:
        module.choose(flaw)
    if changes is not None:
        _release_audit.CHANGES = {name: CHANGES[name] for name in changes}
    found = {}
    for name in names:
        made_up = shape_of(SOLVERS[name], None, None, n_samples=1000, n_features=3)
        rows, _, _ = audit_releases(SOLVERS[name], made_up, n_runs=n_runs, confidence=confidence,
                                    only=KINDS)
        found[name] = any(row.verdict == "contradiction" for row in rows), str(rows)
    print(json.dumps(found), flush=True)
    os._exit(0)
"""

GAUSSIAN = ["cd", "skgd", "blocks", "sgd", "compgd", "classes"]
VECTORS = ["skgd", "blocks", "sgd", "compgd", "classes"]
# Flaw, the records that show it best, and the solvers that it touches: the first is asked with
# these records in every run, the others in slow ones, whose audits look for them among all.
CASES = {
    "half the noise": (1, "many features", ["cd", *VECTORS, "classes, cd"]),
    "half the noise of greedy steps": (1, "all features", ["gcd", "frank-wolfe", "classes, gcd"]),
    "half the noise under add_remove": (1, "all features", ["skgd, add_remove"]),
    "factor 1 for replace_one": (
        2, "many features", [*GAUSSIAN, "gcd", "frank-wolfe", "newton"]
    ),
    "unclipped intercept": (
        3, "many features", ["cd", "gcd", "skgd", "blocks", "sgd", "svrg", "compgd"]
    ),
    "one draw for a block": (4, "opposite signs", [*VECTORS, "svrg"]),
    "clip before weight": (5, "many features", [*VECTORS, "svrg"]),
    "a quarter of the Gumbel scale": (6, "many features", ["frank-wolfe", "gcd"]),
    "a clip for each class": (7, "other signs", ["classes"]),
    "one noise for all classes": (8, "one feature", ["classes"]),
    "larger samples": (9, "other signs", ["sgd"]),
}  # fmt: skip


def flawed_source(name, source):
    """The source with every flaw in it; complains if the honest text is not there once."""
    for honest, flawed in FLAWS[name]:
        assert source.count(honest) == 1, f"{name} has {source.count(honest)} times: {honest}"
        source = source.replace(honest, flawed)
    return source + CHOICE + (SHARED if "_drawn(" in source else "")


@pytest.fixture(scope="module")
def flawed(tmp_path_factory):
    """A copy of the package with flaws; a function that runs audits in it."""
    if importlib.util.find_spec("Cython") is None or not shutil.which("cc"):
        pytest.skip("needs Cython and a C compiler")
    if not list((CHECKOUT / PRIVACY / "mechanisms").glob("_oracle.*.so")):
        pytest.skip("the checkout is not built in place")
    folder = tmp_path_factory.mktemp("flawed")
    shutil.copytree(CHECKOUT / "dpcd_sklearn", folder / "dpcd_sklearn")
    shutil.copy(CHECKOUT / "setup.py", folder)
    for name in FLAWS:
        path = folder / PRIVACY / name
        path.write_text(flawed_source(name, path.read_text(encoding="utf-8")), encoding="utf-8")
    modules = ["dpcd_sklearn.privacy." + name[:-4].replace("/", ".") for name in FLAWS]
    environment = {**os.environ, "PYTHONPATH": str(folder)}

    def run(*command):
        command = [sys.executable, "-c", *command]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    run(BUILD, ",".join(modules))

    def audits(wanted):
        found = run(AUDIT, ",".join(modules), json.dumps(wanted)).splitlines()
        assert len(found) == len(wanted), found
        return [json.loads(line) for line in found]

    return audits


def unnoticed(flawed, cases, changes_of):
    """Findings of audits that do not see a flaw, by the flaw and the solver."""
    found = {}
    for n_runs in (60, 600):  # most flaws show in a few runs; what they miss is audited at length
        wanted = [
            (CASES[name][0], solvers, changes_of(name), 0.95, n_runs)
            for name, solvers in cases.items()
        ]
        found = {
            (name, solver): text
            for name, rows in zip(cases, flawed(wanted), strict=True)
            for solver, (contradicts, text) in rows.items()
            if not contradicts
        }
        cases = {name: [s for n, s in found if n == name] for name, _ in found}
        if not found:
            break
    return found


def check_honest(flawed, solvers, changes=None):
    (found,) = flawed([(0, solvers, changes, 1 - 1e-6, 150)])
    assert not any(contradicts for contradicts, _ in found.values()), found


def test_a_flaw_is_caught_in_the_first_solver_that_it_touches(flawed):
    first = {name: solvers[:1] for name, (*_, solvers) in CASES.items()}
    assert unnoticed(flawed, first, lambda name: [CASES[name][1]]) == {}
    check_honest(flawed, ["cd"], ["many features"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if len(CASES[name][2]) > 1])
def test_a_flaw_is_caught_in_every_other_solver_that_it_touches(flawed, name):
    assert unnoticed(flawed, {name: CASES[name][2][1:]}, lambda _: None) == {}


@pytest.mark.slow
def test_the_copy_without_a_flaw_is_not_contradicted_in_the_other_solvers(flawed):
    check_honest(
        flawed,
        ["skgd", "gcd", "classes", "blocks", "sgd", "compgd", "svrg", "frank-wolfe", "newton"],
    )
