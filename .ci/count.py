"""Print how large the house is: `python count.py [CHECKOUT]`.

Lines of code are those that hold more than a docstring, a comment or white space, of Python,
Cython and C. A private import is a name that a test takes from a module whose path, or who itself,
starts with an underscore. Tests are what `pytest --collect-only` finds, slow ones apart.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

KINDS = {".py", ".pyx", ".pxd", ".h"}
FOLDERS = ("dpcd_sklearn", "tests", "benchmarks", "examples", "doc", ".ci")
# Of Cython and C: a string of three quotes that opens a statement is a docstring.
DOCSTRING = re.compile(r'^[ \t]*[rR]?("""|\'\'\')[\s\S]*?\1[ \t]*$', re.MULTILINE)
C_COMMENT = re.compile(r"/\*[\s\S]*?\*/|//[^\n]*")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def lines_of_code(path, source):
    if path.suffix == ".py":
        return len(lines_of_python(source))
    if path.suffix == ".h":
        source = C_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), source)
        return sum(bool(line.strip()) for line in source.splitlines())
    source = DOCSTRING.sub("", source)
    return sum(bool(line.partition("#")[0].strip()) for line in source.splitlines())


def lines_of_python(source):
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and is_text(body[0]):
            docstrings.update(range(body[0].lineno, body[0].end_lineno + 1))
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - docstrings


def is_text(node):
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)


def private_imports(source):
    """Names of this package that are taken from behind an underscore."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        else:
            continue
        for name in found:
            package, *parts = name.split(".")
            if package == "dpcd_sklearn" and any(part.startswith("_") for part in parts):
                yield name


def number_of_tests(checkout, *options):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *options, "tests"]
    found = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    return sum("::" in line for line in found.stdout.splitlines())


def main(checkout):
    print(f"{'':14}{'files':>7}{'lines':>8}{'of code':>9}")
    total = [0, 0, 0]
    for folder in FOLDERS:
        paths = subprocess.run(
            ["git", "ls-files", folder], cwd=checkout, capture_output=True, text=True, check=True
        ).stdout.split()
        paths = [checkout / path for path in paths if Path(path).suffix in KINDS]
        sources = {path: path.read_text(encoding="utf-8") for path in paths if path.exists()}
        counts = [
            len(sources),
            sum(len(source.splitlines()) for source in sources.values()),
            sum(lines_of_code(path, source) for path, source in sources.items()),
        ]
        total = [sum(pair) for pair in zip(total, counts, strict=True)]
        print(f"{folder:14}{counts[0]:7,}{counts[1]:8,}{counts[2]:9,}")
    print(f"{'together':14}{total[0]:7,}{total[1]:8,}{total[2]:9,}")

    tests = sorted((checkout / "tests").glob("*.py"))
    found = [name for path in tests for name in private_imports(path.read_text(encoding="utf-8"))]
    print(f"private imports in tests: {len(found):,} of {len(set(found)):,} names")
    fast, slow = number_of_tests(checkout), number_of_tests(checkout, "-m", "slow")
    print(f"tests: {fast:,} fast, {slow:,} slow")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2]).resolve() if sys.argv[1:] else Path(__file__).resolve().parents[1])
