"""Public facts about an empirical risk, checked, and what follows from them in other norms.

Distances to the optimum and curvatures are diagonal: what is known is that
sum_j u_j d_j^2 <= R^2 (or d_j <= r_j), and that F curves as sum_j m_j v_j^2. Each theorem asks for
them in a norm of its own, and gets the tightest consequence of what is known.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpcd_sklearn.utils._public import check_count, check_real, check_scales

_NORMS = ("l2", "smoothness")


@dataclass(frozen=True, eq=False)
class TheoryFacts:
    """Public facts about an empirical risk, checked. Arrays have shape (n_features,).

    Attributes
    ----------
    unit : ndarray
        Squared weights of the norm in which a scalar `radius` is stated: 1 or M.
    strong_convexity : ndarray or None
        m_j of strong convexity; None for convex problems.
    """

    n_samples: int
    smoothness: np.ndarray
    lipschitz: np.ndarray
    full_lipschitz: float
    epsilon: float
    delta: float
    radius: float | np.ndarray
    unit: np.ndarray
    strong_convexity: np.ndarray | None
    initial_gap: float | None
    block_size: int
    failure_probability: float

    @property
    def n_features(self):
        return len(self.smoothness)

    @property
    def rate(self):
        return math.sqrt(math.log(1 / self.delta)) / (self.n_samples * self.epsilon)

    @property
    def sensitivity(self):
        """The norm of L that M^-1 weighs: sqrt(sum_j L_j^2 / M_j)."""
        return math.sqrt(np.sum(self.lipschitz**2 / self.smoothness))

    def distance(self, weights):
        """The largest sqrt(sum_j weights_j d_j^2) that the radius allows."""
        if isinstance(self.radius, float):
            return self.radius * math.sqrt(np.max(weights / self.unit))
        return math.sqrt(np.sum(weights * self.radius**2))

    def distance_1(self):
        """The largest norm sum_j sqrt(M_j) d_j: R_{M,1} of DP-GCD."""
        if isinstance(self.radius, float):  # Cauchy & Schwarz, with equality
            return self.radius * math.sqrt(np.sum(self.smoothness / self.unit))
        return float(np.sqrt(self.smoothness) @ self.radius)

    def composite_distance(self):
        """R_M of DP-CD, whose problem may have a part that is not smooth."""
        return max(self.distance(self.smoothness), math.sqrt(self.initial_gap or 0.0))

    def condition(self, weights):
        """1/mu for the norm with these weights: max_j weights_j / m_j."""
        return float(np.max(weights / self.strong_convexity))

    def condition_1(self):
        """1/mu_{M,1}: (sum_j sqrt(M_j) v_j)^2 <= sum_j M_j/m_j * sum_j m_j v_j^2."""
        return float(np.sum(self.smoothness / self.strong_convexity))

    def gap(self, spread=1.0):
        """F(w0) - F*; without a statement what smoothness and the radius imply."""
        if self.initial_gap is not None:
            return self.initial_gap
        return spread * self.distance(self.smoothness) ** 2 / 2


# --- checks --------------------------------------------------------------------------------------


def check_choice(value, name, choices):
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")
    return value


def _check_smoothness(smoothness):
    array = np.asarray(smoothness)
    if array.dtype.kind in "iuf" and (array.ndim != 1 or array.size == 0):
        raise ValueError(
            f"smoothness must have shape (n_features,) with n_features >= 1, got {array.shape}; "
            "repeat a constant that all features share"
        )
    return check_scales(smoothness, array.size, name="smoothness")


def _check_radius(radius, n_features):
    if np.ndim(radius) == 0:
        return check_real(radius, "radius", low=0.0)
    array = np.asarray(radius)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"radius must be a number or an array of numbers, got {radius!r}")
    if array.shape != (n_features,):
        raise ValueError(
            f"radius has shape {array.shape}, allowed are a scalar and shape ({n_features},)"
        )
    if not (np.isfinite(array).all() and (array >= 0).all() and (array > 0).any()):
        raise ValueError("radius must be finite and not negative, with an entry above 0")
    return array.astype(np.float64)


def _check_strong_convexity(strong_convexity, unit):
    if strong_convexity is None:
        return None
    if np.ndim(strong_convexity) == 0:
        return check_real(strong_convexity, "strong_convexity", low=0.0) * unit
    return check_scales(strong_convexity, len(unit), name="strong_convexity")


def check_facts(stated):
    """The facts among the arguments of a public function; its other arguments are left alone."""
    n_samples = check_count(stated["n_samples"], "n_samples")
    smoothness = _check_smoothness(stated["smoothness"])
    p = len(smoothness)
    lipschitz = check_scales(stated["lipschitz"], p, name="lipschitz")
    together = float(np.linalg.norm(lipschitz))
    if stated["full_lipschitz"] is not None:
        # |L|_2 is a constant for all coordinates, and Lambda one for each
        together = min(together, check_real(stated["full_lipschitz"], "full_lipschitz", low=0.0))
        lipschitz = np.minimum(lipschitz, together)
    norm = check_choice(stated["norm"], "norm", _NORMS)
    unit = smoothness if norm == "smoothness" else np.ones(p)
    block_size, initial_gap = stated["block_size"], stated["initial_gap"]
    if block_size is None:
        block_size = math.ceil(math.sqrt(p))
    if initial_gap is not None:
        initial_gap = check_real(initial_gap, "initial_gap", low=0.0, closed="left")
    return TheoryFacts(
        n_samples=n_samples,
        smoothness=smoothness,
        lipschitz=lipschitz,
        full_lipschitz=together,
        epsilon=check_real(stated["epsilon"], "epsilon", low=0.0),
        delta=check_real(stated["delta"], "delta", low=0.0, high=1.0),
        radius=_check_radius(stated["radius"], p),
        unit=unit,
        strong_convexity=_check_strong_convexity(stated["strong_convexity"], unit),
        initial_gap=initial_gap,
        block_size=check_count(block_size, "block_size", high=p),
        failure_probability=check_real(
            stated["failure_probability"], "failure_probability", low=0.0, high=1.0
        ),
    )
