"""Fits over records in partitions, whatever engine holds them: integers from each, added up.

``dpcd_sklearn.dask`` stands on it; ``fit_partitions`` is for other engines.
"""

from ._partitioned_records import fit_partitions

__all__ = ["fit_partitions"]
