"""Facts of a model, pipeline, search or ledger for a report: plain values, all of them released.

Read are parameters, public attributes of a fit (which end in an underscore), its event and the
entries of a ledger, and nothing else: a report may be published as the model may.
"""

import math
import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..leaks import find_leaks
from ..linear_model._inference import fixed_features
from ..pipeline._budget_of_step import last_step
from ..privacy.accounting._accounting import epsilon_of
from ..privacy.ledger._accountant import PrivacyAccountant
from ..privacy.ledger._ledger_report import signed_by
from ..utils._public import check_bounds
from ..utils._stated import ReproducibleNoise
from ._model_displays import coefficients_of, names_of

DELTAS = tuple(10.0**-k for k in range(3, 13))
MOST_COEFFICIENTS = 30
_PACKAGES = ("dpcd_sklearn", "numpy", "scipy", "scikit-learn")
NOT_PROTECTED = (
    "the number of records (under replace-one neighbours), the shape and dtype of the table, and "
    "the names of its columns",
    "all that was stated: bounds, classes and every parameter",
    "scores, calibrations and thresholds that were computed from records without noise",
    "the time that a fit takes, and errors about NaN, infinite values and shapes",
    "other releases about the same people that are in another ledger, or in none",
)


def facts_of(subject, vouched_by, date):
    """All that a report says, as a dict of plain values.

    Raises
    ------
    TypeError, ValueError
        If `subject` is no ledger, nor a fitted private estimator, or `vouched_by` no text.
    """
    if vouched_by is not None and not isinstance(vouched_by, str):
        raise TypeError(f"vouched_by must be a text or None, got {vouched_by!r}")
    if isinstance(subject, PrivacyAccountant):
        facts = _facts_of_ledger(subject)
    else:
        facts = _facts_of_estimator(subject, vouched_by)
    k = facts["guarantee"]["max_contributions"]
    beyond = "a person with several rows: the unit is one row"
    if k is None:
        beyond = "a person who comes under two ids"
    elif k > 1:
        beyond = f"a person with more rows than {k:,}, which is a promise about the table"
    versions = {name: _version(name) for name in _PACKAGES} | {"Python": platform.python_version()}
    return facts | {
        "not_protected": [beyond, *NOT_PROTECTED],
        "date": date,
        "versions": versions,
    }


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:  # a source tree that was never installed
        return "unknown"


# ---- a ledger -----------------------------------------------------------------------------------


def _facts_of_ledger(accountant):
    report = accountant.report()
    entries = [
        {
            "id": entry.id,
            "time": entry.time.isoformat(timespec="seconds"),
            "by": signed_by(entry),
            "note": entry.note or "",
            "estimator": entry.estimator,
            "event": entry.event,
            "n_samples": entry.n_samples,
            "n_features": entry.n_features,
            "epsilon_so_far": plain(epsilon),
            "private": entry.private,
        }
        for entry, epsilon in zip(report.entries, report.epsilons, strict=True)
    ]
    flaws = [f"entry {e['id']} protects nobody" for e in entries if not e["private"]]
    if accountant.testing:
        flaws.append("the ledger was made for tests (testing=True)")
    return {
        "kind": "ledger",
        "name": "PrivacyAccountant",
        "guarantee": {
            "epsilon": accountant.epsilon,
            "delta": accountant.delta,
            **_neighbours_of(accountant),
            "n_public": accountant.n_public,
            "flaws": flaws,
        },
        "spent": plain(report.spent.epsilon),
        "remaining": plain(report.remaining),
        "entries": entries,
        "ledger_hash": report.entries[-1].hash if report.entries else None,
    }


def _neighbours_of(stated):
    """The relation of an event or a ledger, and the unit that it protects."""
    k = stated.max_contributions
    unit = "one row of the table: its features, its target and its weight"
    if k != 1:
        most = "in any number" if k is None else f"at most {k:,}"
        unit = f"all rows of one person, {most}: their features, targets and weights"
    return {"neighboring": stated.neighboring, "max_contributions": k, "unit": unit}


# ---- a model, a pipeline, a search --------------------------------------------------------------


def _facts_of_estimator(estimator, vouched_by):
    owner = _private_part(estimator)
    model = last_step(getattr(owner, "best_estimator_", owner))  # has coefficients if any has
    event, spent = owner.privacy_event_, owner.privacy_spent_
    leaks = [
        {"severity": leak.severity, "where": leak.where, "what": leak.what, "why": leak.why}
        for leak in find_leaks(estimator)
    ]
    private = math.isfinite(spent.epsilon)
    curve = [(delta, epsilon_of(event, delta)) for delta in DELTAS] if private else []
    facts = {
        "kind": "pipeline" if hasattr(owner, "steps") else "model",
        "name": type(owner).__name__,
        "model": type(model).__name__,
        "solver": getattr(model, "solver_", None),
        "n_samples": getattr(model, "_n_records", None),
        "n_features": getattr(model, "n_features_in_", None),
        "n_unused": int(np.sum(fixed_features(model))),
        "guarantee": {
            "epsilon": plain(spent.epsilon),
            "delta": plain(spent.delta),
            **_neighbours_of(event),
            "n_public": getattr(owner, "n_public", None),
            "flaws": _flaws(owner, model, private, leaks),
        },
        "releases": [str(release) for release in event.releases],
        # at the least δ no ε can be proved of some searches
        "curve": [[delta, plain(epsilon)] for delta, epsilon in curve if math.isfinite(epsilon)],
        "bounds": _bounds(estimator, owner, model, vouched_by),
        "coefficients": _coefficient_table(owner, model),
        "leaks": leaks,
        "accountant": getattr(owner, "accountant", None) is not None,
    }
    if hasattr(owner, "best_params_"):
        search = {
            "best_params": owner.best_params_,
            "best_score": owner.best_score_,
            "epsilon_of_a_run": owner.run_epsilon_,
        }
        facts |= {"kind": "search", "search": plain(search)}
    if hasattr(owner, "shares_"):
        facts["shares"] = plain(owner.shares_)
    return facts


def _private_part(estimator):
    """The part with an event: the estimator, or the one private step of scikit-learn's Pipeline."""
    check_is_fitted(estimator)
    if hasattr(estimator, "privacy_event_"):
        return estimator
    steps = [step for _, step in getattr(estimator, "steps", [])]
    private = [step for step in steps if hasattr(step, "privacy_event_")]
    if len(private) == 1:
        return private[0]
    raise TypeError(
        f"a report is of a ledger, or of a fitted model, private pipeline or private search with "
        f"one event; {type(estimator).__name__} has {len(private) or 'none'}. Make its report "
        "from the accountant that its fits were charged to: PrivacyReport(accountant)"
    )


def _flaws(owner, model, private, leaks):
    """Why nothing is protected, if that is so."""
    found = [] if private else ["epsilon is infinite: there is no noise"]
    params = [getattr(part, "random_state", None) for part in (owner, model)]
    if any(isinstance(value, ReproducibleNoise) for value in params):
        found.append("the noise can be drawn again by whoever knows the seed (ReproducibleNoise)")
    return found + [
        f"{leak['where']}: {leak['what']}" for leak in leaks if leak["severity"] == "void"
    ]


def _bounds(estimator, owner, model, vouched_by):
    """Bounds that clip records, where they come from, and who says that they are public."""
    of_steps = {k: v for facts in getattr(owner, "told_", {}).values() for k, v in facts.items()}
    rows = [row for path, part in _parts(estimator) for row in _bounds_of_step(path, part)]
    for name in ("feature_bounds", "row_norm_bound", "target_bounds", "feature_scale", "classes"):
        value, stated = (getattr(model, each, None) for each in (name + "_", name))
        if value is None and stated is None:
            continue
        source = "stated"
        if name in of_steps:
            source = "the range of an earlier step"
            if _is_narrower(value, of_steps[name], model):
                source = f"found within {source}, as part of ε"
        elif stated is None:
            source = "read from y, and published" if name == "classes" else "found, as part of ε"
        elif stated == "private" or _is_narrower(value, stated, model):
            source = "found within stated bounds, as part of ε"
            rows += [] if stated == "private" else [(f"{name}, as stated", stated, "stated")]
        rows.append((name, stated if value is None else value, source))
    vouched = {"stated": vouched_by or "nobody is named"}
    return [
        {
            "name": name,
            "value": _summary(value),
            "source": source,
            "vouched_by": vouched.get(source, "not needed"),
        }
        for name, value, source in rows
    ]


def _is_narrower(value, stated, model):
    """Whether bounds of a fit are others than those that were stated; unused columns aside."""
    if not isinstance(value, tuple) or not isinstance(stated, (tuple, list, dict)):
        return False
    size = np.size(value[0])
    stated = check_bounds(stated, size, columns=getattr(model, "feature_names_in_", None))
    used = ~fixed_features(model) if size == model.n_features_in_ else slice(None)
    pairs = (np.reshape(pair, (2, -1))[:, used] for pair in (value, stated))
    return not np.array_equal(*pairs)


def _parts(estimator):
    """The fitted steps before a model, those within a ColumnTransformer too, by their paths."""
    found = getattr(estimator, "best_estimator_", estimator)
    steps = list(getattr(found, "steps", [])[:-1])
    while steps:
        path, part, *_ = steps.pop(0)
        yield path, part
        steps[:0] = [
            (f"{path}__{each[0]}", *each[1:]) for each in getattr(part, "transformers_", ())
        ]


def _bounds_of_step(path, part):
    """Bounds that a step cuts cells to, or the categories that it knows."""
    params = part.get_params(deep=False) if hasattr(part, "get_params") else {}
    for name in ("bounds", "norm", "categories", "fill_value"):
        value = params.get(name)
        if value is None:
            continue
        source, counts = "stated", getattr(part, "category_counts_", ())
        if name == "categories" and any(each is not None for each in counts):
            is_mixed = any(each is None for each in counts)
            source = "found where not stated, as part of ε" if is_mixed else "found, as part of ε"
            value = list(part.categories_)
        yield f"{path}__{name}", value, source


def _coefficient_table(owner, model):
    """The largest coefficients beside the noise in them, or None of what has none."""
    if not hasattr(model, "coef_"):
        return None
    coef = coefficients_of(model).astype(float)
    names = names_of(getattr(owner, "best_estimator_", owner), model, None, coef.shape[1])
    noise, error = (_deviations(model, name, coef) for name in ("privacy_std_", "coef_std_"))
    noise_known = bool(np.isfinite(noise).any())
    is_used = np.broadcast_to(~fixed_features(model), coef.shape)
    # those that are not told apart come after the others
    is_arbitrary = is_used & np.isnan(noise[: coef.shape[1]]) & noise_known
    order = np.lexsort((-np.abs(coef).ravel(), is_arbitrary.ravel(), ~is_used.ravel()))
    n_used, rows = int(np.count_nonzero(is_used)), []
    for k in order[: min(n_used, MOST_COEFFICIENTS)]:
        output, j = divmod(int(k), coef.shape[1])
        row = {"feature": names[j], "coefficient": plain(coef[output, j])}
        row |= {"output": output} if len(coef) > 1 else {}
        for name, found in (("noise", noise), ("standard_error", error)):
            row[name] = None if np.isnan(found[j]) else plain(found[j])
        rows.append(row)
    table = {"of": n_used, "rows": rows, "noise_known": noise_known}
    return table | {"n_arbitrary": int(np.count_nonzero(is_arbitrary))}


def _deviations(model, name, coef):
    """Standard deviations of the coefficients, and of an intercept; NaN where none is known."""
    found = getattr(model, name, None)
    if found is None or np.ndim(found) != 1:
        return np.full(coef.shape[1], np.nan)
    return np.where(np.isfinite(found), found, np.nan)


# ---- plain values -------------------------------------------------------------------------------


def _summary(value):
    """A few numbers as they are; of many pairs the widest."""
    if isinstance(value, dict):
        return {str(name): _summary(pair) for name, pair in value.items()}
    if isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 1:
        lo, hi = np.asarray(value[0], float), np.asarray(value[1], float)
        if len(lo) > MOST_COEFFICIENTS:
            return f"{len(lo)} pairs within ({lo.min():g}, {hi.max():g})"
        return [[plain(a), plain(b)] for a, b in zip(lo, hi, strict=True)]
    return plain(value)


def plain(value):
    """A value that JSON has: numbers, words, lists and dicts of them; never an array."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if issparse(value):
        value = value.toarray().tolist()
    if isinstance(value, (list, tuple, range)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)
