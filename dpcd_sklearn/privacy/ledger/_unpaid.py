"""An accountant for a fit that is stopped at its charge: what it would refuse before, it refuses.

Whoever charges for several fits at once, or for a search, has to know that each of them takes the
records before the first charge. The fit itself knows best, and all that it asks comes before it
charges: so it is tried, and no record is used.
"""

from ._prepaid import Prepaid


class UnpaidError(Exception):
    """A fit came to its charge and was stopped there: it is no fault, and nobody sees it."""


class Unpaid(Prepaid):
    """Admits nothing, and answers what a fit asks before it charges as the accountant would.

    Parameters
    ----------
    accountant : PrivacyAccountant, Prepaid or None
        Which will be charged.
    """

    def __init__(self, accountant):
        super().__init__(accountant, None)
        self.of_steps = getattr(accountant, "of_steps", False)

    def charge(self, event, **facts):
        """Stop the fit.

        Raises
        ------
        UnpaidError
        """
        raise UnpaidError


def fit_up_to_charge(estimator, part, X, y, **params):
    """Refuse what a fit would refuse before its charge; nothing is charged, drawn or released.

    Parameters
    ----------
    estimator : estimator
        A copy, which is changed and left as it stands at the charge.
    part : estimator
        Itself, or what is private in it. If that has no accountant nothing stops it, so nothing is
        tried.
    X, y, **params
        As ``fit`` takes them.

    Raises
    ------
    TypeError, ValueError, Warning
        As the fit does; of warnings those that are made errors. The caller decides which are heard.
    """
    if "accountant" not in part.get_params(deep=False):
        return
    part.set_params(accountant=Unpaid(part.accountant))
    try:
        estimator.fit(X, y, **params)
    except UnpaidError:
        return
