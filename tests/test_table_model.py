"""One call for a table: judged by names and dtypes, asks for all that is missing at once."""

import textwrap

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from tables import table

from dpcd_sklearn import DPLinearClassifier, DPLinearRegressor, Persons, PrivacyAccountant
from dpcd_sklearn.compose import date_parts, make_private_column_transformer, private_table_model
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import DPOneHotEncoder, DPSimpleImputer, DPStandardScaler

N = 3000
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "age": RNG.uniform(18, 90, N),
        "visits": RNG.integers(0, 9, N),
        "weight": RNG.normal(75, 12, N),
        "smoker": RNG.random(N) < 0.3,
        "ward": RNG.choice(["A", "B"], N),
        "code": RNG.integers(1, 4, N),
    }
)
X.loc[::7, "weight"] = np.nan
Y = (X["age"] + 20 * X["smoker"] > 60).astype(int)
STATED = {
    "classes": [0, 1],
    "bounds": {"age": (0, 110), "visits": (0, 20)},
    "categories": {"code": [1, 2, 3]},
    "delta": 1e-6,
}
STEPS = DPOneHotEncoder, DPSimpleImputer, DPStandardScaler, DPLinearClassifier, DPLinearRegressor
NAMES = make_pipeline, make_private_column_transformer, make_private_pipeline, Persons, *STEPS
NAMES = {each.__name__: each for each in NAMES}
OPTIONS = {
    "classification": STATED,
    "nothing stated": {"model": DPLinearClassifier(classes=[0, 1], max_iter=3)},
    "regression": {"target_bounds": (0, 1), "epsilon": 3.0, "drop": ["ward"]},
    "persons": STATED | {"neighboring": Persons(4)},
    "long lists": STATED | {"categories": {"code": [1, 2, 3], "ward": ["(a, 'b')", "B" * 40] * 3}},
}


@table("name", OPTIONS)
def test_the_code_that_is_printed_makes_the_pipeline_that_is_returned(name, capsys):
    made = private_table_model(X, Y, **OPTIONS[name])
    printed = capsys.readouterr().out
    code, end, said = printed.partition("\n    )\n")
    again = eval(textwrap.dedent(code + end), dict(NAMES))
    assert repr(again) == repr(made)
    assert "Found privately" in said
    assert " ".join(said.split()).count("neighboring=Persons(k)") == 1
    assert max(map(len, printed.splitlines())) <= 88
    private_table_model(X, Y, **OPTIONS[name], verbose=False)
    assert capsys.readouterr().out == ""


@table("name", OPTIONS)
def test_the_pipeline_depends_on_names_and_dtypes_alone(name):
    made = repr(private_table_model(X, Y, **OPTIONS[name]))
    assert repr(private_table_model(X[:0], Y[:0], **OPTIONS[name])) == made
    others = X.assign(age=1e9, visits=-7, weight=np.nan, smoker=True, ward="a farm", code=99)
    assert repr(private_table_model(others, 1 - Y, **OPTIONS[name])) == made


def test_one_entry_pays_for_a_fit_that_learns_by_age(tmp_path):
    accountant = PrivacyAccountant(2.0, 1e-5, path=tmp_path / "a.ledger")
    model = private_table_model(X, accountant=accountant, **STATED)
    assert accountant.entries() == []
    model.fit(X, Y)
    assert len(accountant.entries()) == 1 and model.privacy_spent_.epsilon == 1.0
    assert model.score(X, Y) > 0.8


def test_cost_by_names_says_that_it_needs_made_up_rows():
    accountant = PrivacyAccountant(2.0, 1e-6, testing=True)  # with the delta of the fit
    model = private_table_model(X, verbose=False, **STATED)
    with pytest.raises(ValueError, match="data frame of made-up rows in its place"):
        accountant.cost(model, N, X.shape[1])
    made_up = pd.DataFrame({"age": 0.0, "visits": 1, "weight": 0.0, "smoker": True, "ward": "a",
                            "code": 1}, index=[0, 1])  # fmt: skip
    assert accountant.cost(model, N, made_up).epsilon == pytest.approx(1.0, rel=1e-5)


def test_gaps_are_filled_where_a_dtype_can_have_some():
    made = private_table_model(X[["visits", "smoker"]], classes=[0, 1], verbose=False)
    assert "DPSimpleImputer" not in repr(made)
    assert made[0].transformers[0][1].feature_bounds == [(0, 1)]
    nullable = X[["visits"]].astype("Int64")
    assert "DPSimpleImputer" in repr(private_table_model(nullable, classes=[0, 1], verbose=False))


def test_the_target_is_judged_by_its_dtype():
    assert private_table_model(X, Y == 1, verbose=False)[-1].classes == [False, True]
    assert isinstance(private_table_model(X, Y * 0.5, verbose=False)[-1], DPLinearRegressor)


BAD = pd.DataFrame({"patient_id": [1], "Surname": ["x"], "admission_date": ["2020-01-01"]})
BAD = BAD.assign(when=pd.Timestamp("2020-01-01"), noted=b"x", age=1.0)


def test_all_that_is_missing_is_asked_for_in_one_message():
    with pytest.raises(ValueError, match="told more") as error:
        private_table_model(BAD, Y, bounds={"agee": (0, 1), "Surname": (0, 1)})
    for text in (
        "does not have: ['agee']",
        "of numbers, and ['Surname']",
        "drop=['patient_id', 'Surname']",
        "pd.to_datetime(X['admission_date'])",
        "['when'] are dates",
        "date_parts(X)",
        "classes=[...], all labels",
    ):
        assert text in str(error.value)
    assert str(error.value).count("\n- ") == 6
    assert "2020" not in str(error.value).replace("'2020-01-01'", "")  # no cell but the example
    kept = ["patient_id", "Surname", "admission_date"]
    private_table_model(BAD[[*kept, "age"]], keep=kept, classes=[0, 1], verbose=False)
    with pytest.raises(TypeError, match="data frame"):
        private_table_model(X.to_numpy())
    with pytest.raises(ValueError, match="no column is left"):
        private_table_model(X, Y, drop=list(X.columns))


@table("name", {"PassengerId": True, "user ID": True, "E-mail": True, "valid": False,
                "idle_hours": False, "userID": True, "tickets_sold": False, 3: False})  # fmt: skip
def test_identifiers_are_told_by_words_of_their_name(name):
    frame = pd.DataFrame({name: [1.0], "age": [1.0]})
    if name in ("PassengerId", "user ID", "E-mail", "userID"):
        with pytest.raises(ValueError, match="seem to name persons"):
            private_table_model(frame, classes=[0, 1])
    else:
        private_table_model(frame, classes=[0, 1], verbose=False)


def test_date_parts_map_each_record_by_itself(capsys):
    days = pd.DataFrame({"x": 1.0, "when": pd.date_range("2019-12-30", periods=40)})
    days.loc[3, "when"] = None
    parts = date_parts(days)
    assert list(parts) == ["x", "when_year", "when_month", "when_weekday"]
    assert parts.iloc[0].tolist() == [1.0, 2019.0, 12.0, 0.0]
    assert parts.iloc[3, 1:].isna().all()
    alone = pd.concat([date_parts(days[i : i + 1]) for i in range(len(days))])
    pd.testing.assert_frame_equal(alone, parts)
    assert "when" in days  # a copy
    frame = pytest.importorskip("polars").DataFrame({"flag": [True, False], "x": [0.5, 1.0]})
    with pytest.raises(TypeError, match=r"of pandas, got <class 'polars.*: pass X.to_pandas\(\)"):
        date_parts(frame)
    private_table_model(frame, target_bounds=(0, 1))
    assert "DPStandardScaler(feature_bounds=[(0, 1)])" in capsys.readouterr().out
    with pytest.raises(ValueError, match="'admission_date'. seem to hold dates as words"):
        DPLinearClassifier(classes=[0, 1]).fit(BAD[["admission_date", "age"]], [1])
    private_table_model(parts, classes=[0, 1], bounds={"when_month": (1, 12)}, verbose=False)


def test_stated_bounds_gain_where_records_fill_a_part_of_them():
    """Places within wide bounds, beside words: R² was .3 with them, and .64 without any."""
    rng, n = np.random.default_rng(0), 6000
    place, area = rng.normal(45.0, 0.3, n), np.exp(7 + 0.5 * rng.normal(size=n)).clip(200, 8000)
    zones = [f"zone {k}" for k in range(20)]
    table = pd.DataFrame({"place": place, "area": area, "zone": rng.choice(zones, n)})
    y = place - 45 + 0.4 * np.log(area / 1000) + 0.2 * rng.normal(size=n)
    public = {"bounds": {"place": (40, 50), "area": (100, 20_000)}, "categories": {"zone": zones}}

    def score(known):
        made = private_table_model(table, target_bounds=(-2, 2), verbose=False, **known)
        return made.fit(table[:2000], y[:2000]).score(table[2000:], y[2000:])

    assert score(public) > max(0.5, score({}) - 0.1)
