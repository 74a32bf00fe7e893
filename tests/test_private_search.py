"""The private search: one charge, one winner, and nothing about the rest."""

import functools
import math
import os
import pickle
import signal
import warnings
from dataclasses import replace

import numpy as np
import pytest
from forks import at_once
from joblib import parallel_config
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tables import table

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLinearClassifier,
    DPLogisticGCD,
    DPRidgeSkGD,
    PrivacyAccountant,
)
from dpcd_sklearn.exceptions import PrivacyLeakWarning
from dpcd_sklearn.inspection import find_leaks
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV, _candidates, _runs
from dpcd_sklearn.model_selection._splits import slots_of
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPStandardScaler
from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    TuningEvent,
    epsilon_of,
    gaussian_fit_event,
    gdp_squared,
)
from dpcd_sklearn.privacy.accounting._tuning import draw_count, missed
from dpcd_sklearn.solvers import CD
from dpcd_sklearn.testing import Recording, ReproducibleNoise
from dpcd_sklearn.utils import _warnings

RELATIONS = ["replace_one", "add_remove"]
IN_UNITS = {"feature_bounds": (-1, 1), "feature_scale": 1.0}  # so that no scale is looked for
RIDGE = DPRidgeSkGD(target_bounds=(-2, 2), max_iter=10, **IN_UNITS)
LOGISTIC = DPLogisticGCD(classes=[0, 1], max_iter=3, **IN_UNITS)
GRID = {"alpha": [0.01, 1.0]}
OTHER_NEIGHBOURS = make_private_scorer("r2", neighboring="add_remove", n_public=9)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 3))
    return X, X @ [1.0, -1.0, 0.0], (X[:, 0] > 0).astype(int)


class ToyMean(RegressorMixin, BaseEstimator):
    """The mean of a target in [-1, 1] with noise: private in twenty lines, and fast.

    ``calls`` counts fits, ``fail`` raises.
    """

    calls = []
    neighboring = "replace_one"

    def __init__(self, epsilon=1.0, delta=1e-3, shift=0.0, fail=False):
        self.epsilon = epsilon
        self.delta = delta
        self.shift = shift
        self.fail = fail

    target_bounds = (-1, 1)

    def planned_event(self, n_samples, n_features, n_outputs=1):
        return gaussian_fit_event(Budget(self.epsilon, self.delta), 1)

    def fit(self, X, y):
        ToyMean.calls.append((len(y), self.shift))
        if self.fail:
            warnings.warn("a secret of a loser", UserWarning, stacklevel=2)
            raise RuntimeError("a secret of a loser")
        event = self.planned_event(*X.shape)
        std = event.releases[0].noise_multiplier * 2 / len(y)
        self.mean_ = np.clip(y, -1, 1).mean() + std * np.random.default_rng().normal() + self.shift
        self.privacy_event_ = event
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


SECRET = {"distribution": "logarithmic"}  # a law of the number of runs, which is no public fact


def toy(n=40, **params):
    X, y, params = np.zeros((n, 1)), np.zeros(n), SECRET | params
    search = PrivateSearchCV(ToyMean(), {"shift": [0.0, 0.1]}, delta=1e-3, **params)
    return search, X, y


@pytest.fixture
def calls():
    ToyMean.calls.clear()
    yield ToyMean.calls
    ToyMean.calls.clear()


def with_count(monkeypatch, count):
    monkeypatch.setattr(_candidates, "draw_count", lambda law, mean, words: count)


# ---- the budget ---------------------------------------------------------------------------------


@table("distribution", ["logarithmic", "geometric", "poisson", 0.5])
@table("refit", [False, True])
@table("epsilon", [0.3, 1.0, 10.0])
def test_the_whole_search_is_what_was_stated(distribution, refit, epsilon):
    search = PrivateSearchCV(
        RIDGE, GRID, epsilon=epsilon, delta=1e-6, distribution=distribution, refit=refit
    )
    event = search.planned_event(600, 3)
    assert epsilon * (1 - 1e-5) <= epsilon_of(event, 1e-6) <= epsilon
    runs, *rest = event.releases
    assert isinstance(runs, TuningEvent) and len(rest) == refit
    assert gdp_squared(runs.base) is not None


@pytest.mark.parametrize("refit", [False, True])
def test_every_fit_and_every_score_stays_within_one_release(data, refit, monkeypatch):
    X, y, _ = data
    with_count(monkeypatch, 4)
    events, honest = [], _runs.charge
    monkeypatch.setattr(_runs, "charge", lambda a, e: events.append(e) or honest(a, e))
    search = PrivateSearchCV(RIDGE, GRID, delta=1e-6, refit=refit, **SECRET).fit(X, y)
    release = FitEvent(search.privacy_event_.releases[0].base.releases)
    assert len(events) == 4
    for event in (*events, search.best_estimator_.privacy_event_):
        assert gdp_squared(event) <= gdp_squared(release)
        assert gdp_squared(event) >= gdp_squared(release) * (1 - 1e-6)
    assert search.best_estimator_.epsilon == pytest.approx(search.run_epsilon_)
    assert search.privacy_spent_ == (1.0, 1e-6)


@table("refit", [False, True])
@table("epsilon", [0.3, 1.0, 10.0])
def test_few_candidates_are_all_tried_and_shown(data, refit, epsilon):
    X, y, _ = data
    search = PrivateSearchCV(
        RIDGE, {"alpha": [1e-3, 1.0, 1e4]}, epsilon=epsilon, delta=1e-6, refit=refit, scoring="r2"
    ).fit(X, y)
    event = search.privacy_event_
    assert epsilon * (1 - 1e-5) <= epsilon_of(event, 1e-6) <= epsilon
    (release,) = event.releases
    assert release.count == 3 + refit and event == search.planned_event(*X.shape)
    winner = search.best_estimator_.privacy_event_
    assert _runs.excess(winner, replace(release, count=1)) <= 1
    shown = search.cv_results_
    assert [params["alpha"] for params in shown["params"]] == [1e-3, 1.0, 1e4]
    best = shown["rank_test_score"].argmin()
    assert shown["mean_test_score"][best] == shown["mean_test_score"].max() == search.best_score_
    assert search.best_params_ == shown["params"][best]


@table("scoring, lowest", {"accuracy": 0.0, "neg_log_loss": -0.2}.items())
def test_shown_scores_are_clipped_to_the_range_of_the_score_and_ranked_before(
    data, monkeypatch, scoring, lowest
):
    highest = 1.0 if scoring == "accuracy" else 0.0
    noisy = dict(zip([0.1, 1.0, 10.0, 1e2], [1.1, -0.2, 1.3, -math.inf], strict=True))

    def run(model, params, *others):
        return _runs.Outcome(params, noisy[params["C"]], model, params)

    monkeypatch.setattr(_runs, "run", run)
    search = PrivateSearchCV(LOGISTIC, {"C": list(noisy)}, scoring=scoring, delta=1e-6)
    search.fit(data[0], data[2])
    shown = search.cv_results_
    assert shown["mean_test_score"].tolist() == [highest, lowest, highest, -math.inf]
    assert shown["rank_test_score"].tolist() == [2, 3, 1, 4]
    assert search.best_score_ == highest and search.best_params_ == {"C": 10.0}


def test_a_candidate_that_fails_is_shown_as_such():
    search, X, y = toy(distribution="auto")
    search.param_distributions = {"fail": [True, False], "shift": [0.0, 0.1]}
    search.fit(X, y)
    assert search.cv_results_["mean_test_score"][:2].tolist() == [-math.inf] * 2
    assert sorted(search.cv_results_["rank_test_score"]) == [1, 2, 3, 3]


def test_how_likely_a_candidate_is_missed_is_said_before_the_charge(data):
    refuse = PrivacyAccountant(1e-3, 1e-9)
    grids = [{"alpha": [0.1, 1.0, 10.0]}, {"alpha": [1e2]}]  # each is drawn as often
    search = PrivateSearchCV(RIDGE, grids, accountant=refuse, **SECRET)
    with (
        pytest.warns(UserWarning, match=r"of 4 candidates.*probability of up to 0\.46"),
        pytest.raises(BudgetExceededError),
    ):
        search.fit(*data[:2])


@table("law", [("logarithmic", 10.0), ("geometric", 4.0), ("poisson", 6.0), (-0.5, 7.0), (3, 5.0)])
def test_how_likely_a_candidate_is_missed_is_that_of_draws(law):
    rng = np.random.default_rng(0)

    def words(n):
        return map(int, rng.integers(2**64, size=n, dtype=np.uint64))

    counts = np.array([draw_count(*law, words) for _ in range(1500)])
    found = 0.75**counts  # of four candidates
    assert abs(found.mean() - missed(*law, 4)) < 5 * found.std() / math.sqrt(len(counts))


def test_of_many_candidates_each_is_tried_once_or_not_at_all(data):
    X, y = data[:2]
    grid = [{"alpha": list(np.logspace(-3, 0, 70))}, {"max_iter": list(range(1, 31))}]
    tape = Recording(0)
    times, listed = np.zeros(100, int), list(_candidates.listed(grid))
    for _ in range(400):
        tried = _candidates.tried("subset", 95.0, grid, _candidates.Coins())
        found = [listed.index(params) for params in tried]
        assert found == sorted(set(found))
        times[found] += 1
    assert abs(times.mean() / 400 - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 40_000)
    assert stats.binom.cdf(times.min(), 400, 0.95) > 1e-7
    assert missed("subset", 95.0, 100) == 1 - 0.95
    search = PrivateSearchCV(RIDGE, grid, epsilon=3.0, random_state=tape)
    search.fit(X, y)
    (runs, *_) = search.privacy_event_.releases
    assert (runs.distribution, runs.mean) == ("subset", 95.0)
    assert search.planned_event(*X.shape) == search.privacy_event_
    assert len(search.cv_results_["params"]) == 1


@table(("options", "text"), [
    ({"distribution": "subset", "n_iter": 5}, "needs n_iter='auto'"),
    ({"distribution": "subset", "param_distributions": {"alpha": [1.0]}}, "2 to"),
    ({"distribution": "subset", "param_distributions": {"alpha": stats.uniform()}}, "got .* inf"),
])  # fmt: skip
def test_a_subset_needs_lists(options, text):
    search = PrivateSearchCV(RIDGE, {"alpha": [0.1, 1.0]}).set_params(**options)
    with pytest.raises(ValueError, match=text):
        search.planned_event(1000, 3)


@pytest.mark.parametrize(
    ("validation", "n_seen"),
    [
        (0.3, 1),
        (np.arange(5), 1),
        (KFold(4), 4),
        (KFold(4, shuffle=True, random_state=0), 4),
        (PredefinedSplit([0, 1] * 20), 2),
        (ShuffleSplit(3, test_size=0.5, random_state=0), 3),
    ],
)
def test_a_record_costs_as_many_releases_as_it_meets(validation, n_seen):
    search, X, y = toy(validation=validation, refit=True)
    event = search.planned_event(*X.shape)
    assert sum(release.count for release in event.releases[0].base.releases) == n_seen
    search.fit(X, y)
    assert search.n_splits_ == n_seen


def test_folds_are_fitted_scored_and_refitted(calls, monkeypatch):
    with_count(monkeypatch, 3)
    search, X, y = toy(validation=KFold(4), refit=True, epsilon=50.0)
    search.fit(X, y)
    assert [n for n, _ in calls] == [30] * 12 + [40]
    assert calls[-1][1] == search.best_params_["shift"]
    assert search.n_splits_ == 4


def test_a_candidate_of_another_kind_than_planned_counts_as_failed(data, monkeypatch):
    X, _, y = data
    scaled = {"feature_bounds": (-1, 1), "feature_scale": 1.0}  # so that skgd is Gaussian
    model = DPLinearClassifier(classes=[0, 1], max_iter=2, **scaled)
    monkeypatch.setattr(_candidates, "MOST_PLANNED", 0)
    monkeypatch.setattr(_candidates, "prototypes", lambda grids, coins: [{"solver": "skgd"}])
    search = PrivateSearchCV(model, {"solver": ["gcd"]}, delta=1e-6, distribution="geometric")
    with pytest.warns(UserWarning, match="gave no model"):
        search.fit(X, y)
    assert search.best_estimator_ is None and search.best_score_ == -math.inf


def test_a_fit_that_released_more_than_planned_is_made_again_with_less():
    release = GaussianEvent(3.0)

    class More(ToyMean):
        def fit(self, X, y):
            super().fit(X, y)
            self.privacy_event_ = gaussian_fit_event(Budget(1.5 * self.epsilon, 1e-3), 1)
            return self

    model = More(epsilon=1.0)
    budget = Budget(1.0, 1e-3)
    _runs.give_budget(model, release, budget, (10, 1, 1, False))
    before = model.epsilon
    _runs.fitted(model, np.zeros((10, 1)), np.zeros(10), release)
    assert model.epsilon < before and _runs.excess(model.privacy_event_, release) <= 1


# ---- the ledger ---------------------------------------------------------------------------------


def test_one_entry_reserved_before_the_first_fit(data, monkeypatch):
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-3)
    search, X, y = toy(accountant=accountant)
    cost = accountant.cost(search, 40, 1)
    honest = ToyMean.fit

    def watched(self, X, y):
        assert len(accountant.entries()) == 1
        return honest(self, X, y)

    monkeypatch.setattr(ToyMean, "fit", watched)
    search.fit(X, y)
    assert search.best_estimator_ is not None
    (entry,) = accountant.entries()
    assert entry.estimator == "PrivateSearchCV" and entry.n_samples == 40
    assert entry.params["n_iter"] == "auto" and "count" not in entry.params
    assert cost.amount == entry.amount and cost.epsilon == pytest.approx(1.0)
    # the first charge counts by its own curve, whose tail is heavier than that of a Gaussian
    assert 1.0 < accountant.spent().epsilon <= 1.6 < accountant.cost(search, 40, 1).counted


def test_a_refused_search_has_fitted_nothing(calls):
    accountant = PrivacyAccountant(epsilon=0.5, delta=1e-3)
    search, X, y = toy(accountant=accountant)
    with pytest.raises(BudgetExceededError):
        search.fit(X, y)
    assert calls == [] and accountant.entries() == []
    assert not hasattr(search, "best_estimator_")


def test_an_interrupted_search_stays_charged(monkeypatch):
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-3)
    search, X, y = toy(accountant=accountant)

    def interrupted(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(ToyMean, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert len(accountant.entries()) == 1 and not hasattr(search, "best_estimator_")


# ---- what leaves, and what does not -------------------------------------------------------------


def test_nothing_tells_how_many_runs_there_were(monkeypatch):
    sizes = set()
    entries = []
    for count in (1, 60):
        accountant = PrivacyAccountant(epsilon=30.0, delta=1e-2)
        with_count(monkeypatch, count)
        search, X, y = toy(accountant=accountant, validation=0.5)
        search.param_distributions = {"shift": [0.5]}
        search.fit(X, y)
        assert set(vars(search)) - set(search.get_params()) == {
            *("best_estimator_", "best_params_", "best_score_", "cv_results_", "n_splits_"),
            *("run_epsilon_", "privacy_event_", "privacy_spent_", "n_features_in_"),
        }
        assert {name: len(values) for name, values in search.cv_results_.items()} == {
            "params": 1,
            "mean_test_score": 1,
            "rank_test_score": 1,
        }
        sizes.add(len(pickle.dumps(search.set_params(accountant=None))))
        entries += accountant.entries()
    assert len(sizes) == 1
    one, other = entries
    assert (one.params, one.event, one.amount) == (other.params, other.event, other.amount)


def test_losers_fail_in_silence(monkeypatch, capfd, calls):
    with_count(monkeypatch, 30)
    search, X, y = toy(epsilon=5.0)
    search.param_distributions = {"fail": [True, False]}
    with warnings.catch_warnings(action="error"):
        warnings.filterwarnings("ignore", "each of 2 candidates")  # which is public
        search.fit(X, y)
    assert search.best_params_ == {"fail": False}
    assert 30 >= len(calls) > 5
    assert capfd.readouterr() == ("", "")


def test_planning_of_losers_is_silent_and_joblib_counts_no_runs(monkeypatch, capfd):
    with_count(monkeypatch, 12)
    search, X, y = toy()
    honest, planned = ToyMean.planned_event, []

    def warns(self, *args):
        planned.append(1)
        if len(planned) > 4:  # after the plan, which is public
            warnings.warn("which candidate it is", UserWarning, stacklevel=2)
        return honest(self, *args)

    monkeypatch.setattr(ToyMean, "planned_event", warns)
    with warnings.catch_warnings(action="error"), parallel_config(verbose=50):
        warnings.filterwarnings("ignore", "each of 2 candidates")  # which is public
        search.fit(X, y)
    assert len(planned) > 20 and search.best_estimator_ is not None
    assert capfd.readouterr() == ("", "")


def test_callbacks_of_the_estimator_see_no_run():
    pytest.importorskip("sklearn.callback", reason="callbacks are new in scikit-learn 1.9")
    inner = make_pipeline(BoundsScaler((-1, 1)), clone(RIDGE))
    for part in (inner, inner[-1]):
        part._skl_callbacks = ["a progress bar"]
    assert hasattr(clone(inner), "_skl_callbacks")  # clones hand them on
    made = _candidates.candidate(inner, {"dpridgeskgd__alpha": 2.0})
    assert not hasattr(made, "_skl_callbacks") and not hasattr(made[-1], "_skl_callbacks")


def test_where_all_runs_fail_or_none_is_there_is_no_model(monkeypatch):
    search, X, y = toy()
    search.param_distributions = {"fail": [True]}
    none, _, _ = toy(distribution="poisson")
    words = set()
    for given, count in ((search, 7), (none, 0)):
        with_count(monkeypatch, count)
        with pytest.warns(UserWarning, match="gave no model") as told:
            given.fit(X, y)
        words.add(str(told[0].message))
        assert given.best_estimator_ is None and given.best_params_ is None
        assert given.best_score_ == -math.inf and given.cv_results_["params"] == []
        with pytest.raises(NotFittedError, match="gave no model"):
            given.predict(X)
    assert len(words) == 1  # nobody is told which it was
    with pytest.raises(NotFittedError, match="not fitted"):
        clone(search).predict(X)


def test_the_number_of_runs_and_candidates_follow_no_seed(calls):
    seen = []
    for _ in range(12):
        search, X, y = toy(random_state=0)
        calls.clear()
        np.random.seed(0)  # noqa: NPY002 - a global seed must not matter
        search.fit(X, y)
        seen.append(tuple(calls))
    assert len(set(seen)) > 1  # all alike once in 10^9


def test_the_seed_draws_the_split():
    drawn = (slots_of(0.3, 50, random_state=seed) for seed in (0, 0, 1))
    one, same, other = (slots.rows(50, None) for slots in drawn)
    assert np.array_equal(one[0][1], same[0][1])
    assert not np.array_equal(one[0][1], other[0][1])
    assert sorted(np.concatenate(one[0])) == list(range(50))


def test_candidates_are_drawn_with_replacement_each_as_likely():
    grids = [{"a": [1, 2, 3], "b": [4, 5]}, {"a": stats.uniform(10, 1)}]
    generator = _candidates.secret_generator(_candidates.Coins())
    drawn = [_candidates.draw(grids, generator) for _ in range(1200)]
    of_first = [d for d in drawn if "b" in d]
    assert stats.binomtest(len(of_first), 1200).pvalue > 1e-6
    counts = [sum(d == {"a": a, "b": b} for d in of_first) for a in (1, 2, 3) for b in (4, 5)]
    assert stats.chisquare(counts).pvalue > 1e-6
    assert all(10 <= d["a"] <= 11 for d in drawn if "b" not in d)


@pytest.mark.parametrize(("n", "p", "epsilon"), [(500, 10, 1.0), (2000, 10, 0.3), (4000, 40, 0.3)])
@pytest.mark.parametrize("refit", [False, True])
def test_candidates_that_have_another_solver_with_less_budget_are_covered(n, p, epsilon, refit):
    """With the whole budget all of them are Gaussian; with that of a run some make choices."""
    model = DPLassoCD(feature_bounds=(-1, 1), target_bounds=(-2, 2))
    search = PrivateSearchCV(
        model, {"alpha": [1e-3, 1.0]}, epsilon=epsilon, delta=1e-6, refit=refit, scoring="r2"
    )
    event = search.planned_event(n, p)
    assert epsilon_of(event, 1e-6) <= epsilon
    if (n, refit) != (4000, False):  # there each run is a Newton walk still
        assert "covered" in str(event)


# ---- it works where scikit-learn's tools do ------------------------------------------------------


def test_it_finds_the_better_candidate(data, monkeypatch):
    """In this process; the next test has others."""
    X, y, _ = data
    with_count(monkeypatch, 9)
    grid = {"alpha": [1e-3, 1e5]}
    search = PrivateSearchCV(RIDGE, grid, epsilon=20.0, distribution="geometric").fit(X, y)
    # nine runs miss one of two candidates once in 512
    assert search.best_params_["alpha"] == 1e-3 or search.best_score_ < 0.5
    if search.best_params_["alpha"] == 1e-3:
        assert search.score(X, y) > 0.4 and abs(search.best_score_ - search.score(X, y)) < 0.3
    assert search.predict(X).shape == (600,) and search.n_features_in_ == 3


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no process is killed so here")
def test_a_killed_worker_ends_a_search_with_words_and_its_charge_stays(data, monkeypatch):
    """In words that say what the ledger holds, whichever run it was, and nothing is released."""
    X, y, _ = data
    parent = os.getpid()

    class Killed(DPRidgeSkGD):
        def fit(self, X, y):
            if os.getpid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().fit(X, y)

    with_count(monkeypatch, 4)
    accountant = PrivacyAccountant(5.0, 1e-5)
    model = Killed(feature_bounds=(-1, 1), target_bounds=(-2, 2), max_iter=10)
    search = PrivateSearchCV(model, GRID, accountant=accountant, n_jobs=2, distribution="geometric")
    with pytest.raises(RuntimeError, match="killed.*the ledger holds the charge of the whole"):
        search.fit(X, y)
    assert len(accountant.entries()) == 1
    assert not hasattr(search, "best_estimator_") and not hasattr(search, "cv_results_")
    # workers are started anew for the next one
    search.set_params(estimator=RIDGE, accountant=None, epsilon=20.0).fit(X, y)
    assert search.score(X, y) > 0.4 and abs(search.best_score_ - search.score(X, y)) < 0.3


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "neg_log_loss", "roc_auc"])
def test_classifiers_under_both_relations(data, relation, scoring):
    X, _, y = data
    n_public = 600 if relation == "add_remove" else None
    model = clone(LOGISTIC).set_params(neighboring=relation, n_public=n_public)
    search = PrivateSearchCV(
        model, {"C": [1.0, 10.0]}, epsilon=20.0, delta=1e-6, scoring=scoring, n_iter=3
    )
    if relation == "add_remove" and scoring == "roc_auc":
        with pytest.raises(ValueError, match="no private form"):
            search.fit(X, y)
        return
    search.fit(X, y)
    assert math.isfinite(search.best_score_)
    assert search.predict_proba(X).shape == (600, 2) and list(search.classes_) == [0, 1]
    assert search.decision_function(X).shape == (600,)
    assert search.best_estimator_.n_public == (450 if n_public else None)
    assert search.privacy_event_.neighboring == relation


def test_coins_are_fresh_and_of_the_stated_share():
    slots = slots_of(0.3, 100, random_state=0, n_public=1000)
    (train, test), *_ = slots.rows(5000, _candidates.Coins())
    assert sorted([*train, *test]) == list(range(5000))
    assert stats.binomtest(len(test), 5000, 0.3).pvalue > 1e-6
    assert not np.array_equal(test, slots.rows(5000, _candidates.Coins())[0][1])
    assert (slots.n_train, slots.n_test) == ((700,), (300,))


@pytest.mark.filterwarnings("ignore:epsilon=5 and n=600 are too few to compare")
def test_pipelines_inside_and_around(data):
    X, y, _ = data
    inner = make_pipeline(BoundsScaler((-1, 1)), clone(RIDGE))
    search = PrivateSearchCV(inner, {"dpridgeskgd__alpha": [0.01, 0.1]}, epsilon=5.0)
    outer = make_pipeline(BoundsScaler((-1, 1)), search).fit(X, y)
    assert outer[-1].best_estimator_[-1].alpha in (0.01, 0.1)
    assert outer.predict(X).shape == (600,)
    again = pickle.loads(pickle.dumps(outer))
    assert np.array_equal(again.predict(X), outer.predict(X))
    alone = PrivateSearchCV(clone(RIDGE), {"alpha": stats.loguniform(1e-3, 1e2)}, epsilon=5.0)
    assert clone(alone).fit(X, y).best_params_["alpha"] < 1e2
    assert find_leaks(alone) is not None


# ---- bad input: a clear error, nothing charged ---------------------------------------------------


def refused(search, X, y, error, match):
    accountant = PrivacyAccountant(epsilon=100.0, delta=1e-2)
    with pytest.raises(error, match=match):
        search.set_params(accountant=accountant).fit(X, y)
    assert accountant.entries() == [] and not hasattr(search, "best_estimator_")


@table(
    ("params", "error", "match"),
    [
        ({"estimator": DecisionTreeClassifier()}, TypeError, "not private"),
        ({"estimator": StandardScaler}, TypeError, "not private"),
        ({"estimator": None}, TypeError, "not private"),
        ({"estimator": make_pipeline(StandardScaler(), RIDGE)}, ValueError, "StandardScaler"),
        ({"estimator": make_pipeline(DPStandardScaler(), RIDGE)}, ValueError, "2 steps"),
        ({"estimator": DPRidgeSkGD(feature_scale=1), "scoring": "r2"}, ValueError, "public bounds"),
        (
            {
                "estimator": DPLogisticGCD(),
                "param_distributions": {"rule": ["gs-s", "gs-r"]},
                "scoring": "accuracy",
            },
            ValueError,
            "state classes=",
        ),
        ({"param_distributions": {}}, ValueError, "names no parameter"),
        ({"param_distributions": []}, TypeError, "not empty"),
        ({"param_distributions": {"alpha": []}}, ValueError, "is empty"),
        ({"param_distributions": {"alpha": [0.1, 1.0, 0.1]}}, ValueError, "0.1 twice"),
        ({"param_distributions": {"solver": [CD(), "gcd", CD()]}}, ValueError, r"CD\(\) twice"),
        ({"param_distributions": {"alpha": [0.1, math.nan]}}, ValueError, "alpha"),
        ({"param_distributions": {"alpha": ["strong"]}}, TypeError, "alpha"),
        ({"param_distributions": {"alpha": 1.0}}, TypeError, "rvs"),
        ({"param_distributions": {"alpha": "abc"}}, TypeError, "rvs"),
        ({"param_distributions": {1: [2]}}, TypeError, "strings"),
        ({"param_distributions": 3}, TypeError, "dict"),
        ({"param_distributions": [3]}, TypeError, "dicts"),
        ({"param_distributions": {"beta": [1.0]}}, ValueError, "beta"),
        ({"param_distributions": {"alpha": [-1.0]}}, ValueError, "alpha"),
        ({"param_distributions": {"epsilon": [1.0]}}, ValueError, "search sets it"),
        ({"param_distributions": {"classes": [None]}}, ValueError, "same labels"),
        ({"param_distributions": {"accountant": [None]}}, ValueError, "how many runs"),
        ({"scoring": "neg_max_error"}, ValueError, "one of"),
        ({"scoring": "accuracy"}, ValueError, "no score of"),
        ({"scoring": lambda model, X, y: 1.0}, ValueError, "unbounded, or have no noise"),
        ({"scoring": OTHER_NEIGHBOURS}, ValueError, "other neighbours"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"epsilon": 1e-200, "scoring": "r2"}, ValueError, "epsilon"),
        ({"epsilon": "1"}, TypeError, "epsilon"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"delta": "n"}, ValueError, "delta"),
        ({"n_iter": 1, **SECRET}, ValueError, "mean"),
        ({"n_iter": 0}, ValueError, "mean"),
        ({"n_iter": math.nan}, ValueError, "mean"),
        ({"distribution": "binomial"}, ValueError, "distribution"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"n_jobs": "all"}, ValueError, "n_jobs"),
        ({"refit": "yes"}, TypeError, "refit"),
        ({"random_state": "zero"}, ValueError, "seed"),
        ({"validation": StratifiedKFold(3)}, ValueError, "follow labels"),
        ({"validation": GroupKFold(3)}, ValueError, "row number"),
        ({"validation": KFold(3)}, ValueError, "refit=True"),
        ({"validation": 1.0}, ValueError, "validation"),
        ({"validation": 5}, TypeError, "validation"),
        ({"validation": True}, TypeError, "validation"),
        ({"validation": [0.5, 1.0]}, TypeError, "validation"),
        ({"validation": [0, 0]}, ValueError, "twice"),
        ({"validation": [600]}, ValueError, "row numbers"),
        ({"validation": np.arange(600)}, ValueError, "no record"),
    ],
)
def test_bad_parameters_are_refused(data, params, error, match):
    search = PrivateSearchCV(clone(RIDGE), GRID).set_params(**params)
    y = data[2] if "state classes" in match else data[1]
    refused(search, data[0], y, error, match)


def test_accountants_and_seeds_inside_are_refused(data, uncharged):
    inside = clone(RIDGE).set_params(accountant=uncharged)
    refused(PrivateSearchCV(inside, GRID), *data[:2], ValueError, "how many runs")
    seeded = clone(RIDGE).set_params(random_state=ReproducibleNoise(0))
    refused(PrivateSearchCV(seeded, GRID), *data[:2], ValueError, "random_state")
    hidden = make_pipeline(BoundsScaler((-1, 1)), clone(RIDGE))
    candidates = {"dpridgeskgd": [inside]}
    refused(PrivateSearchCV(hidden, candidates), *data[:2], ValueError, "how many runs")
    scorer = make_private_scorer("r2", 0.1, uncharged, target_bounds=(-2, 2))
    refused(
        PrivateSearchCV(clone(RIDGE), GRID, scoring=scorer),
        *data[:2],
        ValueError,
        "pays for scores",
    )


@pytest.mark.parametrize("validation", [KFold(3), [1, 2]], ids=str)
def test_row_numbers_are_not_public_under_add_remove(data, validation):
    model = clone(RIDGE).set_params(neighboring="add_remove", n_public=600)
    search = PrivateSearchCV(model, GRID, delta=1e-6, validation=validation, refit=True)
    refused(search, *data[:2], ValueError, "secret coin")
    nearly = PrivateSearchCV(model, GRID, delta=1e-6, validation=0.95)
    refused(nearly, *data[:2], ValueError, "nearly empty")
    auto = PrivateSearchCV(model, GRID)
    refused(auto, *data[:2], ValueError, "state it")


def test_one_record_and_labels_of_another_kind_are_refused(data):
    X, y, labels = data
    refused(PrivateSearchCV(clone(RIDGE), GRID), X[:1], y[:1], ValueError, "state it")
    words = PrivateSearchCV(clone(LOGISTIC), {"C": [1.0]})
    refused(words, X, labels.astype(str), ValueError, "no label of y")


# ---- what a search decides beforehand, and what it says -----------------------------------------


@table(("n", "epsilon"), [(150, 1.0), (300, 1.0), (150, 0.2), (1000, 4.0)])
def test_a_refit_that_plans_otherwise_than_the_runs_is_a_part_of_the_plan(n, epsilon):
    """Half of 150 records look for no scale, all of them do: their choices are no Gaussians."""
    X = np.random.default_rng(0).uniform(-1, 1, (n, 3))
    model = DPRidgeSkGD(target_bounds=(-2, 2), max_iter=3)
    search = PrivateSearchCV(model, GRID, epsilon=epsilon, n_iter=2, validation=0.5, refit=True)
    assert search.fit(X, X @ [1.0, -1.0, 0.0]).best_estimator_ is not None


class TwoKinds(ToyMean):
    """It releases more from many records, whatever its epsilon is."""

    def planned_event(self, n_samples, n_features, n_outputs=1):
        if n_samples < 40:
            return super().planned_event(n_samples, n_features)
        return FitEvent((GaussianEvent(1e-3),))


def test_a_refit_that_no_budget_is_small_enough_for_is_refused_before_the_charge(calls):
    accountant = PrivacyAccountant(epsilon=3.0, delta=1e-3)
    search, X, y = toy(accountant=accountant, refit=True, validation=0.5)
    search.estimator = TwoKinds()
    with pytest.raises(ValueError, match="refit of .* on all 40 records can't be planned"):
        search.fit(X, y)
    assert calls == [] and accountant.entries() == []


def test_runs_in_threads_are_silent_and_leave_no_trace_and_others_are_heard(monkeypatch):
    monkeypatch.setattr(_warnings, "said", set())
    with_count(monkeypatch, 5)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    class Loud(DPRidgeSkGD):
        def fit(self, X, y):
            warnings.warn("a secret of a run", UserWarning, stacklevel=2)
            return super().fit(X, y)

    columns = ColumnTransformer([("all", BoundsScaler(), [0, 1])], sparse_threshold=0)
    models = [Loud(target_bounds=(-2, 2), max_iter=2), None]
    models[1] = make_pipeline(columns, clone(models[0]))  # scikit-learn copies filters there

    def search(model):
        grid = {name: [1.0, 2.0] for name in model.get_params() if name.endswith("alpha")}
        PrivateSearchCV(model, grid, epsilon=9.0, delta=1e-4, scoring="r2").fit(X, X[:, 0])

    def other():
        for _ in range(200):
            warnings.warn("of another thread", UserWarning, stacklevel=1)

    with warnings.catch_warnings(record=True, action="always") as heard:
        searches = [functools.partial(search, model) for model in (*models, models[0])]
        assert not at_once(*searches, other)
        warnings.warn("afterwards", UserWarning, stacklevel=1)
    words = [str(one.message) for one in heard]
    assert "a secret of a run" not in words and words[-1] == "afterwards"
    assert words.count("of another thread") == 200
    assert _warnings.said == set()


def test_a_search_warns_of_its_own_promise_and_before_its_charge(monkeypatch, uncharged):
    monkeypatch.setattr(_warnings, "said", set())
    search, X, y = toy(accountant=uncharged)
    for text, params in {
        "epsilon=20 promises little": {"epsilon": 20.0},
        "delta=0.05 is no less than 1/n for n=40": {"epsilon": 1.0, "delta": 0.05},
    }.items():
        with warnings.catch_warnings(action="error"), pytest.raises(PrivacyLeakWarning, match=text):
            search.set_params(**params).fit(X, y)


def test_a_search_leaves_the_records_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 2))
    given = X.copy()
    steps = BoundsScaler((0, 10), copy=False), DPRidgeSkGD(target_bounds=(-9, 9), max_iter=2)
    for model in make_pipeline(*steps), make_private_pipeline(*steps):
        PrivateSearchCV(model, {"dpridgeskgd__alpha": [1.0]}, n_iter=2, refit=True).fit(
            given, X[:, 0]
        )
        np.testing.assert_array_equal(given, X)


@table("model", [DPLogisticGCD(classes=[0, 1]), RIDGE, make_private_pipeline(RIDGE)])
def test_a_search_refuses_dates_for_a_target_as_the_model_does(model):
    search = PrivateSearchCV(model, {}, epsilon=1.0, accountant=PrivacyAccountant(2.0, 1e-3))
    for one in model, search:
        with pytest.raises((TypeError, ValueError), match="holds dates|got dtype kind 'M'"):
            one.fit(np.zeros((60, 2)), np.full(60, np.datetime64("2020-01-01")))
    assert search.accountant.entries() == []
