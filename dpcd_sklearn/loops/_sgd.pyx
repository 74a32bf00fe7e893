"""Differentially private stochastic gradient descent (Abadi et al. 2016), proximal.

    w <- prox(w - γ_t M^-1 (mean of clipped gradients over a Poisson sample + noise))

With a sampling rate of one it is full-batch gradient descent, for every number of outputs.
"""

import numpy as np

from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport Iterate

from ._problem import refused


def solve(SolverOracle oracle, problem, sampling=None, generator=None):
    """Run DP-SGD; who is sampled is the oracle's secret.

    Parameters
    ----------
    oracle : SolverOracle
    problem : Problem

    Returns
    -------
    Solution
    """
    return _Path(oracle, problem).run(20 if problem.tol else problem.n_updates)


cdef class _Path(Iterate):
    """The iterate and its velocity."""

    cdef SolverOracle _oracle
    cdef bint _sampled
    cdef double[::1] _velocity, _gradient
    cdef double _momentum

    def __init__(self, oracle, problem):
        super().__init__(problem)
        self._oracle, self._sampled = oracle, problem.sampling_rate < 1
        self._velocity, self._gradient = np.zeros_like(self.coef), np.empty_like(self.coef)
        self._momentum = problem.momentum

    def advance(self, count):
        cdef Py_ssize_t _t, k, n_updates = count
        cdef double momentum = self._momentum
        cdef bint paid = True
        with nogil:
            for _t in range(n_updates):
                # 1. a noisy mean gradient
                if self._oracle.release_mean(self._sampled, &self.w[0], NULL, NULL, 0,
                                             &self._gradient[0]) < 0:
                    paid = False
                    break
                # 2. a proximal step along the heavy ball's velocity
                for k in range(self.w.shape[0]):
                    self._velocity[k] = (momentum * self._velocity[k]
                                         + (1.0 - momentum) * self._gradient[k])
                self.move_all(self._velocity, self.step_size())
                self.tick()
        if not paid:
            raise refused()
