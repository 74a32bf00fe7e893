"""One call for a table of words, numbers and gaps: the pipeline that its columns ask for."""

import textwrap
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

from ..linear_model import DPLinearClassifier, DPLinearRegressor
from ..pipeline import PrivatePipeline, make_private_pipeline
from ..preprocessing import DPOneHotEncoder, DPSimpleImputer, DPStandardScaler
from ..utils._cells import (
    AS_DAYS,
    as_dates,
    columns_of_kind,
    columns_of_words,
    is_date,
    is_identifier,
    wrapped,
    written,
)
from ..utils._input import refuse_repeated_names
from ..utils._typing import Auto, Neighboring
from ._column_transformer import make_private_column_transformer


def date_parts(X: Any) -> Any:
    """Write dates as years, months and weekdays: each of its columns becomes three of numbers.

    Every record is mapped by itself, so nothing is learnt. Write it before a private model, in
    training and in prediction. Months from 1 to 12 and weekdays from 0 (Monday) to 6 have public
    bounds, which `private_table_model` takes as ``bounds={"when_month": (1, 12), ...}``.

    Parameters
    ----------
    X : pandas.DataFrame
        Columns of dates have a dtype ``datetime64``, as ``pd.to_datetime`` returns them.

    Returns
    -------
    X_new : pandas.DataFrame
        A copy. A date column "when" is replaced by "when_year", "when_month" and "when_weekday" at
        the end, of float64; missing dates are NaN in all three.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpcd_sklearn.compose import date_parts
    >>> date_parts(pd.DataFrame({"when": pd.to_datetime(["2026-01-31"])})).to_dict("list")
    {'when_year': [2026.0], 'when_month': [1.0], 'when_weekday': [5.0]}
    """
    if not hasattr(X, "assign"):
        raise TypeError(f"X must be a data frame of pandas, got {type(X)}: pass X.to_pandas()")
    dates = [name for name, dtype in columns_of_kind(X, "dates") if dtype.kind == "M"]
    parts = {
        f"{name}_{part}": getattr(X[name].dt, attribute).astype("float64")
        for name in dates
        for part, attribute in (("year", "year"), ("month", "month"), ("weekday", "day_of_week"))
    }
    return X.drop(columns=dates).assign(**parts)


def private_table_model(
    X: Any,
    y: Any = None,
    *,
    epsilon: float = 1.0,
    delta: Auto = "auto",
    model: BaseEstimator | None = None,
    classes: Any = None,
    target_bounds: tuple | None = None,
    bounds: dict | None = None,
    categories: dict | None = None,
    drop: list | tuple = (),
    keep: list | tuple = (),
    neighboring: Neighboring = "replace_one",
    n_public: int | None = None,
    accountant=None,
    verbose: bool = True,
) -> PrivatePipeline:
    """Make the private pipeline for a table of words, numbers and gaps; print it for editing.

    Columns are judged by name and dtype alone. Words are encoded as indicators, numbers are filled
    and scaled, and a linear model follows, all on one budget. Bounds and categories that you state
    are free; others are found privately, as part of `epsilon`, as is the part of bounds that
    records fill. Everything that is missing is asked for in one error.

    **Privacy**

    - No cell of `X` or `y` is read and nothing is charged: the pipeline is not fitted. Names and
      dtypes of columns are public, as for every private step.
    - Guarantee and charge of its `fit` are those of `PrivatePipeline`: one (`epsilon`, `delta`),
      one entry.

    Parameters
    ----------
    X : data frame of shape (n_samples, n_features)
        Looked at are ``X.columns`` and ``X.dtypes``; it may have no rows.
    y : array-like of shape (n_samples,), default=None
        Looked at is its dtype: floats are a regression and booleans a classification.
    epsilon : float in (0, inf], default=1.0
        Budget of the whole pipeline. A larger one means less noise and less privacy.
    delta : "auto" or float in (0, 1), default="auto"
        "auto" is 1/n², not available under "add_remove".
    model : estimator, default=None
        The last step. None is `DPLinearClassifier` if there are `classes`, else
        `DPLinearRegressor`.
    classes : list, default=None
        All labels that may occur. Public: never from the data.
    target_bounds : tuple (lo, hi), default=None
        Bounds of the target of a regression, in its unit. None finds them privately. Public: never
        from the data.
    bounds : dict {column name: (lo, hi)}, default=None
        Bounds of columns of numbers, in their units. Public: never from the data.
    categories : dict {column name: list}, default=None
        Categories of columns of words, or of numbers that are codes. Public: never from the data.
    drop : list of column names, default=()
        Columns to leave out.
    keep : list of column names, default=()
        Columns to use although they look like identifiers or dates written as words.
    neighboring, n_public, accountant
        As in `PrivatePipeline`: ``neighboring=Persons(k)`` where a person has several rows.
    verbose : bool, default=True
        Whether to print the code of the pipeline, and what it will find privately.

    Returns
    -------
    pipeline : PrivatePipeline
        Not fitted.

    Raises
    ------
    TypeError
        If `X` is no data frame.
    ValueError
        If columns look like identifiers or hold dates, durations, bytes or complex numbers, a
        stated column is not there, or the kind of target is not known. All of it in one message.

    See Also
    --------
    dpcd_sklearn.pipeline.make_private_pipeline : What is printed; edit it to go on.
    date_parts : Columns of dates as years, months and weekdays.

    Examples
    --------
    >>> import pandas as pd
    >>> from dpcd_sklearn.compose import private_table_model
    >>> table = pd.DataFrame({"age": [41.0, None], "ward": ["A", "B"], "patient_id": [7, 8]})
    >>> model = private_table_model(table, classes=[0, 1], drop=["patient_id"])
        make_private_pipeline(
            make_private_column_transformer(
                (DPOneHotEncoder(), ['ward']),
                (make_pipeline(DPSimpleImputer(), DPStandardScaler()), ['age']),
            ),
            DPLinearClassifier(classes=[0, 1]),
            epsilon=1.0,
        )
    Found privately, as part of epsilon: bounds of ['age'], categories of ['ward']. State
    what is public: it is free. Epsilon protects one row: state neighboring=Persons(k) if a
    person may have k rows.
    """
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        raise TypeError(f"X must be a data frame, whose columns have names, got {type(X).__name__}")
    refuse_repeated_names(X)
    bounds, categories = dict(bounds or {}), dict(categories or {})
    X = X[[name for name in X.columns if name not in drop]]
    dtypes = dict(zip(X.columns, X.dtypes, strict=True))
    kind_of_y = getattr(getattr(y, "dtype", None), "kind", None)
    if model is None and classes is None and kind_of_y == "b":
        classes = [False, True]
    words = [name for name, _ in columns_of_words(X) if name not in categories]
    asked = _asked(X, words, keep, bounds, categories)
    if model is classes is target_bounds is None and kind_of_y != "f":
        asked.append("say what the target is: classes=[...], all labels, or target_bounds=(lo, hi)")
    if asked:
        raise ValueError("private_table_model has to be told more:\n- " + "\n- ".join(asked))

    bounds |= {name: (0, 1) for name, dtype in dtypes.items() if _kind(dtype) == "b"}
    encoded = [name for name in X.columns if name in categories or name in words]
    numbers = [name for name in X.columns if name not in encoded]
    bounded = [name for name in numbers if name in bounds]
    found = [name for name in numbers if name not in bounds]
    stated = {"feature_bounds": [bounds[name] for name in bounded]}
    groups = [
        (encoded, [(DPOneHotEncoder, {"categories": categories} if categories else {})]),
        (bounded, [*_imputers(dtypes, bounded, stated), (DPStandardScaler, stated)]),
        (found, [*_imputers(dtypes, found, {}), (DPStandardScaler, {})]),
    ]
    groups = [(names, steps) for names, steps in groups if names]
    if model is None and classes is not None:
        model, text = DPLinearClassifier(classes=classes), f"DPLinearClassifier({classes=!r})"
    elif model is None:
        model = DPLinearRegressor(target_bounds=target_bounds)
        text = "DPLinearRegressor(" + (f"{target_bounds=!r})" if target_bounds else ")")
    else:
        model, text = clone(model), repr(model)
    options = {"epsilon": epsilon, "delta": delta, "neighboring": neighboring}
    options |= {"n_public": n_public, "accountant": accountant}
    made = make_private_pipeline(
        make_private_column_transformer(*((_made(steps), names) for names, steps in groups)),
        model,
        **options,
    )
    if verbose:
        shown = {name: value for name, value in options.items() if value != _DEFAULTS[name]}
        lines = "".join(wrapped(f"{name}={value!r},", 8) for name, value in shown.items())
        print(written([(_text(steps), names) for names, steps in groups], text, lines), end="")
        print(_found_privately(found, bounded, words, model))
    return made


_DEFAULTS = {"epsilon": None, "delta": "auto", "neighboring": "replace_one"}
_DEFAULTS |= {"n_public": None, "accountant": None}


def _kind(dtype):
    return getattr(dtype, "kind", "b" if str(dtype) == "Boolean" else "")  # of polars


def _asked(X, words, keep, bounds, categories):
    """List what must be stated before there is a pipeline."""
    names, asked = list(X.columns), []
    if unknown := [name for name in {**bounds, **categories} if name not in names]:
        asked.append(f"bounds or categories name columns that X does not have: {unknown!r}")
    if both := [name for name in bounds if name in categories or name in words]:
        asked.append(f"bounds are of numbers, and {both!r} hold words or have categories")
    suspects = [name for name in names if name not in keep and name not in categories]
    if identifiers := [name for name in suspects if is_identifier(name)]:
        asked.append(
            f"{identifiers!r} seem to name persons or records, which a model must not learn: "
            f"drop={identifiers!r}, or keep={identifiers!r} if they do not"
        )
    days = [name for name in suspects if name in words and name not in identifiers]
    if days := [name for name in days if is_date(name)]:
        asked.append(f"{as_dates(days)}; or keep={days!r} if they are categories")
    if dates := [name for name, _ in columns_of_kind(X, "dates")]:
        asked.append(f"{dates!r} are dates or durations. {AS_DAYS}")
    if others := [name for name, _ in columns_of_kind(X, "bytes", "complex numbers")]:
        asked.append(f"{others!r} hold bytes or complex numbers: convert or drop them")
    if not names:
        asked.append("no column is left")
    return asked


def _imputers(dtypes, names, params):
    """An imputer, unless no column can have a gap by its dtype: integers of NumPy have none."""
    whole = (isinstance(dtypes[name], np.dtype) and _kind(dtypes[name]) in "biu" for name in names)
    return [] if all(whole) else [(DPSimpleImputer, params)]


def _made(steps):
    made = [kind(**params) for kind, params in steps]
    return made[0] if len(made) == 1 else make_pipeline(*made)


def _text(steps):
    """The code of what `_made` returns."""
    calls = [
        f"{kind.__name__}({', '.join(f'{name}={value!r}' for name, value in params.items())})"
        for kind, params in steps
    ]
    return calls[0] if len(calls) == 1 else f"make_pipeline({', '.join(calls)})"


def _found_privately(found, bounded, words, model):
    """Say what was not stated."""
    told = [f"bounds of {found!r}"] if found else []
    told += [f"categories of {words!r}"] if words else []
    if isinstance(model, DPLinearRegressor) and model.target_bounds is None:
        told.append("bounds of the target")
    asks = "State what is public: it is free. " if told else ""
    told += ["where records lie within the stated bounds"] if bounded else []
    text = f"Found privately, as part of epsilon: {', '.join(told)}. {asks}" if told else ""
    text += "Epsilon protects one row: state neighboring=Persons(k) if a person may have k rows."
    return textwrap.fill(text, 88)
