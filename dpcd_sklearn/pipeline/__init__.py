"""Pipelines whose private steps share one budget."""

from ._private_pipeline import PrivatePipeline, make_private_pipeline

__all__ = ["PrivatePipeline", "make_private_pipeline"]
