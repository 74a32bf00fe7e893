"""The rooms: imports point downwards, loops see no records, and no page is cited in vain.

The checks read source text, so they hold for code that was not run. Each takes the source as an
argument, so that the self-tests below can show that it is able to fail.
"""

import ast
import graphlib
import itertools
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tables import table

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "dpcd_sklearn"

# From the top of the house to its ground; a room may import from lower lines only.
FLOORS = (
    {"inspection"},
    {"testing"},
    {"model_selection", "dask"},
    {"compose"},
    {"pipeline", "partitions"},
    {"linear_model", "preprocessing", "metrics"},
    {"solvers"},
    {"plan"},
    {"loops"},
    {"privacy/mechanisms", "privacy/ledger"},
    {"privacy/sums", "privacy/noise", "privacy/accounting"},
    {"losses", "penalties", "samplings", "leaks"},
    {"utils"},
)
FLOOR = {room: -depth for depth, rooms in enumerate(FLOORS) for room in rooms}
# Below, but strangers all the same: who counts budgets sees no records, and draws nothing.
STRANGERS = {"privacy/ledger": {"privacy/sums", "privacy/noise"}}
COMPAT = "utils/_compat.py"
MAX_LINES = 500
SEEN_BY_LOOPS = ("dpcd_sklearn.privacy.mechanisms._oracle.SolverOracle",)

SOURCES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*")
    if path.suffix in {".py", ".pyx", ".pxd", ".h"}
)
MODULES = [name for name in SOURCES if not name.endswith(".h")]
LOOPS = [name for name in MODULES if name.startswith("loops/")]


def read(name):
    return (PACKAGE / name).read_text(encoding="utf-8")


# --- what a source imports ---------------------------------------------------------------------


def absolute(name, module, level):
    """The absolute name of `module`, imported with `level` dots in the file `name`."""
    if not level:
        return module
    parts = ["dpcd_sklearn", *Path(name).parent.parts]
    parts = parts[: len(parts) - level + 1]
    return ".".join([*parts, module] if module else parts)


def python_imports(name, source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(name, node.module or "", node.level)
            yield from (f"{module}.{alias.name}" for alias in node.names)


CYTHON_FROM = re.compile(
    r"^[ \t]*from\s+(\.*)\s*([\w.]*)\s+c?import\s+(\([^)]*\)|[^\n;]+)", re.MULTILINE
)
CYTHON_IMPORT = re.compile(r"^[ \t]*c?import\s+([^\n;]+)", re.MULTILINE)


STRING_OR_COMMENT = re.compile(
    r'"""[\s\S]*?"""'
    r"|\'\'\'[\s\S]*?\'\'\'"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'"
    r"|#[^\n]*"
)


def code_of(source):
    """Cython source without strings and comments, continued lines joined."""
    code = STRING_OR_COMMENT.sub(lambda m: "" if m[0].startswith("#") else '""', source)
    return code.replace("\\\n", " ")


def names_of(clause):
    """The names of an import clause: "(a as b, c)" gives a, c."""
    return [item.split()[0] for item in clause.strip("() \n").split(",") if item.strip()]


def cython_imports(name, source):
    code = code_of(source)
    for dots, module, clause in CYTHON_FROM.findall(code):
        module = absolute(name, module, len(dots))
        yield from (f"{module}.{item}" for item in names_of(clause))
    for clause in CYTHON_IMPORT.findall(code):
        yield from names_of(clause)


def imports_of(name, source):
    reader = python_imports if name.endswith(".py") else cython_imports
    return sorted(set(reader(name, source)))


def room_of(parts):
    """The room of a path or a dotted name, given its parts: the rooms of privacy are its own."""
    return "/".join(parts[: 2 if parts[0] == "privacy" else 1])


def room_of_file(name):
    return room_of(Path(name).with_suffix("").parts)


# --- the checks: each yields its complaints ----------------------------------------------------


def edges_to_rooms(name, source):
    """Other rooms of the house that a file imports from, each with what it imports."""
    here = room_of_file(name)
    for imported in imports_of(name, source):
        package, *parts = imported.split(".")
        room = room_of(parts) if parts else "the package"
        if package == "dpcd_sklearn" and room != here and room != "exceptions":
            yield room, imported


def upward_edges(name, source):
    here = room_of_file(name)
    for room, imported in edges_to_rooms(name, source):
        if here in ("__init__", "__main__"):
            continue
        if FLOOR.get(room, 1) >= FLOOR.get(here, -math.inf):
            yield f"{name} imports {imported}: {room} is not below {here}"
        if room in STRANGERS.get(here, ()):
            yield f"{name} imports {imported}: {room} is a stranger to {here}"


def imports_of_modules(sources):
    """Which modules each module imports, of a dict of sources by file name."""
    modules = {".".join(Path(name).with_suffix("").parts) for name in sources}
    graph = {module: set() for module in modules}
    for name, source in sources.items():
        here = ".".join(Path(name).with_suffix("").parts)
        for imported in imports_of(name, source):
            parts = imported.removeprefix("dpcd_sklearn.").split(".")
            longest = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
            graph[here].update({next((m for m in longest if m in modules), here)} - {here})
    return graph


def circle_of(graph):
    """Modules that import each other round a circle, or None; imports within functions count."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]


def private_scikit_learn(name, source):
    """Names with an underscore, of modules or in modules, change without notice."""
    for imported in imports_of(name, source):
        package, *rest = imported.split(".")
        private = any(part.startswith("_") and not part.endswith("__") for part in rest)
        if package == "sklearn" and private and name != COMPAT:
            yield f"{name} imports {imported}; only {COMPAT} may"


def records_in_a_loop(name, source):
    for imported in imports_of(name, source):
        module, _, last = imported.rpartition(".")
        if module.startswith("dpcd_sklearn.privacy") and imported not in SEEN_BY_LOOPS:
            yield f"{name} imports {imported}; a loop sees the abstract oracles only"
    words = r"\b(X|y|sample_weight|RecordOracle|BatchOracle)\b"
    for word in sorted(set(re.findall(words, code_of(source)))):
        yield f"{name} mentions {word}; a loop never sees the records"


PUBLIC_SCALARS = {"bint", "char", "double", "float", "int", "long", "short", "Py_ssize_t", "size_t"}
PUBLIC_SCALARS |= {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
MODIFIERS = {"public", "readonly", "const", "unsigned", "signed"}


def fields_of(class_name, source):
    """Type and name of each field that a .pxd or .pyx declares on an extension class."""
    header, indented_lines = rf"^cdef class {class_name}\b[^\n]*\n", r"((?:[ \t]+[^\n]*\n|\n)*)"
    block = re.search(header + indented_lines, code_of(source) + "\n", re.MULTILINE)
    if block is None:
        raise LookupError(f"no class {class_name}")
    for line in block[1].splitlines():
        field = re.fullmatch(r"    cdef\s+([^()]+)", line)
        if field:
            yield field[1].removeprefix("inline ").strip()


def fields_that_reach_records(source, class_name):
    for field in fields_of(class_name, source):
        kind = next(word for word in field.split() if word not in MODIFIERS)
        if "*" in field or "[" in field or kind not in PUBLIC_SCALARS:
            yield f"{class_name} has the field '{field}'; records may hide behind it"


# --- the house as it stands --------------------------------------------------------------------


@table("name", MODULES)
def test_imports_point_downwards(name):
    assert not list(upward_edges(name, read(name)))


def test_no_modules_import_each_other():
    assert circle_of(imports_of_modules({name: read(name) for name in MODULES})) is None


@table("name", MODULES)
def test_private_scikit_learn_only_in_compat(name):
    assert not list(private_scikit_learn(name, read(name)))


@table("name", LOOPS)
def test_loop_of_a_solver_never_sees_records(name):
    assert not list(records_in_a_loop(name, read(name)))


def test_loops_compile_against_abstract_oracles_that_hold_no_records():
    """No record holder is declared where a loop could name its fields."""
    for imported in SEEN_BY_LOOPS:
        module, oracle = imported.removeprefix("dpcd_sklearn.").replace(".", "/").rsplit("/", 1)
        declared = re.findall(r"^cdef class (\w+)", read(f"{module}.pxd"), re.MULTILINE)
        assert declared == [oracle]
        for suffix in ("pxd", "pyx"):
            assert not list(fields_that_reach_records(read(f"{module}.{suffix}"), oracle))


@table("name", SOURCES)
def test_file_is_short(name):
    n_lines = len(read(name).splitlines())
    assert n_lines <= MAX_LINES, f"{name} has {n_lines} lines: something in it wants a name"


def test_every_folder_is_a_known_room():
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*/__init__.py")}
    rooms = {folder.as_posix() for folder in folders}
    assert "privacy/sums" in rooms
    assert rooms <= set(FLOOR) | {"privacy"}


def test_every_release_has_its_proof():
    """One proof for each mechanism, named as the method that it proves."""
    sources = [name for name in MODULES if name.startswith("privacy/")]
    releases = {
        found
        for name in sources
        for found in re.findall(r"^[ \t]*c?p?def .*\b(release_\w+)\s*\(", code_of(read(name)), re.M)
    }
    proofs = {path.stem for path in (PACKAGE / "privacy" / "proofs").glob("*.md")}
    assert {"release_partial", "release_mean", "release_quantiles"} <= releases
    assert releases <= proofs


@pytest.mark.parametrize(
    ("name", "source", "complaint"),
    [
        ("utils/_a.py", "x = 1\n\n# no code\ny = 2\n", "utils: 2 lines, the limit is 1"),
        ("utils/_a.pyx", '"""Text."""\ncdef int x\ncdef int y  # z\n', "utils: 2 lines"),
        ("utils/_a.h", "/* no\n code */\nint x;\nint y; // z\n", "utils: 2 lines"),
        ("utils/rooms/_a.py", "x = 1\ny = 2\nz = 3\n", "package: 3 lines"),
        ("utils/_a.py", '"""Three.\n\nLines.\n"""\n', "package docstrings: 4 lines"),
        ("utils/_a.py", '"""Text."""\nx = 1\n', None),
    ],
)
def test_a_room_above_its_limit_is_named(tmp_path, name, source, complaint):
    rows = '"dpcd_sklearn/utils" = 1\n"dpcd_sklearn/utils/rooms" = 3\n'
    path = tmp_path / "dpcd_sklearn" / name
    for folder in (path.parent, tmp_path / ".ci"):
        folder.mkdir(parents=True)
    path.write_text(source)
    limits = f'[lines]\n{rows}package = 2\n"package docstrings" = 2\n'
    (tmp_path / ".ci" / "limits.toml").write_text(limits)
    command = [sys.executable, CHECKOUT / ".ci" / "count.py", "--lint", tmp_path]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == (complaint is not None)
    assert found.stderr.count("\n") == found.returncode
    assert (complaint or "") in found.stderr


# --- the checks can fail -----------------------------------------------------------------------


def circles(sources):
    return circle_of(imports_of_modules(sources)) or ()


def fields_of_an_oracle(fields):
    other = "cdef class Other(SolverOracle):\n    cdef object X\n"
    source = f"cdef class SolverOracle:\n    {fields}\n\n{other}"
    return fields_that_reach_records(source, "SolverOracle")


LOOP = "loops/_a.pyx"
FROM_SUMS = "from ...losses._base cimport Loss\nfrom libc.math cimport exp"
ORACLE = "from ..privacy.mechanisms._oracle cimport"


@table(
    ("check", "given", "bad"),
    [
        (upward_edges, ("utils/_a.py", "from ..privacy import _noise"), True),
        (upward_edges, ("utils/_a.py", "def f():\n    import dpcd_sklearn.solvers"), True),
        (upward_edges, ("utils/_a.py", "from dpcd_sklearn import DPLassoCD"), True),
        (upward_edges, ("losses/_a.pyx", "from .. cimport (\n    privacy,\n)"), True),
        (upward_edges, ("losses/_a.pxd", "cimport dpcd_sklearn.loops._cd as cd"), True),
        (upward_edges, ("privacy/sums/_a.py", "from .. import noise"), True),
        (upward_edges, ("privacy/ledger/_a.py", "def f():\n    from ..noise import _n"), True),
        (upward_edges, ("privacy/__init__.py", "from .sums import _records"), True),
        (upward_edges, ("exceptions.py", "from .utils import check"), True),
        (upward_edges, ("privacy/ledger/_a.py", "from ...exceptions import LedgerError"), False),
        (upward_edges, ("privacy/sums/_a.pyx", FROM_SUMS), False),
        (upward_edges, ("utils/_a.pyx", '"""\nfrom ..plan import x\n"""\n# from ..plan'), False),
        (upward_edges, ("__init__.py", "from .linear_model import DPLassoCD"), False),
        (circles, ({"a/_a.py": "from ._b import f", "a/_b.py": "from ._a import g"},), True),
        (circles, ({"a/_a.pyx": "from ._b cimport f", "a/_b.pxd": "from ._a cimport g"},), True),
        (circles, ({"a/_a.py": "from ._b import f", "a/_b.py": "import math"},), False),
        (private_scikit_learn, ("plan/_a.py", "from sklearn.base._base import Model"), True),
        (private_scikit_learn, ("plan/_a.py", "import sklearn.utils._param_validation as p"), True),
        (private_scikit_learn, (LOOP, "from sklearn.utils._cython_blas cimport _dot"), True),
        (private_scikit_learn, (COMPAT, "from sklearn.utils._tags import Tags"), False),
        (private_scikit_learn, ("plan/_a.py", "from sklearn import __version__"), False),
        (records_in_a_loop, (LOOP, f"{ORACLE} SolverOracle, PaidOracle"), True),
        (records_in_a_loop, (LOOP, "from ..privacy cimport _oracle"), True),
        (records_in_a_loop, (LOOP, "def solve(X, SolverOracle oracle):\n    pass"), True),
        (records_in_a_loop, (LOOP, "cdef const double *y"), True),
        (records_in_a_loop, (LOOP, f"{ORACLE} SolverOracle"), False),
        (records_in_a_loop, (LOOP, '"""No X and no y here."""\ncdef double Xw  # y'), False),
        (fields_of_an_oracle, ("cdef const double *_y",), True),
        (fields_of_an_oracle, ("cdef double[::1] _margins",), True),
        (fields_of_an_oracle, ("cdef readonly object X",), True),
        (fields_of_an_oracle, ("cdef Py_ssize_t n\n    cdef readonly bint failed",), False),
        (fields_of_an_oracle, ("cdef int release(self,\n        double *out) nogil",), False),
    ],
)
def test_the_checks_can_fail(check, given, bad):
    assert bool(list(check(*given))) is bad


# ---- the rooms' words on themselves --------------------------------------------------------------


FACES = sorted(
    path.relative_to(CHECKOUT).as_posix()
    for pattern in ("privacy/*", "plan", "loops")
    for path in PACKAGE.glob(f"{pattern}/__init__.py")
)
HOUSE = ("dpcd_sklearn", "tests", "benchmarks", "examples", "doc", "paper", "conda")
FOLDERS = (*HOUSE, ".ci", ".github", ".")
FILES = [
    path.relative_to(CHECKOUT).as_posix()
    for folder in FOLDERS
    for path in (CHECKOUT / folder).glob("*" if folder == "." else "**/*")
    if path.is_file()
]
TEXTS = [
    name
    for name in FILES
    if Path(name).suffix in {".py", ".pyx", ".pxd", ".h", ".md", ".rst"}
    and not {"_build", "generated", "auto_examples"} & set(Path(name).parts)
    and "test_rooms" not in name  # their self-tests make names up
]


def text_of(name):
    return (CHECKOUT / name).read_text(encoding="utf-8")


# --- the checks: each yields its complaints ----------------------------------------------------


def within(cited, files):
    """Whether a file of the repository ends as the cited path does."""
    cited = re.sub(r"^(\.{1,2}/)+", "", cited)
    return any(f"/{file}".endswith(f"/{cited}") for file in files)


CITED = re.compile(
    r"(?<![\w/.*-])(?:[\w/.-]*\w\.(?:md|rst)|[\w.-]+/[\w/.-]*\w\.(?:pyx?|pxd))\b(?![\w*])"
)


def cited_in_vain(source, files):
    """Pages that a text points to and nobody who has the repository alone can open."""
    source = re.sub(r"^ +:caption: .*$", "", source, flags=re.MULTILINE)  # what readers write
    for cited in sorted(set(CITED.findall(source))):
        if not within(cited, files):
            yield f"{cited} is not in the repository"
    for cited in sorted(set(re.findall(r"\b(?:papers|prototypes)/\w[\w./-]*", source))):
        if any(file.startswith((f"examples/{cited}", f"benchmarks/{cited}")) for file in files):
            continue  # of the gallery, or of the benchmarks
        yield f"{cited} is not in the repository: cite the published paper and its theorem"


FOLDER = re.compile(
    r"(?<![\w/])(?:dpcd_sklearn|tests|doc|benchmarks|examples|\.ci)/(?:[\w.]+/)*(?![\w*])"
)


def folders_in_vain(source, files):
    for cited in sorted(set(FOLDER.findall(source))):
        if not any(file.startswith(cited) for file in files):
            yield f"{cited} is not a folder of the repository"


def drawn_floors(source):
    """The rooms of each floor as CONTRIBUTING.md draws them: the house, and those of privacy."""
    block = source.split("## The rooms")[1].split("```")[1]
    house, privacy = block.split("privacy:")
    floors = [set(re.findall(r"\w+", floor)) for floor in house.split("→")]
    edges = [line.split("→") for line in privacy.splitlines() if "→" in line]
    return floors, [[set(re.findall(r"\w+", side)) for side in edge] for edge in edges]


FACE_OF_PRIVACY = ("Promises", "Relies on", "Proof", "Mutant", "tests/")


def faults_of_face(source, files, words):
    """A room's ``__init__.py`` says in one line and one paragraph what the room is for."""
    face = ast.get_docstring(ast.parse(source)) or ""
    line, gap, paragraph = (*face.split("\n", 2), "", "")[:3]
    if not line.endswith(".") or gap or not paragraph or "\n\n" in paragraph:
        yield "the face is one line, an empty one and one paragraph"
    yield from (f"the face has no {word!r}" for word in words if word not in paragraph)
    cited = re.findall(r"\b(?:tests|proofs|doc)/\w+\.\w+", face)
    yield from (f"{path} does not exist" for path in cited if not within(path, files))


NO_SUBJECT = re.compile(r'(?:"""|# )(?:Of|What)\b.*')


def sentences_without_subject(source):
    """Docstrings and comments that begin with what they are about, and not with a name for it."""
    yield from NO_SUBJECT.findall(source)


# --- the house as it stands -------------------------------------------------------------------


def test_sentences_have_subjects():
    found = {
        name: list(sentences_without_subject(text_of(name)))
        for name in TEXTS
        if name.startswith(("dpcd_sklearn/", "tests/", "benchmarks/")) and not name.endswith(".md")
    }
    assert len(found) > 420 and not {name: lines for name, lines in found.items() if lines}
    assert list(sentences_without_subject("x = 1  # " + "Of the target."))


@table("name", TEXTS)
def test_what_is_cited_is_in_the_repository(name):
    assert not list(cited_in_vain(text_of(name), FILES))


@table("name", TEXTS)
def test_folders_that_pages_cite_are_in_the_repository(name):
    assert not list(folders_in_vain(text_of(name), FILES))


def test_the_floors_that_contributors_see_are_those_that_are_tested():
    floors, of_privacy = drawn_floors(text_of("CONTRIBUTING.md"))
    tested = [{room.split("/")[0] for room in floor} for floor in FLOORS]
    assert floors == [floor for floor, _ in itertools.groupby(tested)]
    below = {room: depth for depth, rooms in enumerate(FLOORS) for room in rooms}
    drawn = {room for edge in of_privacy for side in edge for room in side}
    assert drawn == {room.split("/")[1] for room in below if room.startswith("privacy/")}
    for upper, lower in of_privacy:
        for one in upper:
            assert all(below[f"privacy/{one}"] < below[f"privacy/{other}"] for other in lower)


@table("name", FACES)
def test_every_room_has_a_face(name):
    assert len(FACES) >= 7
    words = FACE_OF_PRIVACY if "/privacy/" in name else ()
    assert not list(faults_of_face(text_of(name), FILES, words))


# --- the checks can fail -----------------------------------------------------------------------


FILES_OF_TESTS = ["privacy/proofs/renyi.md", "doc/threat_model.rst", "dpcd_sklearn/here/a.py"]
FACE = "Sums.\n\nPromises exactness. Relies on NumPy. Proof: {}. Mutant: none."


def faults_of(face):
    return faults_of_face(f'"""{face}\n"""\n', ["tests/a.py"], FACE_OF_PRIVACY)


@table(
    ("check", "given", "n_faults"),
    [
        (cited_in_vain, ("the ledger (NOTES.md §3)", FILES_OF_TESTS), 1),
        (cited_in_vain, ("``.. literalinclude:: ../dpcd_sklearn/old/_e.py``", FILES_OF_TESTS), 1),
        (cited_in_vain, ("measured in ``papers/cd.pdf``", FILES_OF_TESTS), 1),
        (cited_in_vain, ("see proofs/renyi.md, and `renyi.md`", FILES_OF_TESTS), 0),
        (cited_in_vain, ("``../dpcd_sklearn/here/a.py`` and a_name.py", FILES_OF_TESTS), 0),
        (cited_in_vain, ("tests of papers / pages", FILES_OF_TESTS), 0),
        (folders_in_vain, ("in `dpcd_sklearn/gone/`", FILES_OF_TESTS), 1),
        (folders_in_vain, ("in `dpcd_sklearn/here/`", FILES_OF_TESTS), 0),
        (faults_of, (FACE.format("tests/a.py"),), 0),
        (faults_of, (FACE.format("tests/b.py"),), 1),
        (faults_of, (FACE.format("tests/a.py").removesuffix(" Mutant: none."),), 1),
        (faults_of, (FACE.format("tests/a.py").replace(" Proof", "\n\nProof"),), 1),
        (faults_of, ("Sums.",), 6),
    ],
)
def test_checks_of_words_can_fail(check, given, n_faults):
    assert len(list(check(*given))) == n_faults
