"""From a Budget to the noise of a search over hyper-parameters, rounded towards more noise."""

import math
from functools import lru_cache

from ._events import CoveredEvent, FitEvent, GaussianEvent, TuningEvent
from ._gaussian_dp import gdp_mu
from ._roots import largest_within

_SPARE = 1e-3  # share of a search's δ that may tell everything, where runs are not Gaussian


@lru_cache(maxsize=256)
def search_fit_event(budget, law, mean, count, gaussian, n_refits):
    """Runs of all candidates or of a random number, and refits of the best, in a Budget together.

    Every fit and every score tells at most as much as one release, the largest that the budget
    admits: a Gaussian one if all are Gaussian, else one that covers them.

    Parameters
    ----------
    budget : Budget
    law, mean : as of TuningEvent
        The law "all" is no secret: there are `mean` runs, and all scores are released.
    count : int
        How many fits and scores of one run one record meets, at most.
    gaussian : bool
        Whether all fits are Gaussian.
    n_refits : int

    Returns
    -------
    event : FitEvent
    release : GaussianEvent or CoveredEvent
        What each fit and each score may tell.
    """
    epsilon, delta = budget[:2]
    unit = budget.neighboring, budget.max_contributions
    spare = _SPARE * delta / (mean * count + n_refits)

    def event(z, n_runs_see):
        if gaussian:
            return GaussianEvent(z, n_runs_see)
        return CoveredEvent(z, spare, n_runs_see)

    def search(log_mu):
        z = math.exp(-log_mu)
        if law == "all":
            return FitEvent((event(z, int(mean) * count + n_refits),), *unit)
        runs = TuningEvent(FitEvent((event(z, count),), *unit), law, mean)
        return FitEvent((runs, *[event(z, n_refits)][:n_refits]), *unit)

    highest = math.log(gdp_mu(epsilon, delta) / math.sqrt(count))
    log_mu = largest_within(lambda log_mu: budget.excess(search(log_mu)), highest, highest)
    if log_mu is None or log_mu < -30:
        raise ValueError(
            f"epsilon={epsilon:g} and delta={delta:g} admit no search of {mean:g} runs; raise "
            "epsilon, lower n_iter or search fewer candidates"
        )
    return search(log_mu), event(math.exp(-log_mu), 1)
