"""Columns of data frames, judged by name and dtype alone, and the pipeline to write for them."""

import itertools
import re

from ._cells import kind_of_dtype

AS_DAYS = (
    "Write dates as numbers of days from a day that is public, such as (X['date'] - "
    "pd.Timestamp('2020-01-01')) / pd.Timedelta('1D'); missing ones are NaN then. Or as years, "
    "months and weekdays, by dpcd_sklearn.compose.date_parts(X)"
)
_IDENTIFIERS = "id ids uuid guid name names surname firstname lastname fullname email mail phone "
_IDENTIFIERS += "telephone mobile ssn mrn iban passport ticket address url username"
_DATES = "date dates datetime timestamp birthday birthdate dob"


def _tokens(name):
    """Words of a name, in lower case: PassengerId and passenger_id have two."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name if isinstance(name, str) else "")
    return {part.lower() for part in parts}


def is_identifier(name):
    """Whether a column seems to name a person or a record, by its own name."""
    return not _tokens(name).isdisjoint(_IDENTIFIERS.split())


def columns_of_kind(X, *kinds):
    """Name and dtype of the columns of a data frame that hold cells of these kinds."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return []
    columns = zip(X.columns, X.dtypes, strict=True)
    return [(name, dtype) for name, dtype in columns if kind_of_dtype(dtype) in kinds]


def columns_of_words(X):
    """Name and dtype of the columns of a data frame that hold neither numbers nor dates."""
    return columns_of_kind(X, "words", "bytes", "objects")


def is_date(name):
    """Whether a column seems to hold dates, by its name."""
    return not _tokens(name).isdisjoint(_DATES.split())


def as_dates(names):
    """Say how to convert columns of words that are dates by their names."""
    return f"{names!r} seem to hold dates as words: write pd.to_datetime(X[{names[0]!r}]) first"


def written(groups, model, options=""):
    """The code of a pipeline for a table, as `black` would wrap it: steps by columns, a model."""
    lines = "".join(wrapped(f"({step}, {names!r}),", 12) for step, names in groups)
    return (
        "    make_private_pipeline(\n        make_private_column_transformer(\n"
        f"{lines}        ),\n{wrapped(f'{model},', 8)}{options}    )\n"
    )


def wrapped(code, indent, width=88):
    """Break the code of a call, list or tuple at its outermost commas until lines are short."""
    plain = re.sub(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"", lambda m: "_" * len(m[0]), code)
    bracket = re.search(r"[(\[{].", plain)
    if len(line := " " * indent + code) <= width or not bracket:
        return f"{line}\n"
    depth, starts = 0, [bracket.start() + 1]
    for i in range(starts[0], len(code)):
        depth += (plain[i] in "([{") - (plain[i] in ")]}")
        if depth < 0 or (depth == 0 and plain[i] == ","):
            starts.append(i + 1)
        if depth < 0:
            break
    parts = [code[i : j - 1].strip() for i, j in itertools.pairwise(starts)]
    inner = "".join(wrapped(f"{part},", indent + 4, width) for part in parts if part)
    return f"{line[: indent + starts[0]]}\n{inner}{' ' * indent}{code[starts[-1] - 1 :]}\n"


def refusal_of_table(X, words, dates, model):
    """All that is wrong with a table of numbers and words, and the pipeline to write for it."""
    told = ", ".join(f"{name!r} ({dtype})" for name, dtype in [*words, *dates])
    n_others = len(words) + len(dates)
    text = f"X holds {n_others} of {len(X.columns)} columns that are no numbers: {told}. "
    if dates:
        text += f"{AS_DAYS}. "
    if not words:
        return text.rstrip()
    if objects := columns_of_kind(X, "objects"):
        name = objects[0][0]
        text += f"If cells of {name!r} are dates, pd.to_datetime(X[{name!r}]) makes them so. "
    if days := [name for name, _ in words if is_date(name)]:
        text += f"{as_dates(days)}. "
    names = [name for name, _ in words if name not in days]
    others = [name for name in X.columns if name not in dict(words)]
    groups = [("DPOneHotEncoder()", names)] if names else []
    if others:
        groups.append(("make_pipeline(DPSimpleImputer(), DPStandardScaler())", others))
    text += (
        "State the categories that are public, DPOneHotEncoder(categories={column: [...]}), and "
        "bounds, BoundsScaler instead of DPStandardScaler: they cost nothing, and gain most "
        "where records are few. "
        f"Encode {'words' if dates or days else 'them'}, and fill what is missing, by steps that "
        "share the budget, as dpcd_sklearn.compose.private_table_model(X) writes them:\n\n"
        f"{written(groups, f'{model}()')}\n"
    )
    return text + (
        "What other steps learn from the records, levels, means or medians, is outside of the "
        "guarantee"
    )
