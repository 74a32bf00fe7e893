"""The benchmark of peers: its audit can fail, its files have benchopt's form, it prints a table."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from forks import run_here
from tables import table

PEERS = Path(__file__).resolve().parent.parent / "benchmarks" / "peers"
SOLVERS = sorted(path.stem for path in (PEERS / "solvers").glob("*.py"))

if not SOLVERS:
    pytest.skip("the benchmarks are not here", allow_module_level=True)


@pytest.fixture
def peers(monkeypatch):
    """The modules run and worker, which are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(PEERS))
    before = set(sys.modules)
    import run
    import worker

    yield run, worker
    for name in set(sys.modules) - before:
        if name in ("run", "worker", "benchopt") or name.startswith(
            ("benchmark_utils", "of_peers")
        ):
            del sys.modules[name]


def releases(rng, shift, n=4000):
    noise = rng.standard_normal((n, 3))
    return [{"coef": list(row[:2] + shift), "intercept": row[2]} for row in noise]


def test_the_audit_contradicts_what_spends_too_much_and_nothing_else(peers):
    """Two Gaussians a distance μ = √2·shift apart; μ = 4.2 is (12, 1e-6) or more."""
    run, _ = peers
    rng = np.random.default_rng(0)
    assert run.bound_on_epsilon(releases(rng, 0.0), releases(rng, 0.0), 1e-6) < 0.3
    assert run.bound_on_epsilon(releases(rng, 0.0), releases(rng, 0.15), 1e-6) < 1.0  # (1, 1e-6)
    assert run.bound_on_epsilon(releases(rng, 0.0), releases(rng, 3.0), 1e-6) > 3.0
    assert run.bound_on_epsilon(releases(rng, 3.0), releases(rng, 0.0), 1e-6) > 3.0


@table("kind", ["replace_one", "add_remove"])
@table("classify", [False, True])
def test_audited_data_sets_are_neighbours(kind, classify, peers):
    run, _ = peers
    (X, y), (other_X, other_y) = run.neighbouring(kind, 60, classify)
    same = min(len(X), len(other_X), 59)
    assert np.array_equal(X[:same], other_X[:same]) and np.array_equal(y[:same], other_y[:same])
    assert len(other_X) == 60 and len(X) == (60 if kind == "replace_one" else 59)
    assert np.abs(other_X).max() <= 1 and set(np.unique(y)) <= {0, 1} if classify else True


@table("name", SOLVERS)
def test_a_solver_has_the_form_of_benchopt_and_says_what_its_neighbours_are(name, peers):
    _, worker = peers
    solver = worker.load(f"solvers/{name}.py", "Solver")
    assert solver.name and solver.requirements and solver.__doc__
    assert solver.neighbors in ("replace_one", "add_remove")
    assert all(
        callable(getattr(solver, method)) for method in ("set_objective", "run", "get_result")
    )
    if solver.environment is not None:
        stated = (PEERS / "requirements" / f"{solver.environment}.txt").read_text().split()
        of_class = {line.removeprefix("pip::") for line in solver.requirements}
        assert of_class <= set(stated)


def test_a_sum_of_step_functions_is_scored_and_audited_by_its_margins(peers):
    run, worker = peers
    from benchmark_utils import margins

    cuts, steps = [[-0.5, 0.5], [0.0, np.inf]], [[1, 2, 3], [0, 9, 9]]
    model = {"intercept": 0.5, "cuts": cuts, "steps": steps}
    X = np.array([[-1.0, -0.1], [-0.5, 0.0], [0.5, 1.0]])  # a record on a cut is above it
    np.testing.assert_array_equal(margins(X, **model), [1.5, 11.5, 12.5])
    np.testing.assert_array_equal(run.numbers(model), [1.5, 11.5, 12.5])
    objective = worker.load("objective.py", "Objective")()
    objective.set_data(X, margins(X, **model), X, margins(X, **model), ([-1, -1], [1, 1]), (0, 20))
    assert objective.evaluate_result(**model)["error"] == 0.0


def test_the_page_has_the_rows_that_are_stored(peers):
    run, _ = peers
    doc = PEERS.parent.parent / "doc"
    if not doc.is_dir():
        pytest.skip("the documentation is not here")
    page = (doc / "peers.rst").read_text(encoding="utf-8")
    shown = set(re.findall(r":file: generated/peers/(\w+)\.csv", page))
    assert shown == {re.sub(r",? ", "_", table) for table, _, _ in run.stored()}
    text = page + (doc / "index.rst").read_text(encoding="utf-8")
    roles = [tuple(role.split(" / ")) for role in re.findall(r":peer:`([^`]+)`", text)]
    assert len(roles) > 5 and set(roles) <= set(run.stored())


def test_a_table_of_solvers_without_environments_is_printed():
    asked = "--quick --runs 2 --audits 60 --solvers adassp tukey_em".split()
    printed = run_here(PEERS / "run.py", *asked, ignored=[""])
    audits, results = printed.split("\n\n", 1)
    assert re.search(r"^AdaSSP +regression +add_remove +\d\.\d\d +\d\.\d\d +60$", audits, re.M)
    assert re.search(r"^AdaSSP +classification left out: regression only$", audits, re.M)
    assert re.search(r"^diabetes: n = 331, p = 10, ε = 1; 2 fits$", results, re.M)
    assert re.search(r"^no privacy +0\.6\d+ +0$", results, re.M)
    assert re.search(r"^TukeyEM +too few records for its test to pass$", results, re.M)
    error = float(re.search(r"^AdaSSP +(\S+)", results, re.M)[1])
    assert 0.5 < error < 5
