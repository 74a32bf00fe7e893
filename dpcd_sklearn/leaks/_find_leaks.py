"""A linter: what in a scikit-learn object the guarantee does not cover."""

import html
from collections import Counter
from collections.abc import Sequence

from ..utils._texts import html_table
from ._object_tree import candidates, guarded, tree_of
from ._rules import SEVERITIES, Leak, leaks_in

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
