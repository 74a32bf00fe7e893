"""The rooms on which the guarantee rests; ``proofs/`` has a page for each mechanism.

``mechanisms`` release what ``sums`` and ``noise`` make, under a receipt of ``accounting``;
``ledger`` decides which events are charged, by the costs of ``accounting``. Nothing else reads
records or draws noise, and imports point downwards only.
"""
