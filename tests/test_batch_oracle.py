"""Mean gradients at stated iterates: NumPy twins, samples, noise, limits, and what was paid for.

With a key the noise is known: the twin reads the same words, so it must release the same numbers.
Laws are judged by statistics whose false alarms are rarer than 1e-6 each.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from tables import table
from test_privacy_properties import extreme, properties, weight
from twins import LAYOUTS, Records, bits_of, limit_of, norm_of
from unreleased import StatedSums, released_mean

from dpcd_sklearn.loops import _compgd, _sgd, _svrg
from dpcd_sklearn.loops._problem import Problem
from dpcd_sklearn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from dpcd_sklearn.penalties import ElasticNet
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, PoissonSampledEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import BatchOracle, MeanUnits
from dpcd_sklearn.privacy.noise import NoiseSource
from dpcd_sklearn.privacy.sums import LocalPlace

P_VALUE = 1e-6
KEY = bytes(range(9, 41))
RELATIONS = {"replace_one": 2, "add_remove": 1}


class Case(Records):
    """Records, what an oracle is asked of them, and what NumPy says."""

    def __init__(self, *, event=None, clip=0.7, anchor_clip=0.3, n_normalizer=None, **records):
        super().__init__(**records)
        self.event = event or FitEvent((GaussianEvent(20.0, 1000),))
        self.clip, self.anchor_clip = clip, anchor_clip
        self.n_normalizer = self.n if n_normalizer is None else n_normalizer

    def units(self, n_samples):
        return MeanUnits(
            self.event,
            n_samples=n_samples,
            smoothness=self.M,
            clip=self.clip,
            anchor_clip=self.anchor_clip,
            n_normalizer=self.n_normalizer,
            n_outputs=self.K,
        )

    def oracle(self, layout=np.ascontiguousarray, order=slice(None), key=KEY):
        parts, options = self._parts(layout, order)
        return BatchOracle(charge(None, self.event), *parts, **options, key=key)

    def sums_of(self, layout=np.ascontiguousarray, order=slice(None)):
        parts, options = self._parts(layout, order)
        return StatedSums(*parts, **options)

    def _parts(self, layout, order):
        options = {"loss": self.loss, "fit_intercept": self.intercept}
        return (self.units(self.n), self.place(layout, order)), options

    def sums(self, coef, limit, anchor=None, directions=None, inside=slice(None)):
        """The twin: weigh, scale by M^(-1/2) or project, clip by the joint norm, round, add."""
        Z, r = self.rows(inside), self.derivatives(coef, inside)
        if anchor is not None:
            r = r - self.derivatives(anchor, inside)
        F = Z / np.sqrt(self.M) if directions is None else Z @ directions.T
        V = r[:, :, None] * F[:, None, :]
        clip = self.clip if anchor is None else self.anchor_clip
        norms = np.maximum(np.sqrt((V**2).sum(axis=(1, 2))), 1e-300)
        V = V * np.minimum(1, clip / norms)[:, None, None]
        return np.rint(np.clip(V / clip, -1, 1) * limit).sum(axis=0)


# ---- sums --------------------------------------------------------------------------------------


@table("projected", [False, True])
@table("anchored", [False, True])
@table("K", [1, 3])
@table("intercept", [False, True])
@table("weighted", [False, True])
@table("bounded", [False, True])
@table("dtype", [np.float32, np.float64])
def test_sums_are_the_twins_and_the_same_bits_in_every_layout_and_order(
    dtype, bounded, weighted, intercept, K, anchored, projected
):
    case = Case(K=K, dtype=dtype, weighted=weighted, bounded=bounded, intercept=intercept)
    rng = np.random.default_rng(1)
    coef, anchor = rng.normal(0, 0.5, (2, K, case.d))
    anchor = anchor if anchored else None
    directions = rng.normal(size=(3, case.d)) if projected else None
    sums, limit = case.sums_of().of(coef, anchor, directions)
    size = K * (3 if projected else case.d)
    assert sums.shape == (K, size // K) and limit == limit_of(20.0, 2, case.n, size)
    # a product that lies on an edge of rounding may fall to either side
    assert_allclose(sums, case.sums(coef, limit, anchor, directions), rtol=0, atol=2)
    order = rng.permutation(case.n)
    for layout, records in itertools.product(LAYOUTS, (slice(None), order)):
        again, _ = case.sums_of(layout, records).of(coef, anchor, directions)
        assert_array_equal(again, sums)


@table("loss", [HuberLoss(0.3), LogisticLoss()])
@table("p", [1, 7, 8, 9, 17, 600])
@table("n", [1, 15, 16, 17, 1024, 1037])
def test_sums_are_the_twins_at_every_edge_of_lanes_and_tiles(n, p, loss):
    case = Case(n=n, p=p, loss=loss, weighted=True)
    coef = np.random.default_rng(p).standard_normal((1, p + 1)) / np.sqrt(p)
    seen = [case.sums_of(layout).of(coef) for layout in LAYOUTS]
    sums, limit = seen[0]
    for again, _ in seen:
        assert_array_equal(again, sums)
    assert_allclose(sums, case.sums(coef, limit), rtol=0, atol=2)


# ---- releases: the twin knows the noise --------------------------------------------------------


def problem_of(case, n_updates=1, **options):
    options = {"penalty": ElasticNet(), "n_outputs": case.K, **options}
    return Problem(smoothness=case.M, n_penalized=case.d - 1, n_updates=n_updates, **options)


def twin_release(case, noise, coef, z, anchor=None, directions=None, rate=1.0, neighbors=2):
    """Membership by one word a record, then one Gaussian an entry, then the unit."""
    inside = np.arange(case.n)
    if rate < 1:
        inside = np.flatnonzero(np.array(noise.words(case.n), dtype=object) < int(rate * 2**64))
    size = case.d if directions is None else len(directions)
    limit = limit_of(z, neighbors, case.n_normalizer, case.K * size)
    sums = case.sums(coef, limit, anchor, directions, inside)
    bits = bits_of(z, neighbors, case.n_normalizer)
    units = sums + noise.gaussians(case.K * size, bits).reshape(sums.shape) + 0.5
    clip = case.clip if anchor is None else case.anchor_clip
    roots = np.sqrt(case.M) if directions is None else 1.0
    return units * (clip / limit) * roots / (case.n_normalizer * rate)


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("neighboring", RELATIONS)
def test_descent_is_its_twin(neighboring, rate, K):
    z, n_normalizer = 3.0, (301 if neighboring == "replace_one" else 280)
    release = GaussianEvent(z, 9) if rate == 1 else PoissonSampledEvent(rate, z, 9)
    event = FitEvent((release,), neighboring)
    case = Case(K=K, event=event, weighted=True, n_normalizer=n_normalizer)
    noise, w = NoiseSource(KEY), np.zeros((K, case.d))
    for _ in range(9):
        mean = twin_release(case, noise, w, z, rate=rate, neighbors=RELATIONS[neighboring])
        w = w - 0.5 * mean / case.M
    problem = problem_of(case, 9, step_size=0.5, sampling_rate=rate)
    for layout in LAYOUTS:
        found = _sgd.solve(case.oracle(layout), problem).coef
        assert_allclose(found.reshape(w.shape), w, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("K", [1, 3])
def test_variance_reduced_descent_is_its_twin(K):
    event = FitEvent((PoissonSampledEvent(0.4, 5.0, 6), GaussianEvent(2.0, 2)))
    case = Case(K=K, event=event)
    noise, w = NoiseSource(KEY), np.zeros((K, case.d))
    for t in range(6):
        if t % 3 == 0:
            anchor, full = w, twin_release(case, noise, w, 2.0)
        change = twin_release(case, noise, w, 5.0, anchor=anchor, rate=0.4)
        w = w - 0.5 * (full + change) / case.M
    problem = problem_of(case, 6, step_size=0.5, sampling_rate=0.4, n_inner=3)
    found = _svrg.solve(case.oracle(), problem).coef
    assert_allclose(found.reshape(w.shape), w, rtol=1e-6, atol=1e-7)


def test_compressed_descent_is_its_twin():
    case = Case(event=FitEvent((GaussianEvent(2.0, 1),)))
    # two orthonormal rows, longer by the root of how few of the dimensions they are
    frame = np.linalg.qr(np.random.default_rng(4).standard_normal((case.d, 2)))[0].T
    phi = frame * (case.d / 2) ** 0.5 / np.sqrt(case.M)
    mean = twin_release(case, NoiseSource(KEY), np.zeros((1, case.d)), 2.0, directions=phi)[0]
    expected = np.linalg.pinv(phi * np.sqrt(case.M)) @ -mean / np.sqrt(case.M)
    problem = problem_of(case, n_directions=2)
    found = _compgd.solve(case.oracle(), problem, None, np.random.default_rng(4)).coef
    assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


# ---- who is in a sample ------------------------------------------------------------------------


def membership(rate, n, draws):
    """Booleans of shape (draws, n): each record has a coordinate of its own."""
    event = FitEvent((PoissonSampledEvent(rate, 0.01, draws),))  # in the sample or not, by far
    units = MeanUnits(
        event, n_samples=n, smoothness=np.ones(n), clip=1.0, anchor_clip=1.0, n_normalizer=n
    )
    place = LocalPlace(np.eye(n), np.full(n, -1e9))
    oracle = BatchOracle(charge(None, event), units, place, loss=SquaredLoss(), fit_intercept=False)
    seen = [released_mean(oracle, np.zeros(n), sampled=True) for _ in range(draws)]
    inside = np.array(seen) * n * rate
    assert np.all(np.abs(inside - (inside > 0.5)) < 0.25)
    return inside > 0.5


@pytest.mark.parametrize("rate", [0.03, 0.5, 0.9])
def test_each_record_is_in_a_sample_with_the_stated_rate(rate):
    n, draws = 25, 6000
    inside = membership(rate, n, draws)
    z = (inside.sum(axis=0) - draws * rate) / math.sqrt(draws * rate * (1 - rate))
    assert stats.chi2.sf(np.sum(z**2), n) > P_VALUE
    assert stats.chi2.cdf(np.sum(z**2), n) > P_VALUE


def test_records_and_releases_are_sampled_independently():
    n, draws, rate = 12, 20_000, 0.3
    z = (membership(rate, n, draws) - rate) / math.sqrt(rate * (1 - rate))
    pairs = (z.T @ z / math.sqrt(draws))[np.triu_indices(n, 1)]
    assert stats.chi2.sf(np.sum(pairs**2), len(pairs)) > P_VALUE
    for lag in (1, 2):
        later = z[:-lag].T @ z[lag:] / math.sqrt(draws - lag)
        assert stats.chi2.sf(np.sum(later**2), later.size) > P_VALUE
    sizes = np.bincount(membership(rate, n, draws).sum(axis=1), minlength=n + 1)
    law = draws * stats.binom.pmf(np.arange(n + 1), n, rate)
    few = law < 20  # not a sample of a fixed size
    table = np.column_stack([np.append(v[~few], v[few].sum()) for v in (sizes, law)])
    assert stats.chisquare(*table.T).pvalue > P_VALUE


@pytest.mark.parametrize("rate", [2.0**-40, 1 / 3, 1 - 2.0**-53, 1.0])
def test_rates_at_the_ends_of_their_range_are_carried_out(rate):
    inside = membership(rate, 10, 200)
    assert inside.mean() == pytest.approx(rate, abs=0.1 if rate == 1 / 3 else 1e-9)


# ---- what was paid for -------------------------------------------------------------------------


def run(releases, n_updates, solver=_sgd, rate=1.0, **options):
    case = Case(n=20, p=2, event=FitEvent(tuple(releases)))
    problem = problem_of(case, n_updates, sampling_rate=rate, **options)
    return solver.solve(case.oracle(), problem, None, np.random.default_rng(0))


@table(
    ("releases", "rate", "paid"),
    [
        ([GaussianEvent(1.0, 4)], 1.0, 4),
        ([PoissonSampledEvent(0.5, 1.0, 4)], 0.5, 4),
        ([PoissonSampledEvent(0.5, 1.0, 9), GaussianEvent(1.0, 3)], 1.0, 3),
        ([GaussianEvent(1.0, 9)], 0.5, 0),
        ([PoissonSampledEvent(0.5, 1.0, 9)], 1.0, 0),
        ([], 1.0, 0),
    ],
)
def test_one_more_release_than_was_paid_for_is_refused(releases, rate, paid):
    if paid:
        assert run(releases, paid, rate=rate).n_updates == paid
    with pytest.raises(RuntimeError, match="refused a release"):
        run(releases, paid + 1, rate=rate)


@pytest.mark.parametrize(("n_full", "n_sampled"), [(1, 6), (2, 5)])
def test_each_kind_of_release_is_counted_by_itself(n_full, n_sampled):
    paid = [GaussianEvent(1.0, n_full), PoissonSampledEvent(0.5, 1.0, n_sampled)]
    with pytest.raises(RuntimeError, match="refused a release"):
        run(paid, 6, _svrg, 0.5, n_inner=3)
    enough = [GaussianEvent(1.0, 2), PoissonSampledEvent(0.5, 1.0, 6)]
    run(enough, 6, _svrg, 0.5, n_inner=3)


def test_more_directions_than_coordinates_are_refused():
    class Wide(Problem):
        n_coordinates = 9  # what the oracle knows of is 3

    case = Case(n=20, p=2)
    problem = Wide(ElasticNet(), np.ones(9), 2, 1, n_directions=5)
    with pytest.raises(RuntimeError, match="refused a release"):
        _compgd.solve(case.oracle(), problem, None, np.random.default_rng(0))
    with pytest.raises(MemoryError):  # the sums themselves refuse, too
        case.sums_of().of(np.zeros((1, 3)), directions=np.ones((4, 3)))


def test_an_oracle_is_made_once_and_never_copied():
    oracle = Case().oracle()
    with pytest.raises(TypeError, match="never copied"):
        oracle.__reduce__()
    case = Case()
    with pytest.raises(RuntimeError, match="made once"):
        oracle.__init__(
            charge(None, case.event), case.units(case.n), LocalPlace(case.X, case.y), loss=case.loss
        )
    for unmade in (BatchOracle.__new__(BatchOracle),):
        with pytest.raises(RuntimeError, match="refused a release"):
            _sgd.solve(unmade, problem_of(case))


# ---- one record's vector; neighbours are in test_tape.py -----------------------------------------

diverged = st.one_of(extreme, st.sampled_from([math.inf, -math.inf, math.nan]))
positive = st.one_of(st.floats(-19.0, 19.0).map(lambda x: 10.0**x), st.floats(0.1, 10))
small_clip = st.one_of(positive, st.floats(-29.0, 0.0).map(lambda x: 10.0**x))


@st.composite
def questions(draw):
    """An extreme record, and a query of the public: iterate, anchor, directions."""
    p, K = draw(st.sampled_from([1, 2, 8])), draw(st.sampled_from([1, 2, 5]))
    loss = MultinomialLoss() if K > 1 else draw(st.sampled_from([SquaredLoss(), HuberLoss(2.0)]))
    single = draw(st.booleans())
    features = st.floats(width=32, allow_nan=False, allow_infinity=False) if single else extreme
    records = {
        "X": draw(hnp.arrays(np.float32 if single else float, (1, p), elements=features)),
        "y": draw(hnp.arrays(float, 1, elements=st.integers(0, K) if K > 1 else extreme)),
        "weights": draw(hnp.arrays(float, 1, elements=weight)),
    }
    public = {
        "loss": loss,
        "M": draw(hnp.arrays(float, p + 1, elements=positive)),
        "clip": draw(small_clip),
        "anchor_clip": draw(small_clip),
        "K": K,
    }
    m = draw(st.integers(0, p + 1))
    coef, anchor = (draw(hnp.arrays(float, (K, p + 1), elements=diverged)) for _ in range(2))
    directions = draw(hnp.arrays(float, (m, p + 1), elements=diverged)) if m else None
    return records, public, (coef, anchor if draw(st.booleans()) else None, directions)


def sums_of(records, public, query, event=None):
    """The unreleased sums of an oracle with these records."""
    event = event or FitEvent((GaussianEvent(10.0, 1),))
    units = MeanUnits(
        event,
        n_samples=len(records["y"]),
        smoothness=public["M"],
        clip=public["clip"],
        anchor_clip=public["anchor_clip"],
        n_normalizer=len(records["y"]),
        n_outputs=public["K"],
    )
    place = LocalPlace(records["X"], records["y"], records["weights"])
    return StatedSums(units, place, loss=public["loss"]).of(*query)


@given(questions())
@properties
def test_the_norm_of_one_record_never_exceeds_the_limit(question):
    sums, limit = sums_of(*question)
    assert_array_equal(sums, np.rint(sums))  # finite, and integer
    assert np.max(np.abs(sums)) <= limit
    assert np.linalg.norm(sums) <= norm_of(limit, sums.size) * (1 + 1e-15)


def one_record(x, r, *, K, p=4, clip=1.0, M=1.0):
    """A record whose derivatives are of magnitude r, features x, and the norm of its integers."""
    records = {"X": np.full((1, p), x), "y": np.zeros(1), "weights": np.array([abs(r)])}
    loss = MultinomialLoss() if K > 1 else SquaredLoss()
    if K == 1:
        records["y"][0], records["weights"][0] = -r, 1.0
    public = {"loss": loss, "M": np.full(p + 1, M), "clip": clip, "anchor_clip": clip, "K": K}
    return records, public, (np.zeros((K, p + 1)),)


@table("K", [1, 7])
@table("clip", [1e-29, 1e-25, 1e-20, 1e-8, 1.0, 1e29])
@table("M", [1e-60, 1.0, 1e60])
def test_a_norm_is_clipped_at_every_magnitude_of_derivatives_and_features(M, clip, K):
    # squares of either may overflow or underflow where their product does not
    event = FitEvent((GaussianEvent(1e6, 1),))
    for a, b in itertools.product(np.linspace(-320, 307, 40), np.linspace(-320, 300, 40)):
        question = one_record(10.0**a, 10.0**b, K=K, clip=clip, M=M)
        sums, limit = sums_of(*question, event)
        assert np.linalg.norm(sums) <= norm_of(limit, sums.size) * (1 + 1e-15), (a, b)


@pytest.mark.parametrize("K", [1, 3])
def test_the_sensitivity_is_reached_so_no_noise_is_wasted(K):
    question = one_record(1.0, 1e9, K=K)
    sums, limit = sums_of(*question)
    assert limit * 0.999 <= np.linalg.norm(sums) <= norm_of(limit, sums.size)
