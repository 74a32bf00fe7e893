"""Separable penalties. A new one is one new file and one line here."""

from ._elastic_net import ElasticNet

PENALTIES = {penalty.name: penalty for penalty in (ElasticNet,)}
