"""The accountant in one process: reports, entries, files, receipts and the handle."""

import copy
import csv
import datetime
import getpass
import hashlib
import io
import json
import math
import os
import pickle
import platform
import re
import sqlite3

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline

from dpcd_sklearn.exceptions import BudgetExceededError
from dpcd_sklearn.privacy.accounting import (
    Budget,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PrivacySpent,
    Receipt,
    SelectionEvent,
    TuningEvent,
    epsilon_of,
    gaussian_fit_event,
    greedy_fit_event,
)
from dpcd_sklearn.privacy.ledger import LedgerEntry, PrivacyAccountant, charge
from dpcd_sklearn.testing import ReproducibleNoise

ONE = "replace_one"
INFINITE = FitEvent((NonPrivateEvent(),))


def gaussian(mu_squared, count=1):
    """A fit of `count` Gaussian releases that are sqrt(mu_squared)-GDP together."""
    return FitEvent((GaussianEvent(math.sqrt(count / mu_squared), count),))


# ---- releases without noise ---------------------------------------------------------------------


def test_a_testing_ledger_flags_releases_without_noise_and_reports_infinity():
    accountant = PrivacyAccountant(1.0, 1e-5, testing=True)
    accountant.charge(gaussian_fit_event(Budget(0.3, 1e-5, ONE), 5))
    remaining = accountant.remaining()
    accountant.charge(INFINITE)
    entry = accountant.entries()[1]
    assert not entry.private and entry.amount == entry.delta == 0.0
    assert accountant.spent() == PrivacySpent(math.inf, 1e-5)
    assert accountant.remaining() == remaining
    assert "no noise" in str(accountant.report())
    assert repr(accountant).endswith("testing=True)")


def test_a_testing_ledger_flags_noise_that_a_seed_repeats_and_reports_infinity():
    accountant = PrivacyAccountant(1.0, 1e-5, testing=True)
    fit = gaussian_fit_event(Budget(0.3, 1e-5, ONE), 5)
    accountant.charge(fit)
    assert math.isfinite(accountant.spent().epsilon)
    remaining = accountant.remaining()
    accountant.charge(fit, reproducible=True)
    private, flagged = accountant.entries()
    assert private.private and not flagged.private
    assert flagged.amount == private.amount  # it counts as it would without the seed
    assert accountant.remaining() < remaining
    accountant.charge(gaussian(1e-9))  # once infinite, always
    for handle in (accountant, PrivacyAccountant.open(accountant.path)):
        assert handle.spent() == PrivacySpent(math.inf, 1e-5)
    report = accountant.report()
    assert report.epsilons[0] < 1.0 and report.epsilons[1:] == (math.inf, math.inf)
    lines = str(report).splitlines()
    assert "known noise" in lines[2] and "known noise" not in lines[1] + lines[3]
    assert "spent epsilon=inf" in lines[4]  # below the heading and three entries


def test_a_ledger_that_is_not_for_testing_refuses_reproducible_noise_by_itself(uncharged):
    with pytest.raises(ValueError, match=r"random_state.*testing=True"):
        uncharged.charge(gaussian(0.01), reproducible=True)
    for flag in (1, 0, None, "no"):
        with pytest.raises(TypeError, match="reproducible must be True or False"):
            uncharged.charge(gaussian(0.01), reproducible=flag)


# ---- reports --------------------------------------------------------------------------------


def test_spent_is_the_loss_of_a_gaussian_fit_that_takes_as_much():
    fits = [gaussian(0.01, 3), gaussian(0.02, 5)]
    accountant = PrivacyAccountant(2.0, 1e-5)
    for fit in fits:
        accountant.charge(fit)
    together = FitEvent(fits[0].releases + fits[1].releases)
    spent = accountant.spent().epsilon
    assert spent == pytest.approx(epsilon_of(together, 1e-5), rel=1e-9)
    assert isinstance(spent, float) and not isinstance(spent, np.generic)
    greedy = greedy_fit_event(Budget(0.7, 1e-5, ONE), 40, 0.8)
    accountant = PrivacyAccountant(2.0, 1e-5)
    accountant.charge(greedy)
    assert accountant.spent().epsilon == pytest.approx(0.7, rel=0.02)


class PlannedEstimator(BaseEstimator):
    def __init__(self, event=None):
        self.event = event

    def planned_event(self, n_samples, n_features, n_outputs=1):
        return self.event or gaussian(1e-6 * n_samples * n_features * n_outputs)


def test_cost_foretells_exactly_how_many_fits_are_left():
    accountant = PrivacyAccountant(2.0, 1e-5)
    estimator = PlannedEstimator()
    cost = accountant.cost(estimator, 1000, 10)
    event = estimator.planned_event(1000, 10)
    assert cost.epsilon == epsilon_of(event, 1e-5) and cost.delta == 1e-5
    assert cost.counted == pytest.approx(cost.epsilon, rel=1e-9)
    assert accountant.entries() == []
    for left in range(cost.fits_left, 0, -1):
        again = accountant.cost(estimator, 1000, 10)
        assert again.fits_left == left
        accountant.charge(event)
        assert again.remaining == accountant.remaining()
        assert f"after which remaining() is {again.remaining:.4g}; " in str(again)
    assert accountant.cost(estimator, 1000, 10).fits_left == 0
    assert accountant.cost(estimator, 1000, 10).remaining is None
    with pytest.raises(BudgetExceededError):
        accountant.charge(event)
    assert "0 such fits are left" in str(accountant.cost(estimator, 1000, 10))
    assert accountant.entries()[0].amount == cost.amount


def test_cost_says_that_one_fit_is_left_and_refuses_what_charge_refuses():
    accountant = PrivacyAccountant(1.0, 1e-5)
    whole = PlannedEstimator(gaussian_fit_event(Budget(1.0, 1e-5, ONE), 3))
    assert str(accountant.cost(whole, 5, 2)).endswith("1 such fit is left")
    with pytest.raises(ValueError, match="not private"):
        accountant.cost(PlannedEstimator(INFINITE), 5, 2)
    with pytest.raises(TypeError, match="planned_event"):
        accountant.cost(Lasso(), 5, 2)
    testing = PrivacyAccountant(1.0, 1e-5, testing=True)
    assert testing.cost(PlannedEstimator(INFINITE), 5, 2).fits_left == math.inf


def test_entries_hold_the_public_facts_of_each_fit():
    accountant = PrivacyAccountant(5.0, 1e-5)
    event = greedy_fit_event(Budget(1.0, 1e-5, ONE), 7, 0.8)
    before = datetime.datetime.now(datetime.UTC)
    accountant.charge(
        event, estimator="DPLogisticGCD", params={"C": 1.0}, n_samples=np.int64(90), n_features=4
    )
    (entry,) = accountant.entries()
    assert isinstance(entry, LedgerEntry)
    assert (entry.id, entry.estimator, entry.params) == (1, "DPLogisticGCD", {"C": 1.0})
    assert (entry.n_samples, entry.n_features, entry.private) == (90, 4, True)
    assert entry.event == str(event)
    assert [release["release"] for release in entry.releases] == [
        "SelectionEvent",
        "GaussianEvent",
    ]
    assert entry.releases[1]["count"] == 7
    assert 0 < entry.amount < accountant._ledger.parameters.limit and entry.delta == 0.0
    assert before <= entry.time <= datetime.datetime.now(datetime.UTC)
    with pytest.raises(AttributeError):
        entry.amount = 0.0


def test_the_chain_can_be_recomputed_by_an_auditor_from_the_file_alone():
    accountant = PrivacyAccountant(5.0, 1e-5)
    for fit in range(3):
        accountant.charge(gaussian(0.01), params={"fit": fit})
    connection = sqlite3.connect(accountant.path)
    connection.row_factory = sqlite3.Row
    (stated_as,) = connection.execute("SELECT * FROM ledger").fetchall()
    previous = hashlib.sha256(stated_as["parameters"].encode()).hexdigest()
    assert previous == stated_as["hash"]
    for row in map(dict, connection.execute("SELECT * FROM entries ORDER BY id")):
        stored = row.pop("hash")
        text = json.dumps(row | {"previous": previous}, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == stored
    connection.close()


def test_seeds_and_handles_stay_out_of_entries():
    accountant = PrivacyAccountant(5.0, 1e-5, testing=True)
    lasso = Lasso(random_state=424242)
    params = {
        "random_state": 424242,
        "accountant": accountant,
        "lasso__random_state": 424242,
        "nested": {"random_state": 424242, "kept": [lasso]},
        "estimator": make_pipeline(lasso),
        "function": lambda random_state=424242: random_state,
        "noise": [ReproducibleNoise(424242)],
    }
    accountant.charge(gaussian(0.01), params=params)
    (entry,) = accountant.entries()
    assert set(entry.params) == {"nested", "estimator", "function", "noise"}
    assert entry.params["nested"]["kept"][0]["estimator"] == "Lasso"
    with open(accountant.path, "rb") as file:
        content = file.read()
    assert b"424242" not in content and b"random_state" not in content


def test_parameters_that_json_cannot_hold_are_stored_as_facts():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    cycle = []
    cycle.append(cycle)
    array = np.arange(6.0).reshape(2, 3)
    accountant = PrivacyAccountant(5.0, 1e-5)
    accountant.charge(
        gaussian(0.01),
        estimator="lone surrogate \ud800",
        params={
            "inf": math.inf,
            "nan": math.nan,
            "numpy": [np.float32(0.5), np.int8(3), np.bool_(True)],
            "array": array,
            "fortran": np.asfortranarray(array),
            "objects": np.array([object()]),
            "class_weight": {0: 1.0, "b": 2},
            "long": object.__new__(type("Long", (), {"__repr__": lambda self: "x" * 1000})),
            "broken": Broken(),
            "cycle": cycle,
            "text": "\ud800'; DROP TABLE entries; --",
            "none": None,
        },
    )
    params = accountant.entries()[0].params
    assert (params["inf"], params["nan"], params["none"]) == ("inf", "nan", None)
    assert params["numpy"] == [0.5, 3, True]
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    assert params["array"] == params["fortran"] == {"shape": [2, 3], "sha256": digest}
    assert params["objects"] == "ndarray"  # its text would show an address
    assert params["class_weight"] == {"0": 1.0, "b": 2}
    assert params["long"] == "x" * 200
    assert params["broken"] == "Broken"
    assert params["text"] == "\ud800'; DROP TABLE entries; --"
    with pytest.raises(TypeError, match="params must be a dict"):
        accountant.charge(gaussian(0.01), params=[1])


@pytest.mark.parametrize("value", [1.5, "3", True, -1, 2**63])
def test_shapes_are_integers(value, uncharged):
    with pytest.raises((TypeError, ValueError), match="n_features"):
        uncharged.charge(gaussian(0.01), n_features=value)


def test_report_reads_as_text_html_and_frame():
    pd = pytest.importorskip("pandas")
    accountant = PrivacyAccountant(5.0, 1e-5)
    assert "0 entries" in str(accountant.report())
    accountant.charge(gaussian(0.01), estimator="<b>DPLassoCD", n_samples=1000, n_features=2)
    accountant.charge(gaussian(0.02), estimator="DPRidgeSkGD")
    report = accountant.report()
    text = str(report)
    assert text.splitlines()[1].startswith("1 ") and "DPRidgeSkGD" in text and "1,000" in text
    assert f"spent epsilon={accountant.spent().epsilon:.4g} of 5" in text
    assert "&lt;b&gt;DPLassoCD" in report._repr_html_()
    frame = report.to_frame()
    assert list(frame.index) == [1, 2] and frame["estimator"][2] == "DPRidgeSkGD"
    assert not {"amount", "delta"} & set(frame.columns)  # shares in units of their own
    assert frame["epsilon_so_far"][2] == accountant.spent().epsilon
    assert isinstance(frame["time"].iloc[0], pd.Timestamp)
    assert len(PrivacyAccountant(5.0, 1e-5).report().to_frame()) == 0


def test_entries_name_who_charged_them_on_which_host_and_why(monkeypatch):
    accountant = PrivacyAccountant(5.0, 1e-5, note="pilot")
    monkeypatch.setattr(getpass, "getuser", lambda: "jo")
    monkeypatch.setattr(platform, "node", lambda: "desk")
    accountant.charge(gaussian(0.01))
    assert "All charged by jo@desk." in str(accountant.report())
    accountant.note, accountant.user = "a | <b>", "Jo \ud800"
    pickle.loads(pickle.dumps(accountant)).charge(gaussian(0.01))
    quiet = PrivacyAccountant(5.0, 1e-5, path=accountant.path, user=None)
    quiet.charge(gaussian(0.01))
    monkeypatch.setattr(getpass, "getuser", lambda: {}["USER"])
    PrivacyAccountant.open(accountant.path).charge(gaussian(0.01))
    told = [(entry.user, entry.host, entry.note) for entry in accountant.entries()]
    assert told == [
        ("jo", "desk", "pilot"),
        ("Jo \\ud800", "desk", "a | <b>"),
        ("", "", ""),
        ("unknown", "desk", ""),
    ]
    report = accountant.report()
    assert str(report).split()[3:5] == ["by", "note"]
    assert re.search(r"jo@desk +pilot", str(report))
    assert ">a | &lt;b&gt;</td>" in report._repr_html_()
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [(row["user"], row["host"], row["note"]) for row in rows] == told
    for bad in ({"note": None}, {"note": 3}, {"user": 3}):
        with pytest.raises(TypeError, match="must be a string"):
            PrivacyAccountant(5.0, 1e-5, **bad)
    accountant.note = 3
    with pytest.raises(TypeError, match="note must be a string"):
        accountant.charge(gaussian(0.01))
    assert len(accountant.entries()) == 4


def test_entries_are_a_list_a_data_frame_or_comma_separated_values():
    pd = pytest.importorskip("pandas")
    accountant = PrivacyAccountant(5.0, 1e-5)
    for n in (10, 20):
        accountant.charge(gaussian(0.01), estimator='a "b", c', params={"x": [n]}, n_samples=n)
    entries, frame = accountant.entries(), accountant.entries(output="frame")
    assert list(frame.index) == [1, 2] and list(frame["event"]) == [e.event for e in entries]
    read = pd.read_csv(io.StringIO(accountant.entries(output="csv")), index_col="id")
    assert list(read["estimator"]) == ['a "b", c'] * 2 and list(read["n_samples"]) == [10, 20]
    assert [json.loads(params) for params in read["params"]] == [{"x": [10]}, {"x": [20]}]
    assert list(read.columns) == list(frame.columns)
    assert read["epsilon_so_far"].iloc[-1] == accountant.spent().epsilon
    with pytest.raises(ValueError, match="output must be one of"):
        accountant.entries(output="table")


def test_several_planned_events_are_one_entry_and_each_part_is_taken_once():
    accountant = PrivacyAccountant(1.0, 1e-6)
    search = FitEvent((TuningEvent(gaussian(0.008), "logarithmic", 10.0),))
    events = [search, search, gaussian(0.004)]
    for event in events[:2]:  # one after the other they do not fit
        if accountant.cost(PlannedEstimator(event), 9, 1).fits_left:
            accountant.charge(event)
    assert len(accountant.entries()) == 1
    accountant = PrivacyAccountant(1.0, 1e-6)
    prepaid = accountant.reserve(events)
    assert [entry.estimator for entry in accountant.entries()] == ["reserved"]
    receipts = [charge(prepaid, event, estimator="A", n_samples=9) for event in events]
    assert [receipt.event for receipt in receipts] == events
    for event in (search, gaussian(0.003)):
        with pytest.raises(RuntimeError, match="redeemed before, or is no part"):
            charge(prepaid, event)
    assert len(accountant.entries()) == 1
    spent = accountant.spent()
    with pytest.raises(BudgetExceededError):
        accountant.reserve([gaussian_fit_event(Budget(0.9, 1e-6, ONE), 1)] * 2)
    for bad in ([], None, [None], search):
        with pytest.raises(TypeError, match="FitEvent"):
            accountant.reserve(bad)
    assert accountant.spent() == spent


def test_to_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        PrivacyAccountant(5.0, 1e-5).report().to_frame()


# ---- parameters of the accountant ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"epsilon": math.nan}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "a budget is finite"),
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"epsilon": "1"}, TypeError, "epsilon"),
        ({"epsilon": True}, TypeError, "epsilon"),
        ({"epsilon": None}, TypeError, "epsilon"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"delta": 0.7}, ValueError, r"delta must be in \(0, 0.5\]"),
        ({"delta": math.nan}, ValueError, "delta"),
        ({"delta": "auto"}, TypeError, "delta"),
        ({"neighboring": "row"}, ValueError, "neighboring"),
        ({"neighboring": "add_remove"}, ValueError, "n_public"),
        ({"neighboring": "add_remove", "n_public": 0}, ValueError, "n_public"),
        ({"neighboring": "add_remove", "n_public": 10.0}, TypeError, "n_public"),
        ({"neighboring": "add_remove", "n_public": True}, TypeError, "n_public"),
        ({"n_public": 10}, ValueError, "leave it out"),
        ({"testing": 1}, TypeError, "testing"),
        ({"path": "a\0b"}, ValueError, "null"),
        ({"path": 3}, TypeError, "path"),
        ({"path": b"/tmp/x"}, TypeError, "path"),
        ({"path": ":memory:"}, ValueError, "file"),
        ({"path": ""}, ValueError, "file"),
        ({"epsilon": 1e-300, "delta": 1e-300}, ValueError, "admits no release"),
    ],
)
def test_invalid_parameters_are_refused(params, error, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=match):
        PrivacyAccountant(**{"epsilon": 1.0, "delta": 1e-5} | params)
    assert os.listdir(tmp_path) == []


# ---- files --------------------------------------------------------------------------------------


def test_a_ledger_outlives_its_handle(tmp_path):
    path = tmp_path / "odd name ?#%41é.ledger"
    first = PrivacyAccountant(5.0, 1e-5, path=path)
    first.charge(gaussian(0.01), estimator="A")
    again = PrivacyAccountant(5.0, 1e-5, path=str(path))
    opened = PrivacyAccountant.open(path)
    assert opened == again == first and hash(opened) == hash(first)
    opened.charge(gaussian(0.01), estimator="B")
    assert [entry.estimator for entry in again.entries()] == ["A", "B"]
    assert opened.epsilon == 5.0
    assert os.listdir(tmp_path) == [path.name]  # no drafts, no journals
    assert first != PrivacyAccountant(5.0, 1e-5, path=tmp_path / "other.ledger")


def test_relative_paths_are_those_of_the_folder_at_creation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    accountant = PrivacyAccountant(5.0, 1e-5, path="a.ledger")
    monkeypatch.chdir("/")
    accountant.charge(gaussian(0.01))
    assert accountant.path == str(tmp_path / "a.ledger")


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 6.0},
        {"delta": 1e-6},
        {"neighboring": "add_remove", "n_public": 10},
        {"testing": True},
    ],
)
def test_an_existing_ledger_keeps_its_parameters(other, tmp_path):
    asked = {"epsilon": 5.0, "delta": 1e-5, "path": tmp_path / "a.ledger"}
    accountant = PrivacyAccountant(**asked)
    with pytest.raises(ValueError) as caught:
        PrivacyAccountant(**asked | other)
    for name, value in other.items():
        assert f"{name}={value!r}" in str(caught.value)
        assert f"{name}={getattr(accountant, name)!r}" in str(caught.value)


def test_the_ledger_of_one_user_is_not_readable_for_others(tmp_path):
    for path in (None, tmp_path / "a.ledger"):
        accountant = PrivacyAccountant(5.0, 1e-5, path=path)
        assert os.stat(accountant.path).st_mode & 0o077 == 0


def test_a_closed_handle_refuses_everything_but_other_handles_go_on(tmp_path):
    path = tmp_path / "a.ledger"
    with PrivacyAccountant(5.0, 1e-5, path=path) as accountant:
        other = PrivacyAccountant.open(path)
        accountant.charge(gaussian(0.01))
    calls = [
        lambda: accountant.charge(gaussian(0.01)),
        accountant.spent,
        accountant.remaining,
        accountant.entries,
        accountant.report,
        accountant.verify,
        lambda: accountant.cost(PlannedEstimator(), 10, 10),
        accountant.__enter__,
        lambda: charge(accountant, gaussian(0.01)),
        lambda: pickle.loads(pickle.dumps(accountant)).spent(),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="closed"):
            call()
    accountant.close()
    assert accountant.path == str(path) and "epsilon=5.0" in repr(accountant)
    other.charge(gaussian(0.01))
    assert len(other.entries()) == 2


# ---- receipts -----------------------------------------------------------------------------------


def test_a_receipt_is_redeemed_once():
    event = gaussian(0.01)
    receipt = charge(PrivacyAccountant(5.0, 1e-5), event, estimator="DPLassoCD")
    assert isinstance(receipt, Receipt)
    assert receipt.event is event and receipt.entry_id == 1
    assert "left to redeem: 1 Gaussian" in repr(receipt)
    assert receipt.redeem() is event
    with pytest.raises(RuntimeError, match="redeemed before"):
        receipt.redeem()
    assert receipt.event is event and "left to redeem: nothing" in repr(receipt)


def test_a_receipt_is_redeemed_in_parts():
    choices, sums = SelectionEvent(0.1, 3), GaussianEvent(10.0, 2)
    event = FitEvent((choices, sums, choices))  # the same kind, and even the same choices, twice
    receipt = charge(None, event)
    with pytest.raises(RuntimeError, match="no part"):
        receipt.redeem(FitEvent((GaussianEvent(9.0, 2),)))
    with pytest.raises(RuntimeError, match="no part"):
        receipt.redeem(FitEvent((sums,), "add_remove"))
    with pytest.raises(RuntimeError, match="redeemed before"):
        receipt.redeem(FitEvent((sums, sums)))  # all or nothing
    for part in (FitEvent((choices,)), FitEvent((sums, choices))):
        assert receipt.redeem(part) is part
    for part in (FitEvent((choices,)), FitEvent((sums,)), None):
        with pytest.raises(RuntimeError, match="redeemed before"):
            receipt.redeem(part)


def test_without_an_accountant_a_receipt_has_no_entry():
    receipt = charge(None, INFINITE, estimator="DPLassoCD", n_samples=3)
    assert receipt.entry_id is None
    assert receipt.redeem() is INFINITE
    with pytest.raises(RuntimeError):
        receipt.redeem()
    with pytest.raises(TypeError, match="FitEvent"):
        charge(None, "nothing")


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_receipt_cannot_be_duplicated(copier):
    receipt = charge(None, gaussian(0.01))
    with pytest.raises(TypeError, match="one release"):
        copier(receipt)
    with pytest.raises(AttributeError):
        receipt.event = gaussian(1.0)
