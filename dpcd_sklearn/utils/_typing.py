"""Types of public parameters, for readers and type checkers."""

from typing import Literal

from numpy.random import RandomState
from numpy.typing import ArrayLike as ArrayLike

from ._persons import Persons
from ._stated import ReproducibleNoise

Auto = float | Literal["auto"]
Pair = tuple[float, float]
Column = ArrayLike | None
Bounds = tuple[ArrayLike, ArrayLike] | list[Pair] | dict[str, Pair]
TargetBounds = tuple[ArrayLike, ArrayLike] | list[Pair]
Neighboring = Literal["replace_one", "add_remove"] | Persons
Seed = int | RandomState | ReproducibleNoise
