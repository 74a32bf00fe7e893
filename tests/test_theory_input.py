"""Questions to the theory that make no sense are refused, by the name of what is wrong."""

import math

import numpy as np
import pytest
from tables import table

from dpcd_sklearn.inspection import theoretical_iterations, utility_bounds

N = 10_000
M = [4.0, 1.0, 9.0, 1.0]
FACTS = {"lipschitz": [2.0, 1.0, 3.0, 0.5], "radius": [1.0, 2.0, 0.0, 1.0], "delta": 1e-6}

BAD = [
    ("n_samples", 0, ValueError),
    ("n_samples", 10.0, TypeError),
    ("n_samples", True, TypeError),
    ("smoothness", 1.0, ValueError),
    ("smoothness", [], ValueError),
    ("smoothness", [[1.0, 1.0]], ValueError),
    ("smoothness", [1.0, 0.0, 1.0, 1.0], ValueError),
    ("smoothness", [1.0, math.nan, 1.0, 1.0], ValueError),
    ("smoothness", "large", TypeError),
    ("smoothness", [True, True, True, True], TypeError),
    ("lipschitz", -1.0, ValueError),
    ("lipschitz", [1.0, 1.0], ValueError),
    ("lipschitz", math.nan, ValueError),
    ("lipschitz", "1", TypeError),
    ("lipschitz", True, TypeError),
    ("radius", 0.0, ValueError),
    ("radius", math.inf, ValueError),
    ("radius", "far", TypeError),
    ("radius", True, TypeError),
    ("radius", None, TypeError),
    ("radius", [1.0, 1.0, 1.0], ValueError),
    ("radius", [1.0, 1.0, 1.0, -1.0], ValueError),
    ("radius", [0.0, 0.0, 0.0, 0.0], ValueError),
    ("radius", [1.0, 1.0, 1.0, math.nan], ValueError),
    ("radius", ["1", "1", "1", "1"], TypeError),
    ("epsilon", 0.0, ValueError),
    ("epsilon", math.nan, ValueError),
    ("epsilon", math.inf, ValueError),
    ("epsilon", "1", TypeError),
    ("delta", 0.0, ValueError),
    ("delta", 1.0, ValueError),
    ("delta", True, TypeError),
    ("strong_convexity", 0.0, ValueError),
    ("strong_convexity", math.nan, ValueError),
    ("strong_convexity", "strong", TypeError),
    ("strong_convexity", [1.0, 1.0], ValueError),
    ("strong_convexity", [1.0, 1.0, 1.0, 0.0], ValueError),
    ("norm", "l1", ValueError),
    ("norm", None, ValueError),
    ("full_lipschitz", 0.0, ValueError),
    ("full_lipschitz", [1.0], TypeError),
    ("block_size", 5, ValueError),
    ("block_size", 0, ValueError),
    ("block_size", 2.0, TypeError),
    ("initial_gap", -1.0, ValueError),
    ("initial_gap", math.nan, ValueError),
    ("failure_probability", 0.0, ValueError),
    ("failure_probability", "0.1", TypeError),
]


@table(("name", "value", "error"), BAD)
def test_bad_facts_are_refused_by_name(name, value, error):
    facts = {"n_samples": N, "smoothness": M} | FACTS | {name: value}
    with pytest.raises(error, match=name):
        utility_bounds(**facts)
    with pytest.raises(error, match=name):
        theoretical_iterations("DP-CD", **facts)


@pytest.mark.parametrize(
    ("facts", "error", "words"),
    [
        ({"algorithm": "DP-SGD"}, ValueError, "algorithm must be one of"),
        ({"algorithm": None}, ValueError, "algorithm must be one of"),
        ({"algorithm": "DP-SkGD", "sampling": "greedy"}, ValueError, "sampling must be one of"),
        ({"algorithm": "DP-CD", "sampling": "full"}, ValueError, "only DP-SkGD"),
        ({"algorithm": "DP-CD", "spread": 0.5}, ValueError, "spread"),
        ({"algorithm": "DP-CD", "spread": 4.5}, ValueError, "spread"),
        ({"algorithm": "DP-CD", "spread": "1"}, TypeError, "spread"),
    ],
)
def test_bad_questions_are_refused(facts, error, words):
    with pytest.raises(error, match=words):
        theoretical_iterations(n_samples=N, smoothness=M, **FACTS | facts)


def test_inputs_are_not_changed():
    smoothness, radius = np.array(M), np.array(FACTS["radius"])
    L = np.array(FACTS["lipschitz"])
    utility_bounds(N, smoothness, radius=radius, lipschitz=L, full_lipschitz=1.0)
    np.testing.assert_array_equal(smoothness, M)
    np.testing.assert_array_equal(radius, FACTS["radius"])
    np.testing.assert_array_equal(L, FACTS["lipschitz"])
