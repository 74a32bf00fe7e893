"""Tools for tests: reproducible noise, and a tape that shows what a fit depends on.

A private fit is a function of three things: the records, the answers that the privacy room
releases, and secret coins (who is in a batch, how many runs a search makes). A `Recording` of a
fit keeps the questions, answers and coins. A `Replay` on a neighbouring data set forces the same
answers and coins. What is asked and what is visible must then be the same to the bit: anything else
depended on a record by another way than through a release. And the exact answers, which are whole
numbers, may differ by no more than the sensitivity that the noise was scaled to.

A tape tests control flow, sensitivity, and what follows from answers. It holds coins fixed, so it
says nothing of amplification by sampling, and nothing of the law of the noise. A state that
outlives a fit shows only if the replay runs in a fresh process.
"""

import contextlib
import copy
import io
import logging
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .privacy.ledger._accountant import PrivacyAccountant
from .privacy.mechanisms._partitions import NamedCounts
from .privacy.mechanisms._quantiles import QuantileChoices
from .privacy.mechanisms._questions import GaussianNoise, GreedyChoices, MeanGradient
from .privacy.mechanisms._top_columns import ColumnChoices
from .privacy.noise import NoiseSource
from .utils._expected_checks import expected_failed_checks
from .utils._reproducible_noise import ReproducibleNoise

__all__ = ["LeakError", "Recording", "Replay", "ReproducibleNoise", "expected_failed_checks"]
__all__ += ["fingerprint", "replay", "unpaid"]

# A computed range of log odds is right to this share.
_ROUNDING = 1 + 1e-9


class LeakError(AssertionError):
    """A fit asked or showed something that depends on a record beyond what was released."""


@dataclass(frozen=True)
class Entry:
    """A question that was asked, and what came out.

    Attributes
    ----------
    question : Question
    mechanism : object
    asked : bytes
        Both of them, to the bit.
    exact : object
        The exact answer, which is secret.
    released : object
        The released answer, or the exception that was raised in its place.
    """

    question: object
    mechanism: object
    asked: bytes
    exact: object
    released: object


class Recording(ReproducibleNoise):
    """A `random_state` that records what a fit asks of records, and what is released.

    As ReproducibleNoise it makes the noise known: the fit is **not private**, and accountants
    refuse it unless they were made with ``testing=True``.

    Parameters
    ----------
    seed : int, default=0
        Draws the noise and the public choices.
    arbitrary : bool, default=False
        Whether answers are arbitrary ones inside of their domain, which hardly any records give.
        They lead to branches that few data sets reach.

    Attributes
    ----------
    entries : list of Entry
        In the order of the questions.
    coins : list of (str, object)
        Secret coins by their names.
    """

    def __init__(self, seed: int = 0, arbitrary: bool = False):
        self.__dict__.update(seed=seed, arbitrary=arbitrary, entries=[], coins=[])
        noise = NoiseSource(seed.to_bytes(32, "little"))
        self.__dict__.update(_noise=noise, _generator=np.random.default_rng(seed))

    def release(self, place, question, mechanism):
        """Answer a question; mechanisms call it in place of their source of noise."""
        exact = released = None
        try:
            exact = question.answer(place)
            if self.arbitrary:
                released = _arbitrary_answer(mechanism, exact, self._generator)
            else:
                released = mechanism.release(exact, self._noise)
        except Exception as error:
            released = error
        asked = key_of(question) + key_of(mechanism)
        exact = copy.deepcopy(exact)
        self.entries.append(Entry(question, mechanism, asked, exact, copy.deepcopy(released)))
        if isinstance(released, Exception):
            raise released
        return released

    def coin(self, name: str, draw: Callable[[], Any]) -> Any:
        """Draw a secret coin."""
        self.coins.append((name, draw()))
        return copy.deepcopy(self.coins[-1][1])

    def words(self, name: str, size: int) -> np.ndarray:
        """Draw 64 secret bits for each record."""
        draw = self._generator.integers
        return self.coin(name, lambda: draw(2**64, size=size, dtype=np.uint64))

    def members(self, n_samples: int, threshold: int) -> np.ndarray:
        """Draw the records of a batch."""
        return np.flatnonzero(self.words("batch", n_samples) < np.uint64(threshold))

    def events(self) -> Counter:
        """Count the releases as a privacy event does."""
        found = Counter()
        for entry in self.entries:
            mechanism = entry.mechanism
            if isinstance(mechanism, GaussianNoise):
                sampled = isinstance(entry.question, MeanGradient) and entry.question.sampled
                kind = "PoissonSampledEvent" if sampled else "GaussianEvent"
                found[kind, mechanism.noise_multiplier] += 1
            elif isinstance(mechanism, NamedCounts):
                found["CoveredEvent", mechanism.noise.noise_multiplier] += 1
            elif isinstance(mechanism, QuantileChoices):
                n_choices = np.size(entry.released)
                found["SelectionEvent", mechanism.eta] += n_choices
            elif isinstance(mechanism, (ColumnChoices, GreedyChoices)):
                found["SelectionEvent", mechanism.eta] += mechanism.count
        return found

    # A copy or a clone would be another tape.

    def __sklearn_clone__(self):
        return self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError("a tape belongs to the process that records it")

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self):
        return "tape"


class Replay(Recording):
    """A `random_state` that gives the answers and coins of a recording.

    Parameters
    ----------
    recording : Recording
    removed : int, default=None
        Row of the recording's records that is missing here, under "add_remove".
    other_coins : bool, default=False
        Whether secret coins are drawn anew. Exact answers then differ by more than one record
        moves them, and only what is visible is compared.
    """

    def __init__(self, recording: Recording, removed: int | None = None, other_coins: bool = False):
        super().__init__(recording.seed)
        self.__dict__.update(
            _recording=recording, _removed=removed, _other_coins=other_coins, leak=None,
            _n_coins=0, excess=0.0,
        )  # fmt: skip

    def release(self, place, question, mechanism):
        try:
            released = self._checked(place, question, mechanism)
        except Exception as error:
            self._keep(error)
            raise
        if isinstance(released, Exception):
            raise released
        return copy.deepcopy(released)

    def _keep(self, error):
        """Keep the first failure: whoever catches it can't hide it."""
        if self.leak is None:
            self.__dict__["leak"] = error

    def _checked(self, place, question, mechanism):
        name, number = type(question).__name__, len(self.entries)
        if number == len(self._recording.entries):
            raise LeakError(f"question {number} ({name}) is one more than before")
        before = self._recording.entries[number]
        if key_of(question) + key_of(mechanism) != before.asked:
            change = _change(before, question)
            raise LeakError(f"question {number} ({name}) is another one: {change}")
        exact = None
        try:
            exact = question.answer(place)
            mechanism.release(exact, self._noise)  # it must not fail on this answer either
        except Exception as error:
            if type(error) is not type(before.released):
                raise LeakError(f"question {number} ({name}) failed: {error!r}") from error
        else:
            if isinstance(before.released, Exception):
                raise LeakError(f"question {number} ({name}) failed before: {before.released!r}")
            self._check_distance(f"question {number} ({name})", mechanism, before.exact, exact)
        self.entries.append(Entry(question, mechanism, before.asked, exact, before.released))
        return before.released

    def _check_distance(self, name, mechanism, before, exact):
        if self._other_coins:
            return
        shapes = [(getattr(one, "dtype", 0), np.shape(one)) for one in (before, exact)]
        if not isinstance(mechanism, NamedCounts) and shapes[0] != shapes[1]:
            raise LeakError(f"{name} has an answer of another type or shape: {shapes}")
        excess = mechanism.excess(before, exact)
        self.__dict__["excess"] = max(self.excess, excess)
        if not excess <= _ROUNDING:
            raise LeakError(f"{name} moved by {excess:.6g} times its sensitivity")

    def coin(self, name: str, draw: Callable[[], Any]) -> Any:
        if self._other_coins:
            return super().coin(name, draw)
        return copy.deepcopy(self._forced(name))

    def words(self, name: str, size: int) -> np.ndarray:
        if self._other_coins:
            return super().words(name, size)
        words = self._forced(name)
        if self._removed is not None and len(words) == size + 1:
            words = np.delete(words, self._removed)
        if len(words) != size:
            self._keep(LeakError(f"{size} coins were drawn, {len(words)} before ({name})"))
            raise self.leak
        return words

    def _forced(self, name):
        number = self._n_coins
        self.__dict__["_n_coins"] = number + 1
        if number >= len(self._recording.coins) or self._recording.coins[number][0] != name:
            self._keep(LeakError(f"coin {number} ({name}) was not drawn before"))
            raise self.leak
        return self._recording.coins[number][1]

    def check_finished(self):
        """Raise the first leak, also one that was caught; and one if questions are missing."""
        if self.leak is not None:
            raise self.leak
        missing = len(self._recording.entries) - len(self.entries)
        if missing:
            raise LeakError(f"{missing} questions were not asked")


def replay(
    fit: Callable[[Any, Recording], Any],
    data: Any,
    neighbour: Any,
    *,
    seed: int = 0,
    arbitrary: bool = False,
    removed: int | None = None,
    other_coins: bool = False,
) -> Replay:
    """Fit on records, replay on neighbouring ones, and compare all that is asked and seen.

    Parameters
    ----------
    fit : callable
        ``fit(data, random_state)`` returns what became visible: a fitted object, or a tuple of
        objects and of accountants with their entries. It builds its estimators anew and gives
        `random_state` to each of them.
    data, neighbour : object
        Two data sets that differ in one record, as `fit` takes them.
    seed, arbitrary : as of Recording
    removed, other_coins : as of Replay

    Returns
    -------
    replay : Replay
        ``entries`` are the questions; ``excess`` is the largest distance of two exact answers over
        its sensitivity.

    Raises
    ------
    LeakError
        If a question, a coin or anything visible differs: attributes, warnings, printed or logged
        text, exceptions with their causes. And if an exact answer moved too far.
    """
    recording = Recording(seed, arbitrary)
    first = _outcome(fit, data, recording)
    again = Replay(recording, removed, other_coins)
    second = _outcome(fit, neighbour, again)
    again.check_finished()
    if first != second:
        raise LeakError(f"what is visible differs: {_difference(first, second)}")
    return again


# ---- what is asked -------------------------------------------------------------------------------


def key_of(value):
    """Bytes of a value and of all that it holds: types, shapes and numbers."""
    name = type(value).__name__
    if is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
        parts = [key_of(part) for part in parts if not callable(part)]
        return f"{name}({len(parts)})".encode() + b"".join(parts)
    if isinstance(value, (tuple, list)):
        return f"{name}[{len(value)}]".encode() + b"".join(map(key_of, value))
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
    if isinstance(value, np.ndarray):
        return key_of(value.tolist())
    return f"{name}:{value!r};".encode()


def _change(before, question):
    """The first field in which two questions differ."""
    if type(before.question) is not type(question):
        return f"it was {type(before.question).__name__}"
    for field in fields(question):
        old, new = getattr(before.question, field.name), getattr(question, field.name)
        if key_of(old) != key_of(new):
            return f"{field.name} was {old!s:.200} and is {new!s:.200}"
    return "its noise differs"


def _arbitrary_answer(mechanism, exact, rng):
    """An answer inside of its domain that no records need to have given."""
    if isinstance(mechanism, QuantileChoices):
        scores = mechanism.scores(exact, mechanism.quantiles[0])
        n_cells, size = scores.shape[1], (len(mechanism.quantiles), len(exact))
        ends = rng.choice([0, 1, n_cells - 2, n_cells - 1], size)
        return np.where(rng.random(size) < 0.5, ends, rng.integers(n_cells, size=size))
    if isinstance(mechanism, ColumnChoices):
        return rng.permutation(len(exact))[: mechanism.count]
    if isinstance(mechanism, GreedyChoices):
        chosen = rng.permutation(len(exact))[: mechanism.count]
        return [(int(j), int(rng.choice([-1, 1]))) for j in chosen]
    if isinstance(mechanism, NamedCounts):
        found = []
        for counts in exact:
            named = tuple(category for category in counts if rng.random() < 0.5)
            found.append((named, rng.uniform(0, 1e4, len(named))))
        return found
    size = 10.0 ** rng.integers(0, 15)
    noisy = np.clip(np.rint(size * rng.standard_normal(exact.shape)), -(2.0**52), 2.0**52)
    return noisy.astype(np.int64).astype(exact.dtype)


# ---- what is visible -----------------------------------------------------------------------------


def _outcome(fit, data, source):
    """All that a caller sees: what is returned, warnings, printed and logged text, or the error."""
    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("always")
            try:
                seen = {"returned": fingerprint(fit(data, source))}
            except Exception as error:
                seen = {"error": _errors(error)}
    finally:
        logging.getLogger().removeHandler(handler)
    warned = [f"{one.category.__name__}: {one.message}" for one in caught]
    return seen | {"warnings": warned, "printed": printed.getvalue()}


def _errors(error):
    return error and (
        type(error).__name__, str(error), _errors(error.__cause__), _errors(error.__context__)
    )  # fmt: skip


def fingerprint(value: Any, _above: tuple = ()) -> Any:
    """A value and all that it holds, private attributes too, equal only to the bit."""
    if id(value) in _above:
        return "seen above"
    above = (*_above, id(value))
    if isinstance(value, Recording):
        return "tape"
    if isinstance(value, PrivacyAccountant):
        entries = [{k: v for k, v in vars(e).items() if k != "time"} for e in value.entries()]
        return "accountant", fingerprint(entries, above)
    if isinstance(value, (str, bytes, int, bool, type(None), type)):
        return type(value).__name__, repr(value)
    if isinstance(value, (float, np.generic)):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return "objects", value.shape, [fingerprint(v, above) for v in value.ravel().tolist()]
        return value.dtype.str, value.shape, value.strides, value.tobytes()
    if issparse(value):
        return type(value).__name__, value.shape, fingerprint(vars(value), above)
    if isinstance(value, np.random.RandomState):
        return "RandomState"
    if isinstance(value, dict):
        return {str(k): fingerprint(v, above) for k, v in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        items = value if isinstance(value, (tuple, list)) else sorted(value, key=repr)
        return type(value).__name__, [fingerprint(v, above) for v in items]
    if hasattr(value, "to_numpy"):
        return type(value).__name__, fingerprint(value.to_numpy(), above)
    held = getattr(value, "__dict__", None)
    if held is not None and not callable(value):
        return type(value).__name__, {k: fingerprint(v, above) for k, v in held.items()}
    return type(value).__name__, re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _difference(first, second, where="", most=3):
    """The first few places at which two outcomes differ."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = sorted(first.keys() | second.keys())
        pairs = [(f"{where}.{k}", first.get(k), second.get(k)) for k in keys]
    elif (
        isinstance(first, (tuple, list))
        and type(first) is type(second)
        and len(first) == len(second)
    ):
        pairs = [(where, a, b) for a, b in zip(first, second, strict=True)]
    else:
        return f"{where or 'it'} was {first!s:.200} and is {second!s:.200}"
    found = [_difference(a, b, at) for at, a, b in pairs if a != b]
    return "; ".join(found[:most])


def unpaid(recording: Recording, event: Any) -> Counter:
    """Releases that were made and not charged, or (negative) charged and not made.

    Parameters
    ----------
    recording : Recording
    event : FitEvent
        What was charged.

    Returns
    -------
    Counter
        Empty where questions and event agree.
    """
    charged = Counter()
    for release in event.releases:
        number = getattr(release, "noise_multiplier", getattr(release, "eta", math.nan))
        charged[type(release).__name__, number] += getattr(release, "count", 1)
    found = recording.events()
    found.subtract(charged)
    return Counter({kind: count for kind, count in found.items() if count})
