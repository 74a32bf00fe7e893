"""Recipes for "auto" with more than two classes, which a softmax fits together.

They follow s = n μ / sqrt(p + 1) as those of one output do: the number of classes is not in it,
since one clip and one noise are for all classes. ``residual_clip`` is the norm of a record's
derivatives in its margins, which is below sqrt(2).
"""

import math

from ._recipes import _between


def softmax_recipe(signal):
    """Full gradients: the clip κ and the time τ of the descent, in steps of 20 with momentum.

    A short clip needs a long time: τ κ is how far margins can go. Features that fill a half of
    their bounds need four times as long as features of unit scale do.
    """
    clip = _between(0.02 * math.sqrt(signal), 0.02, 0.6)
    total_time = max(7.5 * signal, 60.0 * math.sqrt(signal)) / clip
    n_iter = _between(total_time / 20.0, 30.0, 1_000.0)
    return {
        "max_iter": n_iter,
        "step_size": min(total_time / n_iter, 30.0),
        "momentum": 0.9,
        "averaging": "tail",
        "residual_clip": clip,
    }


def coordinate_softmax_recipe(signal):
    """DP-CD: a coordinate in all classes at a time."""
    return {
        "max_iter": _between(0.75 * signal, 5.0, 200.0),
        "step_size": 1.0,
        "momentum": 0.0,
        "averaging": "tail",
        "residual_clip": _between(0.25 * (signal / 70) ** 0.25, 0.1, 0.5),
    }


def greedy_softmax_recipe(signal):
    """DP-GCD over features and classes: a feature moves in all classes.

    Few of them reach every feature, so many short clips do better than a few long ones.
    """
    return {
        "max_iter": _between(2.0 * signal, 30.0, 600.0),
        "step_size": 16.0,
        "momentum": 0.0,
        "averaging": "last",
        "residual_clip": _between(0.01 * math.sqrt(signal), 0.03, 0.5),
    }
