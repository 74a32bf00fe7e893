"""Looking at what was done, or what to expect: audits, leaks, plots of budgets, theory."""

from ._audit import AuditResult, audit
from ._audit_display import AuditDisplay
from ._budget_display import BudgetDisplay
from ._find_leaks import Leak, LeakReport, find_leaks
from ._one_run import OneRunResult, audit_one_run
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
    "OneRunResult",
    "TheoreticalIterations",
    "UtilityBound",
    "UtilityBounds",
    "audit",
    "audit_one_run",
    "find_leaks",
    "theoretical_iterations",
    "utility_bounds",
]
