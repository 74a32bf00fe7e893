"""Which fits a search, a cross-validation or a pipeline would charge, found by a rehearsal.

scikit-learn's own code runs over rows of zeros, with an estimator that fits nothing in the place of
the model. It notes what the model would release from so many records: no record is needed, nothing
is drawn and nothing is charged. So numbers of candidates, folds, rounds and resources are
scikit-learn's, whatever its version.
"""

from copy import deepcopy
from inspect import signature
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from ...utils._input import by_name, reworded
from ...utils._public import width_of
from ._prepaid import Prepaid

# ---- An accountant for a fit that is stopped at its charge, to see what it refuses before --------
#
# Whoever charges for several fits at once, or for a search, has to know that each of them takes the
# records before the first charge. The fit itself knows best, and all that it asks comes before it
# charges: so it is tried, and no record is used.


class UnpaidError(Exception):
    """A fit came to its charge and was stopped there: it is no fault, and nobody sees it."""


class Unpaid(Prepaid):
    """Admits nothing, and answers what a fit asks before it charges as the accountant would.

    Parameters
    ----------
    accountant : PrivacyAccountant, Prepaid or None
        Which will be charged.
    """

    def __init__(self, accountant):
        super().__init__(accountant, None)
        self.plan = getattr(accountant, "plan", None)

    def charge(self, event, **facts):
        """Stop the fit.

        Raises
        ------
        UnpaidError
        """
        raise UnpaidError


def fit_up_to_charge(estimator, part, X, y, **params):
    """Refuse what a fit would refuse before its charge; nothing is charged, drawn or released.

    The estimator is a copy, left as it stands at the charge; `part` is itself, or what is private
    in it. If that has no accountant nothing stops it, so nothing is tried.

    Raises
    ------
    TypeError, ValueError, Warning
        As the fit does; of warnings those that are made errors. The caller decides which are heard.
    """
    if "accountant" not in part.get_params(deep=False):
        return
    part.set_params(accountant=Unpaid(part.accountant))
    try:
        estimator.fit(X, y, **params)
    except UnpaidError:
        return


def event_of(private, n_samples, columns, n_outputs=1, sparse=False):
    """Ask an estimator what a fit of so many records would release, in the words that it takes.

    `columns` is their number, or rows of them: only pipelines and column transformers look at rows,
    where they pick columns by name.
    """
    facts = {} if n_outputs == 1 else {"n_outputs": n_outputs}
    if not looks_at_rows(private):
        sparse, columns = sparse or issparse(columns), width_of(columns)
    if sparse and "sparse" in signature(private.planned_event).parameters:
        facts["sparse"] = True
    return private.planned_event(n_samples, columns, **facts)


def looks_at_rows(private):
    """Whether an estimator may pick columns by name, so that it is told rows and not a width."""
    return hasattr(private, "steps") or hasattr(private, "transformers")


def planned_fits(estimator, n_samples, n_features, n_outputs, cv, price):
    """The event of each fit that would be charged, in order, and the number of its records.

    With folds (`cv`) there is a fit for each and none of all records, as in `cross_validate`.
    `price` turns an event into a number: a halving search keeps its dearest candidates.

    Raises
    ------
    TypeError
        If something in it can't say what it would release.
    ValueError
        If the split can't be made without the records, or a parameter is invalid.
    """
    planned = _PlannedFits(n_features, n_outputs, price)
    if cv is None:
        with reworded(by_name):
            planned.enter(estimator, n_samples)
    else:
        model = _FitlessEstimator(estimator, planned)
        strict = {"cv": cv, "scoring": _dearest, "error_score": "raise"}
        _on_rows(
            lambda X, y: cross_validate(model, X, y, **strict),
            *_rows(estimator, n_samples, n_outputs),
        )
    return planned.fits


class _PlannedFits:
    """The fits that were asked for, in order."""

    def __init__(self, n_features, n_outputs, price):
        self.n_features, self.n_outputs, self.price = n_features, n_outputs, price
        self.fits = []

    def enter(self, estimator, n_samples):
        """Note what a fit of so many records would charge; returns the price of it."""
        start = len(self.fits)
        if hasattr(type(estimator), "planned_event"):
            self._enter_event(estimator, n_samples, self.n_features)
        elif isinstance(estimator, Pipeline):
            self._enter_pipeline(estimator, n_samples)
        elif {"estimator", "cv", "refit"} <= set(_params(estimator)):
            self._enter_search(estimator, n_samples)
        else:
            raise TypeError(
                f"{type(estimator).__name__} can't say what it would release: it has no method "
                "planned_event, and is no search or pipeline. Ask for each private part by itself"
            )
        return sum(self.price(event) for event, _ in self.fits[start:])

    def _enter_event(self, estimator, n_samples, n_features):
        event = event_of(estimator, n_samples, n_features, self.n_outputs)
        self.fits.append((event, n_samples))

    def _enter_pipeline(self, pipeline, n_samples):
        rows = deepcopy(self.n_features)  # steps may map them in place
        if isinstance(rows, Integral):
            rows = np.zeros((2, rows))
        before = len(self.fits)
        for _, step in pipeline.steps:
            if step in (None, "passthrough"):
                continue
            if hasattr(type(step), "planned_event"):  # those that are transformers keep the width
                self._enter_event(step, n_samples, rows)
            elif hasattr(step, "transform"):
                rows = clone(step).fit_transform(rows)
            else:
                inner = _PlannedFits(rows, self.n_outputs, self.price)
                inner.enter(step, n_samples)
                self.fits += inner.fits
        if len(self.fits) == before:
            raise TypeError("no step of this pipeline can say what it would release")

    def _enter_search(self, search, n_samples):
        rehearsed = clone(search)
        rehearsed.set_params(
            estimator=_FitlessEstimator(search.estimator, self),
            scoring=_dearest,
            refit=bool(search.refit),
            error_score="raise",
            n_jobs=None,
            verbose=0,
        )
        _on_rows(rehearsed.fit, *_rows(search.estimator, n_samples, self.n_outputs))


class _FitlessEstimator(BaseEstimator):
    """Has the parameters of an estimator, and notes what each fit of it would charge."""

    def __init__(self, estimator, planned):
        self.estimator, self.planned = estimator, planned

    def get_params(self, deep=True):
        return self.estimator.get_params(deep)

    def set_params(self, **params):
        self.estimator.set_params(**params)
        return self

    def fit(self, X, y=None):
        self.price_ = self.planned.enter(self.estimator, len(X))
        return self

    def __sklearn_clone__(self):
        return _FitlessEstimator(clone(self.estimator), self.planned)

    def __sklearn_tags__(self):
        return get_tags(self.estimator)


def _dearest(fitless, X, y=None):
    """The price of a fit as its score: whoever drops candidates keeps the dearest."""
    return fitless.price_


def _params(estimator):
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}


def _rows(estimator, n_samples, n_outputs):
    """As many rows, and as many classes, which some halving searches count."""
    while "estimator" in _params(estimator):
        estimator = estimator.estimator
    n_classes = 1
    if is_classifier(estimator):
        last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        stated = getattr(last, "classes", None)
        n_classes = max(2, n_outputs, 0 if stated is None else len(stated))
    return np.zeros((n_samples, 1)), np.arange(n_samples) % n_classes


def _on_rows(run, X, y):
    try:
        run(X, y)
    except ValueError as error:
        if "groups" in str(error):
            raise ValueError(
                "the folds follow groups of the records, so the fits can't be counted without "
                "them; ask for a splitter by row number, such as KFold"
            ) from None
        raise
