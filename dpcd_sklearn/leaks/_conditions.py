"""When the rules of ``_rules.py`` apply: each looks at one part of an object.

It returns False, or True or a few words about how; never a value that may come from records.
"""

import math
from numbers import Real

from sklearn.base import is_classifier

from ..utils._cells import is_identifier
from ..utils._stated import ReproducibleNoise
from ._classes import LEARNS_NOTHING, class_of, full_name, is_elementwise
from ._object_tree import density_decides, guarded, has

# ---- steps and models ---------------------------------------------------------------------------


def learns(part):
    if part.short == "FrozenEstimator" and has(part.value, "transform"):
        inner = part.get("estimator")
        known = full_name(type(inner)) in LEARNS_NOTHING or has(type(inner), "planned_event")
        return not known and "the frozen step is not known to map each record by itself"
    if part.kind != "step":
        return False
    known, params = class_of(part.name), part.params or {}
    if why := known.learns(params):
        return why
    return _adds_records(part.root) and known.one_row_differs(params)


def _neighborings(part):
    """The neighbours that private parts of an object state."""
    return [inner.get("neighboring") for inner in part.inside() if inner.kind == "private"]


def _adds_records(part):
    """Whether neighbours of a private part of an object differ in their number of records."""
    return any(getattr(n, "relation", n) == "add_remove" for n in _neighborings(part))


def not_private(part):
    return part.kind in ("model", "meta") and class_of(part.name).learns(part.params or {})


def own_function(part):
    if part.short in ("FunctionTransformer", "TransformedTargetRegressor"):
        for name in ("func", "inverse_func"):  # predictions go through the second one
            if not is_elementwise(part.get(name)) or part.get("kw_args"):
                return f"{name}= sees all records at once"
    counts = part.short == "SelectFromModel" and callable(part.get("max_features"))
    return counts and "max_features= sees all records at once"


def columns_by_function(part):
    if part.short not in ("ColumnTransformer", "DPColumnTransformer"):
        return False
    chosen = [step[2] for step in part.get("transformers") if len(step) == 3]
    looks = [c for c in chosen if callable(c) and type(c).__name__ != "make_column_selector"]
    return bool(looks) and "a function chooses columns by looking at X"


_BY_DENSITY = "sparse_threshold compares the share of entries of all records"


def layout_by_density(part):
    dense = part.root.dense is not False  # of an X that is not there yet the next rule tells
    return density_decides(part, dense) and f"{_BY_DENSITY}, and its steps may put out sparse ones"


def layout_by_density_of_sparse(part):
    if part.root.dense is not None or density_decides(part, True):
        return False
    return density_decides(part, False) and f"if X is sparse, {_BY_DENSITY}"


def quotes(part):
    inverts = part.short == "TransformedTargetRegressor" or part.get("inverse_func") is not None
    if inverts and part.get("check_inverse") and (part.get("func") or part.get("transformer")):
        return "check_inverse=True warns if some records are not restored"
    if part.short not in ("OneHotEncoder", "OrdinalEncoder"):
        return False
    unknown = part.get("handle_unknown")
    if unknown == "error":
        return "handle_unknown='error' quotes categories of records in its message"
    warns = unknown == "warn" or part.get("drop") is not None
    return part.short == "OneHotEncoder" and warns and "a warning quotes columns of unknown values"


def names_of_persons(part):
    """Whether X has columns that seem to name persons, and a record is the unit."""
    units = _neighborings(part)
    if not units or any(getattr(unit, "max_contributions", 1) != 1 for unit in units):
        return False
    found = [str(name) for name in part.columns if is_identifier(name)]
    return found and f"{found} may say whose a row is"


# ---- splits -------------------------------------------------------------------------------------

_BY_ROW = {
    f"sklearn.model_selection.{name}"
    for name in "KFold LeaveOneOut LeavePOut RepeatedKFold ShuffleSplit TimeSeriesSplit".split()
}
_STATED = {"sklearn.model_selection.PredefinedSplit"}
_BY_PERSON = {"dpcd_sklearn.model_selection.PersonKFold"}
KNOWN_SPLITS = _BY_ROW | _STATED | _BY_PERSON
_CROSS_FITS_IF_ASKED = ("ClassifierChain", "RegressorChain")  # cv=None is none


def _split_by_number(part):
    """Whether `cv` is left to scikit-learn: an int, or None where that is five folds."""
    if "cv" not in (part.params or {}) or part.kind == "private":
        return False
    if part.params["cv"] is None:
        return part.short not in _CROSS_FITS_IF_ASKED
    return isinstance(part.params["cv"], int)


def _may_classify(part):
    members = [part.value, part.get("estimator")]
    return any(guarded(lambda m=m: is_classifier(m), True) for m in members if m is not None)


def splits_by_records(part):
    if part.kind == "splitter" and part.name not in KNOWN_SPLITS:
        for word, cells in (("Stratified", "labels"), ("Group", "groups")):
            if word in part.short:
                return f"folds depend on the {cells} of all records"
        return "not known to split by row number"
    if _split_by_number(part) and _may_classify(part):
        value = "None" if part.params["cv"] is None else "a number"
        return f"cv={value} is a stratified split for a classifier"
    return False


def own_split(part):
    if part.kind == "splitter":
        return part.name in _STATED and "the folds were stated"
    cv = part.get("cv")
    if part.kind == "private" or cv is None or isinstance(cv, int) or has(cv, "get_n_splits"):
        return False
    return "cv='prefit'" if isinstance(cv, str) else "cv lists the folds"


def folds_by_row(part):
    if part.kind == "splitter":
        split, holder = part.name not in _STATED | _BY_PERSON, part.parent
    else:
        split, holder = _split_by_number(part), part
    if not split or holder is None:
        return False
    if any(getattr(unit, "max_contributions", 1) is None for unit in _neighborings(holder)):
        return "folds by row number under neighboring=Persons()"
    return _adds_records(holder) and "folds by row number under neighboring='add_remove'"


# ---- meta-estimators ----------------------------------------------------------------------------

HALVING = ("HalvingGridSearchCV", "HalvingRandomSearchCV")
SEARCHES = ("GridSearchCV", "RandomizedSearchCV", *HALVING)
_FITS_ONCE = (
    "Pipeline FeatureUnion ColumnTransformer TransformedTargetRegressor FrozenEstimator "
    "FixedThresholdClassifier SelectFromModel VotingClassifier VotingRegressor"
).split()


def scores_without_noise(part):
    if part.short not in SEARCHES:
        return False
    scoring = part.get("scoring")
    if not all_private([scoring]):
        return True
    return scoring.accountant is None and "private scores without an accountant"


def all_private(scorers):
    """Whether all are scorers of `make_private_scorer`; dicts are looked into."""
    flat = []
    for scorer in scorers:  # several metrics are one scorer of scikit-learn, which keeps a dict
        several = scorer if isinstance(scorer, dict) else getattr(scorer, "_scorers", None)
        flat += several.values() if isinstance(several, dict) else [scorer]
    names = [guarded(lambda scorer=scorer: full_name(type(scorer))) for scorer in flat]
    return all(name == "dpcd_sklearn.metrics.PrivateScorer" for name in names)


def is_one_of(*names):
    return lambda part: part.short in names


def failed_fits(part):
    return "error_score" in (part.params or {}) and not (
        isinstance(part.params["error_score"], str) and part.params["error_score"] == "raise"
    )


# ---- private models -----------------------------------------------------------------------------


def private(name, leaks, words):
    """A condition on a parameter of private parts, and the words that say that it holds."""

    return lambda part: part.kind == "private" and leaks(part.get(name)) and words


def is_reproducible(seed):
    return isinstance(seed, ReproducibleNoise)


def is_infinite(epsilon):
    return isinstance(epsilon, Real) and math.isinf(epsilon)


def for_tests(accountant):
    return getattr(accountant, "testing", False) is True


def reads_labels(part):
    if part.kind != "private" or "target_bounds" in (part.params or {}):  # where y is a number
        return False
    return part.get("classes", ()) is None and "classes=None reads the labels from y"


def draws_lazily(part):
    solver = part.get("solver")
    lazy = guarded(lambda: solver.selection == "lazy", False) if part.kind == "private" else False
    return lazy is True and "selection='lazy'"


def counted_and_not(root):
    """The private parts of an object that a ledger counts, and those that none does.

    Parts of a private pipeline are charged with the whole.
    """
    parts = [p for p in root.inside() if p.kind == "private" and p.budgeted_by is None]
    counted = [part for part in parts if part.get("accountant") is not None]
    return counted, [part for part in parts if _is_uncounted(part)]


def _is_uncounted(part):
    is_none = part.kind == "private" and part.get("accountant", "missing") is None
    return is_none and part.budgeted_by is None


def uncounted(part, several):
    if not _is_uncounted(part):
        return False
    counted, others = counted_and_not(part.root)
    why = "accountant=None"
    if guarded(lambda: part.value._was_charged is True, False):
        why += ", after a fit that was charged"
    elif counted:
        why += ", beside a part that is charged"
    many = len(counted) + len(others) > 1 or why != "accountant=None"
    many = many or any(outer.short not in _FITS_ONCE for outer in part.above())
    return many == several and why


def accountants(part):
    if part.parent is not None:
        return False
    ledgers = []
    for inner in counted_and_not(part)[0]:
        if not any(inner.get("accountant") == other for other in ledgers):
            ledgers.append(inner.get("accountant"))
    return len(ledgers) > 1 and f"{len(ledgers)} accountants in one object"
