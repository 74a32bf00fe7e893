"""Units of rows and of geometries in which their products are exact: public numbers alone.

Rows of 16 bits are multiplied in pairs and added in 32 (``_pairs_body.h``), others are products of
doubles below 2^53.
"""

import math

import numpy as np

# Units of a row's own norm, when its image is measured in doubles.
ROW_UNITS = 2.0**22
_EXACT = 2.0**53
# Whole numbers of 16 bits, and sums of their products, which have 32. A row of a geometry has so
# many units that its product with a row of records is such a sum.
_SHORT, _PAIRED_SUM, _SHORT_ROW = 2**15 - 1, 2**31 - 1, 65_000.0
_BLOCK = 16  # of columns; DPCD_PAIRS_BLOCK of the kernels
# By how much of a typical row's image its bound may be longer for a geometry of 16 bits.
_SHORT_LOSS = 0.02


def most_of_transform(n_coordinates):
    """Up to which size a transform has integers, such that images of rows are exact.

    Σ |R_jk q_k| is at most the norm of R's row times that of q.
    """
    row = ROW_UNITS + n_coordinates**0.5
    return 2.0 ** math.floor(math.log2(_EXACT / (row * n_coordinates**0.5)))


def most_of_rows(n_coordinates):
    """Units of a row in a matrix of second moments, up to which sums of many are exact.

    Accumulate in int32 for as many rows as amortise widening to int64. Their rounding adds at most
    a hundredth to the noise (of 1,600 columns).
    """
    return (_PAIRED_SUM / (64 if n_coordinates > 64 else 256)) ** 0.5


def rows_at_once(units, n_coordinates):
    """How many rows' products 32 bits hold: partial sums are at most those of squared norms.

    Raises
    ------
    ValueError
        If 16 bits do not hold a row's entries.
    """
    longest = units + 0.5 * n_coordinates**0.5
    if not longest <= _SHORT:
        raise ValueError(f"rows of 16 bits have fewer than {units:.0f} units")
    return int(_PAIRED_SUM / longest**2)


def longest_row(n_coordinates, most=_SHORT):
    """Units of a row whose norm is at most `most` when it is rounded."""
    return float(math.floor(most - 0.5 * n_coordinates**0.5))


def short_transform(transform):
    """A geometry of 16 bits that bounds images, in two limbs if bounds are much longer for one.

    What it lacks of the transform is at most half a unit in every cell that is not zero, and times
    a row of records at most the norm of these halves times that of the row.

    Parameters
    ----------
    transform : ndarray of shape (n_coordinates, n_coordinates), lower triangular
        Integers; public.

    Returns
    -------
    pairs : int32 ndarray of shape (n_limbs * apart / 2, apart)
        As `KERNELS.image_norms` reads them: rows of zeros come first.
    of_rows : ndarray of shape (n_limbs * apart,)
        Units of rows of the geometry.
    slack : float
        What is to be added to the norm of an image; with one limb at most a fiftieth of one that is
        as long as most are.
    """
    d = len(transform)
    apart, units, rest = -(-d // _BLOCK) * _BLOCK, longest_row(d), transform
    # of rows whose second moments are those that the geometry turns into a unit matrix
    typical = units * d**0.5 / np.linalg.norm(np.linalg.inv(transform))
    pairs, units_of_rows, slack = [], [], math.inf
    while len(pairs) < 2 and slack > _SHORT_LOSS * typical:
        largest, norms = np.abs(rest).max(axis=1), np.linalg.norm(rest, axis=1)
        longest = np.maximum(largest / _SHORT, (norms + d**0.5) / _SHORT_ROW)
        of_rows = 2.0 ** np.ceil(np.log2(np.maximum(longest, 1.0)))
        limb = np.zeros((apart, apart))
        limb[apart - d :, :d] = np.rint(rest / of_rows[:, None])
        rest = rest - limb[apart - d :, :d] * of_rows[:, None]
        halves = np.where(of_rows > 1, 0.5 * of_rows, 0.0)
        slack = np.sqrt(np.count_nonzero(transform, axis=1) @ halves**2) * (units + d**0.5)
        of_two_columns = limb.T.reshape(-1, 2, apart).swapaxes(1, 2).astype(np.int16, order="C")
        pairs.append(of_two_columns.view(np.int32)[:, :, 0])
        units_of_rows.append(np.append(np.zeros(apart - d), of_rows))
    return np.concatenate(pairs), np.concatenate(units_of_rows), slack


@np.errstate(all="ignore")
def limbs(coef, of_columns, apart):
    """An iterate in two numbers of 16 bits: their products with rows add up to less than 2^31.

    Parameters
    ----------
    coef : ndarray of shape (n_outputs, n_coordinates)
    of_columns : ndarray of shape (n_coordinates,)
        Units of the columns of rows.
    apart : int

    Returns
    -------
    found : int16 ndarray of shape (2 * n_outputs, apart)
        The first limb of an output, and the second one.
    unit : float
        NaN, and zeros for integers, where the iterate is not finite.
    of_first : float
        Units of the first limb, a power of two.
    """
    found = np.zeros((len(coef), 2, apart), dtype=np.int16)
    # the second limb has a norm of _SHORT_ROW at most
    of_first = 2.0 ** min(math.floor(math.log2(_SHORT_ROW / apart**0.5)) + 1, 14)
    coef = coef / of_columns
    norm = np.linalg.norm(coef, axis=1).max()
    if not math.isfinite(norm):
        return found.reshape(-1, apart), math.nan, of_first
    unit = max(norm / (longest_row(apart) * of_first), 1e-300)
    whole = np.rint(coef / unit)
    first = np.rint(whole / of_first)
    found[:, 0, : coef.shape[1]], found[:, 1, : coef.shape[1]] = first, whole - first * of_first
    return found.reshape(-1, apart), unit, of_first
