"""Children of a test: functions that run in one, and a kill at any line."""

import os
import pickle
import signal
import sys
import traceback


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
