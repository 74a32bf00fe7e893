"""Categories of one record each: whether they are named as rarely as the threshold promises.

Such a category is named with next to no probability, so no test of two guesses would hear of a
threshold that is too low. But without its record it can't be named at all: one name is enough.
"""

import math

import numpy as np
from scipy.special import log_ndtr, ndtri

from ._bounds import error_bound, verdict_of
from ._release_claims import found_at_most
from ._simulated_tables import LONE


def lone_names(runs, made_up, kind, leader, n_runs, confidence, measures):
    """Fields of a `ReleaseResult` for the names of categories of one record.

    An error is a run that names none of them, where as many as can be are there.

    Parameters
    ----------
    runs : Runs
    made_up : SimulatedTable
    kind : Kind
        Kind of the release of categories.
    leader : Tape
    n_runs : int
    confidence : float
    measures : bool
        Whether the power is computed.

    Returns
    -------
    dict
    """
    (release,) = kind.event.releases
    n_columns = len(leader.drawn[kind][0])
    group, claimed = _group(release, made_up.n, n_runs, confidence)
    answers = runs.answers(leader, kind, (0,), made_up.with_lone_categories(group), n_runs)
    named = np.array([_is_one_named(run[0]) for run in answers], dtype=float)
    errors = int(np.sum(named == 0))
    upper = error_bound(errors, n_runs, confidence, alike=True)
    power = None
    if measures:  # of a threshold half as far away
        away = float(ndtri(min(release.spare / n_columns, 0.5))) / 2
        silent = n_runs * group * n_columns * float(log_ndtr(-away))
        power = -math.expm1(silent) if _one_is_enough(n_runs, confidence) < claimed else 0.0
    return {
        "kind": "names of lone categories",
        "claim": f"1 within a probability of {release.spare:.2g}",
        "n_releases": 1, "n_draws": n_runs, "group": group, "pair": "categories of their own",
        "n_guesses": n_runs, "error": errors / n_runs, "error_upper": upper,
        "error_claimed": claimed, "power": power, "noticed_noise": None,
        "verdict": verdict_of(upper, claimed, power),
    }  # fmt: skip


def _group(release, n_samples, n_runs, confidence):
    """As many records as leave one name a contradiction, and how often none is named at least."""
    heard, group = _one_is_enough(n_runs, confidence), 1
    while group < n_samples // 4 and 1 - _named(release, group + 1) > heard:
        group += 1
    return group, 1 - _named(release, group)


def _one_is_enough(n_runs, confidence):
    """The bound on silent runs where all but one of them are."""
    return error_bound(n_runs - 1, n_runs, confidence, alike=True)


def _named(release, group):
    return float(found_at_most(np.zeros(1), release, group)[0])


def _is_one_named(answer):
    return any(word is not None and word >= LONE for words, _ in answer for word in words)
