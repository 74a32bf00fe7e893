"""Tools of tests: functions in a child, threads, programs, scripts, and a kill at any line."""

import io
import os
import pickle
import runpy
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

import dpcd_sklearn

# A new process needs these to import the package that is tested, wherever it was imported from.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(dpcd_sklearn.__file__).parents[1])}


class ChildDiedError(AssertionError):
    """The child was killed, or left without an answer."""


def forked(function):
    """Fork, run the function in the child, and return a function that waits for its result."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(60)  # a child that hangs must not outlive the test
            try:
                answer = pickle.dumps((True, function()))
            except BaseException:
                answer = pickle.dumps((False, traceback.format_exc()))
            with os.fdopen(write_end, "wb") as pipe:
                pipe.write(answer)
        finally:
            os._exit(0)  # nothing of pytest may run in the child
    os.close(write_end)

    def wait():
        with os.fdopen(read_end, "rb") as pipe:
            answer = pipe.read()
        os.waitpid(pid, 0)
        if not answer:
            raise ChildDiedError
        fine, result = pickle.loads(answer)
        assert fine, result
        return result

    return wait


def at_once(*calls):
    """Make all calls at once, each in a thread of its own; return what they raised."""
    gate, raised = threading.Barrier(len(calls)), []

    def make(call):
        gate.wait()
        try:
            call()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=make, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def in_a_new_process(program, *args, **environment):
    """Run a program of Python, given as text, which must end well; return what it printed."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *args],
        capture_output=True, text=True, env=ENVIRONMENT | environment, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def run_script(*arguments, folder=None, ignored=(), **environment):
    """Run a script as a user does; return what it printed. A warning is a failure."""
    path = os.pathsep.join([ENVIRONMENT["PYTHONPATH"], os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-X", "utf8", *(f"-Wignore:{text}" for text in ignored), *arguments],
        cwd=folder, env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True, encoding="utf-8", timeout=900, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "Warning" not in run.stderr, run.stderr
    return run.stdout


def run_here(script, *arguments, ignored=()):
    """Run a script within this process; return what it printed. A warning is a failure."""
    argv, path = [str(script), *arguments], [os.path.dirname(script), *sys.path]
    printed = io.StringIO()
    with (
        patch.object(sys, "argv", argv),
        patch.object(sys, "path", path),
        redirect_stdout(printed),
        warnings.catch_warnings(),
    ):
        for category in (UserWarning, FutureWarning, RuntimeWarning):
            warnings.simplefilter("error", category)
        for text in ignored:
            warnings.filterwarnings("ignore", text)
        runpy.run_path(str(script), run_name="__main__")
    return printed.getvalue()


def die_at_line(number, module):
    """Let this process be killed before so many lines of the modules beside this one have run."""
    seen, room = 0, os.path.dirname(module.__file__)

    def count(frame, event, arg):
        nonlocal seen
        if os.path.dirname(frame.f_code.co_filename) != room:
            return None
        seen += event == "line"
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    sys.settrace(count)


def no_hard_links(source, target):
    """In place of ``os.link``, on a file system that has none."""
    raise PermissionError("no hard links here")
