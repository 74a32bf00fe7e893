"""Tools for tests: noise that a private fit must not have, and checks that it can't pass."""

from .utils._expected_checks import expected_failed_checks
from .utils._reproducible_noise import ReproducibleNoise

__all__ = ["ReproducibleNoise", "expected_failed_checks"]
