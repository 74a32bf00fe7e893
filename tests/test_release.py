"""A release promises of itself: one version, a citation, and an sdist that holds every file.

Workflows and the recipe can't be run here; what can be compared with pyproject.toml is.
"""

import csv
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpcd_sklearn

yaml = pytest.importorskip("yaml", reason="PyYAML, of the extra test, reads the workflows")

CHECKOUT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(
    not (CHECKOUT / "CITATION.cff").is_file(), reason="the checkout is not here"
)

# In the order of the paper's sentences.
COMPARED = [
    *(("california_housing", name) for name in ("dpcd_sklearn", "no privacy", "DP-EBM", "DP-SGD")),
    ("california_housing", "diffprivlib"),
    *(("diabetes", name) for name in ("dpcd_sklearn", "no privacy", "DP-SGD")),
    *(("breast_cancer", name) for name in ("dpcd_sklearn", "DP-SGD")),
]
SEARCHED = ["California housing", "absurd values", "1"]


def read(name):
    return (CHECKOUT / name).read_text(encoding="utf-8")


def pyproject():
    return tomllib.loads(read("pyproject.toml"))


def in_yaml(name):
    return yaml.safe_load(read(name))


def lower_bounds(requirements):
    """The oldest version of each package, as a tuple, of requirements like "numpy>=2.0,<3"."""
    found = (re.match(r"([\w-]+)\s*>=([\d.]+)", requirement) for requirement in requirements)
    return {m[1].lower(): tuple(map(int, m[2].split("."))) for m in found if m}


# --- the version ------------------------------------------------------------------------------


def versions():
    """The version as each place states it."""
    yield "pyproject.toml", pyproject()["project"]["version"]
    yield "CITATION.cff", in_yaml("CITATION.cff")["version"]
    yield "conda/recipe.yaml", in_yaml("conda/recipe.yaml")["context"]["version"]
    yield "CHANGELOG.md", re.search(r"^## \[([^]]+)\]", read("CHANGELOG.md"), re.M)[1]
    yield "doc/citation.rst", re.search(r"version = \{([^}]+)\}", read("doc/citation.rst"))[1]
    yield "what is installed", dpcd_sklearn.__version__


def test_every_place_states_the_same_version():
    stated = dict(versions())
    assert len(set(stated.values())) == 1, stated


def test_the_changelog_of_a_release_fits_a_screen():
    """Its details, and their figures, belong to the diary, which it names."""
    releases = re.split(r"^## ", read("CHANGELOG.md"), flags=re.M)[1:]
    assert [r.partition("]")[0] for r in releases if r.count("\n") > 45] == []
    assert "doc/history.md" in releases[0] and (CHECKOUT / "doc" / "history.md").is_file()


def test_figures_of_the_paper_are_those_of_the_stored_rows():
    def rows(name):
        with (CHECKOUT / "benchmarks" / name).open(newline="", encoding="utf-8") as lines:
            return list(csv.reader(lines))[1:]

    peers = {tuple(row[:3]): float(row[3]) for row in rows("peers/results.csv")}
    ways = {row[3]: float(row[4]) for row in rows("search.csv") if row[:3] == SEARCHED}
    figures = [peers[table, solver, "error"] for table, solver in COMPARED]
    figures += [ways[way] for way in ("search", "default", "best")]
    text = read("paper/paper.md")
    text = text[text.index("With defaults, ") :].partition("\n\n")[0]
    assert re.findall(r"\d\.\d{2,}", text) == [f"{figure:.3g}" for figure in figures]


# --- the sdist --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def in_sdist(tmp_path_factory):
    """The files of the sdist, listed by setuptools without building anything."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("egg")
    command = [sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base", str(folder)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (listed,) = folder.glob("*.egg-info/SOURCES.txt")
    return set(listed.read_text(encoding="utf-8").splitlines())


def test_the_sdist_holds_whatever_the_repository_holds(in_sdist):
    if not (CHECKOUT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    tracked = {name for name in listed.stdout.split("\0") if (CHECKOUT / name).is_file()}
    assert tracked - in_sdist <= {".gitignore"}


# --- workflows and recipe ---------------------------------------------------------------------


def test_python_versions_agree_in_all_places():
    project = pyproject()["project"]
    versions = [
        name.rpartition(" ")[2] for name in project["classifiers"] if re.search(r":: 3\.\d+$", name)
    ]
    assert project["requires-python"] == f">={versions[0]}"
    wheels = [f"cp{version.replace('.', '')}-*" for version in versions]
    assert pyproject()["tool"]["cibuildwheel"]["build"] == wheels
    matrix = in_yaml(".github/workflows/tests.yml")["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"] == versions
    whole = in_yaml(".github/workflows/tests.yml")["jobs"]["whole"]["strategy"]["matrix"]
    assert whole["python"] == versions[:1]
    assert f"py{versions[0].replace('.', '')}" == pyproject()["tool"]["ruff"]["target-version"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_can_be_read_and_says_that_it_was_never_run(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# UNTESTED")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert True in workflow, "YAML 1.1 reads the key `on` as true"
    for job in workflow["jobs"].values():
        assert {"runs-on", "steps"} <= set(job)
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
    for script in re.findall(r"\.ci/\w+(?:\.py)?", text):
        assert (CHECKOUT / script).is_file(), script
    assert "http" not in text, "addresses of indexes are variables of the repository"


def test_builds_in_workflows_and_in_the_recipe_ask_for_what_pyproject_asks_for():
    builds = lower_bounds(pyproject()["build-system"]["requires"])
    for name in ("tests", "nightly"):
        installed = re.findall(r'"([\w-]+>=[\d.]+)"', read(f".github/workflows/{name}.yml"))
        assert lower_bounds(installed) == builds, name
    recipe = in_yaml("conda/recipe.yaml")["requirements"]
    host = [line.replace(" ", "", 1) for line in recipe["host"] if isinstance(line, str)]
    assert builds.items() <= lower_bounds(host).items()
    run = {line.replace(" ", "", 1) for line in recipe["run"]}
    assert run - {f"python{pyproject()['project']['requires-python']}"} == set(
        pyproject()["project"]["dependencies"]
    )


def test_the_oldest_versions_that_are_tested_are_the_oldest_that_are_admitted():
    bounds = lower_bounds(pyproject()["project"]["dependencies"])
    pins = dict(re.findall(r"'(numpy|scipy|scikit-learn)==([\d.]+)\.\*'", read(".ci/run")))
    assert len(pins) == 3
    for name, pin in pins.items():
        assert tuple(map(int, pin.split("."))) == bounds[name], name


def test_caps_of_dependencies_can_be_lifted_for_the_nightly_run():
    source = CHECKOUT / ".ci" / "lift_caps.py"
    spec = importlib.util.spec_from_file_location("lift_caps", source)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    lifted = tomllib.loads(script.without_caps(read("pyproject.toml")))
    before = pyproject()["project"]["dependencies"]
    assert any("<" in requirement for requirement in before)
    assert lifted["project"].pop("dependencies") == [line.split(",")[0] for line in before]
    unchanged = pyproject()
    del unchanged["project"]["dependencies"]
    assert lifted == unchanged
