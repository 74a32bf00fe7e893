"""Tables of the Gaussian sampler, and its undecided cases settled in exact arithmetic.

The half line is cut into cells [j, j+1)/64. The fast path of ``_noise.NoiseSource.gaussian``
compares uniform numbers with real thresholds, both known to many bits. When they agree in these it
asks here: the uniform numbers are extended by fresh bits until interval arithmetic decides. Proof:
``proofs/gaussian.md``.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

CELLS = 64  # to a unit
U_BITS, V_BITS = 42 + 64, 22 + 64  # drawn before `accept` is asked


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


def _fixed_exp(x, bits):
    """Integers below and above 2^bits exp(x)."""
    low, high = exp_bracket(x, math.ceil(bits * math.log10(2)) + 5)
    return math.floor(low * 2**bits), math.ceil(high * 2**bits)


def _terms(bits, n_terms):
    """Brackets of 2^bits exp(-(j/64)^2/2), and of the ratio of each to the one before it."""
    # exp(-((j+1)^2 - j^2) / 8192) = exp(-1/8192) exp(-1/4096)^j
    ratio = _fixed_exp(Fraction(-1, 2 * CELLS**2), bits)
    step = _fixed_exp(Fraction(-1, CELLS**2), bits)
    term, terms, ratios = (1 << bits, 1 << bits), [], []
    for _ in range(n_terms):
        terms.append(term)
        ratios.append(ratio)
        term = _product(term, ratio, bits)
        ratio = _product(ratio, step, bits)
    return terms, ratios


def _product(x, y, bits):
    return x[0] * y[0] >> bits, -(-x[1] * y[1] >> bits)


def _cumulative(bits):
    """Brackets of 2^bits P(j' <= j), j = 0, 1, ..., for P(j) ~ exp(-(j/64)^2/2).

    They end where 1 - P(j' <= j) is below 2^-bits; each is at most a few units wide.
    """
    guarded = bits + 64
    # exp(-(n/64)^2/2) is below 2^-guarded
    terms, _ = _terms(guarded, CELLS * math.isqrt(2 * guarded) + CELLS)
    total_low = sum(low for low, _ in terms)
    # Beyond x = 1 the ratios are below exp(-1/64), so the tail is below 65 times its first term.
    total_high = sum(high for _, high in terms) + 65 * terms[-1][1]
    brackets, below, above = [], 0, 0
    for low, high in terms[:-1]:
        below, above = below + low, above + high
        least = (below << bits) // total_high
        brackets.append((least, min(1 << bits, -((-above << bits) // total_low))))
        if least >= (1 << bits) - 2:
            break
    return brackets


def cell_table(n_cells):
    """floor(2^63 P(j' <= j)) for j < n_cells; the last is 2^63 - 1, beyond it `cell` decides."""
    table = []
    for low, high in _cumulative(192)[: n_cells - 1]:
        if low >> 129 != high >> 129:
            raise ArithmeticError("192 bits do not settle an edge of the cell table")
        table.append(low >> 129)
    return [*table, 2**63 - 1]


def sure_table(n_cells, bits):
    """floor(2^bits q) for the least acceptance probability q = exp(-(2j+1)/8192) of a cell."""
    _, ratios = _terms(128, n_cells)
    if any(low >> (128 - bits) != high >> (128 - bits) for low, high in ratios):
        raise ArithmeticError("128 bits do not settle a table of acceptance probabilities")
    return [low >> (128 - bits) for low, _ in ratios]


def cell(a, draw):
    """The j of a uniform number whose first 63 bits are `a`, extending it with draw() words."""
    drawn = 63
    while True:
        bits = drawn + 128
        least = a << 128
        most = least + (1 << 128)
        below = 0  # j' <= j holds for none of the cells that lie wholly below the number
        for low, high in _cumulative(bits):
            if high <= least:
                below += 1
            elif low >= most:
                return below
            else:
                break
        a, drawn = a << 64 | draw(), drawn + 64


def accept(j, u, v, draw):
    """Whether V < exp(-U (2j + U) / 8192), for uniform U and V whose first bits are u and v.

    u has the first 106 bits of U and v the first 86 of V.
    """
    u, v = Fraction(u, 2**U_BITS), Fraction(v, 2**V_BITS)
    u_bits, v_bits, digits = U_BITS, V_BITS, 50
    while True:
        u_end, v_end = u + Fraction(1, 2**u_bits), v + Fraction(1, 2**v_bits)
        least = exp_bracket(-u_end * (2 * j + u_end) / (2 * CELLS**2), digits)[0]
        most = exp_bracket(-u * (2 * j + u) / (2 * CELLS**2), digits)[1]
        if v_end <= least:
            return True
        if v >= most:
            return False
        u_bits, v_bits, digits = u_bits + 64, v_bits + 64, digits + 20
        u += Fraction(draw(), 2**u_bits)
        v += Fraction(draw(), 2**v_bits)
