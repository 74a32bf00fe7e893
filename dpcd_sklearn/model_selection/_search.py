"""A search over hyper-parameters whose whole cost is stated beforehand.

    parameters, shapes, public facts -> slots, prototypes -> calibrate -> charge -> runs -> the best

(a) One event is charged before the first fit. Every run is bounded by one release. Few candidates
    are all tried: so many releases, of which everything may be shown. Of many a secret number K is
    drawn, and the best leaves (``privacy/proofs/private_tuning.md``). The refit is one more.
(b) Of a secret number nothing else leaves: not K, not what was tried, no other score. No warning of
    a run leaves at all.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from ..leaks import may_be_sparse
from ..pipeline._budget_of_step import last_step
from ..plan._private_fit import PrivateFit
from ..privacy.ledger._accountant import PrivacyAccountant
from ..utils._cells import on_host
from ..utils._compat import BaseEstimator, MetaEstimatorMixin, available_if
from ..utils._persons import ids_of, persons_of, records_read, relation_of
from ..utils._public import width_of
from ..utils._typing import ArrayLike, Auto, Column, Seed
from ..utils._warnings import warn
from . import _runs
from ._one_fit import one_fit_of
from ._search_plan import asked_of, planned, read_searched_records
from ._shared_releases import SharedSteps

_NO_MODEL = (
    "the search gave no model: there was no run (a Poisson law may draw none), or all of them "
    "failed. Which it was, and what failed, is not told, as it might tell of records; fit the "
    "estimator by itself on made-up records to find out"
)


def _way_of(asked):
    """How a search is carried out: one fit, runs behind what they share, or runs alone.

    Its `event` is what is charged. Its `run(X, y, ids)` charges it, and returns the attributes that
    are released.
    """
    return one_fit_of(asked) or SharedSteps.of(asked) or asked.scales_first or planned(asked)


def _winner_has(name):
    def check(self):
        model = getattr(self, "best_estimator_", None)
        return hasattr(self.estimator if model is None else model, name)

    return check


@dataclass(eq=False, repr=False)
class PrivateSearchCV(MetaEstimatorMixin, BaseEstimator):
    r"""Search for hyper-parameters privately: the whole search is (epsilon, delta)-DP.

    Candidates that differ in the strength or the kind of a penalty alone are one fit, at its price:
    what Newton steps release is enough to choose among them. So are those that differ in steps of a
    pipeline that select columns or multiply them (ColumnTransformer that passes columns on,
    PolynomialFeatures), where the budget bears a fit of all their columns. Every other candidate is
    fitted and scored privately, with its part of the budget: of a total of epsilon = 1 each of four
    has 0.48, each of sixteen 0.23; strengths are chosen within each. So state few of these;
    defaults of the models follow public numbers already. Where runs have too little for a
    comparison, or scores no bounds of the target, the candidate that is nearest to `estimator` has
    the whole budget, and a warning says so before the charge. Of more than 48 a secret random
    number is drawn, and the best one leaves. With ids of persons, ``fit(X, y, groups=ids)``, every
    candidate is run, and slots hold whole persons.

    **Privacy**

    - Guarantee: what `fit` releases, the fitted attributes, is (`epsilon`, `delta`)-DP, scores and
      refit included, for neighbours as the estimator's `neighboring` says.
    - Charged: one event, before the first fit. What runs cost is set by the search: `epsilon` and
      `delta` of the estimator are ignored.
    - Not released: warnings and errors of runs. Where the number of runs is secret, neither that
      number, nor which candidates were tried, nor the scores of those that did not win. **The
      time** that `fit` takes, and the load of the machine, then follow the number of runs: do not
      let strangers measure it, and do not stop a search because it takes long.
    - Not protected: what an estimator of its own does not protect. A hold-out that is stated as an
      array, and the candidates, must not have been chosen by looking at the records.

    Parameters
    ----------
    estimator : estimator
        Private, with `planned_event` and parameters `epsilon` and `delta`; or scikit-learn's
        Pipeline of such a one and steps that learn nothing. Without accountant and seed. What
        `inspection.find_leaks` calls void or a leak is refused, in candidates too.
    param_distributions : dict or list of dicts
        For the name of each parameter a list, or a distribution with ``rvs``. Where candidates are
        drawn, a dict is chosen first, each as likely as the others, then every parameter for
        itself, with replacement.
    epsilon : float in (0, 1e6], default=1.0
        Budget of everything together.
    delta : "auto" or float in (0, 1), default="auto"
        "auto" is 1/n², not available under "add_remove".
    n_iter : "auto" or float > 1, default="auto"
        *Mean* number of runs, which is secret (Poisson: > 0); ignored where all candidates are
        tried, "auto" where a subset is. "auto" is 10 elsewhere.
    distribution : {"auto", "all", "subset", "poisson", "geometric", "logarithmic"} or float
        The default, "auto", tries every candidate of lists that make 48 at most, once, and shows
        all results: k candidates have mu/sqrt(k) each ("all" does so whatever n and epsilon are).
        Of longer lists each candidate is tried once with a probability of .95, or not at all, and
        the best is shown ("subset" does so with short lists too: 20 candidates have 1.2 times as
        much each, 48 1.4 times). Of distributions a Poisson number of candidates is drawn. The
        other laws are truncated negative binomial of shape 1, 0 or the given one, in [-0.5, 100]:
        fewer runs have more each, and may miss every good candidate. A warning before the charge
        says so where each is missed with a probability above .05.
    scoring : str or PrivateScorer, default=None
        A name that `make_private_scorer` takes, or a scorer that it made, whose budget is ignored:
        the search sets the noise. None is "accuracy" for classifiers and "r2" for regressors, which
        needs `target_bounds`; what is one fit needs neither. With a score candidates are always
        run.
    validation : float in (0, 1), array of int or splitter, default=0.25
        What is scored and not fitted: a share of the records, row numbers, or a splitter by row
        number (KFold, ShuffleSplit and their like). A record that a run fits or scores, not both,
        costs the run one release; k folds cost k. Under "add_remove" only a share in [0.1, 0.9],
        of 500 records or more and no more than `n_public`, which is a promise about the table: each
        draws a secret coin, and the size of a slot decides nothing.
    refit : bool, default=False
        Whether to fit the best candidate again, on all records: a further release, which lowers the
        budget of each run. If False the winner itself is the result. More folds than one need True.
    accountant : PrivacyAccountant, default=None
        What is charged, once.
    n_jobs : int, default=None
        For joblib.
    random_state : int, RandomState or None, default=None
        Draws the split only. The number of runs, candidates and noise are the operating system's. A
        tape of `dpcd_sklearn.testing` records all of it, in one process.

    Attributes
    ----------
    best_estimator_ : estimator or None
        The winner; None if there was no run, or if all of them failed (a run that fails scores
        -inf): one and the same, and what `fit` warns of. Its own `privacy_spent_` is that of one
        run, not what the search cost. Released.
    best_params_ : dict or None
        Its parameters. Released.
    best_score_ : float
        Its noisy score, clipped to the score's range: the greatest of several, on average too high.
        -inf if there is none. Of one fit: 0 where it chose, else NaN. Released.
    cv_results_ : dict
        ``params``, ``mean_test_score`` and ``rank_test_score`` of all candidates if all were tried;
        else the row of the winner alone: nothing may be published of the others. Scores are ranked
        before they are clipped. Where one fit chose, the score is the estimated mean loss of the
        best less that of the candidate, and ``std_test_score`` its standard deviation by noise.
        Released.
    run_epsilon_, n_splits_ : float, int
        What each fit and score had, at `delta`; 0 splits where the search is one fit. Public.
    privacy_event_ : FitEvent
        What was released. Public.
    privacy_spent_, n_features_in_ : PrivacySpent (epsilon, delta), int
        Public.

    Raises
    ------
    BudgetExceededError, LedgerError
        If the accountant refuses the charge or can't write it; no record was used.
    RuntimeError
        If a worker process of `n_jobs` was killed, for want of memory perhaps. Nothing was
        released; the charge stays, and another search is another charge.
    TypeError, ValueError
        If the estimator is not private, a parameter is invalid, no candidate can be planned, or the
        budget is too small; nothing was charged.

    Notes
    -----
    All candidates together cost what their releases cost, composed exactly. Private steps that
    candidates of a PrivatePipeline share are fitted once, on all records, and scales of which
    nothing is stated are found once. The cost of a law is that of Papernot & Steinke with the exact
    trade-off curve of a run in place of their bound: proof ``privacy/proofs/private_tuning.md``.
    Candidates are bounded by one release: a Gaussian one if those that are planned release
    Gaussians only, else a Gaussian that covers them but for a probability of a thousandth of delta,
    which is dear for mini-batches.

    References
    ----------
    Papernot & Steinke (2022). Hyperparameter tuning with Rényi differential privacy. ICLR.
    Talwar (2024). Privacy-computation trade-offs in private repetition and metaselection.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPRidgeSkGD
    >>> from dpcd_sklearn.model_selection import PrivateSearchCV
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 3))
    >>> y = X @ [1.0, -1.0, 0.0]
    >>> model = DPRidgeSkGD(feature_bounds=(-1, 1), target_bounds=(-2, 2))
    >>> search = PrivateSearchCV(model, {"alpha": [1e-3, 1e6]}, epsilon=2.0).fit(X, y)
    >>> search.privacy_spent_.epsilon
    2.0
    >>> search.best_params_
    {'alpha': 0.001}
    """

    estimator: BaseEstimator
    param_distributions: dict[str, Any] | list[dict[str, Any]]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: Auto = "auto"
    n_iter: Auto = "auto"
    distribution: str = "auto"
    scoring: object = None
    validation: object = 0.25
    refit: bool = False
    accountant: PrivacyAccountant | None = None
    n_jobs: int | None = None
    random_state: Seed | None = None

    _parameter_constraints = {}  # a plan checks its parameters
    planned_event = PrivateFit.planned_event

    def _event_of_shape(self, n_samples, n_features, n_outputs, sparse):
        return _way_of(asked_of(self, n_samples, (n_features, n_outputs, sparse))).event

    # ---- the search ----

    @np.errstate(all="ignore")  # a floating point warning would tell about the records
    def fit(self, X: ArrayLike, y: ArrayLike, groups: Column = None) -> Self:
        """Search, charging the accountant before a record is used.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record. For ``Persons()`` whole persons are fitted or
            scored, and numbers are of persons; for ``Persons(k)`` at most k records of each are.

        Returns
        -------
        self : PrivateSearchCV

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused or can't be written; no record was used.
        RuntimeError
            If a worker process of `n_jobs` was killed; nothing was released, and the charge stays.
        TypeError, ValueError
            If a parameter, X or y is invalid; nothing was charged.
        """
        X, y = on_host(X), on_host(y)
        self._refuse_partitions(X, y)
        X, y = read_searched_records(self.estimator, X, y)
        X, y, n_samples, ids = self._persons(X, y, groups)
        shape = _runs.columns_of(self.estimator, X), 1, may_be_sparse(X)
        vars(self).update(_way_of(asked_of(self, n_samples, shape)).run(X, y, ids))
        self.n_features_in_ = width_of(X)
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_
        if self.best_estimator_ is None:  # which is released
            warn(f"{_NO_MODEL}. The charge stays")
        return self

    def _persons(self, X, y, groups):
        """Records, the number of persons, and the id of each record; of records None."""
        part = _runs.budgeted_part(self.estimator)
        unit = getattr(part, "neighboring", "replace_one")
        if (groups := ids_of(unit, groups)) is not None and relation_of(unit)[1] is None:
            ids, persons = persons_of(groups, len(y))
            return X, y, len(ids), ids[persons]
        if groups is not None:  # a table in which nobody has more is searched
            X, y = records_read(unit, groups, X, y)
        return X, y, len(y), None

    def _refuse_partitions(self, *records):
        """Runs split records by rows, in one machine: of partitions each of them would fail."""
        model = last_step(_runs.budgeted_part(self.estimator))
        of_dask = hasattr(model, "to_local")
        if of_dask or any(hasattr(one, "__dask_graph__") for one in records):
            found = f"{type(model).__name__} of dpcd_sklearn.dask" if of_dask else "a collection"
            raise TypeError(
                f"{type(self).__name__} splits records in memory, got {found}: pass the estimator "
                "of dpcd_sklearn and X.compute(), y.compute(). Inside "
                "joblib.parallel_backend('dask') its runs are spread over a cluster"
            )

    # ---- the winner ----

    def _winner(self):
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError("This PrivateSearchCV instance is not fitted yet; call 'fit'")
        if self.best_estimator_ is None:
            raise NotFittedError(_NO_MODEL)
        return self.best_estimator_

    @available_if(_winner_has("predict"))
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predictions of the winner.

        Raises
        ------
        NotFittedError
            If there is no winner.
        """
        return self._winner().predict(X)

    @available_if(_winner_has("predict_proba"))
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probabilities of the winner's classes."""
        return self._winner().predict_proba(X)

    @available_if(_winner_has("predict_log_proba"))
    def predict_log_proba(self, X: ArrayLike) -> np.ndarray:
        """Logarithms of the probabilities of the winner's classes."""
        return self._winner().predict_log_proba(X)

    @available_if(_winner_has("decision_function"))
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Margins of the winner."""
        return self._winner().decision_function(X)

    @available_if(_winner_has("score"))
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Score of the winner by its own method, on these records; not private."""
        return self._winner().score(X, y)

    @property
    def classes_(self) -> np.ndarray:
        """Labels of the winner."""
        return self._winner().classes_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.non_deterministic = True
        tags.target_tags.required = True
        return tags
