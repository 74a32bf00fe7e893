"""Differentially private greedy coordinate descent (Alg. 1 and 2 of Mangold et al. 2023).

    S <- noisy argmax of what each move promises (rules GS-s, GS-r, GS-q), the k best
    w_j <- prox_{γ/M_j ψ_j}(w_j - γ/M_j (∇_j f(w) + noise)),  j in S

The choice is over both directions of every coordinate, so the direction comes with it for free.
Of several outputs (classes) every w_kj is a candidate. Feature j of the one that is chosen moves
in all of them: a noisy vector of its partial derivatives, clipped by one norm, costs what one does.
"""

import numpy as np

from ..penalties._penalty cimport Rule
from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport OracleIterate

from ._problem import refused

cdef Py_ssize_t CHUNK = 1 << 12


def solve(SolverOracle oracle, problem, sampling=None, generator=None):
    """Run DP-GCD; it needs neither a sampling nor public randomness.

    Parameters
    ----------
    oracle : SolverOracle
    problem : Problem

    Returns
    -------
    Solution
    """
    return _Path(oracle, problem).run(1 if problem.tol else CHUNK)


cdef class _Path(OracleIterate):
    """The iterate, and the room for one choice."""

    cdef Rule _rule
    cdef Py_ssize_t _n_chosen, _n_outputs
    cdef Py_ssize_t[::1] _chosen, _features, _row, _block
    cdef int[::1] _directions, _wanted
    cdef double[::1] _gradient, _targets, _moves
    cdef double _promised, _recent

    def __init__(self, oracle, problem):
        super().__init__(oracle, problem)
        self._rule, self._n_chosen = problem.rule, problem.n_chosen
        self._n_outputs = problem.n_outputs
        size = self._n_chosen * self._n_outputs
        self._chosen = np.empty(self._n_chosen, dtype=np.intp)
        self._directions = np.empty(self._n_chosen, dtype=np.intc)
        self._block, self._wanted = np.empty(size, dtype=np.intp), np.zeros(size, dtype=np.intc)
        self._features = np.empty(self._n_chosen, dtype=np.intp)
        self._row = np.empty(self._n_outputs, dtype=np.intp)
        self._gradient = np.empty(self._n_outputs)
        self._targets, self._moves = np.empty(size), np.empty(size)

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
        cdef Py_ssize_t u, k, b, c, n_features, K = self._n_outputs
        cdef int status
        # 1. the coordinates that promise most
        if self.oracle.release_argmax(self._penalty, self._n_penalized, self._rule, &self.w[0],
                                      self._n_chosen, &self._chosen[0], &self._directions[0]) < 0:
            return False
        n_features = self._gather()
        self._promised = 0.0
        for u in range(n_features):
            # 2. their noisy partial derivatives, at one iterate
            for k in range(K):
                self._row[k] = k * self.n_coordinates + self._features[u]
            if K == 1:
                status = self.oracle.release_partial(self._row[0], &self._gradient[0])
            else:
                status = self.oracle.release_gradient(&self._row[0], K, &self._gradient[0])
            if status < 0:
                return False
            self.interrupts.look()  # a block is as many releases
            # 3. a proximal step along each
            for k in range(K):
                b, c = k * n_features + u, self._row[k]
                self._block[b] = c
                self._targets[b] = self.moved(c, self._gradient[k], self._step_size)
                if (self._targets[b] - self.w[c]) * self._wanted[b] < 0.0:
                    # the choice said the other way: noise drowned the partial derivative
                    self._targets[b] = self.w[c]
                self._moves[b] = self._targets[b] - self.w[c]
                self._promised = max(self._promised, self._moves[b] * self._moves[b]
                                     * self._smoothness[self._features[u]])
        for b in range(K * n_features):
            self.set(self._block[b], self._targets[b])
        self.oracle.apply_step(&self._block[0], K * n_features, &self._moves[0])
        self.tick()
        return True

    cdef Py_ssize_t _gather(self) noexcept nogil:
        """The chosen features, ascending and each once, and the directions that were chosen.

        `_wanted` is in the order of the block, output by output; 0 is no choice.
        """
        cdef Py_ssize_t i, j, k, u, n = 0
        for i in range(self._n_chosen):
            j, u = self._chosen[i] % self.n_coordinates, n
            while u > 0 and self._features[u - 1] > j:
                u -= 1
            if u > 0 and self._features[u - 1] == j:
                continue  # another class of it
            for k in range(n, u, -1):
                self._features[k] = self._features[k - 1]
            self._features[u] = j
            n += 1
        for u in range(n * self._n_outputs):
            self._wanted[u] = 0
        for i in range(self._n_chosen):
            j, u = self._chosen[i] % self.n_coordinates, 0
            while self._features[u] != j:
                u += 1
            self._wanted[self._chosen[i] // self.n_coordinates * n + u] = self._directions[i]
        return n

    def is_still(self, before):
        """Without noise the largest promise left tells how far the optimum is."""
        self._recent = max(self._promised, 0.99 * self._recent)
        size = np.max(self.coef.reshape(-1, self.n_coordinates) ** 2 * self._smoothness)
        return self._recent <= self._problem.tol**2 * size
