"""Pointwise losses. A new one is one new file and one line here."""

import math

from ._huber import HuberLoss
from ._logistic import LogisticLoss
from ._multinomial import MultinomialLoss
from ._quantile import QuantileLoss
from ._squared import SquaredLoss
from ._stated import Huber as Huber
from ._stated import Quantile as Quantile
from ._stated import Tweedie as Tweedie
from ._tweedie import TweedieLoss

_ALL = (SquaredLoss, HuberLoss, TweedieLoss, QuantileLoss, LogisticLoss, MultinomialLoss)
LOSSES = {loss.name: loss for loss in _ALL}

# Losses that users state as objects, which have a parameter, and the words for some of these.
STATED_LOSSES = (Huber, Tweedie, Quantile)
_OBJECTS = {loss.word: loss() for loss in STATED_LOSSES}
_OBJECTS |= {"poisson": Tweedie(1.0), "gamma": Tweedie(2.0)}

# scikit-learn's words for what is here, and what to use in place of what is not.
SYNONYMS = {"squared_error": "squared", "log_loss": "auto"}
_MARGINS = 'loss="log_loss", whose probabilities need no margin'
_RESIDUALS = 'loss="huber", which bounds what an outlier weighs'
ABSENT = {
    **dict.fromkeys(("hinge", "squared_hinge", "modified_huber", "perceptron"), _MARGINS),
    **dict.fromkeys(("epsilon_insensitive", "squared_epsilon_insensitive"), _RESIDUALS),
    **dict.fromkeys(("absolute_error",), 'loss="quantile", whose default is the median'),
}


def losses_for(task):
    """Words for the losses of "regression" or "classification"."""
    words = {name for name, loss in LOSSES.items() if loss.task == task}
    return words | set(_OBJECTS) if task == "regression" else words


def loss_of(word, stated):
    """The class of the loss that an estimator states, and the object that has its parameters."""
    stated = _OBJECTS.get(word) if isinstance(stated, str) else stated
    word = stated.word if stated is not None else word
    if word == "tweedie" and stated.power == 0:
        return SquaredLoss, None
    return LOSSES[word], stated


def smoothed_share(budget, n_features):
    """Over which share of half a target's range "auto" smooths the loss of a quantile.

    A narrow loss has more noise in its steps. A wide one has another quantile where targets are far
    more spread than residuals: of .9 it was .96 at any epsilon.
    """
    signal = budget.n * budget.mu / math.sqrt(n_features + 1) if budget.private else 0.0
    return max(0.1 * math.sqrt(200 / max(signal, 200.0)), 0.0125)


def stated_loss(word, stated, target_half_width, private=True, share=0.1):
    """The loss for what an estimator states, of a target divided by `target_half_width`."""
    loss, stated = loss_of(word, stated)
    stated = stated and stated.plain()
    if loss is HuberLoss and stated.threshold == "auto" and not private:
        stated.threshold = 1.35  # nobody knows bounds of the target
    if loss is QuantileLoss and stated.width == "auto":
        stated.width = share * target_half_width
    return loss.of(stated, target_half_width)
