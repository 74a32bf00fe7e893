"""Solvers: they see the oracle and public numbers, never the records. One file each.

Estimators take a word for a solver, or one of these, which have parameters of their own.
"""

from ._stated import CD, GCD, SGD, SVRG, CompGD, FrankWolfe, Newton, SkGD

__all__ = ["CD", "CompGD", "FrankWolfe", "GCD", "Newton", "SGD", "SVRG", "SkGD"]
