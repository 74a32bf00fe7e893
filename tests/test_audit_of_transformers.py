"""The audit of transformers: an honest release passes, half the threshold is noticed.

Half the noise is in test_neighbours.py, test_quantiles.py and test_select_k_best.py.
"""

import math

import pytest
from sklearn.base import clone

from dpcd_sklearn.inspection import audit
from dpcd_sklearn.inspection._release_audit import _Contest
from dpcd_sklearn.inspection._release_tests import error_bound
from dpcd_sklearn.preprocessing import (
    DPPCA,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSelectKBest,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    _category_encoder,
    _simple_imputer,
)
from dpcd_sklearn.privacy.mechanisms import _tables

pytestmark = pytest.mark.filterwarnings("ignore")
BOUNDED = {"feature_bounds": (-2.0, 2.0)}
COUNTS = DPQuantileTransformer(**BOUNDED)
STATED = [[0, 1]] * 4  # so that sums of the target are all that is learnt
# Each transformer's kind of release.
OF_KIND = {
    "choices of scales": DPSimpleImputer(),
    "running counts": COUNTS,
    "means of what is present": DPSimpleImputer("mean", **BOUNDED),
    "second moments": DPPCA(),
    "counts of categories": DPOneHotEncoder(),
    "choices of columns": DPSelectKBest(5),
    "choices of columns by classes": DPSelectKBest(5, classes=["no", "yes"]),
    "sums of the target": DPTargetEncoder(STATED),
    "sums of the target of classes": DPTargetEncoder(STATED, classes=["no", "yes"]),
}
ADDS = {"neighboring": "add_remove", "n_public": 2000, "delta": 1e-6}
every_relation = pytest.mark.parametrize(
    "relation", [{}, pytest.param(ADDS, marks=pytest.mark.slow)], ids=["replace_one", "add_remove"]
)
SMALL = {"n_samples": 2000, "n_features": 4, "n_runs": 150}


WIDE = SMALL | {"n_features": 24}


def size_for(step):
    return WIDE if isinstance(step, DPSelectKBest) else SMALL


def row_of(result, kind):
    (row,) = [row for row in result.releases if kind.startswith(row.kind)]
    return row


LONE = "names of lone categories"


def contradicted(result):
    """Rows that are contradicted at a confidence that an honest release lacks once in 100,000."""
    for row in result.releases:
        n = result.n_runs * (1 if row.kind == LONE else 2)
        upper = error_bound(round(row.error * n), n, 1 - 1e-5, alike=row.kind == LONE)
        if upper < row.error_claimed:
            yield row


@every_relation
@pytest.mark.parametrize("kind", OF_KIND)
def test_an_honest_release_passes(kind, relation):
    step = OF_KIND[kind].set_params(**relation)
    result = audit(step, **size_for(step) | {"n_runs": 200})
    row = row_of(result, kind)
    print(f"{kind}: power {row.power:.4f}, noticed from {row.noticed_noise} of the noise")
    assert not list(contradicted(result)) and result.unpaid == ()
    assert row.power > 0.9 or relation


# ---- the threshold of categories ----------------------------------------------------------------


class LowThreshold(_tables.PartitionUnits):
    """A mutant: half the way from one record to the threshold."""

    def __init__(self, *args, **sizes):
        super().__init__(*args, **sizes)
        self.least = self.units + (self.least - self.units) // 2


@pytest.mark.parametrize(
    ("step", "size"),
    [
        (DPOneHotEncoder(), SMALL),
        (DPOneHotEncoder(epsilon=1.0), WIDE),
        (DPSimpleImputer("most_frequent"), SMALL),
    ],
    ids=["small epsilon", "large epsilon", "imputer"],
)
@every_relation
def test_half_the_threshold_is_noticed_and_the_whole_is_not(monkeypatch, step, size, relation):
    monkeypatch.setattr(_Contest, "_best", lambda self: None)  # other tests look at counts
    step = clone(step).set_params(**relation)
    row = row_of(audit(step, **size), LONE)
    print(f"power {row.power:.4f}")
    assert row.verdict == "passed" and row.error == 1.0 and row.power > 0.9
    for module in (_category_encoder, _simple_imputer):
        monkeypatch.setattr(module, "PartitionUnits", LowThreshold)
    row = row_of(audit(step, **size), LONE)
    assert row.verdict == "contradiction"
    # as many runs without a name as the power was computed from
    silent = (1 - row.power) ** (1 / SMALL["n_runs"])
    assert abs(row.error - silent) < 5 * math.sqrt(silent * (1 - silent) / SMALL["n_runs"])


def test_choices_that_move_records_count_two_under_add_remove():
    result = audit(DPStandardScaler(**ADDS), n_samples=2000, n_features=3, n_runs=100)
    assert not list(contradicted(result))


def test_what_learns_nothing_is_not_audited():
    for step in (DPOneHotEncoder([[0, 1]] * 2), DPSimpleImputer("constant")):
        with pytest.raises((TypeError, ValueError)):
            audit(step, n_samples=500, n_features=2)


def test_one_column_is_no_choice():
    result = audit(DPSelectKBest(1), n_samples=500, n_features=1, n_runs=100)
    assert result.verdict == "inconclusive"
