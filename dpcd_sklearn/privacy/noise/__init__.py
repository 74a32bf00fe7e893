"""The only source of secret randomness: exact Gaussians, exponentials for choices, uniform words.

Promises: ``gaussian(b)`` is floor(2^b N) for an exactly normal N, the error of a logarithm of an
exponential is bounded, and no two sources share a stream. Relies on ChaCha20 under a key from the
operating system, which is new in every process; sees no record and no event. Proofs:
``proofs/gaussian.md`` and ``proofs/log_exponential.md``. Mutant: noise of too few bits is caught
in ``tests/test_noise.py``, where laws, words and ties are too.
"""

from ._noise import NoiseSource

__all__ = ["NoiseSource"]
