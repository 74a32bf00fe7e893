"""The audit of transformers: an honest release passes, half the noise is noticed."""

import pytest

from dpcd_sklearn.inspection import audit
from dpcd_sklearn.preprocessing import (
    DPPCA,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPRobustScaler,
    DPSimpleImputer,
    DPStandardScaler,
)
from dpcd_sklearn.privacy.mechanisms import (
    _curvature_units,
    _present_means,
    _quantiles,
    _running_counts,
)

pytestmark = pytest.mark.filterwarnings("ignore")
BOUNDED = {"feature_bounds": (-2.0, 2.0)}
COUNTS = DPQuantileTransformer(**BOUNDED)
# Of each transformer the kind of release, and where its sensitivity stands.
OF_KIND = {
    "choices of scales": (DPSimpleImputer(), _quantiles, "score_sensitivity"),
    "running counts": (COUNTS, _running_counts, "running_sensitivity"),
    "means of what is present": (
        DPSimpleImputer("mean", **BOUNDED), _present_means, "present_sensitivity",
    ),
    "second moments": (DPPCA(), _curvature_units, "matrix_sensitivity"),
}  # fmt: skip
ADDS = {"neighboring": "add_remove", "n_public": 2000, "delta": 1e-6}
SMALL = {"n_samples": 2000, "n_features": 4, "n_runs": 150}


@pytest.mark.parametrize(
    "relation", [{}, pytest.param(ADDS, marks=pytest.mark.slow)], ids=["replace_one", "add_remove"]
)
@pytest.mark.parametrize("kind", OF_KIND)
def test_an_honest_release_passes(kind, relation):
    result = audit(OF_KIND[kind][0].set_params(**relation), **SMALL)
    (row,) = result.releases
    assert row.kind == kind and row.verdict != "contradiction" and result.unpaid == ()
    assert row.power > 0.9 or relation


@pytest.mark.parametrize("kind", OF_KIND)
def test_half_the_noise_is_noticed(monkeypatch, kind):
    step, module, name = OF_KIND[kind]
    exact = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args: exact(*args) / 2)
    result = audit(step.set_params(neighboring="replace_one", n_public=None), **SMALL)
    assert result.verdict == "contradiction" and result.releases[0].kind == kind


@pytest.mark.slow
@pytest.mark.parametrize("step", [DPRobustScaler(), DPSimpleImputer("mean")])
def test_releases_behind_choices_are_looked_at_too(step):
    result = audit(step, n_samples=2000, n_features=2, n_runs=100)
    assert len(result.releases) == 2 and result.verdict != "contradiction"


def test_choices_that_move_records_count_two_under_add_remove():
    result = audit(DPStandardScaler().set_params(**ADDS), n_samples=2000, n_features=3, n_runs=150)
    assert result.verdict != "contradiction"


def test_what_is_not_known_release_by_release_says_so():
    for step in (DPOneHotEncoder(), DPSimpleImputer("most_frequent")):
        with pytest.raises((TypeError, ValueError)):
            audit(step, n_samples=500, n_features=2)
