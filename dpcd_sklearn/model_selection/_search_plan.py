"""The plan of a search: everything that is public and fixed before a record is used."""

import math
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
from sklearn.base import clone, is_regressor

from ..metrics import PrivateScorer, make_private_scorer
from ..metrics._metrics import METRICS
from ..pipeline._budget_of_step import last_step
from ..pipeline._joint_plan import target_of
from ..plan._private_fit import warn_of_weak_promise
from ..privacy.accounting._accounting import epsilon_of
from ..privacy.accounting._events import FitEvent
from ..privacy.accounting._joint import search_fit_event
from ..privacy.accounting._promise import Budget, promised
from ..privacy.accounting._spent import PrivacySpent
from ..privacy.accounting._tuning import TRIED, missed
from ..privacy.ledger._accountant import charge
from ..privacy.ledger._rehearsal import fit_up_to_charge
from ..privacy.mechanisms._questions import is_tape
from ..privacy.mechanisms._scores import ScoreUnits
from ..utils._compat import num_samples
from ..utils._input import read_table
from ..utils._persons import relation_of
from ..utils._public import check_real, width_of
from ..utils._threads import libraries
from ..utils._warnings import silence, warn
from . import _candidates, _runs
from ._shared_releases import ScalesFirst
from ._splits import Slots, refuse_number, slots_of


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """A search that is asked for: its own parameters, which are valid, and what follows from them.

    Attributes
    ----------
    search : PrivateSearchCV
    n_samples : int
        Number of records, or of persons by their ids.
    shape : tuple (columns, n_outputs, is_sparse)
    grids : list of dict
    law, mean : str or float, float
        Law and mean of the number of runs.
    coins : Coins or Recording
        Secret coins.
    slots : Slots
    budget : Budget
        Budget of everything together; its n is the public number of all records.
    """

    search: object
    n_samples: int
    shape: tuple
    grids: list
    law: object
    mean: float
    coins: object
    slots: Slots
    budget: Budget

    @property
    def part(self):
        """The part of the estimator that has a budget."""
        return _runs.budgeted_part(self.search.estimator)

    @property
    def n_public(self):
        """As the estimator states it."""
        return getattr(self.part, "n_public", None)

    @property
    def sizes(self):
        """Sizes of a fit of all records, as a plan is told of them."""
        return (self.budget.n, *self.shape)

    @property
    def tape(self):
        """The tape of a search that is recorded or replayed, else None."""
        return self.coins if is_tape(self.coins) else None

    @property
    def entry(self):
        """The facts that a ledger keeps beside the event."""
        search = self.search
        return {
            "estimator": type(search).__name__,
            "params": search.get_params(deep=False)
            | {"validation": type(search.validation).__name__},
            "n_samples": self.budget.n,
            "n_features": width_of(self.shape[0]),
            "reproducible": self.tape is not None,
        }

    @cached_property
    def scales_first(self):
        """The search whose scales are released before its runs, or None."""
        return ScalesFirst.of(self)


def follows_defaults(search):
    """Whether a search asks for no score, no law and no number of runs of its own."""
    stated = search.scoring, search.distribution, search.n_iter
    return stated in ((None, "auto", "auto"), (None, "all", "auto"))


def asked_of(search, n_samples, shape):
    """The request of a search over so many records; `shape` is (columns, n_outputs, is_sparse).

    Raises
    ------
    TypeError, ValueError
        If a parameter of the search is invalid.
    """
    if not isinstance(search.refit, (bool, np.bool_)):
        raise TypeError(f"refit must be True or False, got {search.refit!r}")
    if search.n_jobs is not None and (
        not isinstance(search.n_jobs, Integral) or search.n_jobs == 0
    ):
        raise ValueError(f"n_jobs must be None or an integer but 0, got {search.n_jobs!r}")
    epsilon = check_real(search.epsilon, "epsilon", low=0, high=1e6, closed="right")
    part = _runs.budgeted_part(search.estimator)
    _candidates.refuse_accountants(search.estimator)
    grids = _candidates.check_distributions(search.param_distributions)
    neighboring = getattr(part, "neighboring", "replace_one")
    by_id = relation_of(neighboring)[1] is None
    if follows_defaults(search) and not by_id:  # whose fits choose no strength
        together = _candidates.with_strengths_together
        grids = [one for grid in grids for one in together(search.estimator, grid)]
    law, mean = _candidates.law_of(search.distribution, search.n_iter, grids)
    n_public = getattr(part, "n_public", None)
    coins, seed = _candidates.Coins(), search.random_state
    if is_tape(seed):
        coins, seed = seed, seed.seed
    budget = promised(epsilon, search.delta, neighboring, n_public, n_samples)
    slots = slots_of(search.validation, n_samples, random_state=seed, n_public=n_public)
    if len(slots.n_test) > 1 and not search.refit:
        raise ValueError("several folds have no one model: pass refit=True, or a hold-out")
    return SearchRequest(search, n_samples, shape, grids, law, mean, coins, slots, budget)


def read_searched_records(estimator, X, y):
    """The records, of which rows can be taken; a candidate says what else is wrong of them."""
    X, n_samples = read_table(X)
    y = target_of(estimator, y)
    if y.shape != (n_samples,):
        raise ValueError(f"y must have shape ({n_samples},), got {y.shape}")
    return X, y


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """All that a search by runs does, but for the number of its runs.

    Attributes
    ----------
    asked : SearchRequest
    scorer : PrivateScorer
    event : FitEvent
        What is charged.
    release : GaussianEvent or CoveredEvent
        What each fit and each score may tell.
    prototypes : list of estimators
        Candidates that were planned, each with the budget of a run.
    mu : float
        μ of the budget of the last of them.
    """

    asked: SearchRequest
    scorer: PrivateScorer
    event: FitEvent
    release: object
    prototypes: list
    mu: float

    def run(self, X, y, ids):
        """Charge and carry out the search; the attributes that it releases."""
        asked = self.asked
        search, budget = asked.search, asked.budget
        if asked.n_public is not None:
            refuse_number(asked.n_samples, asked.n_public)
        warn_of_weak_promise(budget)
        _warn_of_missed(asked)
        with silence():  # as the runs are
            _refuse_what_runs_refuse(self, X, y, ids)
        # 1. one charge, for all of it
        charge(search.accountant, self.event, **asked.entry).redeem()
        # 2. runs, of which the best one leaves
        runs = self._outcomes(X, y, ids)
        best = _runs.best_of(outcome for _, outcome in runs)
        # 3. the refit
        model, params = best.model, best.shown
        if search.refit:
            model = None if best.params is None else self._refitted(best.params, X, y, ids)
        if model is not None:
            params = _candidates.as_chosen(last_step(model), best.params)
            model = _candidates.with_penalty(model, params)
        shown = runs if asked.law == "all" else [one for one in runs if one[1] is best]
        run = FitEvent((self.release,), *self.event.neighbours)
        results = _runs.ranked(
            [outcome.shown or params for params, outcome in shown],
            np.array([outcome.score for _, outcome in shown]),
            self.scorer.limits,
        )
        return {
            "best_estimator_": model,
            "best_params_": params,
            "best_score_": float(max(results["mean_test_score"], default=-math.inf)),
            "cv_results_": results,
            "n_splits_": len(asked.slots.n_test),
            "run_epsilon_": epsilon_of(run, budget.delta),
            "privacy_event_": self.event,
            "privacy_spent_": PrivacySpent(*budget[:2]),
        }

    def _outcomes(self, X, y, ids):
        """Parameters and outcome of each run."""
        asked = self.asked
        tried = _candidates.tried(asked.law, asked.mean, asked.grids, asked.coins)
        splits = asked.slots.rows(num_samples(X), asked.coins, ids)
        facts = self.release, asked.budget, asked.tape
        tasks = []
        libraries()  # in this process: a run must leave no trace
        with silence():
            for params in tried:
                model = self.budgeted(params, min(asked.slots.n_train))
                if asked.search.refit and self.budgeted(params, asked.budget.n) is None:
                    model = None  # it may not win what can't be fitted again
                tasks.append((model, params, self.scorer, X, y, splits, *facts, ids))
        outcomes = _runs.made(tasks, asked.search.n_jobs if asked.tape is None else None)
        return list(zip(tried, outcomes, strict=True))

    def budgeted(self, params, n_records):
        """A candidate with the budget of a run; None if there is none, as public facts decide."""
        asked = self.asked
        try:
            model = _candidate(asked, params, n_records)
            if asked.tape is not None:
                _candidates.put_on_tape(model, asked.tape)
            sizes = (n_records, *asked.shape)
            _runs.give_budget(model, self.release, asked.budget, sizes, self.mu)
        except Exception:  # an error would tell of a run that did not win
            return None
        return model

    def _refitted(self, params, X, y, ids):
        try:
            with silence():
                model = self.budgeted(params, self.asked.budget.n)
                return _runs.fitted(model, X, y, self.release, ids)
        except Exception:  # it is paid for, and what failed might tell of records
            return None


def planned(asked):
    """The plan of a search by runs.

    Raises
    ------
    TypeError, ValueError
        If the estimator can't be planned, or the budget is too small.
    """
    search, budget, slots, n_public = asked.search, asked.budget, asked.slots, asked.n_public
    scorer = _scorer(asked)
    sizes = (min(slots.n_train), *asked.shape)
    listed = _candidates.prototypes(asked.grids, asked.coins)
    prototypes = [_candidate(asked, params, sizes[0]) for params in listed]
    refits = [_candidate(asked, params, budget.n) for params in listed] if search.refit else []
    for gaussian in (True, False):
        facts = asked.mean, _n_met(slots, budget, gaussian), gaussian, len(refits[:1])
        event, release = search_fit_event(budget, asked.law, *facts)
        try:
            mu = _give_budgets(prototypes, refits, release, budget, sizes)
            break
        except _runs.OfSeveralKindsError:  # a fit makes choices
            continue
    kind = METRICS[scorer.name].kind
    # the noise of scores must be drawable, whatever the size of a slot of coins
    for n_test in slots.n_test if n_public is None else (n_public,):
        of_shares = budget.max_contributions is None
        ScoreUnits(_runs.score_event(release, budget), kind, 3, n_test, of_shares)
    return SearchPlan(asked, scorer, event, release, prototypes, mu)


def _n_met(slots, budget, gaussian):
    """How many fits and scores of a run one person meets at most, each with all records at once.

    They may lie on both sides of a split. Of Gaussian releases that costs no more than if all lay
    on one, as those of one record do: ``proofs/of_persons.md``.
    """
    if gaussian or budget.max_contributions in (None, 1):
        return slots.n_seen
    return min(budget.max_contributions * slots.n_seen, 2 * len(slots.n_test))


def _give_budgets(prototypes, refits, release, budget, sizes):
    """Give all candidates the budget of a run; return the μ of the last."""
    mu = math.inf
    for model in prototypes:
        mu = _runs.give_budget(model, release, budget, sizes, mu)
    for model in refits:
        try:
            _runs.give_budget(model, release, budget, (budget.n, *sizes[1:]), mu)
        except _runs.OfSeveralKindsError:
            raise
        except ValueError as error:
            raise ValueError(
                f"the refit of {model!r} on all {budget.n} records can't be planned within the "
                f"budget of a run ({error}); pass refit=False, or leave this candidate out"
            ) from None
    return mu


def _warn_of_missed(asked):
    """Say before the charge how probable it is that the best candidate is never tried."""
    numbers = _candidates.numbers_of(asked.grids)
    n_candidates = sum(numbers)
    if asked.law == "all" or not math.isfinite(n_candidates):
        return
    # a run draws a grid first, whatever its size, and then a candidate
    if (share := missed(asked.law, asked.mean, len(numbers) * max(numbers))) > 1 - TRIED:
        warn(
            f"each of {n_candidates} candidates, the best one too, is in no run of this search "
            f"with a probability of up to {share:.2f}: leave distribution and n_iter at 'auto', to "
            f"try all of {_candidates.MOST_PLANNED} at most and each of more with a probability of "
            f"{TRIED}, or raise n_iter",
            UserWarning,
        )


def _refuse_what_runs_refuse(plan, X, y, ids):
    """Refuse records that every planned candidate would refuse, in the words of the first of them.

    Raises
    ------
    TypeError, ValueError
        As a fit of the candidate does; nothing was charged.
    """
    refusals = []
    for prototype in plan.prototypes:
        model = _runs.with_ids(clone(prototype), ids)
        part = _runs.budgeted_part(model)
        try:
            # steps before the model may map records in place
            return fit_up_to_charge(model, part, deepcopy(X) if hasattr(model, "steps") else X, y)
        except (TypeError, ValueError) as error:
            refusals.append(error)
    raise refusals[0] from None


def _scorer(asked):
    """The private scorer, with bounds of its own or the estimator's."""
    search, part, n_public = asked.search, asked.part, asked.n_public
    scoring, regression = search.scoring, is_regressor(search.estimator)
    neighboring = getattr(part, "neighboring", "replace_one")
    if scoring is None:
        scoring = "r2" if regression else "accuracy"
    if isinstance(scoring, str):
        n_public = 2 if relation_of(neighboring)[0] == "add_remove" else None
        scoring = make_private_scorer(scoring, neighboring=neighboring, n_public=n_public)
    if not isinstance(scoring, PrivateScorer):
        raise ValueError(
            f"scoring must be one of {sorted(METRICS)} or what make_private_scorer made: other "
            "scores are unbounded, or have no noise"
        )
    if scoring.accountant is not None:
        raise ValueError(
            "scoring has an accountant, whose entries would tell how many runs there were; the "
            "search pays for scores"
        )
    if relation_of(scoring.neighboring) != relation_of(neighboring):
        raise ValueError("scoring has other neighbours than the estimator")
    if (METRICS[scoring.name].task == "regression") != regression:
        raise ValueError(f"{scoring.name} is no score of {type(search.estimator).__name__}")
    if regression:
        scoring._bounds_of(part)
    elif getattr(last_step(part), "classes", ()) is None:
        raise ValueError(
            "state classes= of the estimator: with None labels are read from the records that "
            "a run fits, and a run that misses one would fail"
        )
    if n_public is not None:
        scoring = clone(scoring, safe=False)
        scoring.n_public = asked.slots.n_test[0]
    return scoring


def _candidate(asked, params, n_records):
    """A candidate, which under add_remove knows the public number of the records that it fits.

    It is the expected size of a slot of coins.
    """
    model = _candidates.candidate(asked.search.estimator, params)
    if asked.n_public is not None:
        _runs.budgeted_part(model).set_params(n_public=n_records)
    return model
