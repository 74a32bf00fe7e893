"""Sphinx configuration. The build needs no network, nor do its pages; warnings are errors."""

import csv
import math
import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "_extensions"))

project = "dpcd_sklearn"
author = "the dpcd_sklearn developers"
copyright = f"2026, {author}"
release = installed_version("dpcd_sklearn")
version = ".".join(release.split(".")[:2])

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",  # of _extensions
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "**/README.rst"]
default_role = "literal"  # `name` in a docstring is code
html_theme = "pydata_sphinx_theme"
html_title = f"dpcd_sklearn {release}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "text": project},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
}
toc_object_entries_show_parents = "hide"  # `fit()`, not `DPLassoCD.fit()`, in the margin
html_sidebars = {"quick_start": [], "chooser": [], "citation": []}

autosummary_generate = True
autodoc_typehints = "none"
# The methods of a class are documented by the template, each once.
numpydoc_show_class_members = False
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # the landing page has a part of the README, without its title

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_\w+\.py$",
    "ignore_pattern": r"(^|[/\\])(?!plot_)\w+\.py$",  # the demo is a program, not a page
    "subsection_order": [f"../examples/{tier}" for tier in ("quick_start", "real_tasks", "papers")],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,  # its page asks other hosts for scripts
    "show_signature": False,
    "thumbnail_size": (480, 336),
    "download_all_examples": False,
}


def copy_proofs():
    """The proofs live beside the code that they prove; the pages are copies."""
    source = HERE.parent / "dpcd_sklearn" / "privacy" / "proofs"
    target = HERE / "generated" / "proofs"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


# What the stored results of benchmarks/peers are called in tables.
MEASURES = {
    **{"error": "error", "excess_risk": "excess risk", "coverage": "coverage", "seconds": "CPU s"},
    **{"megabytes": "MB", "at claim": "ε is at least", "at easier": "at 8 ε", "fits": "fits"},
}
FIRST = {"no privacy": 0, "dpcd_sklearn": 1}  # rows of a table
PEERS = HERE.parent / "benchmarks" / "peers" / "results.csv"


def peers():
    """Return the stored results, as {table: {solver: {measure: number}}}."""
    tables = {}
    with PEERS.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            solvers = tables.setdefault(row["table"], {})
            solvers.setdefault(row["solver"], {})[row["measure"]] = float(row["value"])
    return tables


def digits(number):
    """A number of a table in three digits, or all before the point; a dash if there is none."""
    if number is None:
        return "–"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def write_table(name, head, rows):
    """Write a table for `csv-table` into generated/peers."""
    path = HERE / "generated" / "peers" / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["", *(word.replace("_", " ") for word in head)])
        for title, cells in sorted(rows.items(), key=lambda row: FIRST.get(row[0], 2)):
            writer.writerow([title, *map(digits, cells)])


def write_peers():
    """Write one table of each stored one, and one of all errors without inference."""
    tables = peers()
    for name, solvers in tables.items():
        known = [m for m in MEASURES if any(m in found for found in solvers.values())]
        cells = {solver: map(found.get, known) for solver, found in solvers.items()}
        write_table(name.replace(", ", "_").replace(" ", "_"), map(MEASURES.get, known), cells)
    sets = [name for name in tables if not name.startswith("audit")]
    solvers = dict.fromkeys(s for name in sets for s in tables[name] if "inference" not in s)
    errors = {s: [tables[name].get(s, {}).get("error") for name in sets] for s in solvers}
    write_table("errors", sets, errors)


def stored(name):
    """Return the rows of benchmarks/`name`.csv."""
    path = HERE.parent / "benchmarks" / f"{name}.csv"
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def short(number):
    """A stored score as pages have it: .657."""
    return f"{float(number):.3f}".replace("0.", ".", 1)


def write_stored():
    """Write the tables of default fits, of wide bounds and of counts."""
    cells = {}
    for row in stored("defaults"):
        name = f"{row['set']}, {row['score']}".replace("_", " ")
        cells.setdefault(name, {})[row["epsilon"]] = (
            f"{short(row['median'])} ({short(row['worst'])})"
        )
        cells[name]["without"] = short(row["without privacy"])
    head = ["", "ε = 0.1 (worst)", "ε = 1 (worst)", "without privacy"]
    table = [[name, *map(of.get, ("0.1", "1", "without"))] for name, of in cells.items()]
    write_rows("defaults", [head, *table])
    ways = [key for key in stored("loose_bounds")[0] if key not in {"set", "epsilon", "width"}]
    head = ["", "width", *(way for way in ways if "private" not in way)]
    table = [
        [row["set"].replace("_", " "), row["width"]]
        + [f"{short(row[way])} → {short(row[way + ' private'])}" for way in head[2:]]
        for row in stored("loose_bounds")
    ]
    write_rows("loose_bounds", [head, *table])
    scores = {}
    for row in stored("counts"):
        if row["model"] != "log(1 + y)":
            of_problem = scores.setdefault(row["problem"], {})
            of_problem.setdefault(float(row["epsilon"]), []).append(float(row["d2"]))
    head = ["", "no noise", "ε = 0.3", "ε = 1", "ε = 3"]
    table = [
        [name, *(short(sum(of[e]) / len(of[e])) for e in (math.inf, 0.3, 1.0, 3.0))]
        for name, of in scores.items()
    ]
    write_rows("counts", [head, *table])


def write_rows(name, rows):
    with (HERE / "generated" / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def stored_figure(name, rawtext, text, lineno, inliner, options=None, content=None):
    """The role :stored:`file / set / score / epsilon / column`: a number of the benchmarks."""
    file, *keys, column = text.split(" / ")
    (row,) = [row for row in stored(file) if list(row.values())[: len(keys)] == keys]
    return [nodes.Text(short(row[column]))], []


def peer(name, rawtext, text, lineno, inliner, options=None, content=None):
    """The role :peer:`table / solver / measure`: a stored number, to three digits."""
    table, solver, measure = text.split(" / ")
    return [nodes.Text(f"{peers()[table][solver][measure]:.3g}")], []


def skip_foreign_members(app, what, name, obj, skip, options):
    """Leave out what scikit-learn defines: its docstrings refer to labels of its own pages."""
    home = getattr(obj, "__module__", None) or ""
    return True if home.partition(".")[0] in {"sklearn", "builtins"} else None


def privacy_section(app, what, name, obj, options, lines):
    """Turn the heading of a Privacy block, which numpydoc would drop, into a rubric."""
    for i in range(len(lines) - 1):
        if lines[i].strip() == "Privacy" and lines[i + 1].strip() == "-------":
            lines[i : i + 2] = [".. rubric:: Privacy", ""]
            return


def setup(app):
    copy_proofs()
    write_peers()
    write_stored()
    app.add_role("peer", peer)
    app.add_role("stored", stored_figure)
    app.connect("autodoc-process-docstring", privacy_section, priority=100)  # before numpydoc's
    app.connect("autodoc-skip-member", skip_foreign_members)
