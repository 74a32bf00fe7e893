"""Separable penalties, and constraint sets of all coefficients. A new one is one file, one line."""

from ._balls import L1Ball, L2Ball
from ._box import Box
from ._elastic_net import ElasticNet

PENALTIES = {word: penalty for penalty in (ElasticNet, Box) for word in penalty.words}
CONSTRAINTS = {ball.name: ball for ball in (L1Ball, L2Ball)}
