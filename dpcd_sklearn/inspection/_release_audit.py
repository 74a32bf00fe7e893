"""Release by release: whether each of those that a fit makes is as private as its event says.

(a) One run over usual records leads; its answers are what every other run's solver hears. So what a
    kind of release answers in the others is drawn given all that was released before, and nothing
    but these draws tells their records apart.
(b) The records of two data sets differ in a group, as many as the claim needs to be heard, and in
    the way that shows most (``_made_up``): a few runs of each choose it.
(c) A test is fixed by such runs: for Gaussian releases, the sum of what was drawn times what next
    to no noise draws from either side, over the variances; for choices, on whose side they are.
    Then fresh runs are guessed, and their errors bound what the claim allows (``_bounds``).
(d) A run that draws nothing has no records to tell of: what a model keeps of it is the same for
    both data sets, bit for bit, or was not released by any mechanism.
"""

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse
from scipy.special import ndtr
from sklearn.base import clone

from ..privacy.accounting._accounting import epsilon_of
from ..privacy.accounting._events import SelectionEvent
from ..privacy.accounting._persons import of_persons
from ..privacy.mechanisms._cell_sums import halfway
from ..utils._persons import relation_of
from ..utils._shown import Shown
from ..utils._warnings import silence
from ._release_claims import game_of, lone_names, unused
from ._release_tests import (
    REQUIRED_POWER,
    GreedyChoiceTest,
    IsotropicLinearTest,
    LinearTest,
    QuantileTest,
    RankingTest,
    counts_of,
    error_bound,
    power_of,
    separation,
    verdict_of,
)
from ._released_answers import EnoughError, Tape
from ._simulated_records import CHANGES, OF_METHOD, by_person
from ._simulated_tables import COMMON, gaining

# Runs over each data set: of a first look at all ways to differ, and of the better ones.
_LOOK, _SECOND_LOOK, _BETTER = 16, 64, 3
# Runs that look at choices, which are counted: a threshold between whole numbers.
_LOOK_AT_CHOICES = 96
# With so little noise answers are what they would be without; the first that is possible. Samples
# differ still: their mean is asked for.
_NEXT_TO_NONE, _QUIET_RUNS = (2.0**-6, 2.0**-4, 2.0**-2), 12
_SCALES = "choices of scales"
# Releases whose numbers have the same noise, and what these are made of.
_ALIKE_NOISE = {
    "release_running_counts": (halfway,),
    "release_categories": (counts_of(COMMON),),
    "release_target_sums": (),
}
_SHARES = np.arange(0.99, 0.0, -0.01)


@dataclass(frozen=True)
class ReleaseResult(Shown):
    """Errors of the best guess from one kind of release, and what they prove.

    Attributes
    ----------
    kind : str
    claim : str
        Claim of the event, for all releases of this kind.
    n_releases : int
        That a fit makes.
    n_draws : int
        That the guesses were made from: 0 if none could be exercised.
    group : int
        Records that the two data sets differ in.
    pair : str
        How they differ.
    n_guesses : int
    error, error_upper, error_claimed : float
        Share of wrong guesses, the upper confidence bound on its mean, and the least that the claim
        allows.
    power : float or None
        Probability that the same audit contradicts this release with half of its noise, measured;
        of names of lone categories with half of the way to the threshold, computed.
    noticed_noise : float or None
        The largest share of the claimed noise that would be noticed with a power of 0.9, from how
        far the data sets were told apart; None if not even 0.01 would.
    verdict : {"contradiction", "passed", "inconclusive"}
    """

    kind: str
    claim: str
    n_releases: int
    n_draws: int
    group: int
    pair: str
    n_guesses: int
    error: float
    error_upper: float
    error_claimed: float
    power: float | None
    noticed_noise: float | None
    verdict: str


class Runs:
    """Runs of one model over made-up records.

    Parameters
    ----------
    model : estimator of this package, without an accountant
    seed : int
        Seed of public choices: those of all runs are the same.
    n_jobs : int or None
    """

    def __init__(self, model, seed, n_jobs):
        self._model, self._seed, self._n_jobs = model, seed, n_jobs
        self._of_records = relation_of(model.neighboring)[1] is not None

    def lead(self, data):
        """The tape of a run that draws everything, and its model."""
        tape = Tape()
        return tape, self._run(tape, data)

    def follow(self, leader, wanted, data, noise=1.0):
        """The tape of one that draws what is wanted, and its model."""
        tape = Tape(noise, leader, wanted)
        return tape, self._run(tape, data)

    def _run(self, tape, data):
        X, y, weights, *groups = data if self._of_records else by_person(*data)
        copy = clone(self._model)
        copy.set_params(random_state=self._seed)
        copy._recorder = tape
        try:
            given = (X,) if y is None else (X, y)
            beside = {} if weights is None else {"sample_weight": weights}
            copy.fit(*given, **beside, **dict(zip(("groups",), groups, strict=False)))
        except (EnoughError, RuntimeError):  # of compiled solvers the latter
            if tape.n_left != 0:
                raise
        finally:
            del copy._recorder
        return copy

    def answers(self, leader, kind, calls, data, n_runs, noise=1.0):
        """Draws of so many runs: a list of answers for each."""
        one = functools.partial(self._answers_of_one, leader, kind, calls, data, noise)
        return Parallel(n_jobs=self._n_jobs, require="sharedmem")(
            delayed(one)() for _ in range(n_runs)
        )

    def _answers_of_one(self, leader, kind, calls, data, noise):
        tape, _ = self.follow(leader, {kind: set(calls)}, data, noise)
        return [tape.drawn[kind][at] for at in calls]


def audit_releases(model, made_up, *, n_runs, confidence, measures=True, n_jobs=None, only=None):
    """Rows of all kinds of release, names of attributes that no release explains, and the model.

    Names are "privacy_spent_" too if the event costs more than it says, and "privacy_event_" if a
    mechanism releases by another one. `only` are the words of kinds that are looked at, None is
    all; `measures` says whether powers are measured.
    """
    generator = np.random.default_rng()
    runs = Runs(model, int(generator.integers(2**31)), n_jobs)
    with silence():  # made-up records are what warnings would speak of
        usual = made_up.usual(generator)
        leader, fitted = runs.lead(usual)
        kinds = [kind for kind in leader.drawn if only is None or kind.words in only]
        named = [kind for kind in kinds if kind.method == "release_categories"]
        n_rows = len(kinds) + len(named)
        alike = 1 - (1 - confidence) / max(n_rows, 1)  # all rows hold with the confidence
        rows = []
        for kind in kinds:
            contest = _Contest(runs, made_up, kind, leader, generator)
            rows.append(contest.result(n_runs, alike, measures))
        for kind in named:
            row = lone_names(runs, made_up, kind, leader, n_runs, alike, measures)
            rows.append(ReleaseResult(**row))
        rows = _of_one_choice(rows)
        told = fitted.privacy_event_
        made = [of_persons(event, told.max_contributions) for event in leader.events]
        left, beyond = unused(told, made)
        rows += [_not_exercised(release) for release in left]
        unpaid = _unpaid(runs, leader, fitted, made_up, generator)
        if beyond:
            unpaid += ("privacy_event_",)
    return tuple(rows), unpaid, fitted


def _of_one_choice(rows):
    """Choices of octaves, of cells and of tails are one kind: the row that tells most of it.

    All are one mechanism with one noise. What is known of tails beforehand favours one side, so
    the worst records tell about half as much of these as is paid for.
    """
    scales = [row for row in rows if row.kind == _SCALES]
    if len(scales) < 2:
        return rows
    against = [row for row in scales if row.verdict == "contradiction"]
    best = min(against, key=lambda row: row.error_upper / row.error_claimed, default=None)
    best = best or max(scales, key=lambda row: (row.power or 0.0, -row.error_upper))
    sums = {name: sum(getattr(row, name) for row in scales) for name in ("n_releases", "n_draws")}
    claim = f"{sums['n_releases']:,} of {best.claim.split(' of ', 1)[1]}"
    return [replace(best, claim=claim, **sums), *(row for row in rows if row.kind != _SCALES)]


def _not_exercised(release):
    nothing = dict.fromkeys(("n_draws", "group", "n_guesses"), 0)
    return ReleaseResult(
        kind="not exercised", claim=str(release), n_releases=getattr(release, "count", 1),
        pair="none", error=math.nan, error_upper=1.0, error_claimed=0.0, power=None,
        noticed_noise=None, verdict="inconclusive", **nothing,
    )  # fmt: skip


def _unpaid(runs, leader, fitted, made_up, generator):
    """Public attributes of a model that no release of its own explains."""
    found = []
    count = max(1, made_up.n // 4)
    pair = [made_up.usual(generator)]
    if hasattr(leader.plan, "geometry"):
        pair += made_up.pair("all features", leader.plan, count, generator)
    for data in pair:
        _, other = runs.follow(leader, {}, data)
        found += [name for name in _kept(fitted) if not _same(fitted, other, name)]
    epsilon, delta = fitted.privacy_spent_
    if epsilon_of(fitted.privacy_event_, delta) > epsilon * (1 + 1e-6):
        found.append("privacy_spent_")
    return tuple(dict.fromkeys(found))


def _kept(fitted):
    return [name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")]


def _same(fitted, other, name):
    one, two = getattr(fitted, name), getattr(other, name, None)
    if issparse(one):
        one, two = one.toarray(), two.toarray() if issparse(two) else two
    try:
        return bool(np.array_equal(np.asarray(one), np.asarray(two), equal_nan=True))
    except (TypeError, ValueError):  # of other things than numbers
        return repr(one) == repr(two)


# ---- one kind of release ------------------------------------------------------------------------


@dataclass
class _Candidate:
    """A pair of data sets, the test of a few runs, and how far it told them apart."""

    name: str
    pair: tuple
    test: object
    looks: tuple
    separation: float


class _Contest:
    """Runs of one kind of release over data sets that differ in all the ways that suit it."""

    def __init__(self, runs, made_up, kind, leader, generator):
        self._runs, self._made_up, self._kind, self._leader = runs, made_up, kind, leader
        self._generator = generator
        self._paid = leader.paid[kind]
        asked = leader.asked[kind]
        self._steps = asked if kind.method == "release_sample" and asked[0] is not None else []
        self._game = game_of(kind, self._paid, made_up.n, self._steps)
        self._of_cells = kind.method.startswith("release_quantiles")

    def _ties(self):
        asked = self._leader.asked[self._kind]
        favoured = self._kind.method == "release_quantiles of tails"
        return self._made_up.ties(asked, self._game.group, self._kind.release.eta, favoured)

    def _pairs(self):
        method, group = self._kind.method, self._game.group
        if self._of_cells:
            return {"ties of quantiles": self._ties()[:2]}
        if self._leader.plan is None:  # a transformer
            asked = self._leader.asked[self._kind][0]
            return self._made_up.pairs_of_transformer(method, asked, group, self._generator)
        names = list(OF_METHOD.get(method, CHANGES))
        if method not in OF_METHOD:  # squares alone need rest
            names = [name for name in names if not CHANGES[name].at_rest]
        if not getattr(self._leader.plan.request, "fit_intercept", True):
            names = [name for name in names if name != "intercept alone"]
        pairs = {}
        for name in names:
            pairs[name] = self._made_up.pair(name, self._leader.plan, group, self._generator)
        if self._steps:
            steps = np.array([self._steps[at] for at in self._game.calls])
            beside = self._made_up.beside(steps, self._leader.plan, group, self._generator)
            pairs["beside the path"] = beside
        return pairs

    def result(self, n_runs, confidence, measures):
        """The row of this kind."""
        kind, game = self._kind, self._game
        best = self._best()
        if best is None:
            row = _not_exercised(kind.release)
            return row
        values = [best.test.of(self._answers(best.pair[side], n_runs)) for side in (0, 1)]
        errors = best.test.errors(values)
        upper = error_bound(errors, 2 * n_runs, confidence)
        power = self._power(best, n_runs, confidence) if measures else None
        told = separation(*values)
        return ReleaseResult(
            kind=self._words, claim=_claim_of(kind, sum(self._paid)), n_releases=sum(self._paid),
            n_draws=2 * n_runs * game.n_releases, group=game.group, pair=best.name,
            n_guesses=2 * n_runs, error=errors / (2 * n_runs), error_upper=upper,
            error_claimed=game.error, power=power,
            noticed_noise=_noticed(told, n_runs, confidence, game.error),
            verdict=verdict_of(upper, game.error, power),
        )  # fmt: skip

    @property
    def _words(self):
        part_of = getattr(self._leader.plan, "part_of", None)
        settles = part_of and self._kind.event == part_of("intercept")
        return "settled intercept" if settles else self._kind.words

    def _power(self, best, n_runs, confidence):
        """Against half of the noise, from runs with it."""
        size = n_runs // 2
        broken = [best.test.of(self._answers(data, size, 0.5)) for data in best.pair]
        if not isinstance(self._kind.release, SelectionEvent):
            # a plan of half the noise takes other steps; noise that is halved in secret does not
            honest = map(best.test.of, best.looks)
            off = (sum(map(np.mean, broken)) - sum(map(np.mean, honest))) / 2
            broken = [values - off for values in broken]
        errors = best.test.errors(broken)
        return power_of(errors, 2 * size, n_runs, confidence, self._game.error)

    def _answers(self, data, n_runs, noise=1.0):
        return self._runs.answers(self._leader, self._kind, self._game.calls, data, n_runs, noise)

    def _best(self):
        found = []
        for name, pair in self._pairs().items():
            try:
                found.append(self._looked_at(name, pair, ([], []), _LOOK))
            except ValueError:  # a change that a parameter excludes
                continue
        found.sort(key=lambda one: -one.separation)
        more = _LOOK_AT_CHOICES if self._of_cells else _SECOND_LOOK
        better = [
            self._looked_at(one.name, one.pair, one.looks, more, one.test)
            for one in found[:_BETTER]
        ]
        best = max(better, key=lambda one: one.separation, default=None)
        if best is not None and isinstance(self._kind.release, SelectionEvent):
            # with less noise choices go another way on both sides: between them lies the threshold
            best.test.learn([self._answers(data, more, 0.5) for data in best.pair])
        return best

    def _looked_at(self, name, pair, before, n_runs, test=None):
        looks = tuple(
            old + self._answers(data, n_runs) for old, data in zip(before, pair, strict=True)
        )
        if test is None:
            test = self._test(pair)
        test.learn(looks)
        return _Candidate(name, pair, test, looks, separation(*map(test.of, looks)))

    def _test(self, pair):
        if self._kind.method == "release_argmax":
            return GreedyChoiceTest(self._leader, self._kind, self._game.calls, pair)
        if self._kind.method == "release_columns":
            lead = self._game.group * self._kind.release.eta / 2
            return RankingTest(gaining(self._made_up.p), lead)
        low = None
        if self._of_cells:
            pair = self._ties()[2:]
        for noise in _NEXT_TO_NONE:
            try:
                low = [self._answers(data, _QUIET_RUNS, noise) for data in pair]
                break
            except (ValueError, RuntimeError):  # no grid is as fine
                continue
        if low is None:
            raise ValueError("no noise is small enough for a test")
        if self._of_cells:
            return QuantileTest(low[0])
        if (method := self._kind.method) in _ALIKE_NOISE:
            return IsotropicLinearTest(low, *_ALIKE_NOISE[method])
        return LinearTest(low)


def _claim_of(kind, count):
    release = kind.release
    if isinstance(release, SelectionEvent):
        return f"{count:,} of range {release.eta:.4g}"
    words = f"{count:,} of noise multiplier {release.noise_multiplier:.4g}"
    rate = getattr(release, "sampling_rate", None)
    return words if rate is None else f"{words}, rate {rate:.3g}"


def _noticed(told, n_runs, confidence, claimed):
    """The largest share of the noise that would be noticed."""
    for share in _SHARES:
        error = min(float(ndtr(-told / 2 / share)), 0.5)
        if power_of(error * 1e6, 10**6, n_runs, confidence, claimed) >= REQUIRED_POWER:
            return round(float(share), 2)
    return None
