"""Searches whose whole cost is one stated (epsilon, delta)."""

from ._search import PrivateSearchCV

__all__ = ["PrivateSearchCV"]
