"""Searches whose whole cost is one stated (epsilon, delta)."""

from ._find_budget import find_budget
from ._search import PrivateSearchCV

__all__ = ["PrivateSearchCV", "find_budget"]
