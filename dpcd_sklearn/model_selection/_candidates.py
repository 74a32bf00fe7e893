"""Candidates of a search, and secret coins that draw those which are tried.

Which candidates there may be is public; which of them were tried is not, but for the winner.
"""

import itertools
import math

import joblib
import numpy as np
from sklearn.base import clone

from ..linear_model._private_linear_model import PrivateLinearModel
from ..linear_model._strengths import can_choose
from ..pipeline._budget_of_step import last_step
from ..privacy.accounting._tuning import TRIED, check_law, draw_count
from ..privacy.noise._noise import NoiseSource
from ..utils._stated import ReproducibleNoise

# A grid of no more candidates is planned whole before a search, and by default all are tried, with
# 1.4 times the noise at most of a subset that misses each with a probability of .05. Of another
# grid so many are planned.
MOST_PLANNED = 48
MOST_OF_SUBSET = 100_000
# Parameters that the search sets, and those that would tell strangers of its runs or void them.
_OURS = ("epsilon", "delta", "neighboring", "n_public")
_FORBIDDEN = {
    "accountant": "its entries would tell how many runs there were",
    "classes": "candidates are scored on the same labels",
} | dict.fromkeys(_OURS, "the search sets it, alike for all candidates")


def check_distributions(param_distributions):
    """The distributions as dicts of lists, or the error that says what is wrong with them.

    Raises
    ------
    TypeError, ValueError
        If there is none, one is empty or has a number or word twice, or a value is neither a list
        nor a distribution.
    """
    given = param_distributions
    grids = [given] if isinstance(given, dict) else given
    if not isinstance(grids, (list, tuple)) or not grids:
        raise TypeError("param_distributions must be a dict, or a list of them that is not empty")
    for grid in grids:
        if not isinstance(grid, dict):
            raise TypeError(f"param_distributions must hold dicts, got {type(grid).__name__}")
        for name, values in grid.items():
            if not isinstance(name, str):
                raise TypeError(f"names of parameters are strings, got {name!r}")
            forbidden = [part for part in name.split("__") if part in _FORBIDDEN]
            if forbidden:
                raise ValueError(f"{name} can't be searched: {_FORBIDDEN[forbidden[0]]}")
            if hasattr(values, "rvs"):
                continue
            if isinstance(values, str) or not hasattr(values, "__len__"):
                raise TypeError(
                    f"the distribution of {name} must be a list or have a method rvs, got "
                    f"{type(values).__name__}"
                )
            if len(values) == 0:
                raise ValueError(f"the distribution of {name} is empty")
            seen = set()
            for value in values:  # one that is listed twice would be as likely as two
                if (key := key_of(value)) in seen:
                    raise ValueError(f"the distribution of {name} has {value} twice; list it once")
                seen.add(key)
    if not any(grids):
        raise ValueError("param_distributions names no parameter: there is nothing to search")
    return [
        {name: values if hasattr(values, "rvs") else list(values) for name, values in grid.items()}
        for grid in grids
    ]


def key_of(value):
    """A key that is the same for equal values; what can't be pickled equals itself alone."""
    if isinstance(value, (bool, int, float, str, np.generic)):
        return isinstance(value, (bool, np.bool_)), value
    try:
        return joblib.hash(value)
    except Exception:
        return id(value)


class Coins:
    """Secret coins of a search, from the operating system's entropy; a tape stands in its place."""

    def words(self, name, size):
        """So many secret random words of 64 bits."""
        return np.array(NoiseSource().words(size), dtype=np.uint64)


def secret_generator(coins):
    """A generator for candidates."""
    seed = [int(word) for word in coins.words("candidates", 4)]
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))


def draw(grids, generator):
    """One candidate: a dict of parameters."""
    grid = grids[generator.randint(len(grids))]
    return {
        name: values.rvs(random_state=generator)
        if hasattr(values, "rvs")
        else values[generator.randint(len(values))]
        for name, values in grid.items()
    }


def numbers_of(grids):
    """How many candidates each grid has; infinite where one is drawn from a distribution."""
    return [
        math.prod(math.inf if hasattr(values, "rvs") else len(values) for values in grid.values())
        for grid in grids
    ]


def with_strengths_together(estimator, grid):
    """The grid as several: a penalty is one candidate where a fit can choose its kind and strength.

    Such a candidate has a list for each parameter of the penalty.
    """
    of_penalty = {name: values for name, values in grid.items() if is_of_penalty(name)}
    others = {name: values for name, values in grid.items() if name not in of_penalty}
    drawn = any(hasattr(values, "rvs") for values in grid.values())
    if drawn or not of_penalty or math.prod(map(len, others.values())) > MOST_PLANNED:
        return [grid]
    found = []
    for params in prototypes([others], None):
        model = candidate(estimator, params)
        is_linear = isinstance(last_step(model), PrivateLinearModel)
        chooses = is_linear and can_choose(last_step(model.set_params(**of_penalty)))
        one = {name: [values] for name, values in of_penalty.items()} if chooses else of_penalty
        found.append({name: [value] for name, value in params.items()} | one)
    return found


def is_of_penalty(name):
    """Whether a parameter is of a penalty that has a strength."""
    return name.rpartition("__")[2] in {"alpha", "C", "l1_ratio", "penalty"}


def law_of(distribution, n_iter, grids):
    """The law of the number of runs, and its mean.

    By default all candidates are tried; of many each with a probability of .95.

    Raises
    ------
    TypeError, ValueError
        If there is no such law, or the candidates are too many for it or too few.
    """
    n_candidates, auto = sum(numbers_of(grids)), isinstance(n_iter, str) and n_iter == "auto"
    if isinstance(distribution, str) and distribution in ("auto", "all"):
        if not auto:
            check_law("poisson", n_iter)
        if n_candidates <= MOST_PLANNED:
            return "all", float(n_candidates)
        if distribution == "all":
            raise ValueError(
                f"distribution='all' needs lists of {MOST_PLANNED} candidates at most; leave 'auto'"
            )
        distribution = "subset" if auto and math.isfinite(n_candidates) else "poisson"
    if isinstance(distribution, str) and distribution == "subset":
        if not auto or not 2 <= n_candidates <= MOST_OF_SUBSET:
            raise ValueError(
                f"distribution='subset' needs n_iter='auto' and lists of 2 to {MOST_OF_SUBSET} "
                f"candidates, got n_iter={n_iter!r} and {n_candidates} candidates; state a mean "
                "number of runs n_iter with distribution='poisson'"
            )
        return check_law(distribution, TRIED * n_candidates)
    return check_law(distribution, 10.0 if auto else n_iter)


def prototypes(grids, coins):
    """Candidates that are looked at before the charge: all of a small grid, else some of them."""
    if sum(numbers_of(grids)) <= MOST_PLANNED:
        return listed(grids)
    generator = secret_generator(coins)
    return [draw(grids, generator) for _ in range(MOST_PLANNED)]


def listed(grids):
    """All candidates of lists."""
    return [
        dict(zip(grid, items, strict=True))
        for grid in grids
        for items in itertools.product(*grid.values())
    ]


def tried(law, mean, grids, coins):
    """The candidates of all runs, which are secret but where all are tried."""
    if law == "all":
        return listed(grids)
    if law == "subset":
        found = listed(grids)
        is_in = coins.words("runs", len(found)) < np.uint64(int(TRIED * 2**64))
        return list(itertools.compress(found, is_in))
    count = draw_count(law, mean, lambda n: map(int, coins.words("runs", n)))
    generator = secret_generator(coins)
    return [draw(grids, generator) for _ in range(count)]


def candidate(estimator, params):
    """A clone with these parameters, each cloned as well, that says nothing while it is fitted.

    Raises
    ------
    ValueError
        If it has an accountant or a seed.
    """
    made = clone(estimator)
    made.set_params(**{name: clone(value, safe=False) for name, value in params.items()})
    refuse_accountants(made)
    for part in (made, *made.get_params(deep=True).values()):
        if hasattr(part, "_skl_callbacks"):  # scikit-learn's: progress bars would count runs
            del part._skl_callbacks
    quiet = {name: False for name in made.get_params() if name.rpartition("__")[2] == "verbose"}
    return made.set_params(**quiet)


def refuse_accountants(estimator):
    """Raise a ValueError if a part of an estimator would charge by itself, or repeat its noise."""
    for name, value in estimator.get_params(deep=True).items():
        last = name.rpartition("__")[2]
        if last == "accountant" and value is not None:
            raise ValueError(
                f"{name} is an accountant within a candidate, whose entries would tell how many "
                "runs there were; give it to the search, which makes one entry"
            )
        if last == "warm_start" and value:
            raise ValueError(
                f"{name}=True needs an earlier fit in a ledger, which a candidate has none of; "
                "leave it False"
            )
        if isinstance(value, ReproducibleNoise):
            raise ValueError(
                f"{name}={value!r} makes the noise of a candidate known; leave it None"
            )


def put_on_tape(estimator, tape):
    """Give a tape to all private parts of a candidate; no other random_state decides on noise."""
    for part in (estimator, *estimator.get_params(deep=True).values()):
        if hasattr(part, "planned_event") and "random_state" in part.get_params(deep=False):
            part.set_params(random_state=tape)


def with_penalty(model, params):
    """A fitted model that states the strength and the kind of penalty that it chose."""
    own = {name: value for name, value in params.items() if is_of_penalty(name)}
    return model.set_params(**own)


def as_chosen(last, params, i=None):
    """Parameters of a candidate with the strength and penalty that its last step chose.

    Or with those of row `i` of its path.
    """
    lists = [name for name in params if is_of_penalty(name) and isinstance(params[name], list)]
    path = getattr(last, "strength_path_", None)
    if path is None and lists:  # one was fitted
        names = "penalty", last._strength_name, "l1_ratio"
        path, i = {name: [getattr(last, f"{name}_", None)] for name in names}, 0
    elif i is None and lists:
        i = int(np.argmin(path["excess_loss"]))
    found = {name: path[name.rpartition("__")[2]][i] for name in lists}
    return params | {name: _listed(params[name], value) for name, value in found.items()}


def _listed(values, found):
    """The value of a list that a candidate has, as it was listed."""
    if found is None or len(values) == 1:
        return values[0]
    if isinstance(found, str):
        return found
    return min(values, key=lambda value: abs(value - found))
