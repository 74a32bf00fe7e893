"""Seeds, as the tests of the package have them."""

from seeds import pytest_generate_tests  # noqa: F401
