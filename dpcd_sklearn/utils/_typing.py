"""Types of public parameters, for readers and type checkers."""

from typing import TYPE_CHECKING, Literal

from numpy.random import RandomState

from ._persons import Persons
from ._stated import ReproducibleNoise

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as ArrayLike
else:  # NumPy's own union would take ten lines of each signature that `help` shows

    class ArrayLike: ...


Auto = float | Literal["auto"]
Pair = tuple[float, float]
Column = ArrayLike | None
Bounds = tuple[ArrayLike, ArrayLike] | list[Pair] | dict[str, Pair]
TargetBounds = tuple[ArrayLike, ArrayLike] | list[Pair]
Neighboring = Literal["replace_one", "add_remove"] | Persons
Seed = int | RandomState | ReproducibleNoise
