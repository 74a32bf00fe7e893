"""The entropy of tests: the same in every run of a test, and another one for each source."""

import os
import secrets
import threading

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


def test_a_stream_goes_on_after_one_within():
    with os.urandom.within("a"):
        whole = [os.urandom(100), os.urandom(7)]
        others = np.random.default_rng(), np.random.normal()  # noqa: NPY002
    with os.urandom.within("a"):
        first = os.urandom(100)
        with os.urandom.within("b"):
            assert os.urandom(100) != first
        assert [first, os.urandom(7)] == whole
        assert (np.random.default_rng().normal(), np.random.normal()) == (  # noqa: NPY002
            others[0].normal(),
            others[1],
        )


def test_threads_never_share_a_draw():
    drawn = []
    threads = [
        threading.Thread(target=lambda: drawn.extend(os.urandom(32) for _ in range(500)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == len(set(drawn)) == 2000
