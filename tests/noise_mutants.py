"""Sources of noise that are wrong, to put in place of NoiseSource, which has no subclasses."""

import numpy as np

from dpcd_sklearn.privacy.noise import NoiseSource


class Source:
    """An honest source, of which mutants change the draws."""

    def __init__(self, key):
        self._source = NoiseSource(key)

    def gaussians(self, size, bits):
        return self._source.gaussians(size, bits)


class HalfTheNoise(Source):
    def gaussians(self, size, bits):
        return super().gaussians(size, bits - 1)


class HalfOffTheDiagonal(Source):
    """Half of the noise off the diagonal of a matrix of 2 x 2."""

    def gaussians(self, size, bits):
        return super().gaussians(size, bits) // np.array([1, 2, 2, 1])


class NoiseOfOneClass(Source):
    """The same noise for each of three classes."""

    def gaussians(self, size, bits):
        return np.tile(super().gaussians(size // 3, bits), 3)
