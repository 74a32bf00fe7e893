"""Differentially private greedy coordinate descent (Alg. 1 and 2 of Mangold et al. 2023).

    S <- noisy argmax of what each move promises (rules GS-s, GS-r, GS-q), the k best
    w_j <- prox_{γ/M_j ψ_j}(w_j - γ/M_j (∇_j f(w) + noise)),  j in S

The choice is over both directions of every coordinate, so the direction comes with it for free.
Every w_kj of several outputs (classes) is a coordinate of its own.
"""

import numpy as np

from ..penalties._base cimport Rule
from ..privacy.mechanisms._oracle cimport Oracle
from ._oracle_iterate cimport OracleIterate

from ._problem import refused

cdef Py_ssize_t CHUNK = 1 << 12


def solve(Oracle oracle, problem, sampling=None, generator=None):
    """Run DP-GCD; it needs neither a sampling nor public randomness.

    Parameters
    ----------
    oracle : Oracle
    problem : Problem

    Returns
    -------
    Solution
    """
    return _Path(oracle, problem).run(1 if problem.tol else CHUNK)


cdef class _Path(OracleIterate):
    """The iterate, and the room for one choice."""

    cdef Rule _rule
    cdef Py_ssize_t _n_chosen
    cdef Py_ssize_t[::1] _chosen
    cdef int[::1] _directions
    cdef double[::1] _targets, _moves
    cdef double _promised, _recent

    def __init__(self, oracle, problem):
        super().__init__(oracle, problem)
        self._rule, self._n_chosen = problem.rule, problem.n_chosen
        self._chosen = np.empty(self._n_chosen, dtype=np.intp)
        self._directions = np.empty(self._n_chosen, dtype=np.intc)
        self._targets, self._moves = np.empty(self._n_chosen), np.empty(self._n_chosen)

    def advance(self, count):
        cdef Py_ssize_t _t, n_updates = count
        cdef bint paid = True
        with nogil:
            for _t in range(n_updates):
                if not self._update():
                    paid = False
                    break
        if not paid:
            raise refused()

    cdef bint _update(self) except -1 nogil:
        cdef Py_ssize_t i, j
        cdef double partial
        # 1. the coordinates that promise most
        if self.oracle.release_argmax(self._penalty, self._n_penalized, self._rule, &self.w[0],
                                      self._n_chosen, &self._chosen[0], &self._directions[0]) < 0:
            return False
        self._sort()
        self._promised = 0.0
        for i in range(self._n_chosen):
            j = self._chosen[i]
            # 2. their noisy partial derivatives, at one iterate
            if self.oracle.release_partial(j, &partial) < 0:
                return False
            self.interrupts.look()  # a block is as many releases
            # 3. a proximal step along each
            self._targets[i] = self.moved(j, partial, self._step_size)
            if (self._targets[i] - self.w[j]) * self._directions[i] < 0.0:
                # the choice said the other way: noise drowned the partial derivative
                self._targets[i] = self.w[j]
            self._moves[i] = self._targets[i] - self.w[j]
            self._promised = max(self._promised,
                                 self._moves[i] * self._moves[i]
                                 * self._smoothness[j % self.n_coordinates])
        for i in range(self._n_chosen):
            self.set(self._chosen[i], self._targets[i])
        self.oracle.apply_step(&self._chosen[0], self._n_chosen, &self._moves[0])
        self.tick()
        return True

    cdef void _sort(self) noexcept nogil:
        """The chosen coordinates in ascending order, as the oracle reads them."""
        cdef Py_ssize_t i, k
        for i in range(1, self._n_chosen):
            k = i
            while k > 0 and self._chosen[k - 1] > self._chosen[k]:
                self._chosen[k - 1], self._chosen[k] = self._chosen[k], self._chosen[k - 1]
                self._directions[k - 1], self._directions[k] = (self._directions[k],
                                                                self._directions[k - 1])
                k -= 1

    def is_still(self, before):
        """Without noise the largest promise left tells how far the optimum is."""
        self._recent = max(self._promised, 0.99 * self._recent)
        size = np.max(self.coef.reshape(-1, self.n_coordinates) ** 2 * self._smoothness)
        return self._recent <= self._problem.tol**2 * size
