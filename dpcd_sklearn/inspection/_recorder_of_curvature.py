"""Keeps what a curvature's oracle releases: the transcript of a fit by Newton steps, for audits.

As in ``_recorders``: it sees what the solver sees, so a transcript is post-processing.
"""

import numpy as np


class RecordingCurvatureOracle:
    """Records the releases of an oracle of a curvature and of gradients in its geometry.

    Parameters
    ----------
    oracle : CurvatureOracle

    Attributes
    ----------
    mean_square, mean_row : as released, or None
    row_norm, shift : as of the oracle
    curvature : ndarray of shape (n_coordinates, n_coordinates)
    root : ndarray of the same shape
        R, the geometry of the gradients.
    """

    def __init__(self, oracle):
        self._oracle, self._iterates, self._clips, self._values = oracle, [], [], []

    def __getattr__(self, name):
        return getattr(self._oracle, name)

    def release_curvature(self):
        """As of the oracle."""
        self.curvature = self._oracle.release_curvature()
        return self.curvature

    def fix_geometry(self, root):
        """As of the oracle."""
        self.root = self._oracle.fix_geometry(root)
        return self.root

    def release_preconditioned(self, coef, clip):
        """As of the oracle."""
        value = self._oracle.release_preconditioned(coef, clip)
        self._iterates.append(np.array(coef))
        self._clips.append(clip)
        self._values.append(value)
        return value

    def gradients(self):
        """All iterates, clips, and the gradients there: ndarrays, an entry or a row a gradient."""
        return np.array(self._iterates), np.array(self._clips), np.array(self._values)
