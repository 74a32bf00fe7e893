"""The parts of a scikit-learn object: its estimators and splitters, to any depth.

Nothing is fitted, cloned or changed. Objects of strangers may be broken, endless or their own
parts, so every look is guarded, circles are cut, and the number of parts has an end.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import issparse

from ..utils._stated import Stated
from ._classes import LEARNS_NOTHING, META_ESTIMATORS, class_of, full_name

MOST_PARTS = 1000
_NAMED = ("steps", "transformers", "transformer_list", "estimators")  # lists of (name, part)
_FITS = ("fit", "fit_transform", "fit_resample")  # one of them makes a step of an object
_BUDGET = ("epsilon", "accountant", "neighboring")  # what a PrivatePipeline gives its steps


def guarded(look, otherwise=None):
    """The answer of a look at a stranger's object, or `otherwise` if it raises."""
    try:
        return look()
    except Exception:
        return otherwise


def has(value, *names):
    """Whether an object has all these names, by its class or by itself, as wrappers do."""

    def one(name):
        by_class = guarded(lambda: hasattr(type(value), name), False)
        return by_class or guarded(lambda: hasattr(value, name), False)

    return all(map(one, names))


def _kind(value, name):
    if isinstance(value, type):
        return "thing"
    # it says what it would release, as a model of this package; a wrapper does not vouch for it
    if guarded(lambda: hasattr(type(value), "planned_event"), False):
        charges_nothing = guarded(lambda: value.charges_nothing is True, False)
        return "step" if charges_nothing and name in LEARNS_NOTHING else "private"
    if has(value, "split", "get_n_splits"):
        return "splitter"
    if any(has(value, name) for name in _FITS):
        if name in META_ESTIMATORS:
            return "meta"
        if name in LEARNS_NOTHING or has(value, "transform") or has(value, "fit_transform"):
            return "step"
        return "model"
    return "thing"


@dataclass(eq=False)
class Part:
    """One estimator or splitter of an object, with its parameters as they stand.

    `params` is None if they can't be read; `kind` is private, splitter, meta, step, model or thing.
    """

    value: object
    where: str
    key: str = ""
    parent: "Part | None" = None
    name: str = field(init=False)
    kind: str = field(init=False)
    shares: bool = field(init=False)  # one budget with its own steps
    params: dict | None = field(init=False)
    parts: list = field(default_factory=list)
    cut: bool = False  # of a root: not all was looked at
    dense: bool | None = None  # of a root: whether X is, where there is one
    columns: tuple = ()  # of a root: names of the columns of X

    def __post_init__(self):
        self.name = guarded(lambda: full_name(type(self.value)), "an object")
        self.kind = guarded(lambda: _kind(self.value, self.name), "thing")
        shares = guarded(lambda: type(self.value).shares_one_budget is True, False)
        self.shares = self.kind == "private" and shares
        self.params = {}
        if self.kind != "thing" and has(self.value, "get_params"):
            self.params = guarded(lambda: _params_of(self.value))
        if self.kind == "private" and self.params and self.budgeted_by is not None:
            of_all = self.budgeted_by.params or {}
            self.params |= {name: of_all[name] for name in _BUDGET if name in of_all}

    @property
    def short(self):
        return self.name.rpartition(".")[2]

    def get(self, name, otherwise=None):
        return (self.params or {}).get(name, otherwise)

    @property
    def budgeted_by(self):
        """The pipeline that this part is in, if its steps share one budget."""
        return next((part for part in self.above() if part.shares), None)

    @property
    def vouched_for(self):
        """Whether its user says that it learns nothing from these records."""
        for part in (self, *self.above()):
            if part.parent is not None and part.parent.shares:
                stated = part.parent.get("public_steps")
                return part.key in guarded(lambda stated=stated: list(stated), [])
        return False

    @property
    def root(self):
        return ([self, *self.above()])[-1]

    def above(self):
        """The parts that this one is in, the nearest first."""
        part = self.parent
        while part is not None:
            yield part
            part = part.parent

    def inside(self):
        """This part and all that are in it, in order."""
        stack = [self]
        while stack:
            part = stack.pop()
            yield part
            stack.extend(reversed(part.parts))

    @property
    def is_sequence(self):
        """Whether each part is given what the one before puts out."""
        has_steps = self.shares and self.short != "DPColumnTransformer"
        return has_steps or self.name == "sklearn.pipeline.Pipeline"

    def is_dense(self, given, before=None):
        """Whether the output, or what comes `before` a part of a sequence, is known to be dense."""
        if not self.is_sequence:
            return class_of(self.name).is_dense(self, given)
        for inner in self.parts:
            if inner.key == before:  # itself, or as a candidate of a search
                break
            given = inner.is_dense(given)
        return given

    def with_param(self, name, value, where):
        """This part as a candidate of a search would make it."""
        other = Part(self.value, where, self.key, self.parent)
        other.params, other.parts = (self.params or {}) | {name: value}, self.parts
        return other


def _params_of(value):
    params = dict(value.get_params(deep=False))
    return params if all(isinstance(name, str) for name in params) else None


def tree_of(value, dense=None):
    """The root of all parts of `value`; `dense` says of X what is known."""
    root = Part(value, guarded(lambda: full_name(type(value)).rpartition(".")[2].lower(), "object"))
    root.dense = dense
    stack, n_parts, budget = [root], 1, [100_000]  # items of lists and dicts
    while stack:
        part = stack.pop()
        closed = part.kind in ("private", "splitter", "thing") and not part.shares
        if closed or part.short == "FrozenEstimator":
            continue
        for key, where, inner in _parts_within(part, budget):
            if inner is part.value or any(inner is above.value for above in part.above()):
                continue  # a circle
            if n_parts == MOST_PARTS:
                root.cut = True
                return root
            part.parts.append(Part(inner, where, key, part))
            n_parts += 1
        stack.extend(part.parts)
    root.cut = budget[0] <= 0
    return root


def _is_part(value):
    fits = any(has(value, name) for name in _FITS) or has(value, "split", "get_n_splits")
    return fits and not isinstance(value, type)


def _parts_within(part, budget):
    """Key, place and value of each part that the parameters hold, in lists and dicts too."""
    found = []
    stack = [
        (name, part.where if name in _NAMED else f"{part.where}.{name}", value, ())
        for name, value in reversed((part.params or {}).items())
    ]
    while stack and budget[0] > 0:
        budget[0] -= 1
        key, where, value, within = stack.pop()
        if isinstance(value, (list, tuple, dict)):
            if id(value) not in within:
                items = guarded(lambda v=value, w=where: list(_items(v, w)), [])
                within = (*within, id(value))
                stack.extend((k, w, v, within) for k, w, v in reversed(items))
        elif _is_part(value):
            found.append((key, where, value))
    return found


def _items(value, where):
    if isinstance(value, dict):
        for key, item in value.items():
            yield str(key), f"{where}[{key!r}]" if isinstance(key, str) else where, item
        return
    for i, item in enumerate(value):
        if isinstance(item, tuple) and len(item) in (2, 3) and isinstance(item[0], str):
            yield item[0], f"{where}.{item[0]}", item[1]
        elif not isinstance(item, (str, bytes, int, float)):
            yield str(i), f"{where}[{i}]", item


def candidates(search):
    """The parts of a search as its grid would set them: (part as it stands, candidate)."""
    root = next((part for part in search.parts if part.key == "estimator"), None)
    for name in ("param_grid", "param_distributions"):
        grids = search.get(name)
        several = isinstance(grids, (list, tuple))
        for i, grid in enumerate(grids if several else [grids]):
            for key, values in grid.items() if isinstance(grid, dict) else ():
                *path, last = str(key).split("__")
                owner, values = _follow(root, path), _stated(values)
                if owner is None and path and path[-1] == "solver":  # whose object is no part
                    owner, last, values = _of_solver(_follow(root, path[:-1]), last, values)
                if owner is None or any(part.key == last for part in owner.parts):
                    continue  # a part in place of another is walked like any part
                place = f"{search.where}.{name}{f'[{i}]' if several else ''}[{str(key)!r}]"
                for j, value in enumerate(values):
                    yield owner, owner.with_param(last, value, f"{place}[{j}]")


def _follow(part, path):
    for key in path:
        if part is None:
            return None
        part = next((inner for inner in part.parts if inner.key == key), None)
    return part


def _of_solver(owner, name, values):
    """A model, "solver", and its solvers with each value of one of their parameters."""
    solver = owner and owner.get("solver")
    given = solver.get_params(deep=False) if isinstance(solver, Stated) else {}
    made = [guarded(lambda v=v: type(solver)(**given | {name: v})) for v in values]
    return (owner if name in given else None), "solver", made


def _stated(values):
    if isinstance(values, np.ndarray):
        values = values.tolist() if values.ndim == 1 else []
    return values[:MOST_PARTS] if isinstance(values, (list, tuple)) else ()


# ---- layouts ------------------------------------------------------------------------------------


def may_be_sparse(X):
    """Whether records are sparse as a whole, or columns of their frame are."""
    kinds = getattr(X, "dtypes", ()) if hasattr(X, "iloc") else ()
    return issparse(X) or any(type(kind).__name__ == "SparseDtype" for kind in kinds)


def density_decides(part, dense):
    """Whether a part of an object chooses its layout by the entries of all records.

    A ColumnTransformer compares the entries of all records with its threshold as soon as one step
    puts out something sparse, and publishes the answer as `sparse_output_`, so changing the layout
    afterwards would hide nothing.

    Parameters
    ----------
    part : Part
    dense : bool
        Whether X of the whole object is known to be dense.
    """
    if part.short != "ColumnTransformer" or part.get("sparse_threshold") == 0:
        return False
    return not part.is_dense(_input_is_dense(part, dense))


def _input_is_dense(part, dense):
    """Whether the input of a part is known to be dense."""
    if part.parent is None:
        return dense
    given = _input_is_dense(part.parent, dense)
    return part.parent.is_dense(given, part.key) if part.parent.is_sequence else given
