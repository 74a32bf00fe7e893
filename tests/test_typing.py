"""A user's script passes `mypy --strict`, and mypy knows what its calls return.

scikit-learn has no types of its own, so a user of it silences that one import; nothing else is
silenced, and what is promised stands as ``assert_type`` in the script itself.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from forks import run_here

import dpcd_sklearn

pytest.importorskip("mypy", reason="mypy, of the extra test, reads the script")
pytest.importorskip("numpy", minversion="2.2", reason="before, ndarray has no default types")

SETTINGS = "[mypy]\nstrict = true\n[mypy-sklearn.*]\nignore_missing_imports = true\n"

SCRIPT = """
from pathlib import Path
from typing import assert_type

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLinearClassifier,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.inspection import FitPlan, PrivacyReport, audit, find_leaks, plan
from dpcd_sklearn.losses import Huber
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV, find_budget
from dpcd_sklearn.penalties import Box, L1Ball
from dpcd_sklearn.pipeline import PrivatePipeline, make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.solvers import GCD, Newton, SkGD

rng = np.random.default_rng(0)
X = rng.uniform(size=(1000, 3))
y = X.sum(axis=1)
label = y > 1.5


def fit_and_predict() -> float:
    model = DPRidgeSkGD(alpha=1.0, epsilon=1.0, feature_bounds=(0, 1), target_bounds=(0, 3))
    assert_type(model.fit(X, y), DPRidgeSkGD)
    assert_type(model.predict(X), np.ndarray)
    assert_type(model.coef_, np.ndarray)
    assert_type(model.privacy_spent_.epsilon, float)
    assert_type(model.planned_event(1000, 3).neighboring, str)
    classifier = DPLogisticGCD(epsilon=1.0, classes=[False, True]).fit(X, label)
    assert_type(classifier, DPLogisticGCD)
    assert_type(classifier.predict_proba(X), np.ndarray)
    assert_type(classifier.decision_function(X), np.ndarray)
    assert_type(classifier.classes_, np.ndarray)
    return model.score(X, y) + classifier.score(X, label)


def state_solvers() -> None:
    DPLinearRegressor(loss=Huber(1.5), solver=SkGD(block_size=2)).fit(X, y)
    DPLinearRegressor(penalty=Box(0.0, 1.0), solver="cd", max_iter=3).fit(X, y)
    DPLinearRegressor(constraint=L1Ball(2.0), penalty=None).fit(X, y)
    DPLinearClassifier(solver=GCD(block_size=2), classes=[0, 1]).fit(X, label)
    told = DPLinearRegressor(penalty=None, solver=Newton(), inference=True).fit(X, y)
    assert_type(told.confidence_interval(0.9), np.ndarray)
    print(told.summary())


def spend(path: Path) -> str:
    with PrivacyAccountant(epsilon=4.0, delta=1e-6, path=path) as budget:
        model = DPLassoCD(alpha=0.1, epsilon=1.0, delta=1e-7, accountant=budget)
        try:
            model.fit(X, y)
        except BudgetExceededError as error:
            return str(error)
        assert_type(budget.remaining(), float)
        assert_type(budget.cost(model, 1000, 3).epsilon, float)
        budget.verify()
        epsilon, delta = budget.spent()
        return f"{epsilon:.2f} at {delta:g}, {len(budget.entries())} entries"


def pipelines() -> None:
    scaled = make_pipeline(BoundsScaler((0.0, 1.0)), DPLassoCD(epsilon=1.0)).fit(X, y)
    print(scaled.predict(X))
    steps = DPStandardScaler(), DPRidgeSkGD()
    assert_type(make_private_pipeline(*steps, epsilon=1.0).fit(X, y), PrivatePipeline)
    PrivatePipeline([("model", DPRidgeSkGD())], epsilon=1.0, shares={"model": 1.0}).fit(X, y)


def searches(budget: PrivacyAccountant) -> None:
    grid = {"alpha": [0.01, 0.1]}
    lasso = DPLassoCD(target_bounds=(0, 3))
    search = PrivateSearchCV(lasso, grid, epsilon=1.0, accountant=budget)
    assert_type(search.fit(X, y), PrivateSearchCV)
    assert_type(search.predict(X), np.ndarray)
    scorer = make_private_scorer("r2", epsilon=0.1, target_bounds=(0, 3))
    GridSearchCV(lasso, grid, cv=KFold(2), scoring=scorer, error_score="raise").fit(X, y)
    assert_type(find_budget(lasso, 1000, 3, target=-2.0, n_repeats=3), float)


def look(folder: Path, budget: PrivacyAccountant) -> None:
    model = DPRidgeSkGD(epsilon=1.0, accountant=budget).fit(X, y)
    report = PrivacyReport(model, vouched_by="nobody", date="2026-01-31")
    assert_type(report.to_markdown(), str)
    report.save(folder / "report.html")
    assert_type(plan(model, 1000, 3), FitPlan)
    short = DPRidgeSkGD(feature_scale=1.0, target_bounds=(0, 3), max_iter=2)
    assert_type(audit(short, n_samples=200, n_features=3, n_runs=100).passed, bool)
    print(find_leaks(model))


def everything(folder: Path) -> None:
    budget = PrivacyAccountant(epsilon=9.0, delta=1e-5)
    state_solvers()
    print(spend(folder / "spent.ledger"))
    pipelines()
    searches(budget)
    look(folder, budget)
    print(fit_and_predict())


if __name__ == "__main__":
    everything(Path())
"""


def mypy(folder, script):
    """The words of mypy on a script, with the package found where it is imported from."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    (folder / "mypy.ini").write_text(SETTINGS, encoding="utf-8")
    home = Path(dpcd_sklearn.__file__).parent.parent
    options, environment = [], dict(os.environ)
    environment.pop("MYPYPATH", None)
    if home.name != "site-packages":  # a checkout, whose own files are not what is asked about
        environment["MYPYPATH"] = str(home)
        options.append("--follow-imports=silent")
    command = [sys.executable, "-m", "mypy", "--config-file=mypy.ini", "--cache-dir=cache"]
    done = subprocess.run(
        [*command, *options, "script.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


MISTAKES = {
    "DPLassoCD(epsilon='large')": "arg-type",
    "DPLassoCD(epsilom=1.0)": "call-arg",
    "GCD(rules=1), BoundsScaler(bound=1), PrivateSearchCV(DPLassoCD(), {}, k=1)": "call-arg",
    "DPLassoCD(neighboring='add')": "arg-type",
    "assert_type(DPLassoCD().predict(X), list[float])": "assert-type",
    "PrivacyAccountant(1.0, 1e-6).spend()": "attr-defined",
    "GCD(block_size='two')": "arg-type",
}


def test_a_users_script_passes_strict_type_checks_and_mistakes_below_it_are_found(tmp_path):
    """One run of mypy: all that it complains of are the mistakes, which are after the script."""
    code, said = mypy(tmp_path, SCRIPT + "\n".join(MISTAKES))
    assert code == 1
    first = len(SCRIPT.splitlines()) + 1
    complaints = re.findall(r"^script.py:(\d+): error: .*\[(\S+)\]$", said, re.MULTILINE)
    lines = {int(line) for line, _ in complaints}
    assert lines == set(range(first, first + len(MISTAKES))), said
    for line, complaint in enumerate(MISTAKES.values(), start=first):
        assert (str(line), complaint) in complaints, said


def test_the_script_that_is_checked_runs(tmp_path, monkeypatch):
    """Types that a call denies would promise nothing."""
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    printed = run_here(tmp_path / "script.py", ignored=[""])
    assert float(printed.splitlines()[-1]) < 2.0, printed
    assert (tmp_path / "report.html").is_file() and (tmp_path / "spent.ledger").is_file()
