"""The iterate that every solver moves: proximal steps and averages, in O(1) a coordinate moved."""

import numpy as np

from ..privacy.mechanisms._oracle cimport SolverOracle
from ..utils._interrupts cimport Interrupts

from ._problem import Solution, refused


cdef class Iterate:
    """Coefficients of every output, how they move, and their average.

    A solver's path is a subclass with ``advance(count)``, which makes `count` updates.

    Parameters
    ----------
    problem : Problem

    Attributes
    ----------
    coef : ndarray of shape (n_outputs * n_coordinates,)
        Starts from the point of the penalty's domain that is nearest to zero, or to the problem's
        start.
    """

    def __init__(self, problem):
        self._problem = problem
        self.n_coordinates, self._n_penalized = problem.n_coordinates, problem.n_penalized
        size = problem.n_outputs * self.n_coordinates
        self.coef = np.zeros(size) if problem.start is None else problem.start.copy()
        self.w = self.coef
        self._averages = problem.averaging != "last"
        if self._averages:
            self._total, self._since = np.zeros(size), np.zeros(size)
        self._smoothness = np.ascontiguousarray(problem.smoothness)
        self._penalty = problem.penalty
        self.interrupts = Interrupts()
        self._weighted = problem.averaging == "weighted"
        self._tail_start = problem.tail_start
        self._step_size = problem.step_size / problem.curvature
        self._step_decay = problem.step_decay
        cdef double step = 1.0 if problem.start is None else 0.0  # a projection only
        cdef Py_ssize_t k
        for k in range(size):
            if k % self.n_coordinates < self._n_penalized:
                self.w[k] = self._penalty.prox(k % self.n_coordinates, self.w[k], step)

    # ---- one update: moved and set for every coordinate, then tick ----

    cdef double step_size(self) noexcept nogil:
        """γ_t of the coming update."""
        if self._step_decay == 0.0:
            return self._step_size
        return self._step_size * <double>(self.t + 1) ** -self._step_decay

    cdef double moved(self, Py_ssize_t k, double direction, double step_size) noexcept nogil:
        """prox(w_k - step_size / M_j direction)."""
        cdef Py_ssize_t j = k % self.n_coordinates
        cdef double step = step_size / self._smoothness[j]
        cdef double w = self.w[k] - step * direction
        return self._penalty.prox(j, w, step) if j < self._n_penalized else w

    cdef void move_all(self, const double[::1] direction, double step_size) noexcept nogil:
        """Move every coordinate: w <- prox(w - step_size M^-1 direction)."""
        cdef Py_ssize_t k
        for k in range(self.w.shape[0]):
            self.set(k, self.w[k] - step_size / self._smoothness[k % self.n_coordinates]
                     * direction[k])
        for k in range(self.w.shape[0] // self.n_coordinates):
            self._penalty.prox_all(&self.w[k * self.n_coordinates], &self._smoothness[0],
                                   step_size, self._n_penalized)

    cdef void set(self, Py_ssize_t k, double value) noexcept nogil:
        if self._averages:  # it gains w_k times the weight of the updates it stood still
            self._total[k] += self.w[k] * (self._weight - self._since[k])
            self._since[k] = self._weight
        self.w[k] = value

    cdef int tick(self) except -1 nogil:
        """End an update: its iterate enters the average. Signals may end the fit here."""
        self.t += 1
        if self._averages and self.t > self._tail_start:
            self._weight += (<double>self.t ** -self._step_decay if self._weighted else 1.0)
        return self.interrupts.look()

    # ---- between updates ----

    def mean(self):
        """Mean of the iterates since the average began; the iterate itself before that."""
        if self._weight == 0:
            return self.coef.copy()
        mean = self._weight - np.asarray(self._since)
        mean *= self.coef
        mean += self._total
        mean /= self._weight
        return mean

    def restart(self):
        """Go on from the mean, and begin another one."""
        self.move_to(self.mean())
        self._weight = 0.0
        self._total[:] = 0.0
        self._since[:] = 0.0

    def move_to(self, coef):
        self.coef[:] = coef

    def is_still(self, before):
        """Whether the updates since `before` moved nothing: for fits without noise."""
        return not self._problem.sweep_moved(
            before.reshape(-1, self.n_coordinates), self.coef.reshape(-1, self.n_coordinates)
        )

    def run(self, chunk):
        """Advance until all updates are done.

        Parameters
        ----------
        chunk : int
            Updates between two tests of convergence (without noise): fewer may miss what moves.

        Returns
        -------
        Solution
        """
        problem = self._problem
        periods = [problem.path_every, problem.n_inner if problem.averaging == "periodic" else 0,
                   problem.watch_every if problem.watch is not None else 0]
        kept = [self._shaped(self.coef.copy())] if problem.path_every else None
        done, last, converged = 0, problem.n_updates, False
        tested, before = 0, self.coef.copy() if problem.tol else None
        while done < last and not converged:
            size = min(tested + chunk, last) - done
            for every in periods:
                if every:
                    size = min(size, every - done % every)
            self.advance(size)
            done += size
            if done - tested == chunk:
                tested = done
                if problem.tol:
                    converged = bool(self.is_still(before))
                    before[:] = self.coef
            finished = done == last or converged
            if periods[1] and (done % periods[1] == 0 or finished):
                self.restart()
            if kept is not None and (done % periods[0] == 0 or finished):
                kept.append(self._shaped(self.coef.copy()))
            if periods[2] and (done % periods[2] == 0 or finished):
                problem.watch(done)
        coef = self.coef
        if problem.averaging in ("tail", "weighted"):
            # the model that is averaged has the zeros of the last iterate: a mean has hardly any
            coef = np.where(self.coef == 0.0, 0.0, self.mean())
        return Solution(self._shaped(coef), done, None if kept is None else np.array(kept),
                        converged)

    def _shaped(self, coef):
        return coef if len(coef) == self.n_coordinates else coef.reshape(-1, self.n_coordinates)


cdef class OracleIterate(Iterate):
    """An iterate that tells an oracle every move, so that records are read once a release."""

    def __init__(self, SolverOracle oracle, problem):
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


def partials(SolverOracle oracle, const double[:, ::1] points, const Py_ssize_t[::1] coordinates):
    """Released derivatives at several public points, in their order, of a coordinate each.

    Parameters
    ----------
    oracle : SolverOracle
        At zero.
    points : ndarray of shape (n_points, n_coordinates)
    coordinates : ndarray of shape (n_points,), intp

    Returns
    -------
    ndarray of shape (n_points,)

    Raises
    ------
    RuntimeError
        If fewer of them were paid for.
    """
    cdef Py_ssize_t k
    cdef Py_ssize_t[::1] everything = np.arange(points.shape[1], dtype=np.intp)
    cdef double[:, ::1] steps = np.diff(points, axis=0, prepend=0.0)
    cdef double[::1] found = np.empty(points.shape[0])
    for k in range(points.shape[0]):
        oracle.apply_step(&everything[0], everything.shape[0], &steps[k, 0])
        if oracle.release_partial(coordinates[k], &found[k]) < 0:
            raise refused()
    return np.asarray(found)
