"""The loops of the solvers, and what they share.

They see an oracle and public numbers, never the records: everything here is post-processing of what
was released. One file each.
"""
