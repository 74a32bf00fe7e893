"""Random sets of coordinates. A new one is one class and one line here.

A sampling is public: it depends on n_features and public facts only, and a block that was drawn
shows in the released iterates, so it amplifies no privacy and needs no secret randomness.
"""

from ._samplings import BlockSampling, FullSampling, NiceSampling, Sampling, SingleSampling

SAMPLINGS = {
    sampling.name: sampling
    for sampling in (SingleSampling, BlockSampling, NiceSampling, FullSampling)
}
# Words of the estimators' parameter `sampling`.
SAMPLING_WORDS = {word: sampling for sampling in SAMPLINGS.values() for word in sampling.words}

__all__ = [
    "BlockSampling",
    "FullSampling",
    "NiceSampling",
    "Sampling",
    "SingleSampling",
]
