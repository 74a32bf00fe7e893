"""Costs of releases: events, receipts, curves, calibration and translation.

Promises: the loss that is stated for an event is at least the true one, and noise that is
calibrated to a loss is at least what the loss needs; an event without a row in the table of costs
(``_accounting.COSTS``) is refused. Relies on no other room of privacy: no record and no noise is
seen here; an event is public numbers, and a receipt says that it was charged. Proofs:
``proofs/accounting.md`` (Gaussians, zCDP), ``proofs/selections.md`` (choices), ``proofs/loss.md``
(distributions of loss), ``proofs/renyi.md`` (orders, samples) and ``proofs/private_tuning.md`` (the
best of a secret number of runs). Mutants:
half the noise counts at least twice the loss, in ``tests/test_selections.py``; made-up events
without a row are refused, in ``tests/test_costs.py``.
"""

from ._accounting import (
    epsilon_of,
    gdp_squared,
    loss_of,
    rdp,
    rdp_epsilon,
    zcdp,
    zcdp_epsilon,
    zcdp_rho,
)
from ._calibration import (
    choices_event,
    curvature_fit_event,
    gaussian_fit_event,
    greedy_fit_event,
    moments_event,
    sampled_fit_event,
    with_noise,
)
from ._events import (
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    SelectionEvent,
    TuningEvent,
)
from ._gaussian_dp import gdp_delta, gdp_epsilon, gdp_mu
from ._joint import joined, joint_budgets, search_fit_event
from ._loss import Loss, composed, cover, of_points, on_grid, residue
from ._persons import of_persons
from ._promise import Budget, Receipt
from ._spent import PrivacyCost, PrivacySpent

__all__ = ["Budget", "CoveredEvent", "FitEvent", "GaussianEvent"]
__all__ += ["Loss", "NonPrivateEvent", "PoissonSampledEvent", "PrivacyCost", "PrivacySpent"]
__all__ += ["Receipt", "SelectionEvent", "TuningEvent", "choices_event", "composed"]
__all__ += ["cover", "curvature_fit_event", "epsilon_of", "gaussian_fit_event"]
__all__ += ["gdp_delta", "gdp_epsilon", "gdp_mu", "gdp_squared", "greedy_fit_event"]
__all__ += ["joined", "joint_budgets", "loss_of", "moments_event"]
__all__ += ["of_persons", "of_points", "on_grid", "rdp", "rdp_epsilon", "residue"]
__all__ += ["sampled_fit_event"]
__all__ += ["search_fit_event", "with_noise", "zcdp", "zcdp_epsilon", "zcdp_rho"]
