"""Pointwise losses. A new one is one new file and one line here."""

from ._huber import HuberLoss
from ._logistic import LogisticLoss
from ._multinomial import MultinomialLoss
from ._squared import SquaredLoss
from ._stated import Huber as Huber

LOSSES = {loss.name: loss for loss in (SquaredLoss, HuberLoss, LogisticLoss, MultinomialLoss)}

# Losses that users state as objects, which have a parameter; the word stands for its default.
STATED_LOSSES = {"huber": Huber}

# scikit-learn's words for what is here, and what to use in place of what is not.
SYNONYMS = {"squared_error": "squared", "log_loss": "auto"}
_MARGINS = 'loss="log_loss", whose probabilities need no margin'
_RESIDUALS = 'loss="huber", which bounds what an outlier weighs'
ABSENT = {
    **dict.fromkeys(("hinge", "squared_hinge", "modified_huber", "perceptron"), _MARGINS),
    **dict.fromkeys(("epsilon_insensitive", "squared_epsilon_insensitive"), _RESIDUALS),
    **dict.fromkeys(("absolute_error", "quantile", "poisson"), _RESIDUALS),
}


def losses_for(task):
    """Names of the losses for "regression" or "classification"."""
    return {name for name, loss in LOSSES.items() if loss.task == task}


def stated_loss(word, stated, target_half_width):
    """The loss for what an estimator states, of a target divided by `target_half_width`."""
    if word in STATED_LOSSES and isinstance(stated, str):
        stated = STATED_LOSSES[word]()
    elif word in STATED_LOSSES:
        stated = stated.plain()
    return LOSSES[word].of(stated, target_half_width)
