"""Arrays of other libraries, such as tensors: fits read them on the host, as NumPy arrays.

What a fit or a prediction does is not theirs to do: sums must be exact and noise must be ours. So
records are moved, which is said once, and predictions are given back where scikit-learn's
``array_api_dispatch`` asks for it.
"""

import sys

import numpy as np
from sklearn import get_config

from ._warnings import warn


def is_of_another_library(array):
    """Whether it is an array with a shape that is exchanged by DLPack, and none of NumPy's."""
    if isinstance(array, (np.ndarray, np.generic)):
        return False
    return hasattr(array, "__dlpack__") and hasattr(array, "shape")


def on_host(array):
    """The array, or if it is of another library its values as a NumPy array in this memory.

    Raises
    ------
    TypeError
        If its values can't be had; the message quotes none.
    """
    if not is_of_another_library(array):
        return array
    library = _library(array)
    warn(
        f"arrays of {library} are read on the host, as NumPy arrays: fits and predictions run "
        "there. Under sklearn.config_context(array_api_dispatch=True) predictions are given back "
        "as arrays of X's library. Said once a process",
        topic="arrays are moved",
    )
    try:
        for move in ("detach", "cpu", "get"):  # the first two of torch, the last of CuPy
            if callable(getattr(array, move, None)):
                array = getattr(array, move)()
        return _values(array)
    except Exception as error:
        kind = type(error).__name__
    raise TypeError(
        f"an array of {library} can't be read on the host ({kind}); pass it as a NumPy array"
    )


def refuse_collections(model, **arrays):
    """Raise a TypeError that names the model of `dpcd_sklearn.dask` if an array is Dask's."""
    for name, array in arrays.items():
        if hasattr(array, "__dask_graph__") and not hasattr(model, "to_local"):
            kind = type(model).__name__
            raise TypeError(
                f"{name} is a Dask collection, and {kind} reads records in memory: "
                f"dpcd_sklearn.dask.{kind} fits them where they are, or pass {name}.compute()"
            )


def _values(array):
    try:
        return np.asarray(array)
    except (RuntimeError, TypeError, ValueError):  # on a device that NumPy does not know of
        return np.from_dlpack(array)


def given_back(found, X):
    """Numbers that were found of X: as an array of its library, where scikit-learn is asked to.

    Labels that are no numbers stay a NumPy array; other libraries have none.
    """
    if not get_config()["array_api_dispatch"] or not is_of_another_library(X):
        return found
    if found.dtype.kind not in "biuf":
        return found
    namespace = getattr(X, "__array_namespace__", lambda: sys.modules[_library(X)])()
    try:
        return namespace.asarray(found, device=X.device)
    except TypeError:  # CuPy's has no such parameter
        return namespace.asarray(found)


def _library(array):
    return type(array).__module__.partition(".")[0]
