"""The plan of a fit: every number of it, from parameters and public facts alone.

A plan is bound once to a frozen request, and all follows from it: geometry, updates, clip, what is
released beside the updates, and the event that is charged. It sees no record before the charge.
"""
