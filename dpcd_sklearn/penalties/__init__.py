"""Penalties, and constraint sets of all coefficients. A new one is one file, one line."""

from ._box import BoxPenalty
from ._elastic_net import ElasticNet
from ._group_lasso import GroupLassoPenalty
from ._penalty import Rule
from ._stated import Box, GroupLasso, L1Ball, L2Ball, Monotonic, StatedPenalty

KINDS = (ElasticNet, BoxPenalty, GroupLassoPenalty)
PENALTIES = {word: penalty for penalty in KINDS for word in penalty.words}
# Words of penalties that every solver with a proximal step takes: sums over coefficients.
SEPARABLE = {word for word, penalty in PENALTIES.items() if penalty.is_separable}
CONSTRAINTS = {ball.name: ball for ball in (L1Ball, L2Ball)}
# Scores of greedy choices.
RULES = {"gs-s": Rule.GS_S, "gs-r": Rule.GS_R, "gs-q": Rule.GS_Q}

__all__ = [
    "CONSTRAINTS",
    "PENALTIES",
    "RULES",
    "SEPARABLE",
    "Box",
    "BoxPenalty",
    "ElasticNet",
    "GroupLasso",
    "GroupLassoPenalty",
    "L1Ball",
    "L2Ball",
    "Monotonic",
    "StatedPenalty",
]
