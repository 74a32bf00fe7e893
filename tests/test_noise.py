"""The noise: the key stream is ChaCha20, and both samplers follow their laws exactly.

Twins in slow exact arithmetic read the same words as the compiled samplers; statistics then judge
the laws themselves. Keys follow from the seed, so a test that passes for a seed passes always, and
a new seed raises a false alarm with a probability below 1e-6 for the whole file.
"""

import bisect
import copy
import functools
import math
import os
import pickle
import struct

import mpmath
import numpy as np
import pytest
from forks import forked, in_a_new_process
from numpy.testing import assert_array_equal
from scipy import stats
from tables import table
from unreleased import go_on_with

from dpcd_sklearn.privacy.noise import NoiseSource, _exact_gaussian
from dpcd_sklearn.privacy.noise._exact_gaussian import accept, cell, cell_table, sure_table
from dpcd_sklearn.privacy.noise._noise import USES_AVX2

P_VALUE = 1e-8  # of one comparison; there are fewer than a hundred
N_CELLS = 600  # as in _noise.pyx
CELLS = 64  # to a unit
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
    # 32 blocks are made at a time: 83 end in the middle of the third time
    key = key_of(global_random_seed, "blocks")
    expected = b"".join(chacha20_block(key, counter, bytes(12)) for counter in range(83))
    source = NoiseSource(key)
    stream = as_bytes([word for size in (1, 7, 65, 591) for word in source.words(size)])
    assert stream == expected


@pytest.mark.parametrize("halvings", [1, 3, 7])
def test_a_row_is_sampled_where_so_many_words_have_its_bit(halvings):
    key, size = key_of(0, f"sample {halvings}"), 100_003
    words = np.array(NoiseSource(key).words(-(-size // 64) * halvings), dtype=np.uint64)
    kept = np.bitwise_and.reduce(words.reshape(-1, halvings), axis=1)
    rows = [i for i in range(size) if int(kept[i // 64]) >> i % 64 & 1]
    found = NoiseSource(key).sample(size, halvings)
    np.testing.assert_array_equal(found, rows)
    rate = 2.0**-halvings
    assert abs(len(found) - size * rate) < 6 * (size * rate * (1 - rate)) ** 0.5
    assert NoiseSource(key).sample(0, halvings).size == 0


DIGEST = """
import hashlib
from dpcd_sklearn.privacy.noise._noise import USES_AVX2, NoiseSource
source, digest = NoiseSource(bytes.fromhex("{key}")), hashlib.sha256()
for word in source.words(1000):
    digest.update(word.to_bytes(8, "little"))
for size in (1, 2, 255, 20_001):
    digest.update(source.gaussians(size, 48).tobytes() + source.log_exponentials(size).tobytes())
print(USES_AVX2, digest.hexdigest())
"""


def test_the_portable_code_gives_the_bits_of_the_code_for_avx2(global_random_seed):
    code = DIGEST.format(key=key_of(global_random_seed, "portable").hex())
    outputs = []
    for portable in ("0", "1"):
        outputs.append(in_a_new_process(code, DPCD_PORTABLE=portable).split())
    assert outputs[0][1] == outputs[1][1]
    assert outputs[1][0] == "False"
    if os.environ.get("DPCD_PORTABLE", "0") in ("", "0"):
        assert outputs[0][0] == str(USES_AVX2)


def test_no_two_sources_share_a_stream():
    seen = {word for _ in range(1000) for word in NoiseSource().words(3)}
    assert len(seen) == 3000  # 64-bit words collide with a probability of 2.5e-13


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system can't fork")
def test_forked_processes_share_no_stream():
    streams = [as_bytes(NoiseSource().words(4))]
    streams += [forked(lambda: as_bytes(NoiseSource().words(4)))() for _ in range(3)]
    streams.append(as_bytes(NoiseSource().words(4)))
    words = {stream[i : i + 8] for stream in streams for i in range(0, 32, 8)}
    assert [len(stream) for stream in streams] == [32] * 5
    assert len(words) == 20


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_source_is_never_copied_or_pickled(attempt):
    with pytest.raises(TypeError, match="never copied or pickled"):
        attempt(NoiseSource())


@table(("key", "nonce"), [(31, 12), (33, 12), (0, 12), (32, 11), (32, 13)])
def test_a_key_or_nonce_of_another_length_is_refused(key, nonce):
    with pytest.raises(ValueError, match="32 bytes"):
        NoiseSource(bytes(key), nonce=bytes(nonce))


@pytest.mark.parametrize("bits", [-1, 49, 64])
def test_more_bits_than_are_drawn_are_refused(bits):
    with pytest.raises(ValueError, match="bits"):
        NoiseSource().gaussians(1, bits)


# ---- the Gaussian: twin and law ----------------------------------------------------------------


@functools.cache
def real_edges(digits=100):
    """P(j' <= j) for P(j) ~ exp(-(j/64)^2/2), as mpmath numbers; 1 - the last is below 1e-270."""
    with mpmath.workdps(digits + 20):
        terms = [mpmath.exp(-((mpmath.mpf(j) / CELLS) ** 2) / 2) for j in range(2300)]
        edges = list(np.cumsum(terms))
        return [edge / edges[-1] for edge in edges[:-1]]


def acceptance(j, u):
    return mpmath.exp(-u * (2 * j + u) / (2 * CELLS**2))


def twin_of_gaussians(words, size, bits):
    """floor(2^bits N) from the words of a stream, each comparison in 60 digits."""
    values, n_long = [], 0
    with mpmath.workdps(60):
        while len(values) < size:
            a, b = next(words), next(words)
            j = bisect.bisect_right(real_edges(), mpmath.mpf(a >> 1) / 2**63)
            u, v = b >> 22, b % 2**22
            sure = v < int(acceptance(j, mpmath.mpf(1)) * 2**22)
            if not sure:
                n_long += 1
                u_long, v = u << 64 | next(words), v << 64 | next(words)
                q = acceptance(j, mpmath.mpf(u_long) / 2**106) * 2**86
                assert abs(v - q) > 2  # an undecided draw, once in 2^84: take another seed
            if sure or v < q:
                magnitude = (j << 42 | u) >> (48 - bits)
                values.append(-magnitude - 1 if a & 1 else magnitude)
    assert n_long > size // 200
    return values


@pytest.mark.parametrize("bits", [0, 1, 6, 24, 48])
def test_gaussians_are_those_of_their_algorithm_on_the_same_words(bits, global_random_seed):
    key, size = key_of(global_random_seed, "cells"), 4000
    words = iter(NoiseSource(key).words(3 * size))
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


# ---- the exponential ---------------------------------------------------------------------------


def small_uniform(words):
    """The number in (0, 1/2) that the words begin, with 52 bits after its leading zeros; a bit."""
    first, bits = next(words), 64
    h = mpmath.mpf(first >> 1) / 2**64
    if first < 2**53:
        for bits in (128, 192, 256, 320):
            h += mpmath.mpf(next(words)) / mpmath.mpf(2) ** bits
            if h >= mpmath.mpf(2) ** (52 - bits):
                break
    return h + mpmath.mpf(2) ** -330, first & 1


def log_exponential(h, bit):
    return mpmath.log(-mpmath.log(h if bit else 1 - h))


def twin_of_log_exponentials(words, size):
    """log E for the reals that the words begin, in 60 digits."""
    with mpmath.workdps(60):
        return [log_exponential(*small_uniform(words)) for _ in range(size)]


def test_log_exponentials_are_the_logarithms_of_the_uniform_reals_that_the_words_begin(
    global_random_seed,
):
    key, size = key_of(global_random_seed, "exponential"), 20_000  # ten with an appended word
    draws = NoiseSource(key).log_exponentials(size)
    expected = twin_of_log_exponentials(iter(NoiseSource(key).words(size + 100)), size)
    error = max(abs(float(mpmath.mpf(d) - e)) for d, e in zip(draws, expected, strict=True))
    assert error < 2.0**-48  # the relative error of E


def adversarial_halves():
    """63-bit numbers a, h = a / 2^64: at the ends, at the splits of both logarithms, and zeros."""
    splits = [2**-0.5, 1.0, 2**-1.5, 0.2929, 0.25, 1 - 2**-0.5, math.exp(-1), 1 - math.exp(-1)]
    near = [round(split * 2**shift) for split in splits for shift in range(45, 65)]
    numbers = [a + d for a in near for d in (-4096, -1, 0, 1, 4096)]
    numbers += [2**63 - 1 - 2**shift for shift in range(63)] + [2**shift for shift in range(63)]
    return sorted({a for a in [0, 1, 2, 3, 2**63 - 1, *numbers] if 0 <= a < 2**63})


@table("more", [0, 1, 2**32, 2**52 - 1, 2**52, 2**64 - 1])
@table("bit", [0, 1])
def test_log_exponentials_keep_to_the_bound_of_their_proof_at_adversarial_words(bit, more):
    halves = adversarial_halves()
    assert len(halves) > 600
    largest = 0
    for a in halves:
        words = [a << 1 | bit, more, 2**51, 5, 0, 12345, 2**60]
        rest = iter(words)
        exact = log_exponential(*small_uniform(rest))
        source = go_on_with(NoiseSource(), words)
        log_e = source.log_exponentials(1)[0]
        assert source.words(1) == [next(rest)]  # as many words were read
        largest = max(largest, abs(mpmath.mpf(log_e) - exact) - abs(exact) * 2.0**-53)
    assert largest < 2.0**-49


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


U_BITS, V_BITS = 106, 86  # drawn before `accept` is asked


def random_positions(rng, size):
    """Random numbers of 106 bits."""
    words = iter(random_words(rng, 2 * size))
    return [(a >> 22) << 64 | b for a, b in zip(words, words, strict=True)]


ADVERSARIAL_U = (0, 1, 2**32, 2**105, 2**U_BITS - 2, 2**U_BITS - 1)
SOME_CELLS = [0, 1, 2, 63, 64, 200, 599, 640, 3000]


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(150):
        yield


def at_the_threshold(j, u):
    """The 86 bits of v that don't decide."""
    return int(mpmath.floor(acceptance(j, real(u, U_BITS)) * 2**V_BITS))


@pytest.mark.parametrize("j", SOME_CELLS)
def test_a_tie_goes_either_way_by_the_bits_that_extend_it(j, global_random_seed):
    rng = np.random.default_rng([global_random_seed, j])
    n_second = 0
    for u in random_positions(rng, 20):
        v = at_the_threshold(j, u)
        lower, upper = Words(0, 0), Words(0, FULL)
        assert accept(j, u, v, lower) is True
        assert accept(j, u, v, upper) is False
        assert (lower.drawn, upper.drawn) == (2, 2)
        # v extended to the threshold's own bits ties once more, and goes either way once more
        more = random_words(rng, 1)[0]
        exact = acceptance(j, real(u, U_BITS, more)) * mpmath.mpf(2) ** (V_BITS + 64)
        bits = int(mpmath.floor(exact)) - (v << 64)
        if 0 <= bits <= FULL:  # else v's first bits differ: the longer u moved the threshold
            n_second += 1
            for last, expected in ((0, True), (FULL, False)):
                draw = Words(more, bits, 0, last)
                assert accept(j, u, v, draw) is expected
                assert draw.drawn == 4
    assert n_second > 15


def test_the_tables_are_those_of_high_precision():
    edges = [int(mpmath.floor(edge * 2**63)) for edge in real_edges()[: N_CELLS - 1]]
    assert cell_table(N_CELLS) == [*edges, 2**63 - 1]
    assert edges[-1] == 2**63 - 1  # all cells that the table leaves out share these bits
    least = [acceptance(j, mpmath.mpf(1)) for j in range(N_CELLS)]
    assert sure_table(N_CELLS, 22) == [int(mpmath.floor(q * 2**22)) for q in least]


@pytest.mark.parametrize("j", [0, 1, 2, 64, 200, 400, 500])
def test_an_edge_of_a_cell_goes_either_way_by_the_bits_that_extend_it(j):
    edge = real_edges(150)[j]
    a = int(mpmath.floor(edge * 2**63))
    w = int(mpmath.floor(edge * mpmath.mpf(2) ** 127)) - (a << 64)
    for words, expected in (((0,), j), ((FULL,), j + 1), ((w, 0), j), ((w, FULL), j + 1)):
        draw = Words(*words)
        assert cell(a, draw) == expected
        assert draw.drawn == len(words)


FAR_CELLS = [590, 599, 600, 601, 650, 1000]


def words_of_a_far_cell(j):
    """Words that extend 2^63 - 1 into the middle of a cell."""
    edges = real_edges(150)
    middle = (edges[j - 1] + edges[j]) / 2 * mpmath.mpf(2) ** (63 + 6 * 64)
    bits = int(mpmath.floor(middle)) - (2**63 - 1 << 384)
    return [bits >> 64 * i & FULL for i in (5, 4, 3, 2, 1, 0)]


# ---- the compiled sampler in the undecided cases -----------------------------------------------

MARK = 0x0123456789ABCDEF


def gaussian_of(words, bits=48):
    """The draw from these words; all of them are used."""
    source = go_on_with(NoiseSource(), [*words, MARK])
    value = source.gaussians(1, bits)[0]
    assert source.words(1) == [MARK]
    return value


def word_in(j):
    """A word, of positive sign, whose number lies within cell j alone."""
    return ((cell_table(N_CELLS)[j - 1] if j else 0) + 1) << 1


def split(u, v):
    """The words b, c, d that begin u and v."""
    return [u >> 64 << 22 | v >> 64, u & FULL, v & FULL]


@table("sign", [0, 1])
@table("j", FAR_CELLS)
def test_a_draw_from_the_far_tail_is_not_cut(j, sign):
    cell_words, drawn = words_of_a_far_cell(j), Words(*words_of_a_far_cell(j))
    cell(2**63 - 1, drawn)
    words = [FULL - 1 + sign, *cell_words[: drawn.drawn], 5 << 22]
    expected = j << 42 | 5
    if j >= N_CELLS:  # no table of sure acceptances: u and v are extended
        words += [0, 0]
    for bits in (0, 30, 48):
        shifted = expected >> (48 - bits)
        assert gaussian_of(words, bits) == (~shifted if sign else shifted)


@pytest.mark.parametrize("j", [0, 1, 64, 200, 400, 540])
def test_close_decisions_are_those_of_the_reals(j, global_random_seed):
    # below 2^-45 by exact arithmetic, above by doubles: v has 86 bits
    rng = np.random.default_rng([global_random_seed, j])
    n_compared, sure = 0, int(acceptance(j, mpmath.mpf(1)) * 2**22)
    for u in [*ADVERSARIAL_U, *random_positions(rng, 6)]:
        threshold = at_the_threshold(j, u)
        for shift in (1, 20, 38, 40, 41, 42, 43, 45, 50):
            for v in (threshold - 2**shift, threshold + 2**shift):
                if not sure << 64 <= v < 2**V_BITS:
                    continue
                n_compared += 1
                words = [word_in(j), *split(u, v)]
                if v < threshold:
                    assert gaussian_of(words) == (j << 42 | u >> 64)
                else:
                    assert gaussian_of([*words, word_in(7), 9 << 22]) == (7 << 42 | 9)
    assert n_compared > 100


@pytest.mark.parametrize("name", ["cell", "accept"])
def test_a_source_whose_exact_arithmetic_fails_gives_nothing_more(name, monkeypatch):
    def fail(*args):
        raise MemoryError

    monkeypatch.setattr(_exact_gaussian, name, fail)
    u = 2**105
    words = [FULL] if name == "cell" else [word_in(3), *split(u, at_the_threshold(3, u))]
    source = go_on_with(NoiseSource(), words)
    with pytest.raises(RuntimeError, match="nothing was released"):
        source.gaussians(1, 30)
    assert source.failed
    with pytest.raises(RuntimeError, match="nothing was released"):
        source.gaussians(1, 30)
