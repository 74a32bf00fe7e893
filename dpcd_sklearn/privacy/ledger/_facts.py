"""The public facts of one charge, as the columns of its entry."""

import dataclasses
import getpass
import platform

from ...utils._public import check_count
from ..accounting._accounting import MOST, checked_releases
from ..accounting._events import FitEvent
from ._ledger_entries import package_version, plain_text, to_json


def signature_of(user, note):
    """Columns that say who charges an entry: of the process and its caller, never of records.

    Raises
    ------
    TypeError
        If `user` or `note` is no string (user may be None).
    """
    for name, value in (("user", "" if user is None else user), ("note", note)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, got {value!r}")
    host = "" if user is None else platform.node()
    if user == "auto":
        try:
            user = getpass.getuser()
        except (ImportError, KeyError, OSError):  # a process whose account has no name
            user = "unknown"
    return {"user": plain_text(user or ""), "host": plain_text(host), "note": plain_text(note)}


def facts_of_charge(event, price, n_public, *, estimator, params, n_samples, n_features, signature):
    """Columns that say what was charged; the parameters are those of the accountant's `charge`.

    `signature` is of `signature_of`.

    Raises
    ------
    TypeError, ValueError
        If params is no dict, or a shape no integer >= 0.
    """
    if params is not None and not isinstance(params, dict):
        raise TypeError(f"params must be a dict or None, got {params!r}")
    if n_public is None:
        n_public = _known(n_samples, "n_samples")
    return {
        "amount": price.amount,
        "delta": price.delta,
        "private": int(price.private),
        "estimator": plain_text(estimator),
        "params": to_json(params or {}),
        "event": plain_text(event),
        "releases": to_json([_described(r) for r in checked_releases(event)]),
        "n_samples": n_public,
        "n_features": _known(n_features, "n_features"),
        "version": package_version(),
        **signature,
    }


def _described(release):
    numbers = {field.name: getattr(release, field.name) for field in dataclasses.fields(release)}
    if isinstance(numbers.get("base"), FitEvent):
        numbers["base"] = [_described(part) for part in numbers["base"].releases]
    return {"release": type(release).__name__, **numbers}


def _known(value, name):
    return None if value is None else check_count(value, name, low=0, high=MOST)
