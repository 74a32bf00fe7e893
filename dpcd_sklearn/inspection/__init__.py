"""Looking at what was done, or what to expect: audits, leaks, plots of budgets."""

from ..leaks import Leak, LeakReport, find_leaks
from ._audit import AuditResult, audit
from ._displays import AuditDisplay, BudgetDisplay, EpsilonDisplay
from ._model_displays import CoefficientDisplay, StrengthDisplay
from ._plan_fit import FitPlan, plan
from ._release_tests import ReleaseResult
from ._report import PrivacyReport

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
