"""The reviewer's path (``privacy/proofs/README.md``) names every file, with lines that are true.

``python tests/test_reviewer_path.py`` writes the figures anew; the words are for people to write.
"""

import importlib.util
import math
import re
import sys
from pathlib import Path

import numpy as np

from dpcd_sklearn import DPLassoCD, PrivacyAccountant

CHECKOUT = Path(__file__).resolve().parent.parent
PRIVACY = CHECKOUT / "dpcd_sklearn" / "privacy"
README = PRIVACY / "proofs" / "README.md"
SOURCES = {
    path.relative_to(PRIVACY).as_posix(): path
    for path in PRIVACY.rglob("*")
    if path.suffix in {".py", ".pyx", ".pxd", ".h"} and path.name != "__init__.py"
}
DRIFT = 0.04
_spec = importlib.util.spec_from_file_location("count", CHECKOUT / ".ci" / "count.py")
count = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(count)

ROW = re.compile(r"^\| `([\w./*]+)` \| ([\d,]+) \|(.*)\|$", re.MULTILINE)
TOTAL = re.compile(r"\*\*([\d,]+) lines\*\* (in the trunk|in branches|of kernels|beside the path)")
SECTIONS = {"in the trunk": "The trunk", "in branches": "Branches"}
SECTIONS |= {"of kernels": "Kernels", "beside the path": "Beside"}
MOST_OF_TRUNK = 2_250


def files_of(pattern):
    """The files of a row: `_oracle.*` are a .pyx and its .pxd."""
    return sorted(name for name in SOURCES if Path(name).match(pattern))


def counted(names):
    return sum(count.lines_of(SOURCES[name])[0] for name in names)


def section_of(text, title):
    return re.search(rf"^## {title}[^\n]*\n([\s\S]*?)(?=^## |\Z)", text, re.MULTILINE)[1]


def number(text):
    return int(text.replace(",", ""))


def drifted(stated, true):
    return abs(stated - true) > max(3, DRIFT * true)


def stale_figures(text):
    """Figures of a page that are off by more than a few percent, and files that it forgets."""
    seen = []
    for total, kind in TOTAL.findall(text):
        rows = ROW.findall(section_of(text, SECTIONS[kind]))
        names = [name for pattern, _, _ in rows for name in files_of(pattern)]
        seen += names
        if drifted(number(total), counted(names)):
            yield f"{total} lines {kind}, but there are {counted(names)}"
        for pattern, stated, _ in rows:
            if not files_of(pattern):
                yield f"{pattern} does not exist"
            elif drifted(number(stated), counted(files_of(pattern))):
                yield f"{pattern}: {stated} lines, but there are {counted(files_of(pattern))}"
    yield from (
        f"{name} is named {seen.count(name)} times" for name in SOURCES if seen.count(name) != 1
    )


def missing_tests(text):
    """Tests that a page names and that do not exist, as `file.py::test_name`."""
    for file, test in re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", text):
        path = CHECKOUT / "tests" / file
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        if not re.search(rf"^def {test}\(" if test else "^def test_", source, re.MULTILINE):
            yield f"{file}::{test} does not exist"


def with_figures(text):
    """The page with the figures of today."""

    def row(match):
        return f"| `{match[1]}` | {counted(files_of(match[1])):,} |{match[3]}|"

    def total(match):
        rows = ROW.findall(section_of(text, SECTIONS[match[2]]))
        names = [name for pattern, _, _ in rows for name in files_of(pattern)]
        return f"**{counted(names):,} lines** {match[2]}"

    return TOTAL.sub(total, ROW.sub(row, text))


def page():
    return README.read_text(encoding="utf-8")


# ---- the page as it stands ----------------------------------------------------------------------


def test_the_path_names_every_file_once_with_its_lines():
    assert len(TOTAL.findall(page())) == len(SECTIONS)
    assert not list(stale_figures(page()))


def files_under(title):
    """The files of a section, or of a branch."""
    text = page()
    if title not in SECTIONS.values():  # a branch begins with its name, in italics
        text = section_of(text, "Branches")
        text = re.split(r"^\*(?=\w)", text[text.index(f"*{title}*") + 1 :], flags=re.MULTILINE)[0]
    else:
        text = section_of(text, title)
    return {name for pattern, _, _ in ROW.findall(text) for name in files_of(pattern)}


def test_a_dense_default_fit_runs_through_the_trunk_the_storage_and_one_branch(tmp_path):
    rng, seen = np.random.default_rng(0), set()
    X = rng.uniform(-1, 1, (2000, 5))
    stated = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1), "feature_scale": 0.6}
    accountant = PrivacyAccountant(1.0, 1e-6, path=tmp_path / "a.ledger")
    model = DPLassoCD(alpha=0.01, delta=1e-6, accountant=accountant, **stated)

    def watch(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if PRIVACY in path.parents and frame.f_code.co_name != "<module>":
            seen.add(path.relative_to(PRIVACY).as_posix())

    sys.setprofile(watch)
    try:
        model.fit(X, np.tanh(X[:, 0]))
    finally:
        sys.setprofile(None)
    trunk = files_under("The trunk")
    assert counted(trunk) <= MOST_OF_TRUNK
    branches = files_under("Storage of the ledger") | files_under("Second order")
    assert model.solver_ == "newton" and seen & branches
    assert seen <= trunk | branches
    assert {name for name in trunk if name.endswith(".py")} - seen <= {"noise/_exact_gaussian.py"}


def test_every_test_that_the_path_names_exists():
    assert len(re.findall(r"`test_\w+\.py::", page())) >= 15
    assert not list(missing_tests(page()))


def test_the_path_leads_past_every_proof():
    proofs = {path.name for path in README.parent.glob("*.md")} - {README.name}
    assert proofs <= set(re.findall(r"\[[^]]*\]\((\w+\.md)\)", section_of(page(), "Proofs")))


# ---- the checks can fail ------------------------------------------------------------------------


def test_figures_that_drift_and_files_that_are_forgotten_are_noticed():
    file, stated, _ = ROW.search(page()).groups()
    more = page().replace(f"`{file}` | {stated} |", f"`{file}` | {number(stated) * 2 + 9} |")
    assert list(stale_figures(more)) and with_figures(more) == with_figures(page())
    assert list(stale_figures(ROW.sub("", page(), count=1)))
    total = TOTAL.search(page())[1]
    more = math.ceil(number(total) * (1 + 2 * DRIFT))
    assert list(stale_figures(page().replace(f"**{total} lines**", f"**{more} lines**")))


def test_a_test_that_does_not_exist_is_noticed():
    assert list(missing_tests("`test_costs.py::test_nothing_at_all`, `test_nowhere.py`"))
    assert not list(missing_tests("`test_costs.py::test_every_event_has_a_row_in_both_tables`"))


if __name__ == "__main__":
    README.write_text(with_figures(page()), encoding="utf-8")
