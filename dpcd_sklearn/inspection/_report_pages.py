"""A report's facts as Markdown, as HTML and as an entry of OpenDP's registry of deployments."""

import html
import json
import math

from ..privacy.accounting._gaussian_dp import gdp_mu
from ..privacy.ledger._ledger_report import table_of
from ..utils._texts import html_table

# ---- sections, in order -------------------------------------------------------------------------
#
# A block is a text, a list of texts, or a table: a dict of facts, or a list of dicts.


def sections_of(facts):
    """Titles with their blocks."""
    if flaws := facts["guarantee"]["flaws"]:
        yield "No guarantee holds", [flaws]
    else:
        yield "The guarantee", [*_guarantee(facts), facts["about"]]
    covered = (
        "A release that is covered protects each row as well as Gaussian noise does, but for an "
        "event of the probability δ₀, in which it may tell all of a row; δ has room for it."
    )
    released = facts["releases"] or "Nothing yet."
    yield "What was released", [released, covered] if "δ₀" in str(released) else [released]
    if facts["kind"] != "ledger":
        if curve := [{"δ": f"{delta:g}", "ε": epsilon} for delta, epsilon in facts["curve"]]:
            yield "The same at other δ", [curve]
        bounds = facts["bounds"] or "None was stated, and none was found."
        yield "Bounds, and who vouches for them", [bounds]
        if facts["coefficients"]:
            yield "Coefficients, beside the noise in them", _coefficients(**facts["coefficients"])
        none = (
            "None, by the rules of find_leaks. That is no proof: bounds that were read off the "
            "records, and several rows of one person, can't be seen in an object."
        )
        yield "Leaks found", [facts["leaks"] or none]
    yield "What is not protected", [facts["not_protected"]]
    yield "Versions", [facts["versions"]]


def _guarantee(facts):
    stated = facts["guarantee"]
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
        f"two {stated['neighbours']}, the probability of any outcome under the one is at most e^ε "
        f"times that under the other, plus δ. The unit is {stated['unit']}.",
        "In plain words: whatever follows from what was released is at most "
        f"{_rounded(math.exp(min(epsilon, 700)), math.ceil)} times as likely, plus 1 in "
        f"{_rounded(1 / delta, math.floor)}, with one {whose} in the data as with "
        f"{other[stated['neighboring']]}.",
        "For an engineer: one Gaussian mechanism with noise multiplier "
        f"{1 / gdp_mu(epsilon, delta):.4g} has the same ε and δ.",
    ]


def _coefficients(of, rows, noise_known, n_arbitrary):
    if len(rows) < of:
        yield f"The {len(rows)} largest of {of:,}."
    if noise_known:
        yield "Noise is the standard deviation by noise alone; a standard error includes it."
    else:
        yield "How coefficients follow the noise is not known of this fit."
    if n_arbitrary:
        yield (
            f"The noise of {n_arbitrary:,} is not stated, and they come last: what was released "
            "does not tell them apart from others, so their values mean nothing alone."
        )
    yield rows


def _rounded(value, way):
    """A large number of three digits that people read, rounded this way."""
    if not 10 <= value < 1e15:
        return f"{value:.3g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{way(round(value / unit, 9)) * unit:,.{0 if unit >= 1 else 1}f}"


# ---- Markdown and HTML --------------------------------------------------------------------------


def markdown_of(facts, digest):
    """The report as Markdown."""
    parts = [f"# Privacy report: {facts['name']}", f"{facts['date']} · SHA-256 `{digest}`"]
    for title, blocks in sections_of(facts):
        parts += [f"## {title}", *map(_markdown, blocks)]
    return "\n\n".join(parts) + "\n"


def _markdown(block):
    if isinstance(block, str):
        return block
    if isinstance(block, list) and isinstance(block[0], str):
        return "\n".join(f"- {item}" for item in block)
    head, *rows = table_of(block)
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# System colours follow the reader's theme.
_STYLE = """
.dpcd-report { color-scheme: light dark; color: CanvasText; background: Canvas; max-width: 75rem;
  margin: 0 auto; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; }
.dpcd-report p, .dpcd-report ul { max-width: 52rem; }
.dpcd-report table { border-collapse: collapse; display: block; overflow-x: auto; }
.dpcd-report th, .dpcd-report td { color: CanvasText; background: Canvas; padding: .25rem .6rem;
  border-bottom: 1px solid GrayText; font-variant-numeric: tabular-nums; }
.dpcd-report code { overflow-wrap: anywhere; }
"""


def html_of(facts, digest, whole=True):
    """The report as HTML: a page by itself, or an element for the output of a notebook."""
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
        f'<meta name="color-scheme" content="light dark"><title>{title}</title></head>'
        f"<body>{body}</body></html>\n"
    )


def _html(block):
    if isinstance(block, str):
        return f"<p>{html.escape(block)}</p>"
    if isinstance(block, list) and isinstance(block[0], str):
        return f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for item in block)}</ul>"
    return html_table(table_of(block))


# ---- An entry for OpenDP's registry of deployments: one template, whose fields the tests check ---

# Fields that nobody but the curator can fill in.
_ASKED = (
    *("name", "data_curators", "description", "intended_use", "data_product_region"),
    *("data_product_sector", "publication_date", "registry_authors", "justification"),
)
_ENTRY = """\
url_slug: {slug}
deployment:
  basic:
    name: {name}
    data_curators: {data_curators}
    description: {description}
    intended_use: {intended_use}
    data_product_type: Machine learning model
    data_product_region: {data_product_region}
    data_product_sector: {data_product_sector}
    publication_date: {publication_date}
  dp_variant:
    variant_name: Approximate DP
    data_domain: {data_domain}
    unprotected_quantities: {not_protected}
  privacy_loss:
    privacy_unit: {unit}
    privacy_unit_details: {unit_details}
    privacy_parameters:
      epsilon: {epsilon}
      delta: {delta}
    privacy_parameters_details: {loss}
  deployment_model:
    model_name: Central
    model_name_details: Whoever fits the model reads the records; what leaves has noise.
    trust_assumptions: >-
      The machine that fits, its memory, its entropy and the ledger's file are trusted, and the
      statement that bounds and parameters were not chosen by looking at the records.
    actors: >-
      The curator, who holds the records and fits; users of the model, who may know the code, every
      parameter, the ledger and all records but one.
    release_type: {release_type}
    release_type_details: {release_type_details}
    data_source_type: Static
    access_type: Non-interactive
  implementation:
    preprocessing_and_hyperparameter_tuning: {tuning}
    mechanisms: {mechanisms}
    composition: {composition}
    post_processing: >-
      Iterates are averaged, coefficients shrunk by released and public numbers, and predictions
      computed from them.
    justification: {justification}
  administrative:
    status: Draft
    registry_authors: {registry_authors}
    tier: 3
"""
_ARITHMETIC = (
    "Each record contributes integers, clamped after rounding, so that sums are exact in any "
    "order; the noise added to them is an exactly normal number, rounded. Randomness comes from "
    "the operating system's entropy through ChaCha20. Library: dpcd_sklearn "
)
_OF_A_LEDGER = {
    "release_type": "Many releases",
    "release_type_details": "Later releases may be chosen by earlier ones, within one budget.",
    "composition": "A fully adaptive privacy filter: each entry was charged before a record was "
    "used, and what would have exceeded the budget was refused.",
}
_OF_A_FIT = {
    "release_type": "One release",
    "release_type_details": "One fitted model, with all that it released on the way.",
    "composition": "All releases of the fit were planned from public numbers, and composed as one "
    "event before the first record was used.",
}
_TUNING = {
    "search": "Candidates were searched privately: the number of runs, the other candidates and "
    "their scores are secret, and all of it is part of the stated loss.",
    "pipeline": "Steps before the model learn nothing from the records, or are part of the stated "
    "loss.",
}


def registry_entry_of(facts, asked):
    """The YAML of an entry; of what is asked for and not given a text is empty.

    Raises
    ------
    TypeError
        If something is given that an entry has no place for.
    """
    if strange := sorted(set(asked) - set(_ASKED)):
        raise TypeError(f"{strange[0]} is not asked for: an entry takes {', '.join(_ASKED)}")
    stated, released, clipped = facts["guarantee"], facts["releases"], facts.get("bounds")
    values = dict.fromkeys(_ASKED, "") | _OF_A_FIT
    values["publication_date"] = facts["date"]
    values["justification"] = (
        "Clips, step sizes and numbers of updates follow public numbers alone."
    )
    if facts["kind"] == "ledger":
        values |= _OF_A_LEDGER
        released = [f"{entry['estimator']}: {entry['released']}" for entry in released]
        spent = facts["about"]["spent so far, as ε at the same δ"]
        values["loss"] = (
            f"The budget of all {len(released)} releases in the ledger together; spent so far: "
            f"epsilon {spent} at the same delta."
        )
    else:
        curve = ", ".join(f"({epsilon}, {delta:g})" for delta, epsilon in facts["curve"][::3])
        values["loss"] = f"Everything that the fit released, together. Also on its curve: {curve}."
    values |= {name: value for name, value in asked.items() if value}
    name = values["name"] = values["name"] or facts["name"]
    bounds = "; ".join(
        f"{b['name']} {json.dumps(b['value'])} ({b['source']})" for b in clipped or ()
    )
    domain = "Tables of finite numbers with one row a record"
    values |= {
        "slug": "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split()),
        "data_domain": f"{domain}, clipped to: {bounds}" if bounds else domain,
        "not_protected": _listed(facts["not_protected"]),
        "unit": "Record-level" if stated["max_contributions"] == 1 else "Person-level",
        "unit_details": f"Neighbours are {stated['neighbours']}. The unit is {stated['unit']}.",
        "epsilon": stated["epsilon"],
        "delta": stated["delta"],
        "tuning": _TUNING.get(
            facts["kind"],
            "None beside what is listed; scales that were found are part of the loss.",
        ),
        "mechanisms": _listed([*released, f"{_ARITHMETIC}{facts['versions']['dpcd_sklearn']}."]),
    }
    for name in ("data_curators", "registry_authors"):
        given = values[name]
        values[name] = list(given) if isinstance(given, (list, tuple)) else [given]
    return _ENTRY.format_map({name: _scalar(value) for name, value in values.items()})


def _listed(lines):
    return "\n".join(f"- {line}" for line in lines)


def _scalar(value):
    """A value as JSON writes it, which YAML reads."""
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in text:  # YAML reads 1e-07 as a word
        return text.replace("e", ".0e")
    return text + "  # fill in" * (value in ("", [""]))
