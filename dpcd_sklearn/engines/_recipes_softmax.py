"""Recipes for "auto" with more than two classes, which a softmax fits together.

They follow s = n μ / sqrt(p + 1) as those of one output do: the number of classes is not in it,
since one clip and one noise are for all classes. ``residual_clip`` is the norm of a record's
derivatives in its margins, which is below sqrt(2).
"""

import math

from ._recipes import _between


def softmax_recipe(signal):
    """Full gradients: the clip κ and the time τ of the descent, in steps of 30 with momentum.

    A short clip needs a long time: τ κ is how far margins can go. Tails are averaged.
    """
    clip = _between(0.02 * math.sqrt(signal), 0.02, 0.6)
    n_iter = max(max(2.5 * signal, 20.0 * math.sqrt(signal)) / clip / 30.0, 30.0)
    return {
        "max_iter": n_iter,
        "step_size": 30.0,
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
    """DP-GCD over features and classes: each choice moves one of them."""
    return {
        "max_iter": _between(max(min(signal, 150.0), signal / 10), 10.0, 600.0),
        "step_size": _between(12.0 * (200 / signal) ** 0.5, 8.0, 12.0),
        "momentum": 0.0,
        "averaging": "last",
        "residual_clip": _between(0.2 * (signal / 100) ** 0.4, 0.2, 0.5),
    }
