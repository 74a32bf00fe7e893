"""Release by release: whether each of those that a fit makes is as private as its event says.

(a) One run over usual records leads; its answers are what every other run's solver hears. So what a
    kind of release answers in the others is drawn given all that was released before, and nothing
    but these draws tells their records apart.
(b) The records of two data sets differ in a group, as many as the claim needs to be heard, and in
    the way that shows most (``_simulated_records``): a few runs of each choose it.
(c) A test is fixed by such runs, whose exact answers are known here: for Gaussian releases, what
    was drawn times the difference of exact answers, over the variances; for choices, the log
    likelihood ratio. Then fresh runs are guessed, and their errors bound what the claim allows
    (``_release_tests``).
(d) A run that draws nothing has no records to tell of: what a model keeps of it is the same for
    both data sets, bit for bit, or was not released by any mechanism.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from scipy.special import ndtr
from sklearn.base import clone

from ..privacy.accounting._accounting import epsilon_of
from ..privacy.accounting._events import CoveredEvent, PoissonSampledEvent, SelectionEvent
from ..privacy.mechanisms._quantiles import QuantileChoices
from ..privacy.mechanisms._questions import GreedyChoices
from ..privacy.noise import NoiseSource
from ..testing._tape import Entry, Recording, key_of
from ..testing._tape import unpaid as unpaid_releases
from ..testing._visible import fingerprint
from ..utils._persons import relation_of
from ..utils._warnings import silence
from ._release_tests import (
    REQUIRED_POWER,
    ChoiceTest,
    GaussianTest,
    ReleaseResult,
    game_of,
    judged,
    lone_names,
    power_of,
    separation,
)
from ._simulated_records import CHANGES, OF_KIND, by_person

# Runs over each data set: of a first look at all ways to differ, and of the better ones.
_LOOK, _SECOND_LOOK, _BETTER = 16, 64, 3
_SCALES = "choices of scales"
_SHARES = np.arange(0.99, 0.0, -0.01)

# ---- The tape of an audit: a run that leads, and runs that follow it and draw some afresh --------
#
# A leading run keeps all releases. One that follows it draws some of them afresh, and its solver
# hears the leader's answers to all: given these, what followers draw is independent, from one draw
# to the next and of all that was released before. Compiled oracles draw as in every fit.


@dataclass(frozen=True)
class Kind:
    """Releases of one kind at one noise.

    Parameters
    ----------
    words : str
        Its name in a table.
    release : FitEvent's release
        What pays for each of them.
    neighboring : str
    cells : str, default=""
        Between which cells quantiles are chosen.
    """

    words: str
    release: object
    neighboring: str
    cells: str = ""


def kinds_of(tape, event):
    """By kind the numbers of its entries, and how many releases each is; `event` was charged."""
    found = {}
    for number, (entry, release) in enumerate(zip(tape.entries, tape.stated(), strict=True)):
        if release is None:
            continue
        words, cells = _words_of(entry, tape.plan)
        of_one = _as_charged(replace(release, count=1), event)
        kind = Kind(words, of_one, event.neighboring, cells)
        found.setdefault(kind, {})[number] = release.count
    return found


def _as_charged(release, event):
    """A release with the sampling rate, or the spare, that was charged for it."""
    if not isinstance(release, (PoissonSampledEvent, CoveredEvent)):
        return release
    of_kind = [charged for charged in event.releases if type(charged) is type(release)]
    noise = release.noise_multiplier
    same = (replace(one, count=1) for one in of_kind if one.noise_multiplier == noise)
    return next(same, release)


def _words_of(entry, plan):
    """The name of an entry's kind, and the cells of its choices."""
    question, mechanism = entry.question, entry.mechanism
    if isinstance(mechanism, QuantileChoices):
        if question.around is None or question.of == "row_norm":
            return "choices of scales", "octaves" if question.edges is None else "linear"
        if mechanism.intervals:
            return "choices of scales", "intervals"
        prior = mechanism.prior  # it favours one side, if any
        is_even = prior is None or prior[0] == prior[1]
        return ("choices of tails", "doublings") if is_even else ("choices of scales", "tails")
    if isinstance(mechanism, GreedyChoices):
        return "greedy choices", ""
    words = question.name
    if plan is None:  # a transformer
        words = {"curvature": "second moments"}.get(words, words)
    elif words == "coordinates of gradients" and (part := plan.part_of("intercept")) is not None:
        settles = mechanism.noise_multiplier == part.releases[0].noise_multiplier
        words = "settled intercept" if settles else words
    return words, ""


class EnoughError(Exception):
    """Ends a run that has drawn what is wanted of it."""


class AuditTape(Recording):
    """A `random_state` for one run of an audit, with noise of the operating system's entropy.

    Parameters
    ----------
    seed : int
        Draws the public choices.
    leader : AuditTape, default=None
        Tape of the run that this one follows.
    wanted : collection of int, default=()
        Which entries a follower draws; a leader draws all.

    Attributes
    ----------
    n_left : int or None
        Entries that are wanted and still to be drawn; None is all of a run.
    """

    def __init__(self, seed, leader=None, wanted=()):
        super().__init__(seed)
        self.__dict__.update(
            leader=leader, wanted=frozenset(wanted), n_left=len(wanted) or None,
            _noise=NoiseSource(), _generator=np.random.default_rng(),
        )  # fmt: skip

    def release(self, place, question, mechanism, drawn=None):
        """The answer that a solver hears: that of the leader, where there is one."""
        number, exact = len(self.entries), None
        if self.leader is None or number in self.wanted:
            exact = copy.copy(question.answer(place))
            drawn = mechanism.release(exact, self._noise) if drawn is None else drawn
            if self.n_left is not None:
                self.__dict__["n_left"] -= 1
            if isinstance(mechanism, GreedyChoices):  # scores need the oracle, and so its records
                exact, mechanism = mechanism.scores(exact), replace(mechanism, scores=np.asarray)
        self.entries.append(Entry(question, mechanism, (), exact, drawn))
        if self.n_left == 0:
            raise EnoughError
        leader = self if self.leader is None else self.leader
        return copy.copy(leader.entries[number].released)


class Runs:
    """Runs of one model over made-up records.

    Parameters
    ----------
    model : estimator of this package, without an accountant
    usual : tuple
        Records of the leading run.
    seed : int
        Seed of public choices: those of all runs are the same.
    n_jobs : int or None

    Attributes
    ----------
    leader : AuditTape
        The tape of a run that draws everything.
    fitted : estimator
        The model of that run.
    """

    def __init__(self, model, usual, seed, n_jobs):
        self._model, self._seed, self._n_jobs = model, seed, n_jobs
        self._of_records = relation_of(model.neighboring)[1] is not None
        self.leader = AuditTape(seed)
        self.fitted = self._run(self.leader, usual)

    def follow(self, wanted, data):
        """The tape of a run that draws the entries that are wanted, and its model."""
        tape = AuditTape(self._seed, self.leader, wanted)
        return tape, self._run(tape, data)

    def _run(self, tape, data):
        names = ("X", "y", "sample_weight", "groups")
        parts = zip(names, data if self._of_records else by_person(*data), strict=False)
        copy = clone(self._model).set_params(random_state=tape)
        try:
            copy.fit(**{name: part for name, part in parts if part is not None})
        except (EnoughError, RuntimeError):  # of compiled solvers the latter
            if tape.n_left != 0:
                raise
        return copy

    def draws(self, numbers, data, n_runs):
        """Entries of these numbers, drawn in so many runs: a list for each run."""

        def draw():
            tape, _ = self.follow(numbers, data)
            return [tape.entries[number] for number in numbers]

        run = Parallel(n_jobs=self._n_jobs, require="sharedmem")
        return run(delayed(draw)() for _ in range(n_runs))


def audit_releases(model, made_up, *, n_runs, confidence, n_jobs=None, only=None):
    """Rows of all kinds of release, names of attributes that no release explains, and the model.

    Names are "privacy_spent_" too if the event costs more than it says, and "privacy_event_" if a
    mechanism releases by another one. `only` are the words of kinds that are looked at, None is
    all.
    """
    generator = np.random.default_rng()
    with silence():  # made-up records are what warnings would speak of
        usual = made_up.usual(generator)
        runs = Runs(model, usual, int(generator.integers(2**31)), n_jobs)
        charged = runs.fitted.privacy_event_
        kinds = kinds_of(runs.leader, charged)
        kinds = {kind: kinds[kind] for kind in kinds if only is None or kind.words in only}
        named = [kind for kind in kinds if kind.words == "counts of categories"]
        n_rows = len(kinds) + len(named)
        alike = 1 - (1 - confidence) / max(n_rows, 1)  # all rows hold with the confidence
        rows = []
        for kind, paid in kinds.items():
            contest = _Contest(runs, made_up, kind, paid, generator)
            rows.append(contest.result(n_runs, alike))
        for kind in named:
            (number,) = kinds[kind]
            rows.append(lone_names(runs, made_up, kind, number, n_runs, alike))
        rows = _of_one_choice(rows)
        off = unpaid_releases(runs.leader, charged)
        looked_at = [kind.release for kind in kinds]
        rows += _never_made(charged, off, looked_at)
        unpaid = _unpaid(runs, made_up, generator)
        if +off:
            unpaid += ("privacy_event_",)
    return tuple(rows), unpaid, runs.fitted


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


def _never_made(charged, off, looked_at):
    """Rows of releases that were charged and not made.

    A choice that is not asked tells nothing, and where others at its range were looked at, so was
    its mechanism: all choices of scales are one. Gaussian releases of one noise are many.
    """
    k = charged.max_contributions
    same = {key_of(release, k) for release in looked_at if isinstance(release, SelectionEvent)}
    idle = {key_of(release): release for release in charged.releases}
    return [
        _not_exercised(release, -off[key])
        for key, release in idle.items() if off[key] < 0 and key not in same
    ]  # fmt: skip


def _not_exercised(release, count):
    return ReleaseResult("not exercised", str(replace(release, count=count)), count)


def _unpaid(runs, made_up, generator):
    """Public attributes of a model that no release of its own explains."""
    fitted, plan, found = runs.fitted, runs.leader.plan, []
    count = max(1, made_up.n // 4)
    pair = [made_up.usual(generator)]
    if hasattr(plan, "geometry"):
        pair += made_up.pair("all features", plan, count, generator)
    names = [name for name in vars(fitted) if name.endswith("_") and name[0] != "_"]
    for data in pair:
        _, other = runs.follow((), data)
        for name in names:
            kept, again = (fingerprint(getattr(model, name, None)) for model in (fitted, other))
            if kept != again:
                found.append(name)
    epsilon, delta = fitted.privacy_spent_
    if epsilon_of(fitted.privacy_event_, delta) > epsilon * (1 + 1e-6):
        found.append("privacy_spent_")
    return tuple(dict.fromkeys(found))


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

    def __init__(self, runs, made_up, kind, paid, generator):
        self._runs, self._made_up, self._kind, self._plan = runs, made_up, kind, runs.leader.plan
        self._generator = generator
        numbers, self._paid = list(paid), list(paid.values())
        self._entries = [runs.leader.entries[number] for number in numbers]
        self._steps = []  # from anchors, of differences from there
        if kind.words == "gradients of samples" and self._entries[0].question.anchor is not None:
            questions = [entry.question for entry in self._entries]
            self._steps = [question.iterate - question.anchor for question in questions]
        self._game = game_of(kind, self._paid, made_up.n, self._steps)
        self._numbers = [numbers[at] for at in self._game.calls]

    def _pairs(self):
        words, group = self._kind.words, self._game.group
        if self._kind.cells:
            asked = [(entry.question, entry.mechanism) for entry in self._entries]
            favoured = self._kind.cells == "tails"
            ties = self._made_up.ties(asked, group, self._kind.release.eta, favoured)
            return {"ties of quantiles": ties}
        if self._plan is None:  # a transformer
            question = self._entries[0].question
            return self._made_up.pairs_of_transformer(words, question, group, self._generator)
        names = list(OF_KIND.get(words, CHANGES))
        if words not in OF_KIND:  # squares alone need rest
            names = [name for name in names if not CHANGES[name].at_rest]
        if not getattr(self._plan.request, "fit_intercept", True):
            names = [name for name in names if name != "intercept alone"]
        pairs = {}
        for name in names:
            pairs[name] = self._made_up.pair(name, self._plan, group, self._generator)
        if self._steps:
            steps = np.array([self._steps[at] for at in self._game.calls])
            pairs["beside the path"] = self._made_up.beside(
                steps, self._plan, group, self._generator
            )
        return pairs

    def result(self, n_runs, confidence):
        """The row of this kind."""
        kind, game, n_releases = self._kind, self._game, sum(self._paid)
        best = self._best()
        if best is None:
            return _not_exercised(kind.release, n_releases)
        runs = [self._runs.draws(self._numbers, data, n_runs) for data in best.pair]
        values = list(map(best.test.of, runs))
        of_half = best.test.errors([best.test.of(side, 0.5) for side in runs])
        power = power_of(of_half, 2 * n_runs, n_runs, confidence, game.error)
        distance = separation(*values)
        row = ReleaseResult(
            kind.words, _claim_of(kind, n_releases), n_releases,
            n_draws=2 * n_runs * game.n_releases, group=game.group, pair=best.name, power=power,
            noticed_noise=_noticed(distance, n_runs, confidence, game.error),
        )  # fmt: skip
        return judged(row, best.test.errors(values), 2 * n_runs, confidence, game.error)

    def _best(self):
        found = []
        for name, pair in self._pairs().items():
            try:
                found.append(self._looked_at(name, pair, ([], []), _LOOK))
            except ValueError:  # a change that a parameter excludes
                continue
        found.sort(key=lambda one: -one.separation)
        better = [
            self._looked_at(one.name, one.pair, one.looks, _SECOND_LOOK)
            for one in found[:_BETTER]
        ]  # fmt: skip
        return max(better, key=lambda one: one.separation, default=None)

    def _looked_at(self, name, pair, before, n_runs):
        looks = tuple(
            old + self._runs.draws(self._numbers, data, n_runs)
            for old, data in zip(before, pair, strict=True)
        )
        test = ChoiceTest() if isinstance(self._kind.release, SelectionEvent) else GaussianTest()
        test.learn(looks)
        return _Candidate(name, pair, test, looks, separation(*map(test.of, looks)))


def _claim_of(kind, count):
    release = kind.release
    if isinstance(release, SelectionEvent):
        return f"{count:,} of range {release.eta:.4g}"
    words = f"{count:,} of noise multiplier {release.noise_multiplier:.4g}"
    rate = getattr(release, "sampling_rate", None)
    return words if rate is None else f"{words}, rate {rate:.3g}"


def _noticed(distance, n_runs, confidence, claimed):
    """The largest share of the noise that would be noticed."""
    for share in _SHARES:
        error = min(float(ndtr(-distance / 2 / share)), 0.5)
        if power_of(error * 1e6, 10**6, n_runs, confidence, claimed) >= REQUIRED_POWER:
            return round(float(share), 2)
    return None
