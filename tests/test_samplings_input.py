"""Samplings refuse parameters that make no sense, by the name of what is wrong."""

import math

import numpy as np
import pytest
from tables import table

from dpcd_sklearn import DPLinearRegressor
from dpcd_sklearn.samplings import (
    BlockSampling,
    FullSampling,
    NiceSampling,
    Sampling,
    SingleSampling,
)
from dpcd_sklearn.solvers import SkGD

P = 5
MAKERS = {
    "single": SingleSampling,
    "block": lambda n_coordinates: BlockSampling(n_coordinates, 2),
    "nice": lambda n_coordinates: NiceSampling(n_coordinates, 2),
    "full": FullSampling,
}
NO_COUNT = [
    (0, ValueError),
    (-1, ValueError),
    (2.0, TypeError),
    (math.nan, TypeError),
    (True, TypeError),
    (np.True_, TypeError),
    ("2", TypeError),
    (None, TypeError),
]
NO_PROBABILITIES = [
    ([0.5] * 4, ValueError),  # one too few or, for blocks, too many
    ([], ValueError),
    (1.0, ValueError),
    (np.ones((P, 1)), ValueError),
    ("-", ValueError),
    ("nan", ValueError),
    ("inf", ValueError),
    ("zero", ValueError),
    ("huge", ValueError),
    ("words", TypeError),
    ("booleans", TypeError),
    ("complex", TypeError),
    ("objects", TypeError),
]


def spoiled(kind, size):
    """Probabilities of the right length that are wrong in one way."""
    fine = [1.0] * (size - 1)
    return {
        "-": [*fine, -1e-300],
        "nan": [*fine, math.nan],
        "inf": [*fine, math.inf],
        "zero": [0.0] * size,
        "huge": [1e308] * size,
        "words": ["1"] * size,
        "booleans": [True] * size,
        "complex": [1j] * size,
        "objects": [None] * size,
    }[kind]


@table(("value", "error"), NO_COUNT)
@table("maker", MAKERS.values())
def test_the_number_of_coordinates_is_a_positive_integer(maker, value, error):
    with pytest.raises(error, match="n_coordinates must be"):
        maker(value)


@pytest.mark.parametrize(("value", "error"), NO_COUNT)
@pytest.mark.parametrize("maker", [BlockSampling, NiceSampling])
def test_the_size_of_a_block_is_a_positive_integer(maker, value, error):
    with pytest.raises(error, match="block_size must be"):
        maker(P, value)


@table(("value", "error"), NO_PROBABILITIES)
@table("sampling", ["single", "block"])
def test_probabilities_that_are_none(sampling, value, error):
    size = {"single": P, "block": 3}[sampling]
    if isinstance(value, str):
        value = spoiled(value, size)
    with pytest.raises(error, match="probabilities must"):
        SingleSampling(P, value) if sampling == "single" else BlockSampling(P, 2, value)


@pytest.mark.parametrize("kind", ["-", "nan", "inf", "zero", "huge", "words"])
def test_smoothness_that_gives_no_importance(kind):
    sampling = BlockSampling(P, 2, [1, 1, 2])
    for wrong in (spoiled(kind, P), np.ones(P - 1), None):
        with pytest.raises((TypeError, ValueError), match="smoothness must"):
            sampling.importance(wrong)
    np.testing.assert_array_equal(sampling.probabilities, [0.25, 0.25, 0.5])  # as before


@pytest.mark.parametrize(
    ("partition", "error"),
    [
        ([[0, 1], [2, 3]], ValueError),
        ([[0, 1], [1, 2, 3, 4]], ValueError),
        ([[0, 1, 2, 3, 4], []], ValueError),
        ([[0, 1], [2, 3, 5]], ValueError),
        ([[-1, 1], [2, 3, 4]], ValueError),
        ([], ValueError),
        ([[[0, 1], [2, 3]], [4]], ValueError),
        ([[0.0, 1.0], [2, 3, 4]], TypeError),
        ([["0"], [1, 2, 3, 4]], TypeError),
        ([[True, False], [2, 3, 4]], TypeError),
        pytest.param(object(), TypeError, id="no partition at all"),
    ],
    ids=str,
)
def test_blocks_that_are_no_partition(partition, error):
    with pytest.raises(error, match="partition"):
        BlockSampling(P, partition)


def test_what_is_allowed():
    # NumPy's integers; probabilities up to a factor, some of them zero; sizes beyond the number
    weights = np.array([1, 0, 0, 0, 3])
    single = SingleSampling(np.int32(P), weights)
    weights[:] = 0  # the sampling has its own
    np.testing.assert_array_equal(single.probabilities, [0.25, 0, 0, 0, 0.75])
    drawn = single.draw(np.random.default_rng(0), 1000)
    assert set(drawn.ravel().tolist()) == {0, 4}
    assert BlockSampling(P, np.int64(100)).block_size == NiceSampling(P, 100).block_size == P
    partition = BlockSampling(P, (np.array([4, 0]), [1, 3, 2]))
    assert [block.tolist() for block in partition.blocks] == [[0, 4], [1, 2, 3]]
    assert BlockSampling(P, 2).importance([0, 0, 4, 4, 4]).probabilities.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_every_sampling_draws_ascending_indices_within_its_size(maker):
    sampling = maker(P)
    drawn = list(sampling.draw(np.random.default_rng(0), 50))
    assert len(drawn) == 50
    for block in drawn:
        assert block.dtype == np.intp
        assert 1 <= len(block) <= sampling.block_size
        assert 0 <= block[0] and block[-1] < P and (np.diff(block) > 0).all()
    assert sampling.curvature(float) >= 1
    assert isinstance(sampling, Sampling)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_every_sampling_is_taken_by_the_estimator(maker):
    X = np.random.default_rng(0).uniform(-1, 1, size=(40, P - 1))
    model = DPLinearRegressor(solver=SkGD(sampling=maker(P)), epsilon=1e6, max_iter=3)
    assert model.fit(X, X[:, 0]).coef_.shape == (P - 1,)
    if maker is not FullSampling:  # which is then too large
        return
    with pytest.raises(ValueError, match=r"sampling\.block_size must be an integer in \[1, 5\]"):
        model.set_params(solver__sampling=maker(P + 1)).fit(X, X[:, 0])


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("value", [2**31, 10**15, 10**400])
def test_more_coordinates_than_a_vector_can_hold_are_refused(maker, value):
    with pytest.raises(ValueError, match="n_coordinates must be"):
        maker(value)
