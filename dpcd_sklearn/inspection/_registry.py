"""An entry for OpenDP's registry of deployments: one template, whose fields the tests check."""

import json

# Fields that nobody but the curator can fill in.
ASKED = (
    *("name", "data_curators", "description", "intended_use", "data_product_region"),
    *("data_product_sector", "publication_date", "registry_authors", "justification"),
)
_ADJACENT = {
    "replace_one": "Two tables of the same length are adjacent if they differ in one row.",
    "add_remove": "Two tables are adjacent if one has a row more than the other.",
}
_UNIT = "The unit is one row; a person with several rows is not one unit."
_ADJACENT_BY_PERSONS = {
    "replace_one": "in the rows of one person, which are replaced by others.",
    "add_remove": "in the rows of one person, which only one of them has.",
}
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
            **_unit(guarantee),
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


def _unit(guarantee):
    """The unit is a row, or a person of as many rows as are promised."""
    relation, k = guarantee["neighboring"], guarantee["max_contributions"]
    if k == 1:
        unit, details = "Record-level", f"{_ADJACENT[relation]} {_UNIT}"
    else:
        differ = f"Two tables are adjacent if they differ {_ADJACENT_BY_PERSONS[relation]}"
        unit = "Person-level"
        details = f"{differ} The unit is a person of any number of rows, by its id."
        if k is not None:
            details = (
                f"{differ} The unit is a person of at most {k:,} rows, which the curator promises."
            )
    return {"privacy_unit": unit, "privacy_unit_details": details}


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
