"""The undecided cases of the Gaussian sampler, settled in exact arithmetic.

The fast path of ``_noise.NoiseSource.gaussian`` compares a uniform number with a real threshold,
both known to about 50 bits. When they agree to 45 bits it asks here: the uniform numbers are
extended by fresh bits until interval arithmetic decides. Proof: ``proofs/gaussian.md``.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


def _bracket(x, digits):
    """Decimals below and above the fraction x, at the given number of digits."""
    top, bottom = Decimal(x.numerator), Decimal(x.denominator)
    return (
        Context(prec=digits, rounding=ROUND_FLOOR).divide(top, bottom),
        Context(prec=digits, rounding=ROUND_CEILING).divide(top, bottom),
    )


def exp_bracket(x, digits):
    """Fractions below and above exp(x) for a fraction x <= 0, about `digits` digits apart."""
    low, high = _bracket(x, digits)
    context = Context(prec=digits)
    # Decimal.exp is correctly rounded: one unit in the last place to each side is enough.
    below = context.next_minus(context.exp(low))
    above = context.next_plus(context.exp(high))
    return max(Fraction(0), Fraction(below)), Fraction(above)


def _cumulative(digits, n_terms=80):
    """Brackets of P(k' <= k), k = 0, 1, ..., n_terms - 2, of the discrete half-normal."""
    terms = [exp_bracket(Fraction(-k * k, 2), digits) for k in range(n_terms)]
    # The tail beyond n_terms is below twice its first term.
    tail = 2 * exp_bracket(Fraction(-n_terms * n_terms, 2), digits)[1]
    total_low = sum(low for low, _ in terms)
    total_high = sum(high for _, high in terms) + tail
    brackets, low, high = [], Fraction(0), Fraction(0)
    for term_low, term_high in terms[:-1]:
        low, high = low + term_low, high + term_high
        brackets.append((low / total_high, min(Fraction(1), high / total_low)))
    return brackets


def cell_table(n_cells):
    """floor(2^63 P(k' <= k)) for k < n_cells; the last is 2^63 - 1, beyond it `cell` decides."""
    table = []
    for low, high in _cumulative(60)[: n_cells - 1]:
        below, above = int(low * 2**63), int(high * 2**63)
        if below != above:
            raise ArithmeticError("60 digits do not settle an edge of the cell table")
        table.append(below)
    return [*table, 2**63 - 1]


def cell(a, draw):
    """The k of a uniform number whose first 63 bits are `a`, extending it with draw() words."""
    a, bits, digits = Fraction(a, 2**63), 63, 80
    while True:
        width = Fraction(1, 2**bits)
        below = 0  # k' <= k holds for none of the cells that lie wholly below the number
        for low, high in _cumulative(digits):
            if high <= a:
                below += 1
            elif low >= a + width:
                return below
            else:
                break
        a, bits, digits = a + Fraction(draw(), 2 ** (bits + 64)), bits + 64, digits + 20


def accept(k, b, c, draw):
    """Whether v < exp(-u (2k + u) / 2), for uniform u and v whose first 64 bits are b and c."""
    u, v, bits, digits = Fraction(b, 2**64), Fraction(c, 2**64), 64, 40
    while True:
        width = Fraction(1, 2**bits)
        least = exp_bracket(-(u + width) * (2 * k + u + width) / 2, digits)[0]
        most = exp_bracket(-u * (2 * k + u) / 2, digits)[1]
        if v + width <= least:
            return True
        if v >= most:
            return False
        u += Fraction(draw(), 2 ** (bits + 64))
        v += Fraction(draw(), 2 ** (bits + 64))
        bits, digits = bits + 64, digits + 20
