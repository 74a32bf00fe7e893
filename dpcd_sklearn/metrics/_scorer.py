"""Private scorers: one released number a call, charged before a record is read."""

import dataclasses
import math

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import check_is_fitted

from ..exceptions import PrivacyLeakWarning
from ..leaks import counted_and_not, may_be_sparse, refuse_leaks, tree_of
from ..privacy.accounting._calibration import gaussian_fit_event
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._promise import promised, public_number
from ..privacy.ledger._accountant import PrivacyAccountant, charge
from ..privacy.mechanisms._gaussian_sum import Oracle
from ..privacy.mechanisms._scores import ScoreUnits
from ..privacy.sums._score_sums import LEVELS
from ..utils._cells import stated_labels
from ..utils._input import read_target
from ..utils._persons import Persons, ids_of, persons_of, records_read, relation_of
from ..utils._public import MOST, check_count, check_interval, check_real
from ..utils._texts import ReadableRepr
from ..utils._typing import ArrayLike, Auto, Column, Neighboring
from ..utils._warnings import warn
from ._metrics import METRICS, Model, ScoreFacts, read

# Squares of numbers up to it, and of their inverses, are numbers.
_LARGEST = 1e100


class PrivateScorer(ReadableRepr):
    """A score of a model on records that is a private number; made by `make_private_scorer`.

    Call it as any scorer of scikit-learn: ``scorer(estimator, X, y)``. Every call is a release of
    its own, and charged.
    """

    def __init__(
        self, name, epsilon, accountant, delta, neighboring, n_public, classes, bounds, clip
    ):
        if not isinstance(name, str) or name not in METRICS:
            raise ValueError(f"a private score is one of {sorted(METRICS)}, got {name!r}")
        self.name, self.accountant, self.neighboring = name, accountant, neighboring
        relation, _ = relation_of(neighboring)
        self.epsilon = check_real(epsilon, "epsilon", low=0, high=1e6, closed="right")
        self.delta = delta if delta == "auto" else check_real(delta, "delta", low=0, high=1)
        self.n_public = public_number(neighboring, n_public)
        if relation not in self._metric.relations:
            raise ValueError(
                f"{name} has no private form under neighboring={relation!r}: its sensitivity "
                "depends on the number of records, which is not public there"
            )
        self.classes = None if classes is None else stated_labels(classes)
        self.target_bounds = None if bounds is None else _sane(bounds)
        self.clip = None
        if clip is not None:
            self.clip = check_real(clip, "clip", low=1 / _LARGEST, high=_LARGEST, closed="both")
        if clip is not None and self._metric.default_clip is None:
            raise ValueError(f"nothing of {name} is clipped; leave clip out")

    @property
    def _metric(self):
        return METRICS[self.name]

    @property
    def limits(self):
        """Range of the score without noise."""
        if self.name.startswith("neg"):
            return -math.inf, 0.0
        return -math.inf if self.name == "r2" else 0.0, 1.0

    def planned_event(self, n_samples: int, n_features: int = 1, n_outputs: int = 1) -> FitEvent:
        """The event that one call would release.

        Parameters
        ----------
        n_samples : int, >= 1
            Number of records that are scored.
        n_features, n_outputs : int
            Ignored.

        Returns
        -------
        FitEvent
        """
        n = self.n_public or check_count(n_samples, "n_samples", high=MOST)
        return self._budget(n).of_persons(self.event_of_records(n))

    def event_of_records(self, n_samples):
        """The same with the noise as mechanisms state it, over what one record moves."""
        return gaussian_fit_event(self._budget(n_samples), 1)

    def _budget(self, n_samples):
        return promised(self.epsilon, self.delta, self.neighboring, self.n_public, n_samples)

    def get_metadata_routing(self):
        """Ask scikit-learn to route ids of persons to each call, if they are the unit.

        Returns
        -------
        MetadataRequest
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="groups", alias=isinstance(self.neighboring, Persons))
        return request

    def __call__(self, estimator, X: ArrayLike, y: ArrayLike, groups: Column = None) -> float:
        """Release the score of a fitted model on records, after a charge.

        Parameters
        ----------
        estimator : estimator
            Fitted; the records must not have decided on it but through private releases.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), default=None
            The id of the person of each record. For ``Persons()`` the score of a person is the mean
            over its records, and of "roc_auc" one record of each is scored; for ``Persons(k)`` at
            most k of each are.

        Returns
        -------
        score : float
            Greater is better.

        Raises
        ------
        BudgetExceededError, LedgerError
            If the charge is refused; nothing was read.
        TypeError, ValueError
            If the model, the public facts, or container, shape, dtype or finiteness of the records
            do not suit, or a private model has beside it what the guarantee does not cover
            (`inspection.find_leaks`, but for notes); nothing was charged. After the charge records
            raise nothing.
        """
        persons = None
        if (groups := ids_of(self.neighboring, groups)) is not None:
            X, y, persons = self.of_persons(estimator, X, y, groups)
        X, n_samples = read(X)
        n_samples = n_samples if persons is None else persons.max() + 1
        event = self.event_of_records(n_samples)
        release = self.prepared(estimator, X, y, event, persons)
        if self.accountant is None and counted_and_not(tree_of(estimator))[0]:
            warn(
                f"this private score of {type(estimator).__name__} has accountant=None, and the "
                "model's fit is in a ledger: the ledger's guarantee does not cover the score. Give "
                "make_private_scorer the same accountant. Said once a process",
                PrivacyLeakWarning,
                "uncounted score",
            )
        receipt = charge(
            self.accountant,
            event,
            budget=self._budget(n_samples),
            estimator=f"score ({self.name})",
            params={"estimator": type(estimator).__name__, "clip": self.clip},
            n_samples=n_samples,
            n_features=getattr(estimator, "n_features_in_", None),
        )
        return release(receipt)

    def of_persons(self, estimator, X, y, groups):
        """Records, and numbers of persons where all are scored: not of pairs or ``Persons(k)``."""
        X, n_samples = read(X)
        if self._metric.kind != "pairs" and relation_of(self.neighboring)[1] is None:
            return X, y, persons_of(groups, n_samples)[1]
        y = read_target(y, n_samples, self._facts(estimator, n_samples).classes)
        return *records_read(self.neighboring, groups, X, y), None

    def prepared(self, estimator, X, y, event, persons=None):
        """Check all that is public, and return what releases the score for a receipt of `event`.

        That is an event of records, of which each person has one with means over its own.
        """
        X, n_records = read(X)
        n_samples = n_records if persons is None else persons.max() + 1
        metric = self._metric
        # what claims no guarantee is public: it was fitted on other records
        if any(part.kind == "private" for part in tree_of(estimator).inside()):
            refuse_leaks(estimator, dense=not may_be_sparse(X))
        facts = self._facts(estimator, n_samples)
        y = read_target(y, n_records, facts.classes)
        of_shares = persons is not None
        units = ScoreUnits(event, metric.kind, metric.size(facts), facts.n, of_shares)
        unit = LEVELS if of_shares else 1
        facts = dataclasses.replace(facts, noise_std=tuple(units.noise_std), unit=unit)
        model = Model(estimator, metric.methods(facts))
        model.check(X)

        @np.errstate(all="ignore")  # a floating point warning would tell about the records
        def release(receipt, key=None):
            known = y, facts, persons
            oracle = Oracle(receipt, units, lambda: metric.sums(model.answers(X), *known), key=key)
            return metric.score(oracle.release(), facts)

        return release

    def _facts(self, estimator, n_samples):
        metric, n = self._metric, self.n_public or n_samples
        if metric.task == "regression":
            lo, hi = self._bounds_of(estimator)
            facts = ScoreFacts(n=n, center=lo / 2 + hi / 2, half_width=hi / 2 - lo / 2)
        else:
            facts = ScoreFacts(n=n, classes=self._classes_of(estimator))
        clip = 1.0
        if metric.default_clip is not None:
            clip = metric.default_clip(facts) if self.clip is None else self.clip
        if metric.task == "regression":  # no residual is larger, and noise grows with the clip
            clip = min(clip, 2 * facts.half_width)
        return dataclasses.replace(facts, clip=float(clip))

    def _classes_of(self, estimator):
        if not is_classifier(estimator):
            raise ValueError(f"{self.name} is a score of classifiers, got {estimator!r}")
        check_is_fitted(estimator)
        try:
            classes = np.asarray(estimator.classes_)
            set(classes.tolist())
        except (TypeError, ValueError):  # ragged, or labels that can't be looked up
            classes = np.empty(0)
        if classes.ndim != 1 or len(classes) < 2:
            raise ValueError(
                f"{self.name} needs a model that predicts one label a record, of two classes or "
                f"more; its classes_ are {estimator.classes_!r}"
            )
        if self.classes is not None and not np.array_equal(classes, self.classes):
            raise ValueError("the model was fitted for other classes than the scorer's")
        if self.name == "roc_auc" and len(classes) != 2:
            raise ValueError(f"roc_auc is a score of two classes, the model has {len(classes)}")
        return classes

    def _bounds_of(self, estimator):
        bounds, last = self.target_bounds, estimator
        while bounds is None and last is not None:
            stated = getattr(last, "target_bounds_", None) or getattr(last, "target_bounds", None)
            bounds = None if stated is None else check_interval(stated, "target_bounds")
            last = last[-1] if hasattr(last, "steps") else None
        if bounds is None or not all(map(math.isfinite, bounds)):
            raise ValueError(
                f"{self.name} is unbounded without public bounds of the target: give the scorer "
                "or the model target_bounds=(lo, hi)"
            )
        return _sane(bounds)

    def __repr__(self):
        return f"make_private_scorer({self.name!r}, epsilon={self.epsilon:g})"


def _sane(bounds):
    """Bounds of a target that squares can be made of."""
    lo, hi = check_interval(bounds, "target_bounds")
    if not (-_LARGEST <= lo and hi <= _LARGEST and hi - lo >= 1 / _LARGEST):
        raise ValueError(
            f"target_bounds must be finite, within ±{_LARGEST:g}, and at least {1 / _LARGEST:g} "
            f"apart, since a private score needs a bounded target; got ({lo:g}, {hi:g})"
        )
    return lo, hi


def make_private_scorer(
    name: str,
    epsilon: float = 0.1,
    accountant: PrivacyAccountant | None = None,
    *,
    delta: Auto = "auto",
    neighboring: Neighboring = "replace_one",
    n_public: int | None = None,
    classes: ArrayLike | None = None,
    target_bounds: tuple[float, float] | None = None,
    clip: float | None = None,
) -> PrivateScorer:
    r"""Make a scorer whose scores are private numbers, for ``scoring=`` in scikit-learn's tools.

    **Privacy**

    - Guarantee: the score is (`epsilon`, `delta`)-DP in the records that are scored, for neighbours
      that differ in one record, or in one of `Persons`. The model must be public: released by a
      private fit, or fitted on other records. A model that was fitted on records that are scored
      too costs both.
    - Charged: each call, before a record is used. Five folds are five entries.
    - Each record by itself: models of this package answer a batch with the bits that each of its
      records has alone. Of others nobody knows, so they are asked for one record at a time, and
      what they answer must follow from the record. A record that they can't answer for counts as a
      wrong answer, or as a prediction of zero.
    - Not protected: shapes, dtypes, whether all is finite, and the time of a call.

    Parameters
    ----------
    name : str
        "accuracy", "balanced_accuracy", "neg_log_loss", "roc_auc", "neg_mean_squared_error" or
        "r2", as in scikit-learn. "roc_auc" is for two classes under "replace_one" only.
    epsilon : float in (0, 1e6], default=0.1
        Budget of each call.
    accountant : PrivacyAccountant, default=None
        What is charged; None records nothing.
    delta : "auto" or float in (0, 1), default="auto"
        "auto" is 1/n², n the number of records that are scored; not under "add_remove".
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        `Persons` says how many of the scored records one person has, at most.
    n_public : int, default=None
        For "add_remove": a public number of the records that are scored, which divides sums.
    classes : array-like of labels, default=None
        Must be those of the model; None takes them from it. A label of y outside them counts as the
        first one.
    target_bounds : tuple (lo, hi), default=None
        For "r2" and "neg_mean_squared_error": public. Targets and predictions are clipped to them.
        None takes them from the model.
    clip : float > 0, default=None
        Largest log-loss of one record (None: twice that of a guess, 2 log n_classes), or largest
        absolute residual, in units of y (None: half the width of `target_bounds`). Public.

    Returns
    -------
    scorer : PrivateScorer
        ``scorer(estimator, X, y)`` is a float; greater is better. It may lie outside of the usual
        range, by noise.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid.

    Notes
    -----
    Standard deviation of the noise, z the noise multiplier and n records, under "replace_one":
    accuracy z/n; neg_log_loss z clip/n; neg_mean_squared_error z clip²/n; roc_auc about
    2z n/(n₁ n₀); a recall of balanced_accuracy about 1.4z over the records of its class. Proof:
    ``privacy/proofs/release_score.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcd_sklearn import DPLogisticGCD, PrivacyAccountant
    >>> from dpcd_sklearn.metrics import make_private_scorer
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(4000, 3))
    >>> accountant = PrivacyAccountant(epsilon=2.0, delta=1e-6)
    >>> model = DPLogisticGCD(epsilon=1.0, classes=[0, 1], accountant=accountant)
    >>> model = model.fit(X[:3000], X[:3000, 0] > 0)
    >>> accuracy = make_private_scorer("accuracy", 0.5, accountant)
    >>> accuracy(model, X[3000:], X[3000:, 0] > 0) > 0.8
    True
    >>> len(accountant.entries())
    2
    """
    return PrivateScorer(
        name, epsilon, accountant, delta, neighboring, n_public, classes, target_bounds, clip
    )
