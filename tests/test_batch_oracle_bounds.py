"""Mean gradients at stated iterates: no record counts for more than the limit, whatever it is."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from tables import table
from test_privacy_properties import RELATIONS, extreme, properties, weight
from twins import bits_of, limit_of, norm_of
from unreleased import StatedSums

from dpcd_sklearn.losses import HuberLoss, MultinomialLoss, SquaredLoss
from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent, PoissonSampledEvent
from dpcd_sklearn.privacy.mechanisms import MeanUnits
from dpcd_sklearn.privacy.sums import LocalPlace

# ---- one record's vector, and neighbours -------------------------------------------------------

diverged = st.one_of(extreme, st.sampled_from([math.inf, -math.inf, math.nan]))
positive = st.one_of(st.floats(-19.0, 19.0).map(lambda x: 10.0**x), st.floats(0.1, 10))
small_clip = st.one_of(positive, st.floats(-29.0, 0.0).map(lambda x: 10.0**x))


@st.composite
def questions(draw, n=1):
    """n extreme records, and a query of the public: iterate, anchor, directions."""
    p, K = draw(st.sampled_from([1, 2, 8])), draw(st.sampled_from([1, 2, 5]))
    loss = MultinomialLoss() if K > 1 else draw(st.sampled_from([SquaredLoss(), HuberLoss(2.0)]))
    single = draw(st.booleans())
    features = st.floats(width=32, allow_nan=False, allow_infinity=False) if single else extreme
    records = {
        "X": draw(hnp.arrays(np.float32 if single else float, (n, p), elements=features)),
        "y": draw(hnp.arrays(float, n, elements=st.integers(0, K) if K > 1 else extreme)),
        "weights": draw(hnp.arrays(float, n, elements=weight)),
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


def sums_of(records, public, query, event=None, n=None):
    """The unreleased sums of an oracle with these records."""
    event = event or FitEvent((GaussianEvent(10.0, 1),))
    units = MeanUnits(
        event,
        n_samples=len(records["y"]),
        smoothness=public["M"],
        clip=public["clip"],
        anchor_clip=public["anchor_clip"],
        n_normalizer=n or len(records["y"]),
        n_outputs=public["K"],
    )
    place = LocalPlace(records["X"], records["y"], records["weights"], public.get("bounds"))
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


@table("K", [1, 2, 7])
@table("clip", [1e-29, 1e-25, 1e-20, 1e-8, 1.0, 1e29])
@table("M", [1e-20, 1.0, 1e20])
def test_a_norm_is_clipped_at_every_magnitude_of_derivatives_and_features(M, clip, K):
    # squares of either may overflow or underflow where their product does not
    event = FitEvent((GaussianEvent(1e6, 1),))
    for a, b in itertools.product(np.linspace(-320, 307, 40), np.linspace(-320, 300, 40)):
        question = one_record(10.0**a, 10.0**b, K=K, clip=clip, M=M)
        sums, limit = sums_of(*question, event)
        assert np.linalg.norm(sums) <= norm_of(limit, sums.size) * (1 + 1e-15), (a, b)


@st.composite
def neighbours(draw):
    records, public, query = draw(questions(n=3))
    i, p = draw(st.integers(0, 2)), records["X"].shape[1]
    other = {name: values.copy() for name, values in records.items()}
    big = st.floats(width=32, allow_nan=False, allow_infinity=False)
    kind = big if records["X"].dtype == np.float32 else extreme
    other["X"][i] = draw(hnp.arrays(records["X"].dtype, p, elements=kind))
    other["y"][i] = draw(st.integers(0, 4) if public["K"] > 1 else extreme)
    other["weights"][i] = draw(weight)
    return records, other, i, public, query


@given(neighbours(), st.floats(0.01, 1e4))
@properties
def test_neighbours_move_the_sums_by_at_most_the_sensitivity(pair, z):
    one, other, i, public, query = pair
    event = FitEvent((GaussianEvent(z, 1),))
    apart = sums_of(one, public, query, event)[0] - sums_of(other, public, query, event)[0]
    assert np.linalg.norm(apart) * z <= 2.0 ** bits_of(z, 2, 3) * (1 + 1e-12)
    fewer = {name: np.delete(values, i, axis=0) for name, values in one.items()}
    event = FitEvent((GaussianEvent(z, 1),), "add_remove")
    sums = [sums_of(records, public, query, event, n=100)[0] for records in (one, fewer)]
    assert np.linalg.norm(sums[0] - sums[1]) * z <= 2.0 ** bits_of(z, 1, 100) * (1 + 1e-12)


@pytest.mark.parametrize("K", [1, 3])
def test_the_sensitivity_is_reached_so_no_noise_is_wasted(K):
    question = one_record(1.0, 1e9, K=K)
    sums, limit = sums_of(*question)
    assert limit * 0.999 <= np.linalg.norm(sums) <= norm_of(limit, sums.size)


@given(
    st.floats(-9, 15).map(lambda x: 10.0**x),
    st.sampled_from(list(RELATIONS)),
    st.integers(1, 10**12),
    st.booleans(),
    st.integers(1, 8),
)
@example(1.0, "replace_one", 2**26, False, 1)
@properties
def test_the_noise_is_the_multiplier_times_the_sensitivity_as_if_all_were_sampled(
    z, neighboring, n, sampled, m
):
    release = PoissonSampledEvent(0.01, z, 1) if sampled else GaussianEvent(z, 1)
    event = FitEvent((release,), neighboring)
    neighbors, bits = RELATIONS[neighboring], bits_of(z, RELATIONS[neighboring], n)
    public = {"smoothness": np.ones(9), "clip": 1.0, "anchor_clip": 1.0, "n_samples": 1}
    public["n_normalizer"] = n
    if bits < 1 or limit_of(z, neighbors, n, 9) < 1:
        with pytest.raises(ValueError, match="out of the range"):
            MeanUnits(event, **public)
        return
    place = LocalPlace(np.ones((1, 8)), np.zeros(1))
    sums = StatedSums(MeanUnits(event, **public), place, loss=SquaredLoss())
    _, limit = sums.of(np.zeros(9), None, np.ones((m, 9)), sampled=sampled)
    assert limit == limit_of(z, neighbors, n, m)
    assert 2.0**bits >= z * neighbors * norm_of(limit, m) * (1 - 2.0**-52)
    assert n * limit <= 2.0**51  # sums of n records stay exact
