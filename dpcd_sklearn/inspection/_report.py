"""A report to file: what was released at which noise, and what is not protected."""

import datetime
import hashlib
import json
import os
from pathlib import Path

from ._report_facts import facts_of
from ._report_pages import html_of, markdown_of, neighbours_of

# ---- An entry for OpenDP's registry of deployments: one template, whose fields the tests check ---

# Fields that nobody but the curator can fill in.
ASKED = (
    *("name", "data_curators", "description", "intended_use", "data_product_region"),
    *("data_product_sector", "publication_date", "registry_authors", "justification"),
)
_ARITHMETIC = (
    "Each record contributes integers, clamped after rounding, so that sums are exact in any "
    "order; the noise added to them is an exactly normal number, rounded. Randomness comes from "
    "the operating system's entropy through ChaCha20. Library: dpcd_sklearn "
)
_TUNED = {
    "search": "Candidates were searched privately: the number of runs, the other candidates "
    "and their scores are secret, and all of it is part of the stated loss.",
    "pipeline": "Steps before the model learn nothing from the records, or are part of the "
    "stated loss.",
}


def entry_of(facts, asked):
    """The nested dict of an entry; of what is asked for and not given a text is empty.

    Raises
    ------
    TypeError
        If something is given that an entry has no place for.
    """
    if strange := sorted(set(asked) - set(ASKED)):
        raise TypeError(f"{strange[0]} is not asked for: an entry takes {', '.join(ASKED)}")
    given = {name: asked.get(name, "") for name in ASKED}
    name, guarantee = given["name"] or facts["name"], facts["guarantee"]
    clipped = "; ".join(
        f"{row['name']} {json.dumps(row['value'])} ({row['source']})"
        for row in facts.get("bounds") or ()
    )
    if many := facts["kind"] == "ledger":
        released = [f"{entry['estimator']}: {entry['event']}" for entry in facts["entries"]]
        loss = (
            f"The budget of all {len(released)} releases in the ledger together; spent so far: "
            f"epsilon {facts['spent']} at the same delta."
        )
    else:
        released = facts["releases"]
        curve = ", ".join(f"({epsilon}, {delta:g})" for delta, epsilon in facts["curve"][::3])
        loss = f"Of everything that the fit released together. On its curve also: {curve}."
    deployment = {
        "basic": {
            "name": name,
            "data_curators": _several(given["data_curators"]),
            "description": given["description"],
            "intended_use": given["intended_use"],
            "data_product_type": "Machine learning model",
            "data_product_region": given["data_product_region"],
            "data_product_sector": given["data_product_sector"],
            "publication_date": given["publication_date"] or facts["date"],
        },
        "dp_variant": {
            "variant_name": "Approximate DP",
            "data_domain": "Tables of finite numbers with one row a record"
            + (f", clipped to: {clipped}" if clipped else ""),
            "unprotected_quantities": _listed(facts["not_protected"]),
        },
        "privacy_loss": {
            "privacy_unit": "Record-level"
            if guarantee["max_contributions"] == 1
            else "Person-level",
            "privacy_unit_details": f"Neighbours are {neighbours_of(guarantee)}. The unit is "
            f"{guarantee['unit']}.",
            "privacy_parameters": {"epsilon": guarantee["epsilon"], "delta": guarantee["delta"]},
            "privacy_parameters_details": loss,
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "Whoever fits the model reads the records; what leaves has "
            "noise.",
            "trust_assumptions": "The machine that fits, its memory, its entropy and the ledger's "
            "file are trusted, and the statement that bounds and parameters were not chosen by "
            "looking at the records.",
            "actors": "The curator, who holds the records and fits; users of the model, who may "
            "know the code, every parameter, the ledger and all records but one.",
            "release_type": "Many releases" if many else "One release",
            "release_type_details": "Later releases may be chosen by earlier ones, within one "
            "budget."
            if many
            else "One fitted model, with all that it released on the way.",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _TUNED.get(
                facts["kind"],
                "None beside what is listed; scales that were found are part of the loss.",
            ),
            "mechanisms": _listed(
                [*released, _ARITHMETIC + facts["versions"]["dpcd_sklearn"] + "."]
            ),
            "composition": "A fully adaptive privacy filter: each entry was charged before a "
            "record was used, and what would have exceeded the budget was refused."
            if many
            else "All releases of the fit were planned from public numbers, and composed as one "
            "event before the first record was used.",
            "post_processing": "Iterates are averaged, coefficients shrunk by released and public "
            "numbers, and predictions computed from them.",
            "justification": given["justification"]
            or "Clips, step sizes and numbers of updates follow public numbers alone.",
        },
        "administrative": {
            "status": "Draft",
            "registry_authors": _several(given["registry_authors"]),
            "tier": 3,
        },
    }
    slug = "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
    return {"url_slug": slug, "deployment": deployment}


def _several(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _listed(lines):
    return "\n".join(f"- {line}" for line in lines)


def yaml_of(value, indent=0):
    """Nested dicts and lists as YAML: every scalar is as JSON writes it, which YAML reads."""
    lines = []
    for name, each in value.items():
        head = " " * indent + f"{name}:"
        if isinstance(each, dict):
            lines += [head, yaml_of(each, indent + 2)]
        elif isinstance(each, list):
            lines += [head, *(" " * (indent + 2) + f"- {_scalar(one)}" for one in each)]
        else:
            lines.append(f"{head} {_scalar(each)}" + ("  # fill in" if each == "" else ""))
    return "\n".join(lines)


def _scalar(value):
    text = json.dumps(value, ensure_ascii=False)
    # YAML reads 1e-07 as a word
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


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
        self.hash = hashlib.sha256(self._canonical().encode()).hexdigest()

    def _canonical(self):
        return json.dumps(self.facts, sort_keys=True, ensure_ascii=False)

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
        return markdown_of(self.facts, self.hash)

    def to_html(self) -> str:
        """Return the report as one HTML page that needs nothing else.

        Returns
        -------
        text : str
        """
        return html_of(self.facts, self.hash)

    def to_registry_yaml(self, **asked: object) -> str:
        """Return an entry for OpenDP's registry of deployments, as a draft.

        Tiers 2 and 3 are filled; what only the curator knows is asked for, and marked in the text
        where it was not given.

        Parameters
        ----------
        **asked
            Of ``name``, ``data_curators``, ``description``, ``intended_use``,
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
        return yaml_of(entry_of(self.facts, asked)) + "\n"

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
        forms = {
            ".html": self.to_html,
            ".json": self.to_json,
            ".md": self.to_markdown,
            ".yaml": self.to_registry_yaml,
        }
        suffix = Path(path).suffix
        if suffix not in forms:
            raise ValueError(f"path must end in one of {', '.join(forms)}, got {str(path)!r}")
        Path(path).write_text(forms[suffix](), encoding="utf-8")

    def __str__(self):
        return self.to_markdown()

    def __repr__(self):
        return f"PrivacyReport of {self.facts['name']}, {self.hash[:12]}"

    def _repr_html_(self):
        return html_of(self.facts, self.hash, whole=False)
