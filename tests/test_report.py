"""The report that is filed: nothing but what was released, and no guarantee where none holds."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpcd_sklearn import DPLinearRegressor, DPLogisticGCD, DPRidgeSkGD, PrivacyAccountant
from dpcd_sklearn.compose import make_private_column_transformer
from dpcd_sklearn.inspection import PrivacyReport
from dpcd_sklearn.inspection._report_facts import plain
from dpcd_sklearn.model_selection import PrivateSearchCV
from dpcd_sklearn.pipeline import make_private_pipeline
from dpcd_sklearn.preprocessing import BoundsScaler, DPOneHotEncoder, DPStandardScaler
from dpcd_sklearn.privacy.accounting import gdp_delta
from dpcd_sklearn.testing import ReproducibleNoise

DAY = "2026-01-31"
BOUNDS = {"feature_bounds": (-1, 1), "target_bounds": (-1, 1)}


# The template of good entries in opendp/deployments-registry-data; a value is the tier that
# asks for a field, or the words that it may have.
FIELDS = {
    "url_slug": 1,
    "deployment": {
        "basic": {
            "name": 1,
            "data_curators": 1,
            "description": 1,
            "intended_use": 1,
            "data_product_type": ("Machine learning model", "Summary statistics"),
            "data_product_region": 1,
            "data_product_sector": 1,
            "publication_date": 1,
        },
        "dp_variant": {
            "variant_name": ("Approximate DP", "Pure DP", "Zero-concentrated DP"),
            "data_domain": 3,
            "unprotected_quantities": 3,
        },
        "privacy_loss": {
            "privacy_unit": 2,
            "privacy_unit_details": 3,
            "privacy_parameters": {"epsilon": 2, "delta": 2},
            "privacy_parameters_details": 3,
        },
        "deployment_model": {
            "model_name": ("Central",),
            "model_name_details": 3,
            "trust_assumptions": 3,
            "actors": 3,
            "release_type": ("One release", "Many releases"),
            "release_type_details": 3,
            "data_source_type": ("Static", "Dynamic"),
            "access_type": ("Non-interactive", "Interactive"),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": 3,
            "mechanisms": 3,
            "composition": 3,
            "post_processing": 3,
            "justification": 3,
        },
        "administrative": {"status": ("Draft",), "registry_authors": 1, "tier": (1, 2, 3)},
    },
}


def faults_of(entry, fields=None, path=""):
    """Fields of an entry that are not in the list, and those of tiers 2 and 3 that it lacks."""
    fields = FIELDS if fields is None else fields
    for name in entry:
        if name not in fields:
            yield f"{path}/{name} is no field"
    for name, asked in fields.items():
        value, place = entry.get(name), f"{path}/{name}"
        if isinstance(asked, dict):
            yield from faults_of(value or {}, asked, place)
        elif isinstance(asked, tuple):
            if value not in asked:
                yield f"{place} is none of {asked}"
        elif asked > 1 and value in (None, ""):
            yield f"{place} is empty"


def records(n_samples=3000):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (n_samples, 3)), columns=["age", "a|b", "<script>"])
    return X, X["age"].to_numpy().copy()


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    """One of each kind, by name."""
    X, y = records()
    ledger = tmp_path_factory.mktemp("ledger") / "records.ledger"
    accountant = PrivacyAccountant(epsilon=8.0, delta=1e-5, path=ledger)
    target = {"target_bounds": (-1, 1)}
    scaled = make_private_pipeline(DPStandardScaler(), DPRidgeSkGD(**target), epsilon=3.0)
    return {
        "model": DPLinearRegressor(**BOUNDS, inference=True, accountant=accountant).fit(X, y),
        "classes": DPLogisticGCD(classes=[0, 1, 2]).fit(X, np.arange(len(X)) % 3),
        "labels read": DPLogisticGCD(feature_bounds=(-1, 1)).fit(X, y > 0),
        "transformer": DPStandardScaler().fit(X),
        "pipeline": scaled.set_params(accountant=accountant).fit(X, y),
        "plain pipeline": make_pipeline(BoundsScaler((-1, 1)), DPRidgeSkGD(**target)).fit(X, y),
        "search": PrivateSearchCV(DPRidgeSkGD(**BOUNDS), {"alpha": [0.1, 1.0]}).fit(X, y),
        "ledger": accountant,
    }


def test_fits_that_released_the_same_have_the_same_report():
    """Neighbours, and records with nothing in common, differ in what is not released."""
    X, y = records()
    other = X.copy()
    other.iloc[0] = -1.0
    for neighbour, target in ((other, y), (X[::-1].reset_index(drop=True), -y)):
        model, twin = (
            DPLinearRegressor(inference=True).fit(*each) for each in ((X, y), (neighbour, target))
        )
        assert PrivacyReport(model, date=DAY).facts != PrivacyReport(twin, date=DAY).facts
        released = {name: value for name, value in vars(model).items() if name.endswith("_")}
        vars(twin).update(released, _privacy_std=model._privacy_std)
        mine, theirs = (PrivacyReport(each, date=DAY) for each in (model, twin))
        assert mine.facts == theirs.facts and mine.hash == theirs.hash
        assert mine.to_html() == theirs.to_html() and mine.to_json() == theirs.to_json()


def test_every_kind_has_every_form(subjects, tmp_path):
    for name, subject in subjects.items():
        report = PrivacyReport(subject, vouched_by="the data's owner", date=DAY)
        stated = report.facts["guarantee"]
        assert stated["flaws"] == [], name
        told = json.loads(report.to_json())
        assert told.pop("hash") == report.hash and told == report.facts, name
        markdown, page = report.to_markdown(), report.to_html()
        for text in (markdown, page):
            assert f"ε = {stated['epsilon']:g}" in text and "not protected" in text, name
            sentence = r"at most ([\d.,]+) times as likely, plus 1 in ([\d,]+),"
            ((times, one_in),) = re.findall(sentence, text)
            times, one_in = (float(number.replace(",", "")) for number in (times, one_in))
            assert 0.99 < times / math.exp(stated["epsilon"]) < 1.01, name
            assert 0.99 < one_in * stated["delta"] <= 1.0, name
            (z,) = re.findall(r"one Gaussian mechanism with noise multiplier ([\d.e+-]+) has", text)
            found = gdp_delta(1 / float(z), stated["epsilon"])
            assert found == pytest.approx(stated["delta"], rel=0.1), name
        assert not re.search(r"<script|src=|href=|url\(|@import", page), f"{name}: not by itself"
        assert "| nan |" not in markdown  # of coefficients that are not told apart
        rows = [line for line in markdown.splitlines() if line.startswith("|")]
        assert all(len(re.findall(r"(?<!\\)\|", row)) > 2 for row in rows), name
        for suffix in (".html", ".json", ".md", ".yaml"):
            path = tmp_path / f"report{suffix}"
            report.save(path)
            assert path.stat().st_size > 500, (name, suffix)
    with pytest.raises(ValueError, match=r"\.html, \.json, \.md, \.yaml"):
        report.save(tmp_path / "report.pdf")


def test_it_says_which_bounds_were_stated_and_who_vouches_for_them(subjects):
    def sources(name, **more):
        rows = PrivacyReport(subjects[name], **more).facts["bounds"]
        return {row["name"]: (row["source"], row["vouched_by"]) for row in rows}

    assert sources("model")["feature_bounds"] == ("stated", "nobody is named")
    assert sources("model", vouched_by="Jo")["target_bounds"] == ("stated", "Jo")
    assert sources("classes")["feature_bounds"][0] == "found, as part of ε"
    assert sources("classes", vouched_by="Jo")["classes"] == ("stated", "Jo")
    assert sources("labels read")["classes"][0] == "read from y, and published"
    assert sources("pipeline")["feature_bounds"][0] == "the range of an earlier step"
    assert sources("plain pipeline", vouched_by="Jo") == {
        "boundsscaler__bounds": ("stated", "Jo"),
        "feature_bounds": ("found, as part of ε", "not needed"),
        "target_bounds": ("stated", "Jo"),
    }
    with pytest.raises(TypeError, match="vouched_by"):
        PrivacyReport(subjects["model"], vouched_by=3)


def test_what_was_found_is_filed_as_found_and_unused_columns_are_not_filed():
    X, y = records(20_000)
    X = X[["age"]].assign(arm=np.random.default_rng(1).choice(["a", "b"], len(X)))
    columns = make_private_column_transformer(
        (DPOneHotEncoder(drop="first"), ["arm"]), (DPOneHotEncoder([[0, 1]]), ["age"])
    )
    model = DPLinearRegressor(target_bounds=(-1000, 2000))
    fitted = make_private_pipeline(columns, model, epsilon=3.0).fit(X, y)
    report = PrivacyReport(fitted, vouched_by="Jo")
    rows = {row["name"]: row for row in report.facts["bounds"]}
    path = "dpcolumntransformer__dponehotencoder-"
    assert rows[f"{path}1__categories"]["source"] == "found, as part of ε"
    assert rows[f"{path}1__categories"]["value"] == [["a", "b"]]
    assert rows[f"{path}2__categories"] | {"value": 0} == {
        "name": f"{path}2__categories", "value": 0, "source": "stated", "vouched_by": "Jo"
    }  # fmt: skip
    assert rows["target_bounds, as stated"]["value"] == [-1000, 2000]
    assert rows["target_bounds, as stated"]["vouched_by"] == "Jo"
    assert rows["target_bounds"]["source"] == "found within stated bounds, as part of ε"
    assert rows["target_bounds"]["value"] == list(map(plain, fitted[-1].target_bounds_))
    assert rows["target_bounds"]["vouched_by"] == "not needed"
    text = report.to_markdown()
    assert "| records | 20,000 |\n| columns that reach the model | 4, and 14 that are the" in text
    table = report.facts["coefficients"]
    is_arbitrary = [row["noise"] is None for row in table["rows"]]
    assert sum(is_arbitrary) == table["n_arbitrary"] > 0 and is_arbitrary == sorted(is_arbitrary)
    assert f"The noise of {table['n_arbitrary']} is not stated, and they come last" in text
    assert "covered by a Gaussian mechanism with noise multiplier" in text
    assert "but for an event of the probability δ₀" in text and "unused" not in text


def test_bounds_by_name_that_were_narrowed_are_found_too():
    X, y = records(20_000)
    bounds = {"age": (-1, 1), "a|b": (-500, 500), "<script>": (-1, 1)}
    model = DPLinearRegressor(feature_bounds=bounds, target_bounds=(-1, 1)).fit(X, y)
    rows = {row["name"]: row for row in PrivacyReport(model).facts["bounds"]}
    assert rows["feature_bounds"]["source"] == "found within stated bounds, as part of ε"
    assert rows["feature_bounds, as stated"]["value"]["a|b"] == [-500, 500]
    assert rows["target_bounds"]["source"] == "stated"


def test_noise_stands_beside_coefficients_where_it_is_known(subjects):
    X, y = records(20_000)
    y = 0.5 * y + 0.1 * np.random.default_rng(1).standard_normal(len(y))
    model = DPLinearRegressor(**BOUNDS, inference=True, epsilon=3.0).fit(X, y)
    table = PrivacyReport(model).facts["coefficients"]
    assert table["of"] == 3 and table["rows"][0]["feature"] == "age"
    np.testing.assert_allclose(table["rows"][0]["noise"], model.privacy_std_[0], rtol=1e-4)
    np.testing.assert_allclose(table["rows"][0]["standard_error"], model.coef_std_[0], rtol=1e-4)
    assert "coefficient | noise | standard error |" in PrivacyReport(model).to_markdown()
    assert not PrivacyReport(subjects["classes"]).facts["coefficients"]["noise_known"]
    assert PrivacyReport(subjects["transformer"]).facts["coefficients"] is None


def test_the_curve_is_the_event_s_and_holds_the_budget(subjects):
    for name in ("model", "pipeline", "search"):
        facts = PrivacyReport(subjects[name]).facts
        deltas, epsilons = np.transpose(facts["curve"])
        assert (np.diff(deltas) < 0).all() and (np.diff(epsilons) > 0).all(), name
        stated = facts["guarantee"]
        found = np.interp(-np.log(stated["delta"]), -np.log(deltas), epsilons)
        assert found == pytest.approx(stated["epsilon"], rel=0.05), name


def unprotected():
    X, y = records(500)
    ledger = PrivacyAccountant(epsilon=1.0, delta=1e-5, testing=True)
    noisy = {"random_state": ReproducibleNoise(0), "accountant": ledger}
    yield DPRidgeSkGD(**BOUNDS, **noisy).fit(X, y), "ReproducibleNoise"
    yield ledger, "tests"
    yield DPRidgeSkGD(epsilon=float("inf")).fit(X, y), "infinite"
    yield make_pipeline(StandardScaler(), DPRidgeSkGD(**BOUNDS)).fit(X, y), "StandardScaler"


def test_no_guarantee_is_stated_where_none_holds():
    for subject, why in unprotected():
        report = PrivacyReport(subject)
        assert any(why in flaw for flaw in report.facts["guarantee"]["flaws"]), why
        for text in (report.to_markdown(), report.to_html()):
            assert "No guarantee holds" in text and "differentially private with" not in text
        with pytest.raises(ValueError, match="nothing to register"):
            report.to_registry_yaml()


def test_what_has_no_event_of_its_own_is_refused():
    X, y = records(500)
    with pytest.raises(NotFittedError):
        PrivacyReport(DPRidgeSkGD())
    search = GridSearchCV(DPRidgeSkGD(**BOUNDS), {"alpha": [1.0]}, cv=KFold(2), error_score="raise")
    for subject in (search.fit(X, y), make_pipeline(DPStandardScaler(), DPRidgeSkGD()).fit(X, y)):
        with pytest.raises(TypeError, match=r"PrivacyReport\(accountant\)"):
            PrivacyReport(subject)


def test_registry_entries_fill_tiers_two_and_three(subjects):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the entry back")
    given = {"name": "Wages: a model", "data_curators": ["us"], "publication_date": DAY}
    for name, subject in subjects.items():
        report = PrivacyReport(subject, date=DAY)
        entry = yaml.safe_load(report.to_registry_yaml(**given))
        assert list(faults_of(entry)) == [], name
        stated = entry["deployment"]["privacy_loss"]["privacy_parameters"].items()
        assert stated <= report.facts["guarantee"].items(), name
    assert entry["url_slug"] == "wages-a-model"
    assert given.items() <= entry["deployment"]["basic"].items()
    assert 'intended_use: ""  # fill in' in report.to_registry_yaml(**given)
    with pytest.raises(TypeError, match="colour is not asked for"):
        report.to_registry_yaml(colour="blue")


def test_faults_of_an_entry_can_be_found(subjects):
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the entry back")
    entry = yaml.safe_load(PrivacyReport(subjects["model"]).to_registry_yaml())
    entry["deployment"]["surprise"] = 1
    entry["deployment"]["implementation"]["mechanisms"] = ""
    entry["deployment"]["dp_variant"]["variant_name"] = "Private"
    places = sorted(fault.split()[0].removeprefix("/deployment/") for fault in faults_of(entry))
    assert places == ["dp_variant/variant_name", "implementation/mechanisms", "surprise"]
    assert list(faults_of({"url_slug": "x"}, {"url_slug": FIELDS["url_slug"]})) == []


def test_a_notebook_shows_the_budget_of_an_accountant(tmp_path):
    accountant = PrivacyAccountant(epsilon=2.0, delta=1e-6, path=tmp_path / "records.ledger")
    assert "spent ε = 0 of 2" in accountant._repr_html_()
    assert "spent" not in repr(accountant)  # scikit-learn compares parameters by their repr
    accountant.close()
    assert "closed" in accountant._repr_html_()
