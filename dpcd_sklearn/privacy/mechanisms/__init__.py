"""Mechanisms: they release sums of clipped integers with noise, under a receipt that was charged.

Promises: what ``release_*`` give away is what the redeemed event says and no more; one more
release is refused, and the sensitivity that the noise is scaled to holds with its rounding.
Relies on ``sums`` for the limit of a contribution, on ``noise`` for exact draws, and on
``accounting`` for what an event means; the ledger is a stranger here. Proofs:
``proofs/release_partial.md``, ``proofs/release_argmax.md``, ``proofs/lazy_argmax.md``,
``proofs/release_gradient.md``, ``proofs/release_mean.md``, ``proofs/release_quantiles.md``,
``proofs/release_counts.md``, ``proofs/release_mean_squares.md``, ``proofs/release_mean_row.md``,
``proofs/release_curvature.md``, ``proofs/release_preconditioned.md``, ``proofs/release_score.md``,
``proofs/release_categories.md``, ``proofs/release_present_means.md``,
``proofs/release_columns.md``, ``proofs/release_running_counts.md`` and
``proofs/release_target_sums.md``; ``proofs/release_length.md`` is of a model of eight features.
Mutants with half the noise are caught in ``tests/test_audit_mutants.py``,
``tests/test_greedy_rules.py``, ``tests/test_quantiles.py``, ``tests/test_neighbours.py``,
``tests/test_audit_of_transformers.py`` and ``tests/test_select_k_best.py``, choices that are not as
random as they claim in ``tests/test_lazy_selection.py``.
"""

from ._cell_sums import CountUnits, PresentUnits, RunningUnits, SmoothnessUnits
from ._curvature import CurvatureOracle, MomentOracle, MomentUnits
from ._curvature_units import CurvatureUnits
from ._gaussian_sum import Oracle
from ._lazy_choice import LazyChoice
from ._quantiles import QuantileOracle, QuantileUnits
from ._record_oracle import BatchOracle, RecordOracle
from ._scores import ScoreUnits
from ._tables import ColumnUnits, PartitionUnits, SecondMomentUnits, TargetUnits
from ._units import CoordinateUnits, MeanUnits

# fmt: off
__all__ = [
    "BatchOracle", "ColumnUnits", "CoordinateUnits", "CountUnits", "CurvatureOracle",
    "CurvatureUnits", "LazyChoice", "MeanUnits", "MomentOracle", "MomentUnits", "Oracle",
    "PartitionUnits", "PresentUnits", "QuantileOracle", "QuantileUnits", "RecordOracle",
    "RunningUnits", "ScoreUnits", "SecondMomentUnits", "SmoothnessUnits", "TargetUnits",
]
