"""Differentially private compressed gradient descent (Alg. 4 and 5 of Huang et al. 2023), mended.

    Φ random, m x p;  g <- mean over records of clip(Φ gradient) + noise, in m dimensions
    w <- argmin over u in the constraint set of |Φ u - (Φ w - γ_t g)|², started from w

Each record's projected gradient is clipped: the paper's normalisation of the mean has no bounded
sensitivity. Of the minimisers the one near w is taken, not the one of least norm, which forgets
what Φ does not see. Without a constraint that is w - γ_t Φ⁺ g. Directions and steps are in the
geometry of M: Φ = G M^(-1/2) with G Gaussian, so that features of any scale are seen alike.
"""

import numpy as np

from ..privacy._batch_oracle cimport IterateOracle
from ._iterate cimport Iterate

from ._problem import refused

_PROJECTED_STEPS = 30  # of the inner problem, whose start is near its end


def solve(IterateOracle oracle, problem, sampling, generator):
    """Run DP-CompGD, or DP-CompMiniBatch with a sampling rate below one.

    Parameters
    ----------
    oracle : IterateOracle
    problem : Problem
        With `n_directions`, m, and a smooth penalty, which enters by its gradient.
    generator : numpy.random.Generator
        Draws the projections, which are public.

    Returns
    -------
    Solution
    """
    path = _Path(oracle, problem, generator)
    return path.run(20 * (problem.n_coordinates // problem.n_directions + 1) if problem.tol
                    else problem.n_updates)


cdef class _Path(Iterate):

    cdef IterateOracle _oracle
    cdef object _generator

    def __init__(self, oracle, problem, generator):
        super().__init__(problem)
        self._oracle, self._generator = oracle, generator

    def advance(self, count):
        problem = self._problem
        cdef Py_ssize_t m = min(problem.n_directions, problem.n_coordinates), k
        cdef bint sampled = problem.sampling_rate < 1
        cdef double[:, ::1] directions
        cdef double[::1] mean = np.empty(m), moved
        ridge = np.full(problem.n_coordinates, problem.penalty.l2)
        ridge[problem.n_penalized:] = 0.0
        for _ in range(count):
            # 1. a public projection
            gaussian = self._generator.normal(0.0, m**-0.5, (m, problem.n_coordinates))
            phi = gaussian / np.sqrt(problem.smoothness)
            directions = phi
            # 2. the noisy mean of projected gradients
            if self._oracle.release_mean(sampled, &self.w[0], NULL, &directions[0, 0], m,
                                         &mean[0]) < 0:
                raise refused()
            # 3. the step, and the way back from m dimensions
            change = np.asarray(mean) + phi @ (ridge * self.coef)
            moved = _lifted(gaussian, self.coef, -self.step_size() * change, problem)
            for k in range(moved.shape[0]):
                self.set(k, moved[k])
            self.tick()


def _lifted(gaussian, w, move, problem):
    """The point of the constraint set near w whose projection moved by `move` from that of w.

    In coordinates v = M^(1/2) w projections are by the Gaussian matrix G.
    """
    free = np.linalg.pinv(gaussian) @ move
    roots = np.sqrt(problem.smoothness)
    u = w + free / roots
    if problem.constraint is None:
        return u
    inside, phi = slice(problem.n_penalized), gaussian * roots
    goal = phi @ w + move
    # by accelerated projected gradients (Beck & Teboulle 2009) from the free solution
    largest = np.linalg.norm(phi, 2) ** 2
    u[inside] = problem.constraint.project(u[inside])
    last, t = u, 1.0
    for _ in range(_PROJECTED_STEPS):
        following = (1 + (1 + 4 * t * t) ** 0.5) / 2
        v = u + (t - 1) / following * (u - last)
        last, t = u, following
        u = v - phi.T @ (phi @ v - goal) / largest
        u[inside] = problem.constraint.project(u[inside])
    return u
