"""Counts of records towards a score: whole numbers, from labels or targets and a model's answers.

The model is public; a record's part follows from its own answer alone (of pairs, from those of the
others too). Proof: ``privacy/proofs/release_score.md``.
"""

import numpy as np

LEVELS = 2**20  # of a number in [-1, 1], to each side


def count_right(codes, predicted):
    """How many codes were predicted: a list of one integer."""
    return [int(np.count_nonzero(codes == predicted))]


def count_cells(codes, predicted, n_classes):
    """For each class how many were not predicted, then how many were: 2 n_classes integers."""
    cells = 2 * codes + (codes == predicted)
    return np.bincount(cells, minlength=2 * n_classes).tolist()


def sum_bounded(values):
    """Sums of columns of numbers that are cut to [-1, 1], in units of 1 / LEVELS; NaN is 0.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
    """
    cut = np.clip(np.nan_to_num(values, nan=0.0), -1.0, 1.0)
    return np.rint(cut * LEVELS).astype(np.int64).sum(axis=0).tolist()


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
