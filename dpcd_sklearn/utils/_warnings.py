"""Warnings of estimators. Whether they are heard depends on the call, not on the process.

`warnings.catch_warnings` changes filters that all threads share, so a secret run must not use it.
"""

import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import joblib
import numpy as np
import sklearn

said = set()  # topics that this process has heard
_listener = ContextVar("listener", default=None)  # takes a warning, and says whether it is done
_LIBRARIES = (
    str(Path(__file__).parent.parent),
    *(str(Path(library.__file__).parent) for library in (joblib, np, sklearn)),
    contextmanager.__code__.co_filename,
)


def warn(words, category=UserWarning, topic=None):
    """Warn at the line that called the package; of a topic, if any, once a process."""
    if topic in said:
        return
    listener = _listener.get()
    if listener is not None and listener((words, category, topic)):
        return
    if topic is not None:
        said.add(topic)
    warnings.warn(words, category, stacklevel=_level_of_caller())


def _level_of_caller():
    """The `stacklevel` in `warn` of the innermost frame outside of the libraries."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def _heard_by(listener):
    token = _listener.set(_nobody if _is_silent() else listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def held_back():
    """Collect what `warn` is told in this call; the list goes to `repeat` afterwards."""
    kept = []
    with _heard_by(lambda one: not kept.append(one)):
        yield kept


@contextmanager
def repeat(kept):
    """Warn of what was held back, and not again in this call."""
    for one in kept:
        warn(*one)
    outer = _listener.get()  # of a pipeline around this one
    with _heard_by(lambda one: one in kept or (outer is not None and outer(one))):
        yield


# ---- silence -------------------------------------------------------------------------------------


def _nobody(one):
    return True


def _is_silent():
    return _listener.get() is _nobody


class _WhileSilent(type):
    """Makes every category of warnings a subclass of a class, in a silent call only."""

    def __subclasscheck__(cls, category):
        return _is_silent()


class OfSilentCalls(Warning, metaclass=_WhileSilent):
    """The category of a filter. Unlike a message it survives copies of filters as they are made."""


_FILTER = ("ignore", None, OfSilentCalls, None, 0)


@contextmanager
def silence():
    """Hear no warning of this call, whoever issues it; other threads hear theirs.

    Warnings of other libraries pass the filters of the process. One of these, which is installed
    once and stays, ignores what silent calls say and nothing else.
    """
    if warnings.filters[:1] != [_FILTER]:
        warnings.filters.insert(0, _FILTER)
    with _heard_by(_nobody), np.errstate(all="ignore"):
        yield
