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


def sections_of(facts):
    """Titles with blocks: ("text" | "flaw", text), ("list", lines) or ("table", heads, rows)."""
    yield "The guarantee", _guarantee(facts)
    if facts["kind"] == "ledger":
        yield "What was released", [("table", *_entries(facts))]
    else:
        yield "What was released", _releases(facts["releases"])
        if facts["curve"]:
            rows = [(f"{delta:g}", _text(epsilon)) for delta, epsilon in facts["curve"]]
            yield "The same at other δ", [("table", ("δ", "ε"), rows)]
        yield "Bounds, and who vouches for them", [_bounds(facts["bounds"])]
        if facts["coefficients"] is not None:
            yield "Coefficients, beside the noise in them", _coefficients(facts["coefficients"])
        yield "Leaks found", [_leaks(facts["leaks"])]
    yield "What is not protected", [("list", facts["not_protected"])]
    yield "Versions", [("table", ("package", "version"), list(facts["versions"].items()))]


def _guarantee(facts):
    stated = facts["guarantee"]
    if stated["flaws"]:
        yield "flaw", "No guarantee holds:"
        yield "list", stated["flaws"]
        return
    what = {
        "ledger": "Everything that is charged to this ledger is together",
        "search": "What the search released, scores and choice included, is together",
        "pipeline": "What the steps of the pipeline released is together",
        "model": "What the fit released is together",
    }[facts["kind"]]
    yield (
        "text",
        f"{what} (ε, δ)-differentially private with ε = {stated['epsilon']:g} and "
        f"δ = {stated['delta']:g}: for any two {neighbours_of(stated)}, the "
        "probability of any outcome under the one is at most e^ε times that under the other, plus "
        f"δ. The unit is {stated['unit']}.",
    )
    times = _rounded(math.exp(min(stated["epsilon"], 700)))
    whose = "row" if stated["max_contributions"] == 1 else "person"
    other = {"replace_one": "another in its place", "add_remove": "none in its place"}
    yield (
        "text",
        f"In plain words: whatever follows from what was released is at most {times} times as "
        f"likely, plus 1 in {_rounded(1 / stated['delta'], math.floor)}, with one {whose} in the "
        f"data as with {other[stated['neighboring']]}.",
    )
    mu = gdp_mu(stated["epsilon"], stated["delta"])
    yield (
        "text",
        f"For an engineer: one Gaussian mechanism with noise multiplier {1 / mu:.4g} has the same "
        "ε and δ.",
    )
    rows = _facts_table(facts)
    if rows:
        yield "table", ("", ""), rows


def _releases(releases):
    yield "list", releases
    if any("δ₀" in release for release in releases):
        yield (
            "text",
            "A release that is covered protects each row as well as Gaussian noise does, but for "
            "an event of the probability δ₀, in which it may tell all of a row; δ has room for it.",
        )


def _facts_table(facts):
    if facts["kind"] == "ledger":
        rows = [("spent so far, as ε at the same δ", _text(facts["spent"]))]
        rows += [("largest ε of one more Gaussian fit", _text(facts["remaining"]))]
        return rows + [("last hash of the ledger", facts["ledger_hash"] or "no entry")]
    rows = [("model", facts["model"]), ("solver", facts["solver"] or "none")]
    width, unused = facts["n_features"], facts["n_unused"]
    more = f", and {unused:,} that are the same for every record" if unused else ""
    if facts["n_samples"] is not None:
        rows += [("records", f"{facts['n_samples']:,}")]
    rows += [("columns that reach the model", f"{width - unused:,}{more}")]
    rows += [("charged to a ledger", "yes" if facts["accountant"] else "no")]
    rows += [("share of " + name, _text(part)) for name, part in facts.get("shares", {}).items()]
    search = facts.get("search")
    if search:
        rows += [(f"best {name}", _text(value)) for name, value in search["best_params"].items()]
        rows += [("best score, with noise", _text(search["best_score"]))]
        rows += [("ε of a single run", _text(search["epsilon_of_a_run"]))]
    return rows


def _entries(facts):
    heads = ("id", "time (UTC)", "by", "note", "what", "released", "n", "p", "ε so far")
    rows = [
        (
            *(entry["id"], f"{entry['time'][:10]} {entry['time'][11:16]}", entry["by"]),
            *(entry["note"], entry["estimator"], entry["event"].partition(", under ")[0]),
            *("" if entry[k] is None else f"{entry[k]:,}" for k in ("n_samples", "n_features")),
            _text(entry["epsilon_so_far"]),
        )
        for entry in facts["entries"]
    ]
    return heads, rows


def _bounds(rows):
    if not rows:
        return "text", "None was stated, and none was found."
    heads = ("name", "value", "where from", "who says that it is public")
    return (
        "table",
        heads,
        [(row["name"], _text(row["value"]), row["source"], row["vouched_by"]) for row in rows],
    )


def _coefficients(table):
    heads = ["feature", "coefficient"]
    keys = ["feature", "coefficient"]
    if any("output" in row for row in table["rows"]):
        heads, keys = ["output", *heads], ["output", *keys]
    if table["noise_known"]:
        heads, keys = [*heads, "noise (standard deviation)"], [*keys, "noise"]
    if any(row["standard_error"] is not None for row in table["rows"]):
        heads, keys = [*heads, "standard error, noise included"], [*keys, "standard_error"]
    if len(table["rows"]) < table["of"]:
        yield "text", f"The {len(table['rows'])} largest of {table['of']:,}."
    if not table["noise_known"]:
        yield "text", "How coefficients follow the noise is not known of this fit."
    if table["n_arbitrary"]:
        yield (
            "text",
            f"The noise of {table['n_arbitrary']:,} is not stated, and they come last: what was "
            "released does not tell them apart from others, so their values mean nothing alone.",
        )
    yield "table", heads, [[_text(row[key]) for key in keys] for row in table["rows"]]


def _leaks(leaks):
    if not leaks:
        return (
            "text",
            "None, by the rules of find_leaks. That is no proof: bounds that were read off the "
            "records, and several rows of one person, can't be seen in an object.",
        )
    keys = ("severity", "where", "what", "why")
    return "table", keys, [[leak[key] for key in keys] for leak in leaks]


def _rounded(value, way=math.ceil):
    """A large number of three digits that people read, rounded this way."""
    if not 10 <= value < 1e15:
        return f"{value:.3g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{way(round(value / unit, 9)) * unit:,.{0 if unit >= 1 else 1}f}"


def _text(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return "(" + ", ".join(map(_text, value)) + ")"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(each)}" for name, each in value.items())
    return "" if value is None else str(value)


# ---- Markdown -----------------------------------------------------------------------------------


def markdown_of(facts, digest):
    """The report as Markdown."""
    lines = [f"# Privacy report: {facts['name']}", "", f"{facts['date']} · SHA-256 `{digest}`"]
    for title, blocks in sections_of(facts):
        lines += ["", f"## {title}"]
        for kind, *content in blocks:
            lines += ["", *_MARKDOWN[kind](*content)]
    return "\n".join(lines) + "\n"


def _markdown_table(heads, rows):
    def line(cells):
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return [line(heads), "|" + "---|" * len(heads), *map(line, rows)]


_MARKDOWN = {
    "text": lambda text: [text],
    "flaw": lambda text: [f"**{text}**"],
    "list": lambda items: [f"- {item}" for item in items],
    "table": _markdown_table,
}


# ---- HTML ---------------------------------------------------------------------------------------


def html_of(facts, digest, whole=True):
    """The report as HTML: a page by itself, or what stands in the output of a notebook."""
    title = f"Privacy report: {html.escape(facts['name'])}"
    parts = [f"<h1>{title}</h1>", f"<p>{facts['date']} · SHA-256 <code>{digest}</code></p>"]
    for heading, blocks in sections_of(facts):
        parts.append(f"<h2>{html.escape(heading)}</h2>")
        parts += [_HTML[kind](*content) for kind, *content in blocks]
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


def _html_table(heads, rows):
    def line(row):  # on a phone it is a list, in which each cell stands beside its head
        cells = zip(heads, row, strict=True)
        named = (f'<td data-head="{html.escape(head)}">{_cell(each)}</td>' for head, each in cells)
        return "<tr>" + "".join(named).replace(' data-head=""', "") + "</tr>"

    head = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
    head = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    return f"<table>{head}<tbody>{''.join(map(line, rows))}</tbody></table>"


def _cell(value):
    """A cell, whose path of a step may be wrapped."""
    return html.escape(str(value)).replace("__", "__<wbr>")


_HTML = {
    "text": lambda text: f"<p>{html.escape(text)}</p>",
    "flaw": lambda text: f'<p class="flaw">{html.escape(text)}</p>',
    "list": lambda items: (
        "<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"
    ),
    "table": _html_table,
}
