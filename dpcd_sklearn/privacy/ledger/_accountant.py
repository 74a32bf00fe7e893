"""The accountant: one handle to the budget of one data set, wherever it is copied.

``_filter`` decides what is admitted, ``_ledger`` keeps it, and ``_ledger_report`` says in epsilon
what that means; here is the face of them, and the receipts without which no record is read.
"""

import dataclasses
import os
from functools import partial
from typing import Any, Literal, Self

from ...exceptions import BudgetExceededError
from ...utils._persons import as_stated
from ...utils._typing import Neighboring
from ..accounting._events import FitEvent
from ..accounting._joint import joined
from ..accounting._promise import Receipt
from ..accounting._spent import PrivacyCost, PrivacySpent
from . import _files, _filter, _ledger_report
from ._facts import facts_of_charge, signature_of
from ._files import absolute
from ._ledger import Ledger, create_temporary, open_or_create
from ._ledger_entries import LedgerEntry, LedgerParameters
from ._ledger_report import LedgerReport, html_of_balance, report_of, shown_as
from ._prepaid import NeverCopied, Prepaid
from ._rehearsal import planned_fits

__all__ = ["LedgerEntry", "LedgerReport", "PrivacyAccountant", "PrivacyCost", "PrivacySpent"]
__all__ += ["Receipt", "charge"]


def charge(accountant, event, *, budget=None, **facts):
    """Charge an event to an accountant, or to nobody; return the Receipt.

    Parameters
    ----------
    accountant : PrivacyAccountant, Prepaid or None
        With None nothing is recorded; of a Prepaid a part is taken.
    event : FitEvent
        Everything that the fit will release, as mechanisms state it: of records.
    budget : Budget, default=None
        The one that the event was planned by: the event of its persons is charged. None charges
        the event as it is.
    **facts
        As in `PrivacyAccountant.charge`, which also says what is raised.
    """
    if accountant is None and not isinstance(event, FitEvent):
        raise TypeError(f"a FitEvent is charged, got {event!r}")
    charged = event if budget is None else budget.of_persons(event)
    if accountant is None:
        return Receipt(event, None)
    if not isinstance(accountant, (PrivacyAccountant, Prepaid)):
        raise TypeError(f"accountant must be a PrivacyAccountant or None, got {accountant!r}")
    receipt = accountant.charge(charged, **facts)
    return receipt if charged is event else Receipt(event, receipt.entry_id)


def _stored(name, doc):
    return property(lambda self: getattr(self._ledger.parameters, name), doc=doc)


# A clone or copy that had a budget of its own would spend the records' budget twice.
class PrivacyAccountant(NeverCopied):
    """The privacy budget of one data set: a filter that refuses what would exceed it.

    The accountant is a handle to a ledger in a file. Clones, copies and pickles of the handle, in
    whatever thread or process, charge the same ledger, each fit once. A charge is on the disk
    before a record is used, and is never refunded.

    Privacy
    -------
    Everything charged to one ledger is together (epsilon, delta)-DP under its neighbouring
    relation, even when fits are chosen by the results of earlier ones (an adaptive filter). What is
    not charged is not covered: scores on records, plots of data, fits without this accountant. Two
    ledgers on the same records compose. The ledger holds public facts only; its hash chain uncovers
    damage, not a forger.

    Parameters
    ----------
    epsilon : float, > 0
        Budget for everything together.
    delta : float in (0, 0.5]
        Budget for everything together; less than one over the number of records.
    path : str or path-like, default=None
        File of the ledger, which outlives the process. If it exists, it must agree with the other
        parameters. If not, it is created (for its owner only), which is logged, unless `testing`
        is True; `open` never creates one. With None, a temporary file that is deleted when the
        process that created it exits.
    neighboring : {"replace_one", "add_remove"} or Persons, default="replace_one"
        The relation under which fits must be private; `Persons` says that it is between persons
        of several records. A ledger has one.
    n_public : int, default=None
        Public number of records, needed under add_remove only.
    testing : bool, default=False
        Admit what protects nobody: releases without noise (``epsilon=inf``), which count 0, and
        noise that a seed repeats. Both are flagged, and `spent` then says infinity. Never for
        records that matter.
    user : str or None, default="auto"
        Who charges, a mere statement; "auto" is the account of the process. None keeps this and
        the host out of entries.
    note : str, default=""
        What the charges are for, in your words.

    Attributes
    ----------
    path : str, absolute
    user, note
        Of this handle, not of the ledger; set ``accountant.note = "..."`` before a fit.
    epsilon, delta, neighboring, max_contributions, n_public, testing
        As stored in the ledger; `max_contributions` is 1 where records are the unit.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid or differs from that of the existing ledger.
    LedgerError
        If the file can't be created or read, or its file system has no working locks.

    Notes
    -----
    A budget admits exactly one fit, search or pipeline that is calibrated to all of it, whatever it
    releases. The first charge counts by its own curve; what it leaves is what Gaussian releases may
    take after it, and each later charge counts as the Gaussian that tells as much (Smith &
    Thakurta 2022). Gaussian fits add up without loss, fits with many private choices nearly so.
    For a search the Gaussian is poor: search first, or `reserve` what is planned together.

    A charge takes the same time however many entries there are. `verify` and opening by path check
    all of them, 2 s for 100,000; `entries` does so in 3 s, and `report` in 12 s.

    Examples
    --------
    >>> from dpcd_sklearn import PrivacyAccountant
    >>> accountant = PrivacyAccountant(epsilon=5.0, delta=1e-5)
    >>> accountant.spent()
    PrivacySpent(epsilon=0.0, delta=1e-05)
    >>> accountant.remaining()
    5.0
    """

    user, note = "auto", ""  # of a handle that `open` made

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        path: str | os.PathLike[str] | None = None,
        neighboring: Neighboring = "replace_one",
        n_public: int | None = None,
        testing: bool = False,
        user: str | None = "auto",
        note: str = "",
    ):
        signature_of(user, note)  # checks them before a file is made
        parameters = _filter.fixed_parameters(epsilon, delta, neighboring, n_public, testing)
        make = create_temporary if path is None else partial(open_or_create, absolute(path))
        self._ledger = make(parameters)
        self.user, self.note, self._closed = user, note, False

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open an existing ledger with the parameters that it stores; never create one.

        Raises
        ------
        LedgerError
            If there is no ledger at `path`, or it can't be read or was changed.
        """
        self = cls.__new__(cls)
        self._ledger, self._closed = Ledger.open(absolute(path)), False
        return self

    # ---- charging -------------------------------------------------------------------------------

    def charge(
        self,
        event: FitEvent,
        *,
        estimator: str = "",
        params: dict | None = None,
        n_samples: int | None = None,
        n_features: int | None = None,
        reproducible: bool = False,
    ) -> Receipt:
        """Record an event, durably, or refuse it.

        Parameters
        ----------
        event : FitEvent
            Everything that the fit will release, fixed before a record was used.
        estimator : str, default=""
            What is fitted, for the record.
        params : dict, default=None
            Its public parameters, for the record; seeds are left out.
        n_samples, n_features : int, default=None
            Shape of the data, for the record; ``n_public`` stands for n_samples under add_remove.
        reproducible : bool, default=False
            Whether somebody who knows a seed can draw the noise again. Then the fit is private for
            nobody: only a ledger made with ``testing=True`` admits it, and flags it.

        Returns
        -------
        receipt : Receipt

        Raises
        ------
        BudgetExceededError
            If it does not fit into the budget; nothing was recorded.
        LedgerError
            If the ledger can't be read or written, or its file system has no working locks; nothing
            may be released.
        TypeError
            If no accounting is known for the event.
        ValueError
            If the handle is closed, or the event has another neighbouring relation or is not
            private.
        """
        self._check_open()
        parameters = self._ledger.parameters
        if not isinstance(reproducible, bool):
            raise TypeError(f"reproducible must be True or False, got {reproducible!r}")
        if reproducible and not parameters.testing:
            raise ValueError(
                "random_state=ReproducibleNoise(...) makes the noise removable, so the "
                "accountant can't vouch for this fit. Leave random_state=None, or make the "
                "accountant with testing=True"
            )
        told = {"estimator": estimator, "params": params, "n_samples": n_samples}
        told |= {"n_features": n_features, "signature": signature_of(self.user, self.note)}
        first = self._ledger.seen[0] == 0 and self._ledger.balance().fresh
        while True:
            # Computed before the transaction, which takes it only if it is still the right one.
            price = _filter.price(parameters, event, first)
            price = dataclasses.replace(price, private=price.private and not reproducible)
            facts = facts_of_charge(event, price, parameters.n_public, **told)
            balance, entry_id = self._ledger.append(
                facts, partial(_filter.admits, parameters, price=price)
            )
            if entry_id is not None or balance.fresh == first:
                break
            first = balance.fresh
        if entry_id is None:
            raise BudgetExceededError(_ledger_report.refusal(parameters, balance, event))
        return Receipt(event, entry_id)

    def reserve(
        self, events: list[FitEvent], *, estimator: str = "reserved", params: dict | None = None
    ) -> Prepaid:
        """Charge several planned events as one entry, for the fits that release them.

        They count by the curve of all together: for searches much less than one after the other.

        Parameters
        ----------
        events : list of FitEvent
            As ``planned_event`` of estimators, pipelines and searches says them.
        estimator, params
            As in `charge`, of the one entry.

        Returns
        -------
        prepaid : Prepaid
            What these fits take as ``accountant=``, each its part, once, in this process.

        Raises
        ------
        BudgetExceededError, LedgerError, TypeError, ValueError
            As `charge`, of all together; nothing was recorded.
        """
        listed = isinstance(events, (list, tuple)) and len(events) > 0
        if not listed or not all(isinstance(event, FitEvent) for event in events):
            raise TypeError(f"events must be FitEvents of planned_event(), got {events!r}")
        prepaid = Prepaid(self, joined(events), estimator=estimator, params=params)
        prepaid.charge_now()
        return prepaid

    # ---- reports --------------------------------------------------------------------------------

    def spent(self) -> PrivacySpent:
        """Report what was spent, at the ledger's delta.

        The guarantee is the budget; this is the part of it that was used, as the epsilon of a
        Gaussian fit that would have taken as much. Infinite after a release without noise of its
        own (``testing=True``).

        Returns
        -------
        spent : PrivacySpent

        Raises
        ------
        LedgerError
            If the ledger can't be read or was changed.
        ValueError
            If the handle is closed.
        """
        self._check_open()
        return _ledger_report.spent(self._ledger.parameters, self._ledger.balance())

    def remaining(self) -> float:
        """Report the largest epsilon of one more Gaussian fit that would be admitted.

        At the ledger's delta, rounded downwards: a fit with exactly this epsilon is admitted, and
        one with a billionth more is not.

        Returns
        -------
        epsilon : float
            0.0 when no such fit is left.

        Raises
        ------
        LedgerError
            If the ledger can't be read or was changed.
        ValueError
            If the handle is closed.
        """
        self._check_open()
        return _ledger_report.remaining(self._ledger.parameters, self._ledger.balance())

    def cost(
        self, estimator: Any, n_samples: int, n_features: Any, n_outputs: int = 1, *, cv: Any = None
    ) -> PrivacyCost:
        """Report what a fit would cost, or a search of many, without fitting and without a charge.

        A search is rehearsed by scikit-learn's own code on rows of zeros, so the fits are counted
        as it will make them. The dearest candidates are taken to win. Those that are drawn without
        a seed are drawn anew; if they differ in price, so will the sum.

        Parameters
        ----------
        estimator : estimator
            With a method ``planned_event``, which every estimator of this package has; or
            scikit-learn's Pipeline or search with one inside.
        n_samples : int
            Number of training records.
        n_features : int, or array-like of shape (n_rows, n_features)
            Number of features; or made-up rows, where columns are picked by name.
        n_outputs : int, default=1
            Number of targets, or of classes fitted one by one.
        cv : int, splitter or iterable, default=None
            Folds as in ``cross_val_score``: one fit for each, and none of all records.

        Returns
        -------
        cost : PrivacyCost

        Raises
        ------
        TypeError
            If the estimator can't say what it would release.
        ValueError
            If a fit could never be charged to this ledger, the folds follow the records, or the
            handle is closed.
        LedgerError
            If the ledger can't be read or was changed.
        """
        self._check_open()
        parameters = self._ledger.parameters
        amount = partial(_ledger_report.amount, parameters)
        fits = planned_fits(estimator, n_samples, n_features, n_outputs, cv, amount)
        return _ledger_report.cost(parameters, self._ledger.balance(), fits)

    def entries(self, output: Literal["list", "frame", "csv"] = "list") -> Any:
        """Return all charges, oldest first, after a check of the whole ledger.

        Parameters
        ----------
        output : {"list", "frame", "csv"}, default="list"
            A list of LedgerEntry, a pandas data frame or a text with a line for each and a heading.

        Returns
        -------
        entries : list of LedgerEntry, DataFrame or str

        Raises
        ------
        ImportError
            If a data frame is asked for and pandas is not installed.
        LedgerError
            If the ledger can't be read or was changed.
        ValueError
            If the handle is closed, or `output` is another word.
        """
        self._check_open()
        return shown_as(output, map(LedgerEntry.from_row, self._ledger.rows()), self.report)

    def verify(self) -> None:
        """Check that every entry is the one that was written.

        Raises
        ------
        LedgerError
            If the ledger can't be read, or was changed; it names the first bad entry.
        ValueError
            If the handle is closed.
        """
        self._check_open()
        self._ledger.rows()

    def report(self) -> LedgerReport:
        """Return the entries and the sums as one readable table.

        Returns
        -------
        report : LedgerReport

        Raises
        ------
        LedgerError
            If the ledger can't be read or was changed.
        ValueError
            If the handle is closed.
        """
        self._check_open()
        return report_of(self._ledger.parameters, self._ledger.rows())

    # ---- the handle -----------------------------------------------------------------------------

    def close(self) -> None:
        """Close this handle (and whatever shares it); other handles and the file stay."""
        self._closed = True

    def _check_open(self):
        if self._closed:
            raise ValueError(
                "this accountant is closed; open its ledger again with "
                f"PrivacyAccountant.open({self.path!r})"
            )

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    path = property(lambda self: self._ledger.path, doc="Absolute path of the ledger.")
    epsilon = _stored("epsilon", "Budget for everything together.")
    delta = _stored("delta", "Budget for everything together.")
    neighboring = _stored("neighboring", "The neighbouring relation of the ledger.")
    max_contributions = _stored("max_contributions", "Records of a person, at most.")
    n_public = _stored("n_public", "Public number of records under add_remove, else None.")
    testing = _stored("testing", "Whether releases that protect nobody are admitted.")

    def __repr__(self):
        # Never what was spent: scikit-learn prints and compares parameters by their repr.
        text = f"epsilon={self.epsilon!r}, delta={self.delta!r}"
        if (neighbours := self._ledger.parameters.neighbours) != ("replace_one", 1):
            text += f", neighboring={as_stated(*neighbours)}"
        if self.n_public is not None:
            text += f", n_public={self.n_public!r}"
        return f"PrivacyAccountant({text}{', testing=True' if self.testing else ''})"

    _repr_html_ = html_of_balance

    def __eq__(self, other):
        if not isinstance(other, PrivacyAccountant):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def _identity(self):
        return self.path, self._ledger.parameters.ledger_id

    def __getstate__(self):
        parameters = dataclasses.asdict(self._ledger.parameters)
        return {
            "path": self.path,
            "parameters": parameters,
            "seen": self._ledger.seen,
            "closed": self._closed,
            "signature": (self.user, self.note),
            "locks": _files.proof(self.path),
        }

    def __setstate__(self, state):
        parameters = LedgerParameters(**state["parameters"])
        self._ledger = Ledger(state["path"], parameters, state["seen"])
        self._closed, (self.user, self.note) = state["closed"], state["signature"]
        _files.trust(state["locks"])
