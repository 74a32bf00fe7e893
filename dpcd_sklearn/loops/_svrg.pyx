"""Differentially private stochastic variance-reduced gradients (Johnson & Zhang 2013), proximal.

    u <- w;  full <- mean gradient at u + noise
    K times:  w <- prox(w - γ M^-1 (mean over a Poisson sample of gradient(w) - gradient(u)
                                    + noise + full))

Differences of gradients are clipped record by record: they shrink as w nears u, and their clip is
smaller than that of gradients.
"""

import numpy as np

from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport Iterate

from ._problem import refused


def solve(SolverOracle oracle, problem, sampling=None, generator=None):
    """Run DP-SVRG: `problem.n_updates` sampled steps, `problem.n_inner` after each full gradient.

    Parameters
    ----------
    oracle : SolverOracle
    problem : Problem

    Returns
    -------
    Solution
    """
    return _Path(oracle, problem).run(problem.n_inner if problem.tol else problem.n_updates)


cdef class _Path(Iterate):
    """The iterate, its anchor, and the gradient there."""

    cdef SolverOracle _oracle
    cdef double[::1] _anchor, _full, _change
    cdef Py_ssize_t _n_inner

    def __init__(self, oracle, problem):
        super().__init__(problem)
        self._oracle, self._n_inner = oracle, problem.n_inner
        self._anchor, self._full = self.coef.copy(), np.empty_like(self.coef)
        self._change = np.empty_like(self.coef)

    def advance(self, count):
        cdef Py_ssize_t _t, k, n_updates = count
        cdef bint paid = True
        with nogil:
            for _t in range(n_updates):
                # 1. the full gradient at a new anchor
                if self.t % self._n_inner == 0:
                    self._anchor[:] = self.w
                    if self._oracle.release_mean(False, &self._anchor[0], NULL, NULL, 0,
                                                 &self._full[0]) < 0:
                        paid = False
                        break
                    self.interrupts.look()
                # 2. how a sample's gradients differ from those at the anchor
                if self._oracle.release_mean(True, &self.w[0], &self._anchor[0], NULL, 0,
                                             &self._change[0]) < 0:
                    paid = False
                    break
                # 3. a proximal step
                for k in range(self.w.shape[0]):
                    self._change[k] += self._full[k]
                self.move_all(self._change, self.step_size())
                self.tick()
        if not paid:
            raise refused()
