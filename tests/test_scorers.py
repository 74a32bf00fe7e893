"""Private scorers: what one record moves, what noise is added, what is charged, what is refused."""

import math
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from tables import table

from dpcd_sklearn import BudgetExceededError, DPLogisticGCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.metrics import make_private_scorer
from dpcd_sklearn.metrics._metrics import METRICS, ScoreFacts, codes_of
from dpcd_sklearn.model_selection._search_plan import read_searched_records
from dpcd_sklearn.preprocessing import BoundsScaler
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.mechanisms import ScoreUnits
from dpcd_sklearn.privacy.mechanisms._scores import pair_weights, score_sensitivity
from dpcd_sklearn.privacy.sums import _score_sums

RELATIONS = {"replace_one": None, "add_remove": 400}  # n_public
CLASSIFIERS = [name for name, metric in METRICS.items() if metric.task == "classification"]
REGRESSORS = [name for name, metric in METRICS.items() if metric.task == "regression"]


CLASSES = np.array([0, 1])


def some_records(rng, name, n):
    """Answers and truths, of all kinds: at the ends of their range more often than not."""
    if METRICS[name].task == "regression":
        wild = [-50.0, -1.0, -0.3, 0.0, 1.0, 1e9, math.nan]
        return rng.choice(wild, (n, 1)), rng.choice([-7.0, -1.0, 0.0, 0.6, 1.0, 30.0], n)
    answers = [0.0, 1.0, 0.5, 0.2, 1e-300]
    answers = answers[:2] if "accuracy" in name else [*answers, math.nan]
    return rng.choice(answers, (n, 1)), rng.choice([0, 1, 7], n)


def weighted(name, X, y, facts, persons=None):
    with np.errstate(all="ignore"):
        answers = np.column_stack([1 - X[:, 0], X[:, 0]]) if "log" in name else X[:, 0]
        sums = METRICS[name].sums(answers, y, facts, persons)
    return np.array(sums) * (pair_weights(len(y)) if METRICS[name].kind == "pairs" else 1)


@pytest.mark.parametrize("label", ["a word", b"bytes", None, 1j, 2**70, (1,)], ids=repr)
def test_one_strange_label_of_a_list_moves_a_score_by_one_record(label):
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 2))
    labels = (X[:, 0] > 0).astype(int).tolist()
    model = LogisticRegression().fit(X, labels)
    scorer = make_private_scorer("accuracy", epsilon=1e6, delta=0.1, classes=[0, 1])
    moved = scorer(model, X, labels) - scorer(model, X, [label, *labels[1:]])
    assert abs(moved) < 1 / 400 + 1e-3
    _, kept = read_searched_records(DPLogisticGCD(classes=[0, 1]), X, [label, *labels[1:]])
    assert kept.tolist()[1:] == labels[1:]


def test_a_search_refuses_a_masked_target_as_its_model_does():
    y = np.ma.masked_array([0.5, 1.0], mask=[True, False])
    for read in (DPRidgeSkGD().fit, partial(read_searched_records, DPRidgeSkGD())):
        with pytest.raises(TypeError, match="must not be a masked array"):
            read(np.zeros((2, 1)), y)


@table("relation", RELATIONS)
@table("name", METRICS)
def test_neighbours_move_the_sums_by_at_most_the_sensitivity_and_nearly_by_it(name, relation):
    metric, rng, most = METRICS[name], np.random.default_rng(0), 0.0
    if relation not in metric.relations:
        with pytest.raises(ValueError, match="no sensitivity"):
            score_sensitivity(metric.kind, 2, 10, relation)
        return
    facts = ScoreFacts(n=9, classes=CLASSES, clip=1.4 if "log" in name else 1.0)
    for _ in range(600):
        n = int(rng.integers(1, 8))
        X, y = some_records(rng, name, n)
        i = int(rng.integers(n))
        sensitivity = score_sensitivity(metric.kind, metric.size(facts), n, relation)
        before = weighted(name, X, y, facts)
        if relation == "add_remove":
            after = weighted(name, np.delete(X, i, axis=0), np.delete(y, i), facts)
        else:
            Z, z = some_records(rng, name, 1)
            X2, y2 = X.copy(), y.copy()
            X2[i], y2[i] = Z[0], z[0]
            after = weighted(name, X2, y2, facts)
        moved = np.linalg.norm(before - after)
        assert moved <= sensitivity * (1 + 1e-12)
        most = max(most, moved / sensitivity)
    # of R² the three numbers never all move by the whole width
    assert most > (0.7 if name == "r2" else 0.95)


@table("relation", RELATIONS)
@table("name", [name for name in METRICS if METRICS[name].kind != "pairs"])
def test_a_person_moves_the_sums_no_farther_whatever_the_number_of_its_records(name, relation):
    metric, rng, most = METRICS[name], np.random.default_rng(0), 0.0
    facts = ScoreFacts(n=9, classes=CLASSES, clip=1.4 if "log" in name else 1.0)
    sensitivity = score_sensitivity(metric.kind, metric.size(facts), 9, relation, of_shares=True)
    for _ in range(600):
        tables = []
        rest = [some_records(rng, name, int(n)) for n in rng.integers(1, 4, rng.integers(1, 4))]
        for n in [*rng.choice([1, 2, 7, 50], 1 + (relation == "replace_one"))]:
            Z, z = some_records(rng, name, int(n))
            same = slice(0, 1) if rng.random() < 0.5 else slice(None)
            tables.append([*rest, (np.broadcast_to(Z[same], Z.shape), np.resize(z[same], n))])
        tables.append(rest)
        sums = []
        for table_ in tables[:2]:
            X, y = (np.concatenate(arrays) for arrays in zip(*table_, strict=True))
            persons = np.repeat(np.arange(len(table_)), [len(y) for _, y in table_])
            order = rng.permutation(len(y))  # which of all records comes first decides nothing
            sums.append(weighted(name, X[order], y[order], facts, persons[order]))
        moved = np.linalg.norm(np.subtract(*sums))
        assert moved <= sensitivity * (1 + 1e-12)
        most = max(most, moved / sensitivity)
    assert most > (0.6 if name == "r2" else 0.95)


def test_pairs_are_those_of_a_double_loop():
    rng = np.random.default_rng(1)
    for _ in range(50):
        codes, margins = rng.integers(0, 2, 12), rng.integers(0, 4, 12).astype(float)
        ones, zeros = margins[codes == 1], margins[codes == 0]
        pairs = sum(np.sign(one - zero) for one in ones for zero in zeros)
        assert _score_sums.sum_pairs(codes, margins) == [pairs, codes.sum()]


# ---- the scores without noise are scikit-learn's ------------------------------------------------


@pytest.fixture(scope="module")
def classified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=400) > 0.5).astype(int)
    return X, y, LogisticRegression(C=0.1).fit(X[:200], y[:200])


@pytest.fixture(scope="module")
def regressed():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 3))
    y = X @ [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=400) + 5
    return X, y, LinearRegression().fit(X[:200], y[:200])


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_little_noise_leaves_scikit_learns_score_of_a_classifier(classified, name, relation):
    if relation not in METRICS[name].relations:
        with pytest.raises(ValueError, match="no private form under"):
            make_private_scorer(name, 1.0, delta=1e-6, neighboring=relation, n_public=400)
        return
    X, y, model = classified
    clip = 30.0 if name == "neg_log_loss" else None
    scorer = make_private_scorer(
        name, 1e6, delta=1e-6, neighboring=relation, n_public=RELATIONS[relation], clip=clip
    )
    assert scorer(model, X, y) == pytest.approx(get_scorer(name)(model, X, y), abs=0.005)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_little_noise_leaves_scikit_learns_score_of_a_regressor(regressed, name, relation):
    X, y, model = regressed
    scorer = make_private_scorer(
        name, 1e6, delta=1e-6, neighboring=relation, n_public=RELATIONS[relation],
        target_bounds=(-1, 11),
    )
    assert scorer(model, X, y) == pytest.approx(get_scorer(name)(model, X, y), abs=0.01)


def test_several_classes_and_words(classified):
    X, y, _ = classified
    words = np.array(["no", "yes", "maybe"])[y + (X[:, 1] > 1)]
    model = LogisticRegression().fit(X, words)
    for name in ("accuracy", "balanced_accuracy", "neg_log_loss"):
        scorer = make_private_scorer(name, 1e6, delta=1e-6, clip=30.0 if "log" in name else None)
        assert scorer(model, X, words) == pytest.approx(get_scorer(name)(model, X, words), abs=0.01)
    with pytest.raises(ValueError, match="two classes"):
        make_private_scorer("roc_auc", 1.0)(model, X, words)


def test_a_label_outside_the_classes_counts_as_the_first():
    class Odd:
        def __hash__(self):
            raise RuntimeError("never seen")

    labels = np.array(["a", 3, None, "b", Odd()], dtype=object)
    assert codes_of(labels, np.array(["a", "b"])).tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("z", [1e-3, 2.0, 1e5])
@pytest.mark.parametrize(
    ("kind", "size"), [("right", 1), ("cells", 6), ("bounded", 3), ("pairs", 2)]
)
def test_noise_has_at_least_its_standard_deviation_and_hardly_more(kind, size, z):
    units = ScoreUnits(FitEvent((GaussianEvent(z),)), kind, size, 50)
    weights = pair_weights(50) if kind == "pairs" else [1] * size
    for std, weight in zip(units.noise_std, weights, strict=True):
        assert z * units.sensitivity <= std * weight <= z * units.sensitivity * (1 + 5e-3)


# ---- paid for, once -----------------------------------------------------------------------------


def test_the_charge_comes_before_the_model_sees_a_record(classified):
    X, y, model = classified
    accountant = PrivacyAccountant(epsilon=0.5, delta=1e-6)

    class Watched(LogisticRegression):
        def predict(self, X):
            assert len(accountant.entries()) == np.any(X)  # zeros are made up
            return super().predict(X)

    watched = Watched().fit(X, y)
    scorer = make_private_scorer("accuracy", 0.3, accountant, delta=1e-6)
    assert 0 < scorer(watched, X, y) < 2
    (entry,) = accountant.entries()
    assert entry.estimator == "score (accuracy)" and entry.n_samples == 400
    with pytest.raises(BudgetExceededError):
        make_private_scorer("accuracy", 0.6, accountant, delta=1e-6)(model, X, y)
    assert len(accountant.entries()) == 1


def test_scorers_work_in_scikit_learns_tools_and_are_charged(classified):
    X, y, _ = classified
    accountant = PrivacyAccountant(epsilon=30.0, delta=1e-4)
    model = make_pipeline(
        BoundsScaler((-4, 4)), DPLogisticGCD(classes=[0, 1], delta=1e-5, accountant=accountant)
    )
    scorer = make_private_scorer("balanced_accuracy", 1.0, accountant, delta=1e-5)
    scores = cross_val_score(model, X, y, cv=KFold(3), scoring=scorer, error_score="raise")
    assert scores.shape == (3,) and len(accountant.entries()) == 6
    search = GridSearchCV(
        model,
        {"dplogisticgcd__C": [0.1, 1.0]},
        cv=KFold(2),
        scoring=scorer,
        error_score="raise",
    ).fit(X, y)
    assert len(accountant.entries()) == 6 + 9 and np.isfinite(search.best_score_)
    assert accountant.verify() is None


def test_bounds_come_from_the_model_if_it_states_some(regressed, uncharged):
    X, y, model = regressed
    private = DPRidgeSkGD(target_bounds=(-1, 11), delta=1e-5).fit(X, y)
    scorer = make_private_scorer("r2", 1e5)
    for stated in (private, make_pipeline(BoundsScaler((-1, 1)), private).fit(X, y)):
        assert math.isfinite(scorer(stated, X, y))
    with pytest.raises(ValueError, match="unbounded without public"):
        make_private_scorer("r2", 0.1, uncharged)(model, X, y)


# ---- bad input ----------------------------------------------------------------------------------


@table(
    ("name", "params", "match"),
    [
        ("f1", {}, "one of"),
        (None, {}, "one of"),
        ("accuracy", {"epsilon": 0}, "epsilon"),
        ("accuracy", {"epsilon": math.inf}, "epsilon"),
        ("accuracy", {"delta": 2.0}, "delta"),
        ("accuracy", {"neighboring": "swap"}, "neighboring"),
        ("accuracy", {"neighboring": "add_remove"}, "n_public"),
        ("accuracy", {"n_public": 10}, "n_public"),
        ("accuracy", {"classes": 5}, "classes must be a list of labels"),
        ("accuracy", {"clip": 1.0}, "nothing of accuracy is clipped"),
        ("r2", {"clip": -1.0}, "clip"),
        ("r2", {"target_bounds": (1, 0)}, "lo must be below hi"),
        ("r2", {"target_bounds": (0, math.inf)}, "finite"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(name, params, match):
    with pytest.raises(ValueError, match=match):
        make_private_scorer(name, **params)


@table(
    ("params", "X", "y", "match"),
    [
        ({}, np.zeros((4, 3)), np.zeros(3), "shape"),
        ({}, np.zeros((4, 3)), np.zeros((4, 2)), "shape"),
        ({}, np.zeros((1, 3)), np.zeros(1), "state it"),
        ({"classes": [0, 1, 2]}, np.zeros((4, 3)), np.zeros(4), "other classes"),
        ({"neighboring": "add_remove", "n_public": 9}, np.zeros((4, 3)), np.zeros(4), "state it"),
    ],
)
def test_records_that_do_not_suit_are_refused_uncharged(classified, params, X, y, match):
    relation = {name: value for name, value in params.items() if name != "classes"}
    accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6, **relation)
    scorer = make_private_scorer("accuracy", 0.1, accountant, **params)
    with pytest.raises(ValueError, match=match):
        scorer(classified[2], X, y)
    assert accountant.entries() == []


def test_no_error_tells_how_many_records_there_are_under_add_remove(classified):
    X, y, model = classified
    facts = {"neighboring": "add_remove", "n_public": 400, "delta": 1e-12}
    with pytest.raises(ValueError, match="of scores of 400 records"):
        make_private_scorer("neg_log_loss", 1e-9, **facts)(model, X[:7], y[:7])


def test_a_score_of_another_task_is_refused(classified, regressed):
    with pytest.raises(ValueError, match="classifiers"):
        make_private_scorer("accuracy", 0.1)(regressed[2], *regressed[:2])
