"""All that a caller sees of a fit, in a form that is equal only to the bit."""

import contextlib
import copy
import functools
import inspect
import io
import logging
import pickle
import random
import re
import sys
import types
import warnings
from operator import is_
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..privacy.ledger._accountant import PrivacyAccountant
from ..privacy.mechanisms._questions import is_tape


class LeakError(AssertionError):
    """A fit asked or showed something that depends on a record beyond what was released."""


def outcome(fit, data, source, state):
    """All that a caller sees: what is returned, warnings, printed and logged text, or the error."""
    printed, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(printed), root.level
    public = np.random.get_state(), random.getstate()  # noqa: NPY002
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    records = fingerprint(data)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            np.errstate(all="warn"),
        ):
            warnings.simplefilter("always")
            np.random.seed(0)  # noqa: NPY002
            random.seed(0)
            try:
                returned = fit(data, source)
                source.__dict__["returned"] = returned
                seen = {"returned": fingerprint(returned), "pickle": _pickled(returned)}
            except Exception as error:
                seen = {"error": errors_of(error)}
            draws = fingerprint([np.random.get_state(), random.getstate()])  # noqa: NPY002
            seen |= {"filters": repr(warnings.filters), "errors": np.geterr(), "draws": draws}
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        np.random.set_state(public[0])  # noqa: NPY002
        random.setstate(public[1])
    if fingerprint(data) != records:
        raise LeakError("the fit changed its caller's records")
    warned = [f"{one.category.__name__}: {one.message}" for one in caught]
    return seen | {"warnings": warned, "printed": printed.getvalue(), "state": state.changes()}


def errors_of(error):
    """Describe an exception and its causes."""
    if not isinstance(error, BaseException):
        return None
    said = type(error).__name__, str(error), fingerprint(error.args)
    notes = getattr(error, "__notes__", None)
    return *said, notes, errors_of(error.__cause__), errors_of(error.__context__)


@functools.cache
def _watched(n_modules):
    """Modules and classes of this package; the containers and caches that they hold."""
    modules = [m for name, m in sys.modules.items() if name.startswith("dpcd_sklearn")]
    owners = dict.fromkeys(modules)
    for module in modules:
        kinds = (v for v in vars(module).values() if isinstance(v, type))
        owners |= dict.fromkeys(kind for kind in kinds if kind.__module__ == module.__name__)
    held = [
        (f"{owner.__name__}.{name}", value)
        for owner in owners
        for name, value in vars(owner).items()
        if isinstance(value, (set, dict, list)) or hasattr(value, "cache_info")
        if not name.startswith("__")
    ]
    return list(owners), held


class State:
    """Globals, attributes of classes and caches of functions: they outlive a fit."""

    def __init__(self):
        self._owners, self._containers = _watched(len(sys.modules))
        self._values = [dict(vars(owner)) for owner in self._owners]
        self._items = [copy.copy(_items(value)) for _, value in self._containers]
        self._first = True

    def _changed(self):
        """Owners and names of variables that changed, and the variables of the start."""
        for owner, values in zip(self._owners, self._values, strict=True):
            now = vars(owner)
            if len(now) != len(values) or not all(map(is_, now.values(), values.values())):
                names = [k for k in values.keys() | now if values.get(k) is not now.get(k)]
                yield from ((owner, name, values) for name in names)

    def changes(self):
        """Find all that differs from the start."""
        found = {}
        for owner, name, _ in self._changed():
            found[f"{owner.__name__}.{name}"] = fingerprint(vars(owner).get(name))
        for (name, value), start in zip(self._containers, self._items, strict=True):
            # a first fit fills caches
            if (now := _items(value)) != start and not (self._first and now is not value):
                found[name] = fingerprint(now)
        return found

    def restore(self):
        """Go back to the start. Caches stay: from now on an unknown key is a change."""
        self._first = False
        for owner, name, values in self._changed():
            if name in values:
                setattr(owner, name, values[name])
            else:
                delattr(owner, name)
        for number, (_, value) in enumerate(self._containers):
            if hasattr(value, "cache_info"):
                self._items[number] = _items(value)
            elif isinstance(value, list):
                value[:] = self._items[number]
            else:
                value.clear()
                value.update(self._items[number])


def _items(container):
    """The container itself, or how often a cache did not know a key."""
    return container.cache_info().misses if hasattr(container, "cache_info") else container


def _pickled(value):
    """The bytes of a pickle, without tapes and ledgers, or why there is none."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.persistent_id = lambda one: (
        "tape" if is_tape(one) else "ledger" if isinstance(one, PrivacyAccountant) else None
    )
    try:
        pickler.dump(value)
    except Exception as error:
        return re.sub(r"0x[0-9a-f]+", "", repr(error))
    return file.getvalue()


def fingerprint(value: Any, _above: tuple = ()) -> Any:
    """A value and all that it holds, private attributes too, equal only to the bit."""
    name = type(value).__name__
    if value is None or isinstance(value, (str, bytes, int, type, types.ModuleType)):
        return name, repr(value)
    if id(value) in _above:
        return "seen above"
    above = (*_above, id(value))

    def within(held):
        return fingerprint(held, above)

    if is_tape(value):
        return "tape"
    if isinstance(value, PrivacyAccountant):
        of_time = "time", "hash"
        entries = [{k: v for k, v in vars(e).items() if k not in of_time} for e in value.entries()]
        return "accountant", within(entries)
    if isinstance(value, (float, np.generic)):
        array = np.asarray(value)
        return name, array.dtype.str, array.tobytes()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return "objects", value.shape, [within(v) for v in value.ravel().tolist()]
        return value.dtype.str, value.shape, value.strides, value.tobytes()
    if issparse(value):
        return name, value.shape, within(vars(value))
    if isinstance(value, np.random.RandomState):
        return name, within(value.get_state(legacy=False))
    if isinstance(value, np.random.Generator):
        return name, within(value.bit_generator.state)
    if isinstance(value, dict):
        keys = [k if isinstance(k, str) and k.isidentifier() else repr(k) for k in value]
        held = {key: within(v) for key, v in zip(keys, value.values(), strict=True)}
        return name, held, keys
    if isinstance(value, (tuple, list)):
        return name, [within(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return name, [within(v) for v in sorted(value, key=repr)]
    if hasattr(value, "to_pylist"):
        return name, str(getattr(value, "schema", "") or value.type), within(value.to_pylist())
    if hasattr(value, "to_numpy"):
        kinds = [getattr(value, word, None) for word in ("dtype", "dtypes", "schema", "categories")]
        labels = [getattr(value, word, None) for word in ("name", "columns", "index")]
        labels = [within(None if callable(one) else one) for one in labels]
        return name, repr(kinds), labels, within(value.to_numpy())
    if isinstance(value, functools.partial):
        return name, within(value.func), within(value.args), within(value.keywords)
    if inspect.ismethod(value):
        return name, value.__name__, within(value.__self__)
    if inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return name, value.__qualname__, within([cells, value.__defaults__, value.__kwdefaults__])
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(value, slot):
                held[slot] = getattr(value, slot)
    if held:
        return name, {k: within(v) for k, v in sorted(held.items())}
    try:  # compiled objects
        return name, within(value.__reduce__()[1:])
    except Exception:
        return name, re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def difference(first, second, where="", most=3):
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
    found = [difference(a, b, at) for at, a, b in pairs if a != b]
    return "; ".join(found[:most])
