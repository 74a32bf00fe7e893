"""The pages on how to add a loss, a solver and a transformer, followed to the letter in a copy."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
PAGES = [CHECKOUT / "doc" / f"add_{what}.rst" for what in ("loss", "solver", "transformer")]
BLOCK = re.compile(
    r"^\.\. code-block:: (?P<language>\w+)\n(?:   :caption: (?P<file>\S+)\n)?\n"
    r"(?P<text>(?:   .*\n|\n)+)",
    re.MULTILINE,
)
BUILD = """
import sys
from pathlib import Path
from setuptools import setup
from setup import BuildKernels, extension
setup(
    script_args=["--quiet", "build_ext", "--inplace"],
    ext_modules=[extension(Path(source)) for source in sys.argv[1:]],
    cmdclass={"build_ext": BuildKernels},
)
"""
DATA = """
import dpcd_sklearn
print(dpcd_sklearn.__file__)
import numpy as np
from scipy.optimize import minimize
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(4000, 5))
y = np.clip(X @ [1.0, -0.5, 0.0, 0.25, 0.0] + 0.2 * rng.standard_cauchy(4000), -2, 2)
"""
# After the page's own lines, which make a `model`.
CHECKS = {
    "loss": """
assert 0.1 < model.set_params(epsilon=1.0).fit(X, y).score(X, y) < 1
few = model.coef_
model.set_params(epsilon=float("inf"), tol=1e-10).fit(X, y)
ones = np.column_stack([X, np.ones(len(X))])
best = minimize(lambda w: np.log(np.cosh((ones @ w - y))).sum(), np.zeros(6))
assert np.allclose([*model.coef_, model.intercept_], best.x, atol=1e-4), best.x
assert np.abs(model.coef_ - few).max() < 0.2
""",
    "solver": """
from sklearn.linear_model import Ridge
assert model.set_params(epsilon=1.0).fit(X, y).solver_ == "gd"
assert 0.1 < model.score(X, y) < 1
model.set_params(epsilon=float("inf"), tol=1e-10).fit(X, y)
assert np.allclose(model.coef_, Ridge(alpha=model.alpha).fit(X, y).coef_, atol=1e-5)
""",
    "transformer": """
from dpcd_sklearn import DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.pipeline import make_private_pipeline
model.accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6, testing=True)
centred = model.set_params(delta=1e-7).fit_transform(X)
assert 0 < np.abs(centred.mean(axis=0)).max() < 0.05
assert len(model.accountant.entries()) == 1
loud = DPCenterer((-0.5, 0.5), epsilon=100.0).fit(X)
assert np.allclose(loud.mean_, np.clip(X, -0.5, 0.5).mean(axis=0), atol=1e-2)  # of public cells
both = make_private_pipeline(DPCenterer((-1, 1)), DPRidgeSkGD(target_bounds=(-2, 2)), epsilon=1.0)
assert 0.1 < both.fit(X, y).score(X, y) < 1
""",
}


def blocks_of(page):
    """The blocks of code of a page: the file that each is for, or none, and its text."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield block["language"], block["file"], dedent(block["text"]).rstrip() + "\n"


def patched(text, difference):
    """A text after a difference that is found in it once."""
    lines = difference.splitlines()
    before, after = (
        "".join(f"{line[1:]}\n" for line in lines if line[0] != other) for other in "+-"
    )
    assert text.count(before) == 1, before
    return text.replace(before, after)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the package with all that the pages add, built; the programs of the pages."""
    if not all(page.is_file() for page in PAGES):
        pytest.skip("the pages are in a checkout, not beside an installed wheel")
    folder, programs = tmp_path_factory.mktemp("copy"), {}
    shutil.copytree(CHECKOUT / "dpcd_sklearn", folder / "dpcd_sklearn")
    shutil.copy(CHECKOUT / "setup.py", folder)
    kernels = []
    for page in PAGES:
        for language, name, text in blocks_of(page):
            if name is None:
                programs[page.stem.removeprefix("add_")] = text
                continue
            path = folder / name
            assert path.exists() == (language == "diff"), name
            path.write_text(patched(path.read_text(), text) if language == "diff" else text)
            kernels += [name] * (path.suffix == ".pyx")
    assert len(kernels) == 2
    run(folder, BUILD, *kernels)
    return folder, programs


def run(folder, program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_the_pages_add_is_fitted(copy):
    """With noise, and without it to the optimum that SciPy, NumPy or scikit-learn finds."""
    folder, programs = copy
    found = run(folder, DATA + "".join(programs[what] + CHECKS[what] for what in CHECKS))
    assert Path(found.splitlines()[0]).is_relative_to(folder)
