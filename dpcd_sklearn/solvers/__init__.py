"""Solvers: they see the oracle and public numbers, never the records. One file each."""
