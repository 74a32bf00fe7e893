"""Solvers, one file each: what is stated of it, its recipe for "auto", and its plan of a fit.

Estimators take a word for a solver, or one of these, which have parameters of their own. Its plan
makes the oracle from the receipt and hands it to the loop (``dpcd_sklearn.loops``), which sees no
record. ``doc/add_solver.rst`` walks through one.
"""

from ._cd import CD
from ._compgd import CompGD
from ._frank_wolfe import FrankWolfe
from ._gcd import GCD
from ._newton import Newton
from ._sgd import SGD
from ._skgd import SkGD
from ._svrg import SVRG

__all__ = ["CD", "CompGD", "FrankWolfe", "GCD", "Newton", "SGD", "SVRG", "SkGD"]
