"""What a sampling is: random sets of coordinates, drawn with public randomness."""

from abc import ABCMeta, abstractmethod


class Sampling(metaclass=ABCMeta):
    """Random blocks S of coordinates; a subclass, or any object with the same face, is one.

    Attributes
    ----------
    block_size : int
        Largest size of a block: a pass over p' coordinates is p' / block_size updates.
    """

    block_size = None

    @abstractmethod
    def draw(self, generator, count):
        """Draw blocks.

        Parameters
        ----------
        generator : numpy.random.Generator
            Public randomness, the only source of chance.
        count : int

        Returns
        -------
        iterable of `count` ascending intp arrays
        """

    def curvature(self, spread):
        """Bound on how much steeper a block is than its coordinates: steps are divided by it.

        Parameters
        ----------
        spread : callable
            From a size s to a public bound on λ_max(M_S^(-1/2) H_S M_S^(-1/2)) over all |S| = s.

        Returns
        -------
        float, >= 1
        """
        return spread(self.block_size)
