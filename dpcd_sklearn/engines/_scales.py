"""Centres and half-widths of columns, from released quantiles.

Three choices a column find them: the octave of the median of |x| says how large numbers are, and
the quartiles among linear cells of that size say where they lie. Quantiles stay between 1/4 and
3/4: one near 1 can't reject an absurd scale, since no record contradicts it. Columns that stay
where they are (sparse ones) need the first choice only.
"""

from fractions import Fraction

import numpy as np

from ..privacy.sums._counts import LOWEST, N_LINEAR

MEDIAN = Fraction(1, 2)
QUARTILES = Fraction(1, 4), Fraction(3, 4)
# Quartiles are looked for within so many times the upper end of the median's octave: half of all
# records are within once, and an octave that was chosen too low by one is made good. Wider is too
# coarse for columns far from zero: 8 brings R² on California housing from .53 to .15 at ε = 0.1.
_REACH = 2.0
# Bounds are so many inter-quartile ranges, or medians, from the centre: 2.7 standard deviations
# of a normal column, or 1.3 to 2.7 where an octave stands for them. 1.5 clips what regressions need
# (diamonds: .88 for .91), 3 gains nothing.
_WIDTH = 2.0


def n_choices(n_columns, centered):
    """How many choices find the scales of so many columns."""
    return (3 if centered else 1) * n_columns


def find_scales(oracle, of, centered):
    """Centre and half-width of each column.

    Parameters
    ----------
    oracle : QuantileOracle
    of : {"features", "target", "row_norm"}
    centered : bool
        If False centres are zero.

    Returns
    -------
    center, half_width : float64 arrays of shape (n_columns,)
        Half-widths are positive. A column that is mostly zero gets the smallest one.
    """
    (octave,) = oracle.release_quantiles(of, [MEDIAN])
    size = np.ldexp(1.0, octave + LOWEST)  # the upper end of the octave
    if not centered:
        return np.zeros_like(size), _WIDTH * size
    edges = -_REACH * size, _REACH * size
    quartiles = oracle.release_quantiles(of, QUARTILES, edges=edges)
    cell = 2 * _REACH * size / N_LINEAR
    low, high = np.sort(quartiles, axis=0)
    center = (low + high + 1 - N_LINEAR) / 2 * cell
    return center, _WIDTH * np.maximum(high - low, 1) * cell
