"""What the fit recipe needs to know about each solver: which problems it solves, and its plan.

An engine is bound once to a frozen request, public numbers and parameters, and every number of
the fit follows from it: geometry, updates, clip, and the event that is charged. It makes the
oracle from the receipt and hands it to the solver, and sees no record before that. A new solver
is one engine in its own file and a line in ``_engines.py``; ``doc/add_solver.rst`` walks through
one.
"""
