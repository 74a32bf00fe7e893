"""Units of every mechanism refuse public numbers that the proofs do not assume.

A row of the table is a mechanism with numbers that are in order, and changes that are not: each
is a precondition of its page in ``privacy/proofs``.
"""

import math

import numpy as np
import pytest

import dpcd_sklearn.privacy.mechanisms as mechanisms
from dpcd_sklearn.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from dpcd_sklearn.privacy.accounting import (
    CoveredEvent,
    FitEvent,
    GaussianEvent,
    NonPrivateEvent,
    PoissonSampledEvent,
    Receipt,
    SelectionEvent,
)
from dpcd_sklearn.privacy.mechanisms import (
    ColumnUnits,
    CoordinateUnits,
    CountUnits,
    CurvatureOracle,
    CurvatureUnits,
    MeanUnits,
    MomentUnits,
    PartitionUnits,
    PresentUnits,
    QuantileUnits,
    RecordOracle,
    RunningUnits,
    ScoreUnits,
    SecondMomentUnits,
    SmoothnessUnits,
    TargetUnits,
)
from dpcd_sklearn.privacy.mechanisms._cell_sums import MOST_COLUMNS
from dpcd_sklearn.privacy.mechanisms._curvature_units import constant_of_rows
from dpcd_sklearn.privacy.sums import LocalPlace

G = GaussianEvent


def of(*releases, neighboring="replace_one"):
    return FitEvent(releases, neighboring)


SIZES = {"n_samples": 9, "n_normalizer": 9}
MANY = [{"n_samples": 2**28 + 1}, {"n_samples": 2**29, "n_normalizer": 2**26}]
NORMALIZERS = [{"n_normalizer": n} for n in (0, -1, math.nan, math.inf)]
SMOOTHNESS = [
    {"smoothness": np.array([1.0, value])} for value in (0.0, -1.0, 1e-61, 1e61, math.nan, math.inf)
]
CLIPS = [{"clip": value} for value in (0.0, -1.0, math.nan, math.inf, 1e-41, 1e41)]
NORMS = [{"row_norm": value} for value in (0.0, -1.0, math.nan, math.inf, 1e15, 0.99)]
OUTPUTS = [{"n_outputs": n} for n in (0, -1)]
# that mean no noise, no end, or no release that an oracle of gradients knows
EVENTS = [{"event": of(G(z, 4))} for z in (0.0, -1.0, math.nan)]
EVENTS += [{"event": of(G(1.0, count))} for count in (0, -1)]
EVENTS += [{"event": of(*two)} for two in ([G(1.0), G(1.0)], [NonPrivateEvent(), G(1.0)])]
EVENTS += [{"event": of(of(G(1.0, 4)))}]
CHOICES = [{"event": of(SelectionEvent(eta, 3), G(2.0, 5))} for eta in (0.0, math.nan, math.inf)]
SAMPLES = [{"event": of(PoissonSampledEvent(r, 2.0))} for r in (0.0, 1.5, math.nan, 2.0**-41)]
SAMPLES += [{"event": of(PoissonSampledEvent(0.5, 0.0))}]
SAMPLES += [{"event": of(*[PoissonSampledEvent(0.5, 2.0)] * 2)}]
# Sums that are released once refuse these, and those of columns some more.
SUMS = [*MANY, *NORMALIZERS, {"event": of(G(2.0, 2))}, {"event": of(SelectionEvent(0.1, 1))}]
SUMS += [{"event": of(G(z))} for z in (1e-12, 1e300)]
NO_COLUMN = [{"n_columns": n} for n in (0, -1)]
COLUMNS = [*SUMS, *NO_COLUMN, {"n_columns": MOST_COLUMNS + 1}, {"event": of(NonPrivateEvent())}]
TABLE = {
    CoordinateUnits: (
        {"event": of(G(2.0, 5), SelectionEvent(0.1, 3)), "smoothness": np.ones(2), "clip": 1.0}
        | SIZES,
        [
            *MANY, *NORMALIZERS, *SMOOTHNESS, *CLIPS, *OUTPUTS, *EVENTS, *CHOICES,
            {"n_outputs": 3}, {"n_chosen": 2**40}, {"largest_score": 1e30}, {"step": 1e12},
            {"largest_score": math.nan}, {"step": math.nan},
            *({"event": of(G(z, 5))} for z in (1e-12, 1e300)),
            *({"event": of(SelectionEvent(eta, 3))} for eta in (2.0**11, 1e-300)),
            {"event": of(SelectionEvent(1.0, -1), G(2.0, 5))}, *SAMPLES,
        ],
    ),
    MeanUnits: (
        {"event": of(G(2.0, 5)), "smoothness": np.ones(2), "clip": 1.0, "anchor_clip": 1.0} | SIZES,
        [
            *MANY, *NORMALIZERS, *SMOOTHNESS, *CLIPS, *OUTPUTS, *EVENTS, *SAMPLES,
            *({"anchor_clip": one["clip"]} for one in CLIPS),
            *({"event": of(G(z, 5))} for z in (1e-12, 1e300)),
            {"event": of(SelectionEvent(1.0, 4))},
        ],
    ),
    CurvatureUnits: (
        {
            "event": of(G(2.0, 5), G(2.0), G(2.0, 2)), "smoothness": np.ones(2),
            "row_norm": 2.0, "constant": 1.0,
        } | SIZES,
        [
            *MANY, *NORMALIZERS, *SMOOTHNESS, *NORMS, *OUTPUTS,
            {"smoothness": np.ones(4002)}, {"constant": 2.1}, {"constant": -1.0},
            {"constant": math.nan},
            *({"event": of(G(z, 5), G(2.0), G(2.0, 2))} for z in (1e-12, 1e300)),
            *({"event": of(G(2.0, 5), G(z), G(2.0, 2))} for z in (1e-30, 1e300)),
            *({"event": of(G(2.0, 5), G(2.0), G(z, 2))} for z in (1e-30, 1e300)),
            {"event": of(G(2.0, 5))}, {"event": of(G(2.0, 5), G(2.0, 2))},
            {"event": of(G(2.0, 5), G(2.0), G(2.0, 3))}, {"event": of(SelectionEvent(0.1, 3))},
        ],
    ),
    MomentUnits: (
        {"event": of(G(2.0, 2), G(2.0)), "smoothness": np.ones(2)} | SIZES,
        [
            *MANY, *NORMALIZERS, *SMOOTHNESS, {"smoothness": np.ones(4002)},
            *({"event": of(G(z, 2), G(2.0))} for z in (1e-30, 1e300)),
            *({"event": of(G(2.0, 2), G(z))} for z in (1e-30, 1e300)),
            {"event": of(G(2.0, 2))}, {"event": of(G(2.0, 3), G(2.0))},
            {"event": of(G(2.0, 2), G(2.0), neighboring="add_remove"), "n_normalizer": 2**34 + 1},
        ],
    ),
    SmoothnessUnits: (
        {"event": of(G(2.0)), "n_columns": 3, "with_means": True} | SIZES,
        [*COLUMNS, {"event": of(G(1.0), G(2.0))}, {"n_normalizer": 2**49}],
    ),
    CountUnits: (
        {"event": of(G(2.0)), "n_classes": 3} | SIZES,
        [*SUMS, *({"n_classes": n} for n in (0, 1, 257)), {"event": of(NonPrivateEvent())}],
    ),
    ScoreUnits: (
        {"event": of(G(2.0)), "kind": "cells", "size": 4, "n_samples": 9},
        [
            {"n_samples": 2**30 + 1}, {"kind": "no such kind"},
            {"kind": "pairs", "event": of(G(2.0), neighboring="add_remove")},
            {"size": 0}, {"size": -1}, {"n_samples": -1},
            *({"event": of(G(z))} for z in (1e-300, 1e300)),
            {"event": of(G(2.0, 2))}, {"event": of(NonPrivateEvent())},
        ],
    ),
    QuantileUnits: (
        {"event": of(SelectionEvent(0.1, 3))},
        [
            *({"event": of(SelectionEvent(eta, 3))} for eta in (0.0, 2.0**-27, 2.0**11, math.nan)),
            {"event": of(G(2.0))}, {"event": of()},
            {"event": of(SelectionEvent(0.1, 3), SelectionEvent(0.1, 3))},
        ],
    ),
    PartitionUnits: (
        {"event": of(CoveredEvent(2.0, 1e-6)), "n_columns": 3} | SIZES,
        [
            *MANY, *NORMALIZERS, *({"n_columns": n} for n in (0, -1)),
            *({"event": of(CoveredEvent(z, 1e-6))} for z in (1e-12, 1e300)),
            *({"event": of(CoveredEvent(2.0, s))} for s in (0.0, -1.0, 1.1, math.nan)),
            {"event": of(CoveredEvent(2.0, 1e-6, 2))}, {"event": of(G(2.0))},
        ],
    ),
    PresentUnits: ({"event": of(G(2.0)), "n_columns": 3} | SIZES, COLUMNS),
    RunningUnits: ({"event": of(G(2.0)), "n_columns": 3} | SIZES, COLUMNS),
    TargetUnits: (
        {"event": of(G(2.0)), "n_columns": 3, "n_classes": 0} | SIZES, [*SUMS, *NO_COLUMN],
    ),
    ColumnUnits: (
        {"event": of(SelectionEvent(0.1, 3)), "n_chosen": 3, "n_classes": 2, "width": 5} | SIZES,
        [
            {"n_samples": 2**28 + 1}, *NORMALIZERS, *({"n_chosen": k} for k in (0, 2, 6)),
            {"n_classes": -1}, {"n_classes": 257},
            *({"event": of(SelectionEvent(eta, 3))} for eta in (1e-300, 1e6, math.nan)),
            {"event": of(SelectionEvent(0.1, 2))}, {"event": of(G(2.0))},
        ],
    ),
    SecondMomentUnits: (
        {"event": of(G(2.0)), "n_features": 3, "row_norm": 2.0, "constant": 1.0} | SIZES,
        [
            *MANY, *NORMALIZERS, {"n_features": 4001}, {"constant": 2.0}, {"constant": 0.0},
            *({"row_norm": value} for value in (0.0, -1.0, math.nan, math.inf, 1e15, 0.99)),
            *({"event": of(G(z))} for z in (1e-30, 1e300)),
            {"event": of(G(2.0, 2))}, {"event": of(SelectionEvent(0.1, 1))},
        ],
    ),
}  # fmt: skip


def test_sums_of_whole_rows_are_exact_however_few_records_are_public():
    stated = {"smoothness": np.ones(64), "clip": 1.0, "n_normalizer": 1000, "n_samples": 2**28}
    units = CoordinateUnits(of(G(2.0, 8), neighboring="add_remove"), whole=True, **stated)
    assert units.whole and 2.0**28 * (2.0**units.bits / 2.0) <= 2.0**53


def test_units_refuse_what_their_proofs_do_not_cover():
    accepted = []
    for kind, (good, changes) in TABLE.items():
        kind(**good)
        for change in changes:
            try:
                kind(**(good | change))
            except (TypeError, ValueError):
                continue
            except ArithmeticError as error:
                accepted.append(f"{kind.__name__} with {change}: {error!r}")
                continue
            accepted.append(f"{kind.__name__} with {change}")
    assert not accepted, "\n".join(accepted)


def test_the_table_has_all_units():
    import importlib
    import pkgutil

    modules = [
        importlib.import_module(f"{mechanisms.__name__}.{info.name}")
        for info in pkgutil.iter_modules(mechanisms.__path__)
    ]
    named = {
        value
        for module in modules
        for name, value in vars(module).items()
        if name.endswith("Units") and isinstance(value, type)
    }
    parents = {parent for kind in named for parent in kind.__mro__[1:]}
    assert named - parents == set(TABLE)


def test_units_of_other_outputs_than_the_records_have_are_refused():
    """Two outputs of three coordinates are not three of two."""
    units = CoordinateUnits(of(G(1.0)), smoothness=np.ones(6), clip=1.0, n_outputs=2, **SIZES)
    place = LocalPlace(np.ones((9, 1)), np.zeros(9))
    with pytest.raises(ValueError, match="of 3 columns, not 2"):
        RecordOracle(Receipt(units.event, None), units, place, loss=MultinomialLoss())
    with pytest.raises(ValueError, match="of 3 columns, not 2"):
        CountUnits(of(G(1.0)), n_classes=2, n_columns=3, **SIZES).question(edges=np.ones((2, 2)))


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()])
@pytest.mark.parametrize("of_intercept", [0.01, 1.0])
def test_no_oracle_clips_rows_below_their_constant(loss, of_intercept):
    """The features would be cut by the root of a negative number, and the constant not at all."""
    smoothness = np.array([1.0, of_intercept])
    constant = constant_of_rows(loss, smoothness, True)
    event = of(G(2.0, 5), G(2.0), G(2.0, 2))
    place = LocalPlace(np.ones((9, 1)), np.zeros(9))
    given = {"event": event, "smoothness": smoothness} | SIZES

    def oracle(units):
        return CurvatureOracle(Receipt(event, None), units, place, loss=loss, fit_intercept=True)

    with pytest.raises(ValueError, match="constant"):
        oracle(CurvatureUnits(**given, row_norm=100.0))  # it was not told of the constant
    units = CurvatureUnits(**given, row_norm=1.5 * constant, constant=constant)
    with pytest.raises(ValueError, match="constant"):
        oracle(units).see(place, 0.9 * constant)
    sums = place.second_order(loss, smoothness, fit_intercept=True)
    with pytest.raises(ValueError, match="constant"):
        sums.row_sums(0.9 * constant, 10.0, 10.0)
    sums.row_sums(constant, 10.0, 10.0)
