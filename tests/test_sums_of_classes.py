"""Sums at a moving iterate of several outputs a record, against a twin of ten lines of NumPy.

Coordinate c = k * P + j moves margin k. A record's vector is r_k x_j over the block, clipped one by
one, or by one norm over all its classes.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tables import table
from test_privacy_properties import MAGNITUDES, extreme, positive, properties
from twins import EVERY_LAYOUT as LAYOUTS
from twins import Records as Twins
from unreleased import answers, move

from dpcd_sklearn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from dpcd_sklearn.privacy.sums import LocalPlace
from dpcd_sklearn.privacy.sums._geometry_sums import WholeRows
from dpcd_sklearn.privacy.sums._records import Records

LIMIT, CLIP = 2.0**22, 0.3
C = "ascontiguousarray"


class Case(Twins):
    """Records of K classes with every option of the sums, and what NumPy says about them."""

    def __init__(
        self, K, *, n=211, p=13, density=0.25, weighted=True, alike=False, loss=None, **options
    ):
        loss = loss or (MultinomialLoss() if K > 1 else LogisticLoss())
        super().__init__(n=n, p=p, K=K, loss=loss, weighted=weighted, **options)
        self.p, self.rng = p, np.random.default_rng([K, n, p])
        # columns of all sizes: few records have the last ones
        self.X[self.rng.random((n, p)) >= density ** np.linspace(0, 2, p)] = 0.0
        if self.bounds is not None:
            self.bounds = *self.bounds[:2], np.zeros(p)  # sparse records are not centred
        M = self.rng.uniform(0.3, 3, (K, self.d))
        self.M, self.coef = np.where(alike, M[:1], M).ravel(), np.zeros(K * self.d)

    def sums(self, layout, *, n_threads=1, order=slice(None), **how):
        weights = None if self.weights is None else self.weights[order]
        X = LAYOUTS[layout](self.X[order])
        place = LocalPlace(X, self.y[order], weights, self.bounds, n_threads)
        how |= {"fit_intercept": self.intercept, "n_outputs": self.K}
        return place.moving(self.loss, self.M, **how)

    def twin(self, block, *, joint, clip, limit):
        """Clipped vectors of the block in the geometry of M^(-1/2), in units, summed."""
        G = np.einsum("ik,ij->ikj", self.derivatives(self.coef), self.rows()).reshape(self.n, -1)
        if limit == 0:
            return G.sum(axis=0)[block]
        H = (G / np.sqrt(self.M))[:, block] / clip
        if joint:
            H /= np.maximum(1, np.linalg.norm(H, axis=1))[:, None]
        return np.rint(np.clip(H, -1, 1) * limit).sum(axis=0)

    def assert_twins(self, found, block, **question):
        expected = self.twin(block, **question)
        if question["limit"] == 0:
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
            return
        # A contribution that lies on an edge of rounding may fall to either side, and a norm of
        # which the last digits differ moves each of n contributions by 1e-16 LIMIT.
        assert_allclose(found, expected, rtol=0, atol=2)

    def moves(self, count):
        """Steps of every kind, and questions of every kind."""
        size, P = len(self.M), self.d
        for _ in range(count):
            kind, step = self.rng.integers(6), np.zeros(size)
            if kind == 0:  # all
                step[:] = self.rng.standard_normal(size) / np.sqrt(self.p)
            elif kind in (1, 2):  # one, or a few, of any class
                few = self.rng.choice(size, min(size, kind if kind == 1 else 3), replace=False)
                step[few] = self.rng.normal(0, 2, len(few))
            elif kind == 3:  # a class
                k = self.rng.integers(self.K)
                step[k * P : k * P + P] = self.rng.standard_normal(P) / np.sqrt(self.p)
            elif kind == 4:  # a feature in every class
                step.reshape(self.K, P)[:, self.rng.integers(P)] = self.rng.normal(0, 2, self.K)
            yield step, self.block(self.rng.integers(6)), bool(self.rng.random() < 0.4)

    def block(self, kind):
        size, P = len(self.M), self.d
        everything = np.arange(size)
        if kind == 0:  # a class
            return everything.reshape(self.K, P)[self.rng.integers(self.K)]
        if kind == 1:  # a feature in every class
            return everything.reshape(self.K, P)[:, self.rng.integers(P)]
        if kind == 2:
            return everything[[self.rng.integers(size)]]
        if kind == 3:
            return np.sort(self.rng.choice(size, self.rng.integers(1, size + 1), replace=False))
        return None


def follow(case, every, count=40, limits=(LIMIT,)):
    """The same moves and questions to all sums: the twin's answers, with the same bits."""
    for step, block, joint in case.moves(count):
        case.coef += step
        moved = np.flatnonzero(step) if case.rng.random() < 0.5 else np.arange(len(step))
        limit = case.rng.choice(limits)
        question = {"joint": joint, "clip": CLIP, "limit": limit}
        found = []
        for sums in every:
            if len(moved):
                move(sums, moved, step[moved])
            found.append(answers(sums, block, **question))
        for one in found:
            if limit:
                assert_array_equal(one, found[0])
            else:
                assert_allclose(one, found[0], rtol=1e-9, atol=1e-9)
        block = np.arange(len(step)) if block is None else block
        case.assert_twins(found[0], block, **question)


@table("K", [1, 2, 3, 10])
@table("dtype", [np.float64, np.float32])
@table("bounded", [False, True])
@table("intercept", [False, True])
@table("alike", [False, True])
def test_sums_follow_any_moves_in_every_layout_and_order(K, dtype, bounded, intercept, alike):
    case = Case(K, dtype=dtype, bounded=bounded, intercept=intercept, alike=alike)
    order = np.random.default_rng(3).permutation(case.n)
    every = [case.sums(layout, order=rows) for layout in LAYOUTS for rows in (slice(None), order)]
    follow(case, every)


@pytest.mark.parametrize("K", [2, 3, 10])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_clipped_and_plain_sums_may_follow_each_other(K, weighted):
    case = Case(K, weighted=weighted)
    follow(case, [case.sums(layout) for layout in LAYOUTS], 60, limits=(0.0, LIMIT, 2.0**12))


@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(0.3)], ids=lambda loss: loss.name)
def test_one_output_of_any_loss_follows_too(loss):
    case = Case(1, loss=loss)
    follow(case, [case.sums(layout) for layout in LAYOUTS])


SHAPES = [(1, 1, 2), (2, 1, 3), (3, 8, 2), (17, 9, 3), (1037, 17, 3), (2100, 5, 2), (5, 600, 2)]
SHAPES += [(n, p, 1) for n in (1, 2, 3, 15, 16, 17, 1024, 1037) for p in (1, 7, 8, 9, 16, 17, 600)]
SHAPES += [(3, 2**18 + 9, 1)]  # sparse ones read columns, which leave the cache


@pytest.mark.parametrize(("n", "p", "K"), SHAPES)
def test_sums_are_the_twins_at_every_edge_of_lanes_slices_and_tiles(n, p, K):
    case = Case(K, n=n, p=p, density=0.5)
    follow(case, [case.sums(layout) for layout in LAYOUTS], 15)


@table(
    ("n", "p", "K", "intercept"),
    [
        *((1037, 70, K, intercept) for K in (1, 3, 10) for intercept in (False, True)),
        *((140_003, 3, 1, False), (140_003, 3, 10, True)),
    ],
)
def test_whole_rows_of_16_bits_are_nearly_the_twins(K, n, p, intercept):
    case = Case(K, n=n, p=p, density=0.7, alike=True, bounded=True, intercept=intercept)
    layouts = C, "asfortranarray", "csr_array", "csc_array"
    every = [case.sums(layout, n_threads=2, whole=True) for layout in layouts]
    sparse_rows = Records(sparse.csr_array(case.X), case.y, case.weights, case.bounds)
    # rows that are made again in each pass, as those of too many records are
    every.append(WholeRows(sparse_rows, case.loss, case.M, intercept, K))
    for step, _, _ in case.moves(6):
        case.coef += step
        for sums in every:
            move(sums, np.arange(len(step)), step)
        question = {"joint": True, "clip": CLIP, "limit": 2.0**26}
        found = [answers(sums, **question) for sums in every]
        assert_array_equal(found, [found[0]] * len(found))
        expected = case.twin(slice(None), **question)
        # of 2^12 multiples the clip leaves half of one to their rounding, in each class
        assert np.max(np.abs(found[0] - expected)) <= n * 2.0**14 * (1 + np.sqrt(K))
    with pytest.raises(MemoryError):  # nothing else is answered
        answers(every[0], [0], joint=True, clip=CLIP, limit=LIMIT)


@table("K", [1, 2, 3, 10])
@table("storage", ["csr_array", "csc_array"])
@table("intercept", [False, True])
def test_sums_brought_up_to_date_are_those_of_a_full_pass(K, storage, intercept):
    case = Case(K, n=700, p=60, density=0.02, intercept=intercept)
    updates, passes = case.sums(storage), case.sums(storage)
    question = {"joint": False, "clip": CLIP, "limit": LIMIT}
    for t in range(60):
        moved = np.sort(case.rng.choice(len(case.M), 1 + t % 3, replace=False))
        step = case.rng.normal(0, 3, len(moved))
        case.coef[moved] += step
        for sums in (updates, passes):
            move(sums, moved, step)
        if t % 20 == 19:  # a question between them, and a second step
            block = case.block(3)
            for sums in (updates, passes):
                answers(sums, block, joint=t % 40 == 39, clip=CLIP, limit=LIMIT)
                move(sums, moved[:1], step[:1])
            case.coef[moved[0]] += step[0]
        found = answers(updates, **question)
        answers(passes, **question | {"joint": True})  # of which nothing is kept
        assert_array_equal(found, answers(passes, **question))
        case.assert_twins(found, slice(None), **question)
        one = int(case.rng.integers(len(case.M)))
        assert answers(updates, [one], **question) == found[one]


def test_outputs_that_the_loss_or_the_smoothness_does_not_have_are_refused():
    place = LocalPlace(np.ones((3, 2)), np.zeros(3))
    options = {"fit_intercept": True}
    with pytest.raises(ValueError, match="has one output, got n_outputs=2"):
        place.moving(LogisticLoss(), np.ones(6), n_outputs=2, **options)
    with pytest.raises(ValueError, match="needs several outputs, got n_outputs=1"):
        place.moving(MultinomialLoss(), np.ones(3), n_outputs=1, **options)
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \(6,\)"):
        place.moving(MultinomialLoss(), np.ones(3), n_outputs=2, **options)
    with pytest.raises(ValueError, match="n_outputs=0"):
        place.moving(MultinomialLoss(), np.ones(0), n_outputs=0, **options)


# ---- what the guarantee rests on ---------------------------------------------------------------

# steps and weights that make margins and derivatives infinite, or no numbers
anything = st.one_of(extreme, st.sampled_from([np.inf, -np.inf, np.nan]))
weight = st.one_of(st.sampled_from(MAGNITUDES), st.floats(0, 10), st.just(np.inf))
SOFTMAX = MultinomialLoss()


def labels_of(K):
    """Some of them no class."""
    return st.integers(-1, K).map(float)


@st.composite
def records(draw, n=1):
    """n records of p extreme features, their sums in a layout, and a move and a block of them."""
    p, K = draw(st.sampled_from([1, 2, 3, 8, 11])), draw(st.sampled_from([1, 1, 2, 3, 10]))
    size = K * (p + 1)
    scale = positive if draw(st.booleans()) else st.floats(0.1, 10)
    M = draw(hnp.arrays(float, size, elements=scale))
    if draw(st.booleans()):
        M[:] = np.tile(M[: p + 1], K)
    return {
        "X": draw(hnp.arrays(float, (n, p), elements=extreme)),
        "y": draw(hnp.arrays(float, n, elements=extreme if K == 1 else labels_of(K))),
        "weights": draw(hnp.arrays(float, n, elements=weight)),
        "M": M,
        "K": K,
        "loss": draw(st.sampled_from([SquaredLoss(), LogisticLoss()] if K == 1 else [SOFTMAX])),
        "layout": draw(st.sampled_from(list(LAYOUTS))),
        "whole": draw(st.booleans()),
        "steps": draw(st.lists(hnp.arrays(float, size, elements=anything), max_size=3)),
        "block": draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True).map(sorted)),
    }


def after_each_step(one, block, **question):
    """The answer after each step, from records of one layout."""
    place = LocalPlace(LAYOUTS[one["layout"]](one["X"]), one["y"], one["weights"])
    whole = one["whole"] and block is None and question["joint"]
    whole = whole and len(np.unique(one["M"].reshape(one["K"], -1), axis=0)) == 1
    sums = place.moving(one["loss"], one["M"], fit_intercept=True, n_outputs=one["K"], whole=whole)
    found = [answers(sums, block, **question)]
    for step in one["steps"]:
        move(sums, np.arange(len(step)), step)
        found.append(answers(sums, block, **question))
    return np.array(found)


def longest(size):
    """Largest norm of one record's integers (proofs/release_gradient.md)."""
    return LIMIT * (1 + (size + 16) * 2.0**-52) + np.sqrt(size) / 2


@given(records(), st.booleans(), st.booleans(), positive)
@properties
def test_a_record_never_contributes_more_than_the_limit(one, joint, all_of_them, clip):
    clip *= np.sqrt(one["M"].max())  # as an oracle states it: far from underflow
    found = after_each_step(
        one, None if all_of_them else one["block"], joint=joint, clip=clip, limit=LIMIT
    )
    assert np.max(np.abs(found)) <= LIMIT
    if joint:
        norms = np.linalg.norm(found.astype(float), axis=1)
        assert np.max(norms) <= longest(found.shape[1]) * (1 + 1e-12)


@given(records(n=3), records(), st.booleans(), st.booleans())
@properties
def test_neighbours_move_sums_by_at_most_the_limits(one, other, joint, all_of_them):
    p, K = one["X"].shape[1], one["K"]
    replaced = {**one, **{name: one[name].copy() for name in ("X", "y", "weights")}}
    replaced["X"][1], replaced["weights"][1] = np.resize(other["X"], p), other["weights"][0]
    y = other["y"][0]
    replaced["y"][1] = y if K == 1 else np.clip(np.rint(y), -1, K)
    fewer = {**one, **{name: np.delete(one[name], 1, axis=0) for name in ("X", "y", "weights")}}
    question = {"joint": joint, "clip": 0.5, "limit": LIMIT}
    block = None if all_of_them else one["block"]
    found, *others = (after_each_step(each, block, **question) for each in (one, replaced, fewer))
    for apart, neighbors in zip((found - others[0], found - others[1]), (2, 1), strict=True):
        assert np.max(np.abs(apart)) <= neighbors * LIMIT
        if joint:
            norms = np.linalg.norm(apart.astype(float), axis=1)
            assert np.max(norms) <= neighbors * longest(found.shape[1]) * (1 + 1e-12)


@table(("joint", "whole", "layout"), [(0, 0, C), (1, 0, C), (1, 1, C), (1, 1, "csr_array")])
def test_the_limit_is_reached_so_no_noise_is_wasted(joint, whole, layout):
    one = {
        "X": np.full((1, 4), 1e3), "y": np.zeros(1), "weights": np.ones(1), "M": np.ones(15),
        "K": 3, "loss": SOFTMAX, "layout": layout, "steps": [], "whole": whole,
    }  # fmt: skip
    found = after_each_step(one, None, joint=joint, clip=CLIP, limit=LIMIT).astype(float)
    reached = np.linalg.norm(found) if joint else np.max(np.abs(found))
    assert (0.98 if whole else 0.999) * LIMIT <= reached <= longest(15)
