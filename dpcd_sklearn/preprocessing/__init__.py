"""Preprocessing whose cost in privacy is known: nothing, or what it charges."""

from ._bounds_scaler import BoundsScaler

__all__ = ["BoundsScaler"]
