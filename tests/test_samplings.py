"""Samplings of coordinates: their blocks and their laws.

Laws are judged by chi-square statistics whose false alarms are rarer than 1e-6 each.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpcd_sklearn.samplings import (
    SAMPLINGS,
    BlockSampling,
    FullSampling,
    NiceSampling,
    Sampling,
    SingleSampling,
)
from dpcd_sklearn.samplings._samplings import draw_indices

P_VALUE = 1e-6


def drawn(sampling, count, seed=0):
    return [tuple(map(int, block)) for block in sampling.draw(np.random.default_rng(seed), count)]


def counts_of(blocks, expected):
    return [blocks.count(block) for block in expected]


@pytest.mark.parametrize("name", SAMPLINGS)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 20), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_blocks_are_ascending_coordinates_of_at_most_the_block_size(name, p, size, count, seed):
    sampling = SAMPLINGS[name](*((p, size) if name in ("block", "nice") else (p,)))
    blocks = list(sampling.draw(np.random.default_rng(seed), count))
    assert len(blocks) == count
    assert isinstance(sampling, Sampling) and sampling.curvature(float) >= 1
    assert 1 <= sampling.block_size <= p
    for block in blocks:
        assert block.dtype == np.intp and 1 <= len(block) <= sampling.block_size
        assert block[0] >= 0 and block[-1] < p and (np.diff(block) > 0).all()


@pytest.mark.parametrize("probabilities", [None, [0.1, 0.2, 0.3, 0.4]])
def test_single_coordinates_have_their_probabilities(probabilities):
    blocks = drawn(SingleSampling(4, probabilities), 20_000)
    law = np.full(4, 0.25) if probabilities is None else np.array(probabilities)
    seen = counts_of(blocks, [(j,) for j in range(4)])
    assert stats.chisquare(seen, 20_000 * law).pvalue > P_VALUE


@pytest.mark.parametrize("probabilities", [None, [0.5, 0.2, 0.3]])
def test_blocks_of_a_partition_have_their_probabilities(probabilities):
    sampling = BlockSampling(5, [[4, 0], [2], [3, 1]], probabilities)
    blocks = drawn(sampling, 20_000)
    law = np.full(3, 1 / 3) if probabilities is None else np.array(probabilities)
    seen = counts_of(blocks, [(0, 4), (2,), (1, 3)])
    assert sum(seen) == 20_000
    assert stats.chisquare(seen, 20_000 * law).pvalue > P_VALUE


@given(st.integers(1, 50), st.integers(1, 60))
def test_blocks_of_a_size_are_a_partition_of_consecutive_coordinates(p, size):
    blocks = BlockSampling(p, size).blocks
    assert list(np.concatenate(blocks)) == list(range(p))
    assert {len(block) for block in blocks[:-1]} <= {min(size, p)}
    assert 1 <= len(blocks[-1]) <= size


def test_importance_follows_the_largest_smoothness_of_a_block():
    M = np.array([1.0, 6.0, 2.0, 1.0, 1.0])
    sampling = BlockSampling(5, 2).importance(M)
    np.testing.assert_allclose(sampling.probabilities, np.array([6, 2, 1]) / 9)
    seen = counts_of(drawn(sampling, 20_000), [(0, 1), (2, 3), (4,)])
    assert stats.chisquare(seen, 20_000 * np.array([6, 2, 1]) / 9).pvalue > P_VALUE


def test_nice_sets_are_all_alike():
    expected = list(itertools.combinations(range(5), 3))
    seen = counts_of(drawn(NiceSampling(5, 3), 20_000), expected)
    assert sum(seen) == 20_000
    assert stats.chisquare(seen).pvalue > P_VALUE


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-300, 1e300)), min_size=1, max_size=8))
def test_what_has_no_probability_is_never_drawn(weights):
    class Ends:
        """The least and the largest uniform numbers that a generator gives."""

        def random(self, count):
            return np.resize([0.0, 1 - 2.0**-53, 0.5], count)

    if any(weights):
        found = draw_indices(Ends(), len(weights), np.array(weights), 9)
        assert all(weights[i] > 0 for i in found)


def test_nice_sampling_interpolates_the_curvature_and_others_take_that_of_their_size():
    def spread(size):
        return {1: 1.0, 2: 1.9, 5: 3.0}[size]

    assert SingleSampling(5).curvature(spread) == 1.0
    assert BlockSampling(5, 2).curvature(spread) == 1.9
    assert FullSampling(5).curvature(spread) == 3.0
    assert NiceSampling(5, 2).curvature(spread) == pytest.approx(1 + 1 / 4 * 2)
    assert NiceSampling(5, 5).curvature(spread) == pytest.approx(3.0)
    assert NiceSampling(1, 1).curvature(spread) == 1.0


def test_the_expected_curvature_of_a_nice_set_is_at_most_its_bound():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 6)) + 0.7 * rng.normal(size=(30, 1))
    H = A.T @ A
    D = np.sqrt(np.diag(H))
    H = H / np.outer(D, D)
    largest = np.linalg.eigvalsh(H)[-1]
    bound = NiceSampling(6, 3).curvature(lambda size: largest)
    # E x_S' H x_S <= bound (tau / p) |x|^2 for every x: of a quadratic form, its matrix
    sets = list(itertools.combinations(range(6), 3))
    mean = np.zeros((6, 6))
    for chosen in sets:
        mean[np.ix_(chosen, chosen)] += H[np.ix_(chosen, chosen)] / len(sets)
    assert np.linalg.eigvalsh(mean)[-1] <= bound * 3 / 6 * (1 + 1e-12)


def test_what_is_allowed():
    # NumPy's integers; probabilities up to a factor, some of them zero; sizes beyond the number
    weights = np.array([1, 0, 0, 0, 3])
    single = SingleSampling(np.int32(5), weights)
    weights[:] = 0  # the sampling has its own
    np.testing.assert_array_equal(single.probabilities, [0.25, 0, 0, 0, 0.75])
    assert set(drawn(single, 1000)) == {(0,), (4,)}
    assert BlockSampling(5, np.int64(100)).block_size == NiceSampling(5, 100).block_size == 5
    partition = BlockSampling(5, (np.array([4, 0]), [1, 3, 2]))
    assert [block.tolist() for block in partition.blocks] == [[0, 4], [1, 2, 3]]
    assert BlockSampling(5, 2).importance([0, 0, 4, 4, 4]).probabilities.tolist() == [0, 0.5, 0.5]
