"""Functions of one number at a time."""

import numpy as np


def elementwise(function, values):
    """function(value) of each value of an array, as an array of its shape.

    NumPy's vectorised exp and log may round other in the tail of an array, or where it is not
    contiguous: a number would follow from its place. A function of ``math`` sees the number alone.
    """
    found = np.fromiter(map(function, values.flat), dtype=np.float64, count=values.size)
    return found.reshape(values.shape)
