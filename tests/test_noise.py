"""The noise: the key stream is ChaCha20, and both samplers follow their laws exactly.

Twins in slow exact arithmetic read the same words as the compiled samplers; statistics then judge
the laws themselves. Keys follow from the seed, so a test that passes for a seed passes always, and
a new seed raises a false alarm with a probability below 1e-6 for the whole file.
"""

import copy
import math
import os
import pickle
import struct

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from dpcd_sklearn.privacy._exact_gaussian import accept, cell, cell_table, exp_bracket
from dpcd_sklearn.privacy._noise import NoiseSource

P_VALUE = 1e-8  # of one comparison; there are fewer than a hundred
N_CELLS = 12  # as in _noise.pyx
FULL = 2**64 - 1


def key_of(seed, name):
    return np.random.default_rng([seed, *name.encode()]).bytes(32)


@pytest.fixture
def source(global_random_seed, request):
    """A source whose key follows from the seed and the name of the test."""
    return NoiseSource(key_of(global_random_seed, request.node.originalname))


# ---- the key stream ----------------------------------------------------------------------------


def quarter_round(s, a, b, c, d):
    for x, y, z, r in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & 0xFFFFFFFF
        s[z] ^= s[x]
        s[z] = (s[z] << r | s[z] >> (32 - r)) & 0xFFFFFFFF


def chacha20_block(key, counter, nonce):
    """RFC 8439, section 2.3."""
    start = [*b"expa", *b"nd 3", *b"2-by", *b"te k"]
    start = list(struct.unpack("<4I", bytes(start)))
    start += [*struct.unpack("<8I", key), counter, *struct.unpack("<3I", nonce)]
    s = start.copy()
    for _ in range(10):
        for i in range(4):
            quarter_round(s, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter_round(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack("<16I", *((x + y) & 0xFFFFFFFF for x, y in zip(s, start, strict=True)))


def as_bytes(words):
    return struct.pack(f"<{len(words)}Q", *words)


def test_the_key_stream_is_chacha20_of_rfc_8439():
    # section 2.3.2: this is block 1, and a source starts with block 0
    nonce = bytes.fromhex("000000090000004a00000000")
    stream = as_bytes(NoiseSource(bytes(range(32)), nonce=nonce).words(16))
    assert stream[64:] == bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )


def test_every_block_of_the_stream_follows_the_one_before(global_random_seed):
    # 8 blocks are made at a time: 43 end in the middle of the sixth time
    key = key_of(global_random_seed, "blocks")
    expected = b"".join(chacha20_block(key, counter, bytes(12)) for counter in range(43))
    source = NoiseSource(key)
    stream = as_bytes([word for size in (1, 7, 65, 271) for word in source.words(size)])
    assert stream == expected


def test_no_two_sources_share_a_stream():
    seen = {word for _ in range(1000) for word in NoiseSource().words(3)}
    assert len(seen) == 3000  # 64-bit words collide with a probability of 2.5e-13


def test_a_key_makes_noise_reproducible_and_another_key_other_noise():
    one, same, other = (NoiseSource(bytes([b] * 32)) for b in (1, 1, 2))
    values = one.gaussians(100, 30)
    assert_array_equal(values, same.gaussians(100, 30))
    assert not set(values) & set(other.gaussians(100, 30))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_forked_processes_share_no_stream():
    streams = [as_bytes(NoiseSource().words(4))]
    for _ in range(3):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writing, as_bytes(NoiseSource().words(4)))
            finally:
                os._exit(0)  # nothing of pytest may run in the child
        os.close(writing)
        streams.append(os.read(reading, 1000))
        os.close(reading)
        os.waitpid(pid, 0)
    streams.append(as_bytes(NoiseSource().words(4)))
    words = {stream[i : i + 8] for stream in streams for i in range(0, 32, 8)}
    assert [len(stream) for stream in streams] == [32] * 5
    assert len(words) == 20


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_is_never_copied_or_pickled(attempt):
    with pytest.raises(TypeError, match="never copied or pickled"):
        attempt(NoiseSource())


@pytest.mark.parametrize(("key", "nonce"), [(31, 12), (33, 12), (0, 12), (32, 11), (32, 13)])
def test_a_key_or_nonce_of_another_length_is_refused(key, nonce):
    with pytest.raises(ValueError, match="32 bytes"):
        NoiseSource(bytes(key), nonce=bytes(nonce))


@pytest.mark.parametrize("bits", [-1, 49, 64])
def test_more_bits_than_are_drawn_are_refused(bits):
    with pytest.raises(ValueError, match="bits"):
        NoiseSource().gaussians(1, bits)


# ---- the Gaussian: twin and law ----------------------------------------------------------------


def real_edges(digits=80):
    """P(k' <= k) of the discrete half-normal, as mpmath numbers."""
    with mpmath.workdps(digits):
        terms = [mpmath.exp(mpmath.mpf(-k * k) / 2) for k in range(40)]
        total = mpmath.fsum(terms)
        return [mpmath.fsum(terms[: k + 1]) / total for k in range(20)]


def acceptance(k, u):
    return mpmath.exp(-u * (2 * k + u) / 2)


def twin_of_gaussians(words, size, bits):
    """floor(2^bits N) from the words of a stream, each comparison in 60 digits."""
    edges, values = real_edges(), []
    with mpmath.workdps(60):
        while len(values) < size:
            a, b, c = next(words), next(words), next(words)
            cell_of_a = mpmath.mpf(a >> 1) / 2**63
            k = sum(edge <= cell_of_a for edge in edges)
            q = acceptance(k, mpmath.mpf(b) / 2**64) * 2**64
            assert abs(c - q) > 2  # an undecided draw, once in 2^62: take another seed
            if c < q:
                magnitude = (k << bits) + (b >> (64 - bits))
                values.append(-magnitude - 1 if a & 1 else magnitude)
    return values


@pytest.mark.parametrize("bits", [0, 1, 24, 48])
def test_gaussians_are_those_of_karneys_algorithm_on_the_same_words(bits, global_random_seed):
    key, size = key_of(global_random_seed, "karney"), 1500
    words = iter(NoiseSource(key).words(12 * size))
    expected = twin_of_gaussians(words, size, bits)
    assert_array_equal(NoiseSource(key).gaussians(size, bits), expected)


@pytest.mark.parametrize("bits", [20, 30, 48])
def test_many_bits_are_a_standard_normal(bits, source):
    size = 400_000
    draws = source.gaussians(size, bits) + 0.5
    normal = draws / 2.0**bits
    assert stats.kstest(normal, "norm").pvalue > P_VALUE
    # moments, in standard errors: Var N^k = E N^2k - (E N^k)^2
    for k, mean, square in ((1, 0, 1), (2, 1, 3), (3, 0, 15), (4, 3, 105), (6, 15, 10395)):
        error = np.mean(normal**k) - mean
        assert abs(error) < 6 * math.sqrt((square - mean**2) / size)


def pooled_cells(bits):
    """Cells of floor(2^bits N) and their exact probabilities; both tails are one cell each."""
    last = 4 << bits  # cells beyond 4 standard deviations are pooled
    edges = np.arange(-last, last + 1)
    below = stats.norm.cdf(edges / 2.0**bits)
    inner = np.diff(below)
    return edges, np.concatenate([below[:1], inner, 1 - below[-1:]])


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4])
def test_few_bits_have_the_exact_cell_probabilities(bits, source):
    size = 1_000_000
    edges, expected = pooled_cells(bits)
    # values < edges[0] | edges[i] <= values < edges[i + 1] | values >= edges[-1]
    where = np.searchsorted(edges, source.gaussians(size, bits), side="right")
    observed = np.bincount(where, minlength=len(expected))
    assert stats.chisquare(observed, expected * size).pvalue > P_VALUE


@pytest.mark.parametrize("bits", [0, 2, 10])
def test_both_signs_have_one_law(bits, source):
    draws = source.gaussians(1_000_000, bits)
    positive, negative = draws[draws >= 0], -draws[draws < 0] - 1
    assert stats.binomtest(len(positive), len(draws)).pvalue > P_VALUE
    top = max(1, (3 << bits) // 16)
    counts = [
        np.bincount(np.minimum(side // top, 16), minlength=17) for side in (positive, negative)
    ]
    counts = np.array(counts)[:, np.sum(counts, axis=0) > 10]
    assert stats.chi2_contingency(counts).pvalue > P_VALUE


def test_the_tails_are_not_cut(source):
    size = 4_000_000
    normal = np.abs(source.gaussians(size, 30) / 2.0**30)
    for t in (3.0, 4.0, 4.5, 5.0):
        seen = int(np.sum(normal > t))
        assert stats.binomtest(seen, size, 2 * stats.norm.sf(t)).pvalue > P_VALUE
    assert normal.max() > 4.5  # 27 such draws are expected


def test_the_lowest_bits_are_uniform_and_neighbours_independent(source):
    draws = source.gaussians(400_000, 48)
    for shift in (0, 8, 30):
        low = np.bincount((draws >> shift) & 0xFF, minlength=256)
        assert stats.chisquare(low).pvalue > P_VALUE
    normal = draws / 2.0**48
    for lag in (1, 2, 3):
        z = np.mean(normal[lag:] * normal[:-lag]) * math.sqrt(len(normal) - lag)
        assert 2 * stats.norm.sf(abs(z)) > P_VALUE


# ---- the exponential ---------------------------------------------------------------------------


def twin_of_log_exponentials(words, size):
    """log E for the reals that the words begin, in 60 digits."""
    values = []
    with mpmath.workdps(60):
        for _ in range(size):
            high = next(words)
            h = mpmath.mpf(high >> 1) / 2**64
            if high < 2**53:
                h += mpmath.mpf(next(words)) / 2**128
            values.append(mpmath.log(-mpmath.log(h if high & 1 else 1 - h)))
    return values


def test_log_exponentials_are_the_logarithms_of_the_uniform_reals_that_the_words_begin(
    global_random_seed,
):
    key, size = key_of(global_random_seed, "exponential"), 20_000  # ten with an appended word
    draws = NoiseSource(key).log_exponentials(size)
    expected = twin_of_log_exponentials(iter(NoiseSource(key).words(size + 100)), size)
    error = max(abs(float(mpmath.mpf(d) - e)) for d, e in zip(draws, expected, strict=True))
    assert error < 2.0**-48  # the relative error of E


def test_exponentials_follow_their_law_in_the_bulk_and_in_both_tails(source):
    size = 1 << 24
    log_e = source.log_exponentials(size)
    assert np.isfinite(log_e).all()
    assert stats.kstest(np.exp(log_e[: 1 << 19]), "expon").pvalue > P_VALUE
    # P(E < t) = 1 - exp(-t) is t (1 - t/2 ...) to all its digits, however small t is
    for bits in (1, 5, 10, 12, 15, 18, 20):
        seen = int(np.sum(log_e < -bits * math.log(2)))
        assert stats.binomtest(seen, size, -math.expm1(-(2.0**-bits))).pvalue > P_VALUE
    for t in (1.0, 5.0, 10.0, 12.0, 14.0):
        seen = int(np.sum(log_e > math.log(t)))
        assert stats.binomtest(seen, size, math.exp(-t)).pvalue > P_VALUE
    # beyond what 2^24 equally likely doubles could reach
    assert log_e.min() < -20 * math.log(2)


def test_small_exponentials_keep_the_bits_of_their_logarithm(source):
    # given E < 2^-11 the draw takes a second word: E / 2^-11 is again uniform, to many bits
    log_e = source.log_exponentials(1 << 23)
    small = np.exp(log_e[log_e < -12 * math.log(2)]) * 2.0**12
    assert len(np.unique(small)) == len(small)
    assert stats.kstest(small, "uniform").pvalue > P_VALUE


# ---- undecided cases: exact arithmetic ---------------------------------------------------------


class Words:
    """A scripted source of words that counts what is drawn."""

    def __init__(self, *words):
        self.words, self.drawn = words, 0

    def __call__(self):
        self.drawn += 1
        return self.words[self.drawn - 1]


def random_words(rng, size):
    return [int(word) for word in rng.integers(0, FULL, size, dtype=np.uint64, endpoint=True)]


def real(first, bits, *words):
    """The number in [0, 1) whose first bits are `first` and then those of the words."""
    value = mpmath.mpf(first) / 2**bits
    for word in words:
        bits += 64
        value += mpmath.mpf(word) / mpmath.mpf(2) ** bits
    return value


def truth_of_accept(k, b, c, words):
    """The decision of the reals that all the words begin, u and v taking turns."""
    return real(c, 64, *words[1::2]) < acceptance(k, real(b, 64, *words[::2]))


def undecided(k, b, c, slack=0):
    """Whether reals that begin with b and c exist on both sides, or closer than the slack."""
    most, least = acceptance(k, real(b, 64)), acceptance(k, real(b + 1, 64))
    return real(c, 64) < most + slack and real(c + 1, 64) > least - slack


ADVERSARIAL_B = (0, 1, 2**32, 2**63, FULL - 1, FULL)


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(150):
        yield


@pytest.mark.parametrize("k", [0, 1, 2, 7, 11, 40])
def test_accept_decides_as_the_reals_do_and_draws_only_when_it_must(k, global_random_seed):
    rng = np.random.default_rng([global_random_seed, k])
    n_undecided = 0
    for b in [*ADVERSARIAL_B, *random_words(rng, 60)]:
        threshold = int(mpmath.floor(acceptance(k, real(b, 64)) * 2**64))
        near = [threshold + d for d in (-100, -k - 2, -k, -2, -1, 0, 1, 2, 100)]
        for c in [*near, *random_words(rng, 3), 0, FULL]:
            if not 0 <= c <= FULL:
                continue
            words = random_words(rng, 8)
            draw = Words(*words)
            assert accept(k, b, c, draw) == truth_of_accept(k, b, c, words)
            if undecided(k, b, c):
                assert draw.drawn > 0
            elif draw.drawn:  # the first brackets have 40 digits
                assert undecided(k, b, c, slack=mpmath.mpf(10) ** -38)
            n_undecided += draw.drawn > 0
    assert n_undecided > 50


@pytest.mark.parametrize("k", [0, 1, 5, 11])
def test_a_tie_goes_either_way_by_the_bits_that_extend_it(k, global_random_seed):
    rng = np.random.default_rng([global_random_seed, k])
    for b in random_words(rng, 20):
        c = int(mpmath.floor(acceptance(k, real(b, 64)) * 2**64))
        lower, upper = Words(0, 0), Words(FULL, FULL)
        assert accept(k, b, c, lower) is True
        assert accept(k, b, c, upper) is False
        assert (lower.drawn, upper.drawn) == (2, 2)
        # v extended to the threshold's own bits ties once more, and goes either way once more
        u = random_words(rng, 1)[0]
        exact = acceptance(k, real(b, 64, u)) * mpmath.mpf(2) ** 128
        v = int(mpmath.floor(exact)) - (c << 64)
        if 0 <= v <= FULL:  # else the first 64 bits differ: the longer u moved the threshold
            for last, expected in ((0, True), (FULL, False)):
                draw = Words(u, v, last, last)
                assert accept(k, b, c, draw) is expected
                assert draw.drawn == 4


def test_the_table_of_cells_is_that_of_high_precision():
    edges = real_edges(100)
    expected = [int(mpmath.floor(edge * 2**63)) for edge in edges[: N_CELLS - 1]]
    assert cell_table(N_CELLS) == [*expected, 2**63 - 1]
    assert all(edge < 1 - mpmath.mpf(2) ** -140 for edge in edges[:5])


def test_cell_decides_as_the_reals_do_and_draws_only_when_it_must(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    edges = real_edges(150)
    near = [e + d for e in cell_table(N_CELLS) for d in (-1, 0, 1) if e + d < 2**63]
    for a in [0, *near, *(word >> 1 for word in random_words(rng, 40))]:
        words = random_words(rng, 6)
        draw = Words(*words)
        assert cell(a, draw) == sum(edge <= real(a, 63, *words) for edge in edges)
        through = [real(a, 63) < edge < real(a + 1, 63) for edge in edges]
        assert (draw.drawn > 0) == any(through)


@pytest.mark.parametrize("k", range(9))  # the cells from 9 on share their first 63 bits
def test_an_edge_of_a_cell_goes_either_way_by_the_bits_that_extend_it(k):
    edge = real_edges(150)[k]
    a = int(mpmath.floor(edge * 2**63))
    w = int(mpmath.floor(edge * mpmath.mpf(2) ** 127)) - (a << 64)
    for words, expected in (((0,), k), ((FULL,), k + 1), ((w, 0), k), ((w, FULL), k + 1)):
        draw = Words(*words)
        assert cell(a, draw) == expected
        assert draw.drawn == len(words)


def test_the_last_63_bits_are_shared_by_all_far_cells_and_settled_by_more():
    a = 2**63 - 1
    edges = real_edges(150)
    for k in range(10, 14):
        middle = (edges[k - 1] + edges[k]) / 2 * mpmath.mpf(2) ** (63 + 4 * 64)
        bits = int(mpmath.floor(middle)) - (a << 256)
        words = [bits >> 64 * i & FULL for i in (3, 2, 1, 0)]
        assert cell(a, Words(*words)) == k


def test_brackets_of_the_exponential_hold_it_and_shrink(global_random_seed):
    from fractions import Fraction

    rng = np.random.default_rng(global_random_seed)
    numbers = [Fraction(0), Fraction(-1, 3), Fraction(-3200), Fraction(-1, 2**120)]
    numbers += [-Fraction(word, 2**58) for word in random_words(rng, 50)]
    for x in numbers:
        exact = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
        for digits in (20, 40, 80):
            low, high = (mpmath.mpf(f.numerator) / f.denominator for f in exp_bracket(x, digits))
            assert low <= exact <= high
            assert high - low <= exact * mpmath.mpf(10) ** (5 - digits)
