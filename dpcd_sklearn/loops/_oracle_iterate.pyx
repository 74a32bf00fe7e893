"""An iterate that an oracle follows step by step, so that records are read once a release."""

import numpy as np

from ..privacy.mechanisms._oracle cimport Oracle
from ._iterate cimport Iterate


cdef class OracleIterate(Iterate):
    """Keep an oracle informed of every move."""

    def __init__(self, Oracle oracle, problem):
        super().__init__(problem)
        self.oracle = oracle
        if self.coef.any():  # the oracle starts from zero
            start = self.coef.copy()
            self.coef[:] = 0.0
            self.move_to(start)

    def move_to(self, coef):
        cdef Py_ssize_t[::1] everything = np.arange(len(coef), dtype=np.intp)
        cdef double[::1] step = coef - self.coef
        self.coef[:] = coef
        self.oracle.apply_step(&everything[0], everything.shape[0], &step[0])
