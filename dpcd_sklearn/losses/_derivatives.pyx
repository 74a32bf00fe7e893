"""Derivatives of losses, compiled twice; both compilations give the same bits.

See ``_derivatives.h``.
"""

DERIVATIVES = dpcd_choose_derivatives()
