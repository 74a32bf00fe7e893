"""Looking at what was done, or what to expect: audits, leaks, plots of budgets."""

from ..leaks import Leak, LeakReport, find_leaks
from ._audit import audit
from ._audit_display import AuditDisplay
from ._audit_result import AuditResult
from ._budget_display import BudgetDisplay
from ._epsilon_display import EpsilonDisplay
from ._model_displays import CoefficientDisplay
from ._plan_fit import FitPlan, plan
from ._release_audit import ReleaseResult
from ._report import PrivacyReport
from ._strength_display import StrengthDisplay

__all__ = [
    "AuditDisplay",
    "AuditResult",
    "BudgetDisplay",
    "CoefficientDisplay",
    "EpsilonDisplay",
    "FitPlan",
    "Leak",
    "LeakReport",
    "PrivacyReport",
    "ReleaseResult",
    "StrengthDisplay",
    "audit",
    "find_leaks",
    "plan",
]
