"""Sums of the target by category: their sensitivity, their noise, and what they are sums of."""

import math

import numpy as np
import pytest

from dpcd_sklearn.privacy.accounting import FitEvent, GaussianEvent
from dpcd_sklearn.privacy.ledger import charge
from dpcd_sklearn.privacy.mechanisms import TargetOracle, TargetUnits
from dpcd_sklearn.privacy.mechanisms import _target_sums as mechanism
from dpcd_sklearn.privacy.sums import GroupPlace

RELATIONS = ["replace_one", "add_remove"]
N_GROUPS, P = 3, 2


def oracle_of(codes, target, n_classes=0, z=2.0, neighboring="replace_one", n_public=None, cv=1):
    """Of codes of shape (n_samples, n_columns)."""
    event, n = FitEvent((GaussianEvent(z, 1),), neighboring), len(target)
    units = TargetUnits(
        event, n_columns=codes.shape[1], n_classes=n_classes, n_samples=n,
        n_normalizer=n_public or n,
    )  # fmt: skip
    sizes = [N_GROUPS] * codes.shape[1]
    place = GroupPlace(list(codes.T), sizes, target, n_classes, np.arange(n) % cv, cv)
    return TargetOracle(charge(None, event), units, place)


def sums_of(monkeypatch, *data, **options):
    """The integers of a release before their noise, with its units."""
    kept = []
    with monkeypatch.context() as patch:
        patch.setattr(mechanism, "with_noise", lambda noise, sums, bits: kept.append(sums) or sums)
        oracle = oracle_of(*data, **options)
        oracle.release_target_sums()
    return np.concatenate([sums.ravel() for sums in kept]), oracle._units


@pytest.mark.parametrize("mutant", [None, "half the noise", "no root of p"])
@pytest.mark.parametrize("neighboring", RELATIONS)
@pytest.mark.parametrize("n_classes", [0, 3])
def test_neighbours_are_told_apart_as_far_as_is_claimed(
    monkeypatch, neighboring, n_classes, mutant
):
    exact = mechanism.target_sensitivity
    wrong = {
        "half the noise": lambda p, k, of: exact(p, k, of) / 2,
        "no root of p": lambda p, k, of: exact(1, k, of),
    }
    if mutant:
        monkeypatch.setattr(mechanism, "target_sensitivity", wrong[mutant])
    others = np.array([[0, 1], [1, 1], [2, 0], [0, 2]])
    kind = np.intp if n_classes else np.float64
    of_others = np.array([0, 1, 0, 1], dtype=kind)
    targets = range(n_classes) if n_classes else (-7.0, -1.0, 0.2, 1.0, 3.0, math.nan)
    records = [(code, y) for code in ([0, 1], [1, 2], [2, 0]) for y in targets]
    cv = 2 if neighboring == "replace_one" else 1
    options = {"n_classes": n_classes, "neighboring": neighboring, "cv": cv}

    def of_record(code, y):
        target = np.append(of_others, np.array([y], dtype=kind))
        return sums_of(monkeypatch, np.vstack([others, code]), target, **options)

    worst = 0.0
    for record in records:
        first, units = of_record(*record)
        if neighboring == "add_remove":  # the same grid: the normaliser is public
            seconds = [sums_of(monkeypatch, others, of_others, n_public=5, **options)[0]]
        else:
            seconds = [of_record(*other)[0] for other in records]
        worst = max(worst, *(float(np.linalg.norm(first - second)) for second in seconds))
    assert (2.0 * worst <= 2.0**units.bits) is (mutant is None)
    if mutant is None:  # and no farther
        assert 2.0 * worst >= 0.99 * 2.0**units.bits


@pytest.mark.parametrize("n_classes", [0, 2])
def test_sums_are_those_of_folds_and_groups_with_the_noise_that_is_charged(n_classes):
    rng = np.random.default_rng(0)
    n, z, cv = 600, 5.0, 3
    codes = rng.integers(0, N_GROUPS, (n, P))
    target = rng.integers(0, 2, n) if n_classes else rng.uniform(-1, 1, n)
    runs = [oracle_of(codes, target, n_classes, z, cv=cv).release_target_sums() for _ in range(200)]
    for j in range(P):
        found = np.array([run[j] for run in runs])
        expected = np.zeros((cv, N_GROUPS, 2))
        for i in range(n):
            expected[i % cv, codes[i, j]] += np.eye(2)[target[i]] if n_classes else [target[i], 1]
        std = z * math.sqrt((2 if n_classes else 4) * P)
        assert np.abs(found.mean(axis=0) - expected).max() < 5 * std / math.sqrt(200)
        assert (found - expected).std() == pytest.approx(std, rel=0.06)


def test_they_are_released_once_and_of_a_column_at_least():
    oracle = oracle_of(np.zeros((10, 2), dtype=np.intp), np.zeros(10))
    oracle.release_target_sums()
    with pytest.raises(RuntimeError, match="once"):
        oracle.release_target_sums()
    event = FitEvent((GaussianEvent(1.0, 1),))
    with pytest.raises(ValueError, match="column"):
        TargetUnits(event, n_columns=0, n_classes=0, n_samples=9, n_normalizer=9)
