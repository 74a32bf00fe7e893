"""The rooms' words on themselves: a face each, and no page cited that a reader can't open.

As in ``test_rooms.py`` each check takes the text as an argument, so that it can be shown to fail.
"""

import ast
import itertools
import posixpath
import re
from pathlib import Path

from tables import table
from test_rooms import FLOORS

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "dpcd_sklearn"
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


def read(name):
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
INCLUDED = re.compile(r"^\.\. literalinclude:: (\S+)\n((?:[ \t]+:.*\n)*)", re.MULTILINE)


def folders_in_vain(source, files):
    for cited in sorted(set(FOLDER.findall(source))):
        if not any(file.startswith(cited) for file in files):
            yield f"{cited} is not a folder of the repository"


def includes_in_vain(name, source, read):
    """Code that a page includes by a name or a line that its file does not have."""
    for file, options in INCLUDED.findall(source):
        code = read(posixpath.normpath(posixpath.join(posixpath.dirname(name), file)))
        for option, value in re.findall(r":([\w-]+): (.*)", options):
            if option == "pyobject":
                found = re.search(rf"^ *(class|def) {value}\b", code, re.MULTILINE)
            elif option in {"start-at", "start-after", "end-at", "end-before"}:
                found = value in code
            else:
                continue
            if not found:
                yield f"{file} has no {value!r}"


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
        name: list(sentences_without_subject(read(name)))
        for name in TEXTS
        if name.startswith(("dpcd_sklearn/", "tests/", "benchmarks/")) and not name.endswith(".md")
    }
    assert len(found) > 420 and not {name: lines for name, lines in found.items() if lines}
    assert list(sentences_without_subject("x = 1  # " + "Of the target."))


@table("name", TEXTS)
def test_what_is_cited_is_in_the_repository(name):
    assert not list(cited_in_vain(read(name), FILES))


@table("name", TEXTS)
def test_folders_and_code_that_pages_cite_are_in_the_repository(name):
    assert not list(folders_in_vain(read(name), FILES))
    assert not list(includes_in_vain(name, read(name), read))


def test_the_floors_that_contributors_see_are_those_that_are_tested():
    floors, of_privacy = drawn_floors(read("CONTRIBUTING.md"))
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
    assert not list(faults_of_face(read(name), FILES, words))


# --- the checks can fail -----------------------------------------------------------------------


FILES_OF_TESTS = ["privacy/proofs/renyi.md", "doc/threat_model.rst", "dpcd_sklearn/here/a.py"]
PAGE = ".. literalinclude:: ../a/b.py\n   :language: python\n   :{}\n\ntext"
FACE = "Sums.\n\nPromises exactness. Relies on NumPy. Proof: {}. Mutant: none."


def includes_of_a_page(option):
    return includes_in_vain("doc/c.rst", PAGE.format(option), {"a/b.py": "class A:"}.get)


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
        (includes_of_a_page, ("pyobject: A",), 0),
        (includes_of_a_page, ("pyobject: B",), 1),
        (includes_of_a_page, ("end-before: def",), 1),
        (faults_of, (FACE.format("tests/a.py"),), 0),
        (faults_of, (FACE.format("tests/b.py"),), 1),
        (faults_of, (FACE.format("tests/a.py").removesuffix(" Mutant: none."),), 1),
        (faults_of, (FACE.format("tests/a.py").replace(" Proof", "\n\nProof"),), 1),
        (faults_of, ("Sums.",), 6),
    ],
)
def test_the_checks_can_fail(check, given, n_faults):
    assert len(list(check(*given))) == n_faults
