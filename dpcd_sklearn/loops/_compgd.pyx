"""Differentially private compressed gradient descent (Alg. 4 and 5 of Huang et al. 2023), mended.

    Φ random, m x p;  g <- mean over records of clip(Φ gradient) + noise, in m dimensions
    w <- the point of the constraint set nearest to w - γ_t N^(-1/2) F⁺ g

(a) Each record's projected gradient is clipped: the paper's normalisation of the mean has no
    bounded sensitivity. Of the points with one projection the one near w is taken, not the one of
    least norm, which forgets what Φ does not see.
(b) Φ = F N^(-1/2), N the smoothness M with the ridge's share, so that features of any scale are
    seen alike and no ridge is too steep. F is a Gaussian matrix with its rows made orthonormal,
    times (p/m)^(1/2): the same subspace, but a pseudo-inverse that does not amplify noise (that of
    a Gaussian one does by p/(p - m - 1), without bound for m = p). F is the identity for m = p.
(c) "Nearest" is in the norm of N over all coordinates, not over the m that Φ sees: the optimum is
    then where steps have mean zero, and for m = p a fixed point. The paper's choice, within what
    Φ sees, is biased: steps settle elsewhere, by 0.2 to 0.8 % of the objective in our tests.
"""

import numpy as np

from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport Iterate

from ._problem import refused


def solve(SolverOracle oracle, problem, sampling, generator):
    """Run DP-CompGD, or DP-CompMiniBatch with a sampling rate below one.

    Parameters
    ----------
    oracle : SolverOracle
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

    cdef SolverOracle _oracle
    cdef object _generator

    def __init__(self, oracle, problem, generator):
        super().__init__(problem)
        self._oracle, self._generator = oracle, generator

    def advance(self, count):
        problem = self._problem
        cdef Py_ssize_t m = problem.n_directions, p = problem.n_coordinates, k
        cdef bint sampled = problem.sampling_rate < 1
        cdef double[:, ::1] directions
        cdef const double *phi = NULL
        cdef double[::1] mean = np.empty(m), moved
        ridge = np.full(p, problem.penalty.l2)
        ridge[problem.n_penalized:] = 0.0
        metric = problem.smoothness + ridge / problem.curvature
        roots = np.sqrt(metric)
        for _ in range(count):
            # 1. a public projection; of all dimensions there is none
            if m < p:
                frame = _random_frame(self._generator, m, p)
                directions = frame / roots
                phi = &directions[0, 0]
            # 2. the noisy mean of projected gradients
            if self._oracle.release_mean(sampled, &self.w[0], NULL, phi, m if m < p else 0,
                                         &mean[0]) < 0:
                raise refused()
            # 3. with the penalty's, and back from m dimensions
            if m < p:
                change = np.asarray(mean) + frame @ (ridge * self.coef / roots)
                gradient = roots * (frame.T @ change) * (<double>m / p)
            else:
                gradient = np.asarray(mean) + ridge * self.coef
            # 4. a step into the constraint set
            moved = _constrained(self.coef - self.step_size() * gradient / metric, metric, problem)
            for k in range(p):
                self.set(k, moved[k])
            self.tick()


def _random_frame(generator, m, p):
    """m orthonormal rows that span a random subspace, times sqrt(p / m): lengths stay, on average.
    """
    q, _ = np.linalg.qr(generator.standard_normal((p, m)))
    return np.ascontiguousarray(q.T) * (p / m) ** 0.5


def _constrained(coef, metric, problem):
    """The nearest point, in the norm of N, whose penalised part is in the constraint set."""
    if problem.constraint is not None:
        inside = slice(problem.n_penalized)
        coef[inside] = problem.constraint.project(coef[inside], metric[inside])
    return coef
