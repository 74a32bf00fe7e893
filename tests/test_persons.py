"""Persons of several records each: the noise, the price, the unit, and what is refused.

Proof: ``privacy/proofs/of_persons.md``. Whole fits are replayed on tables that differ in all
records of one person; the numbers of the proof are stated here.
"""

import functools
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from tables import table
from tape_cases import (
    CASES,
    EXTREME,
    STATED,
    Case,
    N,
    P,
    Records,
    Scored,
    Searched,
    check_paid,
    public_model,
    unit,
    with_row,
)

from dpcd_sklearn import (
    BudgetExceededError,
    DPLassoCD,
    DPLassoCV,
    DPLinearRegressor,
    DPLogisticGCD,
    DPRidgeSkGD,
    Persons,
    PrivacyAccountant,
)
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import PrivacyReport, audit, find_leaks, plan
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.model_selection import _search_plan as search_plan
from dpcd_sklearn.model_selection._splits import slots_of
from dpcd_sklearn.pipeline import PrivatePipeline, make_private_pipeline
from dpcd_sklearn.preprocessing import (
    BoundsScaler,
    DPOneHotEncoder,
    DPOrdinalEncoder,
    DPStandardScaler,
    DPTargetEncoder,
)
from dpcd_sklearn.privacy.accounting import (
    Budget,
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
    epsilon_of,
    gaussian_fit_event,
    gdp_mu,
    gdp_squared,
    joined,
    of_persons,
)
from dpcd_sklearn.privacy.accounting import _persons as persons_module
from dpcd_sklearn.solvers import SGD, SVRG, CompGD, Newton, SkGD
from dpcd_sklearn.testing import LeakError, replay

pytestmark = pytest.mark.filterwarnings("ignore")

K = 3
DELTA = 1e-6
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(2000, P))
Y = np.clip(X @ [0.5, -0.3, 0.0] + 0.1 * RNG.normal(size=2000), -1, 1)
UNIT_SCALE = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1), "feature_scale": 0.6}
OF_PERSONS = {"neighboring": Persons(K), "delta": 1e-4}
REMOVED = {"neighboring": Persons(K, "add_remove"), "n_public": N, "delta": 1e-4}


# ---- numbers ------------------------------------------------------------------------------------


@table(
    "k, of_a_row, of_a_person, divided",
    [
        (2, 0.4752, 2.12, 1.053),
        (5, 0.1785, 5.93, 1.122),
        (10, 0.0850, 13.51, 1.178),
        (50, 0.0150, 125.45, 1.333),
    ],
)
def test_a_budget_of_persons_is_that_of_rows_with_mu_over_k(k, of_a_row, of_a_person, divided):
    budget = Budget(1.0, DELTA, max_contributions=k)
    assert budget.mu == pytest.approx(gdp_mu(1.0, DELTA) / k, rel=1e-12)
    rows = gaussian_fit_event(budget, 8)
    assert epsilon_of(rows, DELTA) == pytest.approx(of_a_row, abs=6e-5)
    assert epsilon_of(of_persons(rows, k), DELTA) == pytest.approx(1.0, rel=1e-8)
    assert epsilon_of(of_persons(rows, k), DELTA) <= 1.0

    def for_a_person(epsilon):  # of a fit that is calibrated for rows
        return epsilon_of(of_persons(gaussian_fit_event(Budget(epsilon, DELTA), 8), k), DELTA)

    assert for_a_person(1.0) == pytest.approx(of_a_person, abs=6e-3)
    assert for_a_person(1 / k) == pytest.approx(divided, abs=6e-4)  # too much


def test_a_fit_that_divides_epsilon_is_refused_by_the_ledger(monkeypatch):
    """The mutant makes less noise, and its event says so."""
    options = {"delta": DELTA, "neighboring": Persons(5), "solver": SkGD(), **UNIT_SCALE}
    ledger = PrivacyAccountant(1.0, DELTA, neighboring=Persons(5))
    DPLinearRegressor(accountant=ledger, **options).fit(X, Y)
    divided = property(lambda self: gdp_mu(self.epsilon / self.max_contributions, self.delta))
    monkeypatch.setattr(Budget, "mu", divided)
    ledger = PrivacyAccountant(1.0, DELTA, neighboring=Persons(5))
    with pytest.raises(BudgetExceededError, match=r"cost epsilon=1\.12"):
        DPLinearRegressor(accountant=ledger, **options).fit(X, Y)
    assert ledger.entries() == []


@table("k", [2, 5, 10])
def test_fits_take_the_budget_of_a_person_and_no_more(k):
    updates = DPLinearRegressor(solver=SkGD(), **UNIT_SCALE)
    choices = DPLogisticGCD(classes=[0, 1], rule="gs-s"), DPLassoCD(), DPStandardScaler()
    for model in (updates, *choices):
        model.set_params(delta=DELTA, epsilon=1.0, neighboring=Persons(k))
        event = model.planned_event(5000, 6)
        assert any(isinstance(r, SelectionEvent) for r in event.releases) == (model is not updates)
        assert 0.99 <= epsilon_of(event, DELTA) <= 1.0 + 1e-8


def test_choices_that_are_calibrated_for_rows_cost_a_person_more(monkeypatch):
    model = DPLogisticGCD(delta=DELTA, neighboring=Persons(5), rule="gs-s", max_iter=30)
    model.set_params(classes=[0, 1], feature_bounds=(-1, 1))
    alone = persons_module.of_persons
    monkeypatch.setattr("dpcd_sklearn.privacy.accounting._promise.of_persons", lambda e, k: e)
    event = alone(model.planned_event(5000, 6), 5)
    assert epsilon_of(event, DELTA) > 1.001


@table(
    "release, expected",
    [
        (GaussianEvent(10.0, 4), GaussianEvent(2.0, 4)),
        (SelectionEvent(0.25, 3), SelectionEvent(1.25, 3)),
        (NonPrivateEvent(), NonPrivateEvent()),
    ],
)
def test_every_release_moves_as_many_records_do(release, expected):
    event = of_persons(FitEvent((release,), "add_remove"), 5)
    (found,) = event.releases
    assert type(found) is type(expected) and event.neighbours == ("add_remove", 5)
    for name, value in vars(expected).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-12)
    assert of_persons(event, 5) is event
    with pytest.raises(ValueError, match="at most 5 a person"):
        of_persons(event, 4)


@table(
    "release, words",
    [
        (PoissonSampledEvent(0.1, 2.0, 5), "newton"),
        (CoveredEvent(2.0, 1e-9), "State the categories"),
        (TuningEvent(FitEvent((GaussianEvent(2.0),)), "poisson", 2.0), "no rule"),
    ],
)
def test_releases_without_a_rule_for_persons_are_refused(release, words):
    with pytest.raises(ValueError, match=words):
        of_persons(FitEvent((GaussianEvent(2.0), release)), 2)
    event = FitEvent((release,))
    assert of_persons(event, 1) is event


def test_enumerated_choices_of_persons_have_k_times_the_range():
    """The exponential mechanism over counts: k records replaced, every table of six of them."""
    cells, n, k, eta = 3, 6, 2, 0.7
    tables = [
        np.array(c) for c in np.ndindex(*[n + 1] * cells) if sum(c) == n
    ]  # a record adds one to the score of its cell
    logs = [eta / 2 * t - np.log(np.exp(eta / 2 * t).sum()) for t in tables]
    worst = {1: 0.0, 2: 0.0}
    for a, log_a in zip(tables, logs, strict=True):
        for b, log_b in zip(tables, logs, strict=True):
            moved = int(np.abs(a - b).sum()) // 2
            if 1 <= moved <= k:
                worst[moved] = max(worst[moved], np.ptp(log_a - log_b))
    assert worst[1] == pytest.approx(eta) and worst[2] == pytest.approx(2 * eta)
    (found,) = of_persons(FitEvent((SelectionEvent(eta),)), k).releases
    assert worst[k] <= found.eta * (1 + 1e-12)


# ---- whole fits: the tape over tables that differ in all records of a person ---------------------


class OfPersons(Case):
    """A case whose neighbour differs in K records."""

    def pair(self, seed):
        rng = np.random.default_rng(seed)
        data = self.records(rng)
        model = self.make(None)
        relation = model.get_params(deep=False).get("neighboring", getattr(model, "relation", None))
        rows = rng.choice(N, K, replace=False)
        alike = rng.random() < 0.5  # all records of a person may be one
        other, cells, y = data, rng.choice([*EXTREME, 1.0, -1.0], P), rng.choice([-1.0, 1.0, 1e300])
        for row in rows:
            if not alike:
                cells, y = rng.choice([*EXTREME, *rng.normal(size=4)], P), rng.normal()
            ys = other.y.copy()
            ys[row] = y
            other = Records(with_row(other.X, row, cells), ys, other.weights)
        if getattr(relation, "relation", "") == "add_remove":
            kept = other
            for row in sorted(map(int, rows), reverse=True):
                kept = kept.without(row)
            return other, kept, None
        return data, other, None


# fits of the tape, with another unit
OF_THE_TAPE = [
    *(f"{word}, stated" for word in ("newton", "skgd", "cd", "gcd", "frank-wolfe")),
    *("auto, large epsilon", "strengths, l1", "skgd, partitions", "pipeline", "scaler"),
    *("robust", "quantiles", "mean, bounds", "pca", "select"),
]
MAKERS = {name: (CASES[name], OF_PERSONS) for name in OF_THE_TAPE}
MAKERS |= {
    f"{name}, add_remove": (CASES[name], REMOVED)
    for name in ("newton, stated", "skgd, stated", "scaler")
}


def with_unit(make, params):
    def make_with_unit(tape):
        model = make(tape)
        model.set_params(**params)
        return model

    return make_with_unit


FITS = {
    name: OfPersons(with_unit(case.make, params), case.records)
    for name, (case, params) in MAKERS.items()
}
FITS |= {
    "score": OfPersons(
        lambda t: Scored("neg_mean_squared_error", public_model(unit), t, **OF_PERSONS), unit
    ),
    "search": OfPersons(
        lambda t: Searched(
            DPLinearRegressor(**STATED, neighboring=Persons(K)), {"alpha": [1e-3, 0.1]}, t,
            {"neighboring": Persons(K), "n_public": None}, validation=KFold(2), refit=True,
        ),
        unit,
    ),
}  # fmt: skip


def replayed(name, seed, arbitrary=False, most=K):
    case = FITS[name]
    data, neighbour, _ = case.pair(seed)
    if name.endswith("add_remove"):
        neighbour, data = data, neighbour
    fit = functools.partial(case.fit, ledger=seed % 2 == 0)
    found = replay(fit, data, neighbour, seed=seed, arbitrary=arbitrary, max_contributions=most)
    if found.returned is not None and hasattr(found.returned[0], "privacy_event_"):
        check_paid(found, found.returned[0].privacy_event_)
    return found


@table("name", FITS)
def test_one_person_decides_nothing(name):
    """Questions agree with the event of persons, and answers move by K sensitivities at most."""
    for seed in (0, 1):
        assert replayed(name, seed, arbitrary=seed == 1).returned is not None


def test_records_of_one_person_move_answers_by_as_many_sensitivities():
    """The tables above are far apart: of one sensitivity the tape complains."""
    worst = max(replayed("skgd, stated", seed).excess for seed in range(8))
    assert 0.8 * K < worst <= K * (1 + 1e-12)
    with pytest.raises(LeakError, match="times its sensitivity"):
        all(replayed("skgd, stated", seed, most=1) for seed in range(8))


# ---- searches: a person on both sides of a split -------------------------------------------------


@table(
    "make", [lambda: KFold(4), lambda: ShuffleSplit(5, test_size=0.3, random_state=1), lambda: 0.3]
)
def test_records_on_both_sides_of_a_split_cost_no_more_than_on_one(make):
    """Every person of three among twelve: squares of what fits and scores meet, over K²."""
    n = 12
    slots = slots_of(make(), n, random_state=np.random.RandomState(0))
    splits = slots.rows(n, None)
    parts = [np.isin(np.arange(n), rows) for split in splits for rows in split]
    worst = 0
    for rows in np.ndindex(n, n, n):
        met = [sum(part[row] for row in set(rows)) for part in parts]
        worst = max(worst, sum(m * m for m in met))
    assert worst <= K**2 * slots.n_seen
    assert slots.n_seen <= sum(1 for _ in parts)


def test_a_search_of_gaussian_fits_is_calibrated_for_persons():
    model = DPLinearRegressor(solver=SkGD(), neighboring=Persons(K), **UNIT_SCALE)
    search = PrivateSearchCV(
        model, {"max_iter": [3, 5]}, epsilon=9.0, delta=1e-5, validation=KFold(2), scoring="r2",
        refit=True,
    )  # fmt: skip
    ledger = PrivacyAccountant(9.0, 1e-5, neighboring=Persons(K))
    search.set_params(accountant=ledger).fit(X, Y)
    event = search.privacy_event_
    assert event.neighbours == ("replace_one", K) and len(ledger.entries()) == 1
    assert event == search.planned_event(*X.shape)
    (release,) = event.releases  # two folds, each a fit or a score of a record, and the refit
    assert release == GaussianEvent(release.noise_multiplier, 2 * 2 + 1)
    assert epsilon_of(event, 1e-5) == pytest.approx(9.0, rel=1e-6)
    refit = search.best_estimator_.privacy_event_
    assert refit.max_contributions == K
    assert gdp_squared(refit) <= 1 / release.noise_multiplier**2
    assert search.best_estimator_.neighboring.max_contributions == K


def test_scores_of_runs_have_the_noise_of_persons(monkeypatch):
    seen = []
    make = search_plan.ScoreUnits

    def units(event, *facts):
        seen.append(event)
        return make(event, *facts)

    monkeypatch.setattr("dpcd_sklearn.metrics._scorer.ScoreUnits", units)
    model = DPLinearRegressor(solver=SkGD(), neighboring=Persons(K), **UNIT_SCALE)
    search = PrivateSearchCV(model, {"max_iter": [3, 5]}, epsilon=9.0, delta=1e-5, scoring="r2")
    search.fit(X, Y)
    (release,) = search.privacy_event_.releases
    of_rows = [event.releases[0].noise_multiplier for event in seen]
    assert of_rows == [pytest.approx(K * release.noise_multiplier)] * 2


@table("k, validation, expected", [(1, 0.3, 1), (2, 0.3, 2), (9, 0.3, 2), (2, KFold(5), 10)])
def test_covers_count_for_every_fit_and_score_that_a_person_meets(k, validation, expected):
    slots = slots_of(validation, 100, random_state=np.random.RandomState(0))
    budget = Budget(1.0, DELTA, max_contributions=k)
    assert search_plan._n_met(slots, budget, gaussian=False) == expected
    assert search_plan._n_met(slots, budget, gaussian=True) == slots.n_seen


def test_a_search_of_fits_with_choices_counts_both_sides():
    model = DPLogisticGCD(classes=[0, 1], rule="gs-s", max_iter=4, feature_bounds=(-1, 1))
    events = {}
    for k in (1, K):
        search = PrivateSearchCV(
            clone(model).set_params(neighboring=Persons(k)), {"max_iter": [3, 5]}, epsilon=9.0,
            delta=1e-5, scoring="accuracy",
        )  # fmt: skip
        events[k] = search.planned_event(*X.shape)
    (alone,), (both,) = (event.releases for event in events.values())
    assert isinstance(alone, CoveredEvent) and isinstance(both, CoveredEvent)
    assert (alone.count, both.count) == (2, 4)  # two runs: one side, and both
    assert epsilon_of(events[K], 1e-5) <= 9.0


@table("name", ["neighboring", "neighboring__max_contributions", "neighboring__relation"])
def test_the_unit_is_not_searched(name):
    search = PrivateSearchCV(DPRidgeSkGD(neighboring=Persons(2)), {name: [1, 2]}, epsilon=1.0)
    with pytest.raises(ValueError, match="can't be searched"):
        search.fit(X, Y)


def test_a_scorer_of_another_unit_is_refused():
    for scorer, model in ((Persons(2), Persons(3)), ("replace_one", Persons(3))):
        scoring = make_private_scorer("r2", neighboring=scorer)
        estimator = DPRidgeSkGD(neighboring=model, **UNIT_SCALE)
        search = PrivateSearchCV(
            estimator, {"max_iter": [2, 3]}, epsilon=1.0, delta=1e-5, scoring=scoring
        )
        with pytest.raises(ValueError, match="other neighbours"):
            search.fit(X, Y)


# ---- scores, pipelines, column transformers ------------------------------------------------------


def test_a_pipeline_has_one_unit_and_gives_it_to_its_steps():
    ledger = PrivacyAccountant(2.0, DELTA, neighboring=Persons(K))
    model = make_private_pipeline(
        DPStandardScaler(), DPRidgeSkGD(target_bounds=(-1, 1)), epsilon=2.0, delta=DELTA,
        neighboring=Persons(K), accountant=ledger,
    ).fit(X, Y)  # fmt: skip
    assert model.privacy_event_.max_contributions == K
    assert 1.99 <= epsilon_of(model.privacy_event_, DELTA) <= 2.0
    parts = [step.privacy_event_ for _, step in model.steps]
    assert joined(parts) == model.privacy_event_
    assert [step.neighboring for _, step in model.steps] == ["replace_one"] * 2  # given back
    assert len(ledger.entries()) == 1


def test_a_step_with_a_unit_of_its_own_is_refused():
    steps = [("scale", DPStandardScaler(neighboring=Persons(2))), ("model", DPRidgeSkGD())]
    with pytest.raises(ValueError, match="'scale' states neighboring"):
        PrivatePipeline(steps, delta=DELTA).fit(X, Y)


def test_a_column_transformer_has_one_unit():
    for remainder, releases in ((DPStandardScaler(), 1), ("drop", 0)):
        steps = [(remainder, [0, 1])] if releases else [(DPOneHotEncoder([[0.0]]), [0])]
        table_ = make_private_column_transformer(
            *steps, epsilon=1.0, delta=DELTA, neighboring=Persons(K)
        )
        fitted = table_.fit(X)
        assert fitted.privacy_event_.max_contributions == K
        assert fitted.privacy_event_ == table_.planned_event(*X.shape)


# ---- the ledger ---------------------------------------------------------------------------------


UNITS = ["replace_one", Persons(2), Persons(3)]


@table("fits", UNITS)
@table("keeps", UNITS)
def test_a_ledger_has_one_unit(keeps, fits):
    ledger = PrivacyAccountant(1.0, DELTA, neighboring=keeps)
    model = DPRidgeSkGD(delta=DELTA, neighboring=fits, accountant=ledger, **UNIT_SCALE)
    if keeps is fits:
        model.fit(X, Y)
        assert len(ledger.entries()) == 1
        return
    with pytest.raises(ValueError, match="and one unit; give the estimator neighboring="):
        model.fit(X, Y)
    assert ledger.entries() == []


def test_of_one_record_a_person_records_are_the_unit():
    ledger = PrivacyAccountant(1.0, DELTA)
    model = DPRidgeSkGD(delta=DELTA, neighboring=Persons(1), accountant=ledger, **UNIT_SCALE)
    event = model.fit(X, Y).privacy_event_
    assert event == clone(model).set_params(neighboring="replace_one").planned_event(*X.shape)
    assert (event.unit, PrivacyAccountant(1.0, DELTA).max_contributions) == ("record", 1)


def test_the_unit_is_kept_in_the_file(tmp_path):
    path = tmp_path / "visits.ledger"
    ledger = PrivacyAccountant(2.0, DELTA, path=path, neighboring=Persons(3))
    model = DPRidgeSkGD(epsilon=1.0, delta=DELTA, neighboring=Persons(3), accountant=ledger)
    model.set_params(**UNIT_SCALE).fit(X, Y)
    for again in (
        PrivacyAccountant.open(path),
        PrivacyAccountant(2.0, DELTA, path=path, neighboring=Persons(3)),
        pickle.loads(pickle.dumps(ledger)),
    ):
        assert (again.neighboring, again.max_contributions) == ("replace_one", 3)
        assert "Persons(3, 'replace_one')" in repr(again)
        left = again.remaining()
        assert 0.5 < left < 2.0
        again.verify()
    for other in (Persons(4), "replace_one"):
        with pytest.raises(ValueError, match="max_contributions=3"):
            PrivacyAccountant(2.0, DELTA, path=path, neighboring=other)
    model.set_params(epsilon=left, accountant=again).fit(X, Y)  # what is left is left for persons
    assert again.remaining() < 1e-3
    assert "record, at most 3 a person" in str(again.report())


def test_a_reservation_is_of_one_unit():
    ledger = PrivacyAccountant(3.0, DELTA, neighboring=Persons(2))
    model = DPRidgeSkGD(epsilon=1.0, delta=DELTA, neighboring=Persons(2), **UNIT_SCALE)
    event = model.planned_event(*X.shape)
    prepaid = ledger.reserve([event, event])
    for _ in range(2):
        clone(model).set_params(accountant=prepaid).fit(X, Y)
    other = clone(model).set_params(neighboring="replace_one").planned_event(*X.shape)
    with pytest.raises(ValueError, match="one neighbouring relation"):
        ledger.reserve([event, other])
    assert len(ledger.entries()) == 1


def test_a_ledger_that_forgets_its_unit_would_count_too_little():
    """The mutant charges the event of rows: a fifth of μ, a 25th of what the ledger must count."""
    model = DPRidgeSkGD(delta=DELTA, neighboring=Persons(5), solver="skgd", **UNIT_SCALE)
    event = model.planned_event(*X.shape)
    rows = gaussian_fit_event(Budget(1.0, DELTA, max_contributions=5), event.releases[0].count)
    assert of_persons(rows, 5) == event
    assert gdp_squared(event) == pytest.approx(25 * gdp_squared(rows))
    ledger = PrivacyAccountant(1.0, DELTA, neighboring=Persons(5))
    with pytest.raises(
        ValueError,
        match="private under 'replace_one' neighbours, the ledger",
    ):
        ledger.charge(rows)


@table("wrong", [0, -1, True, 2.0, "2", None])
def test_an_event_of_no_unit_is_not_charged(wrong):
    ledger = PrivacyAccountant(1.0, DELTA)
    with pytest.raises((TypeError, ValueError)):
        ledger.charge(FitEvent((GaussianEvent(100.0),), "replace_one", wrong))
    run = FitEvent((GaussianEvent(100.0),), "replace_one", 2)
    with pytest.raises(ValueError, match="unit of the whole"):
        ledger.charge(FitEvent((TuningEvent(run, "poisson", 2.0),)))
    assert ledger.entries() == []


# ---- what is refused, before a charge -----------------------------------------------------------


WITHOUT_A_RULE = {
    "batches": (DPLinearRegressor(solver=SGD(), **UNIT_SCALE), Y),
    "variance-reduced batches": (DPLinearRegressor(solver=SVRG(), **UNIT_SCALE), Y),
    "projected batches": (DPLinearRegressor(solver=CompGD(sampling_rate=0.1), **UNIT_SCALE), Y),
    "categories": (DPOneHotEncoder(), None),
    "codes": (DPOrdinalEncoder(), None),
    "means of categories": (DPTargetEncoder(), Y),
    "inference": (DPLinearRegressor(inference=True, solver=Newton(), **UNIT_SCALE), Y),
}


@table("name", WITHOUT_A_RULE)
def test_what_has_no_rule_is_refused_with_words_and_not_charged(name):
    model, y = WITHOUT_A_RULE[name]
    ledger = PrivacyAccountant(5.0, 1e-3, neighboring=Persons(2))
    model = clone(model).set_params(neighboring=Persons(2), accountant=ledger, delta=1e-5)
    words = {"inference": "independent", "batches": "newton"}.get(name.split()[-1], "categories")
    for ask in (lambda: model.fit(X, y), lambda: model.planned_event(*X.shape)):
        with pytest.raises(ValueError, match=words):
            ask()
    assert ledger.entries() == []
    rows = clone(model).set_params(neighboring=Persons(1), accountant=None)
    rows.planned_event(*X.shape)  # of records there is a rule


def test_stated_categories_are_free_for_persons_too():
    model = DPOneHotEncoder([["a", "b"]] * P, neighboring=Persons(4)).fit([["a", "b", "a"]])
    assert model.privacy_event_ == FitEvent((), "replace_one", 4)
    means = DPTargetEncoder([["a", "b"]], neighboring=Persons(4), delta=DELTA)
    assert 0.19 < epsilon_of(means.planned_event(100, 1), DELTA) <= 0.2


WRONG = [
    (0, "max_contributions"), (-3, "max_contributions"), (2.5, "max_contributions"),
    (math.nan, "max_contributions"), ("2", "max_contributions"),
    (True, "boolean"), (2**60, "max_contributions"), ([2], "max_contributions"),
]  # fmt: skip
TAKERS = [
    lambda n: DPRidgeSkGD(neighboring=n, delta=DELTA).fit(X, Y),
    lambda n: DPLassoCV(neighboring=n, delta=DELTA).planned_event(*X.shape),
    lambda n: DPStandardScaler(neighboring=n, delta=DELTA).fit(X),
    lambda n: DPOneHotEncoder([[0.0]] * P, neighboring=n).fit(X),
    lambda n: make_private_pipeline(DPRidgeSkGD(), neighboring=n, delta=DELTA).fit(X, Y),
    lambda n: make_private_column_transformer(
        (DPStandardScaler(), [0]), neighboring=n, delta=DELTA
    ).fit(X),
    lambda n: make_private_scorer("r2", neighboring=n, delta=DELTA),
    lambda n: PrivacyAccountant(1.0, DELTA, neighboring=n),
]


@table("wrong, words", WRONG)
@table("take", TAKERS)
def test_a_wrong_number_of_records_is_refused_by_name(take, wrong, words):
    with pytest.raises((TypeError, ValueError), match=words):
        take(Persons(wrong))


@table("take", TAKERS)
def test_a_wrong_relation_of_persons_is_refused_by_name(take):
    for relation in ("swap", None, 1):
        with pytest.raises((TypeError, ValueError), match="relation"):
            take(Persons(2, relation))
    with pytest.raises((TypeError, ValueError), match="neighboring"):
        take(2)
    with pytest.raises(ValueError, match="n_public"):
        take(Persons(2, "add_remove"))


# ---- what is said of it -------------------------------------------------------------------------


def test_the_sentence_of_an_event_names_the_unit():
    options = {"delta": DELTA, "solver": SkGD(), **UNIT_SCALE}
    replaced = DPLinearRegressor(neighboring=Persons(5), **options).planned_event(*X.shape)
    assert str(replaced).endswith(
        "under replace-one neighbours: the records of one person, at most 5, replaced by as many"
    )
    removed = DPLinearRegressor(neighboring=Persons(5, "add_remove"), n_public=2000, **options)
    assert str(removed.planned_event(1, P)).endswith("at most 5, added or removed")
    assert "person" not in str(of_persons(replaced, 5).__class__(replaced.releases))


def test_reports_and_entries_of_a_registry_name_the_unit():
    model = DPRidgeSkGD(delta=DELTA, neighboring=Persons(7), **UNIT_SCALE).fit(X, Y)
    ledger = PrivacyAccountant(1.0, DELTA, neighboring=Persons(7, "add_remove"), n_public=99)
    for subject in (model, ledger):
        report = PrivacyReport(subject)
        assert "all rows of one person, at most 7" in report.to_markdown()
        entry = report.to_registry_yaml()
        assert "Person-level" in entry and "all rows of one person, at most 7" in entry
    rows = PrivacyReport(DPRidgeSkGD(delta=DELTA, **UNIT_SCALE).fit(X, Y))
    assert "the unit is one row" in rows.to_markdown()


def test_an_audit_of_persons_passes(one_pair):
    model = DPLinearRegressor(
        epsilon=3.0, delta=1e-4, neighboring=Persons(4), solver=SkGD(), max_iter=3, **UNIT_SCALE
    )
    result = audit(model, n_samples=300, n_features=2, n_runs=100, confidence=1 - 1e-9)
    assert not result.contradicts and result.unpaid == ()
    assert result.mu == pytest.approx(gdp_mu(3.0, 1e-4), rel=1e-6)
    assert 0 < result.mu_lower <= result.mu


@table("unit", [Persons(), Persons(relation="add_remove")])
@table("behind", [False, True])
def test_a_plan_of_persons_follows_no_number_of_their_rows(unit, behind):
    facts = UNIT_SCALE | {"feature_scale": None} if behind else UNIT_SCALE
    budget = {"neighboring": unit, "n_public": 300 if unit.relation == "add_remove" else None}
    model = DPRidgeSkGD(delta=DELTA, **facts, **budget)
    model = make_pipeline(BoundsScaler((-1, 1)), model) if behind else model
    found = [
        plan(model, 300, P, rows_per_person=m, n_repeats=4, sizes=[], random_state=0)
        for m in (None, 1, 50, [1, 200])
    ]
    for one in found:
        assert one.event == found[0].event and one.event.unit == "person"
    few, _, many, uneven = found
    assert np.median(few.scores) < np.median(many.scores) and many.excess_error < 0.05
    assert "300 persons of 3" in str(many) and "unit of privacy: person" in str(many)
    assert "rows per person: 50" in str(many) and uneven.rows_per_person == 100.5


@table("unit, wrong", [(Persons(3), 2), ("replace_one", 1), (Persons(), 0), (Persons(), [])])
def test_rows_per_person_are_numbers_and_of_ids(unit, wrong):
    with pytest.raises(ValueError, match="rows_per_person"):
        plan(DPRidgeSkGD(delta=DELTA, neighboring=unit), 300, P, rows_per_person=wrong)


def test_a_plan_and_a_linter_know_persons():
    model = DPRidgeSkGD(delta=DELTA, neighboring=Persons(5), **UNIT_SCALE)
    found = plan(model, n_samples=2000, n_features=P, n_repeats=2)
    assert found.event.max_contributions == 5 and "at most 5 a person" in str(found)
    assert not [leak for leak in find_leaks(model) if "neighboring" in leak.why]
    removed = DPRidgeSkGD(neighboring=Persons(5, "add_remove"), n_public=99, delta=DELTA)
    searches = [GridSearchCV(m, {"alpha": [1.0]}, cv=KFold(3)) for m in (model, removed)]
    named = [
        "folds by row number under neighboring='add_remove'" in str(find_leaks(s)) for s in searches
    ]
    assert named == [False, True]
