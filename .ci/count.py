"""Print how large the house is: `python count.py [--lint] [CHECKOUT]`.

With --lint it prints only which rooms are above their limits, and fails if there are any.

Lines of code are those that hold more than a docstring, a comment or white space, of Python,
Cython, C, HTML, TOML and reStructuredText; lines of docstrings are counted apart. A room and its
limit are a row of limits.toml, which explains them. A private import is a name that a test takes
from a module whose path, or who itself, starts with an underscore. Tests are what
`pytest --collect-only` finds, slow ones apart.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

KINDS = {".py", ".pyx", ".pxd", ".c", ".h", ".tp", ".html", ".toml", ".rst"}
MADE = {"_build", "auto_examples", "generated", "__pycache__"}  # folders that builds write
# Of Cython: a string of three quotes that opens a statement is a docstring.
DOCSTRING = re.compile(r'^[ \t]*[rR]?("""|\'\'\')[\s\S]*?\1[ \t]*$', re.MULTILINE)
COMMENT = {".c": r"/\*[\s\S]*?\*/|//[^\n]*", ".html": r"<!--[\s\S]*?-->", ".rst": r"(?!)"}
COMMENT[".h"] = COMMENT[".c"]
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def lines_of(path):
    """Lines of code, and of docstrings."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return lines_of_python(source)
    docstrings = sum(text[0].count("\n") + 1 for text in DOCSTRING.finditer(source))
    comment = COMMENT.get(path.suffix, r"#[^\n]*")
    code = re.sub(comment, "", source if path.suffix in COMMENT else DOCSTRING.sub("", source))
    return sum(bool(line.strip()) for line in code.splitlines()), docstrings


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
    return len(lines - docstrings), len(docstrings)


def is_text(node):
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant and isinstance(node.value.value, str)


def counted(checkout, limits):
    """Lines of each row of the limits; a file is counted in the innermost folder that is listed."""
    row_of = {folder: row for row in limits for folder in row.split()}
    files, lines = dict.fromkeys(limits, 0), dict.fromkeys(limits, 0)
    for top in sorted({folder.partition("/")[0] for folder in row_of}):
        for path in sorted((checkout / top).rglob("*")):
            parents = [parent.as_posix() for parent in path.relative_to(checkout).parents]
            if path.suffix not in KINDS or MADE & set("/".join(parents).split("/")):
                continue
            row = row_of[next(parent for parent in parents if parent in row_of)]
            code, docstrings = lines_of(path)
            rows = [(row, code)]
            if top == "dpcd_sklearn":
                rows += [("package", code), ("package docstrings", docstrings)]
            for row, number in rows:
                files[row] += 1
                lines[row] += number
    return files, lines


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


def above_limits(lines, limits):
    for row, limit in limits.items():
        if (excess := lines[row] - limit) > 0:
            yield (
                f"{row}: {lines[row]:,} lines, the limit is {limit:,}; delete {excess:,} lines "
                "there, or raise its limit in .ci/limits.toml and lower another by as much"
            )


def main(checkout, lint):
    limits = tomllib.loads((checkout / ".ci" / "limits.toml").read_text(encoding="utf-8"))["lines"]
    files, lines = counted(checkout, limits)
    if lint:
        sys.exit("\n".join(above_limits(lines, limits)) or None)
    print(f"{'':60}{'files':>7}{'lines':>9}{'limit':>9}")
    for row, limit in limits.items():
        print(f"{row.replace('dpcd_sklearn/', ''):60}{files[row]:7,}{lines[row]:9,}{limit:9,}")
    tests = sorted((checkout / "tests").glob("*.py"))
    found = [name for path in tests for name in private_imports(path.read_text(encoding="utf-8"))]
    print(f"private imports in tests: {len(found):,} of {len(set(found)):,} names")
    fast, slow = number_of_tests(checkout), number_of_tests(checkout, "-m", "slow")
    print(f"tests: {fast:,} fast, {slow:,} slow")


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--lint"]
    main(Path(*arguments or [Path(__file__).parents[1]]).resolve(), "--lint" in sys.argv)
