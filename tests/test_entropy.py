"""The entropy of tests: the same in every run of a test, and another one for each source."""

import os
import secrets

import numpy as np
import pytest
from entropy import Stream
from sklearn.utils import check_random_state

from dpcd_sklearn import DPLassoCD

pytestmark = pytest.mark.skipif(
    not isinstance(os.urandom, Stream), reason="DPCD_EXPLORE asks for the system's entropy"
)


def a_few_draws():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50, 3))
    model = DPLassoCD(alpha=0.0, feature_bounds=(-1, 1), target_bounds=(-1, 1), max_iter=2)
    return [
        *(model.fit(X, X[:, 0]).coef_.tolist() for _ in range(2)),
        secrets.token_hex(),
        np.random.default_rng().normal(),
        check_random_state(None).normal(),
    ]


def test_what_has_no_seed_follows_from_the_name_of_the_test():
    drawn = []
    for name in ("a", "a", "b"):
        with os.urandom.within(name):
            drawn.append(a_few_draws())
    assert drawn[0] == drawn[1]
    assert all(one != other for one, other in zip(drawn[0], drawn[2], strict=True))
    assert drawn[0][0] != drawn[0][1]  # fits without a seed differ from one another all the same
