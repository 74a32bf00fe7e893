"""From records to sums of clipped integers: who contributes how much, and nothing else.

Promises: a record's contribution is a function of that record and of released numbers, and never
longer than the limit that the mechanism states, whatever the record holds; among cells it counts
in one of each column. Sums of integers are exact, in any order, layout and number of threads, and
so are those of records in parts that lie elsewhere: what travels is the question and the answer.
Relies on the losses' derivatives being numbers or NaN; knows no scale of noise, no receipt and no
budget. Proofs: the bounds on a contribution in ``proofs/release_partial.md``,
``proofs/release_gradient.md``, ``proofs/release_mean.md``, ``proofs/release_mean_of_persons.md``,
``proofs/release_mean_row.md``,
``proofs/release_curvature.md``, ``proofs/release_preconditioned.md`` and
``proofs/release_quantiles.md``. The kernels stand on their NumPy twins in
``tests/test_kernels_vs_numpy.py``,
``tests/test_sums_of_classes.py`` (several outputs), ``tests/test_partitions.py`` (parts),
``tests/test_curvature.py`` and ``tests/test_quantiles.py``, and on the
properties in ``tests/test_privacy_properties.py``. Mutant: to an audit contributions twice as long
are half the noise, which is caught in ``tests/test_audit_mutants.py``.
"""

from ._person_place import PersonPlace
from ._place import LocalPlace
from ._remote_place import Dialogue
from ._sums import Place
from ._tables import CategoryPlace, GroupPlace, PresentPlace, TargetPlace

__all__ = ["CategoryPlace", "Dialogue", "GroupPlace", "LocalPlace", "Place", "PresentPlace"]
__all__ += ["PersonPlace", "TargetPlace"]
