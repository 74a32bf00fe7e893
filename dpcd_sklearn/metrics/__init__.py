"""Scores of models as private numbers, for scikit-learn's tools and for searches."""

from ._scorer import PrivateScorer, make_private_scorer

__all__ = ["PrivateScorer", "make_private_scorer"]
