"""The synthetic problems of the papers behind this package. No record is real: nothing is private.

Where a paper leaves a law open, the docstring's Notes say what was chosen and why.
"""

from ._quasi_sparse import make_log1, make_log2, make_square
from ._scaled import make_dominated_regression, make_scaled_classification, make_scaled_regression

__all__ = [
    "make_dominated_regression",
    "make_log1",
    "make_log2",
    "make_scaled_classification",
    "make_scaled_regression",
    "make_square",
]
