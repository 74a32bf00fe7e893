"""The filter, its file and the accountant: whether a charge is admitted, and that it lasts.

Promises: everything that is released for charges of one ledger is together (epsilon, delta)-private
for the budget that was fixed beforehand, and a charge is on the disk before its receipt is out.
Relies on ``accounting`` for the cost of an event, on SQLite, and on whoever holds the receipt to
release what its event says; records, noise and mechanisms are strangers here. Proof:
``proofs/accountant.md``. Mutants: covers and residues of one direction, of part of the line or by
variance, and points used twice, overspend, in ``tests/test_residues.py``; kills, full disks and
damaged files are in ``tests/test_accountant_faults.py``.
"""

from ._accountant import LedgerEntry, PrivacyAccountant, charge
from ._ledger_entries import Balance
from ._prepaid import Prepaid

__all__ = ["Balance", "LedgerEntry", "Prepaid", "PrivacyAccountant", "charge"]
