"""What tests need and a private fit must not have."""

from .utils._reproducible_noise import ReproducibleNoise

__all__ = ["ReproducibleNoise"]
