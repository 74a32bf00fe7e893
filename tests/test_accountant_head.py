"""The sums that each entry carries: exact, found without reading the others, never lowered."""

import contextlib
import math
import os
import pickle
import random
import sqlite3
import stat
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

from dpcd_sklearn.__main__ import main
from dpcd_sklearn.exceptions import LedgerError
from dpcd_sklearn.privacy.accounting import Budget, FitEvent, GaussianEvent, gaussian_fit_event
from dpcd_sklearn.privacy.ledger import Balance, PrivacyAccountant, _ledger, _ledger_report
from dpcd_sklearn.privacy.ledger._ledger_entries import canonical
from dpcd_sklearn.privacy.ledger._sqlite import sha256

with contextlib.suppress(ImportError):  # there is none on Windows
    import grp

SMALL = FitEvent((GaussianEvent(1000.0),))


def ledger_with(entries, path=None, **params):
    accountant = PrivacyAccountant(5.0, 1e-5, path=path, **params)
    for number in range(entries):
        accountant.charge(SMALL, params={"number": number})
    return accountant


def edit_in_secret(path, *statements):
    """Change entries as no trigger allows, and leave the triggers as they were."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        kept = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in kept:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(*([statement] if isinstance(statement, str) else statement))
        for _, sql in kept:
            connection.execute(sql)


# ---- exact sums ---------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0.0, 1e300), max_size=30))
def test_sums_are_exact_however_different_the_amounts_are(amounts):
    balance = Balance()
    for number, amount in enumerate(amounts, 1):
        stored = balance.after({"amount": amount, "delta": amount / 2, "private": 1}).columns()
        balance = Balance.of_row({"id": number, **stored})  # as it comes back from the disk
    assert balance.entries == len(amounts)
    assert balance.amount == sum(map(Fraction, amounts))
    assert balance.delta == sum(Fraction(amount / 2) for amount in amounts)
    assert Fraction(_ledger_report._upwards(balance.amount)) >= balance.amount
    assert _ledger_report._upwards(balance.amount) <= math.nextafter(math.fsum(amounts), math.inf)


def test_what_is_not_private_stays_so():
    facts = {"amount": 0.1, "delta": 0.1, "private": 1}
    balance = Balance().after(facts).after(facts | {"private": 0}).after(facts)
    assert balance.amount == balance.delta == 3 * Fraction(0.1)
    assert not balance.all_private


# ---- no call reads the whole ledger ---------------------------------------------------------


def test_no_charge_reads_more_of_a_long_ledger_than_of_a_short_one(monkeypatch):
    """Counted in steps of SQLite's machine, from a handle that was pickled before all entries."""
    work = {}
    real = _ledger.connected

    @contextlib.contextmanager
    def counted(*args, **options):
        with real(*args, **options) as connection:

            def step():
                work["steps"] += 1

            connection.set_progress_handler(step, 1)
            yield connection

    def hashed(text):
        work["hashes"] += 1
        return sha256(text)

    accountant = PrivacyAccountant(5.0, 1e-5)
    fresh = pickle.dumps(accountant)
    found = []
    for entries in (3, 100):
        while len(accountant.entries()) < entries:
            accountant.charge(SMALL)
        with monkeypatch.context() as patch:
            patch.setattr(_ledger, "connected", counted)
            patch.setattr(_ledger, "sha256", hashed)
            for call in ("spent", "remaining", "charge"):
                work.update(steps=0, hashes=0)
                handle = pickle.loads(fresh)
                handle.charge(SMALL) if call == "charge" else getattr(handle, call)()
                found.append((work["steps"], work["hashes"]))
    for few, many in zip(found[:3], found[3:], strict=True):
        assert few[0] > 10 and abs(many[0] - few[0]) < 20 and many[1] == few[1] <= 6


# ---- older entries that were changed ------------------------------------------------------------

EDITS = {
    "amount": "UPDATE entries SET amount = 0.0 WHERE id = {}",
    "delta": "UPDATE entries SET delta = 1.0 WHERE id = {}",
    "sum": "UPDATE entries SET amount_sum = '0' WHERE id = {}",
    "text": "UPDATE entries SET params = x'00ff' WHERE id = {}",
    "hash": "UPDATE entries SET hash = 'no' WHERE id = {}",
    "gone": "DELETE FROM entries WHERE id = {}",
}


@table("edit", EDITS.values())
@table("number", [1, 5, 6])
@table("pickled_at", [0, 4])
def test_a_changed_entry_never_lowers_the_sum_and_a_full_check_names_it(edit, number, pickled_at):
    accountant = ledger_with(pickled_at)
    stale = pickle.dumps(accountant)
    for _ in range(6 - pickled_at):
        accountant.charge(SMALL)
    spent, remaining = accountant.spent(), accountant.remaining()
    edit_in_secret(accountant.path, edit.format(number))
    for handle in (accountant, pickle.loads(stale)):
        for call in (handle.entries, handle.verify, handle.report):
            with pytest.raises(LedgerError, match=f"entry {number} is (not what|missing)"):
                call()
        for call, before in ((handle.spent, spent), (handle.remaining, remaining)):
            with contextlib.suppress(LedgerError):
                assert call() == before
    with pytest.raises(LedgerError):
        PrivacyAccountant.open(accountant.path)
    with contextlib.suppress(LedgerError):
        entry_id = pickle.loads(stale).charge(SMALL).entry_id
        assert entry_id == 7 and accountant.spent().epsilon > spent.epsilon
    if number == 6:  # the last one is what the next one builds on
        with pytest.raises(LedgerError):
            accountant.charge(SMALL)


def test_sums_that_do_not_add_up_are_named_though_every_hash_is_right():
    """Somebody who knows the chain, or a bug in a writer."""
    accountant = ledger_with(3)
    rows, previous = accountant._ledger.rows(), sha256(accountant._ledger.parameters.to_json())
    statements = []
    for row in rows:
        content = {name: row[name] for name in row if name != "hash"}
        if row["id"] >= 2:
            content["amount_sum"] = str(Fraction(row["amount_sum"]) / 2)
        previous = sha256(canonical(content | {"previous": previous}))
        values = (content["amount_sum"], previous, row["id"])
        statements.append(("UPDATE entries SET amount_sum = ?, hash = ? WHERE id = ?", values))
    edit_in_secret(accountant.path, *statements)
    with pytest.raises(LedgerError, match="the sums of entry 2"):
        PrivacyAccountant.open(accountant.path)


@pytest.mark.parametrize("seed", range(20))
def test_rotten_bytes_of_a_long_ledger_never_yield_a_smaller_sum(seed, tmp_path):
    """Pages of the tree may be lost between the root and the last entry."""
    noise = random.Random(seed)
    accountant = ledger_with(0, tmp_path / "a.ledger")
    for _ in range(40):
        accountant.charge(SMALL, params={"x": "y" * 900})
    fresh = PrivacyAccountant.open(accountant.path)
    spent = accountant.spent()
    fresh._ledger.seen = (0, None)
    with open(accountant.path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        for _ in range(noise.choice([1, 4, 30])):
            file.seek(noise.randrange(size))
            file.write(noise.randbytes(noise.choice([1, 16])))
    for handle in (accountant, fresh):
        with contextlib.suppress(LedgerError):
            assert handle.spent().epsilon >= spent.epsilon
        with contextlib.suppress(LedgerError):
            assert handle.charge(SMALL).entry_id > 40


# ---- older copies -------------------------------------------------------------------------------


def test_a_stale_handle_finds_its_entry_gone_or_another_one(tmp_path):
    accountant = ledger_with(2, tmp_path / "a.ledger")
    copy = (tmp_path / "a.ledger").read_bytes()
    accountant.charge(SMALL)
    stale = pickle.dumps(accountant)
    (tmp_path / "a.ledger").write_bytes(copy)
    calls = ("spent", "remaining", "entries", "verify", "report")
    for call in calls:
        with pytest.raises(LedgerError, match="entry 3, written before, is missing"):
            getattr(pickle.loads(stale), call)()
    other = PrivacyAccountant.open(accountant.path)
    for _ in range(50):  # another history, longer by now
        other.charge(SMALL)
    for call in calls:
        with pytest.raises(LedgerError, match="entry 3 is not the one that was written before"):
            getattr(pickle.loads(stale), call)()
    with pytest.raises(LedgerError, match="entry 3 is not the one that was written before"):
        pickle.loads(stale).charge(SMALL)
    assert len(other.entries()) == 52


# ---- the command for those who do not program ---------------------------------------------------


def command(capsys, path, *options):
    status = main(["ledger", str(path), *options])
    return status, *capsys.readouterr()


def test_the_command_makes_a_ledger_once_and_says_what_it_holds(tmp_path, capsys, caplog):
    path = tmp_path / "a.ledger"
    assert command(capsys, path)[0] == 1 and not path.exists()  # to look makes nothing
    assert command(capsys, path, "--create", "2.0", "1e-7")[:1] == (0,)
    assert "a new one is created" in caplog.text  # it is announced
    accountant = PrivacyAccountant.open(path)
    assert (accountant.epsilon, accountant.delta) == (2.0, 1e-7)
    status, _, error = command(capsys, path, "--create", "9.0", "1e-7")
    assert status == 1 and "is there already" in error
    foretold = command(capsys, path, "--fit", "0.5")[1]
    assert accountant.entries() == []  # nothing that the command does is a charge
    budget = Budget(0.5, 1e-7, "replace_one", None)
    accountant.charge(gaussian_fit_event(budget, 1), estimator="Model")
    assert foretold.endswith(f"may have epsilon={accountant.remaining():.6g}\n")
    assert command(capsys, path, "--fit", "1.999")[1].startswith("refused: the largest fit that")
    assert command(capsys, path)[1] == f"{accountant.report()}\n"
    assert command(capsys, path, "--csv")[1] == accountant.entries(output="csv")
    assert "<!DOCTYPE html>" in command(capsys, path, "--html")[1]
    status, text, _ = command(capsys, path, "--verify")
    assert status == 0 and accountant.entries()[0].hash in text


@pytest.mark.skipif(os.name != "posix", reason="files have no group")
def test_the_command_gives_a_new_ledger_to_a_group(tmp_path, capsys):
    group = grp.getgrgid(tmp_path.stat().st_gid).gr_name
    shared = "--create", "2.0", "1e-7", "--group", group
    tmp_path.chmod(0o700)
    status, text, _ = command(capsys, tmp_path / "a.ledger", *shared)
    assert status == 0 and f"chgrp {group} {tmp_path} && chmod g+rwxs {tmp_path}" in text
    found = (tmp_path / "a.ledger").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o660, tmp_path.stat().st_gid)
    tmp_path.chmod(0o2770)
    assert "chgrp" not in command(capsys, tmp_path / "b.ledger", *shared)[1]
    status, _, error = command(capsys, tmp_path / "c.ledger", *shared[:-1], "no such group")
    assert status == 1 and "made for you alone" in error
    assert stat.S_IMODE((tmp_path / "c.ledger").stat().st_mode) == 0o600
    with pytest.raises(SystemExit):
        command(capsys, tmp_path / "d.ledger", "--group", group)
    assert "beside --create" in capsys.readouterr().err


@pytest.mark.parametrize("option", [(), ("--verify",), ("--csv",), ("--html",), ("--fit", "0.1")])
def test_the_command_fails_on_a_ledger_that_was_changed(option, tmp_path, capsys):
    accountant = ledger_with(2, path=tmp_path / "a.ledger")
    edit_in_secret(accountant.path, "UPDATE entries SET amount = 0 WHERE id = 1")
    status, text, error = command(capsys, accountant.path, *option)
    assert status == 1 and text == "" and "entry 1" in error


def test_without_a_command_the_commands_are_printed(capsys):
    assert main([]) == 0
    out, error = capsys.readouterr()
    assert "show, check or make a ledger" in out and "--create 2.0 1e-7" in out and not error


@pytest.mark.parametrize("option", [("--fit", "0"), ("--fit", "nan"), ("--create", "1", "-1")])
def test_the_command_refuses_numbers_that_are_no_budget(option, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["ledger", str(tmp_path / "a.ledger"), *option])
    assert "positive and finite" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
