"""Types of public parameters, for readers and type checkers."""

from typing import Literal

from numpy.random import RandomState
from numpy.typing import ArrayLike

Auto = float | Literal["auto"]
Averaging = Literal["auto", "last", "tail", "periodic", "weighted"]
Bounds = tuple[ArrayLike, ArrayLike]
Neighboring = Literal["replace_one", "add_remove"]
Seed = int | RandomState

__all__ = ["ArrayLike", "Auto", "Averaging", "Bounds", "Neighboring", "Seed"]
