"""What was released, and what it costs: events, receipts, curves, calibration and translation.

Promises: the loss that is stated for an event is at least the true one, and noise that is
calibrated to a loss is at least what the loss needs; an event without a row in the table of costs
(``_accounting.COSTS``) is refused. Relies on no other room of privacy: no record and no noise is
seen here; an event is public numbers, and a receipt says that it was charged. Proofs:
``proofs/accounting.md`` (Gaussians, zCDP), ``proofs/selections.md`` (choices), ``proofs/loss.md``
(distributions of loss), ``proofs/renyi.md`` (orders, samples), ``proofs/private_tuning.md`` (the
best of a secret number of runs) and ``proofs/release_last_iterate.md`` (hidden states). Mutants:
half the noise counts at least twice the loss, in ``tests/test_selections.py``; made-up events
without a row are refused, in ``tests/test_costs.py``.
"""
