"""Facts of a model, pipeline, search or ledger for a report: plain values, all of them released.

Read are parameters, public attributes of a fit (which end in an underscore), its event and the
entries of a ledger, and nothing else: a report may be published as the model may.
"""

import math
import platform
from importlib.metadata import version

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..leaks import find_leaks
from ..linear_model._inference import fixed_features
from ..linear_model._prediction import coefficients_of
from ..pipeline._budget_of_step import last_step, private_part
from ..privacy.accounting._accounting import epsilon_of
from ..privacy.ledger._accountant import PrivacyAccountant
from ..privacy.ledger._ledger_entries import package_version
from ..privacy.ledger._ledger_report import rows_of
from ..utils._public import check_bounds
from ..utils._stated import ReproducibleNoise
from ._model_displays import names_of

DELTAS = tuple(10.0**-k for k in range(3, 13))
MOST_COEFFICIENTS = 30
NOT_PROTECTED = (
    "the number of records (under replace-one neighbours), the shape and dtype of the table, and "
    "the names of its columns",
    "all that was stated: bounds, classes and every parameter",
    "scores, calibrations and thresholds that were computed from records without noise",
    "the time that a fit takes, and errors about NaN, infinite values and shapes",
    "other releases about the same people that are in another ledger, or in none",
)


def facts_of(subject, vouched_by, date):
    """All that a report says, as a dict of plain values."""
    if vouched_by is not None and not isinstance(vouched_by, str):
        raise TypeError(f"vouched_by must be a text or None, got {vouched_by!r}")
    if isinstance(subject, PrivacyAccountant):
        facts = _facts_of_ledger(subject)
    else:
        facts = _facts_of_estimator(subject, vouched_by)
    k = facts["guarantee"]["max_contributions"]
    beyond = {1: "with several rows: the unit is one row", None: "who comes under two ids"}
    beyond = beyond.get(k, f"with more rows than {k}, which is a promise about the table")
    versions = {"dpcd_sklearn": package_version(), "Python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    facts |= {
        "not_protected": [f"a person {beyond}", *NOT_PROTECTED],
        "date": date,
        "versions": versions,
    }
    return plain(facts)


def _guarantee(epsilon, delta, stated, n_public, flaws):
    """The guarantee of an event or a ledger, with its neighbouring data sets in words."""
    relation, k = stated.neighboring, stated.max_contributions
    unit = "one row of the table: its features, its target and its weight"
    neighbours = "data sets of the same size that differ in one row"
    if relation == "add_remove":
        neighbours = "data sets of which one has a row more than the other"
    if k != 1:
        most = "in any number" if k is None else f"at most {k:,}"
        unit = f"all rows of one person, {most}: their features, targets and weights"
        how = {"replace_one": "replaced by others", "add_remove": "added or removed"}[relation]
        neighbours = f"data sets that differ in the rows of one person, {most}, {how}"
    return {
        "epsilon": epsilon,
        "delta": delta,
        "neighboring": relation,
        "max_contributions": k,
        "neighbours": neighbours,
        "unit": unit,
        "n_public": n_public,
        "flaws": flaws,
    }


# ---- a ledger -----------------------------------------------------------------------------------


def _facts_of_ledger(accountant):
    report = accountant.report()
    flaws = [f"entry {entry.id} protects nobody" for entry in report.entries if not entry.private]
    if accountant.testing:
        flaws.append("the ledger was made for tests (testing=True)")
    budget = accountant.epsilon, accountant.delta
    return {
        "kind": "ledger",
        "name": "PrivacyAccountant",
        "guarantee": _guarantee(*budget, accountant, accountant.n_public, flaws),
        "about": {
            "spent so far, as ε at the same δ": report.spent.epsilon,
            "largest ε of one more Gaussian fit": report.remaining,
            "last hash of the ledger": report.entries[-1].hash if report.entries else "no entry",
        },
        "releases": list(rows_of(report)),
    }


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
    kind = "pipeline" if hasattr(owner, "steps") else "model"
    kind = "search" if hasattr(owner, "best_params_") else kind
    n_public, flaws = getattr(owner, "n_public", None), _flaws(owner, model, private, leaks)
    return {
        "kind": kind,
        "name": type(owner).__name__,
        "guarantee": _guarantee(*spent, event, n_public, flaws),
        "about": _about(owner, model),
        "releases": list(map(str, event.releases)),
        # at the least δ no ε can be proved of some searches
        "curve": [[delta, epsilon] for delta, epsilon in curve if math.isfinite(epsilon)],
        "bounds": _bounds(estimator, owner, model, vouched_by),
        "coefficients": _coefficient_table(owner, model),
        "leaks": leaks,
    }


def _about(owner, model):
    """Facts about a fit that need no words but their names."""
    n_unused = int(np.sum(fixed_features(model)))
    unused = f", and {n_unused:,} that are the same for every record" if n_unused else ""
    about = {
        "model": type(model).__name__,
        "solver": getattr(model, "solver_", None),
        "records": getattr(model, "_n_records", None),
        "columns that reach the model": f"{model.n_features_in_ - n_unused:,}{unused}",
        "charged to a ledger": "no" if getattr(owner, "accountant", None) is None else "yes",
    }
    about |= {f"share of {name}": share for name, share in getattr(owner, "shares_", {}).items()}
    if hasattr(owner, "best_params_"):
        about |= {f"best {name}": value for name, value in owner.best_params_.items()}
        about |= {"best score, with noise": owner.best_score_}
        about |= {"ε of a single run": owner.run_epsilon_}
    return {name: value for name, value in about.items() if value is not None}


def _private_part(estimator):
    """The part with an event: the estimator, or the one private step of scikit-learn's Pipeline."""
    check_is_fitted(estimator)
    try:
        return private_part(estimator)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{error}; or make the report from the accountant that its fits were charged to: "
            "PrivacyReport(accountant)"
        ) from error


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
    ranges = {k: v for facts in getattr(owner, "told_", {}).values() for k, v in facts.items()}
    rows = [row for path, part in _parts(estimator) for row in _bounds_of_step(path, part)]
    for name in ("feature_bounds", "row_norm_bound", "target_bounds", "feature_scale", "classes"):
        value, stated = (getattr(model, each, None) for each in (name + "_", name))
        stated = None if isinstance(stated, str) else stated  # "private" asks for one that is found
        if value is None and stated is None:
            continue
        source, within = "stated", "stated bounds"
        if name in ranges:
            source = within = "the range of an earlier step"
        outer = ranges.get(name, stated)
        if outer is None:
            source = "read from y, and published" if name == "classes" else "found, as part of ε"
        elif _is_narrower(value, outer, model):
            if source == "stated":
                rows.append((f"{name}, as stated", stated, "stated"))
            source = f"found within {within}, as part of ε"
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
    coef = coefficients_of(model)
    names = names_of(getattr(owner, "best_estimator_", owner), model, None, coef.shape[1])
    noise, error = (_deviations(model, name, coef) for name in ("privacy_std_", "coef_std_"))
    used = np.flatnonzero(~fixed_features(model))
    noise_known = bool(np.isfinite(noise).any())
    is_arbitrary = np.isnan(noise) & noise_known  # not told apart: these come after the others
    order = [(is_arbitrary[j], -abs(coef[k, j]), k, j) for k in range(len(coef)) for j in used]
    rows = [
        {"output": k if len(coef) > 1 else None, "feature": names[j], "coefficient": coef[k, j]}
        | {"noise": noise[j], "standard_error": error[j]}
        for _, _, k, j in sorted(order)[:MOST_COEFFICIENTS]
    ]
    n_arbitrary = len(coef) * int(np.sum(is_arbitrary[used]))
    table = {"of": len(order), "rows": rows, "noise_known": noise_known}
    return table | {"n_arbitrary": n_arbitrary}


def _deviations(model, name, coef):
    """Standard deviations of the coefficients; NaN where none is known."""
    found = getattr(model, name, None)
    if found is None or np.ndim(found) != 1:
        return np.full(coef.shape[1], np.nan)
    found = np.where(np.isfinite(found), found, np.nan)
    return found[: coef.shape[1]]  # the intercept's comes last


# ---- plain values -------------------------------------------------------------------------------


def _summary(value):
    """A few numbers as they are; of many pairs the widest."""
    if isinstance(value, tuple) and len(value) == 2 and np.ndim(value[0]) == 1:
        lo, hi = value
        if len(lo) > MOST_COEFFICIENTS:
            return f"{len(lo)} pairs within ({np.min(lo):g}, {np.max(hi):g})"
        return list(zip(lo, hi, strict=True))
    return value


def plain(value):
    """A value that JSON has: numbers, words, lists and dicts of them; never an array.

    Numbers have six digits; NaN, which says that there is none, is None.
    """
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)
