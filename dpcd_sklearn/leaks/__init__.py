"""The linter: what in a scikit-learn object the guarantee does not cover; nothing is fitted."""

from ._classes import full_name
from ._conditions import KNOWN_SPLITS, all_private, counted_and_not
from ._object_tree import may_be_sparse, tree_of
from ._rules import RULES, SEVERITIES, Leak, LeakReport, find_leaks, refuse_leaks

__all__ = [
    "KNOWN_SPLITS",
    "RULES",
    "SEVERITIES",
    "Leak",
    "LeakReport",
    "all_private",
    "counted_and_not",
    "find_leaks",
    "full_name",
    "may_be_sparse",
    "refuse_leaks",
    "tree_of",
]
