"""Private steps for some columns each, side by side, on one budget."""

from ._column_transformer import DPColumnTransformer, make_private_column_transformer
from ._table_model import date_parts, private_table_model

__all__ = [
    "DPColumnTransformer",
    "date_parts",
    "make_private_column_transformer",
    "private_table_model",
]
