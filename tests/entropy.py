"""Entropy that is the same in every run, so that a statistical test passes or fails for good.

Within tests ``os.urandom`` is a stream that follows from the test's name. Noise takes its keys
from there, and so do ``secrets`` and NumPy's generators without a seed. A process that a test
forks has a stream of its own, as it has with the operating system's entropy; one that is started
anew has that entropy itself.
"""

import contextlib
import hashlib
import itertools
import os
import random

import numpy as np


class Stream:
    def __init__(self, name):
        self._started = os.getpid()
        self.restart(name)

    def restart(self, name):
        self._name, self._count = name, itertools.count()  # which threads may share
        # Code without a seed of its own in scikit-learn draws from this global state.
        np.random.seed(int.from_bytes(self(4), "big"))  # noqa: NPY002

    def __call__(self, size):
        forked = "" if os.getpid() == self._started else os.getpid()
        found = b""
        while len(found) < size:
            block = f"{self._name} {forked} {next(self._count)}"
            found += hashlib.sha512(block.encode()).digest()
        return found[:size]

    @contextlib.contextmanager
    def within(self, name):
        """The stream of this name, after which the one from before goes on."""
        before = self._name, self._count, np.random.get_state()  # noqa: NPY002
        self.restart(name)
        try:
            yield
        finally:
            self._name, self._count, state = before
            np.random.set_state(state)  # noqa: NPY002


def replace_entropy():
    """The stream that this process has in place of the operating system's entropy from now on."""
    os.urandom = random._urandom = stream = Stream("collection")
    return stream
