"""Separable penalties, and constraint sets of all coefficients. A new one is one file, one line."""

from ._balls import L1Ball, L2Ball
from ._box import BoxPenalty
from ._elastic_net import ElasticNet
from ._penalty import Rule
from ._stated import Box

PENALTIES = {word: penalty for penalty in (ElasticNet, BoxPenalty) for word in penalty.words}
CONSTRAINTS = {ball.name: ball for ball in (L1Ball, L2Ball)}
# Scores of greedy choices.
RULES = {"gs-s": Rule.GS_S, "gs-r": Rule.GS_R, "gs-q": Rule.GS_Q}

__all__ = [
    "CONSTRAINTS",
    "PENALTIES",
    "RULES",
    "Box",
    "BoxPenalty",
    "ElasticNet",
    "L1Ball",
    "L2Ball",
]
