"""The site's promises: every error has its cause and fix, its programs print what they say."""

import math
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from test_examples import blocks, rounded, run_text

from dpcd_sklearn import exceptions

CHECKOUT = Path(__file__).resolve().parent.parent
DOC = CHECKOUT / "doc"

pytestmark = pytest.mark.skipif(not DOC.is_dir(), reason="the documentation is not here")


def page(name):
    return (DOC / name).read_text(encoding="utf-8")


def test_every_exception_and_warning_has_its_cause_and_fix():
    """A heading with the class's name, and a link to it, below."""
    text = page("errors.rst")
    ours = [name for name, found in vars(exceptions).items() if isinstance(found, type)]
    assert len(ours) >= 6
    for name in ours:
        section = re.search(rf"^{name}\n\^+\n(.*?)(?=^\S+\n[\^-]+\n|\Z)", text, re.S | re.M)
        assert section, f"doc/errors.rst has no section {name}"
        assert re.search(rf":class:`~dpcd_sklearn\.(exceptions\.)?{name}`", section[1]), name
        assert len(section[1].split()) > 25, f"{name}: neither cause nor fix"


def test_what_the_errors_page_quotes_is_what_the_code_says():
    """Words of an error in italics stand in the package's source, up to what is left out."""
    source = "".join(
        re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8"))
        for path in (CHECKOUT / "dpcd_sklearn").rglob("*.py")
    )
    quoted = re.findall(r"^(?:   \* - )?\*([^*]+)\*", page("errors.rst"), flags=re.M)
    assert len(quoted) > 40
    foreign = {"Input X contains NaN"}  # scikit-learn says these
    missing = []
    for quote in set(quoted) - foreign:
        parts = [part.strip(" ;.,)(") for part in re.split(r"\.\.\.", quote)]
        if not any(part in source for part in parts if len(part) > 9):
            missing.append(quote)
    assert not missing


def test_raw_columns_print_what_the_quick_start_says(tmp_path, data_folder):
    """On the benchmark data's copy: raw columns, and an error near the plain model's, or less."""
    path = data_folder / "california_housing.npz"
    if not path.is_file():
        pytest.skip("california_housing.npz is not among the benchmark data")
    code = page("raw_columns.py").replace(
        "fetch_california_housing(return_X_y=True)",
        f"(a.astype(float) for _, a in sorted(__import__('numpy').load({str(path)!r}).items())"
        " if a.dtype.kind == 'f')",
    )
    printed, promised = run_text(code, tmp_path), page("raw_columns.txt")
    private, plain = map(float, re.match(r"R² (\S+), without privacy (\S+)", printed).groups())
    assert private > plain - 0.1 and plain == 0.591
    assert rounded(printed) == rounded(promised)


@pytest.mark.parametrize("package", ["diffprivlib", "opendp", "opacus", "statsmodels"])
def test_code_of_other_packages_runs_where_they_are_installed(package, tmp_path):
    """Ours on these pages are doctests; theirs is one program a page, which is Python at least."""
    (code,) = re.findall(
        r"^\.\. code-block:: python\n\n((?: {3}.*\n|\n)+)", page(f"coming_from/{package}.rst"), re.M
    )
    code = textwrap.dedent(code)
    compile(code, package, "exec")
    pytest.importorskip(package)
    script = tmp_path / "there.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "utf8", str(script)], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr


def test_every_page_with_code_to_run_is_among_the_doctests():
    with open(CHECKOUT / "pyproject.toml", "rb") as file:
        paths = tomllib.load(file)["tool"]["pytest"]["ini_options"]["testpaths"]
    run = {found for path in paths for found in CHECKOUT.glob(path)}
    generated = {"generated", "auto_examples", "_build"}
    pages = [p for p in DOC.rglob("*.rst") if not generated & set(p.relative_to(DOC).parts)]
    with_code = [p for p in pages if ">>> " in p.read_text(encoding="utf-8")]
    assert len(with_code) > 20
    assert [p for p in with_code if p not in run] == []


def test_no_page_types_a_table_of_results():
    """They are made from rows that benchmarks store; what a formula gives is checked here."""
    typed = set()
    for path in [*DOC.glob("*.rst"), *DOC.glob("guide/*.rst"), *DOC.glob("coming_from/*.rst")]:
        border = r"^=+(?: +=+)+$"
        for table in re.findall(rf"{border}.*?{border}(.*?){border}", page(path), re.M | re.S):
            if len(re.findall(r"(?<![\d.])\d*\.\d+", table)) > 3:
                typed.add(path.name)
    assert typed == {"epsilon.rst", "survival.rst"}  # the latter by tests/test_survival.py
    rows = re.findall(r"^([\d.]+) +([\d.]+) %  ", page("guide/epsilon.rst"), re.M)
    assert len(rows) == 4
    for epsilon, stated in rows:  # how sure someone undecided may become, rounded up
        sure, unit = 100 / (1 + math.exp(-float(epsilon))), 10 ** -len(stated.partition(".")[2])
        assert 0 <= float(stated) - sure < unit


def test_the_readme_and_the_guide_have_one_table():
    """That of the hospital: the README makes it in its first block, the guide in a file."""
    readme = run_path(CHECKOUT / "README.md", page("../README.md"))
    guide = run_path(DOC / "hospital.py", page("hospital.py"))
    pd.testing.assert_frame_equal(readme["stays"], guide["stays"])
    assert (readme["readmitted"] == guide["readmitted"]).all()
    assert f"stays of {guide['stays']['patient_id'].nunique():,} patients" in guide["__doc__"]


def run_path(path, text):
    """The names that a file, or the first block of a page, defines."""
    names = {}
    exec(compile(text if path.suffix == ".py" else blocks(text, "python")[0], path, "exec"), names)
    return names


def test_chapters_of_the_guide_are_one_to_three_screens():
    """About 250 to 900 words each; what nobody needs to fit a model stands behind the defaults."""
    long = {"recipes.rst"}  # the constants behind the defaults
    words = {path.name: len(path.read_text("utf-8").split()) for path in DOC.glob("guide/*.rst")}
    assert {name: n for name, n in words.items() if n > 1000}.keys() == long
    assert words["recipes.rst"] <= 2500
