"""Looking at what was done: audits of privacy, and plots of budgets."""

from ._audit import AuditResult, audit
from ._audit_display import AuditDisplay
from ._budget_display import BudgetDisplay

__all__ = ["AuditDisplay", "AuditResult", "BudgetDisplay", "audit"]
