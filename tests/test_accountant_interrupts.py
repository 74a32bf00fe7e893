"""An interrupt anywhere in a call of the ledger leaves its gate free, for threads and forks."""

import os
import shutil
import signal
import sys
import threading

import pytest
from forks import at_once

from dpcd_sklearn.exceptions import LedgerError
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import PrivacyAccountant, _files, _ledger, _sqlite

SMALL = FitEvent((GaussianEvent(1000.0),))
TRACED = {module.__file__ for module in (_files, _ledger, _sqlite)}
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer here")


def interrupted(call, at):
    """Make a call with an interrupt before its bytecode number `at`: what it raised, or None."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename not in TRACED:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            count += 1
            if count == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(before)
    return None


def charge_and_exit(accountant):
    """The exit code of a forked child; one that hangs is ended by its alarm."""
    status = 1
    try:
        signal.alarm(60)
        accountant.charge(SMALL)
        status = 0
    finally:
        os._exit(status)


def fork_that_charges(accountant):
    pid = os.fork()
    if pid == 0:
        charge_and_exit(accountant)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 0.0)


def create_in_an_empty_folder(folder):
    """An interrupt of the clean-up leaves a draft, and a creation looks at each file beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    PrivacyAccountant(1.0, 1e-5, path=f"{folder}/a.ledger")


CALLS = {
    "charge": lambda accountant: accountant.charge(SMALL),
    "spent": lambda accountant: accountant.spent(),
    "entries": lambda accountant: accountant.entries(),
    "open": lambda accountant: PrivacyAccountant.open(accountant.path),
    "create": lambda accountant: PrivacyAccountant(1.0, 1e-5),
    "create by path": lambda accountant: create_in_an_empty_folder(f"{accountant.path}-folder"),
}
STRIDES = {"create": 19, "create by path": 4}  # a file each, which waits for the disk


def descriptors():
    """How many files this process has open, where the system tells."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "create")) for n in CALLS]
)
def test_an_interrupt_at_any_bytecode_leaves_the_gate_free_and_no_file_open(name, impatient):
    """Errors are kept, with their frames and all that hangs on them, as a notebook keeps them."""
    accountant = PrivacyAccountant(5.0, 1e-5)
    accountant.charge(SMALL)
    errors, at, before = [], 0, descriptors()
    while True:
        at += STRIDES.get(name, 1)
        error = interrupted(lambda: CALLS[name](accountant), at)
        if error is None:
            break
        errors.append(error)
        held = at_once(accountant.spent)
        assert not held, f"after an interrupt at bytecode {at}: {held}"
        assert descriptors() <= before, f"left open by an interrupt at bytecode {at}"
    assert len(errors) * STRIDES.get(name, 1) > 300
    assert not at_once(lambda: accountant.charge(SMALL))
    if hasattr(os, "fork"):
        assert fork_that_charges(accountant)
    accountant.verify()


@needs_fork
@needs_timer
def test_a_fork_that_is_interrupted_while_it_waits_at_the_gate_waits_on():
    """Else the child would inherit a gate that no thread of its own can let go."""
    accountant = PrivacyAccountant(5.0, 1e-5)
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with _sqlite.connected(accountant.path):
            entered.set()
            leave.wait(0.5)

    def fork_slowly():
        if os.fork() == 0:
            charge_and_exit(accountant)
        leave.wait(30)  # what came meanwhile is raised now

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    other = threading.Thread(target=hold)
    other.start()
    try:
        assert entered.wait(30)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            fork_slowly()
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        leave.set()
        other.join()
    assert len(accountant.entries()) == 1


def test_a_holder_that_never_leaves_is_found_by_this_test(impatient):
    """The test above can fail: this is what it looks for."""
    accountant = PrivacyAccountant(5.0, 1e-5)
    context = _sqlite.connected(accountant.path)
    context.__enter__()
    assert [type(error) for error in at_once(accountant.spent)] == [LedgerError]
    del context  # as when the frame goes whose stack held it
    assert not at_once(accountant.spent)
