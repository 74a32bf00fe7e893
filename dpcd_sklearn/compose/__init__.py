"""Private steps for some columns each, side by side, on one budget."""

from ._column_transformer import DPColumnTransformer, make_private_column_transformer

__all__ = ["DPColumnTransformer", "make_private_column_transformer"]
