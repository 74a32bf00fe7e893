"""Counts of records towards a score: whole numbers, from labels or targets and a model's answers.

The model is public; a record's part follows from its own answer alone (of pairs, from those of the
others too). Proof: ``privacy/proofs/release_score.md``.
"""

import numpy as np

LEVELS = 2**20  # of a number in [-1, 1], to each side


def count_cells(cells, n_cells, persons=None):
    """How many records are in each cell; of persons the sums of their shares, each in 1 / LEVELS.

    Parameters
    ----------
    cells : ndarray of shape (n_samples,)
        Integers in [0, n_cells).
    n_cells : int
    persons : ndarray of shape (n_samples,), or None
        The number of the person of each record, from 0 on.
    """
    if persons is None:
        return np.bincount(cells, minlength=n_cells).tolist()
    pairs, counts = np.unique(persons * n_cells + cells, return_counts=True)
    sums = np.zeros(n_cells, dtype=np.int64)
    np.add.at(sums, pairs % n_cells, counts * LEVELS // np.bincount(persons)[pairs // n_cells])
    return sums.tolist()


def sum_bounded(values, persons=None):
    """Sums of columns of numbers that are cut to [-1, 1], in units of 1 / LEVELS; NaN is 0.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
    persons : ndarray of shape (n_samples,), or None
        As of `count_cells`: then the means of persons are added up, cut towards zero.
    """
    cut = np.clip(np.nan_to_num(values, nan=0.0), -1.0, 1.0)
    whole = np.rint(cut * LEVELS).astype(np.int64)
    if persons is not None:
        counts = np.bincount(persons)[:, np.newaxis]
        totals = np.zeros((len(counts), whole.shape[1]), dtype=np.int64)
        np.add.at(totals, persons, whole)
        whole = np.sign(totals) * (np.abs(totals) // counts)
    return whole.sum(axis=0).tolist()


def sum_pairs(codes, margins):
    """Sums of two classes: pairs in the right order less those in the wrong one, and the 1s.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        0 or 1.
    margins : ndarray of shape (n_samples,)
        NaN counts as 0.
    """
    margins = np.nan_to_num(margins, nan=0.0, posinf=np.inf, neginf=-np.inf)
    positive, negative = margins[codes == 1], np.sort(margins[codes == 0])
    below = np.searchsorted(negative, positive, side="left")
    not_above = np.searchsorted(negative, positive, side="right")
    # above are len(negative) - not_above
    return [int((below + not_above - len(negative)).sum()), len(positive)]
