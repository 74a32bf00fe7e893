"""A report's facts as Markdown and as HTML: one list of sections, two ways to write it."""

import html
import math

from ..privacy.accounting._gaussian_dp import gdp_mu

_STYLE = """
.dpcd-report { --ink: #222; --paper: #fff; --line: #d0d4d9; --soft: #f4f5f7;
  --red: #b3261e; color: var(--ink); background: var(--paper); max-width: 75rem; margin: 0 auto;
  padding: 1rem; font: 15px/1.5 system-ui, sans-serif; }
.dpcd-report p, .dpcd-report ul { max-width: 52rem; }
@media (prefers-color-scheme: dark) { .dpcd-report { --ink: #e6e6e6; --paper: #14181e;
  --line: #3a424d; --soft: #1d232c; --red: #ff8a80; } }
.dpcd-report h1 { font-size: 1.5rem; } .dpcd-report h2 { font-size: 1.15rem; margin-top: 1.6rem; }
.dpcd-report table { border-collapse: collapse; display: block; overflow-x: auto; }
.dpcd-report th, .dpcd-report td { color: var(--ink); background: var(--paper);
  border-bottom: 1px solid var(--line); padding: .25rem .6rem;
  text-align: left; vertical-align: top; font-variant-numeric: tabular-nums; }
.dpcd-report th { background: var(--soft); }
.dpcd-report .flaw { color: var(--red); font-weight: 600; }
.dpcd-report code { overflow-wrap: anywhere; }
@media (max-width: 40rem) { .dpcd-report thead { display: none; }
  .dpcd-report table, .dpcd-report tbody, .dpcd-report tr { display: block; }
  .dpcd-report tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .dpcd-report td { display: flex; gap: .6rem; border: 0; padding: .1rem 0; min-width: 0;
    overflow-wrap: anywhere; }
  .dpcd-report td[data-head]::before { content: attr(data-head); flex: 0 0 7.5rem; opacity: .75; } }
"""
_NEIGHBOURS = {
    "replace_one": "data sets of the same size that differ in one row",
    "add_remove": "data sets of which one has a row more than the other",
}


def neighbours_of(stated):
    """Neighbouring data sets in words."""
    k = stated["max_contributions"]
    if k == 1:
        return _NEIGHBOURS[stated["neighboring"]]
    how = {"replace_one": "replaced by others", "add_remove": "added or removed"}
    differ = "in the rows of one person, " + ("" if k is None else f"at most {k:,}, ")
    differ += how[stated["neighboring"]]
    return f"data sets that differ {differ}"


# ---- sections, in order -------------------------------------------------------------------------
#
# A block is a text, a list of items, or a table: a tuple of its heads and its rows.

_NO_GUARANTEE = "No guarantee holds:"


def sections_of(facts):
    """Titles with their blocks."""
    yield "The guarantee", _guarantee(facts)
    if facts["kind"] == "ledger":
        yield "What was released", [_entries(facts["entries"])]
    else:
        yield "What was released", _releases(facts["releases"])
        if facts["curve"]:
            rows = [(f"{delta:g}", epsilon) for delta, epsilon in facts["curve"]]
            yield "The same at other δ", [(("δ", "ε"), rows)]
        yield "Bounds, and who vouches for them", [_bounds(facts["bounds"])]
        if facts["coefficients"] is not None:
            yield "Coefficients, beside the noise in them", _coefficients(facts["coefficients"])
        yield "Leaks found", [_leaks(facts["leaks"])]
    yield "What is not protected", [facts["not_protected"]]
    yield "Versions", [(("package", "version"), facts["versions"].items())]


def _guarantee(facts):
    stated = facts["guarantee"]
    if stated["flaws"]:
        return [_NO_GUARANTEE, stated["flaws"]]
    subject = {
        "ledger": "Everything that is charged to this ledger is together",
        "search": "What the search released, scores and choice included, is together",
        "pipeline": "What the steps of the pipeline released is together",
        "model": "What the fit released is together",
    }[facts["kind"]]
    epsilon, delta = stated["epsilon"], stated["delta"]
    whose = "row" if stated["max_contributions"] == 1 else "person"
    other = {"replace_one": "another in its place", "add_remove": "none in its place"}
    return [
        f"{subject} (ε, δ)-differentially private with ε = {epsilon:g} and δ = {delta:g}: for any "
        f"two {neighbours_of(stated)}, the probability of any outcome under the one is at most e^ε "
        f"times that under the other, plus δ. The unit is {stated['unit']}.",
        "In plain words: whatever follows from what was released is at most "
        f"{_rounded(math.exp(min(epsilon, 700)))} times as likely, plus 1 in "
        f"{_rounded(1 / delta, math.floor)}, with one {whose} in the data as with "
        f"{other[stated['neighboring']]}.",
        "For an engineer: one Gaussian mechanism with noise multiplier "
        f"{1 / gdp_mu(epsilon, delta):.4g} has the same ε and δ.",
        (("", ""), _facts_table(facts)),
    ]


def _releases(releases):
    yield releases
    if any("δ₀" in release for release in releases):
        yield (
            "A release that is covered protects each row as well as Gaussian noise does, but for "
            "an event of the probability δ₀, in which it may tell all of a row; δ has room for it."
        )


def _facts_table(facts):
    if facts["kind"] == "ledger":
        yield "spent so far, as ε at the same δ", facts["spent"]
        yield "largest ε of one more Gaussian fit", facts["remaining"]
        yield "last hash of the ledger", facts["ledger_hash"] or "no entry"
        return
    yield "model", facts["model"]
    yield "solver", facts["solver"] or "none"
    if facts["n_samples"] is not None:
        yield "records", f"{facts['n_samples']:,}"
    n_unused = facts["n_unused"]
    unused = f", and {n_unused:,} that are the same for every record" if n_unused else ""
    yield "columns that reach the model", f"{facts['n_features'] - n_unused:,}{unused}"
    yield "charged to a ledger", "yes" if facts["accountant"] else "no"
    for name, share in facts.get("shares", {}).items():
        yield f"share of {name}", share
    if search := facts.get("search"):
        for name, value in search["best_params"].items():
            yield f"best {name}", value
        yield "best score, with noise", search["best_score"]
        yield "ε of a single run", search["epsilon_of_a_run"]


def _entries(entries):
    heads = ("id", "time (UTC)", "by", "note", "what", "released", "n", "p", "ε so far")
    rows = [
        (
            *(entry["id"], f"{entry['time'][:10]} {entry['time'][11:16]}", entry["by"]),
            *(entry["note"], entry["estimator"], entry["event"].partition(", under ")[0]),
            *("" if entry[k] is None else f"{entry[k]:,}" for k in ("n_samples", "n_features")),
            entry["epsilon_so_far"],
        )
        for entry in entries
    ]
    return heads, rows


def _bounds(bounds):
    if not bounds:
        return "None was stated, and none was found."
    heads = ("name", "value", "where from", "who says that it is public")
    return heads, [list(row.values()) for row in bounds]


def _coefficients(table):
    heads = {"feature": "feature", "coefficient": "coefficient"}
    if any("output" in row for row in table["rows"]):
        heads = {"output": "output"} | heads
    if table["noise_known"]:
        heads["noise"] = "noise (standard deviation)"
    if any(row["standard_error"] is not None for row in table["rows"]):
        heads["standard_error"] = "standard error, noise included"
    if len(table["rows"]) < table["of"]:
        yield f"The {len(table['rows'])} largest of {table['of']:,}."
    if not table["noise_known"]:
        yield "How coefficients follow the noise is not known of this fit."
    if table["n_arbitrary"]:
        yield (
            f"The noise of {table['n_arbitrary']:,} is not stated, and they come last: what was "
            "released does not tell them apart from others, so their values mean nothing alone."
        )
    yield heads.values(), [[row[key] for key in heads] for row in table["rows"]]


def _leaks(leaks):
    if not leaks:
        return (
            "None, by the rules of find_leaks. That is no proof: bounds that were read off the "
            "records, and several rows of one person, can't be seen in an object."
        )
    return leaks[0].keys(), [leak.values() for leak in leaks]


def _rounded(value, way=math.ceil):
    """A large number of three digits that people read, rounded this way."""
    if not 10 <= value < 1e15:
        return f"{value:.3g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{way(round(value / unit, 9)) * unit:,.{0 if unit >= 1 else 1}f}"


def _cell(value):
    """The text of a cell."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return "(" + ", ".join(map(_cell, value)) + ")"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_cell(each)}" for name, each in value.items())
    return "" if value is None else str(value)


# ---- two formats --------------------------------------------------------------------------------


def markdown_of(facts, digest):
    """The report as Markdown."""
    lines = [f"# Privacy report: {facts['name']}", "", f"{facts['date']} · SHA-256 `{digest}`"]
    for title, blocks in sections_of(facts):
        lines += ["", f"## {title}"]
        for block in blocks:
            lines += ["", *_markdown(block)]
    return "\n".join(lines) + "\n"


def _markdown(block):
    """Lines of a block."""
    if isinstance(block, str):
        return [f"**{block}**" if block == _NO_GUARANTEE else block]
    if isinstance(block, list):
        return [f"- {item}" for item in block]
    heads, rows = block
    head, *body = (
        "| " + " | ".join(_cell(cell).replace("|", "\\|") for cell in row) + " |"
        for row in (heads, *rows)
    )
    return [head, "|" + "---|" * len(heads), *body]


def html_of(facts, digest, whole=True):
    """The report as HTML: a page by itself, or what stands in the output of a notebook."""
    title = f"Privacy report: {html.escape(facts['name'])}"
    parts = [f"<h1>{title}</h1>", f"<p>{facts['date']} · SHA-256 <code>{digest}</code></p>"]
    for heading, blocks in sections_of(facts):
        parts += [f"<h2>{html.escape(heading)}</h2>", *map(_html, blocks)]
    body = f'<style>{_STYLE}</style><div class="dpcd-report">{"".join(parts)}</div>'
    if not whole:
        return body
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        "<style>body { margin: 0; } @media (prefers-color-scheme: dark) { body { background: "
        f"#14181e; }} }}</style><title>{title}</title></head><body>{body}</body></html>\n"
    )


def _html(block):
    """A block in its element."""
    if isinstance(block, str):
        kind = ' class="flaw"' if block == _NO_GUARANTEE else ""
        return f"<p{kind}>{html.escape(block)}</p>"
    if isinstance(block, list):
        return "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in block) + "</ul>"
    heads, rows = block
    head = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
    head = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    names = [f' data-head="{html.escape(head)}"' if head else "" for head in heads]
    body = []
    for row in rows:  # on a phone it is a list, in which each cell stands beside its head
        texts = [html.escape(_cell(cell)).replace("__", "__<wbr>") for cell in row]  # may wrap
        cells = [f"<td{name}>{text}</td>" for name, text in zip(names, texts, strict=True)]
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{head}<tbody>{''.join(body)}</tbody></table>"
