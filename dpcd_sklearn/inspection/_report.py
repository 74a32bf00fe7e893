"""A report to file: what was released at which noise, and what is not protected.

One list of sections is printed as Markdown and as HTML; an entry of OpenDP's registry of
deployments has a template of its own.
"""

import datetime
import hashlib
import html
import json
import math
import os
from pathlib import Path

from ..privacy.accounting._gaussian_dp import gdp_mu
from ..privacy.ledger._ledger_report import table_of
from ..utils._texts import html_table
from ._report_facts import facts_of


class PrivacyReport:
    """A report to file of a fitted model, pipeline or search, or of a ledger.

    It says which (ε, δ) holds for whom, what was released at which noise, which bounds were stated
    and who vouches for them, what is not protected and what was found to leak, with versions and a
    hash. It is made of parameters and of what was released, so it costs nothing and may be
    published as the model may.

    Privacy
    -------
    Read are parameters, public attributes of a fit, its event and the entries of a ledger, never
    records or anything that was not released: two fits that released the same have the same report.
    A report of a ledger tells the names, shapes and times of all fits that were charged, and who
    charged them unless the accountant has ``user=None``.

    Parameters
    ----------
    subject : estimator or PrivacyAccountant
        A fitted private model, transformer, pipeline or search of this package; scikit-learn's
        ``Pipeline`` with one of them inside; or the accountant of a ledger.
    vouched_by : str, default=None
        Who says that stated bounds and classes are public; None is reported as "nobody is named".
    date : str, default=None
        Day of the report, as 2026-01-31; None is today.

    Attributes
    ----------
    facts : dict
        All that the report says, as plain values that JSON has.
    hash : str
        SHA-256 of the facts as JSON with sorted keys.

    Raises
    ------
    TypeError
        If `subject` has no event of its own, as scikit-learn's searches have none.
    NotFittedError
        If it is not fitted.
    LedgerError
        If a ledger can't be read or was changed.

    See Also
    --------
    find_leaks : What the report says about leaks, of objects that are not fitted.
    BudgetDisplay : A ledger over time.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.inspection import PrivacyReport
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> bounds = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}
    >>> model = DPRidgeSkGD(epsilon=1.0, delta=1e-7, **bounds).fit(X, X[:, 0])
    >>> report = PrivacyReport(model, vouched_by="the data's owner", date="2026-01-31")
    >>> print(report.to_markdown().splitlines()[0])
    # Privacy report: DPRidgeSkGD
    >>> report.facts["guarantee"]["epsilon"], report.facts["guarantee"]["flaws"]
    (1.0, [])
    """

    def __init__(self, subject: object, *, vouched_by: str | None = None, date: str | None = None):
        date = datetime.date.today().isoformat() if date is None else date
        self.facts = facts_of(subject, vouched_by, date)
        text = json.dumps(self.facts, sort_keys=True, ensure_ascii=False)
        self.hash = hashlib.sha256(text.encode()).hexdigest()
        self._title = f"Privacy report: {self.facts['name']}"

    def to_json(self) -> str:
        """Return the facts and their hash as JSON.

        Returns
        -------
        text : str
        """
        return json.dumps(self.facts | {"hash": self.hash}, indent=2, ensure_ascii=False)

    def to_markdown(self) -> str:
        """Return the report as Markdown.

        Returns
        -------
        text : str
        """
        parts = [f"# {self._title}", f"{self.facts['date']} · SHA-256 `{self.hash}`"]
        for title, blocks in sections_of(self.facts):
            parts += [f"## {title}", *map(_markdown, blocks)]
        return "\n\n".join(parts) + "\n"

    def to_html(self) -> str:
        """Return the report as one HTML page that needs nothing else.

        Returns
        -------
        text : str
        """
        return (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f"<title>{html.escape(self._title)}</title></head>"
            f"<body>{self._repr_html_()}</body></html>\n"
        )

    def to_registry_yaml(self, **asked: object) -> str:
        """Return an entry for OpenDP's registry of deployments, as a draft.

        Tiers 2 and 3 are filled; what only the curator knows is asked for, and marked in the text
        where it was not given.

        Parameters
        ----------
        **asked
            Any of ``name``, ``data_curators``, ``description``, ``intended_use``,
            ``data_product_region``, ``data_product_sector``, ``publication_date``,
            ``registry_authors`` and ``justification``.

        Returns
        -------
        text : str
            YAML.

        Raises
        ------
        TypeError
            If something else is given.
        ValueError
            If nothing is protected: such a release is no deployment.
        """
        if flaws := self.facts["guarantee"]["flaws"]:
            raise ValueError(f"no guarantee holds ({flaws[0]}), so there is nothing to register")
        return registry_entry_of(self.facts, asked)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, in the form that its suffix names.

        Parameters
        ----------
        path : str or path-like
            Ends in .html, .json, .md or .yaml (the registry's entry).

        Raises
        ------
        ValueError
            If it has another suffix.
        """
        forms = {".html": self.to_html, ".json": self.to_json}
        forms |= {".md": self.to_markdown, ".yaml": self.to_registry_yaml}
        suffix = Path(path).suffix
        if suffix not in forms:
            raise ValueError(f"path must end in one of {', '.join(forms)}, got {str(path)!r}")
        Path(path).write_text(forms[suffix](), encoding="utf-8")

    def __str__(self):
        return self.to_markdown()

    def __repr__(self):
        return f"PrivacyReport of {self.facts['name']}, {self.hash[:12]}"

    def _repr_html_(self):
        date, title = self.facts["date"], html.escape(self._title)
        parts = [f"<h1>{title}</h1>", f"<p>{date} · SHA-256 <code>{self.hash}</code></p>"]
        for heading, blocks in sections_of(self.facts):
            parts += [f"<h2>{html.escape(heading)}</h2>", *map(_html, blocks)]
        return f'<style>{_STYLE}</style><div class="dpcd-report">{"".join(parts)}</div>'


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
            f"The budget of all releases in the ledger together ({len(released)}); spent so far: "
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
