"""An entry for OpenDP's registry of deployments, checked against our own list of its fields."""

import json

STATUS = "Draft"
# The template of good entries in opendp/deployments-registry-data; a value is the tier that
# asks for a field, or the words that it may have.
FIELDS = {
    "url_slug": 1,
    "deployment": {
        "basic": {
            "name": 1,
            "data_curators": 1,
            "description": 1,
            "intended_use": 1,
            "data_product_type": ("Machine learning model", "Summary statistics"),
            "data_product_region": 1,
            "data_product_sector": 1,
            "publication_date": 1,
        },
        "dp_variant": {
            "variant_name": ("Approximate DP", "Pure DP", "Zero-concentrated DP"),
            "data_domain": 3,
            "unprotected_quantities": 3,
        },
        "privacy_loss": {
            "privacy_unit": 2,
            "privacy_unit_details": 3,
            "privacy_parameters": {"epsilon": 2, "delta": 2},
            "privacy_parameters_details": 3,
        },
        "deployment_model": {
            "model_name": ("Central",),
            "model_name_details": 3,
            "trust_assumptions": 3,
            "actors": 3,
            "release_type": ("One release", "Many releases"),
            "release_type_details": 3,
            "data_source_type": ("Static", "Dynamic"),
            "access_type": ("Non-interactive", "Interactive"),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": 3,
            "mechanisms": 3,
            "composition": 3,
            "post_processing": 3,
            "justification": 3,
        },
        "administrative": {"status": (STATUS,), "registry_authors": 1, "tier": (1, 2, 3)},
    },
}
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
    name = given["name"] or facts["name"]
    deployment = {
        "basic": _basic(facts, given, name),
        "dp_variant": {
            "variant_name": "Approximate DP",
            "data_domain": _data_domain(facts),
            "unprotected_quantities": _listed(facts["not_protected"]),
        },
        "privacy_loss": _privacy_loss(facts),
        "deployment_model": _deployment_model(facts),
        "implementation": _implementation(facts, given["justification"]),
        "administrative": {
            "status": STATUS,
            "registry_authors": _several(given["registry_authors"]),
            "tier": 3,
        },
    }
    slug = "-".join("".join(c if c.isalnum() else " " for c in name.lower()).split())
    return {"url_slug": slug, "deployment": deployment}


def _basic(facts, given, name):
    known = {
        "name": name,
        "data_curators": _several(given["data_curators"]),
        "data_product_type": "Machine learning model",
        "publication_date": given["publication_date"] or facts["date"],
    }
    return {field: known.get(field, given.get(field)) for field in FIELDS["deployment"]["basic"]}


def _data_domain(facts):
    bounds = facts.get("bounds") or ()
    clipped = [f"{row['name']} {json.dumps(row['value'])} ({row['source']})" for row in bounds]
    return "Tables of finite numbers with one row a record" + (
        ", clipped to: " + "; ".join(clipped) if clipped else ""
    )


def _privacy_loss(facts):
    guarantee = facts["guarantee"]
    if facts["kind"] == "ledger":
        details = (
            f"The budget of all {len(facts['entries'])} releases in the ledger together; spent so "
            f"far: epsilon {facts['spent']} at the same delta."
        )
    else:
        curve = ", ".join(f"({epsilon}, {delta:g})" for delta, epsilon in facts["curve"][::3])
        details = f"Of everything that the fit released together. On its curve also: {curve}."
    return {
        **_unit(guarantee),
        "privacy_parameters": {"epsilon": guarantee["epsilon"], "delta": guarantee["delta"]},
        "privacy_parameters_details": details,
    }


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


def _deployment_model(facts):
    many = facts["kind"] == "ledger"
    return {
        "model_name": "Central",
        "model_name_details": "Whoever fits the model reads the records; what leaves has noise.",
        "trust_assumptions": (
            "The machine that fits, its memory, its entropy and the ledger's file are trusted, and "
            "the statement that bounds and parameters were not chosen by looking at the records."
        ),
        "actors": (
            "The curator, who holds the records and fits; users of the model, who may know the "
            "code, every parameter, the ledger and all records but one."
        ),
        "release_type": "Many releases" if many else "One release",
        "release_type_details": (
            "Later releases may be chosen by earlier ones, within one budget."
            if many
            else "One fitted model, with all that it released on the way."
        ),
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(facts, justification):
    if facts["kind"] == "ledger":
        released = [f"{entry['estimator']}: {entry['event']}" for entry in facts["entries"]]
        composed = (
            "A fully adaptive privacy filter: each entry was charged before a record was used, and "
            "what would have exceeded the budget was refused."
        )
    else:
        released = facts["releases"]
        composed = (
            "All releases of the fit were planned from public numbers, and composed as one event "
            "before the first record was used."
        )
    tuned = {
        "search": "Candidates were searched privately: the number of runs, the other candidates "
        "and their scores are secret, and all of it is part of the stated loss.",
        "pipeline": "Steps before the model learn nothing from the records, or are part of the "
        "stated loss.",
    }.get(facts["kind"], "None beside what is listed; scales that were found are part of the loss.")
    return {
        "preprocessing_and_hyperparameter_tuning": tuned,
        "mechanisms": _listed([*released, _ARITHMETIC + facts["versions"]["dpcd_sklearn"] + "."]),
        "composition": composed,
        "post_processing": (
            "Iterates are averaged, coefficients shrunk by released and public numbers, and "
            "predictions computed from them."
        ),
        "justification": justification
        or "Clips, step sizes and numbers of updates follow public numbers alone.",
    }


def _several(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _listed(lines):
    return "\n".join(f"- {line}" for line in lines)


def faults_of(entry, fields=None, path=""):
    """Fields of an entry that are not in the list, and those of tiers 2 and 3 that it lacks."""
    fields = FIELDS if fields is None else fields
    for name in entry:
        if name not in fields:
            yield f"{path}/{name} is no field"
    for name, asked in fields.items():
        value, place = entry.get(name), f"{path}/{name}"
        if isinstance(asked, dict):
            yield from faults_of(value or {}, asked, place)
        elif isinstance(asked, tuple):
            if value not in asked:
                yield f"{place} is none of {asked}"
        elif asked > 1 and value in (None, ""):
            yield f"{place} is empty"


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
