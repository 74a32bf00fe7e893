"""The linter: gaps in the guarantee of a private model, one row a rule; nothing is fitted.

A rule looks at one part of an object (see ``_object_tree.py``) and says whether it applies: True,
or a few words about how. Deny by default: what no list knows is reported.
"""

import html
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..utils._texts import ReadableRepr, html_table
from . import _conditions as when
from ._classes import BOUNDS, class_of
from ._object_tree import candidates, guarded, has, tree_of

SEVERITIES = ("void", "leak", "note")


@dataclass(frozen=True)
class Leak(ReadableRepr):
    """One thing that the guarantee does not cover.

    Attributes
    ----------
    where : str
        Path of the part within the object, such as "pipeline.standardscaler".
    severity : {"void", "leak", "note"}
        "void": no (epsilon, delta) holds for what comes out. "leak": something that was computed
        from records without noise or charge gets out beside it. "note": nothing is lost yet, but
        the guarantee rests on it.
    rule : str
        Name of the rule.
    what, why, instead : str
        What was found, why the guarantee does not cover it, and what to use instead.
    """

    where: str
    severity: Literal["void", "leak", "note"]
    rule: str
    what: str
    why: str
    instead: str


@dataclass(frozen=True)
class Rule:
    """A row of the table; `instead` may be a function of the name of the class."""

    severity: str
    name: str
    applies: Callable
    why: str
    instead: str | Callable

    def leaks(self, part):
        """The findings of this rule in one part: one leak or none."""
        if part.vouched_for and self.name != VOUCHED_FOR:
            return
        detail = guarded(lambda: self.applies(part), "it can't be looked at")
        if not detail:
            return
        what = f"{part.short}: {self.name if detail is True else detail}"
        instead = self.instead if isinstance(self.instead, str) else self.instead(part.name)
        yield Leak(part.where, self.severity, self.name, what, self.why, instead)


def leaks_in(part):
    """All that the rules find in one part, the worst first."""
    return [leak for rule in RULES for leak in rule.leaks(part)]


_NO_PROOF = (
    "An empty list is no proof of privacy: it says that no rule applies. Bounds and parameters "
    "that were chosen by looking at the records, several rows of one person, and what your own "
    "code does can't be seen here."
)
_COLUMNS = ("severity", "where", "what", "why", "instead")


class LeakReport(Sequence[Leak]):
    """Findings of `find_leaks`: a list of `Leak`, to print or to show in a notebook.

    An empty report is false, and no proof of privacy: it says that no rule applies.

    Parameters
    ----------
    name : str
        What was looked at.
    leaks : iterable of Leak
    """

    def __init__(self, name, leaks):
        self._name, self._leaks = name, tuple(leaks)

    def __len__(self):
        return len(self._leaks)

    def __getitem__(self, index):
        return self._leaks[index]

    def _summary(self):
        if not self._leaks:
            return f"{self._name}: nothing found. {_NO_PROOF}"
        counts = Counter(leak.severity for leak in self._leaks)
        told = ", ".join(f"{counts[s]} {s}" for s in SEVERITIES if counts[s])
        return f"{self._name}: {told}"

    def __str__(self):
        lines = [self._summary()]
        for leak in self._leaks:
            lines += [
                f"{leak.severity}  {leak.where}",
                f"      {leak.what}",
                f"      why: {leak.why}",
                f"      instead: {leak.instead}",
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        rows = [_COLUMNS, *([getattr(leak, column) for column in _COLUMNS] for leak in self._leaks)]
        return f"<p>{html.escape(self._summary())}</p>" + (html_table(rows) if self else "")


def find_leaks(estimator: object, X: object = None) -> LeakReport:
    """List what in an object the guarantee of private models does not cover.

    A linter: it reads parameters, to any depth, and compares them with a table of rules. It fits
    nothing, charges nothing and reads no records. What it does not know it reports: steps are
    presumed to learn from the records unless they are known not to.

    Parameters
    ----------
    estimator : object
        An estimator, pipeline, search, other meta-estimator or splitter of scikit-learn's or in
        its style; before ``cross_val_score`` and the like ask for the estimator and for the
        splitter that goes into ``cv``. Anything else is no error, but a note. Candidates that a
        search lists are looked at as well; distributions are not.
    X : data frame, default=None
        Its columns' names alone are looked at, for those that may name persons.

    Returns
    -------
    report : LeakReport
        A list of `Leak`, each with `where`, `severity` ("void", "leak" or "note"), `rule`, `what`,
        `why` and `instead`. **An empty list is no proof**: bounds that were read off the data,
        several rows of one person, or what your own code does can't be seen in an object.

    See Also
    --------
    audit : Tries to break the claim of a model by fitting it.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dpcd_sklearn import DPLassoCD, PrivacyAccountant
    >>> from dpcd_sklearn.inspection import find_leaks
    >>> from dpcd_sklearn.preprocessing import BoundsScaler
    >>> lasso = DPLassoCD(accountant=PrivacyAccountant(epsilon=4.0, delta=1e-6))
    >>> for leak in find_leaks(make_pipeline(StandardScaler(), lasso)):
    ...     print(f"{leak.severity}: {leak.instead}")
    void: dpcd_sklearn.preprocessing.DPStandardScaler, or BoundsScaler with public bounds
    >>> len(find_leaks(make_pipeline(BoundsScaler((0.0, 10.0)), lasso)))
    0
    """
    found, root = [], tree_of(estimator)
    root.columns = tuple(getattr(X, "columns", ()))
    for part in root.inside():
        found += leaks_in(part)
        for owner, candidate in guarded(lambda p=part: list(candidates(p)), []):
            before = {leak.rule for leak in leaks_in(owner)}
            found += [leak for leak in leaks_in(candidate) if leak.rule not in before]
    return LeakReport(guarded(lambda: str(type(estimator).__name__), "object"), found)


def refuse_leaks(estimator, dense=None):
    """Raise a ValueError about the worst thing that the guarantee does not cover, but for notes.

    Private models refuse their own parameters, or warn about them, by themselves. Only how a
    private step chooses columns is looked at here.

    Parameters
    ----------
    estimator : object
        As it stands: lists of candidates are not looked at.
    dense : bool or None
        Whether X is, if there is one.
    """
    parts = list(tree_of(estimator, dense).inside())
    found = (
        leak
        for rule in RULES  # worst first
        for part in parts
        if part.kind != "private" or rule.applies is when.columns_by_function
        for leak in rule.leaks(part)
    )
    leak = next(found, None)
    if leak is not None and leak.severity != "note":
        raise ValueError(
            f"{leak.where} is not covered by the guarantee: {leak.what}. {leak.why} Instead: "
            f"{leak.instead}. If you know that it learns nothing from these records and maps each "
            "of them by itself, to the last bit, name it in public_steps of a PrivatePipeline"
        )


# ---- the table ----------------------------------------------------------------------------------

_PUBLIC_STEP = f"a step that needs public facts only, such as {BOUNDS}"
_PRIVATE_MODEL = "an estimator of dpcd_sklearn; a last model of a stack too"
_KFOLD = "cv=KFold(...): folds by row number"
_BY_PERSON = "cv=model_selection.PersonKFold(...), with groups=ids: an id decides its own fold"
_DENSE = (
    "dpcd_sklearn.compose.make_private_column_transformer, sparse_threshold=0, or a dense X and "
    "steps that are known to put out dense arrays"
)
VOUCHED_FOR = "steps that you vouch for"

_VOID = (  # no (epsilon, delta) holds for what comes out
    (
        "steps that learn from the records for free",
        when.learns,
        "Its output for one record depends on the other records, without noise and without a "
        "charge.",
        lambda name: class_of(name).instead or _PUBLIC_STEP,
    ),
    (
        "models that are not known to be private",
        when.not_private,
        "No (epsilon, delta) holds for what it fits and predicts, whatever is inside it.",
        lambda name: class_of(name).instead or _PRIVATE_MODEL,
    ),
    (
        "functions of your own",
        when.own_function,
        "Nobody knows whether it maps each row by itself: a mean over the rows, or a product of "
        "all rows at once, does not.",
        "NumPy's functions of single cells, such as np.log1p, without kw_args",
    ),
    (
        "steps that repeat or drop rows",
        lambda part: has(part.value, "fit_resample"),
        "One record then counts several times, or decides whether others count.",
        "leave it out",
    ),
    (
        "columns chosen by looking at the records",
        when.columns_by_function,
        "One record may change which columns the model sees.",
        "names or positions of columns, or make_column_selector (dtypes and names)",
    ),
    (
        "splits that depend on the records",
        when.splits_by_records,
        "One changed label, group or cell moves other records to other folds: neighbours differ "
        "in many records.",
        f"{_KFOLD}; PredefinedSplit if the groups are public, or {_BY_PERSON}",
    ),
    (
        "folds by row number under add_remove, or of persons",
        when.folds_by_row,
        "One row less moves the rows after it to other folds, and rows of a person lie in several.",
        f"neighboring='replace_one', or PredefinedSplit by a public key; of persons {_BY_PERSON}",
    ),
    (
        "reproducible noise",
        when.private("random_state", when.is_reproducible, "its noise can be drawn again"),
        "Whoever knows the seed can remove the noise.",
        "random_state=None",
    ),
    (
        "epsilon=inf",
        when.private("epsilon", when.is_infinite, "epsilon=inf"),
        "There is no noise.",
        "a finite epsilon, such as 1.0",
    ),
)
_LEAK = (  # gets out beside what is private
    (
        "scores of a search",
        when.scores_without_noise,
        "The scores have no noise and no ledger counts them; the choice of a winner reveals them.",
        "model_selection.PrivateSearchCV, or scoring=make_private_scorer(...) with an accountant",
    ),
    (
        "labels read from y (classes=None)",
        when.reads_labels,
        "The set of labels is published, so a label that only one record has reveals that record.",
        "classes=[...], the public labels",
    ),
    (
        "labels encoded by an ensemble",
        when.is_one_of("BaggingClassifier", "StackingClassifier", "VotingClassifier"),
        "It reads the labels from y, publishes them and numbers them 0, 1, ...: a label that only "
        "one record has moves the numbers of all others.",
        "one private classifier; or promise that every label of a public list occurs, and state "
        "the numbers as classes=",
    ),
    (
        "several fits without an accountant",
        lambda part: when.uncounted(part, several=True),
        "Each fit is (epsilon, delta)-private, but all of them together are not: nobody adds up.",
        "accountant=PrivacyAccountant(epsilon, delta), the same for all",
    ),
    (
        "several accountants about the same records",
        when.accountants,
        "Each accountant knows its own charges only; the loss is that of all of them together.",
        "one accountant for one data set",
    ),
    (
        "a layout that depends on the records",
        when.layout_by_density,
        "Whether the result is sparse is published, and decides what the model releases; one "
        "record may decide that.",
        _DENSE,
    ),
    (
        "parameters that can't be read",
        lambda part: part.params is None and "get_params does not work",
        "Nothing about it could be checked.",
        "an estimator that keeps scikit-learn's rules",
    ),
    (
        "objects too large to look through",
        lambda part: part.cut and "too many parts",
        "Only the first parts were checked.",
        "find_leaks for each of its parts",
    ),
)
_NOTE = (  # the guarantee rests on it
    (
        "a layout that depends on the records of a sparse X",
        when.layout_by_density_of_sparse,
        "Then one record may decide whether the result is sparse. If X is dense, it is dense.",
        _DENSE,
    ),
    (
        "fits that fail and are passed over",
        lambda part: when.failed_fits(part) and "error_score is not 'raise'",
        "A fit that the accountant refused becomes a bad candidate, and the search goes on.",
        "error_score='raise'",
    ),
    (
        "fits of a halving search",
        when.is_one_of(*when.HALVING),
        "Every round fits again, each fit is charged in full, and fits on few records are poor.",
        "GridSearchCV with few candidates",
    ),
    (
        "a fit without an accountant",
        lambda part: when.uncounted(part, several=False),
        "One fit is private, but no ledger would count the next one.",
        "accountant=PrivacyAccountant(epsilon, delta)",
    ),
    (
        "rows of persons",
        when.names_of_persons,
        "If a person has several rows, a guarantee for one row is weaker than one for the person.",
        "neighboring=Persons() and fit(X, y, groups=ids), without that column in X",
    ),
    (
        "a ledger for tests",
        when.private("accountant", when.for_tests, "accountant for tests"),
        "testing=True also admits releases that protect nobody.",
        "PrivacyAccountant(epsilon, delta)",
    ),
    (
        "time that depends on the records",
        when.draws_lazily,
        "The running time of a lazy draw depends on scores that are not released.",
        "selection='full' wherever somebody can time the fit",
    ),
    (
        VOUCHED_FOR,
        lambda part: part.vouched_for and part.parent.shares and "in public_steps",
        "It was not checked: what it keeps must be public, whatever the records are.",
        "a step on the list of those that learn nothing, where there is one",
    ),
    (
        "private models of your own",
        lambda part: part.kind == "private" and not part.name.startswith("dpcd_sklearn."),
        "It states what it would release; its author must prove that this is all.",
        "a proof, and inspection.audit(model), which tries to break the claim",
    ),
    (
        "folds of your own",
        when.own_split,
        "They must come from row numbers or other public facts, never from X or y.",
        _KFOLD,
    ),
    (
        "parts that were fitted before",
        when.is_one_of("FrozenEstimator"),
        "Nothing shows what it was fitted to, or whether that was charged.",
        "public records, or a private model in the same ledger",
    ),
    (
        "messages about single records",
        when.quotes,
        "Others see errors and warnings, and this one may describe a single record.",
        "handle_unknown='ignore' with drop=None ('use_encoded_value' for OrdinalEncoder); "
        "check_inverse=False",
    ),
    (
        "records cached on the disk",
        lambda part: part.short == "Pipeline" and part.get("memory") is not None and "memory=",
        "The cache holds transformed records.",
        "memory=None, or a folder as safe as the records",
    ),
    (
        "objects of an unknown kind",
        lambda part: part.kind == "thing" and "no estimator, search or splitter",
        "It has no method fit, so nothing was checked.",
        "an estimator, a search or a splitter",
    ),
)
RULES = tuple(
    Rule(severity, *row)
    for severity, rows in zip(SEVERITIES, (_VOID, _LEAK, _NOTE), strict=True)
    for row in rows
)
