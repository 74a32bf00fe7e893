"""Searches whose whole cost is one stated (epsilon, delta)."""

from ._find_budget import find_budget
from ._search import PrivateSearchCV
from ._splits import PersonKFold

__all__ = ["PersonKFold", "PrivateSearchCV", "find_budget"]
