"""The room on which the guarantee rests. ``proofs/`` has a page for each mechanism."""
