"""Looking at what was done, or what to expect: audits, leaks, plots of budgets, theory."""

from ._audit import AuditResult, audit
from ._audit_display import AuditDisplay
from ._budget_display import BudgetDisplay
from ._find_leaks import Leak, LeakReport, find_leaks
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
    "Leak",
    "LeakReport",
    "TheoreticalIterations",
    "UtilityBound",
    "UtilityBounds",
    "audit",
    "find_leaks",
    "theoretical_iterations",
    "utility_bounds",
]
