"""Looking at what was done, or what to expect: audits, plots of budgets, theory."""

from ._audit import AuditResult, audit
from ._audit_display import AuditDisplay
from ._budget_display import BudgetDisplay
from ._theory import (
    TheoreticalIterations,
    UtilityBound,
    UtilityBounds,
    theoretical_iterations,
    utility_bounds,
)

__all__ = [
    "AuditDisplay",
    "AuditResult",
    "BudgetDisplay",
    "TheoreticalIterations",
    "UtilityBound",
    "UtilityBounds",
    "audit",
    "theoretical_iterations",
    "utility_bounds",
]
