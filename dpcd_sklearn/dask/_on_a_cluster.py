"""Estimators for Dask: those for one machine, with records elsewhere and with laziness."""

import copy
import math
import re
from dataclasses import dataclass
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask import delayed
from dask.base import is_dask_collection
from distributed import default_client
from scipy.sparse import issparse, vstack
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from .. import linear_model as local
from ..linear_model._documentation import documented
from ..linear_model._records import refuse_nobody
from ..partitions._partitioned_records import PartitionedRecords
from ..privacy.sums._exact_moments import moments_of
from ..privacy.sums._remote_place import joined
from ..utils._compat import clone_parametrized, num_samples, safe_indexing
from ..utils._persons import hashes_of_ids, ids_of, persons_of
from ._workers import Workers

# ---- From Dask collections to partitions: blocks of rows that belong together --------------------


_MOST_PARTS = 64  # into which records are divided by id: each block is cut into as many pieces


def client_of(model):
    """The client to fit with: the stated one, or the default.

    Raises
    ------
    ValueError
        If there is none, or it is closed.
    """
    client = model.client
    if client is None:
        try:
            client = default_client()
        except ValueError:
            raise ValueError(
                "no Dask client: make one with distributed.Client(...), or pass client=..."
            ) from None
    if client.asynchronous:
        raise ValueError("client must be synchronous: make it with asynchronous=False")
    if client.status != "running":
        raise ValueError(f"the client is {client.status}: connect a new one, nothing was charged")
    return client


def is_dask(X):
    """Whether X is a Dask array or data frame."""
    return isinstance(X, (da.Array, dd.DataFrame))


def partitions_of(X, y, sample_weight, groups=None):
    """Delayed tuples (X, y, sample_weight), one a block of rows; with ids, one a set of persons.

    Raises
    ------
    TypeError, ValueError
        If they are no Dask collections, or are not divided alike along rows, and only there.
    """
    if not is_dask(X):
        raise TypeError(
            f"X must be a Dask array or data frame, got {type(X).__name__}: use "
            "dask.array.from_array(X, chunks=(n_rows, -1)), or to_local() for arrays in memory"
        )
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, X has {X.ndim} dimensions")
        if X.numblocks[1] != 1:
            raise ValueError(
                f"X is chunked along columns ({X.numblocks[1]} chunks): use X.rechunk({{1: -1}}), "
                "rows alone may be divided"
            )
    blocks = [blocks_of(X)]
    for name, other in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        if other is None and name == "y":
            raise ValueError("this estimator requires y to be passed, but the target y is None")
        if other is None:
            blocks.append([None] * len(blocks[0]))
            continue
        if not is_dask_collection(other):
            raise TypeError(
                f"{name} must be a Dask collection as X is, got {type(other).__name__}: use "
                f"dask.array.from_array({name}, chunks=X.chunks[0])"
            )
        _refuse_other_rows(X, other, name)
        blocks.append(blocks_of(other))
    if groups is None:
        return [delayed(tuple)(rows[:3]) for rows in zip(*blocks, strict=True)]
    n_parts = min(len(blocks[0]), _MOST_PARTS)
    cut = [delayed(_cut_by_id, nout=n_parts)(n_parts, *rows) for rows in zip(*blocks, strict=True)]
    return [delayed(_joined)(pieces) for pieces in zip(*cut, strict=True)]


def _cut_by_id(n_parts, *arrays):
    """Pieces of a block, each with all records of some persons, whom a hash of the id names.

    Arrays that are not valid stay in the first piece, whose validation refuses them by name.
    """
    try:
        ids, persons = persons_of(arrays[-1], num_samples(arrays[0]))
        parts = (hashes_of_ids(ids) % np.uint64(n_parts))[persons] if len(ids) else persons
    except (TypeError, ValueError):
        parts = None
    return [tuple(_piece(array, parts, k) for array in arrays) for k in range(n_parts)]


def _piece(array, parts, k):
    if array is None:
        return None
    size = num_samples(array)
    if parts is None or size != len(parts):
        rows = np.arange(size if k == 0 else 0)
    else:
        rows = np.flatnonzero(parts == k)
    return safe_indexing(array, rows)


def _joined(pieces):
    """One partition of all pieces, in the order of the blocks."""
    return tuple(map(_join, zip(*pieces, strict=True)))


def _join(arrays):
    if arrays[0] is None:
        return None
    if hasattr(arrays[0], "iloc"):
        import pandas as pd

        return pd.concat(arrays)
    return vstack(arrays, format="csr") if issparse(arrays[0]) else np.concatenate(arrays)


def blocks_of(collection):
    """Delayed blocks of rows."""
    if isinstance(collection, da.Array):
        return list(collection.to_delayed().ravel())
    # optimized one by one, X and y of one parquet folder may be read in other numbers of partitions
    return list(collection.to_delayed(optimize_graph=False))


def _refuse_other_rows(X, other, name):
    """Unknown sizes are compared by the workers, once the blocks are made."""
    sizes = [_sizes(X), _sizes(other)]
    if None not in sizes and sizes[0] != sizes[1]:
        if sum(sizes[0]) != sum(sizes[1]):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has "
                f"{sum(sizes[0])} rows, {name} has {sum(sizes[1])}"
            )
        raise ValueError(f"X and {name} are not chunked alike: use {name}.rechunk((X.chunks[0],))")
    counts = [_count(X), _count(other)]
    if counts[0] != counts[1]:
        raise ValueError(
            f"X has {counts[0]} partitions and {name} {counts[1]}, of unknown sizes: use "
            "compute_chunk_sizes() on arrays, to_dask_array(lengths=True) on data frames, and then "
            f"{name}.rechunk((X.chunks[0],))"
        )
    if not any(isinstance(one, da.Array) for one in (X, other)):
        known = X.known_divisions and other.known_divisions
        if known and X.divisions != other.divisions:
            raise ValueError(
                f"X and {name} have other divisions: use {name}.repartition(divisions=X.divisions)"
            )


def _sizes(collection):
    if not isinstance(collection, da.Array) or any(map(math.isnan, collection.chunks[0])):
        return None
    return collection.chunks[0]


def _count(collection):
    return collection.numblocks[0] if isinstance(collection, da.Array) else collection.npartitions


# ---- The estimators: parameters of the local ones, a client, and laziness ------------------------


def on_a_cluster(cls):
    """A class decorator: the parameters of the local estimator, and a client."""
    cls = dataclass(eq=False, repr=False)(cls)
    local = cls._local = cls.__bases__[-1]
    cls._parameter_constraints = local._parameter_constraints | {"client": "no_validation"}
    cls.__doc__ = re.sub(r"\n    Examples\n    -+\n.*", "", local.__doc__ or "", flags=re.DOTALL)
    cls.__doc__ = documented(cls)
    return cls


@dataclass(eq=False, repr=False, kw_only=True)
class OnACluster:
    """A mixin, to the left of the local estimator, whose docstring it has.

    **Privacy**

    - Cluster: records lie in Dask arrays or data frames, chunked along rows alone. Sums over them
      are integers, so coefficients and price are, **to the last bit**, those of the estimator for
      one machine, whatever the partitions and workers (with `epsilon=inf`, to the solver's
      tolerance). Workers, scheduler and the wire between them are trusted: they see records and
      sums without noise. Noise, its key and the ledger stay with the client. Ids of persons
      (`groups`, a Dask collection too) divide records so that one partition has all of a person.

    Parameters
    ----------
    client : distributed.Client, default=None
        Client of the cluster that fits. None is the default client. It is not pickled, nor cloned
        by value, nor in the ledger.
    """

    client: Any = None

    def _checked(self, X, y, sample_weight, groups):
        groups = ids_of(self.neighboring, groups)
        refuse_nobody(self)
        client = client_of(self)
        self._check_numbers()  # before partitions are made
        parts = client.compute(partitions_of(X, y, sample_weight, groups))
        return PartitionedRecords(self, Workers(client, parts))

    def _stated_params(self):
        return {name: v for name, v in super()._stated_params().items() if name != "client"}

    def to_local(self):
        """The plain estimator for one machine, fitted as this one is.

        Returns
        -------
        estimator : object
        """
        local = self._local(**self._stated_params())
        params = self.get_params(deep=False)
        vars(local).update({k: v for k, v in vars(self).items() if k not in params})
        return local

    # ---- predictions, lazy on Dask collections ----

    def predict(self, X):
        """Predict, lazily for a Dask collection: block by block, and nothing is computed yet.

        Parameters
        ----------
        X : Dask array or data frame, or array-like, of shape (n_samples, n_features)

        Returns
        -------
        Dask array of shape (n_samples,), or an ndarray if X is none of Dask's
        """
        return self._by_blocks("predict", X)

    def _by_blocks(self, method, X):
        check_is_fitted(self, "coef_")
        local = self.to_local()
        local.accountant = local.random_state = None
        if not is_dask(X):
            return getattr(local, method)(X)
        one = getattr(local, method)(_example(local))
        if not isinstance(X, da.Array):  # in blocks of unknown sizes, one a partition
            shape = (math.nan, *one.shape[1:])
            blocks = [delayed(_predict)(block, local, method) for block in blocks_of(X)]
            blocks = [da.from_delayed(b, shape, dtype=one.dtype, meta=one[:0]) for b in blocks]
            return da.concatenate(blocks, allow_unknown_chunksizes=True)
        if X.numblocks[1] != 1:
            raise ValueError("X is chunked along columns: use X.rechunk({1: -1})")
        options = {"chunks": (X.chunks[0], (one.shape[1],))} if one.ndim == 2 else {"drop_axis": 1}
        return X.map_blocks(_predict, local, method, dtype=one.dtype, meta=one[:0], **options)

    def score(self, X, y, sample_weight=None):
        """Accuracy, or R², of the predictions on these records: computed now, and not private.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
        y : Dask array or series of shape (n_samples,)
        sample_weight : Dask array or series of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        self._warn_of_score()
        local, client = self.to_local(), client_of(self)
        local.accountant = local.random_state = None
        parts = [delayed(_moments)(part, local) for part in partitions_of(X, y, sample_weight)]
        found = [part for part in client.gather(client.compute(parts)) if part.weight > 0]
        found = found and joined(found)
        if not found:
            raise ValueError("there is no record of positive weight to score")
        mean, squares = found.center, found.squares
        if is_classifier(self):
            return float(mean[0])
        residual, variance = np.split(squares + found.weight * np.square(mean), 2)
        variance = squares[len(residual) :]
        with np.errstate(all="ignore"):
            constant = np.where(residual == 0, 1.0, 0.0)  # as r2_score has it
            return float(np.mean(np.where(variance == 0, constant, 1 - residual / variance)))

    # ---- what a client is no part of ----

    def __sklearn_clone__(self):
        twin = copy.copy(self)
        twin.client = None  # a connection has one copy
        twin = clone_parametrized(twin)
        twin.client = self.client
        return twin

    def __getstate__(self):
        return super().__getstate__() | {"client": None}


class ClassifierOnACluster(OnACluster):
    """Predictions that only classifiers have."""

    def decision_function(self, X):
        """Signed distances to the decision boundary; lazy as `predict` is.

        Parameters
        ----------
        X : as of `predict`

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._by_blocks("decision_function", X)

    def predict_proba(self, X):
        """Probabilities of the classes; lazy as `predict` is.

        Parameters
        ----------
        X : as of `predict`

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return self._by_blocks("predict_proba", X)

    def predict_log_proba(self, X):
        """Logarithms of the probabilities; lazy as `predict` is.

        Parameters
        ----------
        X : as of `predict`

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return self._by_blocks("predict_log_proba", X)


def _moments(part, local):
    """Moments that make a score: whether a label is right, or residuals and targets."""
    X, y, weights = part
    y = np.asarray(y)
    found = _predict(X, local, "predict")
    columns = [found == y] if is_classifier(local) else [y - found, y]
    columns = np.column_stack(columns).astype(np.float64)
    with np.errstate(all="ignore"):  # of a block without records
        return moments_of(columns, None if weights is None else np.asarray(weights), True)


def _example(local):
    """A record of zeros, with the names that the fit has learnt."""
    return _named(np.zeros((1, local.n_features_in_)), local)


def _named(X, local):
    """The array as a data frame with the names that the fit has learnt, if there are some."""
    names = getattr(local, "feature_names_in_", None)
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=names)


def _predict(X, local, method):
    if X.shape[0] == 0:
        return getattr(local, method)(_example(local))[:0]
    return getattr(local, method)(X if hasattr(X, "columns") else _named(X, local))


# ---- The estimators, by the names that they have on one machine ----------------------------------


@on_a_cluster
class DPLassoCD(OnACluster, local.DPLassoCD):
    pass


@on_a_cluster
class DPRidgeSkGD(OnACluster, local.DPRidgeSkGD):
    pass


@on_a_cluster
class DPLogisticGCD(ClassifierOnACluster, local.DPLogisticGCD):
    pass


@on_a_cluster
class DPLinearRegressor(OnACluster, local.DPLinearRegressor):
    pass


@on_a_cluster
class DPLinearClassifier(ClassifierOnACluster, local.DPLinearClassifier):
    pass
